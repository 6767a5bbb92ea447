"""Programs with different troubles: python planted.py busy|alone|sleeping|locks [--seconds N].

busy      one thread computes in Python all the time
alone     the same, with no other thread at all
sleeping  a server waits for requests that never come
locks     six threads want one lock; its holder waits for a slow device while it has it
Prints READY <pid>; ends after the time or at the end of stdin."""
import argparse
import os
import socket
import sys
import threading
import time

stop = threading.Event()


def spin(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def busy():
    while not stop.is_set():
        spin(2000)


def alone():
    """One thread, that never waits. Has to be killed."""
    while True:
        spin(1000)


def sleeping():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    server.settimeout(0.5)
    while not stop.is_set():
        try:
            server.accept()
        except socket.timeout:
            pass


def slow_device():
    time.sleep(0.002)


def use_device(lock):
    with lock:
        slow_device()


def pool_worker(lock):
    while not stop.is_set():
        use_device(lock)


def locks():
    lock = threading.Lock()
    workers = [threading.Thread(target=pool_worker, args=(lock,), name="worker-%d" % i) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["busy", "alone", "sleeping", "locks"])
    parser.add_argument("--seconds", type=float, default=600)
    options = parser.parse_args()
    if options.kind != "alone":
        threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), name="stdin", daemon=True).start()
        timer = threading.Timer(options.seconds, stop.set)
        timer.daemon = True
        timer.start()
    print("READY", os.getpid(), flush=True)
    globals()[options.kind]()


main()
