"""Samples beside where the time goes: threads by the names that the program gave them, and a rate that gives way to the budget."""
import os
import re
import time

import pypi
from harness import PROGRAMS, Python, Skip, Target, require, switches_of, tail

PLANTED, WORK, GREEN = (os.path.join(PROGRAMS, name) for name in ("planted.py", "work.py", "green.py"))
CROWD, MEMBERS, MEMBERS_QUICK, LONGER_MS = os.path.join(PROGRAMS, "crowd.py"), 3000, 500, 200  # few in the short form: 3 000 take the CPUs from all that is tried beside them
# way: what stands before the command, options; with few descriptors perf_event ends after some threads, and the next way takes over
CROWD_WAYS = {"perf": ([], []), "perf for few": (["prlimit", "--nofile=256:256"], []), "hold": ([], ["--native", "hold"]), "perf for few, hold": (["prlimit", "--nofile=256:256"], ["--native", "both"])}
LEAST_SWITCH_NS = 1500  # so much longer a switch takes with perf_event, at least
CACHE = os.environ.get("GREENLETS_CACHE", "/var/cache/inferscope")
QUICK = ["3.8.18", "3.11.7", "3.13.0", "forky"]


def tests(world):
    for python in world.pythons:
        if world.quick and python.name not in QUICK:
            continue
        for name, test in (("names", names), ("placed", placed), ("budget-perf", budget_perf), ("budget-hold", budget_hold), ("switches", switches), ("greenlets", greenlets), ("crowd", crowd)):
            if test is greenlets and (python.view or python.version > (3, 13)):
                continue  # gevent is for this machine's own Pythons
            if test is switches and python.view:
                continue  # its work is counted in a file of this machine
            yield "sampling/%s/%s" % (python.name, name), lambda w, p=python, t=test: t(w, p)


def names(world, python):
    with Target(python, PLANTED, "locks") as target:
        world.attach(target.pid, "-d", "1s", "--hook", "none").expect(0)
        called = {thread["tid"]: thread["name"] for thread in world.report()["threads"]}
        target.finish()
    wanted = {"MainThread", "stdin"} | {"worker-%d" % i for i in range(6)}
    require(wanted <= set(called.values()) and not any("python" in name for name in called.values()), "threads are called %s" % called)


def placed(world, python):
    """Samples of a loop in Python have Python frames, also where nothing names the interpreter's loop (Debian's 3.14 and 3.15)."""
    with Target(python, PLANTED, "alone") as target:
        before = cpu_of(target.pid)
        world.attach(target.pid, "-d", "2s", "--hook", "none", "--rate", "200").expect(0)
        ran_ns = cpu_of(target.pid) - before
        report = world.report()
    whole = python_ns = 0
    for stack in report["stacks"]:
        kinds = {report["functions"][i]["kind"] for i in stack["frames"] if i is not None}
        whole += stack["cpu_self_ns"]
        python_ns += stack["cpu_self_ns"] if "python" in kinds else 0
    require(whole > 0.3 * ran_ns and python_ns > 0.9 * whole, "%d of %d ms have Python frames; it ran for %d ms" % (python_ns / 1e6, whole / 1e6, ran_ns / 1e6))


def lowered(world, python, *options):
    """Rate of a busy thread's samples, with the warning that says so."""
    with Target(python, PLANTED, "busy") as target:
        attach = world.attach(target.pid, "-d", "2s", "--hook", "none", "--rate", "1000", *options).expect(0)
        report = world.report()
        target.finish()
    settings = report["capture"]["settings"]
    if "perf_event" not in settings["sampler.running"] and "hold" not in options:
        raise Skip("this kernel permits no perf_event: %s" % settings["sampler.running"])
    rate = float(settings["rate_hz"])
    require(re.search("were lowered to %.0f per second.*--max-overhead" % rate, attach.err), "nothing says that the rate is %.0f: %s" % (rate, tail(attach.err)))
    return rate, report


