"""What the GPUs did for this process, as the collector's CUPTI part saw it."""
from __future__ import annotations

import warnings
from typing import Any, Dict, List, Optional, Sequence

from .._engine import Engine
from .._types import Event
from ..buffer import TraceBuffer
from .base import Collector

COPIES = ("h2d_copy", "d2h_copy", "d2d_copy")


class GpuCollector(Collector):
    __doc__ = (Collector.__doc__ or "") + """
    Without CUDA it collects nothing, and warns with the reason: the analysis is of the CPU alone then.
    """

    KINDS = frozenset(("gpu_kernel", "gpu_memset", "gpu_sync", "gpu_api") + COPIES)

    def __init__(self, trace_buffer: Optional[TraceBuffer] = None, engine: Optional[Engine] = None, **options: Any) -> None:
        super().__init__(trace_buffer, engine, **options)
        self._injected: List[Event] = []

    def stop(self) -> None:
        collecting = self.state == "Collecting"
        super().stop()
        why = (self._engine.result or {}).get("verdict", {}).get("gpu")
        if collecting and why and not self._injected:
            warnings.warn("no GPU activity was seen: %s" % why, RuntimeWarning, stacklevel=2)

    def _inject_kernel_event(self, name: str, start_us: float, end_us: float, device_id: int = 0, grid_dim: Sequence[int] = (1, 1, 1), block_dim: Sequence[int] = (1, 1, 1),
                             event_type: str = "gpu_kernel", bytes: Optional[int] = None) -> None:
        """A kernel or copy that never ran, for tests of what comes after."""
        event: Event = {"event_type": event_type, "name": name, "start_us": start_us, "end_us": end_us, "thread_id": None, "cpu_id": None, "device_id": device_id}
        if event_type == "gpu_kernel":
            event.update(grid_dim=list(grid_dim), block_dim=list(block_dim))
        if bytes is not None:
            event["bytes"] = bytes
        self._injected.append(event)
        self._buffer.enqueue(event)

    def get_stats(self) -> Dict[str, Any]:
        """captured (injected ones too) and dropped events, kernels, copies, injected, state."""
        counts = self._counts()
        counts.update((event["event_type"], None) for event in self._injected)
        stats = super().get_stats()
        stats.update(captured=sum(counts.values()), injected=len(self._injected))
        for name, kinds in (("kernels", ("gpu_kernel",)), ("copies", COPIES)):
            stats[name] = sum(count for (kind, _), count in counts.items() if kind in kinds)
        return stats
