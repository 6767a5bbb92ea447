"""What measuring costs with the default budget, and what is known within it.

Work done with hooks on against work done with hooks off, in turns inside one attach, beside the same turns with nothing attached: the machine's own noise. Work per CPU second
decides; by the clock a busy machine may hide more. The ledger must agree. And a budget that is switched off must be seen: else all of this would pass whatever the hooks cost.

All that can be measured of a CPU at once must keep to the budget, too, and what a tracepoint makes of system calls: by the ledger, and, as turns do not end these, by
work done outside an attach before and after (the long form).

Where CPU is short (a quota, more threads than CPUs, CPUs that others want) the budget is judged by the ledger, as time goes by for other reasons there."""
import ast
import collections
import json
import mmap
import os
import statistics
import subprocess
import sys
import time

from harness import EVERYTHING, PROGRAMS, TOP, Skip, Target, require, settle, tracing
from matrix import KNOWN, find_function, function_row
from pairs import bootstrap, made_up, ratios, rows_of, turns_of

WORK = os.path.join(PROGRAMS, "work.py")
WORKER = os.path.join(TOP, "tests/bench/worker.py")
TURNS_MS = (100, 300)  # the longer ones where a busy machine leaves too little of the others
BUDGET, BY_CLOCK = 0.05, 0.1
AT_REST = 0.05  # work by the clock varies no more
QUICK = ["3.8.18", "3.11.7", "3.12.1", "3.13.0"]
LEDGER_MOST = 5.25
BEFOREHAND = 5 * 0.15  # per cent of a second: what hooks get at once, to be seen at all; in little CPU time that is much
COUNTED_BEFOREHAND = 0.5  # likewise what tracepoints and counters of threads may take at once: 5 ms each
FROM_OUTSIDE = {"everything": ["3.8.18", "3.11.7"], "syscalls": ["3.11.7"]}  # in the short form with these
LEAST = 0.92
SHORT_OF_CPU = {"quota": "3.11.7", "threads": "3.13.0", "busy": "3.8.18"}  # in the short form with this Python
IN_ONE = {"counted": ["3.8.18", "3.12.1"], "intervals": ["3.8.18", "3.13.0"], "unlimited": ["3.11.7"], "phases": ["3.8.18", "3.12.1"]}  # likewise
ELSEWHERE = {"counted": [(3, 11)]}  # counting saves little there
NEARLY_ALL = 0.75
NAMED = ["part_hot", "part_zlib", "part_light"]  # parts whose time is all their own


def tests(world):
    for python in world.pythons:
        if python.view or (world.quick and python.name not in QUICK):
            continue
        for kind in ("fib", "decode"):
            yield "overhead/%s/%s" % (python.name, kind), lambda w, p=python, k=kind: cost(w, p, k)
        for test, quick in SHORT_OF_CPU.items():
            if not world.quick or python.name == quick:
                yield "overhead/%s/%s" % (python.name, test), lambda w, p=python, t=test: short_of_cpu(w, p, t)
        for test, function in (("everything", everything), ("syscalls", syscalls)):
            if not world.quick or python.name in FROM_OUTSIDE[test]:
                yield "overhead/%s/%s" % (python.name, test), lambda w, p=python, f=function: f(w, p)
        for test, function in (("counted", counted), ("intervals", intervals), ("unlimited", unlimited), ("phases", phases)):
            if (not world.quick or python.name in IN_ONE[test]) and python.version not in ELSEWHERE.get(test, ()):
                yield "overhead/%s/%s" % (python.name, test), lambda w, p=python, f=function: f(w, p)


