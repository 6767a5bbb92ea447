"""One thread that calls 200 functions equally often, until the end of stdin: python even.py. Prints READY <pid>."""
import os
import select
import sys


def main():
    functions = {}
    for i in range(200):
        exec("def f%d(x):\n    return x + %d" % (i, i), functions)
    exec("def each(n):\n" + "".join("    n = f%d(n) & 255\n" % i for i in range(200)) + "    return n", functions)
    each, n = functions["each"], 0
    print("READY", os.getpid(), flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(200):
            n = each(n)
    print("OK", flush=True)


main()
