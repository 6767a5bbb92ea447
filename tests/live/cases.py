"""Situations that broke other profilers (the programs dNN_*.py). Each judges itself; here it is attached to twice while it does, the second time with
everything on. EVERYTHING_FIRST=1: the first time, too.

They are found in INFERSCOPE_CASES, else in ../shared/cases beside the source tree; without them each test is a skip with that reason."""
import glob
import os
import time

from harness import EVERYTHING, TOP, Skip, Target, require, tail

# case: exit statuses that may come, words the message must have when it is a refusal, whether a second attach makes sense
CASES = {
    "d01": ((0,), None, True), "d02": ((0,), None, True),
    "d03": ((6,), "traced", False), "d04": ((6,), "stopped", False),
    "d05": ((0,), None, True), "d06": ((0,), None, True), "d07": ((0,), None, True), "d08": ((0,), None, True),
    "d09": ((0,), None, True), "d10": ((0,), None, True), "d11": ((0,), None, True),
    "d12": ((0,), None, False), "d13": ((0,), None, False), "d14": ((0,), None, True), "d15": ((0,), None, True), "d16": ((0,), None, True),
    "d17": ((0,), None, True), "d18": ((0,), None, True), "d19": ((0,), None, True),
    "d20": ((0, 5), None, True), "d21": ((0,), None, True),
}
# These end, or become another program, half way through: they must do it while they are measured.
ENDING = ("d12", "d13", "d16")
QUICK = ["3.8.18", "3.11.7", "3.13.0", "forky"]


def folder():
    return os.path.abspath(os.environ.get("INFERSCOPE_CASES") or os.path.join(TOP, "../shared/cases"))


def tests(world):
    for case in CASES:
        for python in world.pythons:
            if world.quick and (python.name not in QUICK or QUICK.index(python.name) != int(case[1:]) % len(QUICK)):
                continue
            yield "cases/%s/%s" % (case, python.name), lambda w, p=python, c=case: run_case(w, p, c)


def program(case):
    found = glob.glob(os.path.join(folder(), case + "_*.py"))
    if not found:
        raise Skip("no %s_*.py in %s (INFERSCOPE_CASES)" % (case, folder()))
    return found[0]


def run_case(world, python, case):
    statuses, words, twice = CASES[case]
    path = program(case)
    seconds = 8 if world.quick else 14
    with Target(python, path, cwd=os.path.dirname(path), env={"CASE_SECS": str(seconds)}, ready=40) as target:
        pid = target.pid
        for number in range(2 if twice else 1):
            time.sleep(1)
            if not os.path.exists("/proc/%d" % pid):
                break
            length = seconds if case in ENDING and not number else max(2, seconds // 4)
            options = EVERYTHING if number or os.environ.get("EVERYTHING_FIRST") else ()
            attach = world.attach(pid, "-d", "%ds" % length, *options, report="%s-%d.json" % (case, number))
            status = attach.wait(60)
            require(status in statuses or (case in ENDING and number and status == 3), "attach %d ended with %s instead of %s: %s" % (number + 1, status, statuses, tail(attach.err)))
            if words and status:
                require(words in attach.err, "the message does not say '%s': %s" % (words, tail(attach.err)))
            if case == "d03":
                require(str(target.child.pid) in attach.err, "the message does not name the tracer %d: %s" % (target.child.pid, tail(attach.err)))
            if status == 0:
                report = world.report("%s-%d.json" % (case, number))
                check_report(report, case)
                if case in ENDING and not number:
                    require(report["capture"]["duration_ns"] < 0.9e9 * length, "it did not notice the target's end for %.1f s" % (report["capture"]["duration_ns"] / 1e9))
        status, last = target.finish(seconds + 60)
        if status == 77 or last.startswith("SKIP"):
            raise Skip(last[5:])
        require(status == 0, "the program's own verdict: %s (exit status %s) %s" % (tail(last), status, target.errors()))


def check_report(report, case):
    require(report["verdict"]["class"], "no verdict")
    if case == "d15":
        names = {t["name"]: t for t in report["threads"]}
        for name in ("T-only_sleeps", "T-waits_lock"):
            thread = next((t for n, t in names.items() if n and n.startswith(name[:15])), None)
            require(thread, "no thread is called %s: %s" % (name, sorted(n for n in names if n)))
            require(thread["cpu_ns"] < 0.2 * thread["wall_ns"], "%s looks like CPU work: %s" % (name, thread))
