"""What one enter + leave costs beside what cProfile adds, in the same run: minima, so that a busy machine matters little.

Prints one line; ends with 1 when the ratio is above the goal of DESIGN §12. Run by tests/hot/run."""
import cProfile
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'live', 'collector'))
from session import *

GOAL = {8: .25, 9: .25, 10: .25, 11: .40, 12: .50, 13: .40, 14: .40, 15: .40}


def g():
    pass


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls(n=5000):
    begin = time.perf_counter_ns()
    for _ in range(n):
        g()
    return (time.perf_counter_ns() - begin) / n


def fibs():
    begin = time.perf_counter_ns()
    fib(15)
    return (time.perf_counter_ns() - begin) / 1973


def best(function, rounds=100):
    return min(function() for _ in range(rounds))


class Ours:
    def __enter__(self):
        self.session = Session(subbufs=64, clock=1, ticks_per_second=ticks_per_second(), deadline_ticks=2 ** 63, max_overhead_ppm=0)
        self.session.arm()

    def __exit__(self, *_):
        self.session.disarm()


class Theirs:
    def __enter__(self):
        self.profile = cProfile.Profile()
        self.profile.enable()

    def __exit__(self, *_):
        self.profile.disable()


calls()
free, ours, theirs, fib_free, fib_ours = [], [], [], [], []
for _ in range(int(os.environ.get('ROUNDS', '5'))):
    free.append(best(calls))
    fib_free.append(best(fibs, 20))
    with Ours():
        ours.append(best(calls))
        fib_ours.append(best(fibs, 20))
    with Theirs():
        theirs.append(best(calls, 30))
base, added, other = min(free), min(ours) - min(free), min(theirs) - min(free)
slower = min(fib_ours) - min(fib_free)
ratio, goal = added / other, GOAL[sys.version_info[1]]
print('%-8s plain %.0f ns, ours +%.1f, cProfile +%.1f: ratio %.2f (goal %.2f); fib %.0f -> %.0f ns per call, %.1f per event'
      % (sys.version.split()[0], base, added, other, ratio, goal, min(fib_free), min(fib_ours), slower / 2))
sys.exit(ratio > goal)
