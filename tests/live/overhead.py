"""What measuring costs with the default budget: work done inside against work done outside, in pairs, in one process.

The wall ratio decides. On a machine whose own noise is larger than the effect (the same pairs without us, "null"), the work per CPU second of
the target decides, and the line says so.

Where CPU is short (a quota, more threads than CPUs, CPUs that others want) the budget is judged by the ledger, as time goes by for other reasons there.
And a budget that is switched off must be seen: else all of this would pass whatever the hooks cost."""
import mmap
import os
import statistics
import subprocess
import sys
import time

from harness import PROGRAMS, Skip, Target, require

WORK = os.path.join(PROGRAMS, "work.py")
LEAST = 0.9
NOISE = 0.05
QUICK = ["3.8.18", "3.11.7", "3.12.1", "3.13.0"]
LEDGER_MOST = 5.25
BEFOREHAND = 5 * 0.15  # per cent of a second: what hooks get at once, to be seen at all; in little CPU time that is much
SHORT_OF_CPU = {"quota": "3.11.7", "threads": "3.13.0", "busy": "3.8.18"}  # in the short form with this Python


def tests(world):
    for python in world.pythons:
        if python.view or (world.quick and python.name not in QUICK):
            continue
        for kind in ("fib", "decode"):
            yield "overhead/%s/%s" % (python.name, kind), lambda w, p=python, k=kind: cost(w, p, k)
        for test, quick in SHORT_OF_CPU.items():
            if not world.quick or python.name == quick:
                yield "overhead/%s/%s" % (python.name, test), lambda w, p=python, t=test: short_of_cpu(w, p, t)
        if python.name == "3.11.7":
            yield "overhead/%s/unlimited" % python.name, lambda w, p=python: unlimited(w, p)


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


def unlimited(world, python):
    """Without a budget fib must not pass the test above. By the dearest hooks: what is slow makes few events, and analysing them takes little of the time that counts as inside."""
    best, text, _ = series(world, python, "fib", pairs=1, words=("--max-overhead", "none", "--hook", "setprofile"))
    require(best < LEAST - NOISE, "%.2f of the work was done without a budget, which the test for it takes for kept: %s" % (best, text))
    return text


class Quota:
    """A control group with 20 % of a CPU, of either version; removed afterwards."""
    PERIOD_US, QUOTA_US = 20000, 4000
    WAYS = {"/sys/fs/cgroup": (("cpu.max", "%d %d" % (QUOTA_US, PERIOD_US)),),
            "/sys/fs/cgroup/cpu": (("cpu.cfs_period_us", str(PERIOD_US)), ("cpu.cfs_quota_us", str(QUOTA_US)))}

    def __enter__(self):
        for top, files in self.WAYS.items():
            self.folder = os.path.join(top, "inferscope-test-%d" % os.getpid())
            if not os.path.exists(os.path.join(top, "cgroup.procs")):
                continue
            try:
                os.mkdir(self.folder)
                for name, value in files:
                    with open(os.path.join(self.folder, name), "w") as f:
                        f.write(value)
                return self
            except OSError:
                self.remove()
        raise Skip("this kernel lets us make no control group with a CPU quota")

    def take(self, pid):
        with open(os.path.join(self.folder, "cgroup.procs"), "w") as f:
            f.write(str(pid))

    def throttled(self):
        with open(os.path.join(self.folder, "cpu.stat")) as f:
            return int(dict(line.split() for line in f)["nr_throttled"])

    def remove(self):
        try:
            os.rmdir(self.folder)
        except OSError:
            pass

    def __exit__(self, *_):
        end = time.monotonic() + 5
        while os.path.exists(self.folder) and time.monotonic() < end:
            self.remove()
            time.sleep(0.02)


def short_of_cpu(world, python, test):
    return {"quota": with_quota, "threads": with_threads, "busy": with_neighbours}[test](world, python)


def ledger(world, target):
    """What hooks and samples took by their own count, of the CPU time that the target got."""
    world.attach(target.pid, "-d", "3s" if world.quick else "8s").expect(0)
    report = world.report()
    told, coverage = report["budget"]["achieved_pct"], max((f["coverage"] for f in report["functions"]), default=0)
    cpu_seconds = report["capture"]["cpu_cores_ratio"] * report["capture"]["duration_ns"] / 1e9
    require(told is not None and told <= LEDGER_MOST + BEFOREHAND / cpu_seconds, "the budget of 5 %% was not kept: %s %% of %.2f s" % (told, cpu_seconds))
    require(told > 0 and coverage > 0, "nothing was traced: %s %%, coverage %s" % (told, coverage))
    return "%.2f %%, coverage %.2f, %.2f CPUs" % (told, coverage, report["capture"]["cpu_cores_ratio"])


def counter_file(world):
    path = world.path("counter")
    with open(path, "wb") as f:
        f.truncate(16)
    return path


def with_quota(world, python):
    with Quota() as quota, Target(python, WORK, "fib", counter_file(world)) as target:
        quota.take(target.pid)
        text = ledger(world, target)
        require(quota.throttled() >= 3, "the quota was not felt: %d" % quota.throttled())
        return text + ", throttled %d times" % quota.throttled()


def with_threads(world, python):
    threads = 4 * (os.cpu_count() or 1)
    with Target(python, WORK, "fib", counter_file(world), "--threads", str(threads)) as target:
        return ledger(world, target) + ", %d threads" % threads


def with_neighbours(world, python):
    """Two others on each CPU."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        with Target(python, WORK, "fib", counter_file(world)) as target:
            return ledger(world, target)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def series(world, python, kind, pairs=None, words=()):
    """Work done inside against outside, the words for it, and the least that it may be: less than LEAST where the machine's own noise is large."""
    pairs, length = pairs or (4 if world.quick else 10), 2
    path = counter_file(world)
    wall, cpu, null, coverage = [], [], [], []
    with Target(python, WORK, kind, path) as target:
        counter = Counter(path)
        time.sleep(1)
        outside_before = quiet(counter, length)
        for _ in range(pairs):
            begin = counter.read()
            world.attach(target.pid, "-d", "%ds" % length, *words).expect(0)
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
