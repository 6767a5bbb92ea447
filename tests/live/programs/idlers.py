"""Threads that only sleep, beside a main thread that does a little: python idlers.py COUNT WORKED [SECONDS].

The last WORKED of them took 20 ms of CPU time each before it prints READY <pid>, so that what they did once can be told from what they do. They wake every SECONDS. Ends at the end of stdin."""
import os
import sys
import threading
import time

COUNT, WORKED = int(sys.argv[1]), int(sys.argv[2])
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 3600
worked = threading.Semaphore(0)


def work():
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        time.sleep(0)
    worked.release()


def idler(number):
    if number >= COUNT - WORKED:
        work()
    while True:
        step()
        time.sleep(SECONDS)


def answer():
    sys.stdin.read()
    os._exit(0)


def step():
    pass


threading.stack_size(128 * 1024)
for i in range(COUNT):
    threading.Thread(target=idler, args=(i,), daemon=True).start()
for i in range(WORKED):
    worked.acquire()
threading.Thread(target=answer, daemon=True).start()
print("READY", os.getpid(), flush=True)
while True:
    for _ in range(100):
        step()
    time.sleep(0.02)
