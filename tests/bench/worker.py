"""Call-heavy work that says what it cost: python worker.py KIND LOG. About every millisecond a row of three 64-bit integers goes to LOG:
units of work done since the row before, CLOCK_MONOTONIC now, CPU time of this thread so far, ns. Prints READY PID; ends on SIGTERM. A second thread
sleeps, so that a switch thread is allowed on 3.12 and later."""
import json
import os
import re
import signal
import struct
import sys
import threading
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Constraint:
    """One row of a small solver: method calls and attributes, as in deltablue."""

    def __init__(self, strength, value):
        self.strength, self.value, self.satisfied = strength, value, False

    def is_weaker(self, other):
        return self.strength < other.strength

    def satisfy(self, mark):
        self.satisfied = True
        self.value = self.mixed(mark)

    def mixed(self, mark):
        return (self.value * 1103515245 + mark) & 0x7FFFFFFF


class Plan:
    def __init__(self, size):
        self.rows = [Constraint(i % 7, i) for i in range(size)]

    def weakest(self):
        best = self.rows[0]
        for row in self.rows:
            if row.is_weaker(best):
                best = row
        return best

    def execute(self, steps):
        for mark in range(steps):
            self.weakest().satisfy(mark)


REQUEST = re.compile(r'(?P<method>GET|POST) (?P<path>/\S*) HTTP/(?P<version>1\.[01])')


def parse(text):
    match = REQUEST.match(text)
    return dict(match.groupdict(), length=len(text))


def countdown(n):
    while n:
        yield n
        n -= 1


def boundary(n):
    try:
        if n % 3 == 0:
            raise KeyError(n)
        return n
    except KeyError:
        return 0


def make_decode():
    """The small transformer of the live tests: with numpy where that is installed."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "programs"))
    import work
    return (work.Model(128, 4) if work.np is not None else work.Model(16, 2)).decode


def make_flat():
    names = {}
    exec("\n".join("def flat_%d(x): return x" % i for i in range(300)), names)
    functions = [names["flat_%d" % i] for i in range(300)]
    return lambda: [f(1) for f in functions]


def change():
    """Calls a lot for two seconds, and little for the next two."""
    return fib(15) if time.monotonic() % 4 < 2 else sum(range(50000))


KINDS = {
    "fib": lambda: lambda: fib(15),
    "deltablue": lambda: lambda: Plan(12).execute(40),
    "json": lambda: lambda: [json.loads(json.dumps(parse("GET /v1/models/%d HTTP/1.1" % i))) for i in range(40)],
    "generators": lambda: lambda: sum(sum(countdown(20)) for _ in range(60)),
    "exceptions": lambda: lambda: [boundary(i) for i in range(600)],
    "flat": make_flat,
    "decode": make_decode,
    "phases": lambda: change,
}


def main():
    work, log = KINDS[sys.argv[1]](), open(sys.argv[2], "wb", buffering=0)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    threading.Thread(target=stop.wait, daemon=True).start()
    print("READY", os.getpid(), flush=True)
    row, rows = struct.Struct("<QQQ"), []
    while not stop.is_set():
        end = time.monotonic_ns() + 1000000
        n = 0
        while time.monotonic_ns() < end:
            work()
            n += 1
        rows.append((n, time.monotonic_ns(), time.thread_time_ns()))
        if len(rows) == 50:
            log.write(b"".join(row.pack(*values) for values in rows))
            rows = []


if __name__ == "__main__":
    main()
