"""At every step of entering and of leaving: the attacher freezes, or something happens to the process. One process for each, several at a time. For
tests/torture/run."""
import concurrent.futures
import os
import re
import shutil
import signal
import tempfile
import threading
import time

import harness
from harness import Target, footprint, require, state_of
from sessions import HERE, TARGET, ask, driver, loop, unharmed

STEPS = 16
ENTRIES = {1: "entering", 2: "leaving"}
FROZEN_MS = 5000
SEVERAL = 8


def own_interpreter(python, folder, name):
    """A copy of the interpreter, because those who enter processes of one interpreter file take turns. Not for one behind a root."""
    if python.view:
        return python, {}
    real = os.path.realpath(python.argv[0])
    copy = os.path.join(folder, name, "bin", os.path.basename(real))
    os.makedirs(os.path.dirname(copy))
    shutil.copy2(real, copy)
    return harness.Python(python.name, [copy] + python.argv[1:], python.version), {"PYTHONHOME": os.path.dirname(os.path.dirname(real))}


def each_step(world, python, program, test, entries=(1, 2), several=SEVERAL):
    """TEST(target, step, entry) on a PROGRAM of its own for all of them. Returns what they returned, in order."""
    def one(step, entry):
        with tempfile.TemporaryDirectory(dir=world.folder) as folder:
            own, env = own_interpreter(python, folder, "own")
            try:
                with Target(own, *program, env=env, ready=120) as target:
                    return test(target, step, entry)
            except harness.Fail as why:
                raise harness.Fail("step %d of %s: %s" % (step, ENTRIES[entry], why))
    todo = [(step, entry) for entry in entries for step in range(1, STEPS + 1)]
    with concurrent.futures.ThreadPoolExecutor(several) as pool:
        return list(pool.map(lambda at: one(*at), todo))


LATE = (TARGET, "--kind", "late", "--pause", "0.02")


def killed(world, python):
    """SIGKILL to the attacher and the process that holds the thread; a fresh one enters as soon as it can, which the first one's guest may put off by 8 s."""
    def test(target, step, entry):
        signals = ask(target, "blocked", "BLOCKED")
        before = footprint(target.pid)
        said = loop(target.pid, "kill=steps", "at_step=%d" % step, "at_entry=%d" % entry, "rounds=%d" % (2 if world.quick else 5), "record_ms=2", "patience_ms=60000")
        time.sleep(2.2)  # the dead man's switch
        unharmed(target, before, signals)
        return int(re.search(r"killed=(\d+)", said)[1])
    kills = each_step(world, python, LATE, test)
    require(sum(kills) >= len(kills), "only %d were killed: %s" % (sum(kills), kills))
    return "%d killed" % sum(kills)


class Held(threading.Thread):
    """Looks whether a thread of PID is held; `longest` is for how many looks in a row, 0.1 s apart."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.longest, self.done = pid, 0, threading.Event()

    def run(self):
        rows = {}
        while not self.done.wait(0.1):
            for tid in os.listdir("/proc/%d/task" % self.pid):
                held = state_of("%d/task/%s" % (self.pid, tid)) == "t"
                rows[tid] = rows.get(tid, 0) + 1 if held else 0
                self.longest = max(self.longest, rows[tid])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()


def frozen(world, python):
    """SIGSTOP for 5 s to the attacher and to the process that holds the thread: whatever it is at, nobody else waits for it."""
    def test(target, step, entry):
        signals = ask(target, "blocked", "BLOCKED")
        before = footprint(target.pid)
        with Held(target.pid) as held:
            said = until("stopped=1", target, "stop=steps", "at_step=%d" % step, "at_entry=%d" % entry, "stop_ms=%d" % FROZEN_MS, "record_ms=2", "patience_ms=60000")
        require("wrong=0" in said, said)
        require(held.longest < 10, "a thread was held for %.1f s" % (held.longest / 10))
        return int(re.search(r"latest sleep (\d+) ms|$", unharmed(target, before, signals))[1] or 0)
    late = each_step(world, python, LATE, test, several=STEPS)
    # A thread that is held shows 5 000; a full machine shows what it likes up to some hundred.
    require(max(late) < FROZEN_MS / 2, "late by %d ms: %s" % (max(late), late))
    return "%d frozen for %d ms; sleeps late by %d ms at most" % (len(late), FROZEN_MS, max(late))


def until(word, target, *words):
    """The driver on TARGET until its line has WORD: an attach that is refused comes to no step."""
    for _ in range(20):
        status, said, complaints = driver(target.pid, *words, seconds=120)
        require(status in (0, 1, 3), "the driver ended with %s: %s" % (harness.status_text(status), harness.tail(complaints)))
        if word in said or status == 3:
            return said
        time.sleep(0.2)
    raise harness.Fail("not reached: %s %s" % (said, harness.tail(complaints)))


EVENTFUL = os.path.join(HERE, "eventful.py")
# What happens: the signal that brings it, how the program must end.
EVENTS = {
    "kill": (signal.SIGKILL, (-signal.SIGKILL, "")),
    "exit": (signal.SIGUSR1, (7, "")),
    "exec": (signal.SIGUSR1, (0, "OK second 499500")),
    "fork": (signal.SIGUSR1, (0, "OK wrong 0, children [10240]")),
    "stop": (signal.SIGSTOP, (0, "OK wrong 0, children []")),
}


def continue_later(pid, seconds):
    """SIGCONT, once it has been seen stopped for some time."""
    end = time.monotonic() + 30
    while state_of(pid) != "T" and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def happens(name):
    number, wanted = EVENTS[name]

    def test(target, step, entry):
        helper = threading.Thread(target=continue_later, args=(target.pid, 0.3), daemon=True)
        if name == "stop":
            helper.start()
        said = until("sent=1", target, "send=%d" % number, "at_step=%d" % step, "at_entry=%d" % entry, "record_ms=2")
        if name == "stop":
            helper.join()
        if name in ("stop", "fork"):
            loop(target.pid, "rounds=1", "record_ms=2")
        ended = target.finish(60)
        if not wanted[1] and ended[0] == wanted[0]:
            ended = wanted
        require(ended == wanted and not target.errors(), "the program ended with %s: %s %s" % (harness.status_text(ended[0]), ended[1], target.errors()))
        return "good" if "good=1" in said else "refused"

    def every(world, python):
        ends = each_step(world, python, (EVENTFUL, name), test, (1, 2) if not world.quick else (1,))
        return "%d times; measured all the same %d times" % (len(ends), ends.count("good"))
    return every
