"""What goes wrong, in CUDA, in CUPTI, in other tools: the CPU part goes on, the reason is told, and the target is none the worse."""
import os
import re
import shutil
import signal
import tempfile
import time

import harness
from harness import Fail, Skip, Target, World, require, resident_kib, thread_names
from scene import BINARY, BUILT, CLIENT, HERE, KERNEL, QUICK, WHEELS, Scene, check_calls_balance, check_kernels, fakecuda, kinds_on, names


REFUSALS = ((15, "NOT_INITIALIZED.*15"), (14, "NOT_COMPATIBLE.*14"), (35, "PRIVILEGES.*35"), (999, "UNKNOWN.*999"), (39, "holds CUPTI"))


def refused(python):
    """Whatever CUPTI answers when it is asked first: the reason in its own words, and no call after it."""
    for cuda in (12, 13):
        with Scene(python, cuda=cuda, rounds=10, NAME="Nsight Systems") as scene:
            for rc, reason in REFUSALS[-1:] if QUICK and cuda == 12 else REFUSALS[::2] if QUICK else REFUSALS:
                if rc == 39 and cuda == 13:
                    reason += ": Nsight Systems"
                scene.set("INIT_RC", rc)
                begun = len(scene.journal())
                scene.without_gpu(reason)
                check_stopped(scene.journal()[begun:], 0)
            scene.set("INIT_RC", 0)
            report, launched = scene.measure()
            check_kernels(scene, report, launched)
            scene.finish()


def check_stopped(rows, undone):
    """Nothing was asked for after the call that failed, but for taking back what had been done: kinds, thread ids, the subscription."""
    failed = [i for i, row in enumerate(rows) if row[4] == "<" and row[7] != "0"]
    require(failed, "no call failed: %s" % [row[5] for row in rows])
    later = [row[5] for row in rows[failed[0] + 1:] if row[4] == ">"]
    require(set(later) <= {"ActivityDisable", "SetThreadIdType", "Unsubscribe"} and bool(later) == bool(undone), "calls after the one that failed: %s" % later)
    require(not undone or later[-1] == "Unsubscribe", "it stays subscribed: %s" % later)
    require(not kinds_on(rows), "kinds %s are left on" % kinds_on(rows))


def failing(python):
    """Any later call that fails: it is named, and what was begun is taken back."""
    for call in (("SetThreadIdType", 1), ("ActivityRegisterCallbacks", 0), ("ActivityEnableAndDump", 8), ("ActivityEnable", KERNEL))[2 if QUICK else 0:]:
        with Scene(python, rounds=10, FAIL="%s %d 8" % call) as scene:
            try:
                scene.without_gpu("cupti%s.*8" % call[0].replace("AndDump", ""), more=call[0].startswith("ActivityEnable"))
                check_stopped(scene.journal(), 1)
                scene.finish()
            except Fail as why:
                raise Fail("%s(%d): %s" % (call + (why,)))


def unusable(python):
    """A library that cannot be used, a driver that cannot: the reason, and not one call into CUPTI where it can be known before."""
    for what, reason, waits in (({"missing": ("cuptiActivityGetNextRecord",)}, "has no cuptiActivityGetNextRecord", False), ({"COUNT_RC": 100}, "no CUDA-capable device|100", False),
                                ({"mode": "broken", "CUINIT_RC": 100}, "did not use|has one thread", True)):
        with Scene(python, rounds=10, **what) as scene:
            try:
                scene.without_gpu(reason, waits=waits)
                require(not scene.journal(), "CUPTI was called: %s" % scene.journal()[:2])
                scene.finish()
            except Fail as why:
                raise Fail("%s: %s" % (what, why))


def one_thread(python):
    """From Python 3.12 on a process with one thread gets none of ours: os.fork() would warn."""
    if python.version < (3, 12):
        raise Skip("only from Python 3.12 on")
    with Scene(python, rounds=10, DRIVER_THREAD=0) as scene:
        scene.without_gpu("has one thread")
        require(not scene.journal(), "CUPTI was called: %s" % scene.journal()[:2])
        scene.finish()


