"""A service of some processes that do little: it starts two like itself, and all of them work until their stdin ends. Prints READY and the pids, its own first.
Words after the number of children are there to be found by."""
import os
import subprocess
import sys
import time


def step(n):
    return sum(i * i for i in range(n))


children = [subprocess.Popen([sys.executable, __file__, "0", *sys.argv[2:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(int(sys.argv[1]))]
print("READY", os.getpid(), *(child.stdout.readline().split()[1] for child in children), flush=True)
os.set_blocking(0, False)
while True:
    step(2000)
    time.sleep(0.005)
    try:
        if not os.read(0, 1):
            break
    except BlockingIOError:
        pass
