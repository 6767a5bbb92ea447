"""Every Python, every backend, programs that know the truth: names, call counts, shares, verdicts."""
import ast
import os
import re
import time

from harness import PROGRAMS, Fail, Target, find_function, require, settle, state_of, tail

KNOWN = os.path.join(PROGRAMS, "known.py")
PLANTED = os.path.join(PROGRAMS, "planted.py")
KINDS = ["threads", "asyncio", "generators", "exceptions", "recursion", "ccalls"]
ALL_C_CALLS = {"setprofile", "monitoring"}  # backends that see every C call


def tests(world):
    for python in world.pythons:
        if world.quick and python.name in ("trixie", "sid"):
            continue
        yield "matrix/%s/busy" % python.name, lambda w, p=python: busy(w, p)
        if python.view:
            yield "matrix/%s/container" % python.name, lambda w, p=python: busy(w, p.in_container())
        yield "matrix/%s/verdicts" % python.name, lambda w, p=python: verdicts(w, p)
        yield "matrix/%s/analyze" % python.name, lambda w, p=python: analyze(w, p)
        for number, backend in enumerate(python.backends()):
            for kind in KINDS:
                if kind == "ccalls" and backend not in ALL_C_CALLS:
                    continue
                if world.quick and number and kind not in ("threads", "ccalls"):
                    continue
                yield "matrix/%s/%s/%s" % (python.name, backend, kind), lambda w, p=python, b=backend, k=kind: counts(w, p, b, k)
        if not python.view:  # run starts programs of its own root only
            yield "matrix/%s/run" % python.name, lambda w, p=python: launched(w, p)
        if not (world.quick and python.view):
            yield "matrix/%s/shares" % python.name, lambda w, p=python: shares(w, p, ["--max-overhead", "none"], 5.0 if w.quick else 1.0)
            yield "matrix/%s/shares-default" % python.name, lambda w, p=python: shares(w, p, [], 8.0 if w.quick else 4.0)


