"""Known-answer programs: python known.py KIND [--now] [--seconds N] [--rounds N].

Prints READY <pid>, waits for a line on stdin (not with --now), does work it counts itself, prints TRUTH {json}, waits for the end of
stdin. Whoever attaches before the line and leaves after TRUTH must report exactly these calls:
    calls   function name -> calls (a generator or coroutine counts once, however often it is resumed)
    c_calls the same for functions written in C
    ledger  function name -> seconds spent in it, on CLOCK_MONOTONIC
    wrong   what went wrong in the program itself: must be 0
Runs on Python 3.8 and later, standard library only."""
import argparse
import asyncio
import json
import os
import sys
import threading
import time
import zlib

now = time.monotonic
calls, c_calls, ledger = {}, {}, {}
wrong = 0


def check(condition):
    global wrong
    wrong += not condition


# threads: two that exist at attach, two that start later; the counts are known from the plan alone


def marker_inner(x):
    return x + 1


def marker_outer(n):
    x = 0
    for _ in range(n):
        x = marker_inner(x)
    return x


class Marker:
    def method(self, x):
        return x * 2

    @staticmethod
    def static(x):
        return x * 3


def threads(go, options):
    each, per = options.rounds, 50
    start = threading.Event()
    results = []

    def body():
        start.wait()
        marker = Marker()
        results.append(sum(marker_outer(per) for _ in range(each)) + marker.method(1) + Marker.static(1))

    early = [threading.Thread(target=body, name="early-%d" % i) for i in range(2)]
    for t in early:
        t.start()
    go()
    start.set()
    late = [threading.Thread(target=body, name="late-%d" % i) for i in range(2)]
    for t in late:
        t.start()
    for t in early + late:
        t.join()
    check(results == [each * per + 5] * 4)
    calls.update({"marker_outer": 4 * each, "marker_inner": 4 * each * per, "Marker.method": 4, "Marker.static": 4})


# asyncio: coroutines that wait for each other, for the loop and for time


async def marker_leaf(n):
    for _ in range(n):
        await asyncio.sleep(0)
    return n


async def marker_parent(n):
    total = 0
    for _ in range(3):
        total += await marker_leaf(n)
    await asyncio.sleep(0.001)
    return total + marker_inner(0)


async def marker_stream(n):
    for i in range(n):
        yield i
        await asyncio.sleep(0)


async def marker_cancelled():
    await asyncio.sleep(60)


async def asyncio_main(go, options):
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, go)
    rounds = options.rounds
    for _ in range(rounds):
        got = await asyncio.gather(*[marker_parent(2) for _ in range(5)])
        check(got == [7] * 5)
        check([i async for i in marker_stream(4)] == [0, 1, 2, 3])
        task = asyncio.ensure_future(marker_cancelled())
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
            check(False)
        except asyncio.CancelledError:
            pass
    calls.update({"marker_leaf": 15 * rounds, "marker_parent": 5 * rounds, "marker_inner": 5 * rounds,
                  "marker_stream": rounds, "marker_cancelled": rounds})


def asyncio_(go, options):
    asyncio.run(asyncio_main(go, options))


# generators: run dry, closed half way, thrown into, dropped, delegated


def marker_gen(n):
    for i in range(n):
        yield i


def marker_delegate(n):
    yield from marker_gen(n)


def marker_guarded(log):
    try:
        while True:
            yield 1
    except KeyError:
        log.append("thrown")
        yield 2
    finally:
        log.append("closed")


def generators(go, options):
    go()
    rounds = options.rounds
    log = []
    for _ in range(rounds):
        check(sum(marker_gen(10)) == 45)
        check(list(marker_delegate(3)) == [0, 1, 2])
        g = marker_guarded(log)
        next(g)
        check(g.throw(KeyError("k")) == 2)
        g.close()
        g = marker_guarded(log)
        next(g)
        del g  # dropped while suspended: closed by its deallocator
        g = marker_gen(5)
        next(g)
        g.close()
        marker_gen(5)  # never started: not a call of its body
        check(sum(marker_inner(x) for x in range(4)) == 10)
    check(log == ["thrown", "closed", "closed"] * rounds)
    calls.update({"marker_gen": 3 * rounds, "marker_delegate": rounds, "marker_guarded": 2 * rounds, "marker_inner": 4 * rounds})


# exceptions: raised, passed through, caught, raised again, and StopIteration


def marker_raise(kind):
    raise kind("x")


def marker_through(kind):
    marker_raise(kind)


def marker_catch(kind):
    try:
        marker_through(kind)
    except kind:
        return 1
    return 0


