"""Calls of this process's Python functions, scopes and marks."""
import threading

from .._engine import Engine
from ..buffer import TraceBuffer

CPU_EVENTS = frozenset(("cpu_call", "cpu_syscall", "memory_alloc", "memory_free", "scope_enter", "scope_exit", "instant"))


class CpuCollector:
    """
    Collects into TRACE_BUFFER. `state`: Uninitialized, Idle (after init()), Collecting (after start()), Finalized (after stop()); start() and stop() may be called
    twice. Events come into the buffer at stop(): until then they are on their way through the program that drains them. Options as of `inferscope attach`.
    """

    def __init__(self, trace_buffer=None, engine=None, **options):
        self.trace_buffer = TraceBuffer() if trace_buffer is None else trace_buffer
        self.state = "Uninitialized"
        self._engine = engine or Engine(**options)
        self._events = []

    def init(self):
        if self.state == "Uninitialized":
            self.state = "Idle"

    def start(self):
        """Begins to collect. InferScopeError says why it cannot."""
        if self.state == "Collecting":
            return
        self.init()
        self._engine.start()
        self.state = "Collecting"

    def stop(self):
        """Ends it; the events are in the buffer then."""
        if self.state != "Collecting":
            return
        self._engine.stop()
        self.state = "Finalized"
        self._events = [event for event in self._engine.events if event["event_type"] in CPU_EVENTS]
        for event in self._events:
            self.trace_buffer.enqueue(event)

    def get_thread_local_buffer(self):
        """The calling thread's events so far (those that have arrived: all of them after stop()). Never blocks."""
        tid = threading.get_native_id()
        return [event for event in self._events if event["thread_id"] == tid]

    def get_stats(self):
        """captured, dropped and skipped events, and how many each thread has."""
        threads = {}
        for event in self._events:
            threads[event["thread_id"]] = threads.get(event["thread_id"], 0) + 1
        quality = (self._engine.result or {}).get("capture", {})
        return {"captured": len(self._events), "dropped": int(quality.get("lost_events_count", 0) or 0) + getattr(self.trace_buffer, "dropped", 0),
                "frames_skipped": int(quality.get("skipped_count", 0) or 0), "threads": threads, "state": self.state}
