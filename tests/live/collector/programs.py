"""What cases of cases.py have called: programs that know how often they call what, and loops that count the work they get done."""
import sys
import time

MINOR = sys.version_info[1]


def on(first, last=99):
    """A case for these minor versions; --list leaves it out elsewhere."""
    def mark(case):
        case.minors = range(first, last + 1)
        return case
    return mark


def leaf(x):
    return x + 1


def tree(n):
    return leaf(n) if n < 2 else tree(n - 1) + tree(n - 2)


def expected_tree(n):
    a, b = 1, 1
    for _ in range(n - 1):
        a, b = b, a + b + 1
    return b


def gen(n):
    for i in range(n):
        yield i


def recurse(n):
    return 0 if n == 0 else 1 + recurse(n - 1)


def make_flat():
    """Calls of so many functions that none of them is hot: fewer events cannot be had by leaving some out."""
    names = {}
    exec('\n'.join('def flat_%d(): pass' % i for i in range(300)), names)
    functions = [names['flat_%d' % i] for i in range(300)]

    def flat():
        for f in functions:
            f()
    return flat


flat = make_flat()


busy = flat if MINOR >= 12 else lambda: tree(12)


def spin(seconds):
    """Work per CPU time of the whole process: what others do on this machine does not count."""
    begin, n = time.process_time(), 0
    while time.process_time() < begin + seconds:
        busy()
        n += 1
    return n / (time.process_time() - begin)


def tiny(calls):
    calls[0] += 1


def step(calls):
    for _ in range(40):
        tiny(calls)
    sum(range(1000))


def steps(seconds, calls):
    """CALLS is one thread's own: += is not atomic everywhere."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step(calls)
    return calls[0]
