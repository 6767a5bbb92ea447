"""Requests one after the other, for the example programs: python transformer.py [--seconds N]."""
import argparse
import os
import time


def loop(name, request):
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    print("READY", os.getpid(), flush=True)
    end, done = time.monotonic() + options.seconds, 0
    while time.monotonic() < end:
        request()
        done += 1
    print("%s: %d requests in %.1f s" % (name, done, options.seconds))
