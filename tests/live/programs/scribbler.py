"""Writes over everything it shares with InferScope, while it is measured: python scribbler.py SECONDS. Prints READY <pid>, then OK and how often."""
import mmap
import os
import random
import sys
import time


def climb(n):
    return 1 if n < 2 else climb(n - 1) + climb(n - 2)


def lanes():
    """A mapping of its own of the lanes, which stays when they are unmapped; None when there are none."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "inferscope-lanes" in line:
                fd = os.open("/proc/self/map_files/" + "-".join("%x" % int(part, 16) for part in line.split()[0].split("-")), os.O_RDWR)
                try:
                    return mmap.mmap(fd, 0)
                finally:
                    os.close(fd)


def main():
    dice, written, end = random.Random(int(time.time())), 0, time.time() + float(sys.argv[1])
    print("READY", os.getpid(), flush=True)
    while time.time() < end:
        memory = lanes()
        climb(10)
        if memory:
            time.sleep(0.2)  # it is armed first
            stop = time.time() + 1
            while time.time() < min(stop, end):
                at = dice.randrange(0, (1 << 18 if dice.random() < 0.5 else 1 << 23) - 64)
                word = dice.choice([os.urandom(64), b"\xff" * 64, bytes(64), b"\1\0\0\0" * 16])[:dice.choice([4, 8, 64])]
                memory[at:at + len(word)] = word
                written += 1
                if not written % 64:
                    climb(8)
            memory.close()
        time.sleep(0.01)
    print("OK" if climb(10) == climb(10) and written else "FAIL", written, flush=True)


main()
