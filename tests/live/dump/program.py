"""Threads that stand still in known places, with Python, C and Python again on their stacks, and their own word on where that is, line by line.

READY PID, TRUTH {"threads": {tid: [[qualified name or name, file, line], … outermost first]}, "locals": {…}}, then silence until stdin closes."""
import ctypes
import functools
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs"))
from still import wait_until_still

READY = []
STOP = threading.Event()
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
LIBC = ctypes.CDLL(None)


def wait_here():
    READY.append(threading.get_ident())
    STOP.wait(
        float(os.environ.get("HOLD", "60"))
    )


def in_sorted():
    """Python → list.sort → Python → functools.reduce → Python."""
    def key(value):
        def fold(a, b):
            if value == 1 and not STOP.is_set():
                wait_here()
            return a
        return functools.reduce(
            fold,
            [value, 2],
        )
    return sorted(
        [3, 2, 1],
        key=key)


def in_callback():
    """Python → libc's qsort → Python."""
    def compare(a, b):
        if not STOP.is_set():
            wait_here()
        return a[0] - b[0]
    numbers = (ctypes.c_int * 3)(3, 2, 1)
    LIBC.qsort(numbers, 3, ctypes.sizeof(ctypes.c_int), COMPARE(compare))


def in_generator():
    def outer():
        yield 1
        yield from inner()

    def inner():
        yield 2
        wait_here()
        yield 3

    return list(outer())


def in_loop():
    for turn in range(3):
        if turn == 2:
            try:
                raise KeyError
            except KeyError:
                wait_here()


def in_locals(word="it's\n", *rest, number=-(1 << 62), **named):
    yes, nothing, ratio, data = True, None, 0.1, b"\x00ab'"
    items, table, seen, many, huge = [1, 2], {"k": 1}, {1}, "x" * 1000, 1 << 200
    later = lambda: ratio
    wait_here()
    return yes, nothing, data, items, table, seen, many, huge, later


LOCALS = {"word": "'it\\'s\\n'", "rest": "<tuple, 2 items>", "number": str(-(1 << 62)), "named": "<dict, 1 item>", "yes": "True", "nothing": "None", "ratio": "0.1",
          "data": "b'\\x00ab\\''", "items": "<list, 2 items>", "table": "<dict, 1 item>", "seen": "<set, 1 item>", "huge": "<int of 210 bits>", "later": "<function>"}


def in_line_600():
    exec(compile("\n" * 600 + "wait_here()", "far.py", "exec"), {"wait_here": wait_here})


def rows_of(frame):
    rows = []
    while frame:
        code = frame.f_code
        rows.insert(0, [getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return rows


def teller():
    while len(READY) < len(PLACES) + 1:
        time.sleep(0.01)
    wait_until_still()
    tids = {thread.ident: thread.native_id for thread in threading.enumerate()}
    frames = sys._current_frames()
    told = {tids[ident]: rows_of(frame) for ident, frame in frames.items() if ident != threading.get_ident()}
    print("READY %d\nTRUTH %s" % (os.getpid(), json.dumps({"threads": told, "locals": LOCALS})), flush=True)
    sys.stdin.read()
    STOP.set()


PLACES = [in_sorted, in_callback, in_generator, in_loop, lambda: in_locals("it's\n", 1, 2, other=3), in_line_600]


def main():
    for place in PLACES:
        threading.Thread(target=place, daemon=True).start()
    threading.Thread(target=teller, daemon=True).start()
    wait_here()


main()
