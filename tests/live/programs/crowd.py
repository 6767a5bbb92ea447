"""A crowd of threads that do a little each second beside a main thread that computes: python crowd.py COUNT.

Prints READY <pid>. Each line that is written to it is answered with PAUSE <ms>: for so long main stood still at most since the last one. Ends at the end of stdin."""
import os
import sys
import threading
import time

longest = [0.0]
ended = threading.Event()


def step():
    return sum(range(20))


def member():
    while True:
        step()
        time.sleep(1)


def busy():
    return sum(i * i for i in range(100))


def answer():
    for _ in sys.stdin:
        print("PAUSE %.1f" % (longest[0] * 1e3), flush=True)
        longest[0] = 0.0
    ended.set()


def main():
    threading.stack_size(128 * 1024)
    for i in range(int(sys.argv[1])):
        threading.Thread(target=member, daemon=True).start()
    threading.Thread(target=answer, daemon=True).start()
    print("READY", os.getpid(), flush=True)
    last = time.monotonic()
    while not ended.is_set():
        busy()
        now = time.monotonic()
        if now - last > longest[0]:
            longest[0] = now - last
        last = now
    sys.stdout.flush()
    os._exit(0)  # threads that wait for the GIL while the interpreter ends are not what is tried here


main()
