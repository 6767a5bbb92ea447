"""Programs to be entered that notice: each checks its own results, sleeps, locks and descriptors, and says OK or FAIL at its end (SIGTERM, or
its time is over). Prints "READY pid" first. Usage: python targets.py KIND SECONDS"""
import ctypes
import errno
import os
import signal
import sys
import threading
import time

KIND, SECONDS = sys.argv[1], float(sys.argv[2])
wrong = []
ended = threading.Event()
rounds = [0]


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compute():
    while not ended.is_set():
        if fib(12) != 144 or sum(range(1000)) != 499500:
            wrong.append("result")
        rounds[0] += 1


def doze():
    while not ended.is_set():
        before = time.monotonic()
        time.sleep(0.02)
        if time.monotonic() - before < 0.0199:
            wrong.append("short sleep")
        rounds[0] += 1


def wait_for_lock():
    lock = threading.Lock()
    lock.acquire()
    while not ended.is_set():
        before = time.monotonic()
        if lock.acquire(timeout=0.02):
            wrong.append("lock")
        elif time.monotonic() - before < 0.0199:
            wrong.append("early lock")
        rounds[0] += 1


def churn():
    while not ended.is_set():
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        rounds[0] += 1


def allocate():
    """Native malloc and free of all sizes, outside of the GIL's protection for the most part, with patterns checked."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.qsort.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
    while not ended.is_set():
        blocks = [(libc.malloc(size), size) for size in (24, 40, 72, 1100, 5000, 70000, 200000)]
        for i, (block, size) in enumerate(blocks):
            ctypes.memset(block, i, size)
        for i, (block, size) in enumerate(blocks):
            if ctypes.string_at(block, 24) != bytes([i]) * 24 or ctypes.string_at(block + size - 1, 1) != bytes([i]):
                wrong.append("heap")
            libc.free(block)
        rounds[0] += 1


def storm(name):
    """The C helper beside us: tight loops that never take the GIL."""
    helper = ctypes.CDLL(os.environ["STORM"])
    helper[name].restype = ctypes.c_long
    flag = ctypes.c_int.in_dll(helper, "storm_end")

    def run():
        if helper[name]() != 0:
            wrong.append(name)
    return run, flag


def ready():
    print("READY", os.getpid(), flush=True)


def server(loop_timeout):
    import asyncio

    async def main():
        async def echo(reader, writer):
            while True:
                line = await reader.readline()
                if not line:
                    break
                writer.write(line)
                await writer.drain()
            writer.close()
        served = await asyncio.start_server(echo, "127.0.0.1", 0)
        loop = asyncio.get_running_loop()
        stop = loop.create_future()
        loop.add_signal_handler(signal.SIGTERM, lambda: stop.cancel() or None)
        if loop_timeout:
            async def beat():
                while True:
                    before = time.monotonic()
                    await asyncio.sleep(loop_timeout)
                    if time.monotonic() - before < loop_timeout - 0.002:
                        wrong.append("early timer")
                    late.append(time.monotonic() - before - loop_timeout)
                    rounds[0] += 1
            asyncio.ensure_future(beat())
        else:
            rounds[0] = 1
        ready()
        try:
            await asyncio.wait_for(stop, SECONDS) if loop_timeout else await stop
        except (asyncio.CancelledError, asyncio.TimeoutError):
            pass
        served.close()
    late = []
    asyncio.run(main())
    if late and max(late) > float(os.environ.get("MAX_LATE", "1")):
        wrong.append("late timer %.3f" % max(late))


def epoll(milliseconds):
    """C code that takes EINTR for an error, as many servers do."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd, buffer = libc.epoll_create1(0x80000), ctypes.create_string_buffer(64)
    while not ended.is_set():
        before = time.monotonic()
        got = libc.epoll_wait(fd, buffer, 4, milliseconds)
        took = time.monotonic() - before
        if got < 0 and ctypes.get_errno() == errno.EINTR:
            wrong.append("EINTR")
        elif got == 0 and took < milliseconds / 1000 - 0.002:
            wrong.append("early %.3f" % took)
        rounds[0] += 1


