"""Programs with nothing wrong get no finding that calls for work, and a verdict that fits."""
import os
import shutil
import time

import pypi
from harness import PROGRAMS, Python, Target, require

HEALTHY = os.path.join(PROGRAMS, "healthy.py")
NUMPY = os.environ.get("NUMPY_VENV", "/var/cache/inferscope/venv-numpy")
QUICK = ["3.11.7", "3.13.0"]
OF_THE_MACHINE = {"cpu.neighbours", "cpu.cgroup_throttle"}  # they are told of what else runs here
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
FITS = {"layers": {"cpu_bound"}, "coroutines": {"unknown", "balanced", "cpu_bound"}, "server": {"unknown", "balanced", "cpu_bound"}}  # by how fast the machine is


def tests(world):
    yield "healthy/layers", layers
    for python in world.pythons:
        if python.view or (world.quick and python.name not in QUICK):
            continue
        for kind in ("coroutines", "server"):
            yield "healthy/%s/%s" % (python.name, kind), lambda w, p=python, k=kind: is_healthy(w, p, k)


def layers(world):
    interpreter = pypi.environment(NUMPY, shutil.which("python3"), ["numpy"])
    return is_healthy(world, Python("numpy", [interpreter], ()), "layers")


def findings(world, python, kind):
    """{rule: what it says}, and the verdict, of one attach."""
    with Target(python, HEALTHY, kind, env=ONE_THREAD) as target:
        time.sleep(1)  # imports and first requests
        world.attach(target.pid, "-d", "4s").expect(0)
    report = world.report()
    return {finding["rule"]: "%s %s: %s" % (finding["severity"], finding["rule"], finding["title"]) for finding in report["findings"]
            if finding["severity"] in ("medium", "high", "critical") and finding["rule"] not in OF_THE_MACHINE}, report["verdict"]


def is_healthy(world, python, kind):
    """A neighbour's burst is no fault of the program, though it may hold up its event loop: what is true of it is found again."""
    found, verdict = findings(world, python, kind)
    for rule in found and findings(world, python, kind)[0]:
        require(rule not in found, "twice: %s" % found.get(rule))
    require(verdict["class"] in FITS[kind], verdict["sentence"])
    return verdict["sentence"] + ("; once: " + "; ".join(found.values()) if found else "")
