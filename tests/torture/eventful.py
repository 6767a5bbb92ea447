"""Computes, checks, and on SIGUSR1 does one thing that an attacher may not like. usage: eventful.py exec|exit|fork|stop

Prints READY PID; ends with OK or FAIL when its standard input does."""
import os
import select
import signal
import sys
import threading
import time
import warnings

warnings.simplefilter("ignore")  # of fork beside a thread: that is what we are here for
WAY = sys.argv[1]
bad = [0]
forks = []


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compute():
    while True:
        bad[0] += fib(9) != 34
        time.sleep(0.001)


def act(*_):
    if WAY == "exec":
        os.execv(sys.executable, [sys.executable, "-c", "print('OK second', sum(map(abs, range(1000))), flush=True)"])
    if WAY == "exit":
        sys.exit(7)
    if WAY == "fork":
        child = os.fork()
        if child == 0:
            os._exit(40 + (sum(fib(n) for n in range(10)) != 88))
        forks.append(os.waitpid(child, 0)[1])


signal.signal(signal.SIGUSR1, act)
threading.Thread(target=compute, daemon=True).start()
print("READY", os.getpid(), flush=True)
while not select.select([sys.stdin], [], [], 0.002)[0]:
    bad[0] += fib(9) != 34
good = not bad[0] and all(status == 40 << 8 for status in forks) and (WAY != "fork" or forks)
print("OK" if good else "FAIL", "wrong %d, children %s" % (bad[0], forks), flush=True)
sys.exit(not good)
