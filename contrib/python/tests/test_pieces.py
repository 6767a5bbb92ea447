"""The classes, each by itself: buffers, clocks, converters, documents. As a wheel installs it: `python -m unittest` (or pytest) in an environment that has it."""
import asyncio
import collections
import doctest
import importlib.util
import json
import os
import tempfile
import unittest
import warnings
from unittest import mock

import inferscope
from inferscope import BottleneckAnalyzer, CpuCollector, GpuCollector, Profiler, ReportGenerator, TimelineMerger, TraceBuffer, mark_event
from common import run_python


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