def definitions(path):
    """Name of each function in a program -> line of its code object, which is that of the first decorator."""
    with open(path) as f:
        tree = ast.parse(f.read())
    return {node.name: min([node.lineno] + [d.lineno for d in node.decorator_list]) for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def function_row(report, name, path):
    rows = find_function(report, name, os.path.basename(path))
    require(rows, "no function '%s' in the report; it has: %s" % (name, ", ".join(f["name"] for f in report["functions"][:15]) or "none"))
    require(len(rows) == 1, "'%s' has %d rows" % (name, len(rows)))
    return rows[0]


def check_verdict(report):
    verdict = report["verdict"]
    require(verdict["class"] in ("cpu_bound", "gpu_bound", "memory_bound", "balanced", "unknown"), "verdict.class is %r" % verdict["class"])
    require(0 <= verdict["confidence"] <= 1, "verdict.confidence is %r" % verdict["confidence"])
    return verdict["class"], verdict.get("reason") or ""


def unharmed(target):
    require(state_of(target.pid) in "RSD", "the target is in state %s afterwards" % state_of(target.pid))


def busy(world, python):
    """The plain attach: exit 0, a valid report, the hot function by name, file and line, a target that goes on."""
    with Target(python, PLANTED, "busy") as target:
        attach = world.attach(target.pid, "-d", "2s")
        attach.expect(0)
        report = world.report()
        spin = function_row(report, "spin", PLANTED)
        require(spin["line"] == definitions(PLANTED)["spin"], "spin is said to be at line %s" % spin["line"])
        require(spin["self_ns"] > 0 and spin["total_ns"] >= spin["self_ns"], "spin's times: %s" % spin)
        require(0 < spin["coverage"] <= 1, "coverage of spin is %s" % spin["coverage"])
        total = sum(f["cpu_self_ns"] for f in report["functions"])
        require(spin["cpu_self_ns"] > 0.5 * total, "spin has %.0f %% of the CPU time, it takes nearly all" % (100.0 * spin["cpu_self_ns"] / max(1, total)))
        require(report["threads"], "no threads in the report")
        check_verdict(report)
        require(attach.seconds < 40, "2 s of measuring took %.1f s" % attach.seconds)
        unharmed(target)
        status, last = target.finish()
        require(status == 0 and not target.errors(), "the target ended with %s, stderr: %s" % (status, target.errors()))


def verdicts(world, python):
    """Three troubles, three different answers."""
    seen = {}
    for kind in ("busy", "sleeping", "locks"):
        with Target(python, PLANTED, kind) as target:
            world.attach(target.pid, "-d", "2s" if world.quick else "3s").expect(0)
            seen[kind] = check_verdict(world.report())
            unharmed(target)
    require(len(set(seen.values())) == 3, "they are not told apart: %s" % seen)
    require(seen["busy"][0] == "cpu_bound", "the busy loop is called %s" % (seen["busy"],))
    require(seen["sleeping"][0] != "cpu_bound", "the sleeping server is called %s" % (seen["sleeping"],))
    return " ".join("%s=%s/%s" % (k, *v) for k, v in seen.items())


def analyze(world, python):
    """The kept trace gives the report again, byte for byte. Lines of the program are read when a report is made: where the program has another root they are not to be had later."""
    with Target(python, PLANTED, "busy") as target:
        world.attach(target.pid, "-d", "2s", "--source", "none", report="a.md", trace="t.iscope").expect(0)
    world.run("analyze", world.path("t.iscope"), "--source", "none", "-o", world.path("b.md")).expect(0)
    with open(world.path("a.md"), "rb") as a, open(world.path("b.md"), "rb") as b:
        one, two = a.read(), b.read()
    if one != two:
        first = next((pair for pair in zip(one.splitlines(), two.splitlines()) if pair[0] != pair[1]), "their lengths differ")
        raise Fail("analyze gives another report than attach: %s" % (first,))
    for name in ("json", "html", "text", "events"):
        for copy in "ab":
            world.run("analyze", world.path("t.iscope"), "-f", name, "-o", world.path(copy + "." + name)).expect(0)
        with open(world.path("a." + name), "rb") as a, open(world.path("b." + name), "rb") as b:
            one, two = a.read(), b.read()
        require(one == two, "%s differs from run to run" % name)
        require(len(one) > 100, "%s is empty" % name)


def compare_counts(report, truth):
    lines = definitions(KNOWN)
    wrong = []
    for name, calls in truth["calls"].items():
        row = function_row(report, name.rpartition(".")[2], KNOWN)  # before 3.11 code objects know no class
        if row["calls"] != calls:
            wrong.append("%s %d instead of %d" % (name, row["calls"], calls))
        elif row["precision"] != "exact":
            wrong.append("%s is called %s" % (name, row["precision"]))
        elif row["line"] != lines[name.rpartition(".")[2]]:
            wrong.append("%s is said to be at line %s" % (name, row["line"]))
    for name, calls in truth["c_calls"].items():
        got = sum(f["calls"] for f in find_function(report, name))
        if got != calls:
            wrong.append("%s() %d instead of %d" % (name, got, calls))
    quality = {key: value for key, value in report["quality"].items() if key.endswith("_count") and value}
    require(not wrong, "calls: %s; quality: %s" % ("; ".join(wrong), quality))


def counts(world, python, backend, kind):
    """Calls counted by the program against calls reported, with hooks that are never braked."""
    with Target(python, KNOWN, kind, "--rounds", "50" if world.quick else "200") as target:
        options = ["-d", "0", "--max-overhead", "none", "--hook", backend] + (["--c-calls", "all"] if kind == "ccalls" else [])
        attach = world.attach(target.pid, *options)
        settle(attach)
        target.go()
        truth = ast.literal_eval(target.expect("TRUTH", 90)[6:])
        require(truth["wrong"] == 0, "the program itself went wrong %d times" % truth["wrong"])
        time.sleep(0.2)
        attach.stop()
        attach.expect(0)
        status, _ = target.finish()
        require(status == 0 and not target.errors(), "the target ended with %s, stderr: %s" % (status, target.errors()))
    compare_counts(world.report(), truth)


def launched(world, python):
    """`run` sees the program from its first line, and gives its exit status."""
    command = world.run("run", "-o", world.path("r.json"), "--trace", "none", "--max-overhead", "none", "--python", python.argv[0], KNOWN, "threads", "--now", "--rounds", "50")
    command.expect(0)
    found = re.search(r"^TRUTH (.*)$", command.out, re.M)
    require(found, "the script's output is missing: %s" % tail(command.out))
    compare_counts(world.report(), ast.literal_eval(found.group(1)))


def shares(world, python, options, tolerance):
    """Shares of the parts against the program's own ledger."""
    seconds = 5 if world.quick else 20
    with Target(python, KNOWN, "shares", "--seconds", str(seconds)) as target:
        attach = world.attach(target.pid, "-d", "0", *options)
        settle(attach)
        target.go()
        truth = ast.literal_eval(target.expect("TRUTH", seconds + 60)[6:])["ledger"]
        attach.stop()
        attach.expect(0)
        target.finish()
    report = world.report()
    got = {name: function_row(report, name, KNOWN)["total_ns"] for name in truth}
    sum_truth, sum_got = sum(truth.values()), max(1, sum(got.values()))
    off = {name: 100.0 * got[name] / sum_got - 100.0 * truth[name] / sum_truth for name in truth}
    worst = max(off, key=lambda name: abs(off[name]))
    samples = sum(function_row(report, name, KNOWN)["samples_total_count"] for name in truth)
    if max(function_row(report, name, KNOWN)["coverage"] for name in truth) < 0.9:  # what was not seen is told by so many samples at most: three times what chance does
        tolerance = max(tolerance, 150.0 / max(1, samples) ** 0.5)
    require(abs(off[worst]) <= tolerance, "%s is %+.1f points off; all: %s" % (worst, off[worst], {k: round(v, 1) for k, v in off.items()}))
    return "worst %+.2f points" % off[worst]
