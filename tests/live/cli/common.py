"""What the files of tests/live/cli share: the binary, programs that are measured, commands that must be refused."""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.dirname(HERE))
from harness import find_binary, require

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
    """Ends with this status, with one or two lines on stderr, within two seconds."""
    begin = time.monotonic()
    status, out, err = inferscope(*words, **how)
    took = time.monotonic() - begin
    require(status == expected, "%r ended with %d, not %d: %s" % (words, status, expected, err))
    lines = [line for line in err.splitlines() if not line.startswith("inferscope: warning")]
    require(1 <= len(lines) <= 2 and lines[0].startswith("inferscope: "), "%r said: %r" % (words, err))
    require(says is None or re.search(says, err), "%r did not say %r: %s" % (words, says, err))
    require(took < 2, "%r took %.1f s" % (words, took))
    return err


def read_link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


GIL_HELD = """
import ctypes, os, sys, time
def inner():
    return sum(range(2000))
print("READY", os.getpid(), flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    inner()
ctypes.PyDLL(None).sleep(int(sys.argv[2]))
end = time.monotonic() + 30
while time.monotonic() < end:
    inner()
"""


def held(before, seconds):
    return Busy(GIL_HELD.replace("sys.argv[1]", repr(before)).replace("sys.argv[2]", repr(seconds)))


def is_free(target):
    with open("/proc/%d/maps" % target.pid) as f:
        return "inferscope-lanes" not in f.read()
