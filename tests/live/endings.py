"""How a measurement ends: Ctrl-C, SIGTERM, SIGKILL, again and again, and nothing that piles up in the target; and targets that end by themselves."""
import os
import random
import re
import signal
import time

from harness import PROGRAMS, Target, footprint, require, settle, state_of, status_text, tail, wait_for

PLANTED, MORTAL = (os.path.join(PROGRAMS, name) for name in ("planted.py", "mortal.py"))
ENDS = {"return": 0, "exit": 0, "_exit": 0, "exception": 1, "kill": -signal.SIGKILL, "exec": 0, "threads": 0}  # with what exit status
QUICK = ["3.9.18", "3.12.1", "3.13.0"]


def tests(world):
    for python in world.pythons:
        if world.quick and python.name not in QUICK:
            continue
        for name, test in (("interrupt", interrupt), ("terminate", terminate), ("twice", twice), ("killed", killed), ("cycles", cycles), ("random", at_random), ("mortal", mortal)):
            yield "endings/%s/%s" % (python.name, name), lambda w, p=python, t=test: t(w, p)


def stopped_by(world, python, number):
    with Target(python, PLANTED, "busy") as target:
        attach = world.attach(target.pid, "-d", "60s")
        settle(attach)
        attach.stop(number)
        attach.expect(0, 20)
        require(world.report()["functions"], "the report has no functions")
        require(state_of(target.pid) in "RS", "the target is in state %s" % state_of(target.pid))
        world.attach(target.pid, "-d", "1s").expect(0)


def interrupt(world, python):
    stopped_by(world, python, signal.SIGINT)


def terminate(world, python):
    stopped_by(world, python, signal.SIGTERM)


def twice(world, python):
    """A second Ctrl-C detaches and writes nothing, if the report was not there yet: cli/left_at_once has more."""
    with Target(python, PLANTED, "busy") as target:
        attach = world.attach(target.pid, "-d", "60s")
        settle(attach)
        attach.stop()
        time.sleep(0.3)  # what comes sooner is the same one
        attach.stop()
        attach.wait(20)
        require((attach.child.returncode == 0) == ("r.json" in os.listdir(world.folder)), "exit status %s, files %s" % (attach.child.returncode, os.listdir(world.folder)))
        require(state_of(target.pid) in "RS", "the target is in state %s" % state_of(target.pid))
        world.attach(target.pid, "-d", "1s").expect(0)


def killed(world, python):
    """An attacher that dies leaves hooks that take themselves off, and a target that can be measured again."""
    with Target(python, PLANTED, "busy") as target:
        attach = world.attach(target.pid, "-d", "60s")
        settle(attach)
        attach.stop(signal.SIGKILL)
        attach.wait(10)
        require(state_of(target.pid) in "RS", "the target is in state %s" % state_of(target.pid))
        time.sleep(3)
        world.attach(target.pid, "-d", "1s").expect(0)
        status, _ = target.finish()
        require(status == 0 and not target.errors(), "the target ended with %s, stderr: %s" % (status, target.errors()))


def cycles(world, python):
    """Ten attaches to one process: maps, fds and threads do not grow after the second."""
    marks = []
    with Target(python, PLANTED, "locks") as target:
        for _ in range(4 if world.quick else 10):
            world.attach(target.pid, "-d", "1s" if world.quick else "2s").expect(0)
            wait_for(lambda: footprint(target.pid)[2] <= (marks[0][2] if marks else 99), 5, "a thread stayed: %s" % marks)
            time.sleep(0.3)
            marks.append(footprint(target.pid))
        target.finish()
    base = marks[1]
    for number, mark in enumerate(marks[2:], 3):
        # glibc may map an arena for a new thread of the target itself at any time: one mapping more or less is not ours
        require(mark[0] <= base[0] + 2 and mark[1] <= base[1] and mark[2] <= base[2], "after attach %d: mappings, fds, threads %s; after the second: %s" % (number, mark, base))
    require(marks[-1][0] <= base[0] + 2, "mappings grow: %s" % [m[0] for m in marks])
    return "mappings %s" % [m[0] for m in marks]


def at_random(world, python):
    """Interrupted at any moment, also while it is still entering."""
    seed = int(time.time())
    dice = random.Random(seed)
    with Target(python, PLANTED, "locks") as target:
        for _ in range(4 if world.quick else 20):
            attach = world.attach(target.pid, "-d", "60s")
            time.sleep(dice.uniform(0, 1.0))
            attach.stop(dice.choice([signal.SIGINT, signal.SIGTERM]))
            attach.wait(20)
            require(state_of(target.pid) in "RS", "state %s after an interrupt (seed %d)" % (state_of(target.pid), seed))
        world.attach(target.pid, "-d", "1s").expect(0)
        status, _ = target.finish()
        require(status == 0 and not target.errors(), "the target ended with %s, stderr: %s (seed %d)" % (status, target.errors(), seed))


def ends_by_itself(world, python, how, seconds, dice):
    """One target that ends SECONDS from now. Returns the attach's exit status."""
    before = set(os.listdir(world.folder))
    with Target(python, MORTAL, how, "%.3f" % seconds) as target:
        attach = world.attach(target.pid, "-d", "%dms" % dice.choice((100, 300, 500)), trace="t.iscope")
        status = attach.wait(30)
        ended, last = target.finish(30)
    what = "%s after %.3f s: exit status %s: %s" % (how, seconds, status, tail(attach.err))
    if python.view:  # the launcher in between says what it was told
        ended = ended - 256 if ended > 128 and how == "kill" else ended
    require(ended == ENDS[how] or (how == "kill" and ended == 128 + signal.SIGKILL), "the target ended with %s: %s" % (status_text(ended), what))
    require(how != "exec" or last == "second", "the program after the exec did not run: %s" % what)
    require(status in (0, 3), what)
    left = set(os.listdir(world.folder)) - before
    require(left <= ({"r.json", "t.iscope"} if status == 0 else set()), "left behind: %s, %s" % (left, what))
    if status == 0:
        world.report()
        world.run("analyze", world.path("t.iscope"), "-o", world.path("again.json"), "--force").expect(0)
        for name in ("r.json", "t.iscope", "again.json"):
            os.unlink(world.path(name))
    else:
        require("E_" not in attach.err and re.search("ended|no such process|zombie|replaced itself", attach.err), what)
    return status


def mortal(world, python):
    """A target ends at any moment of an attach: before it, while it is entered, while it is measured, while it is left."""
    seed = int(time.time())
    dice = random.Random(seed)
    counts = {0: 0, 3: 0}
    for i in range(7 if world.quick else 70):
        how = list(ENDS)[i % len(ENDS)]
        # entering takes a quarter of a second, and so does leaving: half of them meanwhile, the others anywhere
        seconds = dice.uniform(0.0, dice.choice((0.35, 1.0)))
        try:
            counts[ends_by_itself(world, python, how, seconds, dice)] += 1
        except Exception as error:
            raise type(error)("%s (seed %d, round %d)" % (error, seed, i))
    return "%d measured, %d ended before" % (counts[0], counts[3])
