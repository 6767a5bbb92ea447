"""Threads that go from Python to C and back all the time: sort keys, qsort's comparisons, folds, generators, exceptions. READY PID, then work for SECS."""
import ctypes
import functools
import os
import random
import threading
import time

END = time.monotonic() + float(os.environ.get("SECS", "60"))
LIBC = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def compare(a, b):
    return (a[0] > b[0]) - (a[0] < b[0])


class Thing:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value

    @property
    def doubled(self):
        return self.value * 2


def items(count):
    for number in range(count):
        yield from (number, number + 1)


def deep(depth):
    if depth:
        return deep(depth - 1) + 1
    return len(sorted(range(5), key=lambda number: functools.reduce(lambda a, b: a + b, items(number), 0)))


def work(c_compare):
    while time.monotonic() < END:
        numbers = [random.randrange(1000) for _ in range(20)]
        array = (ctypes.c_int * 20)(*numbers)
        LIBC.qsort(array, 20, 4, c_compare)
        sorted([Thing(number) for number in numbers], key=lambda thing: thing.doubled)
        sorted(Thing(number) for number in numbers)
        deep(30)
        try:
            functools.reduce(lambda a, b: {}[b], numbers)
        except KeyError:
            pass


for _ in range(2):
    threading.Thread(target=work, args=(COMPARE(compare),), daemon=True).start()
print("READY", os.getpid(), flush=True)
work(COMPARE(compare))
