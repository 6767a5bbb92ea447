"""Calls of this process's Python functions, scopes and marks."""
from __future__ import annotations

import collections
import threading
from typing import Any, Dict, List, Optional

from .._types import Event
from .base import Collector


class CpuCollector(Collector):
    __doc__ = Collector.__doc__

    KINDS = frozenset(("cpu_call", "cpu_syscall", "memory_alloc", "memory_free", "scope_enter", "scope_exit", "instant"))

    def get_thread_local_buffer(self) -> List[Event]:
        """The calling thread's events so far (those that have arrived: all of them after stop()). Waits for no other thread."""
        tid = threading.get_native_id()
        return [event for event in self._events if event["thread_id"] == tid]

    def get_stats(self) -> Dict[str, Any]:
        """captured and dropped events, frames_skipped (calls left out: own code, import machinery), threads (how many events each has, by thread id), state."""
        stats = super().get_stats()
        stats["frames_skipped"] = self._quality("skipped_calls_count")
        threads: collections.Counter[Optional[int]] = collections.Counter()
        for (_, thread), count in self._counts().items():
            threads[thread] += count
        stats["threads"] = dict(threads)
        return stats