def no_driver(python):
    """No CUDA driver in the target: CUPTI is not touched."""
    if not os.path.exists(BUILT):
        raise Skip("no doubles")
    path = os.path.join(tempfile.mkdtemp(prefix="inferscope-gpu-"), "plain.py")
    try:
        with open(path, "w") as f:
            f.write("import os, sys, time\nprint('READY', os.getpid(), flush=True)\nwhile not sys.stdin.closed:\n    sum(range(20000))\n    time.sleep(0.01)\n")
        world = World(BINARY, QUICK, os.path.dirname(path), [])
        with Target(python, path) as target:
            world.attach(target.pid, "-d", "1s").expect(0)
            require(world.report()["verdict"]["gpu"] == "no CUDA driver in the target", "the reason is '%s'" % world.report()["verdict"]["gpu"])
    finally:
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def uninitialised(python):
    """CUDA is loaded but not initialised: nobody initialises it for the program, and CUPTI is not called."""
    with Scene(python, "late") as scene:
        attach = scene.attach()
        harness.settle(attach)
        attach.stop()
        attach.expect(0)
        report = scene.world.report()
        require(re.search("did not use|has one thread", report["verdict"]["gpu"] or ""), "the reason is '%s'" % report["verdict"]["gpu"])
        require(not scene.journal(), "CUPTI was called: %s" % scene.journal()[:2])
        scene.check_alive()
        scene.finish()


def held(python):
    """Another client has subscribed: the CPU part goes on, its name is told where CUPTI or its library tells it, and its buffers stay its own."""
    with tempfile.TemporaryDirectory(prefix="inferscope-gpu-") as folder:
        nsys = shutil.copy(CLIENT, os.path.join(folder, "libToolsInjection64.so"))
        for version, library, reason in ((130001, CLIENT, "holds CUPTI: CUPTI"), (28, CLIENT, "holds CUPTI: it gives no name"), (28, nsys, "holds CUPTI: Nsight Systems")):
            with Scene(python, cuda=13 if version > 130000 else 12, version=version, rounds=10, env={"HOLDER": library}) as scene:
                scene.without_gpu(reason)
                scene.finish()


def together(python):
    """With the functions for several clients, another one has all records and so have we."""
    with Scene(python, version=130400, DRIVER=13040, rounds=20, env={"HOLDER": CLIENT, "HOLDER_FLAGS": "64"}) as scene:
        report, launched = scene.measure(times=2)
        check_kernels(scene, report, launched)
        require(scene.settings()["gpu.api"] == "2" and scene.settings()["gpu.detach"] == "soft", "how it was done: %s" % scene.settings())
        require("Finalize" not in [row[5] for row in scene.journal()], "it finalized CUPTI under another client")
        theirs, total = scene.ask("holder"), scene.ask("total")
        require(theirs == total, "the other client saw %s of %s" % (theirs, total))
        scene.finish()


def second_inferscope(python):
    """A second InferScope is refused while one measures, and the first one's records are whole."""
    with Scene(python, rounds=20) as scene:
        attach = scene.attach()
        scene.wait_for_call("ActivityEnable", KERNEL)
        time.sleep(0.3)
        launched = scene.work()
        second = scene.world.attach(scene.target.pid, "-d", "1s", report="second.json")
        require(second.wait() in (6, 9) and "inferscope" in second.err, "the second one ended with %s: %s" % (second.child.returncode, second.err))
        launched += scene.work()
        attach.stop()
        attach.expect(0)
        check_kernels(scene, scene.world.report(), launched)
        check_calls_balance(scene.journal())
        scene.finish()


def stolen(python):
    """Another client takes the buffers while we measure: the session goes on, its end is told, and CUPTI is not finalized under the other."""
    with Scene(python, rounds=300, STEAL=400) as scene:
        attach = scene.attach()
        scene.wait_for_call("ActivityEnable", KERNEL)
        scene.wait_for_ticks(4)  # a buffer of ours comes back first: only then can it be missed
        for _ in range(3):
            scene.work()
        time.sleep(4)
        attach.stop()
        attach.expect(0)
        said = " ".join(scene.world.report()["warnings"])
        require("another tool took" in said, "warnings: %s" % said)
        require("Finalize" not in [row[5] for row in scene.journal()], "it finalized CUPTI under another client")
        scene.check_alive()
        scene.finish()


