"""In the middle of an attach: a GIL that is not to be had, attachers that die or freeze, two at once."""
import json
import os
import random
import signal
import time

from harness import PROGRAMS, Attach, Target, require, state_of, tail, wait_for

PLANTED = os.path.join(PROGRAMS, "planted.py")
KEEPER = os.path.join(PROGRAMS, "gil_keeper.py")
QUICK = ["3.9.18", "3.12.1"]


def tests(world):
    for python in world.pythons:
        if world.quick and python.name not in QUICK:
            continue
        for name, test in (("gil", gil), ("killed_early", killed_early), ("two_at_once", two_at_once)):
            yield "troubles/%s/%s" % (python.name, name), lambda w, p=python, t=test: t(w, p)


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
        both = [Attach(world, "attach", target.pid, "-d", "4s", "-o", world.path("%d.json" % i), "--trace", "none", "--force") for i in range(2)]
        ends = [attach.wait(60) for attach in both]
        require(sorted(ends) == [0, 6], "exit statuses %s: %s" % (ends, [tail(attach.err) for attach in both]))
        winner, loser = both if ends[0] == 0 else both[::-1]
        require("process %d" % winner.child.pid in loser.err, "the loser does not name process %d: %s" % (winner.child.pid, loser.err))
        status, _ = target.finish()
        require(status == 0 and not target.errors(), "the target ended with %s, stderr: %s" % (status, target.errors()))
