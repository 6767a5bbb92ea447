"""In the middle of an attach: a GIL that is not to be had, attachers that die or freeze, two at once."""
import json
import os
import random
import re
import signal
import statistics
import subprocess
import time

from harness import PROGRAMS, Attach, Skip, Target, World, library, require, state_of, tail, wait_for

PLANTED = os.path.join(PROGRAMS, "planted.py")
SCRIBBLER = os.path.join(PROGRAMS, "scribbler.py")
MANYFOLD = os.path.join(PROGRAMS, "manyfold.py")
KEEPER = os.path.join(PROGRAMS, "gil_keeper.py")
EVEN = os.path.join(PROGRAMS, "even.py")
LETS_GO = os.path.join(PROGRAMS, "lets_go.py")
SLOW_FORK = os.path.join(PROGRAMS, "slow_fork")
FORKER = os.path.join(PROGRAMS, "forker.py")
QUICK = ["3.9.18", "3.12.1"]


def tests(world):
    for python in world.pythons:
        if world.quick and python.name not in QUICK:
            continue
        for name, test in (("gil", gil), ("killed_early", killed_early), ("two_at_once", two_at_once), ("other_build", other_build), ("scribble", scribble), ("many_functions", many_functions), ("forks", forks), ("slow_forks", slow_forks)):
            yield "troubles/%s/%s" % (python.name, name), lambda w, p=python, t=test: t(w, p)
        if python.version >= (3, 9):  # before, we wait as every thread of the program does
            yield "troubles/%s/lets_go" % python.name, lambda w, p=python: lets_go(w, p)
        if python.version >= (3, 12):  # before, a thread of ours turns hooks on
            yield "troubles/%s/throttled" % python.name, lambda w, p=python: throttled(w, p)


def read_until(attach, word, seconds):
    """Reads stderr until WORD stands in it."""
    os.set_blocking(attach.child.stderr.fileno(), False)
    said, end = b"", time.monotonic() + seconds
    while word.encode() not in said:
        require(time.monotonic() < end, "no %r in: %s" % (word, said.decode(errors="replace")))
        said += attach.child.stderr.read() or b""
        time.sleep(0.02)
    os.set_blocking(attach.child.stderr.fileno(), True)


def gil(world, python):
    """A thread keeps the GIL: said, ended at once by Ctrl-C, told to the next one who comes, and over when it is free again."""
    with Target(python, KEEPER) as target:
        attach = world.attach(target.pid, "-d", "1s", "--gil-timeout", "60s", "--error-format", "json")
        read_until(attach, "waiting for the GIL", 20)
        begun = time.monotonic()
        attach.stop()
        attach.expect(130, 20)
        error = json.loads(attach.err.strip().splitlines()[-1])
        require(error["code"] == "E_INTERRUPTED" and error["target_safe"], attach.err)
        require(time.monotonic() - begun < 5, "it took %.1f s to leave" % (time.monotonic() - begun))
        second = world.attach(target.pid, "-d", "1s", "--error-format", "json").expect(6)
        require("E_BUSY" in second.err and "GIL" in second.err, tail(second.err))
        target.go()  # it lets go
        target.expect("FREE", 30)
        world.attach(target.pid, "-d", "1s").expect(0)
        status, last = target.finish()
        require(status == 0 and last == "OK", "the target ended with %s, %s, stderr: %s" % (status, last, target.errors()))


def killed_early(world, python):
    """Killed at any moment of entering; the next one is let in as soon as the dead one's time is over."""
    dice, worst = random.Random(int(time.time())), 0
    with Target(python, PLANTED, "locks") as target:
        for _ in range(2 if world.quick else 12):
            first = world.attach(target.pid, "-d", "60s")
            time.sleep(dice.uniform(0.02, 0.25))
            first.stop(signal.SIGKILL)
            first.wait(10)
            second = world.attach(target.pid, "-d", "500ms").expect(0)
            worst = max(worst, second.seconds)
            require(state_of(target.pid) in "RS", "the target is in state %s" % state_of(target.pid))
        status, _ = target.finish()
        require(status == 0 and not target.errors(), "the target ended with %s, stderr: %s" % (status, target.errors()))
    return "the longest took %.1f s" % worst


