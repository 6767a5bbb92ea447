"""What events mean: the analysis of `inferscope analyze`."""
from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Iterable, Optional, Union

from ._program import call, option_words
from ._types import Document, Event, Path

Events = Union[Iterable[Event], Path]


def _document(events: Iterable[Event]) -> bytes:
    return json.dumps({"schema": "inferscope.events/1", "events": list(events), "start_unix_ns": "0", "cut_count": 0}).encode()


class _Trace:
    """EVENTS (a list, or the path of a trace) as a file, while the with block lasts."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.made: Optional[str] = None

    def __enter__(self) -> str:
        if isinstance(self.events, (str, os.PathLike)):
            return os.fspath(self.events)
        handle, self.made = tempfile.mkstemp(suffix=".json")
        with os.fdopen(handle, "wb") as file:
            file.write(_document(self.events))
        return self.made

    def __exit__(self, *exception: object) -> None:
        if self.made:
            os.unlink(self.made)


class BottleneckAnalyzer:
    """
    Of events as the collectors have them (or of a trace's path). Options as of `inferscope analyze`: parameter="gpu.idle_pct_threshold=20".

    >>> report = BottleneckAnalyzer([{"event_type": "gpu_kernel", "name": "k", "start_us": 0, "end_us": 9e6, "device_id": 0},
    ...                              {"event_type": "cpu_call", "name": "f", "start_us": 0, "end_us": 1e6, "thread_id": 1}]).analyze()
    >>> report["class"]
    'gpu_bound'
    """

    def __init__(self, events: Events, **options: Any) -> None:
        self.events, self.options = events, options

    def analyze(self) -> Document:
        """The report as a dict; the verdict's class, confidence (0 to 1), reason and suggestions once more at its top."""
        with _Trace(self.events) as path:
            report: Document = json.loads(call("analyze", path, "-f", "json", "-o", "-", *option_words(self.options)))
        verdict = report["verdict"]
        report.update({"class": verdict["class"], "confidence": verdict["confidence"], "reason": verdict["reason"],
                       "suggestions": [finding["suggestion"] for finding in report["findings"] if finding.get("suggestion")]})
        return report
