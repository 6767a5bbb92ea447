"""A program with a real libcupti and no GPU: real.py LIBRARY [DRIVER]. DRIVER is a libcuda that fails; without one there is none in the process."""
import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_NOW)
if len(sys.argv) > 2:
    ctypes.CDLL(sys.argv[2]).cuInit(0)
print("READY", os.getpid(), flush=True)
for line in sys.stdin:
    print("DONE", sum(range(10000)), flush=True)
print("OK", flush=True)
