"""What the GPUs did for this process, as the collector's CUPTI part saw it."""
import warnings

from .._engine import Engine
from ..buffer import TraceBuffer

GPU_EVENTS = frozenset(("gpu_kernel", "h2d_copy", "d2h_copy", "d2d_copy", "gpu_memset", "gpu_sync", "gpu_api"))


class GpuCollector:
    """As CpuCollector, of kernels and copies. Without CUDA it collects nothing, and warns: the analysis is of the CPU alone then."""

    def __init__(self, trace_buffer=None, engine=None, **options):
        self.trace_buffer = TraceBuffer() if trace_buffer is None else trace_buffer
        self.state = "Uninitialized"
        self._engine = engine or Engine(**options)
        self._events, self._injected = [], []

    def start(self):
        if self.state == "Collecting":
            return
        self._engine.start()
        self.state = "Collecting"

    def stop(self):
        if self.state != "Collecting":
            return
        self._engine.stop()
        self.state = "Finalized"
        self._events = [event for event in self._engine.events if event["event_type"] in GPU_EVENTS]
        for event in self._events:
            self.trace_buffer.enqueue(event)
        if not self._events and not self._injected:
            warnings.warn("no GPU activity was seen: %s" % (self._engine.result or {}).get("verdict", {}).get("gpu", "no reason given"), RuntimeWarning, stacklevel=2)

    def _inject_kernel_event(self, name, start_us, end_us, device_id=0, grid_dim=(1, 1, 1), block_dim=(1, 1, 1), event_type="gpu_kernel", bytes=None):
        """A kernel or copy that never ran, for tests of what comes after."""
        event = {"event_type": event_type, "name": name, "start_us": start_us, "end_us": end_us, "thread_id": None, "cpu_id": None, "device_id": device_id}
        if event_type == "gpu_kernel":
            event.update(grid_dim=list(grid_dim), block_dim=list(block_dim))
        if bytes is not None:
            event["bytes"] = bytes
        self._injected.append(event)
        self.trace_buffer.enqueue(event)

    def get_stats(self):
        """Kernels and copies that were captured, and those injected."""
        events = self._events + self._injected
        return {"captured": len(events), "kernels": sum(e["event_type"] == "gpu_kernel" for e in events), "copies": sum(e["event_type"] in ("h2d_copy", "d2h_copy", "d2d_copy") for e in events),
                "injected": len(self._injected), "state": self.state}
