"""What must hold where processes are entered on 64-bit ARM: dump, values of hooks, rounds of attaching, attachers that are killed. Run as root in the booted system.

proof.py INFERSCOPE [STEP…]; of a step that is a suite of the tree, only some tests: memory:known,native
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
tool = sys.argv[1]
failed = []
KEEP = "/tmp/proof"


def check(good, text):
    print("  %s %s" % ("ok  " if good else "FAIL", text), flush=True)
    if not good:
        failed.append(text)


def run(*args, timeout=120):
    return subprocess.run([tool, *map(str, args)], capture_output=True, text=True, timeout=timeout)


def target(seconds, *args):
    process = subprocess.Popen([sys.executable, HERE + "/waits.py", str(seconds), *args], stdout=subprocess.PIPE, text=True)
    time.sleep(3)
    return process


def ends_well(process, what):
    text = process.communicate(timeout=300)[0]
    check(process.returncode == 0 and "fine" in text, "%s: the target's own check: %s" % (what, text.strip()[-300:]))


def patched():
    """Not of ours: the kernel's hooks of threads with events are code that it changes, and all that follows stands on them."""
    said = subprocess.run([HERE + "/patched", "500"], capture_output=True, text=True, timeout=200)
    check(said.returncode == 0, "changes of code that another processor runs and does not see: %s" % (said.stdout + said.stderr).strip())


def dump():
    process = target(12)
    said = run("dump", process.pid)
    check(said.returncode == 0, "dump: status %d %s" % (said.returncode, said.stderr.strip()))
    for name in ("caller", "sleeper", "reader", "main", "clock_nanosleep"):
        check(name in said.stdout, "dump names %s" % name)
    ends_well(process, "dump")


def functions(report):
    return {row["name"]: row for row in report["functions"]}


def hooks(*kind):
    process = target(25, *kind)
    said = run("attach", process.pid, "--duration", "5s", "--max-overhead", "none", "-f", "json", "-o", KEEP + ".json", "--trace", KEEP + ".iscope")
    check(said.returncode == 0, "attach: status %d %s" % (said.returncode, said.stderr.strip()[-300:]))
    try:
        found = functions(json.load(open(KEEP + ".json")))
    except OSError as error:
        found = {}
        check(False, str(error))
    calls = {name: found[name]["calls"] for name in ("caller", "middle", "leaf") if name in found}
    check(len(calls) == 3, "calls: %s" % calls)
    if len(calls) == 3:
        # What runs as it begins or ends is counted in part: one in each of two threads.
        check(calls["caller"] > 50 and abs(calls["middle"] - calls["caller"]) <= 4 and abs(calls["leaf"] - 2 * calls["middle"]) <= 8, "as the program makes them: %s" % calls)
    ends_well(process, "hooks %s" % " ".join(kind))


def spin():
    """Nothing but computing: it cannot be entered, is told so, and is well. It can be looked at."""
    process = target(60, "spin")
    said = run("attach", process.pid, "--duration", "1s", "-o", KEEP + ".txt", "--trace", KEEP + ".iscope")
    check(said.returncode == 6 and "waits in a system call" in said.stderr, "attach: status %d %s" % (said.returncode, said.stderr.strip()[-300:]))
    said = run("dump", process.pid)
    check(said.returncode == 0 and "middle" in said.stdout, "dump: status %d" % said.returncode)
    ends_well(process, "spin")


def mapped(process):
    """What each is of, and its size."""
    found = []
    for line in open("/proc/%d/maps" % process.pid):
        words = line.split()
        begin, end = (int(word, 16) for word in words[0].split("-"))
        found.append("%s %s %d" % (words[5] if words[5:] else "-", words[1], end - begin))
    return found


def rounds(count=20, *kind):
    process = target(3000, *kind)
    threads = os.listdir("/proc/%d/task" % process.pid)  # and one that writes now and then, which may not be there now
    good, first = 0, []
    for number in range(count):
        if number == count // 2:
            first = mapped(process)
        said = run("attach", process.pid, "--duration", "0.3s", "-f", "json", "-o", KEEP + ".json", "--trace", KEEP + ".iscope")
        good += said.returncode == 0
        if said.returncode:
            print("   ", said.stderr.strip()[-300:], flush=True)
    check(good == count, "%d of %d attaches" % (good, count))
    new = list(mapped(process))
    for line in first:
        new.remove(line) if line in new else None
    check(len(new) <= 3, "%d of %d mappings are of the second half of the rounds: %s" % (len(new), len(first), new))
    maps = open("/proc/%d/maps" % process.pid).read()
    check(sum("inferscope-collector" in line and "r-xp" in line for line in maps.splitlines()) == 1, "one collector is mapped")
    check(len(os.listdir("/proc/%d/task" % process.pid)) <= len(threads) + (0 if kind else 1), "no thread stays: %s" % os.listdir("/proc/%d/task" % process.pid))
    ends_soon(process, "%d rounds %s" % (count, " ".join(kind)))


