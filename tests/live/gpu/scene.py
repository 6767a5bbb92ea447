"""A Python program on the doubles of tests/fakecuda, the attaches to it, and what both wrote down: for the tests of this folder."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(os.path.dirname(HERE)), "fakecuda")]
import fakecuda
import harness
from harness import Target, World, require, thread_names

QUICK = bool(os.environ.get("QUICK"))
FAKECUDA = os.path.dirname(os.path.abspath(fakecuda.__file__))
PROGRAM = os.path.join(HERE, "program.py")
WHEELS = os.environ.get("INFERSCOPE_CUPTI_WHEELS", "/var/cache/inferscope/cupti")
BINARY = harness.find_binary()
BUILT = os.path.join(os.path.dirname(BINARY or ""), "tests/fakecuda")
CLIENT = os.path.join(BUILT, "libfakeclient.so")
VERSIONS = [(11, 18), (12, 18), (12, 22), (12, 24), (12, 26), (12, 28), (13, 130001), (13, 130202), (13, 130301), (13, 130401), (13, 130500)]
MEMCPY, RUNTIME, KERNEL, MARKER, MEMORY, GRAPH_TRACE = 1, 5, 10, 12, 49, 51
THREAD = "inferscope-gpu"


class Scene:
    """A target with the doubles laid out for it, and the attaches to it."""

    def __init__(self, python, mode="eager", cuda=13, version=None, layout=None, missing=(), rounds=100, env=None, **switches):
        self.folder = tempfile.mkdtemp(prefix="inferscope-gpu-")
        os.chmod(self.folder, 0o755)
        self.world = World(BINARY, QUICK, self.folder, [])
        self.env = fakecuda.install(BUILT, os.path.join(self.folder, "cuda"), cuda, version, layout, missing)
        self.env.update({"FAKECUDA_" + key: str(value) for key, value in switches.items()}, FAKECUDA=FAKECUDA, ROUNDS=str(rounds), PYTHONDONTWRITEBYTECODE="1",
                        FAKECUDA_JOURNAL=self.world.path("journal"), FAKECUDA_OPS=self.world.path("ops"))
        self.env.update(env or {})
        self.target = Target(python, PROGRAM, mode, env=self.env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.target.__exit__()
        shutil.rmtree(self.folder, ignore_errors=True)

    def attach(self, *options, seconds="60s"):
        self.attached_ns = time.monotonic_ns()
        self.attached = self.world.attach(self.target.pid, "-d", seconds, *options, trace="t.iscope")
        return self.attached

    def journal(self):
        """Rows of (µs, pid, tid, signals, sign, name, argument, result)."""
        return read_rows(self.world.path("journal"), 8)

    def wait_for_call(self, name, argument=None, after=0, seconds=30, alone=False):
        """Until CUPTI's function has answered; AFTER skips what an earlier attach did; ALONE: nobody is attached any more."""
        def there():
            if not alone and self.attached.child.poll() is not None:
                self.attached.expect(None)
            return any(row[4] == "<" and row[5].startswith(name) and (argument is None or row[6] == str(argument)) and row[7] == "0" for row in self.journal()[after:])
        harness.wait_for(there, seconds, "CUPTI's %s(%s) did not come within %d s; the journal ends with %s" % (name, argument, seconds, self.journal()[-3:]))

    def wait_for_ticks(self, count):
        """Until the GPU thread has flushed so many times more, and compared clocks each time but the last."""
        def flushes():
            return sum(row[4:6] == ["<", "ActivityFlushAll"] for row in self.journal())
        wanted = flushes() + count
        harness.wait_for(lambda: flushes() >= wanted, 30, "it does not flush; the journal ends with %s" % self.journal()[-3:])

    def work(self):
        """Lets the target work. Returns what it launched."""
        self.target.go()
        return collections.Counter(json.loads(self.target.expect("DONE", 60)[5:]))

    def ask(self, command):
        """A line for the program. Returns its answer."""
        self.target.child.stdin.write(command.encode() + b"\n")
        self.target.child.stdin.flush()
        return json.loads(self.target.expect("DONE", 20)[5:] or "null")

    def set(self, name, value):
        self.ask("set %s %d" % (name, value))

    def measure(self, *options, times=1):
        """Attach, work, Ctrl-C. Returns (report, kernels launched)."""
        begun = len(self.journal())
        attach = self.attach(*options)
        self.wait_for_call("ActivityEnable", KERNEL, after=begun)
        time.sleep(0.3)
        launched = collections.Counter()
        for _ in range(times):
            launched.update(self.work())
        attach.stop()
        attach.expect(0)
        return self.world.report(), launched

    def settings(self):
        return self.world.report()["capture"]["settings"]

    def wait_until_left(self, seconds=20):
        harness.wait_for(lambda: THREAD not in thread_names(self.target.pid), seconds, "the GPU thread is still there; the journal ends with %s" % self.journal()[-3:])

    def without_gpu(self, reason, *options, waits=False, more=0):
        """An attach whose GPU part is off for a reason, while the rest goes on and the target is none the worse. WAITS: its thread is there until the end; MORE: threads that CUPTI keeps."""
        threads = len(os.listdir("/proc/%d/task" % self.target.pid))
        for pause_s in (0, 5):  # on a machine that is very busy its thread may not have begun
            attach = self.attach(*options)
            harness.settle(attach)
            time.sleep(pause_s)
            if not waits:
                self.wait_until_left()
            attach.stop()
            attach.expect(0)
            report = self.world.report()
            said = report["verdict"]["gpu"] or ""
            if not re.search("did not use CUDA while", said):
                break
        require(re.search(reason, said), "the reason is '%s', not /%s/; warnings: %s" % (said, reason, report["warnings"]))
        require(report["functions"], "nothing of Python was measured")
        self.check_alive()
        after = len(os.listdir("/proc/%d/task" % self.target.pid))
        require(after <= threads + more, "%d threads before, %d after" % (threads, after))
        return report

    def check_alive(self):
        self.work()
        require(harness.state_of(self.target.pid) in "SR", "the target is in state %s" % harness.state_of(self.target.pid))

    def finish(self):
        status, last = self.target.finish()
        require(status == 0 and last == "OK", "the target ended with %s: %s %s" % (harness.status_text(status), last, self.target.errors()))

    def truth(self):
        """What the device did, by the doubles: dicts of kernels, calls by correlation."""
        kernels, calls = [], {}
        for row in read_rows(self.world.path("ops"), 0):
            if row[1] == "api":
                calls[int(row[5])] = {"name": row[2], "tid": int(row[6]), "start": int(row[7]), "end": int(row[8])}
            elif row[1] == "kernel":
                kernels.append({"name": row[2], "device": int(row[3]), "stream": int(row[5]), "correlation": int(row[6]), "start": int(row[7]), "end": int(row[8]), "node": int(row[14])})
        return kernels, calls

    def events(self, kind):
        """Fields of the trace's events of one kind, with at_ns: the time of CLOCK_MONOTONIC that the trace gives them."""
        text = subprocess.run([BINARY, "dump-trace", self.world.path("t.iscope")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=True).stdout
        found, clock = [], None
        for line in text.splitlines():
            words = line.strip().split(" ", 2)
            if words[0] == "chunk":
                clock = [int(part) for part in re.search(r" clock=(\d+)/(\d+)/(\d+)", line).groups()]
            elif len(words) == 3 and words[1] == kind:
                event = dict((key, json.loads(value) if value.startswith('"') else int(value)) for key, value in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|-?\d+)', words[2]))
                event["at_ns"] = clock[2] + (int(words[0]) - clock[1]) * 10**9 // clock[0]
                found.append(event)
        return found


def read_rows(path, width):
    try:
        with open(path) as f:
            rows = [line.rstrip("\n").split("\t") for line in f if line.endswith("\n")]
    except FileNotFoundError:
        return []
    return [row for row in rows if not width or len(row) == width]


def names(events):
    return collections.Counter(event["name"] for event in events)


def check_kernels(scene, report, launched):
    """Every kernel that the target launched, by name, and nothing else: as often on each device and stream as the doubles say."""
    kernels = scene.events("gpu_kernel")
    require(names(kernels) == launched, "kernels: %s, launched: %s" % (dict(names(kernels)), dict(launched)))
    require(report["verdict"]["gpu"] is None, "it says why there is nothing: %s" % report["verdict"]["gpu"])
    truth = {(kernel["correlation"], kernel["name"], kernel["device"], kernel["stream"]): kernel["end"] - kernel["start"] for kernel in scene.truth()[0]}
    for kernel in kernels:
        key = (kernel["correlation"], kernel["name"], kernel["device"], kernel["stream"])
        require(key in truth, "no such kernel was launched: %s" % (key,))
        require(abs(kernel["duration_ns"] - truth[key]) <= 1000, "%s lasted %d ns, the trace says %d" % (key, truth[key], kernel["duration_ns"]))


def check_joined(scene):
    """Every kernel has the call that launched it."""
    calls = {event["correlation"] for event in scene.events("gpu_api")}
    alone = [kernel["name"] for kernel in scene.events("gpu_kernel") if kernel["correlation"] not in calls]
    require(not alone, "kernels without their call: %s" % collections.Counter(alone))


def clock_error(scene, percent=100):
    """How far the starts of kernels in the trace are from those that the doubles know, in ns: the largest, or that of so many percent of them."""
    truth = {(kernel["correlation"], kernel["name"]): kernel["start"] for kernel in scene.truth()[0]}
    errors = sorted(abs(kernel["at_ns"] - truth[kernel["correlation"], kernel["name"]]) for kernel in scene.events("gpu_kernel"))
    return errors[(len(errors) - 1) * percent // 100]


def check_calls_balance(rows, library_left=True):
    """Every call returned; what was begun was ended, in the order that CUPTI wants; all of it from threads that take no signals."""
    calls = [row for row in rows if row[4] in "<>"]
    entered = collections.Counter(row[5] for row in calls if row[4] == ">")
    left = collections.Counter(row[5] for row in calls if row[4] == "<")
    require(entered == left, "calls that did not return: %s" % dict(entered - left))
    require(all(row[3] == "masked" for row in calls), "calls on a thread that takes signals: %s" % [row for row in calls if row[3] != "masked"][:3])
    require(not [row for row in rows if row[4] == "#" and row[5] != "exit"], "%s" % [row[5] for row in rows if row[4] == "#"])
    done = [(row[5].replace("_v2", ""), row[6]) for row in calls if row[4] == "<" and row[7] == "0"]
    enabled = {argument for name, argument in done if name in ("ActivityEnable", "ActivityEnableAndDump")}
    disabled = {argument for name, argument in done if name == "ActivityDisable"}
    require(enabled == disabled and str(KERNEL) in enabled, "kinds enabled %s, disabled %s" % (sorted(enabled), sorted(disabled)))
    order = [name for name, _ in done]
    require(order.index("ActivityRegisterCallbacks") < order.index("ActivityEnable"), "enabled before buffers were registered")
    require(done.index(("ActivityEnable", str(RUNTIME))) < done.index(("ActivityEnable", str(KERNEL))), "kernels were enabled before runtime calls")
    require(("ActivityEnable", "3") not in done, "kind 3 serialises kernels")
    require("Unsubscribe" in order, "it did not unsubscribe")
    last_flush = max(i for i, (name, argument) in enumerate(done) if name == "ActivityFlushAll" and argument == "1")
    require(last_flush < order.index("Unsubscribe"), "no forced flush before the end")
    require(("ActivityRegisterTimestampCallback", "0") not in done, "it registered a clock of its own")
    threads = {row[2] for row in calls}
    require(len(threads) == 1, "CUPTI was called from %d threads" % len(threads))


def kinds_on(rows):
    """Which kinds of records are on after these calls."""
    on = set()
    for row in rows:
        if row[4] == "<" and row[7] == "0" and row[5] in ("ActivityEnable", "ActivityEnableAndDump"):
            on.add(int(row[6]))
        elif row[4] == "<" and row[5] == "ActivityDisable":
            on.discard(int(row[6]))
        elif row[4] == "<" and row[5] == "Finalize":
            on.clear()
    return on
