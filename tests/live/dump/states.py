"""Threads that wait in known ways. KIND: gil (one holds the GIL in C and never gives it up), deadlock (two threads, two locks), pipe (one reads, one sleeps).

READY PID, TRUTH {state: [tid of each thread that must be in it]}, then what KIND says for 60 s."""
import ctypes
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs"))
from still import wait_until_still

tids = {}


def say(truth):
    print("READY %d\nTRUTH %s" % (os.getpid(), json.dumps(truth)), flush=True)


def wants_gil():
    tids["wants"] = threading.get_native_id()
    while True:
        time.sleep(0.01)


def gil():
    threading.Thread(target=wants_gil, daemon=True).start()
    while "wants" not in tids:
        time.sleep(0.01)
    say({"gil_wait": [tids["wants"]], "holder": [os.getpid()]})
    ctypes.PyDLL(None).usleep(60 * 1000000)


def deadlock():
    one, two, both = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def take(first, second):
        with first:
            both.wait()
            with second:
                pass

    threads = [threading.Thread(target=take, args=pair, daemon=True) for pair in ((one, two), (two, one))]
    [thread.start() for thread in threads]
    wait_until_still()
    say({"lock_wait": [thread.native_id for thread in threads] + [os.getpid()]})
    threads[0].join()


def pipe():
    ends = os.pipe()
    reader = threading.Thread(target=lambda: os.read(ends[0], 1), daemon=True)
    reader.start()
    wait_until_still()
    say({"io_wait": [reader.native_id], "sleep": [os.getpid()], "object": "fd %d (pipe:" % ends[0]})
    time.sleep(60)


{"gil": gil, "deadlock": deadlock, "pipe": pipe}[sys.argv[1]]()
