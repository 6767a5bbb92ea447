"""The package measuring the very process that uses it. As a wheel installs it: `python -m unittest` (or pytest) in an environment that has it."""
import asyncio
import collections
import gc
import json
import os
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
from inferscope import CPUProfiler, CpuCollector, FlameGraphConverter, InferScopeError, ProfileReport, Profiler, TraceBuffer, analyze, is_attached, mark_event, profile_function, profiler_context, scope
from common import REFUSE, REFUSED, TOLD, burn, run_python


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
        refused = self.sampled(lambda seconds: json.loads(run_python(REFUSE + "refuse(PTRACE, *VM)\n" + program % seconds)))
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
        out = run_python(REFUSE + textwrap.dedent(self.WORK) + textwrap.dedent("""
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
        self.assertEqual({os.path.basename(one.filename) for one in told}, {os.path.basename(__file__)})

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


if __name__ == "__main__":
    unittest.main()