class Series:
    """Turns with hooks and without, inside one attach; then as many with nothing attached."""

    def __init__(self, world, python, kind, pairs, *words):
        for turn_ms in TURNS_MS:
            report = self.measure(world, python, kind, pairs, turn_ms, words)
            if min(len(self.on[0]), len(self.off[0])) >= pairs / 3:
                break
        else:
            require(False, "only %d and %d of %d pairs could be compared" % (len(self.on[0]), len(self.off[0]), pairs))
        self.coverage = max((f["coverage"] for f in report["functions"]), default=0)
        self.ledger, self.ledger_most = report["budget"]["achieved_pct"], ledger_most(report)

    def measure(self, world, python, kind, pairs, turn_ms, words):
        seconds, log = pairs * 2 * turn_ms / 1000, world.path("log")
        with Target(python, WORKER, kind, log) as target:
            time.sleep(0.5)
            world.attach(target.pid, "-d", "%.1fs" % seconds, "--alternate", "%dms" % turn_ms, *words).expect(0)
            quiet = time.monotonic_ns()
            time.sleep(seconds)
        report, rows = world.report(), rows_of(log)
        self.on, self.off = ratios(rows, turns_of(report)), ratios(rows, made_up(quiet, turn_ms * 1000000, pairs))
        return report

    def kept(self):
        """No less work than the budget allows, by the sure ends of both intervals. Time goes by for other reasons, too, where others want the CPUs."""
        by_cpu, by_clock = (max(abs(1 - end) for end in bootstrap(off)) for off in self.off)
        if bootstrap(self.on[0])[1] < 1 - BUDGET - by_cpu:
            return False
        return by_clock > AT_REST or bootstrap(self.on[1])[1] >= 1 - BY_CLOCK - by_clock

    def text(self):
        by_cpu, by_clock = ("%.3f [%.3f, %.3f], off/off %.3f [%.3f, %.3f]" % (statistics.median(on), *bootstrap(on), statistics.median(off), *bootstrap(off)) for on, off in zip(self.on, self.off))
        return "work per CPU second %s; by the clock %s; %d pairs, ledger %.2f %%, coverage %.2f" % (by_cpu, by_clock, len(self.on[0]), self.ledger, self.coverage)


def cost(world, python, kind):
    """A neighbour's burst is no cost of ours: what is true shows again in a second series."""
    pairs = 20 if world.quick else 64
    seen = []
    for _ in range(2):
        series = Series(world, python, kind, pairs)
        seen.append(series.text())
        require(series.coverage > 0, "nothing was traced: %s" % series.text())
        require(0 < series.ledger <= series.ledger_most, "by the ledger the budget was not kept: %s" % series.text())
        if series.kept():
            return "; again: ".join(seen)
    require(False, "less work was done with hooks, twice: %s" % "; again: ".join(seen))


def unlimited(world, python):
    """Without a budget fib must not pass the test above."""
    seen = []
    for _ in range(2):
        series = Series(world, python, "fib", 12, "--max-overhead", "none")
        seen.append(series.text())
        if not series.kept():
            return "; again: ".join(seen)
    require(False, "there was no budget, and the test for it takes it for kept, twice: %s" % "; again: ".join(seen))


def known(world, python, kind, seconds, *words, functions=0, rate=0):
    """The report of one run of known.py, and what that knows."""
    with Target(python, KNOWN, kind, "--seconds", str(seconds), "--functions", str(functions)) as target:
        attach = world.attach(target.pid, "-d", "0", "--rate", str(rate), "--c-calls", "none", *words)
        settle(attach)
        target.go()
        truth = ast.literal_eval(target.expect("TRUTH", seconds + 60)[6:])
        attach.stop()
        attach.expect(0)
        target.finish()
    return world.report(), truth


def counted(world, python):
    """A budget that is a little too small for a hot, tiny function makes a number of it, and that is exact."""
    share = known(world, python, "steps", 0.5, "--max-overhead", "none")[0]["budget"]["achieved_pct"]
    factor, tries = 1.3, []
    for _ in range(10):  # what else runs on the machine changes how fast it calls
        report, truth = known(world, python, "steps", 1, "--max-overhead", "%.3f%%" % (share / factor))
        rows = {name: function_row(report, name, KNOWN) for name in truth["calls"]}
        tries.append("load %.2f: %s" % (factor, ", ".join("%s %s, %s of %d calls" % (name, row["precision"], row["calls"], truth["calls"][name]) for name, row in rows.items())))
        wrong = [name for name, row in rows.items() if row["precision"] in ("exact", "counted") and row["calls"] != truth["calls"][name]]
        require(not wrong, "%s: wrong of %s; %s" % (tries[-1], wrong, report["budget"]["history"]))
        if rows["marker_tiny"]["precision"] == "counted":
            return tries[-1]
        factor *= 1.2 if rows["marker_tiny"]["precision"] == "exact" else 0.9
    require(False, "marker_tiny was never counted: %s" % "; ".join(tries))


