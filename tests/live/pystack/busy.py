"""Threads that call, return, raise, generate and end all the time, each only in functions of its own: whatever is read of one must fit together.

READY PID, TRUTH {"hex": …, "chains": {leaf: [its callers outwards, …]}}, then work until stdin closes or SECS are over."""
import json
import os
import sys
import threading
import time

END = time.monotonic() + float(os.environ.get("SECS", "30"))


def alpha(depth):
    return alpha_down(depth)


def alpha_down(depth):
    return alpha_leaf() if depth == 0 else alpha_down(depth - 1)


def alpha_leaf():
    return 1


def beta(depth):
    for _ in beta_items(depth):
        beta_leaf()


def beta_items(depth):
    for item in range(depth):
        yield item


def beta_leaf():
    try:
        beta_raise()
    except KeyError:
        pass


def beta_raise():
    raise KeyError


def gamma(depth):
    exec(compile("def made():\n    gamma_leaf()\nmade()", "made", "exec"), {"gamma_leaf": gamma_leaf})


def gamma_leaf():
    return [None] * 3


def delta(depth):
    thread = threading.Thread(target=delta_short)
    thread.start()
    thread.join()


def delta_short():
    return sum(range(10))


def work(function):
    while time.monotonic() < END:
        for _ in range(200):
            function(20)


def main():
    for function in (alpha, beta, gamma, delta):
        threading.Thread(target=work, args=(function,), daemon=True).start()
    print("READY %d\nTRUTH %s" % (os.getpid(), json.dumps({"hex": sys.hexversion})), flush=True)
    sys.stdin.read()
    os._exit(0)


main()
