"""However a program was started, attaching works the same: renamed, as a module, embedded in another program, by another user."""
import os
import shutil
import subprocess

import matrix
from harness import PROGRAMS, Python, Skip

QUICK = ["3.8.18", "3.12.1", "system"]


def tests(world):
    for python in world.pythons:
        if python.view or (world.quick and python.name not in QUICK):
            continue
        for name, way in (("renamed", renamed), ("module", module), ("embedded", embedded), ("other-user", other_user)):
            # Interpreters in a home folder are closed to others: only the distribution's own can be somebody else's.
            if way is other_user and python.argv[0].startswith(os.path.expanduser("~")):
                continue
            yield "ways/%s/%s" % (python.name, name), lambda w, p=python, f=way: matrix.busy(w, f(w, p))


def variant(python, argv):
    return Python(python.name, argv, python.version)


def renamed(world, python):
    return variant(python, ["bash", "-c", "exec -a 'ray::Actor(x) ) R 1 (' \"$0\" \"$@\"", python.argv[0]])


def module(world, python):
    class Module(Python):
        def command(self, path, cwd):
            return self.argv + ["-m", os.path.splitext(os.path.basename(path))[0]]
    os.environ["PYTHONPATH"] = PROGRAMS
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    return Module(python.name, python.argv, python.version)


def embedded(world, python):
    code = "import sys, sysconfig as s; v = s.get_config_var; print(s.get_paths()['include'], v('LIBDIR'), v('LDVERSION'), v('Py_ENABLE_SHARED'), sys.base_prefix, sep='\\n')"
    include, folder, version, shared, prefix = subprocess.run(python.argv + ["-c", code], capture_output=True, text=True, check=True).stdout.split("\n")[:5]
    if shared != "1" or not os.path.exists(os.path.join(include, "Python.h")):
        raise Skip("no libpython or headers of %s" % python.name)
    if not shutil.which("cc"):
        raise Skip("no C compiler")
    out = world.path("embed")
    command = ["cc", "-w", "-o", out, os.path.join(PROGRAMS, "embed.c"), "-I" + include, "-L" + folder, "-Wl,-rpath," + folder, "-lpython" + version]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Skip("embed.c does not build here: %s" % done.stderr[-300:])
    os.environ["PYTHONHOME"] = prefix
    return variant(python, [out])


def other_user(world, python):
    if os.geteuid() != 0:
        raise Skip("needs root")
    return variant(python, ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] + python.argv)
