"""A program that does everything at once, knows what must come out, and says at its end whether it did.

usage: target.py [--kind all|loader|single|forks|gil|held|late|quiet] [--seconds N]

Prints READY PID. Commands on standard input, one a line:
  hooks   -> "HOOKS" and what hooks into the interpreter it sees, or "none"
  blocked -> "BLOCKED" and what each of its threads says of itself: signals blocked, alternate stack
  gil N   -> keeps the GIL for N seconds inside one C call
  end, or end of input -> it ends: last line "OK ..." or "FAIL ...", exit status 0 or 1
Standard library only, CPython 3.8 and later."""
import argparse
import asyncio
import collections
import contextlib
import ctypes
import gc
import glob
import hashlib
import math
import os
import queue
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
import weakref
import zlib

warnings.simplefilter("ignore")  # 3.12 and later warn of fork in a program with threads; that is what we are here for
MAX_LATE = float(os.environ.get("MAX_LATE", "8"))  # seconds; the machine may be full
EARLY = 0.0002
libc = ctypes.CDLL(None, use_errno=True)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
COUNTED, WAITED = signal.SIGRTMIN + 3, signal.SIGRTMIN + 4

wrong = collections.Counter()
rounds = collections.Counter()
latest = collections.Counter()
ended = threading.Event()
alarms = [0]
caught = collections.Counter()
unraisable = [0]
# CPython 3.8 to 3.11, by itself (gh-112275, fixed in 3.10.15 and 3.11.7): a child that is forked while a native thread makes its Python state waits
# for ever for a lock that this thread held (_PyThreadState_DeleteExcept; seen on 3.9.18 after 25 s with nobody attached). So these two take turns there.
fork_or_state = threading.Lock() if sys.version_info < (3, 12) else contextlib.nullcontext()


def check(good, what):
    if not good:
        wrong[what] += 1


