"""Packages of the package index that tests need, each in the one version that pypi.txt says: a new release of somebody else's breaks no test. They lie outside the tree."""
import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess

from harness import Fail, Skip, tail

PINS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pypi.txt")
BROUGHT = {"pip", "setuptools", "inferscope"}  # by the environment itself, and by the tests
SECONDS = 300
ASK = """import importlib.metadata, json, sys
print(json.dumps([list(sys.version_info[:2]), {one.metadata["Name"]: one.version for one in importlib.metadata.distributions()}]))"""


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(version):
    """{name: version} for that Python, such as (3, 12)."""
    found = {}
    with open(PINS) as file:
        for line in file:
            name, pinned, sign, minor = re.fullmatch(r'(?:([\w.-]+)==([\w.]+)(?: *; *python_version *(<|>=) *"3\.(\d+)")?)? *(?:#.*)?\n', line).groups()
            if name and (not sign or (version < (3, int(minor))) == (sign == "<")):
                found[normal(name)] = pinned
    return found


def requirements(names, version):
    """NAMES with their versions, as pip wants them."""
    known = pins(version)
    missing = [name for name in names if normal(name) not in known]
    if missing:
        raise Fail("%s: no version of it for Python %d.%d in %s" % (", ".join(missing), *version, PINS))
    return ["%s==%s" % (name, known[normal(name)]) for name in names]


@contextlib.contextmanager
def alone(folder):
    """One at a time, of all suites that run: two pips in one FOLDER leave something that is neither's."""
    os.makedirs(os.path.dirname(os.path.abspath(str(folder))), exist_ok=True)
    with open(str(folder) + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(*command):
    return subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS,
                          env={key: value for key, value in os.environ.items() if not key.startswith(("INFERSCOPE", "PYTHON"))})


def installed(interpreter):
    """The version of an environment's Python, and {name: version} of what it has."""
    version, have = json.loads(run(interpreter, "-c", ASK).stdout)
    return tuple(version), {normal(name): its for name, its in have.items()}


def environment(folder, python, names, *words):
    """Its interpreter: of the environment FOLDER with the packages NAMES, of the Python that it was first made with. WORDS: for pip."""
    with alone(folder):
        return environment_alone(folder, python, names, *words)


def environment_alone(folder, python, names, *words):
    interpreter = os.path.join(str(folder), "bin/python3")
    whole = os.path.exists(interpreter) and run(interpreter, "-m", "pip", "--version").returncode == 0  # else whoever made it was killed
    if not whole and run(python, "-m", "venv", "--clear", folder).returncode:
        raise Skip("no virtual environment can be made in %s: not installed here" % folder)
    version, have = installed(interpreter)
    wanted = requirements(names, version)
    if all(have.get(normal(name)) == pins(version)[normal(name)] for name in names):
        return interpreter
    done = run(interpreter, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--constraint", PINS, *words, *wanted)
    if done.returncode:
        raise Skip("%s: not installed here, and the package index does not answer: %s" % (" ".join(wanted), tail(done.stdout)))
    strangers = set(installed(interpreter)[1]) - set(pins(version)) - BROUGHT
    if strangers:
        raise Fail("%s came along, without a version in %s" % (", ".join(sorted(strangers)), PINS))
    return interpreter


def packages(folder, python, names, version):
    """NAMES and no more in FOLDER, for another Python's path. PYTHON's pip fetches them, which would ask PYTHON what else they need."""
    with alone(folder):
        return packages_alone(folder, python, names, version)


def packages_alone(folder, python, names, version):
    wanted = requirements(names, version)
    marker = os.path.join(str(folder), ".complete")
    try:
        with open(marker) as file:
            if file.read().split() == wanted:
                return folder
    except OSError:
        pass
    shutil.rmtree(folder, ignore_errors=True)
    done = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", folder, "--python-version", "%d.%d" % version, "--only-binary=:all:", *wanted)
    if done.returncode:
        raise Skip("%s: not installed here, and the package index does not answer: %s" % (" ".join(wanted), tail(done.stdout)))
    with open(marker, "w") as file:
        file.write("\n".join(wanted))
    return folder
