"""The package as a wheel installs it: `python -m unittest` (or pytest) in an environment that has it."""
import asyncio
import collections
import contextlib
import doctest
import gc
import importlib.util
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import warnings
from unittest import mock

import inferscope
from inferscope import CPUProfiler, CpuCollector, FlameGraphConverter, GpuCollector, InferScopeError, ProfileReport, Profiler, ReportGenerator, TimelineMerger, TraceBuffer, TraceReader
from inferscope import BottleneckAnalyzer, analyze, attach, is_attached, mark_event, profile_function, profiler_context, scope


def run_python(text, cwd=None, **env):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, cwd=cwd, env=dict(os.environ, **env), timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def burn(seconds):
    """Of CPU time, so that a busy machine changes nothing of what is sampled."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


class NoRepr:
    def __repr__(self):
        raise RuntimeError("half built")


CIRCLE = {}
CIRCLE["self"] = CIRCLE
REFUSED = [{(1, 2): 3}, CIRCLE, {"o": NoRepr()}, {(1, 2): "x" * 10000}]
TOLD = ["{(1, 2): 3}", "{'self': {...}}", "<metadata without a repr()>", {"cut": repr({(1, 2): "x" * 10000})[:900]}]


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


class Inside(unittest.TestCase):
    """Measuring this very process."""

    def test_profiler(self):
        with scope("open before"):
            profiler = Profiler(max_overhead="none")
            profiler.start()
            try:
                self.assertTrue(is_attached())
                with scope("inference", {"n": 1}):
                    burn(0.1)
                    mark_event("tokenized", metadata={"tokens": 1024})
            finally:
                profiler.stop()
        self.assertFalse(is_attached())
        events = profiler.get_unified_timeline()
        by = {(e["event_type"], e["name"]): e for e in events}
        for key in (("scope_enter", "open before"), ("scope_enter", "inference"), ("scope_exit", "inference"), ("instant", "tokenized"), ("cpu_call", "burn")):
            self.assertIn(key, by)
        self.assertEqual(by["instant", "tokenized"]["metadata"], {"tokens": 1024})
        self.assertEqual(by["scope_enter", "inference"]["metadata"], {"n": 1})
        took = by["scope_exit", "inference"]["start_us"] - by["scope_enter", "inference"]["start_us"]
        self.assertGreater(took, 99000)
        self.assertEqual([e["start_us"] for e in events], sorted(e["start_us"] for e in events))
        stats = profiler.get_stats()
        self.assertGreater(stats["captured"], 4)
        self.assertEqual(profiler.report["capture"]["pid"], os.getpid())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.html")
            profiler.save(path)
            with open(path, encoding="utf-8") as file:
                self.assertIn("inference", file.read())

    def test_scopes_as_they_are_told(self):
        """Threads, tasks, generators, exceptions, async with: each scope has its end, on the thread and at the time that it had."""
        tids = []

        def in_thread():
            tids.append(threading.get_native_id())
            for _ in range(100):
                with scope("in thread"):
                    pass

        async def task(name, begin, took):
            await asyncio.sleep(begin)
            async with scope(name):
                await asyncio.sleep(took)

        async def tasks():
            await asyncio.gather(task("A", 0, 0.3), task("B", 0.05, 0.05), task("C", 0.08, 0.15))

        @scope("generated")
        def numbers():
            yield 1
            yield 2

        with Profiler(max_overhead="none") as profiler:
            threads = [threading.Thread(target=in_thread) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            asyncio.run(tasks())
            for generator in (numbers(), numbers()):
                next(generator)
                generator.close()
            with self.assertRaises(KeyError):
                with scope("raised"):
                    raise KeyError
        events = profiler.get_unified_timeline()
        enters = [event for event in events if event["event_type"] == "scope_enter"]
        exits = [event for event in events if event["event_type"] == "scope_exit"]
        names = sorted(event["name"] for event in enters)
        self.assertEqual(names, sorted(event["name"] for event in exits))
        self.assertEqual(names, ["A", "B", "C", "generated", "generated"] + 400 * ["in thread"] + ["raised"])
        self.assertEqual({event["thread_id"] for event in enters if event["name"] == "in thread"}, set(tids))
        took = {row["name"]: row["max_ns"] / 1e9 for row in profiler.report["scopes"]}
        self.assertGreater(took["A"], 0.29)
        self.assertTrue(0.045 < took["B"] < took["A"] and 0.14 < took["C"] < took["A"], took)

    def test_metadata_that_json_refuses(self):
        """A mark fails no program, measured or not."""
        def deep(n):
            if n:
                return deep(n - 1)
            mark_event("deep", {})

        def mark():
            for metadata in REFUSED:
                mark_event("refused", metadata)
            for n in range(sys.getrecursionlimit() - 150, sys.getrecursionlimit()):  # there is a depth with room for mark_event(), and for nothing of Python's below
                try:
                    deep(n)
                except RecursionError:
                    return n
        unmeasured = mark()
        with Profiler(max_overhead="none") as profiler:
            measured = mark()
        self.assertEqual(measured, unmeasured)
        self.assertEqual([event["metadata"] for event in profiler.get_unified_timeline() if event["event_type"] == "instant" and event["name"] == "refused"], TOLD)

    def test_wrong_options_and_settings(self):
        """Told as every failure is, with the program's words."""
        for options, said in (({"rate": 5000}, "rate"), ({"max_overhad": "5%"}, "max-overhad"), ({"native": True}, "native")):
            for measuring in (Profiler(**options), CpuCollector(**options)):
                with self.assertRaisesRegex(InferScopeError, said) as caught:
                    measuring.start()
                self.assertEqual(caught.exception.status, 2)
                self.assertIn(caught.exception.code, ("E_OPTION_UNKNOWN", "E_OPTION_VALUE"))
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, ".inferscope.yaml"), "w") as file:
                file.write("max-overhad: 5%\n")
            out = run_python("""
                import inferscope
                try:
                    inferscope.Profiler().start()
                except inferscope.InferScopeError as error:
                    print(error.status, error, inferscope.is_attached())
                """, cwd=folder)
        self.assertRegex(out, r"(?s)^[25] .*max-overhad.*False")

    def test_what_is_turned_off_is_off(self):
        self.assertEqual(inferscope._program.option_words({"max_overhead": "5%", "memory": True, "gc": False, "skip": ["a", "b"], "rate": None, "top": 0}),
                         ["--max-overhead", "5%", "--memory", "--no-gc", "--skip", "a,b", "--top", "0"])
        before = list(gc.callbacks)
        for options, ours in (({}, 1), ({"gc": False}, 0)):
            with Profiler(max_overhead="none", **options):
                self.assertEqual(len(gc.callbacks) - len(before), ours)
            self.assertEqual(gc.callbacks, before)
        with Profiler(native=False) as profiler:
            pass
        self.assertIn("not wanted", profiler.report["capture"]["settings"]["sampler"])
        with self.assertRaises(InferScopeError):  # rather than with a rate
            Profiler(rate=False).start()

    def test_stop_reads_nothing_of_the_size_of_the_trace(self):
        """Other threads go on meanwhile: the longest rest of one that ticks, beside what reading the events takes."""
        def leaf():
            pass

        def work():
            for _ in range(200000):
                leaf()
        for _ in range(3):  # a machine may be busy with others at that moment
            ticks, done = [], threading.Event()

            def tick():
                while not done.wait(0.005):
                    ticks.append(time.monotonic())
            profiler = Profiler(max_overhead="none", skip="*tick*")
            profiler.start()
            work()
            thread = threading.Thread(target=tick)
            thread.start()
            profiler.stop()
            done.set()
            thread.join()
            begun = time.monotonic()
            count = sum(profiler.cpu.get_stats()["threads"].values())
            took = time.monotonic() - begun
            rest = max(after - before for before, after in zip(ticks, ticks[1:]))
            if rest < took / 10:
                break
        self.assertGreater(count, 100000)  # some may be lost where others have the CPUs
        self.assertLess(rest, took / 10)

    def test_recordings_are_removed(self):
        """With the profiler, with the next recording, with the program; and not by a child that it forks."""
        out = run_python("""
            import inferscope, os, sys, tempfile
            folder = os.environ["TMPDIR"]
            profiler = inferscope.Profiler()
            for _ in range(2):
                with profiler: pass
                print(len(os.listdir(folder)), end=" ", flush=True)
            if os.fork() == 0:
                del profiler
                sys.exit()
            os.wait()
            print(len(profiler.get_unified_timeline()) >= 0, profiler.cpu.get_stats()["captured"] >= 0, end=" ")
            events = iter(inferscope.TraceReader(profiler._engine.recording.trace))
            kept = inferscope.CpuCollector()
            kept.start(); kept.stop()
            del profiler
            print(len(os.listdir(folder)))
            """, TMPDIR=self.folder())
        self.assertEqual((out.split(), os.listdir(self.temporary)), (["1", "1", "True", "True", "1"], []))

    def folder(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.temporary = held.name
        return held.name

    def test_the_program_may_take_long(self):
        """Whoever stops waits as long as the program works on what it measured, and no longer."""
        wrapper = os.path.join(self.folder(), "wrapper")
        for works in (True, False):
            with open(wrapper, "w") as file:
                file.write(textwrap.dedent("""\
                    #!%s
                    import os, signal, subprocess, sys, time
                    child = subprocess.Popen([%r] + sys.argv[1:], close_fds=False)
                    told = []
                    signal.signal(signal.SIGINT, lambda *_: (child.send_signal(signal.SIGINT), told.append(1)))
                    for option in ("--ready-fd", "--inside-fd"):
                        os.close(int(sys.argv[sys.argv.index(option) + 1]))
                    while %r and child.poll() is None:
                        if not told: time.sleep(0.01)
                    status = child.wait()
                    end = time.thread_time() + 2
                    while %r and time.thread_time() < end: pass
                    time.sleep(0 if %r else 60)
                    sys.exit(status)
                    """) % (sys.executable, inferscope._program.program(), works, works, works))
            os.chmod(wrapper, 0o700)
            profiler = Profiler()
            with mock.patch.dict(os.environ, INFERSCOPE_PROGRAM=wrapper):
                profiler.start()
            with mock.patch.multiple(inferscope._engine, WAIT_SECONDS=0.4, END_SECONDS=0.1), mock.patch.object(inferscope._program, "END_SECONDS", 0.1):
                if works:
                    profiler.stop()
                    self.assertEqual(profiler.report["capture"]["pid"], os.getpid())
                else:
                    with self.assertRaises(InferScopeError) as caught:
                        profiler.stop()
                    self.assertEqual(caught.exception.code, "E_TIMEOUT")
                    with self.assertRaises(InferScopeError):
                        profiler.save("nothing.md")

    def test_gates_of_the_settings(self):
        """They judge what the command makes; whoever calls from Python has asked for none, or for one by name."""
        always = "cpu_bound,gpu_bound,memory_bound,balanced,unknown"
        with mock.patch.dict(os.environ, INFERSCOPE_FAIL_ON=always, INFERSCOPE_STRICT="1"):
            with Profiler(max_overhead="none") as profiler:
                with scope("inference"):
                    burn(0.05)
            path = os.path.join(self.folder(), "t.iscope")
            profiler.save(path)
            profiler.save(path + ".md")
            self.assertEqual(analyze(path)["verdict"], profiler.report["verdict"])
            self.assertIn("inference", {event["name"] for event in profiler.get_unified_timeline()})
            for judge in (lambda: profiler.judge(always), lambda: analyze(path, fail_on=always)):
                with self.assertRaises(InferScopeError) as caught:
                    judge()
                self.assertEqual((caught.exception.code, caught.exception.status), ("E_GATE", 1))

    def test_nothing_stays_of_a_program_that_ends_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            out = run_python("""
                import inferscope
                inferscope.Profiler().start()
                print(inferscope.is_attached())
                """, TMPDIR=folder)
            self.assertEqual((out, os.listdir(folder)), ("True\n", []))

    def test_the_program_is_killed(self):
        """What it measured is lost, and nothing of it stays: the next one begins."""
        profiler = Profiler(max_overhead="none")
        profiler.start()
        os.kill(profiler.cpu._engine.child.pid, signal.SIGKILL)
        burn(0.1)
        with self.assertRaises(InferScopeError):
            profiler.stop()
        with open("/proc/self/maps") as file:
            self.assertNotIn("inferscope-lanes", file.read())
        self.assertFalse(is_attached())
        with Profiler(max_overhead="none") as profiler:
            with scope("after"):
                burn(0.1)
        self.assertIn("after", {event["name"] for event in profiler.get_unified_timeline()})

    def test_collector_states(self):
        collector = CpuCollector(TraceBuffer())
        self.assertEqual(collector.state, "Uninitialized")
        collector.init()
        self.assertEqual(collector.state, "Idle")
        for _ in range(2):
            collector.start()
            self.assertEqual(collector.state, "Collecting")
        with scope("mine"):
            self.assertEqual(collector.get_thread_local_buffer(), [])
        for _ in range(2):
            collector.stop()
            self.assertEqual(collector.state, "Finalized")
        self.assertIn("mine", [event["name"] for event in collector.get_thread_local_buffer()])
        self.assertEqual(collector.get_stats()["captured"], len(collector.trace_buffer))
        self.assertIn(threading.get_native_id(), collector.get_stats()["threads"])

    def test_sampling(self):
        profiler = CPUProfiler()
        self.assertTrue(profiler.start(), profiler.error)
        self.assertFalse(profiler.start())
        burn(1)
        self.assertTrue(profiler.stop())
        self.assertFalse(profiler.stop())
        self.assertGreater(profiler.data["samples"], 0)
        lines = FlameGraphConverter().convert(profiler.data).splitlines()
        self.assertTrue(any(";burn " in line for line in lines), lines[:3])
        ProfileReport(profiler.data).print_summary()
        ProfileReport(profiler.data).print_hot_paths()
        ProfileReport(profiler.data).print_memory_stats()
        ProfileReport(profiler.data).print_instruction_stats()
        with self.assertRaises(ValueError):
            CPUProfiler(interval_ms=0.5)
        with self.assertRaises(InferScopeError):
            CPUProfiler(lib_path="/nonexistent.so")

    WORK = """
        import json, sys, time, zlib
        data = bytes(range(256)) * 1024
        def burn_in_python(end):
            while time.thread_time() < end: sum(range(100))
        def burn_in_native(end):
            while time.thread_time() < end: zlib.compress(data, 9)
        def work(seconds):
            # Both in turns, so that a machine that gets busy changes the shares of neither.
            begun = time.thread_time()
            for turn in range(int(seconds * 50)):
                burn_in_python(begun + turn * 0.02 + 0.01)
                burn_in_native(begun + turn * 0.02 + 0.02)
        """

    # As where Yama's ptrace_scope is 3, or a container's seccomp filter is strict; the program that is started inherits it.
    REFUSE = """
        import ctypes, struct
        def refuse(*numbers):
            code = [(0x20, 0, 0, 0)] + [(0x15, len(numbers) - i, 0, number) for i, number in enumerate(numbers)] + [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050001)]
            code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in code))
            filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(code)))
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(filter)) == 0, ctypes.get_errno()
            assert libc.ptrace(0x4206, 1, 0, 0) == -1 and ctypes.get_errno() == 1
        PTRACE, PERF, VM = 101, 298, (310, 311)
        """

    ENOUGH = 150  # samples for shares to be compared; a busy machine takes fewer in a second

    def sampled(self, measure):
        """Shares of what MEASURE(seconds) sampled, for long enough."""
        for seconds in (1, 4):
            count, shares = self.shares(measure(seconds))
            if count >= self.ENOUGH:
                break
        return shares

    @staticmethod
    def shares(profile):
        """How many samples work() has, and which share of them has each function that is on the stack."""
        stacks = [stack for stack in profile["stacks"] if any(frame["symbol"] == "work" for frame in stack["frames"])]
        count = collections.Counter()
        for stack in stacks:
            count.update({name: stack["count"] for name in {frame["symbol"] for frame in stack["frames"]} if "+0x" not in name})
        whole = sum(stack["count"] for stack in stacks)
        return whole, {name: of / whole for name, of in count.items()}

    def test_the_same_as_from_outside(self):
        """One engine: native frames, and the functions that an attach from outside tells of the same work."""
        program = textwrap.dedent(self.WORK) + "import inferscope\nwith inferscope.profiler_context() as profiler: work(%d)\nprint(json.dumps(profiler.data))"
        inside = self.sampled(lambda seconds: json.loads(run_python(program % seconds)))
        refused = self.sampled(lambda seconds: json.loads(run_python(textwrap.dedent(self.REFUSE) + "refuse(PTRACE, *VM)\n" + program % seconds)))
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(self.WORK) + "print('ready', flush=True)\nwhile True: work(0.1)"], stdout=subprocess.PIPE)
        try:
            child.stdout.readline()
            outside = self.sampled(lambda seconds: json.loads(inferscope._program.call("attach", child.pid, "-d", seconds, "--hook", "none", "--rate", "1000", "-f", "profile", "-o", "-", "--trace", "none")))
        finally:
            child.kill()
            child.communicate()
        for one, other in ((inside, outside), (refused, outside), (outside, inside), (outside, refused)):
            self.assertEqual({name for name, share in one.items() if share > 0.2} - set(other), set(), (one, other))
            for name in ("burn_in_python", "burn_in_native"):
                self.assertTrue(0.3 < one[name] < 0.7, "%s has %.2f of %s" % (name, one[name], one))
            # Where threads change places often perf_event rests now and then, and what is sampled meanwhile has no native frames.
            self.assertTrue([name for name, share in one.items() if share > 0.02 and ("deflate" in name or "compress" in name)], "neither deflate nor compress in %s" % one)

    def test_nothing_may_be_traced(self):
        """Neither ptrace nor perf_event: calls, scopes and Python's stacks are there all the same, and what is missing is said."""
        out = run_python(textwrap.dedent(self.REFUSE) + textwrap.dedent(self.WORK) + textwrap.dedent("""
            refuse(PTRACE, PERF, *VM)
            import inferscope, json, threading
            profiler = inferscope.Profiler(max_overhead="none")
            for _ in range(2):
                profiler.start()
                with inferscope.scope("inference"): work(0.3)
                profiler.stop()
            kinds = {(event["event_type"], event["name"]) for event in profiler.get_unified_timeline()}
            with inferscope.profiler_context() as sampled: work(1)
            print(json.dumps([sorted(kinds), sampled.data, profiler.report, threading.active_count()]))
            """))
        kinds, sampled, report, threads = json.loads(out)
        self.assertTrue({("scope_enter", "inference"), ("scope_exit", "inference"), ("cpu_call", "burn_in_python")} <= {tuple(kind) for kind in kinds}, kinds)
        self.assertGreater(self.shares(sampled)[1]["burn_in_python"], 0.2)
        self.assertRegex(sampled["sampler"], "Python frames only.*perf_event")
        self.assertRegex(json.dumps(report), "Python frames only[^\"]*perf_event")
        self.assertEqual(report["quality"]["hold_max_ns"], 0)
        self.assertEqual(threads, 1)

    def test_sampling_refused(self):
        """The program goes on, and is told why it was not profiled."""
        out = run_python("""
            import inferscope, warnings
            warnings.simplefilter("ignore")
            profiler = inferscope.CPUProfiler()
            print(profiler.start(), profiler.stop(), "not found" in profiler.error)
            @inferscope.profile_function()
            def work(): return 5
            print(work())
            """, INFERSCOPE_PROGRAM="/nonexistent")
        self.assertEqual(out.split(), ["False", "False", "True", "5"])

    def test_a_function_outranks_its_profile(self):
        """Its result and its exceptions are its own, whatever keeps it from being profiled, or its profile from being saved."""
        @profile_function("/proc/nowhere")
        def returns():
            return 42

        @profile_function("/proc/nowhere")
        def raises():
            raise KeyError("its own")

        with warnings.catch_warnings(record=True) as told, tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("always")
            self.assertEqual(returns(), 42)
            with self.assertRaisesRegex(KeyError, "its own"):
                raises()
            out = run_python("""
                import inferscope, os, sys, warnings
                warnings.simplefilter("ignore")
                @inferscope.profile_function("profiles")
                def shown():
                    return 42
                sys.stdout.close()
                assert shown() == 42 and os.path.exists("profiles/shown.json")
                inferscope._library.get_library = lambda: "/nonexistent.so"
                assert shown() == 42
                """, cwd=folder)
        self.assertEqual(out, "")
        self.assertEqual([str(one.message)[:34] for one in told], ["the profile of returns is not save", "the profile of raises is not saved"])
        self.assertEqual({os.path.basename(one.filename) for one in told}, {"test_inferscope.py"})

    def test_sampling_again_and_in_children(self):
        profiler = CPUProfiler(threads="own")
        for _ in range(2):
            self.assertTrue(profiler.start())
            burn(1)
            if not hasattr(os, "fork"):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of fork beside threads
                child = os.fork()
            if child == 0:  # it is not profiled, and ends nothing of ours
                os._exit(0 if CPUProfiler()._library.profiler_stop() == -1 else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertTrue(profiler.stop())
            own = str(threading.get_native_id())
            self.assertTrue(all(list(stack["threads"]) == [own] for stack in profiler.data["stacks"]))
            self.assertGreater(profiler.data["samples"], 0)

    def test_decorator_and_context(self):
        with tempfile.TemporaryDirectory() as folder:
            @profile_function(output_dir=folder)
            def worked(n):
                burn(1)
                return n
            self.assertEqual(worked(3), 3)
            self.assertEqual(sorted(os.listdir(folder)), ["worked.collapsed", "worked.json", "worked.txt"])
            with open(os.path.join(folder, "worked.collapsed")) as file:
                self.assertIn("worked;burn", file.read())
        with profiler_context(threads="own") as profiler:
            burn(1)
        self.assertGreater(profiler.data["samples"], 0)

    def test_decorated_coroutines_and_generators(self):
        """Their steps are profiled, and not their making alone."""
        with tempfile.TemporaryDirectory() as folder:
            @profile_function(folder)
            async def coroutine():
                await asyncio.sleep(0)
                burn(0.5)
                return 42

            @profile_function(folder)
            def steps():
                got = yield 1
                burn(0.5)
                yield got

            @profile_function(folder)
            async def items():
                got = yield 1
                burn(0.5)
                yield got

            async def main():
                one = items()
                self.assertEqual([await coroutine(), await one.asend(None), await one.asend(7)], [42, 1, 7])
                await one.aclose()
            asyncio.run(main())
            one = steps()
            self.assertEqual([next(one), one.send(7), list(one)], [1, 7, []])
            for name in ("coroutine", "steps", "items"):
                with open(os.path.join(folder, name + ".collapsed")) as file:
                    self.assertRegex(file.read(), name + ";burn")


class Outside(unittest.TestCase):
    """Other processes, and kept traces."""

    PROGRAM = """
        import inferscope, sys, time
        def work():
            with inferscope.scope("request", {"n": 1}):
                end = time.perf_counter() + 0.01
                while time.perf_counter() < end: sum(range(100))
        whole = inferscope.scope("whole run")
        whole.__enter__()
        print("ready", flush=True)
        end = time.time() + 60
        while time.time() < end: work()
        """

    @contextlib.contextmanager
    def running(self, text):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], stdout=subprocess.PIPE)
        try:
            self.assertEqual(child.stdout.readline(), b"ready\n")
            yield child
        finally:
            child.kill()
            child.communicate()

    def test_forked_child(self):
        """Scopes of the parent's other threads are not open in it, though its threads have their pthread_self(); that of the thread that forked is."""
        with self.running("""
            import os, sys, threading, time, warnings
            from inferscope import scope
            warnings.simplefilter("ignore")
            begun, never, parent = threading.Semaphore(0), threading.Event(), os.getpid()
            def request():
                with scope("parents"):
                    begun.release()
                    never.wait()
            def work():
                while os.getppid() == parent:
                    with scope("childs"):
                        sum(range(20000))
                    time.sleep(0.01)
            for _ in range(4):
                threading.Thread(target=request, daemon=True).start()
                begun.acquire()
            with scope("forker"):
                if os.fork() == 0:
                    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
                    for thread in threads:
                        thread.start()
                    print("ready\\n%d" % os.getpid(), flush=True)
                    threads[0].join()
                    os._exit(0)
                never.wait()
            """) as parent, tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.iscope")
            attach(int(parent.stdout.readline()), duration="1s", trace=trace, progress=False)
            names = {event["name"] for event in TraceReader(trace) if event["event_type"] == "scope_enter"}
            self.assertEqual(names, {"forker", "childs"})

    def test_attach(self):
        with self.running(self.PROGRAM) as child:
            with tempfile.TemporaryDirectory() as folder:
                trace = os.path.join(folder, "t.iscope")
                report = attach(child.pid, duration="1s", trace=trace, progress=False)
                self.assertEqual(report["capture"]["pid"], child.pid)
                self.assertIn("request", [row["name"] for row in report["scopes"]])
                again = analyze(trace)
                self.assertEqual(again["verdict"], report["verdict"])
                events = list(TraceReader(trace))
                names = {event["name"] for event in events if event["event_type"] == "scope_enter"}
                self.assertTrue({"request", "whole run"} <= names, names)
                self.assertIn("<iframe", report._repr_html_())
                for event in TraceReader(trace):
                    break  # the rest is not wanted
                with mock.patch.dict(os.environ, INFERSCOPE_FAIL_ON="cpu_bound,gpu_bound,memory_bound,balanced,unknown"):  # for somebody else's commands
                    self.assertEqual(analyze(trace)["verdict"], report["verdict"])
                    self.assertEqual(len(list(TraceReader(trace))), len(events))
                    with self.assertRaises(InferScopeError) as caught:
                        analyze(trace, fail_on="cpu_bound,gpu_bound,memory_bound,balanced,unknown")
                    self.assertEqual((caught.exception.code, caught.exception.status), ("E_GATE", 1))
            with self.assertRaises(InferScopeError) as caught:
                attach(child.pid, duration="nonsense")
            self.assertEqual(caught.exception.status, 2)
        with self.assertRaises(InferScopeError) as caught:
            attach(999999999, 1)
        self.assertEqual((caught.exception.code, caught.exception.status), ("E_NO_PROCESS", 3))
        with self.assertRaises(FileNotFoundError):
            TraceReader("/nonexistent")

    def test_progress_is_told_while_it_lasts(self):
        told = []
        with self.running(self.PROGRAM) as child:
            attach(child.pid, duration="1500ms", progress=lambda line: told.append((time.monotonic(), line)))
            ended = time.monotonic()
            with contextlib.redirect_stderr(io.StringIO()) as quiet:
                attach(child.pid, duration="300ms")  # no terminal, and nobody asked
            with contextlib.redirect_stderr(io.StringIO()) as shown:
                attach(child.pid, duration="600ms", progress=True)
        recording = [at for at, line in told if line.startswith("recording ")]
        self.assertTrue(len(recording) > 1 and ended - recording[0] > 0.7, told)
        self.assertEqual(quiet.getvalue(), "")
        self.assertIn("\rrecording ", shown.getvalue())
        self.assertTrue(shown.getvalue().endswith(" \r"), "the line is left there")

    def test_imported_while_measured(self):
        """A program that imports the package after the attach began."""
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
            import sys, time
            print("ready", flush=True)
            sys.stdin.readline()
            import inferscope
            with inferscope.scope("late"):
                time.sleep(0.01)
            print("done", flush=True)
            time.sleep(60)
            """)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            child.stdout.readline()
            with tempfile.TemporaryDirectory() as folder:
                trace = os.path.join(folder, "t.iscope")
                ready, told = os.pipe()
                measuring = subprocess.Popen([inferscope._program.program(), "attach", str(child.pid), "-d", "0", "-o", os.path.join(folder, "r.json"), "--trace", trace, "--ready-fd", str(told)],
                                             pass_fds=(told,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=inferscope._program.environment())
                os.close(told)
                self.assertEqual(os.read(ready, 1), b"\0")
                os.close(ready)
                child.stdin.write(b"go\n")
                child.stdin.flush()
                self.assertEqual(child.stdout.readline(), b"done\n")
                measuring.send_signal(signal.SIGINT)
                self.assertEqual(measuring.wait(60), 0)
                self.assertIn("late", {event["name"] for event in TraceReader(trace)})
        finally:
            child.kill()
            child.communicate()


class Pieces(unittest.TestCase):
    def test_buffer(self):
        buffer = TraceBuffer(capacity=2)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.assertEqual([buffer.enqueue({"name": str(i)}) for i in range(4)], [True, True, False, False])
        self.assertEqual((len(told), buffer.dropped, [e["name"] for e in buffer.read_all()]), (1, 2, ["2", "3"]))
        buffer.clear()
        self.assertEqual(buffer.read_all(), [])

    def test_what_a_buffer_lets_go_is_told_before_it_is_asked_for(self):
        class Recording:
            def events(self):
                return iter([{"event_type": "instant", "name": str(i), "thread_id": 1} for i in range(5)])

            def counts(self):
                return collections.Counter({("instant", 1): 5})

        collector = CpuCollector()
        collector._buffer.capacity = 2
        collector._recording, collector._filled = Recording(), False  # as after stop()
        self.assertEqual(collector.get_stats()["dropped"], 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(len(collector.trace_buffer), 2)
        self.assertEqual(collector.get_stats()["dropped"], 3)

    def test_injected_kernels(self):
        gpu = GpuCollector(TraceBuffer())
        for i in range(5):
            gpu._inject_kernel_event("k", i * 1e6, i * 1e6 + 9e5, grid_dim=(8, 1, 1), block_dim=(256, 1, 1))
        gpu._inject_kernel_event("copy", 0, 10, event_type="h2d_copy", bytes=4096)
        self.assertEqual((gpu.get_stats()["kernels"], gpu.get_stats()["copies"]), (5, 1))
        merger = TimelineMerger([{"event_type": "cpu_call", "name": "f", "start_us": 5, "end_us": 9, "thread_id": 1}], gpu.trace_buffer.read_all())
        self.assertEqual(merger.synchronize_clocks()["error_us"], 0)
        events = merger.get_sorted_events()
        self.assertEqual(len(events), 7)
        report = BottleneckAnalyzer(events).analyze()
        self.assertEqual(report["class"], "gpu_bound")
        self.assertTrue(0 <= report["confidence"] <= 1)
        generator = ReportGenerator(events)
        self.assertIn("gpu", generator.to_markdown().lower())
        self.assertIn("<html", generator.to_html())
        self.assertEqual(json.loads(generator.to_json())["schema"], "inferscope.report/1")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.md")
            generator.save(path, "markdown")
            self.assertTrue(os.path.getsize(path) > 100)

    def test_middleware(self):
        from inferscope.middleware import InferScopeMiddleware
        seen = []

        async def app(request, receive, send):
            seen.append(request["type"])
        asyncio.run(InferScopeMiddleware(app)({"type": "http", "method": "GET"}, None, None))
        asyncio.run(InferScopeMiddleware(app)({"type": "lifespan"}, None, None))
        self.assertEqual(seen, ["http", "lifespan"])

    def test_a_request_ends_with_its_response(self):
        """And not with what the application does afterwards; where it fails, then."""
        from inferscope.middleware import InferScopeMiddleware
        sent = []

        async def send(message):
            sent.append(message)

        async def app(request, receive, send):
            if request["path"] == "/fails":
                raise ValueError
            await send({"type": "http.response.start"})
            await send({"type": "http.response.body", "more_body": True})
            mark_event("first part")
            await send({"type": "http.response.body"})
            mark_event("afterwards")

        async def requests():
            middleware = InferScopeMiddleware(app, named=lambda request: request["path"])
            await middleware({"type": "http", "path": "/answers"}, None, send)
            with self.assertRaises(ValueError):
                await middleware({"type": "http", "path": "/fails"}, None, send)
            mark_event("next")
        with Profiler(max_overhead="none") as profiler:
            asyncio.run(requests())
        told = [(event["event_type"], event["name"]) for event in profiler.get_unified_timeline() if event["event_type"] in ("scope_enter", "scope_exit", "instant")]
        self.assertEqual(told, [("scope_enter", "/answers"), ("instant", "first part"), ("scope_exit", "/answers"), ("instant", "afterwards"), ("scope_enter", "/fails"), ("scope_exit", "/fails"),
                                ("instant", "next")])
        self.assertEqual(len(sent), 3)

    def test_routes_are_looked_for_while_somebody_measures(self):
        """And for the first paths: leaving the middleware in costs nothing."""
        from inferscope.middleware import KNOWN_MAX, InferScopeMiddleware
        looked = []

        class Route:
            path, value = "/items/{number}", 2

            def matches(self, request):
                looked.append(request["path"])
                return (self if request["path"].startswith("/items/") else object()), {}

        app = mock.Mock()
        app.router.routes = [Route()]
        middleware = InferScopeMiddleware(None)

        def name(path):
            return middleware.name_of({"type": "http", "method": "GET", "app": app, "path": path})
        names = [name(path) for _ in range(2) for path in ["/none"] + ["/items/%d" % number for number in range(2 * KNOWN_MAX)]]
        self.assertEqual(names, 2 * (["GET /…"] + (KNOWN_MAX - 1) * ["GET /items/{number}"] + (KNOWN_MAX + 1) * ["GET /…"]))
        self.assertEqual(len(looked), KNOWN_MAX)
        with mock.patch.object(inferscope.middleware, "is_attached", lambda: True):
            self.assertEqual([name("/items/%d" % number) for number in range(2 * KNOWN_MAX)] + [name("/none")], 2 * KNOWN_MAX * ["GET /items/{number}"] + ["GET /…"])
        self.assertEqual(len(looked), 2 * KNOWN_MAX + 1)

    def test_examples(self):
        import inferscope.analyzer
        import inferscope.buffer
        import inferscope.profiler
        import inferscope.timeline
        tried = 0
        for module in (inferscope, inferscope.analyzer, inferscope.buffer, inferscope.profiler, inferscope.timeline):
            failed, count = doctest.testmod(module)
            self.assertEqual(failed, 0, module.__name__)
            tried += count
        self.assertGreater(tried, 6)

    def test_interface(self):
        """What was promised by name, example for example."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no GPU here
            failed, count = doctest.testfile("interface.txt", encoding="utf-8")
        self.assertEqual(failed, 0)
        self.assertGreater(count, 90)

    def test_refused_by_name(self):
        out = run_python("""
            import sys
            sys.abiflags = "t"
            try:
                import inferscope
            except ImportError as error:
                print(error)
            """)
        self.assertIn("free-threaded", out)

    def test_sub_interpreters_are_refused(self):
        interpreters = next((name for name in ("_interpreters", "_xxsubinterpreters") if importlib.util.find_spec(name)), None)
        if not interpreters:
            self.skipTest("no module of this Python's makes sub-interpreters")
        out = run_python("""
            import inferscope, os, %s as interpreters
            code = "try:\\n import inferscope\\nexcept ImportError as error:\\n print(error, flush=True)\\nelse:\\n print('imported', flush=True)"
            for config in ("isolated", "legacy"):
                for words, names in (((config,), {}), ((), {"isolated": config == "isolated"}), ((), {})):
                    try:
                        other = interpreters.create(*words, **names)
                        break
                    except (TypeError, ValueError):
                        continue
                try:
                    interpreters.run_string(other, code)
                except TypeError:
                    interpreters.exec(other, code)
            with inferscope.scope("still works"):
                pass
            """ % interpreters)
        self.assertEqual(out.count("sub-interpreters are not supported"), 2, out)
        self.assertNotIn("imported", out)

    def test_names(self):
        for module, names in (("api", "scope mark_event"), ("profiler", "Profiler CPUProfiler"), ("collectors.cpu", "CpuCollector"), ("collectors.gpu", "GpuCollector"), ("timeline", "TimelineMerger"),
                              ("analyzer", "BottleneckAnalyzer"), ("reporter", "ReportGenerator")):
            loaded = __import__("inferscope." + module, fromlist=["x"])
            for name in names.split():
                self.assertIs(getattr(loaded, name), getattr(inferscope, name))


if __name__ == "__main__":
    unittest.main()