def intervals(world, python):
    """
    Windows alone, without samples: what they tell is called an estimate, and its 95 % interval holds what the program knows, for nearly all parts of all runs.
    From 3.12 on what is hot is left out rather than looked at in windows: there samples tell of it.
    """
    windows = python.version < (3, 12)
    words, rate, precision = (["--max-overhead", "1%"], 0, "estimated") if windows else (["--max-overhead", "1%", "--native", "none"], 100, "sampled")
    runs, seconds, held, wide, texts = (2, 6, 0, 0, []) if world.quick else (3, 12, 0, 0, [])
    while len(texts) < runs * len(NAMED) or (held < NEARLY_ALL * len(texts) and len(texts) < 2 * runs * len(NAMED)):  # few windows fit into little CPU time: more runs then
        report, truth = known(world, python, "shares", seconds, *words, functions=300, rate=rate)
        told = sum(f["self_ns"] for f in report["functions"] if f["name"].startswith(("part_", "many_")))
        rows = {name: find_function(report, name, os.path.basename(KNOWN)) for name in NAMED}
        seen = [row for found in rows.values() for row in found]
        require(all(row["precision"] == precision for row in seen), "they are said to be %s: %s" % ([row["precision"] for row in seen], report["budget"]))
        if len(seen) < len(NAMED) or not all(row["self_high_ns"] for row in seen):
            seconds *= 2
            require(seconds <= 60, "too few windows for an interval: %s" % report["budget"])
            continue
        for name, (row,) in rows.items():
            share = 100 * truth["ledger"][name] / sum(truth["ledger"].values())
            low, high = (100 * row[key] / told for key in ("self_low_ns", "self_high_ns"))
            held += low <= share <= high
            wide += high - low > 2 * share
            texts.append("%s %.1f in [%.1f, %.1f]" % (name[5:], share, low, high))
    text = "; ".join(texts) + ", coverage %.4f" % row["coverage"]
    require(held >= NEARLY_ALL * len(texts), "%d of %d intervals hold the truth: %s" % (held, len(texts), text))
    require(wide <= 0.5 * len(texts), "%d of %d intervals say nothing: %s" % (wide, len(texts), text))
    return "%d of %d intervals hold the truth: %s" % (held, len(texts), text)


def phases(world, python):
    """What a program calls changes every two seconds. One second after that the budget is kept again, in every second, and so it is over the whole."""
    seconds, budget = 8, 0.4  # little, so that all calls fit into the trace
    with Target(python, WORKER, "phases", world.path("log")) as target:
        world.attach(target.pid, "-d", "%ds" % seconds, "--rate", "0", "--max-overhead", "%g%%" % budget, trace="t.iscope").expect(0)
    report = world.report()
    world.run("analyze", world.path("t.iscope"), "-f", "events", "-o", world.path("e.json")).expect(0)
    with open(world.path("e.json")) as f:
        calls = [event for event in json.load(f)["events"] if event["event_type"] == "cpu_call"]
    cost_ns, begun_ns = report["capture"]["counters"]["cost_ps_py"] / 1000, report["budget"]["windows_start_monotonic_ns"]
    taken = collections.Counter()
    for call in calls:
        for at in (call["start_us"], call["end_us"]):
            since_change = (begun_ns / 1e9 + at / 1e6) % 2
            taken[int(at / 1e6 - since_change + 0.5), since_change >= 1] += cost_ns / 1e7  # per cent of that second
    settled = {second: round(share, 2) for (second, late), share in taken.items() if late and 0 <= second < seconds - 2}
    text = "settled %s, all %s %% of %g %%" % (settled, report["budget"]["achieved_pct"], budget)
    require(len(calls) > 1000 and settled, "only %d calls were seen: %s" % (len(calls), text))
    require(all(share <= 1.5 * budget for share in settled.values()) and report["budget"]["achieved_pct"] <= 1.05 * budget + BEFOREHAND / cpu_seconds(report), text)
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


