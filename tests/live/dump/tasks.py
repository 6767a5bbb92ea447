"""Threads with names, and tasks of asyncio that wait in known ways. KIND: wait (all of them wait), run (one runs and awaits nothing).

READY PID, TRUTH {"threads": {tid: name}, "tasks": {name: [state, what it waits for, [[qualified name or name, file, line], … outermost first]]}}, then 60 s."""
import asyncio
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs"))
from still import wait_until_still

NUMBERS = []


async def inner():
    await asyncio.sleep(600)


async def outer():
    await inner()


async def waits_for_task(task):
    await task


async def waits_for_future(future, unused=None):
    await future


async def numbers():
    yield 1
    await inner()


async def in_generator():
    NUMBERS.append(numbers())
    async for _ in NUMBERS[0]:
        pass


async def in_gather():
    await asyncio.gather(inner(), outer())


class Server:
    async def serve(self):
        async with asyncio.Lock():
            await outer()


def burn():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        sum(range(100))


async def runs():
    burn()


def coroutines(at):
    """Frames of AT and of what it awaits; an asend() of an asynchronous generator does not say whose it is."""
    rows = []
    while at is not None:
        if type(at).__name__ == "async_generator_asend":
            at = NUMBERS[0]
        frame = getattr(at, "cr_frame", None) or getattr(at, "ag_frame", None)
        if frame is None:
            break
        rows.append([getattr(frame.f_code, "co_qualname", frame.f_code.co_name), frame.f_code.co_filename, frame.f_lineno])
        at = getattr(at, "cr_await", None) or getattr(at, "ag_await", None)
    return rows


def truth_of(task):
    waiter = {"first": "Future", "second": 'task "first"', "third": "Future", "generator": "Future", "gather": "_GatheringFuture", "server": "Future"}
    name = task.get_name()
    return ["waiting", waiter.get(name, "Future"), coroutines(task.get_coro())]


def say(tasks):
    threads = {thread.native_id: thread.name for thread in threading.enumerate()}
    print("READY %d\nTRUTH %s" % (os.getpid(), json.dumps({"threads": threads, "tasks": tasks})), flush=True)


async def main(kind):
    loop = asyncio.get_running_loop()
    make = lambda coroutine, name: loop.create_task(coroutine) if not name else asyncio.create_task(coroutine, name=name)
    first = make(outer(), "first")
    tasks = [first, make(waits_for_task(first), "second"), make(waits_for_future(loop.create_future(), inner), "third"), make(in_generator(), "generator"),
             make(in_gather(), "gather"), make(Server().serve(), "séance"), make(inner(), None)]
    await asyncio.sleep(0.2)
    me = asyncio.current_task()
    told = {task.get_name(): truth_of(task) for task in asyncio.all_tasks() if task is not me}
    if kind == "run":
        told["runner"] = ["running", "", []]
        loop.call_later(0.3, lambda: tasks.append(make(runs(), "runner")))
    loop.call_soon(say, told)
    await asyncio.sleep(60)


def rest():
    time.sleep(60)


threading.Thread(target=rest, name="loader-ü", daemon=True).start()
threading.Thread(target=rest, name="a name that is much longer than what the kernel keeps of it", daemon=True).start()
renamed = threading.Thread(target=rest, daemon=True)
renamed.start()
renamed.name = "renamed"
wait_until_still()
asyncio.run(main(sys.argv[1]))
