"""What collectors of this process have in common."""
from .._engine import Engine, shared
from ..buffer import TraceBuffer


class Collector:
    """
    Collects events of KINDS into TRACE_BUFFER. `state`: Uninitialized, Idle (after init()), Collecting (after start()), Finalized (after stop()); init(), start() and
    stop() may be called twice. Events come into the buffer at stop(): until then they are on their way through the program that drains them. Collectors with the
    same options share one measurement, which the first stop() of them ends. Options as of `inferscope attach`.
    """

    KINDS = frozenset()

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
        self._engine = shared(self._engine)
        self.state = "Collecting"

    def stop(self):
        """Ends it; the events are in the buffer then."""
        if self.state != "Collecting":
            return
        self.state = "Finalized"
        self._engine.stop()
        self._events = [event for event in self._engine.events if event["event_type"] in self.KINDS]
        for event in self._events:
            self.trace_buffer.enqueue(event)

    def _quality(self, key):
        return int(((self._engine.result or {}).get("quality") or {}).get(key) or 0)

    def get_stats(self):
        """captured and dropped events, and the state."""
        return {"captured": len(self._events), "dropped": self._quality("lost_events_count") + getattr(self.trace_buffer, "dropped", 0), "state": self.state}