def two_at_once(world, python):
    """One measures; the other is told who."""
    with Target(python, PLANTED, "locks") as target:
        both = [Attach(world, "attach", target.pid, "-d", "0", "-o", world.path("%d.json" % i), "--trace", "none", "--force") for i in range(2)]
        wait_for(lambda: [attach for attach in both if attach.child.poll() is not None], 60, "both go on")
        for attach in both:
            attach.stop()
        ends = [attach.wait(60) for attach in both]
        require(sorted(ends) == [0, 6], "exit statuses %s: %s" % (ends, [tail(attach.err) for attach in both]))
        winner, loser = both if ends[0] == 0 else both[::-1]
        require("process %d" % winner.child.pid in loser.err, "the loser does not name process %d: %s" % (winner.child.pid, loser.err))
        status, _ = target.finish()
        require(status == 0 and not target.errors(), "the target ended with %s, stderr: %s" % (status, target.errors()))


def scribble(world, python):
    """The target writes over all that it shares with us, again and again: it goes on, and we end with a status of ours and in time."""
    if os.geteuid() != 0 or python.view:
        raise Skip("it opens its own mappings anew, which is for our own root only")
    with Target(python, SCRIBBLER, "9") as target:
        for _ in range(2):
            attach = world.attach(target.pid, "-d", "1500ms")
            status = attach.wait(40)
            # 7: it keeps a descriptor of the lanes open, which is seen; 6: it wrote a deadline that is never over
            require(status in (0, 7) or (status == 6 and "is being measured" in attach.err), "exit status %s: %s" % (status, tail(attach.err)))
        status, last = target.finish(30)
        require(status == 0 and last.startswith("OK"), "the target ended with %s, %s, stderr: %s" % (status, last, target.errors()))
        return last


def many_functions(world, python):
    """100 000 distinct functions: the target's calls stay right, and what is told are functions of it, in a report of no great size."""
    with Target(python, MANYFOLD, "100000") as target:
        attach = world.attach(target.pid, "-d", "2s", "--max-overhead", "none").expect(0, 90)
        status, last = target.finish()
        require(status == 0 and last.startswith("OK") and not target.errors(), "the target ended with %s, %s, stderr: %s" % (status, last, target.errors()))
    told = [f for f in world.report()["functions"] if (f.get("file") or "").startswith("/manyfold/")]
    require(told and all(f["name"].startswith("function_") for f in told), "%d functions of the program: %s" % (len(told), told[:3]))
    size = os.path.getsize(world.path("r.json"))
    require(size < 128 << 20, "the report has %d bytes" % size)
    return "%d functions told, %.1f MB, %.1f s; %s" % (len(told), size / 1e6, attach.seconds, last)


