"""Threads that stand still in known places, and their own word on where that is: READY PID, a line of truth, then silence until stdin closes.

TRUTH {"hex": sys.hexversion, "threads": {tid: [[name, qualname or null, file, line], ...innermost first]}}
"""
import asyncio
import functools
import json
import os
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs"))
from still import wait_until_still

READY = []
STOP = threading.Event()
HOLD = float(os.environ.get("HOLD", "60"))


def wait_here():
    READY.append(threading.get_ident())
    STOP.wait(HOLD)


class Model:
    def __init__(self):
        self.enter()

    def enter(self):
        wait_here()

    def __getattr__(self, name):
        wait_here()
        return name


def in_init():
    Model()


def in_attribute():
    model = object.__new__(Model)
    model.something


def in_generator():
    def outer():
        yield 1
        yield from inner()

    def inner():
        yield 2
        wait_here()
        yield 3

    return list(outer())


def in_callback():
    """C code between two runs of Python."""
    return sorted([3, 2, 1], key=lambda value: functools.reduce(lambda a, b: wait_here() if not STOP.is_set() and value == 1 else a, [1, 2]) or value)


def in_coroutine():
    async def leaf():
        wait_here()

    async def branch():
        await leaf()

    asyncio.new_event_loop().run_until_complete(branch())


def in_recursion(depth=40):
    if depth:
        in_recursion(depth - 1)
    else:
        wait_here()


def in_depth():
    """Deeper than a reader reads."""
    def down(depth):
        if depth:
            down(depth - 1)
        else:
            wait_here()

    down(2000)


def in_made_code():
    space = {"wait_here": wait_here}
    exec(compile("def größe_量_𝔵():\n    wait_here()\n\ngröße_量_𝔵()", "/tmp/ein ort/\u00fcber.py", "exec"), space)


def in_surrogate():
    exec(compile("wait_here()", "/tmp/\udcff", "exec"), {"wait_here": wait_here})


def in_comprehension():
    return [wait_here() for _ in range(1)]


def stack_of(frame):
    rows = []
    while frame:
        code = frame.f_code
        file = re.sub("[\ud800-\udfff]", "\ufffd", code.co_filename)
        rows.append([code.co_name, getattr(code, "co_qualname", None), file, code.co_firstlineno])
        frame = frame.f_back
    return rows


def teller():
    while len(READY) < len(PLACES) + 1:
        time.sleep(0.01)
    wait_until_still()
    tids = {thread.ident: thread.native_id for thread in threading.enumerate()}
    me = threading.get_ident()
    frames = sys._current_frames()
    told = {tids[ident]: stack_of(frame) for ident, frame in frames.items() if ident != me}
    print("READY %d\nTRUTH %s" % (os.getpid(), json.dumps({"hex": sys.hexversion, "me": tids[me], "threads": told})), flush=True)
    sys.stdin.read()
    STOP.set()


PLACES = [in_init, in_attribute, in_generator, in_callback, in_coroutine, in_recursion, in_depth, in_made_code, in_surrogate, in_comprehension]


def main():
    sys.setrecursionlimit(10000)
    threading.stack_size(64 << 20)
    for place in PLACES:
        threading.Thread(target=place, daemon=True).start()
    threading.Thread(target=teller, daemon=True).start()
    wait_here()


main()