def marker_again():
    try:
        marker_raise(ValueError)
    except ValueError as error:
        raise KeyError("y") from error


def marker_finally(log):
    try:
        marker_raise(OSError)
    finally:
        log.append(1)


def exceptions(go, options):
    go()
    rounds, log = options.rounds, []
    for _ in range(rounds):
        check(marker_catch(ValueError) == 1)
        check(marker_catch(StopIteration) == 1)
        try:
            marker_again()
            check(False)
        except KeyError:
            pass
        try:
            marker_finally(log)
            check(False)
        except OSError:
            pass
    check(len(log) == rounds)
    calls.update({"marker_raise": 4 * rounds, "marker_through": 2 * rounds, "marker_catch": 2 * rounds, "marker_again": rounds,
                  "marker_finally": rounds})


# recursion: 10 000 deep, on a thread with a large C stack


def marker_down(n):
    if n == 0:
        return 0
    return 1 + marker_down(n - 1)


def recursion(go, options):
    depth, rounds = 10000, max(1, options.rounds // 50)
    sys.setrecursionlimit(depth + 500)
    threading.stack_size(512 * 1024 * 1024)
    start = threading.Event()

    def body():
        start.wait()
        try:
            for _ in range(rounds):
                check(marker_down(depth) == depth)
        except RecursionError:
            check(False)

    thread = threading.Thread(target=body, name="deep")
    thread.start()
    go()
    start.set()
    thread.join()
    calls.update({"marker_down": rounds * (depth + 1)})


# C functions, and Python called back from C


def marker_compare(x):
    return -x


def marker_c_user(n):
    for i in range(n):
        zlib.crc32(b"abc")
    return sorted(range(8), key=marker_compare)


def ccalls(go, options):
    go()
    for _ in range(options.rounds):
        check(marker_c_user(10)[0] == 7)
    calls.update({"marker_c_user": options.rounds, "marker_compare": 8 * options.rounds})
    c_calls.update({"crc32": 10 * options.rounds})


# steps: a function so hot and tiny that a budget makes a number of it


def marker_tiny(seen):
    seen[0] += 1


def marker_step(seen):
    for _ in range(40):
        marker_tiny(seen)
    sum(range(1000))


def steps(go, options):
    seen, done = [0], 0
    go()
    end = now() + options.seconds
    while now() < end:
        marker_step(seen)
        done += 1
    calls.update({"marker_tiny": seen[0], "marker_step": done})


# shares: every part spins until a deadline of its own, so the shares stay what they are whatever a profiler costs


def part_hot(end):
    x = 1
    while now() < end:
        for _ in range(50):
            x = (x * 31 + 7) & 0xFFFF


def part_zlib(end):
    while now() < end:
        zlib.compress(BLOB, 6)


def part_calls(end):
    x = 0
    while now() < end:
        for f in CALLED:
            x = f(x)


def part_light(end):
    x = 0
    while now() < end:
        x ^= 1


BLOB = bytes(range(256)) * 16
CALLED = [marker_inner] * 20
SHARES = [(part_hot, 50), (part_zlib, 25), (part_calls, 15), (part_light, 10)]


def shares(go, options):
    if options.functions:
        threading.Thread(target=threading.Event().wait, daemon=True).start()  # with one alone, 3.12 and later get no switch thread
        names = {}
        exec("\n".join("def many_%d(x): return x + 1" % i for i in range(options.functions)), names)
        CALLED[:] = [names["many_%d" % i] for i in range(options.functions)]
    for f, _ in SHARES:
        ledger[f.__name__] = 0.0
    go()
    end, i = now() + options.seconds, 1
    while now() < end:
        i = (i * 1103515245 + 12345) & 0x7FFFFFFF
        length = 0.02 + (i % 1000) * 3e-5
        t = now()
        for f, share in SHARES:
            begin = now()
            t += length * share / 100.0
            f(t)
            ledger[f.__name__] += now() - begin


KINDS = {"threads": threads, "asyncio": asyncio_, "generators": generators, "exceptions": exceptions, "recursion": recursion,
         "ccalls": ccalls, "steps": steps, "shares": shares}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--now", action="store_true")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--functions", type=int, default=0, help="shares: so many different ones are called, where else it is one")
    options = parser.parse_args()

    def go():
        print("READY", os.getpid(), flush=True)
        if not options.now:
            sys.stdin.readline()

    KINDS[options.kind](go, options)
    print("TRUTH", json.dumps({"calls": calls, "c_calls": c_calls, "ledger": ledger, "wrong": wrong}), flush=True)
    if not options.now:
        sys.stdin.read()
    sys.exit(1 if wrong else 0)


main()
