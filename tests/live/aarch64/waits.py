"""A program that notices: its threads wait in C calls of every kind, and each says when one ends early, ends with EINTR or gives a wrong result.

waits.py SECONDS [single]: prints "fine" and what it did, or what went wrong, and ends with 0 or 1. "single": one thread that calls a function, no more; "epoll": one
thread that is always in epoll_wait; "spin": one that never waits.
"""
import ctypes
import os
import select
import signal
import socket
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
stop = False
wrong = []
done = {}
LIMIT = 0.1


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("ns", ctypes.c_long)]


def fail(text):
    wrong.append(text)
    print("WRONG:", text, flush=True)


def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def middle(n):
    return leaf(n) + leaf(n // 2)


MIDDLE = sum(i * i for i in range(300)) + sum(i * i for i in range(150))


def check(name, call, expected=0, seconds=LIMIT):
    """CALL returns what libc did; it must be EXPECTED, and not before SECONDS have gone."""
    begin = time.monotonic()
    ctypes.set_errno(0)
    result = call()
    took = time.monotonic() - begin
    if result != expected:
        fail("%s returned %d (%s)" % (name, result, os.strerror(ctypes.get_errno())))
    if took < seconds - 0.0015:  # epoll and poll count in whole milliseconds
        fail("%s took %.4f s instead of %.4f" % (name, took, seconds))
    done[name] = done.get(name, 0) + 1


def sleeper():
    check("clock_nanosleep", lambda: libc.clock_nanosleep(1, 0, ctypes.byref(Timespec(0, int(LIMIT * 1e9))), None))


def poller():
    check("poll", lambda: libc.poll(None, 0, int(LIMIT * 1000)))


def waiter():
    epoll = select.epoll()
    events = ctypes.create_string_buffer(64)
    check("epoll_wait", lambda: libc.epoll_wait(epoll.fileno(), events, 4, int(LIMIT * 1000)))
    epoll.close()


def locker():
    lock = threading.Lock()
    lock.acquire()
    check("lock.acquire", lambda: lock.acquire(timeout=LIMIT), False)


def reader():
    # Somebody else writes after a while: read() and recv() must give exactly that.
    ours, theirs = os.pipe()
    one, two = socket.socketpair()

    def write():
        time.sleep(LIMIT)
        os.write(theirs, b"12345678")
        two.send(b"12345678")

    writer = threading.Thread(target=write)
    writer.start()
    buffer = ctypes.create_string_buffer(64)
    check("read", lambda: libc.read(ours, buffer, 64), 8, 0)
    check("recv", lambda: libc.recv(one.fileno(), buffer, 64, 0), 8, 0)
    writer.join()
    os.close(ours)
    os.close(theirs)
    one.close()
    two.close()


def caller(pause=0.004):
    if middle(300) != MIDDLE:
        fail("middle(300)")
    done["calls"] = done.get("calls", 0) + 1
    if pause:
        time.sleep(pause)


def again(work):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # the main thread's alone, also while that is held
    while not stop:
        work()


alarms = 0


def on_alarm(*_):
    global alarms
    alarms += 1


def main():
    global stop
    seconds = float(sys.argv[1])
    end = time.monotonic() + seconds
    threads = []
    kind = sys.argv[2] if sys.argv[2:] else ""
    if not kind:
        threads = [threading.Thread(target=again, args=(work,), name=work.__name__) for work in (sleeper, poller, waiter, locker, reader, caller)]
        signal.signal(signal.SIGALRM, on_alarm)
        signal.setitimer(signal.ITIMER_REAL, 0.07, 0.07)
    for thread in threads:
        thread.start()
    while time.monotonic() < end and not wrong:
        waiter() if kind == "epoll" else caller(0 if kind == "spin" else 0.004)
    signal.setitimer(signal.ITIMER_REAL, 0)
    stop = True
    for thread in threads:
        thread.join(10)
        if thread.is_alive():
            fail("%s does not end" % thread.name)
    if threads and alarms == 0:
        fail("no alarm in %.0f s" % seconds)
    blocked = [line for line in open("/proc/self/status") if line.startswith("SigBlk")]
    if int(blocked[0].split()[1], 16):
        fail("signals are blocked: " + blocked[0])
    print("fine" if not wrong else "NOT fine", done, alarms, flush=True)
    os._exit(1 if wrong else 0)


main()
