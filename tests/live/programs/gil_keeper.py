"""Keeps the GIL in one long C call after the other until a line comes on stdin; then waits for the end of stdin. Prints READY <pid>, FREE, OK."""
import ctypes
import os
import sys

libc = ctypes.PyDLL(None)
keeping = libc.poll  # PyDLL: called with the GIL
waiting = (ctypes.c_int * 2)(0, 1)  # struct pollfd: stdin, POLLIN
print("READY", os.getpid(), flush=True)
keeping(ctypes.byref(waiting), 1, 120000)
sys.stdin.readline()
print("FREE", flush=True)
while sys.stdin.readline():
    pass
print("OK", flush=True)
