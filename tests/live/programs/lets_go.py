"""Lets go of the GIL and takes it again at once, every millisecond or so, until the end of stdin, beside programs that want whatever CPU is left: python lets_go.py. Prints READY <pid>."""
import os
import select
import subprocess
import sys


def next_one(x):
    return x + 1


def main():
    x = 0
    other = "import os, sys; os.nice(19)\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(100000): pass"
    others = [subprocess.Popen([sys.executable, "-c", other, str(os.getpid())], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for _ in range(min(4, len(os.sched_getaffinity(0))))]
    print("READY", os.getpid(), flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(30000):
            x = next_one(x)
    for other in others:
        other.kill()
    print("OK", flush=True)


main()
