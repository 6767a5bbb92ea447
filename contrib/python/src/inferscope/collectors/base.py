"""What collectors of this process have in common."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Optional

from .._engine import Engine, shared
from .._types import Event
from ..buffer import TraceBuffer


class Collector:
    """
    Collects events of KINDS into TRACE_BUFFER. `state`: Uninitialized, Idle (after init()), Collecting (after start()), Finalized (after stop()); init(), start() and
    stop() may be called twice. Events come into the buffer at stop(): until then they are on their way through the program that drains them. Collectors with the
    same options share one measurement, which the first stop() of them ends. Options as of `inferscope attach`.
    """

    KINDS: FrozenSet[str] = frozenset()

    def __init__(self, trace_buffer: Optional[TraceBuffer] = None, engine: Optional[Engine] = None, **options: Any) -> None:
        self.trace_buffer = TraceBuffer() if trace_buffer is None else trace_buffer
        self.state = "Uninitialized"
        self._engine = engine or Engine(**options)
        self._events: List[Event] = []

    def init(self) -> None:
        if self.state == "Uninitialized":
            self.state = "Idle"

    def start(self) -> None:
        """Begins to collect. InferScopeError says why it cannot."""
        if self.state == "Collecting":
            return
        self.init()
        self._engine = shared(self._engine)
        self.state = "Collecting"

    def stop(self) -> None:
        """Ends it; the events are in the buffer then."""
        if self.state != "Collecting":
            return
        self.state = "Finalized"
        self._engine.stop()
        self._events = [event for event in self._engine.events if event["event_type"] in self.KINDS]
        for event in self._events:
            self.trace_buffer.enqueue(event)

    def _quality(self, key: str) -> int:
        return int(((self._engine.result or {}).get("quality") or {}).get(key) or 0)

    def get_stats(self) -> Dict[str, Any]:
        """captured and dropped events, and the state."""
        return {"captured": len(self._events), "dropped": self._quality("lost_events_count") + getattr(self.trace_buffer, "dropped", 0), "state": self.state}
