"""Blocking calls of every kind and time limit, entered meanwhile: none says EINTR, ends early, or misses what should wake it. On the only thread of
a C program, on a Python's only thread, and on a thread that Python does not know. For tests/live/inject/run."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import entering
from entering import BUILD, QUICK, Target, enter, last_line, number, require

KINDS = ("nanosleep", "clock_nanosleep", "poll", "select", "futex", "epoll_wait", "epoll_pwait", "rt_sigtimedwait", "semtimedop", "recv", "read", "ppoll", "pselect6", "write", "send", "recv_all")
LIMITS = (200, -1, 30000)  # ms
UNWOKEN = ("nanosleep", "clock_nanosleep")
PARTLY = ("write", "send", "recv_all")  # all of a large buffer, part by part
PROGRAM = ("import ctypes, os, sys\nblocked = ctypes.CDLL(sys.argv[1])\nprint('READY', os.getpid(), flush=True)\n"
           "sys.exit(getattr(blocked, sys.argv[2])(sys.argv[3].encode(), ctypes.c_double(float(sys.argv[4])), ctypes.c_long(int(sys.argv[5]))))\n")


def own_copy(path, folder):
    """Of an executable file, because those who enter processes of one file take turns."""
    copy = os.path.join(folder, os.path.basename(path))
    shutil.copy2(path, copy)
    return copy


def command(host, python, folder, kind, seconds, limit):
    """Returns (arguments, environment)."""
    if host == "C":
        return [own_copy(os.path.join(BUILD, "blocked"), folder), kind, seconds, limit], {"LD_PRELOAD": os.path.join(BUILD, "pretend.so")}
    real = os.path.realpath(python)
    function = "blocked_run" if host == "Python" else "blocked_thread"
    return [own_copy(real, folder), "-c", PROGRAM, os.path.join(BUILD, "blocked.so"), function, kind, seconds, limit], {"PYTHONHOME": os.path.dirname(os.path.dirname(real))}


def one(host, python, kind, limit):
    """Entered some times while it blocks. Returns how many attaches worked."""
    seconds, rounds = (1, 6) if kind in UNWOKEN and limit > 1000 else (5, 4) if limit < 1000 else (8, 3)
    with tempfile.TemporaryDirectory() as folder:
        words, env = command(host, python, folder, kind, str(seconds), str(limit))
        with Target(*words, env=env) as target:
            status, said = enter(target.pid, "rounds=%d" % rounds, "gap_us=300000", "any=%d" % (host == "thread"), ok=(0, 3, 4))
            checker = target.end(stop=False, timeout=120)
            require(status == 0 or "ok=" in said and number(last_line(said), "ok") > 0, "%s, limit %d: never entered: %s" % (host, limit, said))
            return int(number(last_line(said), "ok")), int(re.search(r"calls (\d+)", checker)[1])


def start(pool, kind, python):
    limits = [-1] if kind in PARTLY else [limit for limit in LIMITS if kind not in UNWOKEN or limit == 200 or limit > 0 and not QUICK]
    return limits, [pool.submit(one, host, python, kind, limit) for host in ("C", "Python", "thread") for limit in limits]


def outcome(limits, jobs):
    done = [job.result() for job in jobs]
    return "%d attaches, %d calls; limits %s ms" % (sum(d[0] for d in done), sum(d[1] for d in done), " ".join(map(str, limits)))


def starved(kind, limit):
    """Its thread gets a CPU only when two busy ones leave it some: it stops long after it was woken by us. Such an attach may fail; its call may not."""
    cpu = min(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        words, env = command("C", None, folder, kind, "6", str(limit))
        with Target(*words, env=env) as target:
            time.sleep(0.5)  # it calls by now
            os.sched_setscheduler(target.pid, os.SCHED_IDLE, os.sched_param(0))
            os.sched_setaffinity(target.pid, {cpu})
            hogs = [subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"]) for _ in range(2)]
            try:
                _, said = enter(target.pid, "rounds=8", "gap_us=100000", "timeout_ms=3000", ok=(0, 1, 3, 4))
            finally:
                for hog in hogs:
                    hog.kill()
                    hog.wait()
            return int(number(last_line(said), "ok")), int(re.search(r"calls (\d+)", target.end(stop=False, timeout=120))[1])


STARVED = (("epoll_wait", -1), ("semtimedop", -1), ("epoll_wait", 200), ("pselect6", 200))


def all_starved():
    with concurrent.futures.ThreadPoolExecutor(len(STARVED)) as pool:
        done = list(pool.map(lambda row: starved(*row), STARVED))
    return "%d attaches worked, %d calls" % (sum(d[0] for d in done), sum(d[1] for d in done))


def run_tests(python):
    """They sleep nearly all the time: many at once."""
    kinds = [kind for kind in KINDS if entering.wanted("blocked in " + kind)]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        started = [(kind, start(pool, kind, python)) for kind in kinds]
        for kind, jobs in started:
            entering.tell("blocked in " + kind, outcome, *jobs)
    entering.run_test("blocked in calls, starved", all_starved)