def profiler(python):
    """torch.profiler, before us and begun while we measure: it sees each kernel, also when we have left; it is named, Python is measured on, nothing stays on, and the next attach is as exact as ever."""
    client = {"CLIENT": os.path.join(BUILT, "libfakeclient.so")}
    with Scene(python, rounds=20, env=client) as scene:
        scene.ask("profile on")
        scene.without_gpu("holds CUPTI: torch.profiler")
        theirs = scene.ask("profile off")
        require(theirs["seen"] == theirs["launched"], "before us: it saw %(seen)s of %(launched)s" % theirs)
        for still_at_work in (False, True):
            begun = len(scene.journal())
            attach = scene.attach()
            scene.wait_for_call("ActivityEnable", KERNEL, after=begun)
            scene.work()
            scene.wait_for_ticks(4)  # a buffer of ours comes back first: only then can it be missed
            scene.ask("profile on")
            harness.wait_for(lambda: scene.work() and [row for row in scene.journal()[begun:] if row[4:6] == ["<", "Unsubscribe"]], 30, "we have not left it to the other")
            time.sleep(1)  # who it is is looked up now and then
            scene.work()
            theirs = None if still_at_work else scene.ask("profile off")
            attach.stop()
            attach.expect(0)
            scene.work()
            theirs = theirs or scene.ask("profile off")
            require(theirs["seen"] == theirs["launched"], "beside us: it saw %(seen)s of %(launched)s" % theirs)
            report = scene.world.report()
            require("CUPTI's buffers over: torch.profiler" in " ".join(report["warnings"]), "it is not named: %s" % report["warnings"])
            require([function for function in report["functions"] if function["name"] == "forward_small"], "Python was not measured on")
            rows = scene.journal()
            require("Finalize" not in [row[5] for row in rows], "it finalized CUPTI under another client")
            require(not kinds_on(rows), "kinds %s are left on" % kinds_on(rows))
        report, launched = scene.measure()
        check_kernels(scene, report, launched)
        scene.finish()


def invalid(python):
    """Impossible stamps are counted and left out."""
    with Scene(python, INVALID_TS=2000, rounds=1000) as scene:
        report, launched = scene.measure()
        kernels, counters = scene.events("gpu_kernel"), report["capture"]["counters"]
        require(counters["gpu.invalid"] >= 1, "none was counted")
        require(len(kernels) == sum(launched.values()) - counters["gpu.invalid"], "%d kernels, %d launched, %d invalid" % (len(kernels), sum(launched.values()), counters["gpu.invalid"]))
        require(all(kernel["duration_ns"] < 10**9 for kernel in kernels), "a kernel that lasted longer than all of it")
        scene.finish()


def bounds(python):
    """The GPU part ends by itself at each of its bounds, says which, leaves nothing on; Python is measured on."""
    cases = [({}, ("--gpu-max-kernels", "100"), "as many kernels as it may"), ({"INVALID_TS": 20}, (), "impossible times"), ({"FREE_MB": 1200, "BYTES_PER_RECORD": 1 << 20}, (), "ran short of memory")]
    for switches, options, reason in cases:
        with Scene(python, rounds=200, **switches) as scene:
            attach = scene.attach(*options)
            scene.wait_for_call("ActivityEnable", KERNEL)
            time.sleep(1.5)  # the memory is read once a second
            scene.work()
            harness.wait_for(lambda: "inferscope-gpu" not in thread_names(scene.target.pid), 20, "it goes on with %s" % (options or switches,))
            require(not kinds_on(scene.journal()), "kinds %s are left on with %s" % (kinds_on(scene.journal()), options or switches))
            scene.work()
            attach.stop()
            attach.expect(0)
            report = scene.world.report()
            require("ended early" in " ".join(report["warnings"]) and reason in " ".join(report["warnings"]), "warnings with %s: %s" % (options or switches, report["warnings"]))
            require([function for function in report["functions"] if function["name"] == "forward_small"], "Python was not measured on with %s" % (options or switches,))
            check_calls_balance(scene.journal())
            scene.finish()


def stalls(python):
    """CUPTI hangs while we leave: bounded, told, target unharmed; so is an exit callback that never comes."""
    for switches, seconds, said in (({"STALL_DISABLE": 30000}, 16, "did not return in time"), ({"NO_CALLBACK": 1}, 12, "")):
        with Scene(python, rounds=20, **switches) as scene:
            attach = scene.attach()
            scene.wait_for_call("ActivityEnable", KERNEL)
            scene.work()
            attach.stop()
            left = time.monotonic()
            attach.expect(0)
            require(time.monotonic() - left < seconds * (3 if QUICK else 1), "leaving took %.1f s with %s" % (time.monotonic() - left, switches))
            require(said in " ".join(scene.world.report()["warnings"]), "warnings with %s: %s" % (switches, scene.world.report()["warnings"]))
            scene.check_alive()
            scene.finish()


