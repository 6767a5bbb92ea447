"""Threads that top must tell apart: program.py [gpu LIBRARY]. Prints READY <pid>, and BEAT <n> for each line on stdin, so that it is seen to live on.

three: three parts of four of the main thread's time; one: the rest. A sleeper, a thread that waits for a lock. gpu: calls of a library that stands in for CUDA's."""
import ctypes
import os
import sys
import threading
import time


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def three():
    end = time.thread_time() + 0.03
    while time.thread_time() < end:
        pass


def one():
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass


def sleeper():
    while True:
        time.sleep(30)


def blocked(lock):
    lock.acquire()


def in_launch(library):
    library.cudaLaunchKernel()


def in_sync(library):
    library.cudaStreamSynchronize()


def gpu(path):
    library = ctypes.CDLL(path)
    while True:
        in_launch(library)
        in_sync(library)


def beats():
    number = 0
    for _ in sys.stdin:
        number += 1
        print("BEAT", number, flush=True)
    os._exit(0)


lock = threading.Lock()
lock.acquire()
work = [(sleeper, ()), (blocked, (lock,)), (beats, ())]
if len(sys.argv) > 1:
    work.append((gpu, (sys.argv[2],)))
for function, arguments in work:
    threading.Thread(target=function, args=arguments, daemon=True).start()
print("READY", os.getpid(), flush=True)
while True:
    three()
    one()
