"""Programs whose allocations are known. The first argument says which; each prints READY <pid>, and goes on at a line of its input.

known       allocates BYTES in blocks of BLOCK, keeps those of KEPT bytes more, prints TRUTH: what it allocated, and what of it lives (by tracemalloc with a second argument)
dear        allocates small blocks for four seconds, so many that passing them on is dear; prints TRUTH
leak        keeps a megabyte every 10 ms, up to 300 of them, beside as much that it lets go; then waits
garbage     makes cycles beside a million objects that live, and collects them, four times, after a second line of its input
traced      with tracemalloc at work: allocates and releases, prints LOST: bytes that tracemalloc's sums are off, at the end of its input
native      a library allocates COUNT_NATIVE blocks in C on the main thread, then as many on each of 4 threads of its own; prints WRONG: how often a block was damaged
arrays      numpy allocates COUNT_NUMPY arrays of either kind; prints TRUTH and their bytes
tracked     under memray, which writes to the file of the second argument, until that of the third is there: prints TRUTH: bytes of the blocks that it allocated
idle        waits; at each line of its input prints HELD: what the interpreter's allocators are"""
import ctypes
import gc
import os
import sys
import threading
import time
import tracemalloc

BLOCK = 60000
BYTES = 4 << 30
KEPT = 256 << 20
BLOCK_NATIVE = 10048
COUNT_NATIVE = 40000
BLOCK_NUMPY = 100000
COUNT_NUMPY = 25000
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


def dear():
    count, end = 0, time.monotonic() + 4
    while time.monotonic() < end:
        for _ in range(1000):
            bytes(200)
        count += 1000
    print("TRUTH %d" % (count * (200 + OVERHEAD)), flush=True)
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


def here(library):
    return library.storm_here(ctypes.c_long(COUNT_NATIVE), ctypes.c_size_t(BLOCK_NATIVE))


def native():
    wrong = here(library) + library.storm(4, ctypes.c_long(COUNT_NATIVE), ctypes.c_size_t(BLOCK_NATIVE))
    print("WRONG %d" % wrong, flush=True)
    sys.stdin.readline()


def fill(numpy):
    for _ in range(COUNT_NUMPY):
        numpy.empty(BLOCK_NUMPY, dtype=numpy.uint8)
        numpy.zeros(BLOCK_NUMPY, dtype=numpy.uint8)


def arrays():
    fill(numpy)
    print("TRUTH %d" % (2 * COUNT_NUMPY * BLOCK_NUMPY), flush=True)
    sys.stdin.readline()


def tracked():
    import memray
    count = 0
    with memray.Tracker(sys.argv[2], trace_python_allocators=True):
        while not os.path.exists(sys.argv[3]):
            bytes(BLOCK)
            count += 1
            time.sleep(0.0005)
    print("TRUTH %d" % (count * (BLOCK + OVERHEAD)), flush=True)


def allocators():
    """What PyMem_GetAllocator() says of each domain."""
    told = []
    for domain in range(3):
        words = (ctypes.c_uint64 * 5)()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(words))
        told.append(",".join("%x" % word for word in words))
    return " ".join(told)


def idle():
    while sys.stdin.readline():
        print("HELD " + allocators(), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "known" and len(sys.argv) > 2:
        tracemalloc.start()
    if sys.argv[1] in ("native", "idle"):
        library = ctypes.CDLL(sys.argv[2])
    if sys.argv[1] == "arrays":
        import numpy
    if os.environ.get("WAITER"):  # where threads are borrowed only while they wait
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    print("READY %d" % os.getpid(), flush=True)
    sys.stdin.readline()
    globals()[sys.argv[1]]()
