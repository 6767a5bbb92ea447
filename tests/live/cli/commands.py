"""What the files of tests/live/cli share: the binary, programs that are measured, commands that must be refused."""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.dirname(HERE))
from harness import Attaching, find_binary, require, wait_for

BINARY = find_binary()
PYTHONS = (os.environ.get("PYTHONS") or sys.executable).split(":")
PYTHON = PYTHONS[-1]
BUSY = """
import os, time
def inner():
    return sum(range(2000))
print("READY", os.getpid(), flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    inner()
"""
NOBODY = 65534


class Busy:
    """A Python that works until the block ends."""

    def __init__(self, code=BUSY, argv=None, **how):
        self.child = subprocess.Popen((argv or [PYTHON]) + ["-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
        self.pid = int(self.child.stdout.readline().split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.communicate()


def inferscope(*words, env=None, stdin=None, user=None, timeout=60, cwd=None):
    """(status, stdout, stderr)"""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("INFERSCOPE") and k != "NO_COLOR"}
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, errors="replace", env=dict(clean, **(env or {})), input=stdin, user=user,
                          timeout=timeout, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def refuse(expected, *words, says=None, **how):
    """Ends with this status, with one or two lines on stderr, and soon: nothing is waited for."""
    begin = time.monotonic()
    status, out, err = inferscope(*words, **how)
    took = time.monotonic() - begin
    require(status == expected, "%r ended with %d, not %d: %s" % (words, status, expected, err))
    lines = [line for line in err.splitlines() if not line.startswith("inferscope: warning")]
    require(1 <= len(lines) <= 2 and lines[0].startswith("inferscope: "), "%r said: %r" % (words, err))
    require(says is None or re.search(says, err), "%r did not say %r: %s" % (words, says, err))
    require(took < 15, "%r took %.1f s" % (words, took))
    return err


def read_link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


KEEPER = """
import ctypes, os, select, sys
def inner():
    return sum(range(2000))
def work():
    while not select.select([0], [], [], 0)[0]:
        inner()
print("READY", os.getpid(), flush=True)
work()
os.read(0, 1)
print("KEEPS", flush=True)
ctypes.PyDLL(None).poll((ctypes.c_int * 2)(0, 1), 1, 120000)  # PyDLL: with the GIL
os.read(0, 1)
work()
"""


class Keeper(Busy):
    """A Python that works, and keeps the GIL between keep() and release()."""

    def __init__(self):
        super().__init__(KEEPER, stdin=subprocess.PIPE)

    def tell(self):
        self.child.stdin.write(b".")
        self.child.stdin.flush()

    def keep(self):
        self.tell()
        require(self.child.stdout.readline() == b"KEEPS\n", "it does not keep the GIL")

    def release(self):
        self.tell()
        wait_for(lambda: is_free(self), 30, "it did not free itself")
        require(self.child.poll() is None, "the target ended")


def measuring(target, *words, **how):
    """An attach that measures TARGET."""
    return Attaching([BINARY, "attach", target.pid, *words], **dict(dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), **how)).begun()


def is_free(target):
    with open("/proc/%d/maps" % target.pid) as f:
        return "inferscope-lanes" not in f.read()
