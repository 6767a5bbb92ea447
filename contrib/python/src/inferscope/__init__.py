"""
InferScope from Python: scopes and marks that reports know by name, measuring other processes and this one.

>>> with scope("inference"):
...     mark_event("tokenization_complete", metadata={"tokens": 1024})
"""
from ._program import InferScopeError
from .analyzer import BottleneckAnalyzer
from .api import Report, TraceReader, analyze, attach, is_attached, mark_event, scope
from .buffer import TraceBuffer
from .collectors import CpuCollector, GpuCollector
from .profiler import CPUProfiler, FlameGraphConverter, ProfileReport, Profiler, profile_function, profiler_context
from .reporter import ReportGenerator
from .timeline import TimelineMerger

__all__ = ["BottleneckAnalyzer", "CPUProfiler", "CpuCollector", "FlameGraphConverter", "GpuCollector", "InferScopeError", "ProfileReport", "Profiler", "Report", "ReportGenerator",
           "TimelineMerger", "TraceBuffer", "TraceReader", "analyze", "attach", "is_attached", "mark_event", "profile_function", "profiler_context", "scope"]
