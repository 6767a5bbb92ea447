"""Knows where its time goes. shares: three kinds of work (a fourth where numpy is installed), and their parts of the thread's CPU time. gil: who keeps the GIL from whom.
matrix: the same with a log of how long each waited for it. short: calls of some microseconds, each by a function of its own.
deep: a C function below many calls in Python, and below few. made: functions that come and go. roomy: one that keeps more of the stack than a sample brings at first."""
import ctypes
import itertools
import os
import sys
import threading
import time
import zlib

os.environ["OPENBLAS_NUM_THREADS"] = "1"
try:
    import numpy
except ImportError:
    numpy = None

mode, folder = sys.argv[1], os.path.dirname(os.path.abspath(__file__))
# CDLL gives the GIL back around a call, PyDLL keeps it.
free = ctypes.CDLL(os.path.join(folder, "libburn.so"))
keeping = ctypes.PyDLL(os.path.join(folder, "libburn.so"))
for library in (free, keeping):
    for function in (library.burn, library.burn_with_room):
        function.argtypes, function.restype = [ctypes.c_ulong], ctypes.c_ulong
data = bytes(range(256)) * 1200
matrix_a = numpy.ones((400, 400)) if numpy else None
little = data[:4096]  # up to 5 kB, zlib keeps the GIL


def part_python(rounds):
    total = 0
    for i in range(rounds):
        total += i & 3
    return total


def part_zlib():
    return zlib.compress(data, 6)


def part_library(rounds):
    return free.burn(rounds)


def part_numpy():
    return matrix_a @ matrix_a


def shares():
    spent = {"python": 0, "zlib": 0, "library": 0}
    if numpy:
        spent["numpy"] = 0

    def timed(name, function, *args):
        begin = time.thread_time_ns()
        function(*args)
        spent[name] += time.thread_time_ns() - begin

    told = time.monotonic()
    while True:
        timed("python", part_python, 60000)
        timed("zlib", part_zlib)
        timed("library", part_library, 150000)
        if numpy:
            timed("numpy", part_numpy)
        if time.monotonic() - told > 0.1:
            print("SPENT", *spent.values(), flush=True)
            told = time.monotonic()


def leaf_crc():
    return zlib.crc32(little)


def leaf_adler():
    checked = zlib.adler32(little)  # other instructions than leaf_crc's: 3.10 keeps equal ones once, and nothing tells whose they are
    return checked


def middle_crc():
    return leaf_crc()


def middle_adler():
    checked = leaf_adler()
    return checked


def short():
    while True:
        middle_crc()
        middle_adler()


def down(depth):
    return down(depth - 1) if depth else zlib.adler32(little)


def deep():
    while True:
        for depth in (3, 40, 200, 900):
            down(depth)


def roomy():
    while True:
        keeping.burn_with_room(3000)
        part_python(1000)


MADE = """
from time import process_time
def made{0}():
    end = process_time() + 0.05
    while process_time() < end:
        pass
made{0}()
"""


def made():
    """Functions that are made, work for 50 ms of CPU time each, and are freed, so that each has the address of the one before; from 3.12 on with generated code, which a perf map names."""
    if sys.version_info >= (3, 12):
        sys.activate_stack_trampoline("perf")
    for count in itertools.count():
        names = {}
        exec(MADE.format(count), names)
        names.clear()


def keeper():
    while True:
        keeping.burn(1000000)  # some 20 ms with the GIL, and none without it
        part_python(10)


def wanter():
    while True:
        part_python(2000)


def sleeper(waited, key, pause_ns):
    """After each sleep it wants the GIL again."""
    keeping.wait_for_gil.argtypes, keeping.wait_for_gil.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_long], ctypes.c_long
    save, restore = (ctypes.cast(function, ctypes.c_void_p) for function in (ctypes.pythonapi.PyEval_SaveThread, ctypes.pythonapi.PyEval_RestoreThread))
    file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    while True:
        waited[key] += keeping.wait_for_gil(save, restore, file, pause_ns)


def owner():
    libc = ctypes.PyDLL(None)
    while True:
        libc.usleep(20000)
        time.sleep(0.01)


def matrix():
    waited = {"often": 0, "seldom": 0}
    threading.Thread(target=owner, daemon=True, name="owner").start()
    for key, pause_ns in (("often", 1000000), ("seldom", 15000000)):
        threading.Thread(target=sleeper, args=(waited, key, pause_ns), daemon=True, name=key).start()
    print("READY", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
        print("WAITED", waited["often"], waited["seldom"], time.monotonic_ns(), flush=True)


def locked(lock):
    with lock:
        pass


def native_threads(count):
    libc = ctypes.CDLL(None)
    entry = ctypes.cast(free.idle, ctypes.c_void_p)
    for _ in range(count):
        thread = ctypes.c_ulong()
        if libc.pthread_create(ctypes.byref(thread), None, entry, None):
            sys.exit("no thread")


if mode == "gil":
    lock = threading.Lock()
    lock.acquire()
    for target, args in ((keeper, ()), (wanter, ()), (locked, (lock,))):
        threading.Thread(target=target, args=args, daemon=True, name=target.__name__).start()
    print("READY", os.getpid(), flush=True)
    time.sleep(600)
elif mode == "matrix":
    matrix()
elif mode == "short":
    print("READY", os.getpid(), flush=True)
    short()
elif mode in ("deep", "roomy", "made"):
    print("READY", os.getpid(), flush=True)
    {"deep": deep, "roomy": roomy, "made": made}[mode]()
else:
    native_threads(int(sys.argv[2]))
    print("READY", os.getpid(), flush=True)
    shares()