def stay_in_libc(seconds):
    """One call that does not leave libc, not even to compare."""
    libc = ctypes.CDLL(None)

    def sort(count):
        memory = ctypes.create_string_buffer(os.urandom(4 * count), 4 * count)
        begin = time.monotonic()
        libc.qsort_r(memory, ctypes.c_size_t(count), ctypes.c_size_t(4), libc.memcmp, ctypes.c_void_p(4))
        return time.monotonic() - begin, memory
    took, _ = sort(300000)
    ready()
    _, memory = sort(int(300000 * seconds / took))
    if any(memory[i:i + 4] > memory[i + 4:i + 8] for i in range(0, 100000, 4)):
        wrong.append("order")
    rounds[0] = 1


class Alarm(Exception):
    pass


def alarms(block):
    """A signal per round must end the blocking call: one that is lost between the stop and the restarted call shows as late."""
    import random

    def on_alarm(number, frame):
        raise Alarm

    signal.signal(signal.SIGALRM, on_alarm)
    late, until = 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        before = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.004))
            block()
            late += time.monotonic() - before > 0.25
        except Alarm:
            pass
        rounds[0] += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    if late > 1:
        wrong.append("late %d" % late)


KINDS = {
    "idle": [],
    "busy": [compute] * 4 + [doze, wait_for_lock, churn, compute],
    "single": [],
    "malloc": [allocate, doze],
    "epoll": [],
}

fds = sorted(os.listdir("/proc/self/fd"))
signal.signal(signal.SIGTERM, lambda *a: ended.set())
threads, flags = [], []
if KIND in ("idle", "dlopen"):
    rounds[0] = 1  # it does nothing, or counts nothing, of its own
if KIND in ("malloc", "dlopen"):
    body, flag = storm("storm_" + KIND)
    flags.append(flag)
    threads = [threading.Thread(target=body) for _ in range(4 if KIND == "malloc" else 2)]
threads += [threading.Thread(target=body) for body in KINDS.get(KIND, [])]
# For the first thread alone, in which Python handles it: another one that is just changing its mask (pthread_create does) may be faster on a busy machine, and then nobody wakes the first.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
for thread in threads:
    thread.start()
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
if KIND not in ("server", "beat", "inside"):  # these say so themselves
    ready()
until = time.monotonic() + SECONDS
if KIND == "server":
    server(0)
elif KIND == "beat":
    server(0.3)
elif KIND.startswith("epoll"):
    milliseconds = int(KIND[5:] or "200")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    deadline = time.monotonic() + SECONDS
    ended.is_set = lambda: time.monotonic() > deadline
    epoll(milliseconds)
elif KIND == "single":
    while not ended.is_set() and time.monotonic() < until:
        if fib(12) != 144 or sorted([3, 1, 2] * 50)[0] != 1 or sum(range(1000)) != 499500:
            wrong.append("result")
        rounds[0] += 1
elif KIND == "inside":
    stay_in_libc(2)
    ended.wait(SECONDS)
elif KIND == "alarm-sleep":
    alarms(lambda: time.sleep(0.3))
elif KIND == "alarm-read":
    ends = os.pipe()
    alarms(lambda: __import__("select").select([ends[0]], [], [], 0.3) and None)
    [os.close(end) for end in ends]
elif KIND == "alarm-lock":
    held = threading.Lock()
    held.acquire()
    alarms(lambda: held.acquire(timeout=0.3))
else:
    ended.wait(SECONDS)
ended.set()
for flag in flags:
    flag.value = 1
for thread in threads:
    thread.join(20)
    if thread.is_alive():
        wrong.append("a thread hangs")
if sorted(os.listdir("/proc/self/fd")) != fds:
    time.sleep(0.5)  # a thread's first pthread_exit() has the loader look for libgcc_s, after join() has returned
if sorted(os.listdir("/proc/self/fd")) != fds and KIND not in ("server", "beat") and not KIND.startswith("epoll"):
    now = {name: os.readlink("/proc/self/fd/" + name) for name in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + name)}
    wrong.append("descriptors: %s then, %s now" % (fds, now))
if len(os.listdir("/proc/self/task")) != 1:
    time.sleep(0.5)
    if len(os.listdir("/proc/self/task")) != 1:
        wrong.append("threads left")
for line in open("/proc/self/status"):
    if line.startswith("SigBlk") and int(line.split()[1], 16):
        wrong.append("signals blocked")
if not rounds[0]:
    wrong.append("nothing done")
print("FAIL" if wrong else "OK", KIND, rounds[0], sorted(set(wrong))[:5], flush=True)
sys.exit(1 if wrong else 0)
