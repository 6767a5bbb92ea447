"""Forks in signal handlers, of C and of Python, which interrupt its own os.fork() and what is registered for it: python forker.py LIBRARY (of forker.c).

Prints READY <pid>; at the end of stdin "OK children N nested N", or FAIL with what went wrong."""
import ctypes
import os
import select
import signal
import sys
import warnings

warnings.simplefilter("ignore")  # 3.12 and later warn of fork beside a thread, which ours is for the milliseconds of an attach
library = ctypes.CDLL(sys.argv[1])
children, nested, wrong = [0], [0], []
generation, handling = 0, False


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def live():
    """A child's life: the first two generations have a child in a handler of theirs, too. Is all as it should be?"""
    global generation, handling
    generation, handling = generation + 1, False
    good = fib(9) == 34 and len(os.listdir("/proc/self/task")) == 1
    if generation < 3:
        before = nested[0]
        del wrong[:]
        os.kill(os.getpid(), signal.SIGUSR1)
        fib(2)  # the handler has run
        good = good and nested[0] == before + 1 and not wrong
    return good


def fork_once():
    wanted = 41 + generation
    pid = os.fork()
    if pid == 0:
        os._exit(40 + generation if live() else 1)
    status = os.waitpid(pid, 0)[1]
    if status != wanted << 8:
        wrong.append("a child ended with %#x instead of %#x" % (status, wanted << 8))


def on_signal(number, frame):
    global handling
    if handling:
        return  # one within another is enough
    handling = True
    fork_once()
    nested[0] += 1
    handling = False


def registered():
    fib(7)


signal.signal(signal.SIGUSR1, on_signal)
signal.signal(signal.SIGPROF, on_signal)
os.register_at_fork(before=registered, after_in_parent=registered, after_in_child=registered)
if library.forker_begin(4000):
    print("SKIP this libc has no _Fork")
    sys.exit()
signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
print("READY", os.getpid(), flush=True)
while not select.select([0], [], [], 0)[0]:
    fork_once()
    children[0] += 1
    fib(12)
signal.setitimer(signal.ITIMER_PROF, 0)
library.forker_end()
bare, bad = (ctypes.c_long.in_dll(library, name).value for name in ("forker_children", "forker_wrong"))
if bad:
    wrong.append("%d children of the handler in C ended wrongly" % bad)
if min(children[0], nested[0], bare) == 0:
    wrong.append("some made no children")
print("FAIL" if wrong else "OK", "children %d, nested %d, of C %d%s" % (children[0], nested[0], bare, ": " + "; ".join(wrong[:4]) if wrong else ""), flush=True)
