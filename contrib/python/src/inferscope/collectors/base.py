"""What collectors of this process have in common."""
from __future__ import annotations

import collections
import threading
from typing import Any, Dict, FrozenSet, List, Optional, Tuple

from .._engine import Engine, Recording, shared
from .._types import Event
from ..buffer import TraceBuffer


class Collector:
    """
    Collects events of KINDS into TRACE_BUFFER. `state`: Uninitialized, Idle (after init()), Collecting (after start()), Finalized (after stop()); init(), start() and
    stop() may be called twice. Events come into the buffer at stop(): until then they are on their way through the program that drains them. `trace_buffer` of a
    collector that was given none has those of the last measurement, read when it is first asked for. Collectors with the same options share one measurement, which
    the first stop() of them ends. Options as of `inferscope attach`.
    """

    KINDS: FrozenSet[str] = frozenset()

    def __init__(self, trace_buffer: Optional[TraceBuffer] = None, engine: Optional[Engine] = None, **options: Any) -> None:
        self._buffer = TraceBuffer() if trace_buffer is None else trace_buffer
        self._at_once = trace_buffer is not None
        self.state = "Uninitialized"
        self._engine = engine or Engine(**options)
        self._recording: Optional[Recording] = None
        self._read: Optional[List[Event]] = None
        self._filled = True
        self._lock = threading.RLock()

    @property
    def _events(self) -> List[Event]:
        """Those of the last measurement: as many as that recorded, so that nobody pays for them who does not ask."""
        with self._lock:
            if self._read is None:
                self._read = [event for event in self._recording.events() if event["event_type"] in self.KINDS] if self._recording else []
            return self._read

    def _fill(self) -> None:
        with self._lock:
            if not self._filled:
                self._filled = True
                for event in self._events:
                    self._buffer.enqueue(event)

    @property
    def trace_buffer(self) -> TraceBuffer:
        self._fill()
        return self._buffer

    def _counts(self) -> collections.Counter[Tuple[str, Optional[int]]]:
        """How many events of the last measurement there are of its kinds, by kind and thread."""
        counts = self._recording.counts() if self._recording else {}
        return collections.Counter({key: count for key, count in counts.items() if key[0] in self.KINDS})

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
        """Ends it; the events are in a buffer that was given then."""
        if self.state != "Collecting":
            return
        self.state = "Finalized"
        self._engine.stop()
        with self._lock:
            self._recording, self._read, self._filled = self._engine.recording, None, False
        if self._at_once:
            self._fill()

    def _quality(self, key: str) -> int:
        return int(((self._engine.result or {}).get("quality") or {}).get(key) or 0)

    def _let_go(self) -> int:
        """How many events the buffer let go, or will once it is asked for: the answer is the same before and after."""
        with self._lock:
            coming = 0 if self._at_once or self._filled else max(0, len(self._buffer) + sum(self._counts().values()) - self._buffer.capacity)
            return getattr(self._buffer, "dropped", 0) + coming

    def get_stats(self) -> Dict[str, Any]:
        """captured and dropped events, and the state."""
        return {"captured": sum(self._counts().values()), "dropped": self._quality("lost_events_count") + self._let_go(), "state": self.state}
