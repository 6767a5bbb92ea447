"""Where collectors put their events."""
from __future__ import annotations

import threading
import warnings
from collections import deque
from typing import Deque, List

from ._types import Event


class TraceBuffer:
    """
    A bounded buffer of events (dicts). Full, it lets the oldest go, warns once, and counts them.

    >>> buffer = TraceBuffer(capacity=2)
    >>> buffer.enqueue({"event_type": "instant", "name": "a", "time": 0})
    True
    >>> [event["name"] for event in buffer.read_all()]
    ['a']
    """

    def __init__(self, capacity: int = 1000000) -> None:
        self.capacity, self.dropped = capacity, 0
        self._events: Deque[Event] = deque()
        self._lock = threading.Lock()

    def enqueue(self, event: Event) -> bool:
        """Adds one. False: it is in, but the oldest had to go."""
        with self._lock:
            fits = len(self._events) < self.capacity
            if not fits:
                if not self.dropped:
                    warnings.warn("the trace buffer is full: its oldest events go", RuntimeWarning, stacklevel=2)
                self._events.popleft()
                self.dropped += 1
            self._events.append(event)
            return fits

    def read_all(self) -> List[Event]:
        """All events, oldest first. They stay."""
        with self._lock:
            return list(self._events)

    def clear(self) -> None:
        with self._lock:
            self._events.clear()

    def __len__(self) -> int:
        return len(self._events)