def timed(name, wanted, action):
    """What lasts at least WANTED seconds: never shorter, and not absurdly longer."""
    before = time.monotonic()
    result = action()
    late = time.monotonic() - before - wanted
    check(late > -EARLY, "%s %.4f s early" % (name, -late))
    check(late < MAX_LATE, "%s %.1f s late" % (name, late))
    latest[name] = max(latest[name], int(late * 1000))
    return result


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compute(i):
    check(fib(11) == 89, "fib")
    check(sum(range(i % 700)) == (i % 700) * (i % 700 - 1) // 2, "sum")
    data = bytes([i & 255]) * (20000 + i % 5000)
    check(zlib.decompress(zlib.compress(data, 1)) == data, "zlib")
    check(hashlib.sha256(b"abc").hexdigest()[:8] == "ba7816bf", "sha256")


class Checksum:
    """A number that each step changes, in whole and in floating-point numbers; where it must be after N steps is known by another way."""
    FACTOR, PLUS, MODULUS = 6364136223846793005, 1442695040888963407, 1 << 64

    def __init__(self):
        self.steps, self.value, self.real, self.halves = 0, 1, 0.0, 0

    def step(self):
        self.value = (self.value * self.FACTOR + self.PLUS) % self.MODULUS
        self.real = math.fmod(self.real * 0.5 + 1.0 / 3.0, 1.0)  # gets to 2/3 and stays there
        self.halves += int(math.ldexp(self.steps, -1) * 2)
        self.steps += 1

    def expected(self):
        """The same number by jumping there: FACTOR**steps and the sum of its powers, by doubling."""
        factor, plus, left, value = self.FACTOR, self.PLUS, self.steps, 1
        while left:
            if left & 1:
                value = (value * factor + plus) % self.MODULUS
            plus = (factor + 1) * plus % self.MODULUS
            factor = factor * factor % self.MODULUS
            left >>= 1
        return value

    def check(self):
        check(self.value == self.expected(), "checksum after %d steps" % self.steps)
        check(self.steps < 100 or abs(self.real - 2 / 3) < 1e-12, "floating point after %d steps" % self.steps)
        check(self.halves == self.steps * (self.steps - 1) // 2, "sum after %d steps" % self.steps)


def checksum(i, sums=Checksum()):
    for _ in range(300):
        sums.step()
    sums.check()


def heap(i):
    """C's heap, outside of the GIL: every block holds what was put there until it is freed."""
    blocks = []
    for n, size in enumerate((24, 32, 40, 48, 56, 64, 72, 130, 1100, 5000, 70000, 140000 + i % 9 * 4096)):
        block = libc.malloc(size)
        ctypes.memset(block, (i + n) & 255, size)
        blocks.append((block, size, (i + n) & 255))
    if i & 1:
        blocks.reverse()
    for block, size, fill in blocks:
        check(ctypes.string_at(block, min(size, 72)) == bytes([fill]) * min(size, 72) and ctypes.string_at(block + size - 1, 1)[0] == fill, "heap")
        libc.free(block)


def library_of(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def natively(i, z=library_of("libz.so.1")):
    """A library that allocates in C, outside of the GIL, through slots of its own."""
    if not z:
        return
    data = bytes([i & 255, 7, i * 3 & 255]) * (1000 + i % 5000)
    packed, whole = ctypes.create_string_buffer(len(data) + 100), ctypes.create_string_buffer(len(data))
    size, whole_size = ctypes.c_ulong(len(packed)), ctypes.c_ulong(len(whole))
    check(z.compress(packed, ctypes.byref(size), data, ctypes.c_ulong(len(data))) == 0, "compress")
    check(z.uncompress(whole, ctypes.byref(whole_size), packed, size) == 0 and whole.raw == data, "uncompress")


def small_blocks(i):
    """Those of malloc's caches and fast bins, more of one size than the cache holds, freed in another order."""
    blocks = [libc.malloc(24 + n % 7 * 8) for n in range(120)]
    for n, block in enumerate(blocks):
        ctypes.memset(block, n, 24)
    for n in range(120):
        k = n * 7 % 120
        check(ctypes.string_at(blocks[k], 24) == bytes([k]) * 24, "small block")
        libc.free(blocks[k])


def objects(i, keep=collections.deque(maxlen=50)):
    keep.append((i, bytes([i & 255]) * (16 + i * 37 % 3000), [str(n) for n in range(i % 40)]))
    number, data, texts = keep[0]
    check(data == bytes([number & 255]) * len(data) and texts == [str(n) for n in range(number % 40)], "objects")


def library_paths():
    found = [p for name in ("bz2.so.1.0", "lzma.so.5", "z.so.1", "expat.so.1", "uuid.so.1", "crypt.so.1", "ffi.so.8", "sqlite3.so.0", "resolv.so.2", "anl.so.1")
             for p in glob.glob("/lib/x86_64-linux-gnu/lib%s*" % name)[:1] + glob.glob("/usr/lib/x86_64-linux-gnu/lib%s*" % name)[:1]]
    return found or ["libm.so.6"]


def libraries(i, paths=library_paths()):
    import _ctypes
    handles = [_ctypes.dlopen(paths[(i + n) % len(paths)], 2 if n else 1) for n in range(3)]
    check(all(handles), "dlopen")
    for handle in handles:
        _ctypes.dlclose(handle)


def more_libraries(i):
    libraries(i * 7)


def child_program(i):
    if i % 3:
        done = subprocess.run(["/bin/echo", "round", str(i)], stdout=subprocess.PIPE)
        check(done.returncode == 0 and done.stdout == b"round %d\n" % i, "subprocess")
    else:
        done = subprocess.run(["/bin/sh", "-c", "exit %d" % (i % 100)])
        check(done.returncode == i % 100, "exit status")


def child_fork(i):
    """A child that goes on in Python: right results, nobody's hooks, its own exit status."""
    with fork_or_state:
        pid = os.fork()
    if pid == 0:
        good = fib(12) == 144 and sorted(str(n) for n in range(50))[7] == "15"
        exec("def fresh():\n pass\nfresh()")  # code that was never met: what hooks there are notice now at the latest
        natively(i)
        good = good and not active_hooks() and not wrong
        os._exit(40 + i % 50 if good else 1)
    _, status = os.waitpid(pid, 0)
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 40 + i % 50, "forked child: %#x instead of %#x" % (status, (40 + i % 50) << 8))


def other_fork(i):
    child_fork(i + 3)


def garbage(i):
    class Node:
        pass
    dead = []
    for _ in range(20):
        a, b = Node(), Node()
        a.other, b.other = b, a
        weakref.finalize(a, dead.append, 1)
    del a, b
    gc.collect()
    check(len(dead) == 20, "gc")


def timers(i):
    step = i % 4
    if step == 0:
        timed("sleep", 0.02, lambda: time.sleep(0.02))
    elif step == 1:
        lock = threading.Lock()
        lock.acquire()
        check(not timed("lock", 0.015, lambda: lock.acquire(timeout=0.015)), "lock got")
    elif step == 2:
        try:
            timed("queue", 0.015, lambda: queue.Queue().get(timeout=0.015))
            check(False, "queue got")
        except queue.Empty:
            pass
    else:
        check(not timed("event", 0.015, lambda: threading.Event().wait(0.015)), "event set")


def lateness(i):
    """How much later than asked a short sleep ends: what a thread that is held for long shows. The reader judges it."""
    before = time.monotonic()
    time.sleep(0.002)
    latest["sleep"] = max(latest["sleep"], int((time.monotonic() - before) * 1000 - 2))


class SignalStack(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]


class TimeVal(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("rest", ctypes.c_long)]


def system_calls(i, state={}):
    """C code that takes EINTR for an error. No handler runs on this thread: all its signals are blocked."""
    if not state:
        signal.pthread_sigmask(signal.SIG_BLOCK, set(range(1, 65)) - {32, 33})
        state["epoll"] = libc.epoll_create1(0x80000)
        state["sockets"] = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        wait = TimeVal(0, 15000)
        state["sockets"][0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(wait))
        state["buffer"] = ctypes.create_string_buffer(256)
    buffer = state["buffer"]
    calls = (
        ("epoll_wait", 0.015, 0, lambda: libc.epoll_wait(state["epoll"], buffer, 4, 15)),
        ("poll", 0.015, 0, lambda: libc.poll(None, 0, 15)),
        ("recv", 0.010, -1, lambda: libc.recv(state["sockets"][0].fileno(), buffer, 16, 0)),  # of jiffies: up to one early
        ("nanosleep", 0.015, 0, lambda: libc.nanosleep(ctypes.byref(TimeVal(0, 15000000)), None)),
        ("select", 0.015, 0, lambda: libc.select(0, None, None, None, ctypes.byref(TimeVal(0, 15000)))),
        ("sigtimedwait", 0.015, -1, lambda: libc.sigtimedwait(ctypes.byref(ctypes.c_uint64(1 << 40)), None, ctypes.byref(TimeVal(0, 15000000)))),
    )
    name, wanted, expected, call = calls[i % len(calls)]
    ctypes.set_errno(0)
    got = timed(name, wanted - 0.0009, call)
    number = ctypes.get_errno()
    check(number != 4, name + " EINTR")
    check(got == expected and (got == 0 or number == 11), "%s gave %d, errno %d" % (name, got, number))


def signals_counted(i, state={}):
    """Real-time signals queue: as many must arrive as were sent, at a handler (counted by the wake-up pipe) and at a waiting thread."""
    if not state:
        signal.pthread_sigmask(signal.SIG_BLOCK, {WAITED})
        state["sent"] = state["taken"] = 0
    for _ in range(5):
        os.kill(os.getpid(), COUNTED)
        signal.pthread_kill(threading.get_ident(), WAITED)
        state["sent"] += 1
    while signal.sigtimedwait([WAITED], 0):
        state["taken"] += 1
    check(state["taken"] == state["sent"], "waited signals %d of %d" % (state["taken"], state["sent"]))
    end = time.monotonic() + MAX_LATE
    while caught[COUNTED] < state["sent"] and time.monotonic() < end:
        time.sleep(0.002)
    check(caught[COUNTED] == state["sent"], "counted signals %d of %d" % (caught[COUNTED], state["sent"]))


def walk(n):
    if n:
        yield n
        yield from walk(n - 1)


async def hand_over(n):
    await asyncio.sleep(0)
    return n if n == 0 else 1 + await hand_over(n - 1)


async def fan_out():
    inner = [asyncio.ensure_future(hand_over(n)) for n in range(6)]
    return [await task for task in inner]


def suspended(i):
    check(sum(walk(15)) == 120, "generators")
    abandoned = walk(5)
    next(abandoned)
    thrown = walk(3)
    next(thrown)
    try:
        thrown.throw(KeyError("x"))
        check(False, "throw")
    except KeyError:
        pass
    loop = asyncio.new_event_loop()
    try:
        check(loop.run_until_complete(fan_out()) == list(range(6)), "coroutines")
    finally:
        loop.close()


def raising(_):
    raise ValueError("on purpose")


def callbacks(i, state={}):
    """Exceptions through C, and C that calls back. Its thread has an alternate signal stack."""
    if not state:
        state["memory"] = ctypes.create_string_buffer(65536)
        state["stack"] = SignalStack(ctypes.addressof(state["memory"]), 0, 65536)
        check(libc.sigaltstack(ctypes.byref(state["stack"]), None) == 0, "sigaltstack")
    for through in (lambda: sorted(range(9), key=raising), lambda: list(map(raising, "ab")), lambda: re.sub("a", raising, "banana"), lambda: max([1, 2], key=raising)):
        try:
            through()
            check(False, "exception lost")
        except ValueError as error:
            check(str(error) == "on purpose", "other exception")
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    numbers = (ctypes.c_int * 20)(*[(n * 7 + i) % 20 for n in range(20)])
    libc.qsort(numbers, 20, 4, kind(lambda a, b: a[0] - b[0]))
    check(list(numbers) == list(range(20)), "qsort")
    before = unraisable[0]
    libc.qsort(numbers, 2, 4, kind(lambda a, b: raising(a)))
    check(unraisable[0] == before + 1, "unraisable")


def native_threads(i, state={}):
    """Threads that Python did not start, and whose state it makes and drops."""
    if not state:
        state["create"] = getattr(libc, "pthread_create", None) or ctypes.CDLL("libpthread.so.0").pthread_create
        state["join"] = getattr(libc, "pthread_join", None) or ctypes.CDLL("libpthread.so.0").pthread_join
        state["kind"] = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    results = []

    def body(argument):
        results.append(fib(9) + (argument or 0))
        return 0
    keep = state["kind"](body)
    threads = []
    with fork_or_state:
        for n in range(3):
            thread = ctypes.c_ulong()
            check(state["create"](ctypes.byref(thread), None, keep, ctypes.c_void_p(n)) == 0, "pthread_create")
            threads.append(thread)
        for thread in threads:
            state["join"](thread, None)
    check(sorted(results) == [34, 35, 36], "native threads")


def thread_churn(i):
    done = []
    threads = [threading.Thread(target=lambda n=n: done.append(fib(n))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(sorted(done) == [0, 1, 1, 2], "threads")


def stdio(i, state={}):
    if not state:
        libc.fopen.restype = ctypes.c_void_p
        libc.fclose.argtypes = [ctypes.c_void_p]
        libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
        libc.snprintf.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]  # and what varies
        state["null"] = libc.fopen(b"/dev/null", b"w")
        state["buffer"] = ctypes.create_string_buffer(64)
    stream = libc.fopen(b"/proc/self/comm", b"r")
    check(stream, "fopen")
    libc.fclose(stream)
    for n in range(20):  # C's stdio: its locks are the ones that one thread alone does without
        libc.fputs(b"line\n", state["null"])
        length = libc.snprintf(state["buffer"], 64, b"%d of %s", ctypes.c_int(n), b"twenty")
        check(state["buffer"].value == b"%d of twenty" % n and length == len(state["buffer"].value), "snprintf")
    with open("/dev/null", "w") as f:
        print("line", i, file=f)


def interpreter_hooks():
    if sys.version_info >= (3, 12):
        return ["monitoring tool %d: %s" % (n, sys.monitoring.get_tool(n)) for n in range(6) if sys.monitoring.get_tool(n)]
    if sys.version_info >= (3, 9):
        get, state = ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc, ctypes.pythonapi.PyInterpreterState_Main
        get.restype = state.restype = ctypes.c_void_p
        get.argtypes = [ctypes.c_void_p]
        now = get(state())
        if now != ctypes.cast(ctypes.pythonapi._PyEval_EvalFrameDefault, ctypes.c_void_p).value:
            return ["evaluator %#x" % now]
    return []


def active_hooks():
    """Those that something would call; a tool without events only has its name there, and an entry in gc.callbacks goes at the next collection."""
    found = [name for name in hooks() if name != "gc.callbacks" and not name.startswith("monitoring")]
    if sys.version_info >= (3, 12):
        found += [n for n in range(6) if sys.monitoring.get_tool(n) and sys.monitoring.get_events(n)]
    return found


class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


def allocators():
    found = []
    for domain in range(3):
        allocator = Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
        found.append([getattr(allocator, name) for name, _ in Allocator._fields_])
    return found


ALLOCATORS = allocators()


def hooks():
    found = interpreter_hooks()
    if gc.callbacks:
        found.append("gc.callbacks")
    if allocators() != ALLOCATORS:
        found.append("allocators")
    for name in ("getprofile", "gettrace"):
        if getattr(sys, name)():
            found.append(name)
    return found


KINDS = {
    "all": [compute, checksum, heap, natively, objects, libraries, child_program, child_fork, garbage, timers, system_calls, signals_counted, suspended, callbacks, native_threads, thread_churn, stdio],
    "loader": [libraries, more_libraries, natively, native_threads, thread_churn, compute, checksum],
    "single": [compute, checksum, heap, natively, small_blocks, objects, suspended, callbacks, stdio, garbage],
    "gil": [compute],
    "forks": [child_fork, other_fork, natively, compute],
    "held": [compute, checksum, heap, timers, signals_counted, suspended, callbacks, thread_churn],
    "late": [compute, lateness],
    "quiet": [],
}
asked, answers, names = {}, {}, []


def own_signals():
    """What a stop and a borrowed thread could leave behind, as the thread itself sees it: nobody else sees what sigtimedwait does to it meanwhile."""
    stack = SignalStack()
    libc.sigaltstack(None, ctypes.byref(stack))
    blocked = sum(1 << number - 1 for number in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    return "%x/%x+%x/%x" % (blocked, stack.start or 0, stack.size, stack.flags)


def ask_threads(question):
    """Each worker answers between two of its rounds. Returns name -> answer."""
    answers.clear()
    asked.update((action, question) for action in names)
    end = time.monotonic() + MAX_LATE * 2
    while asked and not ended.is_set() and time.monotonic() < end:
        time.sleep(0.005)
    late = [action.__name__ for action in list(asked)]
    check(not late or ended.is_set(), "no answer from " + " ".join(late))
    return dict(answers)


def work(action, pause):
    i = 0
    while not ended.is_set():
        i += 1
        action(i)
        rounds[action.__name__] += 1
        if action in asked:
            answers[action.__name__] = asked[action]()
            del asked[action]
        time.sleep(pause)


def guarded(action, pause):
    try:
        work(action, pause)
    except BaseException as error:
        wrong["%s: %s: %s" % (action.__name__, type(error).__name__, error)] += 1


def hooks_everywhere():
    found = set(hooks())
    for texts in ask_threads(hooks).values():
        found.update(texts)
    return "; ".join(sorted(found)) or "none"


def signals_everywhere():
    found = ask_threads(own_signals)
    found["commands"] = own_signals()
    return " ".join("%s=%s" % item for item in sorted(found.items()))


def answer(line):
    word, _, rest = line.partition(" ")
    if word == "hooks":
        print("HOOKS", hooks_everywhere(), flush=True)
    elif word == "blocked":
        print("BLOCKED", signals_everywhere(), flush=True)
    elif word == "gil":
        print("HOLDING", flush=True)
        before = time.monotonic()
        ctypes.PyDLL(None).usleep(int(float(rest) * 1e6))
        print("HELD %.3f" % (time.monotonic() - before), flush=True)
    elif word == "end":
        return False
    return True


def commands():
    for line in sys.stdin:
        if not answer(line.strip()):
            break
    ended.set()


def count_signals():
    """Python runs a handler once for many signals; the wake-up pipe gets a byte for each."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    signal.set_wakeup_fd(writer)
    signal.signal(COUNTED, lambda *_: None)
    return reader


def alarm(*_):
    alarms[0] += 1


def signals_read(reader):
    select.select([reader], [], [], 0.05)
    try:
        for number in os.read(reader, 4096):
            caught[number] += 1
    except BlockingIOError:
        pass


def main_thread(reader, seconds):
    """Signals arrive here: an alarm every 20 ms, and those that are counted."""
    signal.signal(signal.SIGALRM, alarm)
    begun, signals = time.monotonic(), own_signals()
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    while not ended.is_set() and time.monotonic() < begun + seconds:
        signals_read(reader)
    signal.setitimer(signal.ITIMER_REAL, 0)
    ended.set()
    check(own_signals() == signals, "signals of the main thread: %s, then %s" % (signals, own_signals()))
    lasted = time.monotonic() - begun
    check(0 < alarms[0] <= lasted / 0.02 + 2, "alarms %d in %.1f s" % (alarms[0], lasted))


def one_thread(actions, seconds):
    """No thread but this one, until standard input ends: what glibc does then without locks."""
    end, i, begun = time.monotonic() + seconds, 0, None
    while time.monotonic() < end and not select.select([sys.stdin], [], [], 0)[0]:
        i += 1
        for action in actions:
            action(i)
            rounds[action.__name__] += 1
        begun = begun or own_signals()
    end = time.monotonic() + MAX_LATE
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < end:
        time.sleep(0.02)
    check(len(os.listdir("/proc/self/task")) == 1, "threads left")
    check(own_signals() == begun, "signals blocked: %s" % own_signals())


def finish():
    if wrong:
        print("FAIL", "; ".join("%s (%d)" % item for item in wrong.most_common(6)), flush=True)
        sys.exit(1)
    slow = ", ".join("%s %d ms" % item for item in latest.most_common(2))
    print("OK %d rounds of %d kinds, %d signals, %d alarms; latest %s" % (sum(rounds.values()), len(rounds), caught[COUNTED], alarms[0], slow), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=sorted(KINDS), default="all")
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--pause", type=float, default=0.01, help="of each thread between two rounds")
    options = parser.parse_args()
    sys.unraisablehook = lambda *_: unraisable.__setitem__(0, unraisable[0] + 1)
    actions = KINDS[options.kind]
    if options.kind == "single":
        print("READY", os.getpid(), flush=True)
        one_thread(actions, options.seconds)
        return finish()
    names.extend(actions)
    reader = count_signals()
    threads = [threading.Thread(target=guarded, args=(action, options.pause)) for action in actions]
    for thread in threads:
        thread.start()
    threading.Thread(target=commands, daemon=True).start()
    print("READY", os.getpid(), flush=True)
    main_thread(reader, options.seconds)
    for thread, action in zip(threads, actions):
        end = time.monotonic() + 20
        while thread.is_alive() and time.monotonic() < end:
            signals_read(reader)  # the last ones that were sent
        check(not thread.is_alive(), action.__name__ + " hangs")
        check(rounds[action.__name__] > 0, action.__name__ + " did nothing")
    finish()


main()
