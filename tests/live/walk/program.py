"""Threads that stand still, deep in Python and C by turns. Prints READY <pid> once all of them do."""
import functools
import os
import sys
import threading
import time
import zlib

arrived = threading.Semaphore(0)


def wait(*_):
    arrived.release()
    time.sleep(1000)


class Compared:
    def __lt__(self, other):
        wait()


def sorting():
    sorted([Compared(), Compared()])


def mapping(depth=12):
    if depth == 0:
        return wait()
    return list(map(mapping, [depth - 1]))


def reducing():
    functools.reduce(lambda a, b: max([a, b], key=wait), range(3))


def locked():
    arrived.release()
    blocker.acquire()


def deep(depth=400):
    """Three native frames per call and more: beyond what is kept."""
    if depth == 0:
        return wait()
    return max([depth], key=lambda n: deep(n - 1))


class File:
    def write(self, data):
        wait()


def printing():
    print("x", file=File())


def numbers():
    try:
        import numpy
    except ImportError:
        return wait()
    numpy.apply_along_axis(lambda row: wait(), 0, numpy.zeros((2, 2)))


def reading():
    arrived.release()
    os.read(os.pipe()[0], 1)


blocker = threading.Lock()
blocker.acquire()
zlib.compress(b"x" * 100)
sys.setrecursionlimit(5000)
threading.stack_size(64 << 20)
bodies = [sorting, mapping, reducing, locked, deep, printing, numbers, reading]
for body in bodies:
    threading.Thread(target=body, daemon=True).start()
for _ in bodies:
    arrived.acquire()
time.sleep(0.3)
print("READY", os.getpid(), flush=True)
list(map(time.sleep, [1000]))
