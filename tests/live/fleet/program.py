"""Programs of several processes. The first argument says which; each prints READY <pid> of the process that people attach to, and PID <pid> of every one that works.

launcher N      waits for N spawned workers, as torchrun: each has RANK, LOCAL_RANK and WORLD_SIZE
pool N          a multiprocessing pool of N that is kept busy
later N         starts N workers a second after READY, and a shell that is no Python
server 1        answers requests in 10 ms each, in 1.2 s each once SIGUSR1 has come
many N          N processes that work a little and wait a lot, in one process group of this one"""
import multiprocessing
import os
import signal
import subprocess
import sys
import time

END = time.monotonic() + 90


def say(word, pid):
    """By one write: print() makes several where PYTHONUNBUFFERED is set, and the lines of processes that share a pipe mix."""
    os.write(1, b"%s %d\n" % (word.encode(), pid))


def compute(count):
    total = 0
    for number in range(count):
        total += number
    return total


def worker():
    say("PID", os.getpid())
    while time.monotonic() < END and os.getppid() != 1:
        compute(2000)
        time.sleep(0.001)


def light():
    say("PID", os.getpid())
    while time.monotonic() < END and os.getppid() != 1:
        compute(300)
        time.sleep(0.02)


def spawn(what, rank, count):
    env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count))
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), what], env=env, stdin=subprocess.DEVNULL)


def wait(children):
    for child in children:
        child.wait()


def launcher(count):
    children = [spawn("worker", rank, count) for rank in range(count)]
    time.sleep(0.5)
    say("READY", os.getpid())
    wait(children)


def pool(count):
    with multiprocessing.get_context("fork").Pool(count) as workers:
        pids = set()
        while len(pids) < count:
            pids.update(workers.map(identify, range(4 * count), chunksize=1))
        for pid in pids:
            say("PID", pid)
        say("READY", os.getpid())
        while time.monotonic() < END:
            workers.map(compute, [20000] * 4 * count, chunksize=1)


def identify(_):
    time.sleep(0.05)
    return os.getpid()


def later(count):
    say("READY", os.getpid())
    time.sleep(1)
    children = [spawn("worker", rank, count) for rank in range(count)] + [subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)]
    try:
        wait(children[:-1])
    finally:
        children[-1].kill()


def handle(seconds):
    time.sleep(seconds)


def server(_):
    waits = [0.01]
    signal.signal(signal.SIGUSR1, lambda *_: waits.append(1.2))
    say("READY", os.getpid())
    while time.monotonic() < END:
        handle(waits[-1])


def many(count):
    children = [spawn("light", rank, count) for rank in range(count)]
    time.sleep(1 + count / 20)
    say("READY", os.getpid())
    wait(children)


if __name__ == "__main__":
    what = sys.argv[1]
    if what in ("worker", "light"):
        {"worker": worker, "light": light}[what]()
    else:
        {"launcher": launcher, "pool": pool, "later": later, "server": server, "many": many}[what](int(sys.argv[2]))
