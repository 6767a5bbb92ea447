"""What the tests share."""
import os
import subprocess
import sys
import textwrap
import time


def run_python(text, cwd=None, **env):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, cwd=cwd, env=dict(os.environ, **env), timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def burn(seconds):
    """Of CPU time, so that a busy machine changes nothing of what is sampled."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


class NoRepr:
    def __repr__(self):
        raise RuntimeError("half built")


CIRCLE = {}
CIRCLE["self"] = CIRCLE
REFUSED = [{(1, 2): 3}, CIRCLE, {"o": NoRepr()}, {(1, 2): "x" * 10000}]
TOLD = ["{(1, 2): 3}", "{'self': {...}}", "<metadata without a repr()>", {"cut": repr({(1, 2): "x" * 10000})[:900]}]

# Code after which refuse(PTRACE, *VM) takes these calls from a program, as where Yama's ptrace_scope is 3, or a container's seccomp filter is strict; what it starts inherits that.
REFUSE = """
import ctypes, struct
def refuse(*numbers):
    code = [(0x20, 0, 0, 0)] + [(0x15, len(numbers) - i, 0, number) for i, number in enumerate(numbers)] + [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050001)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in code))
    filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(filter)) == 0, ctypes.get_errno()
    assert libc.ptrace(0x4206, 1, 0, 0) == -1 and ctypes.get_errno() == 1
PTRACE, PERF, VM = 101, 298, (310, 311)
"""