def budget_perf(world, python):
    """A sample of 32 KiB takes some 5 to 100 us of its thread's time: a thousand of them are more than 0.1 %."""
    rate, report = lowered(world, python, "--max-overhead", "0.1%")
    taken = report["capture"]["counters"]["sampler_perf_cost_ns"]
    require(10 <= rate <= max(10, 1e6 / taken), "%.0f samples per second, of %d ns each" % (rate, taken))
    return "%.0f per second, %d ns each" % (rate, taken)


def budget_hold(world, python):
    """A hold takes some 10 us and more: 0.2 % of 2 s are 400 of them at most."""
    rate, report = lowered(world, python, "--native", "hold", "--max-overhead", "0.2%")
    holds, stolen = (report["capture"]["counters"][name] for name in ("sampler_holds", "sampler_stolen_ns"))
    note = "%.0f looks per second, %d holds, stood still for %.2f ms" % (rate, holds, stolen / 1e6)
    require(0 < holds < 500 and rate < 500, note)  # looks alone would be some 1500
    return note


def with_gevent(python):
    folder = os.path.join(CACHE, "gevent-" + python.name)
    return Python(python.name, [pypi.environment(folder, python.argv[0], ["gevent", "greenlet", "zope-event", "zope-interface"], "--no-deps", "--only-binary=:all:")], python.version)


def switches(world, python):
    """Where switches of threads that perf_event samples cost more than half of the budget it is on by turns, which is said, and the ledger keeps to the budget; where that is far too little it is given up."""
    with open(world.path("counter"), "wb") as f:
        f.truncate(16)
    with Target(python, WORK, "handoff", world.path("counter")) as target:
        before = switches_of(target.pid)
        always = switches_at(world, target, "1s", 100)
        rate = (switches_of(target.pid) - before) / always["cpu_ns"] * 1e9
        budget = rate * LEAST_SWITCH_NS / 1e7  # percent; half of it pays for half of the time, or less
        turns, hopeless = switches_at(world, target, "5s", budget), switches_at(world, target, "2s", 0.005)
    counters, said = turns["capture"]["counters"], turns["capture"]["settings"].get("sampler.running.turns", "")
    require(rate > 5000, "it switches %.0f times per second of its CPU time only" % rate)
    require("sampler.running.turns" not in always["capture"]["settings"] and always["capture"]["counters"]["sampler_switches_ns"] > 0, "turns at any price, or no price: %s" % always["capture"]["counters"])
    on, whole, spent = (counters[name] for name in ("sampler_perf_on_ns", "sampler_perf_open_ns", "sampler_switches_ns"))
    require(re.match(r"by perf_event for \d+ % of the time, else Python frames only: a switch of a thread takes \d+ ns longer", said) and 0 < on < 0.9 * whole, "no turns, or not said: %r, %s" % (said, counters))
    require(counters["sampler_perf_samples"] > 0 and counters["sampler_perf_threads"] > 1, "nothing by perf_event: %s" % counters)
    # Half of the budget, with a quarter of a second beforehand, and what a third of a second of being on costs: so long it may take to be noticed.
    may = budget / 200 * (turns["cpu_ns"] + 0.25e9) + 0.3e9 * always["capture"]["counters"]["sampler_switches_ns"] / always["capture"]["counters"]["sampler_perf_on_ns"]
    require(spent < may, "switches took %.1f ms longer, more than %.1f: %s" % (spent / 1e6, may / 1e6, counters))
    native, python_only = native_and_not(turns)
    require(native > 0 and python_only > 0, "%.0f ms with native frames, %.0f without" % (native / 1e6, python_only / 1e6))
    given_up = hopeless["capture"]["settings"].get("sampler.running.others", "")
    require(re.search(r"Python frames only; given up, as each switch of a thread took \d+ ns longer", given_up), "it is not given up, or not said: %r, %s" % (given_up, hopeless["capture"]["counters"]))
    require(hopeless["capture"]["counters"]["samples"] > 10 and hopeless["capture"]["counters"]["sampler_perf_threads"] == 0, "%s" % hopeless["capture"]["counters"])
    return "%.0f per CPU second, budget %.1f %%; on for %.0f %%, which took %.1f ms of %.1f; %.0f ms with native frames, %.0f without" % (rate, budget, 100 * on / whole, spent / 1e6, may / 1e6, native / 1e6, python_only / 1e6)