def outside(world, target, *words):
    """
    Work per CPU second inside an attach over that before and after; the machine's own noise must not hide what it costs. On one CPU: where its threads run on two,
    work varies by a tenth from second to second.
    """
    for tid in os.listdir("/proc/%d/task" % target.pid):
        os.sched_setaffinity(int(tid), {max(os.sched_getaffinity(0))})
    with open(world.path("counter"), "r+b") as f:
        page = memoryview(mmap.mmap(f.fileno(), 16)).cast("Q")

    def rate(work):
        items, cpu = page[0], page[1]
        work()
        return (page[0] - items) / max(1, page[1] - cpu)
    rates = [rate(lambda: time.sleep(3))]
    for _ in range(5):
        rates.append(rate(lambda: world.attach(target.pid, "-d", "3s", *words).expect(0)))
        rates.append(rate(lambda: time.sleep(3)))
    inside = statistics.median(2 * rates[i] / (rates[i - 1] + rates[i + 1]) for i in range(1, 11, 2))
    noise = statistics.median(abs(1 - rates[i] / rates[i + 2]) for i in range(0, 9, 2))
    text = "work per CPU second %.3f, noise %.3f" % (inside, noise)
    require(inside >= LEAST - noise, text)
    return text


def everything(world, python):
    """All of it at once. Of the ledger nothing is left out: each part says what it took, and took something."""
    world.prefix = tracing()
    with Target(python, WORK, "request", counter_file(world)) as target:
        text = ledger(world, target, *EVERYTHING)
        report = world.report()
        if not world.quick:
            text += "; " + outside(world, target, *EVERYTHING)
    settings, counters = report["capture"]["settings"], report["capture"]["counters"]
    for name, begins in ("memory", "sampled"), ("memory.native", "sampled"), ("counters", "by perf_event"), ("syscalls", "every one"):
        require(settings[name].startswith((begins, "given up")), "%s: %s" % (name, settings[name]))
    for name in ("memory_cost_ns", "heap_cost_ns", "syscalls", "counters_cost_ns"):
        require(counters[name] > 0, "%s is %s" % (name, counters[name]))
    return text


def syscalls(world, python):
    """Each of a program that does little else: to trace them all would take far more than the budget."""
    world.prefix = tracing()
    with Target(python, WORK, "calls", counter_file(world)) as target:
        text = ledger(world, target, "--syscalls", "trace")
        counters = world.report()["capture"]["counters"]
        if not world.quick:
            text += "; " + outside(world, target, "--syscalls", "trace")
    require(0 < counters["syscalls_covered_ns"] < counters["syscalls_watched_ns"], "calls were traced all the time, or never: %s" % counters)
    return text


def short_of_cpu(world, python, test):
    return {"quota": with_quota, "threads": with_threads, "busy": with_neighbours}[test](world, python)


def ledger_most(report):
    settings = report["capture"]["settings"]
    more = sum(COUNTED_BEFOREHAND for name, said in (("syscalls", "every one"), ("counters", "by perf_event")) if settings[name].startswith(said))
    return LEDGER_MOST + (BEFOREHAND + more) / cpu_seconds(report)


def cpu_seconds(report):
    return report["capture"]["cpu_cores_ratio"] * report["capture"]["duration_ns"] / 1e9


def ledger(world, target, *words):
    """What hooks and samples took by their own count, of the CPU time that the target got."""
    world.attach(target.pid, "-d", "3s" if world.quick else "8s", *words).expect(0)
    report = world.report()
    told, coverage = report["budget"]["achieved_pct"], max((f["coverage"] for f in report["functions"]), default=0)
    require(told is not None and told <= ledger_most(report), "the budget of 5 %% was not kept: %s %% of %.2f s" % (told, cpu_seconds(report)))
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