def forks(world, python):
    """Signal handlers fork, in C and in Python, within each other and on top of the program's own forks, while we come and go: each child is right and ends, none has a thread of ours."""
    if python.view:
        raise Skip("its handler is built for this system's libc")
    library = world.path("forker.so")
    built = subprocess.run(["cc", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", "-o", library, os.path.join(PROGRAMS, "forker.c"), "-ldl"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    require(built.returncode == 0, built.stdout)
    with Target(python, FORKER, library) as target:
        for _ in range(4 if world.quick else 20):
            world.attach(target.pid, "-d", "300ms").expect(0)
        status, last = target.finish()
        require(status == 0 and last.startswith("OK") and not target.errors(), "the target ended with %s, %s, stderr: %s" % (status, last, target.errors()))
    return last


def slow_forks(world, python):
    """A thread forks for 4 s while we come, and slots are exchanged only after that: the hooks are on before, and stay on."""
    if python.view:
        raise Skip("its native thread is built for this system's libc")
    built = library(SLOW_FORK + ".c", world.path("slow_fork.so"), "-pthread")
    with Target(python, SLOW_FORK + ".py", built) as target:
        world.attach(target.pid, "-d", "100ms").expect(0)  # from now on forks wait for us, and we for them
        target.go()
        target.expect("FORKS", 10)
        attach = world.attach(target.pid, "-d", "3s", "--memory", "--memory-native", "--max-overhead", "none", trace="t.iscope").expect(0)
        status, last = target.finish()
        require(status == 0 and last == "OK" and not target.errors(), "the target ended with %s, %s, stderr: %s" % (status, last, target.errors()))
    require("was held up" not in attach.err, tail(attach.err))
    dump = world.run("dump-trace", world.path("t.iscope")).expect(0).out
    require(" window_on " in dump and not re.search(r" window_off reason=3\b", dump), "the hooks took themselves off")


def throttled(world, python):
    """One thread that calls far more than the budget holds, and no function of which is dearer than another: hooks come back, again and again."""
    with Target(python, EVEN) as target:
        world.attach(target.pid, "-d", "24s", trace="t.iscope").expect(0)
        status, last = target.finish()
        require(status == 0 and last == "OK" and not target.errors(), "the target ended with %s, %s, stderr: %s" % (status, last, target.errors()))
    dump = world.run("dump-trace", world.path("t.iscope")).expect(0).out
    opened = len(re.findall(r" window_on ", dump))
    require(opened >= 3, "%d windows in 24 s" % opened)
    return "%d windows" % opened


def lets_go(world, python):
    """The GIL is free again and again, for too short a time to take it, and nobody is asked to give it up: we get it all the same."""
    with Target(python, LETS_GO) as target:
        took = []
        for _ in range(10):
            took.append(world.attach(target.pid, "-d", "100ms", "--native", "none").expect(0).seconds)
        status, last = target.finish()
        require(status == 0 and last == "OK" and not target.errors(), "the target ended with %s, %s, stderr: %s" % (status, last, target.errors()))
    require(max(took) < 5, "attaching for 0.1 s took up to %.1f s" % max(took))
    return "%.2f s (median), %.2f at most" % (statistics.median(took), max(took))


def another_build(world):
    """A copy of the program whose collector says that it is of another build."""
    collector = os.path.join(os.path.dirname(world.binary), "libinferscope-collector.so")
    if not os.path.exists(collector):
        raise Skip("the collector's file is not installed here")
    notes = subprocess.run(["readelf", "-n", collector], stdout=subprocess.PIPE, text=True).stdout
    build_id = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes)[1])
    with open(world.binary, "rb") as file:
        program = file.read()
    require(program.count(build_id) == 1, "the collector's build id stands %d times in the program" % program.count(build_id))
    path = world.path("other-inferscope")
    with open(path, "wb") as file:
        file.write(program.replace(build_id, bytes([build_id[0] ^ 1]) + build_id[1:]))
    os.chmod(path, 0o755)
    return World(path, world.quick, world.folder, world.pythons)


def lanes_of(pid):
    with open("/proc/%d/maps" % pid) as file:
        return sum("inferscope-lanes" in line for line in file)


def other_build(world, python):
    """What the attacher of another build left when it died is ended by this one, with and without a collector of this build in the process."""
    other = another_build(world)
    with Target(python, PLANTED, "sleeping") as target:
        for _ in range(2):
            dead = other.attach(target.pid, "-d", "60s")
            wait_for(lambda: lanes_of(target.pid), 20, "the other build did not attach: %s" % dead.child.poll())
            time.sleep(0.5)
            dead.stop(signal.SIGKILL)
            dead.wait(10)
            world.run("detach", target.pid).expect(0)
            require(lanes_of(target.pid) == 0, "the lanes of the other build are still mapped")
            world.attach(target.pid, "-d", "500ms").expect(0)
        other.attach(target.pid, "-d", "500ms").expect(0)
        status, _ = target.finish()
        require(status == 0 and not target.errors(), "the target ended with %s, stderr: %s" % (status, target.errors()))
