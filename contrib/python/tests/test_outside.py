"""Other processes, and kept traces. As a wheel installs it: `python -m unittest` (or pytest) in an environment that has it."""
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from unittest import mock

import inferscope
from inferscope import InferScopeError, TraceReader, analyze, attach


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


if __name__ == "__main__":
    unittest.main()
