"""Calls, beside a native thread that forks for 4 s after each line on stdin, and says FORKS: python slow_fork.py LIBRARY, built from slow_fork.c.
Prints READY <pid>. Ends at the end of stdin."""
import ctypes
import os
import select
import sys


def step(n):
    return n + 1


def main():
    forks = ctypes.CDLL(sys.argv[1])
    if forks.begin():
        sys.exit("no thread")
    print("READY", os.getpid(), flush=True)
    while True:
        for i in range(100):
            step(i)
        if select.select([0], [], [], 0.002)[0]:
            if not os.read(0, 100):
                break
            forks.tell()
    print("OK", flush=True)
    os._exit(0)


main()
