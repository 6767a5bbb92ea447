"""What must hold where processes are entered on 64-bit ARM: dump, values of hooks, rounds of attaching, attachers that are killed. Run as root in the booted system.

proof.py INFERSCOPE [STEP…]
"""
import json
import os
import random
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


def rounds(count=20, *kind):
    process = target(3000, *kind)
    threads = os.listdir("/proc/%d/task" % process.pid)  # and one that writes now and then, which may not be there now
    good = 0
    for number in range(count):
        said = run("attach", process.pid, "--duration", "0.3s", "-f", "json", "-o", KEEP + ".json", "--trace", KEEP + ".iscope")
        good += said.returncode == 0
        if said.returncode:
            print("   ", said.stderr.strip()[-300:], flush=True)
    check(good == count, "%d of %d attaches" % (good, count))
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
    process = subprocess.Popen([sys.executable, HERE + "/targets.py", kind, "3000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, STORM=HERE + "/storm.so"))
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


# There are three slots only; each that a killed attacher leaves rests for a second or more.
ORDERS = ("kill=steps rounds=40 gap_us=800000", "kill=window rounds=30", "kill=random rounds=60 max_us=30000", "rounds=40 timeout_ms=20000")
steps = {"storms": lambda: [storm(kind, *ORDERS) for kind in ("busy", "dlopen", "malloc")], "dump": dump, "hooks": hooks, "single": lambda: hooks("single"), "spin": spin, "rounds": rounds, "epoll": lambda: rounds(8, "epoll"), "kills": kills, "killsingle": lambda: kills(20, "single"), "run": launched}
for name in sys.argv[2:] or list(steps):
    print(name, flush=True)
    steps[name]()
print("PROOF %s" % ("failed: %d" % len(failed) if failed else "holds"), flush=True)
sys.exit(1 if failed else 0)
