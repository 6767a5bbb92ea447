"""Programs whose allocations are known. The first argument says which; each prints READY <pid>, and goes on at a line of its input.

known       allocates BYTES in blocks of BLOCK, keeps those of KEPT bytes more, prints TRUTH: what it allocated, and what of it lives (by tracemalloc with a second argument)
leak        keeps a megabyte every 10 ms, up to 300 of them, beside as much that it lets go; then waits
garbage     makes cycles beside a million objects that live, and collects them, four times, after a second line of its input
traced      with tracemalloc at work: allocates and releases, prints LOST: bytes that tracemalloc's sums are off, at the end of its input
idle        waits"""
import gc
import os
import sys
import time
import tracemalloc

BLOCK = 60000
BYTES = 4 << 30
KEPT = 256 << 20
MEGABYTE = 1 << 20
OVERHEAD = 33  # of a bytes object


def churn():
    for _ in range(BYTES // BLOCK):
        bytes(BLOCK)


def keep():
    return [bytes(BLOCK) for _ in range(KEPT // BLOCK)]


def known():
    kept = keep()
    churn()
    size = BLOCK + OVERHEAD
    lives = len(kept) * size
    if tracemalloc.is_tracing():
        line = keep.__code__.co_firstlineno + 1
        traces = tracemalloc.take_snapshot().statistics("lineno")
        lives = sum(s.size for s in traces if s.traceback[0].filename == __file__ and s.traceback[0].lineno == line)
    print("TRUTH %d %d" % ((len(kept) + BYTES // BLOCK) * size, lives), flush=True)
    sys.stdin.readline()


def leak():
    kept = []
    for _ in range(300):
        kept.append(b"x" * MEGABYTE)
        brief = b"y" * MEGABYTE
        time.sleep(0.01)
    del brief
    print("LEAKED", flush=True)
    sys.stdin.readline()


def garbage():
    living = [[i] for i in range(1000000)]
    print("BUILT", flush=True)
    sys.stdin.readline()
    for _ in range(4):
        knots = []
        for _ in range(1000):
            knot = []
            knot.append(knot)
            knots.append(knot)
        del knots
        gc.collect()
    print("COLLECTED %d" % len(living), flush=True)
    sys.stdin.readline()


def block(size):
    return bytes(size)


def traced():
    kept, size = [], 1000
    tracemalloc.start()
    line = block.__code__.co_firstlineno + 1
    while not os.path.exists(sys.argv[2]):
        kept.append(block(size))
        if len(kept) > 2000:
            del kept[:1000]
    statistics = tracemalloc.take_snapshot().statistics("lineno")
    seen = sum(s.size for s in statistics if s.traceback[0].filename == __file__ and s.traceback[0].lineno == line)
    print("LOST %d" % (len(kept) * (size + OVERHEAD) - seen), flush=True)


def idle():
    sys.stdin.readline()


if __name__ == "__main__":
    if sys.argv[1] == "known" and len(sys.argv) > 2:
        tracemalloc.start()
    print("READY %d" % os.getpid(), flush=True)
    sys.stdin.readline()
    globals()[sys.argv[1]]()
