"""Tasks of asyncio that know what they do: "heavy" and "light" burn CPU time, three to one, tasks without a name as much as "light" together; "stall" sleeps with the
loop in its hands; "waiter" is suspended in two coroutines, "second" in "waiter".

With "plain" none of them is there. READY PID, then SPENT HEAVY LIGHT UNNAMED STALL NOW every 0.1 s: CPU time of the first three, sleep of the fourth, the clock; ns."""
import asyncio
import os
import sys
import time

ROUNDS, STALL_NS = 12000, 4000000
SPENT = {"heavy": 0, "light": 0, "unnamed": 0, "stall": 0}


def work(rounds):
    total = 0
    for i in range(rounds):
        total += i & 3
    return total


async def step(name, rounds):
    begin = time.thread_time_ns()
    work(rounds)
    SPENT[name] += time.thread_time_ns() - begin
    await asyncio.sleep(0)


async def burn(name, rounds):
    while True:
        await step(name, rounds)


async def brief():
    await step("unnamed", ROUNDS)


async def spawn():
    while True:
        await asyncio.get_running_loop().create_task(brief())


async def stall():
    while True:
        time.sleep(STALL_NS * 1e-9)
        SPENT["stall"] += STALL_NS  # what a clock shows is more on a busy machine, where who wakes waits for a CPU
        await asyncio.sleep(0)


async def inner(future):
    await future


async def outer(future):
    await inner(future)


async def waits_for(task):
    await task


async def main():
    loop = asyncio.get_running_loop()
    waiter = asyncio.create_task(outer(loop.create_future()), name="waiter")
    tasks = [asyncio.create_task(coroutine, name=name) for coroutine, name in (
        (burn("heavy", 3 * ROUNDS), "heavy"), (burn("light", ROUNDS), "light"), (spawn(), "spawner"), (stall(), "stall"), (waits_for(waiter), "second"))]
    print("READY", os.getpid(), flush=True)
    while tasks:
        await asyncio.sleep(0.1)
        print("SPENT", *SPENT.values(), time.monotonic_ns(), flush=True)


def plain():
    print("READY", os.getpid(), flush=True)
    while True:
        work(ROUNDS)


if sys.argv[1:] == ["plain"]:
    plain()
else:
    asyncio.run(main())
