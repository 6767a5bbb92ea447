"""Ends by itself: python mortal.py HOW SECONDS. Prints READY <pid>, works SECONDS (with a thread beside it), and ends by HOW.

return      its main function returns
exit        sys.exit(0)
_exit       os._exit(0)
exception   nobody catches it
kill        SIGKILL to itself
exec        it becomes another Python, which says so and ends
threads     os._exit(0) in another thread, while the main thread computes"""
import os
import signal
import sys
import threading
import time

HOW, SECONDS = sys.argv[1], float(sys.argv[2])
sys.stderr = open(os.devnull, "w")  # what an uncaught exception says is not ours


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compute(until):
    while time.monotonic() < until:
        fib(10)


def doze():
    while True:
        fib(5)
        time.sleep(0.01)


def end():
    if HOW == "exit":
        sys.exit(0)
    elif HOW in ("_exit", "threads"):
        os._exit(0)
    elif HOW == "exception":
        raise ValueError("nobody catches this")
    elif HOW == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif HOW == "exec":
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(0.3); print('second', flush=True)"])


def main():
    until = time.monotonic() + SECONDS
    threading.Thread(target=doze, daemon=True).start()
    if HOW == "threads":
        threading.Thread(target=lambda: (time.sleep(SECONDS), end()), daemon=True).start()
        until += 60
    compute(until)
    end()


print("READY", os.getpid(), flush=True)
main()
