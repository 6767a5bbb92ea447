"""One timeline out of the events of several collectors."""
from __future__ import annotations

from typing import Dict, Iterable, List, Optional

from ._types import Event


def _start(event: Event) -> float:
    return float(event["start_us"] if "start_us" in event else event["time"])


class TimelineMerger:
    """
    >>> merger = TimelineMerger([{"event_type": "instant", "name": "b", "time": 2}], [{"event_type": "gpu_kernel", "name": "a", "start_us": 1, "end_us": 3}])
    >>> [event["name"] for event in merger.merge()]
    ['a', 'b']
    """

    def __init__(self, cpu_events: Iterable[Event] = (), gpu_events: Iterable[Event] = (), margin_us: float = 1000) -> None:
        self.cpu_events, self.gpu_events, self.margin_us = list(cpu_events), list(gpu_events), margin_us
        self.offset_us = 0.0
        self._sorted: Optional[List[Event]] = None

    def synchronize_clocks(self, offset_us: Optional[float] = None) -> Dict[str, float]:
        """
        Events of one capture have one clock already: the collector fits the device's to the host's, so that nothing is shifted. offset_us shifts GPU events that
        come from elsewhere. Returns {"offset_us", "error_us"}: the error is the margin where the two clocks could not be compared.
        """
        self.offset_us = offset_us or 0.0
        self._sorted = None
        return {"offset_us": self.offset_us, "error_us": 0.0 if offset_us is None else self.margin_us}

    def merge(self) -> List[Event]:
        """All events by the time they begin."""
        shifted = self.gpu_events
        if self.offset_us:
            shifted = [dict(event, **{key: event[key] + self.offset_us for key in ("start_us", "end_us", "time") if key in event}) for event in self.gpu_events]
        self._sorted = sorted(self.cpu_events + shifted, key=_start)
        return self._sorted

    def get_sorted_events(self) -> List[Event]:
        return self.merge() if self._sorted is None else self._sorted
