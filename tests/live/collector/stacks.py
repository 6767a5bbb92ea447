"""Cases of cases.py: deep stacks and small ones."""
import ctypes
import os
import struct
import sys
import threading

from programs import *
from session import *


def case_recursion():
    sys.setrecursionlimit(30000)
    result = []
    depth = 10000 if MINOR != 8 else 5000

    def work():
        for _ in range(3):
            result.append(recurse(depth))
    threading.stack_size(256 << 20)
    t = threading.Thread(target=lambda: result.append(during(work)))
    t.start()
    t.join()
    s = result.pop()
    assert result == [depth] * 3
    assert s.count('enter', 'recurse') == 3 * (depth + 1)
    assert s.page('unmatched') == 0


@on(11)
def case_small_stack():
    """Pure Python recursion needs no C stack on 3.11 and later; with our evaluator it would."""
    threading.stack_size(64 << 10)
    sys.setrecursionlimit(5000)
    result = []
    session = Session(max_overhead_ppm=50000).arm()
    for _ in range(3):
        t = threading.Thread(target=lambda: result.append(recurse(2000)))
        t.start()
        t.join()
    threading.stack_size(0)
    session.disarm()
    assert result == [2000] * 3


def case_very_deep():
    """100 000 calls deep, with hooks that come and go: without C stack from 3.11 on, with 200 MB of it before."""
    depth, result = 100000, []
    sys.setrecursionlimit(depth + 1000)
    threading.stack_size(8 << 20 if MINOR >= 11 else 200 << 20)
    for backend in (AUTO, SETPROFILE, SETTRACE) if MINOR <= 11 else (AUTO, SETTRACE):
        for ppm in 0, 50000:
            session = Session(backend=backend, max_overhead_ppm=ppm, subbufs=64, clock=1, ticks_per_second=ticks_per_second()).arm()
            for _ in range(2):
                t = threading.Thread(target=lambda: result.append(recurse(depth)))
                t.start()
                t.join()
            session.disarm()
    threading.stack_size(0)
    assert result and set(result) == {depth}, result


@on(8, 11)
def case_stack_is_left():
    """An evaluator stands on the program's C stack, and up to 3.10 a profile function makes calls take more of it: little of it, however deep the program goes and whatever the stack's size."""
    for backend in EVALUATOR, SETPROFILE, SETTRACE:
        stack_is_left(backend)


def stack_is_left(backend):
    stack = ctypes.PyDLL(os.environ['FOREIGN']).foreign_stack
    stack.restype = ctypes.c_ulong
    sys.setrecursionlimit(30000)

    def used(size, depth):
        found = []

        def dig(n):
            if n:
                dig(n - 1)
            else:
                found.append(stack())

        def run():
            found.append(stack())
            dig(depth)
        threading.stack_size(size)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return found[0] - found[1]
    for size, depth in (64 << 10, 50), (256 << 10, 250), (8 << 20, 8000):
        without = used(size, depth)
        session = Session(backend=backend, max_overhead_ppm=500000, subbufs=64).arm()
        with_hooks = used(size, depth)
        session.disarm()
        print('    backend %d, %d KiB: %d bytes more' % (backend, size >> 10, with_hooks - without))
        # 3.11 needs none for calls of Python functions: what is used then is all ours.
        assert with_hooks - without <= max(size / 50, 2048) + (size / 16 if MINOR == 11 else 0), (size, without, with_hooks)
        assert used(size, depth) == without
    threading.stack_size(0)


@on(12)
def case_armed_in_init():
    """What runs an inlined __init__ is a frame of the interpreter's own, and no call: its end would never be seen."""
    class Made:
        def __init__(self, work):
            work()

    def make(work):
        return Made(work)
    for _ in range(1000):
        make(int)
    box = []
    make(lambda: box.append(Session().arm()))
    tree(3)
    s = box[0].disarm().read().check()
    assert s.count('seed', 'make') == 1 and not [n for n in s.names.values() if n[2] == '__init__'], s.names


def case_deep_at_arm():
    """Ten thousand frames at arm: the innermost 256 are seeded, the rest is counted; all returns match."""
    sys.setrecursionlimit(30000)
    box = []

    def dig(n):
        if n:
            return dig(n - 1)
        box.append(Session().arm())
        tree(4)
        return 0

    def run():
        dig(9000)
        box[0].disarm()
    threading.stack_size(256 << 20)
    t = threading.Thread(target=run)
    t.start()
    t.join()
    s = box[0].read().check()
    begin = [e for lane in s.threads.values() for e in lane if e[1] == 'stack_begin' and struct.unpack_from('<I', e[4])[0]]
    assert begin, 'nothing was omitted'
    assert s.count('enter', 'tree') == expected_tree(4)
