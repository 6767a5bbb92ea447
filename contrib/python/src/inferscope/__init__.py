"""
InferScope from Python: scopes and marks that reports know by name, measuring other processes and this one.

>>> with scope("inference"):
...     mark_event("tokenization_complete", metadata={"tokens": 1024})
"""
import sys

if "t" in getattr(sys, "abiflags", ""):
    raise ImportError("inferscope: free-threaded builds of Python are not supported yet: use the default build")
try:
    from . import _native
except ImportError as error:
    if "subinterpreter" not in str(error):
        raise
    raise ImportError("inferscope: sub-interpreters are not supported: import it in the main interpreter") from error

from .api import Report, TraceReader, analyze, attach, is_attached, mark_event, scope
from ._library import get_include, get_library
from ._program import InferScopeError
from .analyzer import BottleneckAnalyzer
from .buffer import TraceBuffer
from .collectors import CpuCollector, GpuCollector
from .profiler import CPUProfiler, FlameGraphConverter, ProfileReport, Profiler, profile_function, profiler_context
from .reporter import ReportGenerator
from .timeline import TimelineMerger

__all__ = ["BottleneckAnalyzer", "CPUProfiler", "CpuCollector", "FlameGraphConverter", "GpuCollector", "InferScopeError", "ProfileReport", "Profiler", "Report", "ReportGenerator",
           "TimelineMerger", "TraceBuffer", "TraceReader", "analyze", "attach", "get_include", "get_library", "is_attached", "mark_event", "profile_function", "profiler_context", "scope"]
