"""The ways in which a measurement can go wrong without anybody dying: programs that end meanwhile, a GIL that is never free, two at once, bytes that
somebody else has overwritten. For tests/torture/run."""
import os
import random
import re
import signal
import subprocess
import time

import harness
from harness import Target, footprint, require, resident_kib
from sessions import TARGET, ask, loop


def short_lived(world, python):
    """Programs that end while they are entered."""
    codes = {}
    for i in range(10 if world.quick else 200):
        child = subprocess.Popen(python.argv + ["-c", "import time\nend = time.monotonic() + %f\nwhile time.monotonic() < end: sum(range(100))" % (i * 37 % 300 / 1000)], stderr=subprocess.PIPE)
        time.sleep(i * 53 % 250 / 1000)
        attach = world.attach(child.pid, "-d", "200ms")
        status = attach.wait(40)
        _, err = child.communicate(timeout=40)
        require(child.returncode == 0 and not err, "program %d ended with %s: %s" % (i, harness.status_text(child.returncode), err[-200:]))
        require(status in (0, 3, 5, 6), "attach %d ended with %s: %s" % (i, harness.status_text(status), harness.tail(attach.err)))
        codes[status] = codes.get(status, 0) + 1
    return "exit statuses %s" % codes


def ends_hooked(world, python):
    """Finalization with hooks on, with daemon threads that never stop, by every way out."""
    ways = {"return": 0, "sys.exit(7)": 7, "os._exit(8)": 8, "os.execv('/bin/sh', ['sh', '-c', 'exit 9'])": 9, "os.kill(os.getpid(), 15)": -15}
    body = ("import os, sys, threading, time\ndef busy():\n    while True: sum(map(abs, range(50)))\n"
            "for _ in range(4): threading.Thread(target=busy, daemon=True).start()\nprint('READY', os.getpid(), flush=True)\nsys.stdin.readline()\ndef out():\n    %s\nout()\n")
    for way, wanted in ways.items():
        path = world.path("ends.py")
        with open(path, "w") as f:
            f.write(body % way)
        with Target(python, path, cwd=world.folder) as target:
            attach = world.attach(target.pid, "-d", "30s")
            harness.settle(attach)
            target.go()
            status, _ = target.finish(30)
            require(status == wanted and not target.errors(), "%s: the target ended with %s: %s" % (way, harness.status_text(status), target.errors()))
            attach.expect(0, 30)


def ends_slowly(world, python):
    """Left while its interpreter shuts down, which lets nobody take the GIL: in order, once it has ended."""
    path = world.path("slow.py")
    with open(path, "w") as f:
        f.write("import os, sys, time\nclass Slow:\n    def __del__(self, sleep=time.sleep): sleep(2.5)\nkeep = Slow()\nprint('READY', os.getpid(), flush=True)\nsys.stdin.readline()\n")
    with Target(python, path, cwd=world.folder) as target:
        attach = world.attach(target.pid, "-d", "1500ms")
        harness.settle(attach)
        target.go()
        attach.expect(0, 40)
        status, _ = target.finish(30)
        require(status == 0 and not target.errors(), "the target ended with %s: %s" % (harness.status_text(status), target.errors()))


def gil_held(world, python):
    """The GIL stays in one C call: given up in time, and nothing is armed when it is free again."""
    with Target(python, TARGET, "--kind", "gil") as target:
        ask(target, "gil 12", "HOLDING")
        attach = world.attach(target.pid, "-d", "1s", "--gil-timeout", "2s")
        attach.expect(6, 30)  # had it waited for long, it would have got it
        require("GIL" in attach.err, "it does not name the GIL: " + harness.tail(attach.err))
        target.expect("HELD", 30)
        time.sleep(1)
        require(ask(target, "hooks", "HOOKS") == "HOOKS none", "armed after the attacher had given up")
        world.attach(target.pid, "-d", "300ms").expect(0)
        status, last = target.finish(40)
        require(status == 0, last)


def two_at_once(world, python):
    with Target(python, TARGET, "--kind", "gil") as target:
        first = world.attach(target.pid, "-d", "0", report="a.json")
        harness.settle(first)
        second = world.attach(target.pid, "-d", "1s", report="b.json").expect(6)
        require(str(first.child.pid) in second.err, "the second does not say who measures: " + harness.tail(second.err))
        first.stop()
        first.expect(0)
        both = [world.attach(target.pid, "-d", "500ms", report="%d.json" % i) for i in range(2)]
        codes = sorted(a.wait(60) for a in both)
        require(codes in ([0, 0], [0, 6]), "two at once ended with %s: %s" % (codes, harness.tail(both[0].err + both[1].err)))
        status, last = target.finish(40)
        require(status == 0, last)


