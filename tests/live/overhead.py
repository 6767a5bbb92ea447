"""What measuring costs with the default budget: work done inside against work done outside, in pairs, in one process.

The wall ratio decides. On a machine whose own noise is larger than the effect (the same pairs without us, "null"), the work per CPU second of
the target decides, and the line says so."""
import mmap
import os
import statistics
import time

from harness import PROGRAMS, Target, require

WORK = os.path.join(PROGRAMS, "work.py")
LEAST = 0.9
NOISE = 0.05
QUICK = ["3.8.18", "3.11.7", "3.12.1", "3.13.0"]


def tests(world):
    for python in world.pythons:
        if python.view or (world.quick and python.name not in QUICK):
            continue
        for kind in ("fib", "decode"):
            yield "overhead/%s/%s" % (python.name, kind), lambda w, p=python, k=kind: cost(w, p, k)


class Counter:
    def __init__(self, path):
        with open(path, "r+b") as f:
            self.page = memoryview(mmap.mmap(f.fileno(), 16)).cast("Q")

    def read(self):
        return time.monotonic(), self.page[0], self.page[1]


def rates(before, after):
    """Items per second, items per CPU second."""
    items = after[1] - before[1]
    return items / (after[0] - before[0]), items / max(1e-9, (after[2] - before[2]) / 1e9)


def cost(world, python, kind):
    """A neighbour's burst is no cost of ours: what is true shows again in a second series."""
    first = series(world, python, kind)
    if first[0] >= first[2]:
        return first[1]
    second = series(world, python, kind)
    text = "%s; again: %s" % (first[1], second[1])
    require(second[0] >= second[2], "less than %.2f of the work was done inside, twice: %s" % (second[2], text))
    return text


def series(world, python, kind):
    """Work done inside against outside, the words for it, and the least that it may be: less than LEAST where the machine's own noise is large."""
    pairs, length = (4, 2) if world.quick else (10, 2)
    path = world.path("counter")
    with open(path, "wb") as f:
        f.truncate(16)
    wall, cpu, null, coverage = [], [], [], []
    with Target(python, WORK, kind, path) as target:
        counter = Counter(path)
        time.sleep(1)
        outside_before = quiet(counter, length)
        for _ in range(pairs):
            begin = counter.read()
            world.attach(target.pid, "-d", "%ds" % length).expect(0)
            inside = rates(begin, counter.read())
            report = world.report()
            coverage.append(max((f["coverage"] for f in report["functions"]), default=0))
            outside = quiet(counter, length)
            middle = [(a + b) / 2 for a, b in zip(outside_before, outside)]
            wall.append(inside[0] / middle[0])
            cpu.append(inside[1] / middle[1])
            null.append(outside[0] / outside_before[0])
            outside_before = outside
    noise = statistics.median(abs(x - 1) for x in null)
    text = "wall %.3f, per CPU second %.3f, null noise %.3f, coverage %.2f" % (statistics.median(wall), statistics.median(cpu), noise, statistics.median(coverage))
    require(min(coverage) > 0, "a report states no coverage: %s" % text)
    best = statistics.median(wall)
    if best < LEAST and noise > NOISE:
        best = statistics.median(cpu)
        text += " (judged by CPU: the machine is noisy)"
    return best, text, LEAST - max(0, noise - NOISE)


def quiet(counter, seconds):
    begin = counter.read()
    time.sleep(seconds)
    return rates(begin, counter.read())