def ends_soon(process, what):
    """Its time is long; it is alive and well as long as it says nothing: its own check has run all the time."""
    check(process.poll() is None, "%s: the target lives" % what)
    if process.poll() is None:
        os.set_blocking(process.stdout.fileno(), False)
        try:
            text = os.read(process.stdout.fileno(), 4096).decode()
        except BlockingIOError:
            text = ""
        blocked = [line for line in open("/proc/%d/status" % process.pid) if line.startswith("SigBlk")][0].split()[1]
        check(text == "" and int(blocked, 16) == 0, "%s: it found nothing wrong: %r, SigBlk %s" % (what, text, blocked))
        process.kill()
    process.wait()


def kills(count=30, *kind):
    process = target(3000, *kind)
    entered = 0
    random.seed(7)
    for number in range(count):
        attacher = subprocess.Popen([tool, "attach", str(process.pid), "--duration", "20s", "-o", KEEP + ".txt", "--trace", KEEP + ".iscope"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(random.uniform(0, 1.2))
        try:
            os.killpg(attacher.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        attacher.wait()
        if process.poll() is not None:
            break
        entered += "inferscope-collector" in open("/proc/%d/maps" % process.pid).read()
    time.sleep(4)
    check(process.poll() is None, "%d attachers killed at any moment, the collector was there after %d of them" % (count, entered))
    if process.poll() is None:
        said = run("attach", process.pid, "--duration", "1s", "-f", "json", "-o", KEEP + ".json", "--trace", KEEP + ".iscope")
        check(said.returncode == 0, "an attach after that: %s" % said.stderr.strip()[-300:])
    ends_soon(process, "kills")


def launched():
    said = subprocess.run([tool, "run", "-f", "json", "-o", KEEP + ".json", "--trace", KEEP + ".iscope", "--max-overhead", "none", HERE + "/waits.py", "5", "single"],
                          capture_output=True, text=True, timeout=200)
    check(said.returncode == 0 and "fine" in said.stdout, "run: status %d, %s %s" % (said.returncode, said.stdout.strip()[-200:], said.stderr.strip()[-300:]))
    try:
        found = functions(json.load(open(KEEP + ".json")))
        told = int(said.stdout.split("'calls': ")[1].split("}")[0].split(",")[0])
        calls = {name: found[name]["calls"] for name in ("caller", "middle", "leaf")}
        check(calls == {"caller": told, "middle": told, "leaf": 2 * told}, "every call from the first line on: %s of %d" % (calls, told))
    except (OSError, KeyError, IndexError) as error:
        check(False, "run: %r" % error)


def storm(kind, *orders):
    """Attachers that end at each of their steps, and then some that do not, in a program that is busy with KIND all the time (tests/live/inject)."""
    process = subprocess.Popen([sys.executable, HERE + "/targets.py", kind, "3000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, STORM=HERE + "/calls.so"))
    time.sleep(4)
    own = len(os.listdir("/proc/%d/task" % process.pid))
    for order in orders:
        said = subprocess.run([HERE + "/enter", str(process.pid), HERE + "/payload.so", *order.split()], capture_output=True, text=True, timeout=600)
        check(said.returncode == 0 and process.poll() is None, "%s, %s: status %d, %s %s" % (kind, order, said.returncode, said.stdout.strip()[-160:], said.stderr.strip()[-300:]))
        check("no room" not in said.stderr, "%s, %s: room for our memory" % (kind, order))
        # What a killed attacher left waits 10 000 naps for its word, which an emulator makes long, and goes.
        began = time.monotonic()
        while process.poll() is None and len(os.listdir("/proc/%d/task" % process.pid)) > own and time.monotonic() - began < 240:
            time.sleep(0.2)
        if process.poll() is None:
            left = [(task, open("/proc/%d/task/%s/syscall" % (process.pid, task)).read().strip()) for task in sorted(os.listdir("/proc/%d/task" % process.pid), key=int)[own:]]
            check(not left, "%s, %s: no thread of ours after %.0f s %s" % (kind, order, time.monotonic() - began, left))
    process.send_signal(signal.SIGTERM)
    text = process.communicate(timeout=120)[0]
    check(process.returncode == 0 and "OK" in text, "%s: its own check: status %s, %s" % (kind, process.returncode, text.strip()[-200:]))


def suite(folder, *words, **more):
    """Tests of the tree, by their own runner: a line each."""
    env = dict(os.environ, INFERSCOPE=tool, BUILD=HERE, LIBRARIES=HERE, PYTHONS=sys.executable, INFERSCOPE_PYTHONS=sys.executable, PYTHONDONTWRITEBYTECODE="1", WAITER="1", LEAST_SAMPLES="40", **more)
    said = subprocess.Popen([sys.executable, "%s/top/tests/live/%s/run" % (HERE, folder), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    lines = 0
    for line in said.stdout:
        lines += line.startswith(("PASS", "FAIL", "SKIP"))
        print("   ", line.rstrip()[:700], flush=True)
    check(said.wait() == 0 and lines >= len(words), "%s: status %s, %d lines" % (folder, said.returncode, lines))


def collector(*cases):
    """The collector in Pythons of its own."""
    layout = HERE + "/layout.txt"
    with open(layout, "w") as file:
        subprocess.run([HERE + "/layout"], stdout=file, check=True)
    env = dict(os.environ, COLLECTOR=HERE + "/libinferscope-collector.so", LAYOUT=layout, FOREIGN=HERE + "/foreign.so", STORM=HERE + "/storm.so", STORM_NOW=HERE + "/storm-now.so",
               PYTHONDONTWRITEBYTECODE="1", TID_OFFSET="0xd0")
    program = [sys.executable, "-X", "faulthandler", HERE + "/top/tests/live/collector/cases.py"]
    for case in cases or subprocess.run([*program, "--list"], capture_output=True, text=True, env=env, check=True).stdout.split():
        began = time.monotonic()
        said = subprocess.run([*program, case], capture_output=True, text=True, env=env, timeout=300)
        if said.returncode == 77:
            print("    SKIP %s: %s" % (case, (said.stdout + said.stderr).strip()[-200:]), flush=True)
        else:
            check(said.returncode == 0, "collector %s, %.0f s%s" % (case, time.monotonic() - began, "" if said.returncode == 0 else ": %d %s" % (said.returncode, said.stderr[-1500:])))


# What is asked for, and what the report must then have.
OPTIONS = {
    "--memory": lambda report: report["memory"]["samples_count"] > 0,
    "--memory-native": lambda report: report["capture"]["settings"]["memory.native"] == "sampled",
    "--counters": lambda report: report["capture"]["settings"]["counters"].startswith("by perf_event"),
    "--syscalls trace": lambda report: not report["syscalls"][0]["sampled"],
    "--gc": lambda report: "gc" in report,
    "--rate 1000": lambda report: report["quality"]["samples_count"] > 0,
    "--no-native": lambda report: not [row for row in report["functions"] if row["kind"] == "native"],
    "--alternate 200ms": lambda report: report["capture"]["settings"]["alternate_ms"] == "200",
    "--hook none": lambda report: report["quality"]["samples_count"] > 0,
    "--hook setprofile": lambda report: report["capture"]["settings"]["backend"].startswith("setprofile"),
    "--hook settrace": lambda report: report["capture"]["settings"]["backend"].startswith("settrace"),
    "--native hold": lambda report: report["quality"]["samples_count"] > 0 and any("no thread is held for samples on aarch64" in text for text in report["warnings"]),
    "--measure-overhead": lambda report: report["capture"],
    "--memory --memory-native --counters --syscalls trace --rate 1000 --alternate 100ms": lambda report: report["memory"]["samples_count"] > 0,
}


def options():
    """Each of them beside threads that notice."""
    process = target(3000)
    for words, holds in OPTIONS.items():
        said = run("attach", process.pid, "--duration", "3s", "-f", "json", "-o", KEEP + ".json", "--trace", KEEP + ".iscope", *words.split())
        report = json.load(open(KEEP + ".json")) if said.returncode == 0 else None
        try:
            good = report and holds(report)
        except (KeyError, IndexError) as error:
            good = print("   ", repr(error))
        check(good, "%s: status %d %s" % (words, said.returncode, said.stderr.strip()[-400:]))
        if report:
            print("   ", {key: value for key, value in report["capture"]["settings"].items() if key.split(".")[0] in ("counters", "syscalls", "memory", "sampler", "alternate_ms", "rate_hz", "gc", "backend")}, flush=True)
            print("   ", report["capture"]["counters"], flush=True)
        if process.poll() is not None:
            break
    ends_soon(process, "options")


def gone():
    """An attacher that is killed, and detach, dump, top and doctor of what it left."""
    process = target(3000)
    attacher = subprocess.Popen([tool, "attach", str(process.pid), "--duration", "60s", "-o", KEEP + ".txt", "--trace", "none"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(5)
    said = run("detach", process.pid)
    check(said.returncode != 0, "detach beside a living attacher: status %d, %s %s" % (said.returncode, said.stdout.strip()[-200:], said.stderr.strip()[-200:]))
    attacher.kill()
    attacher.wait()
    said = run("detach", process.pid)
    check(said.returncode == 0, "detach: status %d, %s %s" % (said.returncode, said.stdout.strip()[-200:], said.stderr.strip()[-200:]))
    for words in (("detach",), ("doctor",), ("dump", "-l"), ("dump", "-n"), ("dump", "--json"), ("top", "--once", "--json"), ("top", "--once", "-n")):
        said = run(*words, process.pid)
        check(said.returncode == 0, "%s: status %d, %s %s" % (" ".join(words), said.returncode, said.stdout.strip()[-300:], said.stderr.strip()[-300:]))
    ends_soon(process, "detach")


FORMATS = ("text", "md", "html", "json", "events", "perfetto", "chrome", "speedscope", "collapsed", "pprof", "otlp", "profile", "stacks", "csv")


def formats():
    """Each of them, from the attach and from its trace; what is read elsewhere, too, is kept."""
    process = target(40)
    said = run("attach", process.pid, "--duration", "4s", "-f", "json", "-o", KEEP + ".json", "--trace", KEEP + ".iscope", "--memory", "--counters", "--syscalls", "trace")
    check(said.returncode == 0, "attach: status %d %s" % (said.returncode, said.stderr.strip()[-300:]))
    for name in FORMATS:
        said = run("analyze", KEEP + ".iscope", "-f", name, "-o", KEEP + "." + name, "--force")
        check(said.returncode == 0 and os.path.getsize(KEEP + "." + name) > 100, "%s: status %d, %s" % (name, said.returncode, said.stderr.strip()[-300:]))
    said = run("dump-trace", KEEP + ".iscope")
    check(said.returncode == 0 and len(said.stdout) > 1000, "dump-trace: status %d, %d bytes" % (said.returncode, len(said.stdout)))
    if os.path.isdir("/host") and said.returncode == 0:
        shutil.copy(KEEP + ".iscope", "/host/kept.iscope")
        for name in ("json", "events", "collapsed", "speedscope"):
            with open("/host/kept." + name, "w") as file:
                subprocess.run([tool, "analyze", "kept.iscope", "-f", name, "-o", "-", "--source", "none"], cwd="/host", stdout=file, stderr=subprocess.DEVNULL)
    ends_well(process, "formats")


# There are three slots only; each that a killed attacher leaves rests for a second or more.
ORDERS = ("kill=steps rounds=40 gap_us=800000", "kill=window rounds=30", "kill=random rounds=60 max_us=30000", "rounds=40 timeout_ms=20000")
steps = {
    "patched": patched, "storms": lambda: [storm(kind, *ORDERS) for kind in ("busy", "dlopen", "malloc")], "dump": dump, "hooks": hooks, "single": lambda: hooks("single"), "spin": spin, "rounds": rounds,
    "epoll": lambda: rounds(8, "epoll"), "kills": kills, "killsingle": lambda: kills(20, "single"), "run": launched, "options": options, "gone": gone, "formats": formats,
    "collector": collector, "memory": lambda: suite("memory", "known", "turns", "lives", "leak", "garbage", "tracemalloc", "native", "interposed", "read_only", "off", QUICK="1"),
    "outside": lambda: suite("outside", "traced", "limits", "sampled", "off", "counters", "counters_proc", "counters_budget", "pools", "memory"),
    "top": lambda: suite("top", "once", "text", "stream", "screen", "ends", "progress", "refusals"), "dumps": lambda: suite("dump"), "native": lambda: suite("native"),
}
for name in sys.argv[2:] or list(steps):
    print(name, flush=True)
    began = time.monotonic()
    name, _, words = name.partition(":")
    if words:
        suite("dump" if name == "dumps" else name, *words.split(",")) if name != "collector" else collector(*words.split(","))
    else:
        steps[name]()
    print("  %s: %.0f s" % (name, time.monotonic() - began), flush=True)
print("PROOF %s" % ("failed: %d" % len(failed) if failed else "holds"), flush=True)
sys.exit(1 if failed else 0)