def killed(python):
    """The attacher dies: the collector leaves CUPTI by itself."""
    with Scene(python) as scene:
        attach = scene.attach()
        scene.wait_for_call("ActivityEnable", KERNEL)
        attach.stop(signal.SIGKILL)
        attach.child.communicate()
        scene.check_alive()
        scene.wait_for_call("Unsubscribe", alone=True)
        harness.wait_for(lambda: "inferscope-gpu" not in thread_names(scene.target.pid), 20, "its thread is still there")
        report, launched = scene.measure()
        check_kernels(scene, report, launched)
        scene.finish()


def dropped(python):
    """Buffers that come back late: the target's memory is bounded, and each record that finds no room is counted, also where CUPTI crashes on a refusal."""
    for cuda, version in ((12, 26), (12, 28)):
        with Scene(python, cuda=cuda, version=version, rounds=300, SLOW_BUFFERS_MS=100, BUFFER_RECORDS=10, CRASH_ON_NULL_BUFFER=1) as scene:
            attach = scene.attach()
            scene.wait_for_call("ActivityEnable", KERNEL)
            time.sleep(0.5)
            before = resident_kib(scene.target.pid)
            scene.set("HOLD_BUFFERS", 1)
            launched = scene.work()
            taken = resident_kib(scene.target.pid) - before
            scene.set("HOLD_BUFFERS", 0)
            attach.stop()
            attach.expect(0)
            report, kernels = scene.world.report(), names(scene.events("gpu_kernel"))
            counters = report["capture"]["counters"]
            require(sum(kernels.values()) < sum(launched.values()) and not kernels - launched, "kernels: %s of %s" % (kernels, launched))
            require(counters["gpu.discarded"] > 0 and (version < 27 or counters["gpu.dropped"] > 0), "nothing is counted: %s" % counters)
            require("CUPTI lost" in " ".join(report["warnings"]), "warnings: %s" % report["warnings"])
            require(taken < 80 << 10, "the target took %d KiB" % taken)
            scene.finish()


def real_library(python):
    """The real libcupti of each wheel and of the toolkit, with no driver and with one that fails: no call of it, the reason, no thread left behind, alive later."""
    found = sorted(os.listdir(WHEELS)) if os.path.isdir(WHEELS) and not QUICK else []
    libraries = [path for folder in [os.path.join(WHEELS, name) for name in found] + ["/usr/local/cuda/lib"] for path in [fakecuda.find(folder, "libcupti.so.1")] if path]
    if not libraries:
        raise Skip("no real CUDA library here: tests/fakecuda/wheels make")
    folder = tempfile.mkdtemp(prefix="inferscope-gpu-")
    world = World(BINARY, QUICK, folder, [])
    try:
        for path in libraries:
            for switches, reason in (({}, "no CUDA driver in the target"), ({"FAKECUDA_CUINIT_RC": "100"}, "did not use|has one thread"), ({"FAKECUDA_COUNT_RC": "100"}, "100|no CUDA-capable device")):
                with Target(python, os.path.join(HERE, "real.py"), path, *([os.path.join(BUILT, "libcuda.so.1")] if switches else []), env=switches) as target:
                    threads = thread_names(target.pid)
                    world.attach(target.pid, "-d", "1s").expect(0)
                    said = world.report()["verdict"]["gpu"] or ""
                    require(re.search(reason, said), "%s with %s: the reason is '%s'" % (path, switches, said))
                    require(sorted(thread_names(target.pid)) == sorted(threads), "%s with %s: threads %s before, %s after" % (path, switches, threads, thread_names(target.pid)))
                    time.sleep(0.5 if QUICK else 10)
                    target.go()
                    target.expect("DONE", 20)
                    status, last = target.finish()
                    require(status == 0 and last == "OK", "%s with %s: the target ended with %s" % (path, switches, harness.status_text(status)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return "%d libraries" % len(libraries)