def detached(world, python):
    with Target(python, TARGET, "--kind", "gil") as target:
        attach = world.attach(target.pid, "-d", "60s")
        harness.settle(attach)
        attach.stop(signal.SIGKILL)
        attach.wait()
        harness.wait_for(lambda: "evaluator" not in ask(target, "hooks", "HOOKS"), 10, "the evaluator is still in place")  # 2 s, and a call
        world.run("detach", target.pid).expect(0)
        require(ask(target, "hooks", "HOOKS") == "HOOKS none", "hooked after detach")
        require("/memfd:inferscope-lanes" not in open("/proc/%d/maps" % target.pid).read(), "our shared memory stayed mapped")
        status, last = target.finish(40)
        require(status == 0, last)


def grows_nothing(world, python):
    with Target(python, TARGET, "--kind", "quiet") as target:
        loop(target.pid, "rounds=10")
        time.sleep(0.5)
        before, rss = footprint(target.pid), resident_kib(target.pid)
        loop(target.pid, "rounds=%d" % (50 if world.quick else 100))
        time.sleep(0.5)
        after, rss_after = footprint(target.pid), resident_kib(target.pid)
        require(after[1] <= before[1] and after[2] <= before[2], "fds or threads grew: %s, %s" % (before, after))
        require(after[0] <= before[0] + 4, "mappings grew: %d, %d" % (before[0], after[0]))
        require(rss_after <= rss + 1024, "memory grew by %d KiB" % (rss_after - rss))
        status, last = target.finish(40)
        require(status == 0, last)
        return "mappings %d then %d, memory %+d KiB" % (before[0], after[0], rss_after - rss)


def slope_per_hour(points):
    """Of (seconds, value), by least squares."""
    count, mean_x, mean_y = len(points), sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread * 3600 if count > 2 and spread else 0.0


def stays_flat(world, python):
    """Measured for long (INFERSCOPE_LONG_SECONDS, 600): neither the target nor who measures it has more and more memory or descriptors, as the second half shows."""
    seconds = int(os.environ.get("INFERSCOPE_LONG_SECONDS", "600"))
    with Target(python, os.path.join(harness.PROGRAMS, "planted.py"), "locks", "--seconds", str(seconds + 60)) as target:
        attach = world.attach(target.pid, "-d", "%ds" % seconds, trace="long.iscope")
        harness.settle(attach)
        pids, points, begun = {"attacher": attach.child.pid, "target": target.pid}, {}, time.monotonic()
        while time.monotonic() < begun + seconds - 10:
            for name, pid in pids.items():
                points.setdefault(name + " KiB", []).append((time.monotonic() - begun, resident_kib(pid)))
                points.setdefault(name + " descriptors", []).append((time.monotonic() - begun, len(os.listdir("/proc/%d/fd" % pid))))
            time.sleep(seconds / 200)
        attach.expect(0, 60)
        status, last = target.finish(40)
        require(status == 0, last)
    slopes = {name: slope_per_hour([point for point in row if point[0] > seconds / 2]) for name, row in points.items()}
    told = "; ".join("%s %d, %+.0f per hour" % (name, points[name][-1][1], slope) for name, slope in slopes.items())
    # what two hours may add: the target nothing to speak of, the attacher what names and stacks of new places take
    require(slopes["attacher KiB"] < 32768 and slopes["target KiB"] < 2048, told)
    # a library that is first seen late, a thread that is new to perf_event: some descriptors, not more and more
    require(all(points[who + " descriptors"][-1][1] <= 8 + max(value for at, value in points[who + " descriptors"] if at < seconds / 4) for who in pids), told)
    return told


def scribbled(world, python):
    """Random bytes all over the shared page and the sub-buffers while both sides use them: what was measured is lost, nobody crashes."""
    with Target(python, TARGET, "--kind", "gil", "--pause", "0") as target:
        for i in range(3 if world.quick else 15):
            attach = world.attach(target.pid, "-d", "1s")
            harness.settle(attach)
            scribble(target.pid, i)
            status = attach.wait(60)
            require(status in (0, 6, 7, 8, 9), "attach ended with %s: %s" % (harness.status_text(status), harness.tail(attach.err)))
            require(target.child.poll() is None, "the target died")
            time.sleep(2.2)
            world.run("detach", target.pid).wait(30)
        status, last = target.finish(40)
        require(status == 0, "the target ended with %s: %s %s" % (harness.status_text(status), last, target.errors()))


def scribble(pid, seed):
    dice = random.Random(seed)
    line = next((l for l in open("/proc/%d/maps" % pid) if "/memfd:inferscope-lanes" in l), None)
    if not line:
        return
    start = int(line.split("-")[0], 16)
    with open("/proc/%d/mem" % pid, "r+b", buffering=0) as memory:
        for n in range(3000):
            # the settings, the moving words, the lanes' slots, the heads of sub-buffers and their events
            at = dice.choice([dice.randrange(5000), 4096 + dice.randrange(3000), dice.randrange(262144), 262144 + 65536 * dice.randrange(64) + dice.randrange(256), 262144 + dice.randrange(1 << 22)])
            memory.seek(start + at)
            try:
                memory.write(dice.choice([os.urandom(8), b"\xff" * 8, b"\0" * 8]))
            except OSError:
                return
