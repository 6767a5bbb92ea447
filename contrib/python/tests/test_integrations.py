"""The package with others, as they are: frameworks, servers, pytest, data frames, debuggers and tracers. What is not installed is skipped by name."""
import doctest
import glob
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import urllib.request

import inferscope
from common import REFUSE


def needs(*modules):
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return unittest.skipIf(missing, "not installed here: %s" % ", ".join(missing))


def run(*words, status=0, timeout=120, **options):
    done = subprocess.run([sys.executable, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=timeout, **options)
    assert done.returncode == status, "%s: %s: %s" % (words, done.returncode, done.stdout)
    return done.stdout


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


APP = """
import asyncio
from fastapi import BackgroundTasks, FastAPI, WebSocket
from inferscope.middleware import InferScopeMiddleware
app = FastAPI()
app.add_middleware(InferScopeMiddleware)

@app.get("/items/{number}")
async def item(number: int):
    return {"sum": sum(range(number))}

@app.get("/plain")
def plain():
    return {"sum": sum(range(1000))}

@app.get("/background")
def background(tasks: BackgroundTasks):
    tasks.add_task(asyncio.sleep, 2)
    return {}

@app.get("/broken")
def broken():
    raise ValueError("on purpose")
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def path(self, name):
        return os.path.join(self.folder, name)

    def server(self, *words):
        """Starts it and waits until it answers."""
        port = free_port()
        child = subprocess.Popen([sys.executable, "-m", *words] + (["-b", "127.0.0.1:%d" % port] if words[0] == "gunicorn" else ["--port", str(port)]), cwd=self.folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.path("log"), "wb"), start_new_session=True)
        self.addCleanup(child.wait)
        self.addCleanup(os.killpg, child.pid, signal.SIGKILL)
        end = time.monotonic() + 60
        while True:
            try:
                self.get(port, "/plain")
                return child, port
            except OSError:
                with open(self.path("log")) as log:
                    assert time.monotonic() < end and child.poll() is None, log.read()
                time.sleep(0.1)

    @staticmethod
    def get(port, path):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=20) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            return error.code

    def measured(self, pid, port):
        """Scopes of PID while it is asked for the same things again and again."""
        code = "import sys, time, urllib.request, urllib.error\nend = time.time() + 60\nwhile time.time() < end:\n for path in ('/items/7', '/items/8', '/plain', '/background', '/nowhere', '/broken'):\n  try: urllib.request.urlopen('http://127.0.0.1:%d' + path, timeout=20).read()\n  except urllib.error.HTTPError: pass" % port
        client = subprocess.Popen([sys.executable, "-c", code])
        try:
            report = inferscope.attach(pid, duration="3s", trace=self.path("t.iscope"), progress=False)
        finally:
            client.kill()
            client.wait()
        return {row["name"]: row for row in report["scopes"]}


@needs("fastapi", "uvicorn")
class Servers(Case):
    def setUp(self):
        super().setUp()
        self.file("app.py", APP)

    def check(self, scopes):
        self.assertTrue({"GET /items/{number}", "GET /plain", "GET /broken"} <= set(scopes), scopes.keys())
        self.assertFalse([name for name in scopes if "items/7" in name or "nowhere" in name], "a path is no route")
        self.assertGreater(scopes["GET /items/{number}"]["count"], scopes["GET /plain"]["count"])
        self.assertGreater(scopes["GET /plain"]["p50_ns"], 0)
        self.assertLess(scopes["GET /background"]["p50_ns"], 1e9)  # what it does afterwards is no part of it

    def test_uvicorn(self):
        child, port = self.server("uvicorn", "app:app", "--log-level", "warning")
        self.check(self.measured(child.pid, port))
        self.assertEqual(json.loads(self.get(port, "/items/3")), {"sum": 3})

    def test_gunicorn(self):
        if importlib.util.find_spec("gunicorn") is None:
            self.skipTest("not installed here: gunicorn")
        worker = "uvicorn_worker.UvicornWorker" if importlib.util.find_spec("uvicorn_worker") else "uvicorn.workers.UvicornWorker"
        child, port = self.server("gunicorn", "app:app", "-w", "1", "-k", worker)
        with open("/proc/%d/task/%d/children" % (child.pid, child.pid)) as file:
            pid = int(file.read().split()[0])
        self.check(self.measured(pid, port))


@needs("pytest")
class Pytest(Case):
    TESTS = """
        import time
        def slow_part():
            end = time.perf_counter() + 0.2
            while time.perf_counter() < end: sum(range(100))
        def test_slow(): slow_part()
        def test_quick(): assert True
        """

    def test_run(self):
        self.file("test_it.py", self.TESTS)
        for _ in range(3):  # hooks give way to the budget on a loaded machine
            out = run("-m", "pytest", "-p", "no:cacheprovider", "--inferscope", "--inferscope-report", "r.json", "test_it.py", cwd=self.folder)
            if "no calls seen" not in out:
                break
        # sum has a row of its own as long as calls of C functions fit into the budget.
        self.assertRegex(out, r"(?s)= inferscope =.*\d ms  test_it.py::test_slow  (sum [\d.]+ ms, )?slow_part \d+.*test_it.py::test_quick")
        with open(self.path("r.json")) as file:
            names = [row["name"] for row in json.load(file)["scopes"]]
        self.assertEqual(sorted(names), ["test_it.py::test_quick", "test_it.py::test_slow"])

    def test_gate(self):
        self.file("test_it.py", self.TESTS)
        out = run("-m", "pytest", "-p", "no:cacheprovider", "--fail-on", "cpu_bound,unknown,balanced", "test_it.py", cwd=self.folder, status=1)
        self.assertIn("--fail-on", out)
        self.assertIn("2 passed", out)
        run("-m", "pytest", "-p", "no:cacheprovider", "--fail-on", "gpu_bound", "test_it.py", cwd=self.folder)
        self.assertIn("nonsense", run("-m", "pytest", "-p", "no:cacheprovider", "--fail-on", "nonsense", "test_it.py", cwd=self.folder, status=4))

    def test_wrong_settings(self):
        self.file("test_it.py", self.TESTS)
        self.file(".inferscope.yaml", "max-overhad: 5%\n")
        out = run("-m", "pytest", "-p", "no:cacheprovider", "--inferscope", "test_it.py", cwd=self.folder, status=4)
        self.assertIn("max-overhad", out)
        self.assertNotIn("INTERNALERROR", out)

    def test_without(self):
        self.file("test_it.py", self.TESTS)
        self.assertNotIn("inferscope =", run("-m", "pytest", "-p", "no:cacheprovider", "test_it.py", cwd=self.folder))


class Frames(Case):
    def recorded(self):
        profiler = inferscope.Profiler(max_overhead="none")
        with profiler:
            for i in range(3):
                with inferscope.scope("one", {"n": i} if i else {"n": "text"}):
                    sorted(range(1000))
        profiler.save(self.path("t.iscope"))
        return inferscope.TraceReader(self.path("t.iscope"))

    @needs("pandas")
    def test_pandas(self):
        reader = self.recorded()
        frame = reader.to_pandas()
        self.assertEqual(len(frame), len(list(reader)))
        self.assertEqual(int((frame.event_type == "scope_enter").sum()), 3)

    @needs("pyarrow")
    def test_arrow(self):
        reader = self.recorded()
        table = reader.to_arrow()
        self.assertEqual(table.num_rows, len(list(reader)))
        rows = zip(table.column("event_type").to_pylist(), table.column("metadata").to_pylist())
        self.assertEqual([json.loads(text)["n"] for kind, text in rows if kind == "scope_enter"], ["text", 1, 2])


@needs("mypy")
class Types(Case):
    """What a type checker knows of the package, as it is installed."""

    PROGRAM = """
        from typing import Any, Dict, List
        from inferscope import CpuCollector, Profiler, TraceReader, attach, mark_event, profile_function, scope

        @scope("named")
        def named(n: int) -> int:
            return n

        @scope
        def bare(n: int) -> int:
            return n

        @profile_function()
        def profiled(n: int) -> int:
            return n

        with scope("a", {"n": 1}) as one:
            name: str = one.name
            total: int = named(1) + bare(2) + profiled(3)
            mark_event("b")
        with Profiler(max_overhead="2%") as profiler:
            events: List[Dict[str, Any]] = profiler.get_unified_timeline()
        page: str = attach(1, duration="1s", progress=print).to_html()
        names: List[str] = [event["name"] for event in TraceReader("x.iscope")]
        state: str = CpuCollector().state
        """

    def test_strict(self):
        """The package itself, a program, the examples of the interface; and mistakes are told."""
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "interface.txt")) as file:
            examples = self.file("examples.py", doctest.script_from_examples(file.read()))
        wrong = self.file("wrong.py", textwrap.dedent(self.PROGRAM) + "scope(3)\nattach('name', duration=[])\none.name = 'b'\n")
        # A copy: beside what else is installed it would not be told from the standard library's own stubs.
        package = shutil.copytree(os.path.dirname(inferscope.__file__), self.path("inferscope"), ignore=shutil.ignore_patterns("_bin", "include", "__pycache__"))
        out = run("-m", "mypy", "--strict", "--allow-untyped-defs", "--allow-untyped-calls", "--allow-redefinition", "--cache-dir", os.devnull, package,
                  self.file("right.py", self.PROGRAM), examples, wrong, cwd=self.folder, status=1, timeout=300)
        self.assertRegex(out, r"Found 4 errors in 1 file \(checked 2\d source files\)")


class Beside(Case):
    """Tools that hold the interpreter's hooks: they go on, and scopes are seen all the same."""

    PROGRAM = """
        import inferscope
        def work(n):
            with inferscope.scope("inner"):
                return sum(range(n))
        profiler = inferscope.Profiler()
        profiler.start()
        for i in range(300): work(1000)
        profiler.stop()
        names = [e["name"] for e in profiler.get_unified_timeline() if e["event_type"] == "scope_enter"]
        print("SCOPES", names.count("inner"))
        """

    def scopes_in(self, out):
        self.assertIn("SCOPES 300", out)

    @needs("coverage")
    def test_coverage(self):
        path = self.file("p.py", self.PROGRAM)
        self.scopes_in(run("-m", "coverage", "run", "--data-file", self.path("c"), path, cwd=self.folder))
        run("-m", "coverage", "json", "--data-file", self.path("c"), "-o", self.path("c.json"), cwd=self.folder)
        with open(self.path("c.json")) as file:
            missing = [entry["missing_lines"] for name, entry in json.load(file)["files"].items() if name.endswith("p.py")]
        self.assertEqual(missing, [[]], "coverage lost lines")

    @needs("viztracer")
    def test_viztracer(self):
        path = self.file("p.py", self.PROGRAM)
        self.scopes_in(run("-m", "viztracer", "-o", self.path("v.json"), "--", path, cwd=self.folder))
        with open(self.path("v.json")) as file:
            calls = sum(event.get("name", "").startswith("work ") for event in json.load(file)["traceEvents"])
        self.assertEqual(calls, 300, "viztracer lost calls")

    @needs("debugpy")
    def test_debugpy(self):
        path = self.file("p.py", "import debugpy\ndebugpy.listen((\"127.0.0.1\", 0))\n" + textwrap.dedent(self.PROGRAM))
        self.scopes_in(run("-Xfrozen_modules=off", path, cwd=self.folder, env=dict(os.environ, PYDEVD_DISABLE_FILE_VALIDATION="1")))


@needs("IPython")
class Notebook(Case):
    def test_display(self):
        from IPython.core.formatters import DisplayFormatter
        self.file("e.json", json.dumps({"schema": "inferscope.events/1", "events": [{"event_type": "cpu_call", "name": "f", "start_us": 0, "end_us": 1e6, "thread_id": 1}], "start_unix_ns": "0", "cut_count": 0}))
        data, _ = DisplayFormatter().format(inferscope.analyze(self.path("e.json")))
        self.assertIn("<iframe", data["text/html"])


@unittest.skipUnless("FAKECUDA_BUILT" in os.environ, "not installed here: the doubles of CUDA")
class Device(Case):
    """CUDA, which the tests' doubles play, comes while the process measures itself, and nobody may trace it."""

    PROGRAM = """
        import inferscope, json, os, sys, threading, time
        def thread():
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        def has_begun():
            with open(os.environ["FAKECUDA_JOURNAL"], "a+") as file:
                file.seek(0)
                return any(line.split()[4:7] == ["<", "ActivityEnable", "10"] for line in file)
        refuse(PTRACE, *VM)
        if sys.argv[1] == "first": thread()
        profiler = inferscope.Profiler()
        profiler.start()
        if sys.argv[1] == "later": thread()
        sys.path.insert(0, os.environ["FAKECUDA"])
        import fakecuda
        gpu = fakecuda.load()
        end = time.monotonic() + float(sys.argv[2])
        while not has_begun() and time.monotonic() < end:
            gpu.gemm(1, "warm_up")
            time.sleep(0.05)
        for _ in range(50):
            gpu.gemm(20, "late_kernel")
        gpu.sync()
        profiler.stop()
        print(json.dumps([[event["name"] for event in profiler.get_unified_timeline() if event["event_type"] == "gpu_kernel" and event["name"] != "warm_up"], profiler.report["verdict"]["gpu"]]))
        """

    def measured_with(self, thread, seconds):
        sys.path.insert(0, os.environ["FAKECUDA"])
        import fakecuda
        variables = fakecuda.install(os.environ["FAKECUDA_BUILT"], self.path("cuda"))
        program = self.file("program.py", REFUSE + textwrap.dedent(self.PROGRAM))
        return json.loads(run(program, thread, str(seconds), env=dict(os.environ, FAKECUDA_JOURNAL=self.path("journal"), FAKECUDA_OPS=self.path("ops"), **variables)).splitlines()[-1])

    def test_late(self):
        kernels, why = self.measured_with("first", 60)
        self.assertEqual(kernels, 50 * ["late_kernel"], why)

    def test_late_without_a_thread(self):
        """From 3.12 on the collector has none in a process that had one, and what could not be had is said."""
        has_thread = sys.version_info < (3, 12)
        kernels, why = self.measured_with("later", 60 if has_thread else 3)
        self.assertEqual(kernels, 50 * ["late_kernel"] if has_thread else [], why)
        self.assertRegex(why or "seen", "^seen$" if has_thread else "the CUDA driver came while it was measured, and the process could not be entered then")


class Embedding(Case):
    """C programs and the library: one that starts Python, one that does not."""

    PROGRAM = """
        #include <stdio.h>
        #include <string.h>
        #include <inferscope/profiler.h>
        #ifdef EMBED
        #include <Python.h>
        #endif
        static int check(const char *what, int result) { printf("%s %d %s\\n", what, result, result ? profiler_error() : ""); return result; }
        int main(int argc, char **argv)
        {
            check("early", profiler_start());
        #ifdef EMBED
            struct profiler_state state;
            Py_Initialize();
            for (int i = 0; i < 2; i++) {
                check("start", profiler_start());
                PyRun_SimpleString("import time\\ndef busy_in_python():\\n end = time.thread_time() + 0.5\\n while time.thread_time() < end: sum(range(100))\\nbusy_in_python()\\n");
                check("stop", profiler_stop());
            }
            check("json", profiler_write_json(argv[1]));
            check("summary", profiler_write_summary(argv[2]));
            check("state", profiler_get_state(&state));
            printf("samples %d\\n", state.samples > 0 && !state.running && state.interval_us == 1000 && state.elapsed_ns > 400000000);
            return Py_FinalizeEx();
        #else
            return 0;
        #endif
        }
        """

    def built(self, *options):
        compiler = next((path for path in ("/usr/bin/gcc", "/usr/bin/cc", "/usr/bin/clang") if os.access(path, os.X_OK)), None)
        if not compiler:
            self.skipTest("no C compiler: not installed here")
        source = self.file("p.c", self.PROGRAM)
        subprocess.run([compiler, source, "-o", self.path("p"), "-I", inferscope.get_include(), inferscope.get_library(), "-Wl,-rpath," + os.path.dirname(inferscope.get_library())] + list(options), check=True)
        return self.path("p")

    def test_without_python(self):
        out = subprocess.run([self.built()], stdout=subprocess.PIPE, universal_newlines=True, timeout=60).stdout
        self.assertIn("early -1 ", out)
        self.assertRegex(out, "(?i)python")

    def test_with_python(self):
        import sysconfig
        include, folder = sysconfig.get_paths()["include"], sysconfig.get_config_var("LIBDIR") or ""
        name = "python" + (sysconfig.get_config_var("LDVERSION") or "")
        if not os.path.exists(os.path.join(include, "Python.h")) or not glob.glob(os.path.join(folder, "lib%s.so" % name)):
            self.skipTest("no libpython, or no headers: not installed here")
        program = self.built("-DEMBED", "-I", include, "-L", folder, "-l" + name, "-Wl,-rpath," + folder)
        out = subprocess.run([program, self.path("r.json"), self.path("r.txt")], stdout=subprocess.PIPE, universal_newlines=True, timeout=90,
                             env=dict(os.environ, PYTHONHOME=sys.base_prefix)).stdout
        self.assertIn("early -1 ", out)
        for line in ("start 0", "stop 0", "json 0", "summary 0", "state 0", "samples 1"):
            self.assertIn(line, out)
        with open(self.path("r.json")) as file:
            stacks = json.load(file)["stacks"]
        self.assertTrue(any(frame["symbol"].endswith("busy_in_python") for stack in stacks for frame in stack["frames"]))


if __name__ == "__main__":
    unittest.main()