def switches_at(world, target, duration, budget):
    """The report of an attach with a budget of so many percent, and what the process ran meanwhile."""
    before = cpu_of(target.pid)
    world.attach(target.pid, "-d", duration, "--hook", "none", "--max-overhead", "%g%%" % budget).expect(0)
    report = world.report()
    if "perf_event" not in report["capture"]["settings"]["sampler.running"]:
        raise Skip("this kernel permits no perf_event: %s" % report["capture"]["settings"]["sampler.running"])
    return dict(report, cpu_ns=cpu_of(target.pid) - before)


def cpu_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:13]) * 1e9 / os.sysconf("SC_CLK_TCK")


def native_and_not(report):
    """CPU time of stacks with native frames, and of those without."""
    sums = [0, 0]
    for stack in report["stacks"]:
        kinds = {report["functions"][i]["kind"] for i in stack["frames"] if i is not None}
        sums["native" not in kinds] += stack["cpu_self_ns"]
    return sums


def greenlets(world, python):
    """Stacks are exchanged in the middle of calls, and samples still fit the calls that were open: one in twenty does not, at most. Where the budget leaves functions
    out, nobody sees by these that a greenlet came back, and samples go by their own frames: half of them, at most (not seen at all it would be nearly all)."""
    with Target(with_gevent(python), GREEN) as target:
        for seconds in (3, 9, 27):  # where others want the CPUs it gets little of their time
            world.attach(target.pid, "-d", "%ds" % seconds).expect(0)
            report = world.report()
            if report["quality"]["samples_count"] > 150:
                break
        status, last = target.finish()
        require(status == 0 and last.startswith("OK") and not target.errors(), "the target ended with %s, %s, stderr: %s" % (status, last, target.errors()))
    samples, unjoined = (report["quality"][name] for name in ("samples_count", "unjoined_samples_count"))
    names = {f["name"] for f in report["functions"]}
    left_out = any(note["key"] == "left_out" for note in report["quality"]["notes"])
    require(samples > 100 and unjoined < samples / (2 if left_out else 20), "%d of %d samples contradict the calls" % (unjoined, samples))
    require({"serve", "parse", "answer"} <= {name.split(".")[-1] for name in names}, "functions: %s" % sorted(names)[:20])
    return "%d of %d samples contradict the calls%s; %s" % (unjoined, samples, ", functions were left out" if left_out else "", last)


def longest_pause(target):
    """Milliseconds that main stood still at most, since it was asked last."""
    target.go()
    return float(target.expect("PAUSE", 30).split()[1])


def crowd(world, python):
    """3 000 threads (500 in the short form) that work a little each second, beside a main thread that computes: measured it stands still for no more than 200 ms longer than without.

    What the machine does beside us does not come again at each of three tries; what we do, does."""
    said = []
    with Target(python, CROWD, str(MEMBERS_QUICK if world.quick else MEMBERS), ready=60) as target:
        for way in ["perf", "perf for few, hold"] if world.quick else CROWD_WAYS:
            world.prefix, options = CROWD_WAYS[way]
            for _ in range(3):
                longest_pause(target)
                time.sleep(2)
                before = longest_pause(target)
                world.attach(target.pid, "-d", "2s" if world.quick else "5s", "--hook", "none", *options).expect(0)
                during = longest_pause(target)
                if during <= before + LONGER_MS:
                    break
            counters = world.report()["capture"]["counters"]
            said.append("%s: %.0f ms, before %.0f ms, held for %.1f ms in all" % (way, during, before, counters["sampler_stolen_ns"] / 1e6))
            require(during <= before + LONGER_MS, "; ".join(said))
        status, _ = target.finish()
        require(status == 0 and not target.errors(), "the target ended with %s, stderr: %s" % (status, target.errors()))
    return "; ".join(said)
