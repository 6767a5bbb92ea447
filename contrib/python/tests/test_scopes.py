"""Scopes, marks and profile_function() where nobody measures. As a wheel installs it: `python -m unittest` (or pytest) in an environment that has it."""
import asyncio
import contextlib
import gc
import json
import random
import sys
import threading
import time
import unittest

from inferscope import is_attached, mark_event, scope
from common import REFUSED, TOLD, run_python


class Scopes(unittest.TestCase):
    """Without anybody who measures."""

    def test_block(self):
        with scope("a") as one:
            self.assertEqual((one.name, one.metadata, repr(one)), ("a", None, "<scope 'a', open>"))
        self.assertEqual(repr(one), "<scope 'a'>")
        with one:  # it may be used again
            with self.assertRaises(RuntimeError):
                one.__enter__()
        with self.assertRaises(TypeError):
            scope(3)
        with self.assertRaises(TypeError):
            scope()

    def test_exceptions_pass_through(self):
        with self.assertRaises(KeyError):
            with scope("a"):
                raise KeyError
        self.assertFalse(is_attached())

    def test_metadata(self):
        self.assertEqual(json.loads(scope("a", {"tokens": 3}).metadata), {"tokens": 3})
        self.assertEqual(json.loads(scope("a", metadata=["x", object]).metadata)[0], "x")
        self.assertLess(len(scope("a", "x").metadata), 10)
        self.assertIsNone(scope("a", None).metadata)
        self.assertLess(len(scope("a", {"long": "x" * 100000}).metadata), 1300)
        self.assertIn("cut", json.loads(scope("a", {"long": "x" * 100000}).metadata))
        mark_event("m", metadata={"a": 1})
        mark_event("m", {"a": object()})
        mark_event("m")
        with self.assertRaises(TypeError):
            mark_event(3)

    def test_metadata_as_json_writes_it(self):
        """What we write ourselves and what is left to json: the same text."""
        class Text(str):
            pass

        class Number(int):
            pass
        leaves = [None, True, False, 0, -1, 7, 10 ** 18, 2 ** 63 - 1, -2 ** 63, 2 ** 63, 10 ** 30, 0.0, -0.0, 0.1, 1e16, 1e-7, -1.5e300, float("nan"), float("-inf"), "", "a b", "~", "\x7f", "q\"", "b\\",
                  "line\n", "\u00fc", "\u20ac", "\U0001f600", "\ud800", "\0", Text("own"), Number(5), b"bytes", object, {}, [], (), "x" * 990, "y" * 1000, "z" * 1100]
        keys = ["batch", "", "two words", "k\"", "\u00fc", 1, None, True, 1.5, Text("own")]
        chance = random.Random(1)

        def value(depth):
            kind = chance.randrange(6 if depth else 3)
            if kind < 3:
                return chance.choice(leaves)
            if kind == 3:
                return {chance.choice(keys): value(depth - 1) for _ in range(chance.randrange(4))}
            return (list if kind == 4 else tuple)(value(depth - 1) for _ in range(chance.randrange(4)))
        deep = 1
        for _ in range(20):
            deep = [deep]
        for one in leaves + [deep, {"batch": 8}, {"n": list(range(260))}, [{"k": "v" * n} for n in range(900)][-1]] + [value(4) for _ in range(2000)]:
            if one is None or type(one) in (str, Text):
                continue  # no metadata, or JSON already
            text = json.dumps(one, default=repr, separators=(",", ":"))
            if len(text) <= 1000:
                self.assertEqual(scope("a", one).metadata, text)
            else:
                self.assertEqual(json.loads(scope("a", one).metadata), {"cut": text[:900]})

    def test_metadata_that_json_refuses(self):
        self.assertEqual([scope("a", metadata).metadata for metadata in REFUSED[:3]] + [json.loads(scope("a", REFUSED[3]).metadata)], TOLD)

        class Stopped:
            def __repr__(self):
                raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            scope("a", Stopped())

    def test_decorators(self):
        @scope("named")
        def plain(a, b=2):
            """Doc."""
            return a + b

        @scope
        def bare():
            return 5

        @scope("steps")
        def steps():
            got = yield 1
            yield got

        self.assertEqual((plain(1), plain.__name__, plain.__doc__, bare()), (3, "plain", "Doc.", 5))
        one = steps()
        self.assertEqual((next(one), one.send(7), list(one)), (1, 7, []))

    def test_async(self):
        @scope("coroutine")
        async def work(n):
            async with scope("inner") as inner:
                await asyncio.sleep(0)
                return inner.name, n

        @scope("items")
        async def items():
            for i in range(3):
                yield i

        async def main():
            got = await asyncio.gather(*(work(i) for i in range(20)))
            self.assertEqual(got, [("inner", i) for i in range(20)])
            self.assertEqual([i async for i in items()], [0, 1, 2])
        asyncio.run(main())

    def test_async_generators_are_driven_as_without(self):
        """What is sent, thrown and closed gets to them, and the loop that ends closes them once: all as without a scope."""
        async def session(log):
            try:
                got = yield "begun"
                while True:
                    try:
                        got = yield "sent", got
                    except KeyError as error:
                        log.append(("caught", str(error), sys.exc_info()[0] is KeyError))
                        got = yield "caught"
            except ValueError:
                await asyncio.sleep(0)
                log.append("rolled back")
                raise
            except GeneratorExit:
                log.append("closed")
                raise
            finally:
                log.append((sys.exc_info()[0] or "none", "end"))
                await asyncio.sleep(0.01)
                log.append("ended")

        async def stubborn(log):
            try:
                yield 1
            except (GeneratorExit, StopAsyncIteration):
                yield 2

        async def drive(make):
            log, told = [], []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(str(context)))
            one = make(session)(log)
            log += [await one.asend(None), await one.asend(7), await one.athrow(KeyError("k")), await one.asend(8)]
            await one.aclose()
            with contextlib.suppress(StopAsyncIteration):
                log.append(await one.__anext__())
            with self.assertRaises(ValueError) as raised:
                async with contextlib.asynccontextmanager(make(session))(log):
                    raise ValueError("of the handler")
            log.append((str(raised.exception), raised.exception.__context__, raised.exception.__cause__))
            one = make(stubborn)(log)
            log += [await one.__anext__(), await one.athrow(StopAsyncIteration())]
            one = make(stubborn)(log)
            await one.__anext__()
            with self.assertRaisesRegex(RuntimeError, "ignored GeneratorExit"):
                await one.aclose()
            dropped = make(session)(log)
            await dropped.__anext__()
            del dropped
            await asyncio.sleep(0.05)
            self.left = [make(session)(log) for _ in range(5)]
            for one in self.left:
                await one.__anext__()
            return log, told

        logs = [asyncio.run(drive(make)) for make in (lambda function: function, scope("session"))]
        self.assertEqual(logs[1], logs[0])
        self.assertEqual(logs[1][1], [])
        self.assertEqual(logs[1][0].count("rolled back"), 1)
        self.assertEqual(logs[1][0].count("ended"), 8)

    def test_threads_and_leaks(self):
        def work():
            for _ in range(2000):
                with scope("t"):
                    mark_event("m")
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        name = "".join(["le", "ak"])
        before = sys.getrefcount(name)
        for _ in range(1000):
            with scope(name):
                pass
            scope(name).__enter__()  # never left
        gc.collect()
        self.assertEqual(sys.getrefcount(name), before)

    def test_disabled(self):
        out = run_python("""
            import inferscope
            with inferscope.scope("a", {"b": object()}) as one:
                inferscope.mark_event("m", metadata={"c": 1})
            @inferscope.scope
            def f(): return 1
            @inferscope.scope("x")
            def g(): return 2
            print(type(one).__name__, f(), g(), inferscope.is_attached())
            """, INFERSCOPE_ENABLED="0")
        self.assertEqual(out.split(), ["_no_scope", "1", "2", "False"])

    def test_arguments(self):
        self.assertEqual(scope(name="a", metadata={"n": 1}).metadata, '{"n":1}')
        self.assertEqual(scope("a", metadata=None).name, "a")
        mark_event(name="m", metadata=None)
        for wrong in (lambda: scope("a", 1, 2), lambda: scope("a", name="b"), lambda: scope(metadata=1), lambda: scope("a", other=1), lambda: mark_event(), lambda: type(scope("a"))("b")):
            with self.assertRaises(TypeError):
                wrong()
        kept = [scope("n%d" % i, str(i)) for i in range(200)]  # more than are used again
        del kept[::2]
        kept += [scope("again") for _ in range(200)]
        self.assertEqual({one.name for one in kept}, {"n%d" % i for i in range(1, 200, 2)} | {"again"})
        self.assertEqual([one.metadata for one in kept[-3:]], [None] * 3)

    def test_cost(self):
        """Against an empty context manager of Python's; the bound is loose, as the machine may be busy."""
        import timeit
        setup = "from inferscope import scope\nclass empty:\n  def __enter__(self): pass\n  def __exit__(self, *e): pass\n"
        empty = min(timeit.repeat("with empty(): pass", setup, timer=time.thread_time, number=20000, repeat=9)) / 20000
        ours = min(timeit.repeat("with scope('a'): pass", setup, timer=time.thread_time, number=20000, repeat=9)) / 20000
        more = min(timeit.repeat("with scope('a', {'batch': 8}): pass", setup, timer=time.thread_time, number=20000, repeat=9)) / 20000
        print("scope: %.0f ns, with metadata: %.0f ns, an empty context manager: %.0f ns" % (ours * 1e9, more * 1e9, empty * 1e9))
        self.assertLess(ours, 3 * empty + 1e-6)
        self.assertLess(more, 4 * empty + 1e-6)


if __name__ == "__main__":
    unittest.main()
