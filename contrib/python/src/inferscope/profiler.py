"""Profiling this process from inside: the unified Profiler, and the sampling profiler with its converter and report."""
from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, TypeVar, Union, cast

from . import _library
from ._around import around
from ._engine import Engine, Recording
from ._program import InferScopeError, call
from ._types import Document, Event, Path
from .collectors.cpu import CpuCollector
from .reporter import ReportGenerator
from .timeline import TimelineMerger

INTERVAL_MS = 1.0
F = TypeVar("F", bound=Callable[..., Any])
Data = Union[Document, Path]


def _document(data: Data) -> Document:
    """What CPUProfiler.data has, of itself or of a file that holds it."""
    if not isinstance(data, (str, os.PathLike)):
        return data
    with open(data, encoding="utf-8") as file:
        written: Document = json.load(file)
    return written


class Profiler:
    """
    Calls, scopes and GPU work of this process between start() and stop(), in one timeline; also as a with block. Options as of `inferscope attach`:
    max_overhead="2%", memory=True, gc=False (--no-gc), native=False (--no-native), skip=["a", "b"].
    """

    def __init__(self, **options: Any) -> None:
        self._engine = Engine(**options)
        self.cpu = CpuCollector(engine=self._engine)
        self.report: Optional[Document] = None

    def start(self) -> None:
        self.cpu.start()

    def stop(self) -> None:
        """Ends it; the report is in `report` then."""
        self.cpu.stop()
        self._engine = self.cpu._engine
        self.report = self._engine.result

    def get_unified_timeline(self) -> List[Event]:
        """All events of the last measurement by time, µs from the start of the capture; read from its trace, anew at each call."""
        return TimelineMerger(self._engine.recording.events() if self._engine.recording else ()).get_sorted_events()

    def get_stats(self) -> Dict[str, Any]:
        stats = self.cpu.get_stats()
        counts = self._engine.recording.counts() if self._engine.recording else {}
        stats["gpu"] = sum(count for (kind, _), count in counts.items() if kind.startswith(("gpu_", "h2d", "d2h", "d2d")))
        stats["duration_ns"] = (self.report or {}).get("capture", {}).get("duration_ns", 0)
        return stats

    def _recorded(self) -> Recording:
        if not self._engine.recording:
            raise InferScopeError("nothing has been recorded yet", hint="start() and stop() first")
        return self._engine.recording

    def save(self, path: Path, format: Optional[str] = None) -> None:
        """Writes a report of what was recorded; formats as of `inferscope analyze`. A path that ends in .iscope gets the trace itself."""
        if format is None and os.fspath(path).endswith(".iscope"):
            shutil.copyfile(self._recorded().trace, path)
        else:
            ReportGenerator(self._recorded().trace).save(path, format)

    def judge(self, fail_on: str) -> None:
        """InferScopeError (code E_GATE) when the recording is what FAIL_ON names: a class, a severity or a rule, as of `inferscope analyze --fail-on`."""
        call("analyze", self._recorded().trace, "-f", "json", "-o", "-", "--fail-on", fail_on)

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


class CPUProfiler:
    """
    Samples the stacks of this process's threads, every INTERVAL_MS milliseconds (1 unless given, and at least: a shorter one costs more than it tells, and is
    refused). threads: "all" or "own" (the thread that called start()). lib_path: a libinferscope-profiler.so other than the packaged one. `data` is what it came to
    after stop(): stacks with frames innermost first, at most 128, each with how often it was seen; instructions and memory_delta are None where they were not
    counted, instructions_why and memory_why say why. May be started again. A process is profiled once at a time.
    """

    def __init__(self, lib_path: Optional[Path] = None, interval_ms: float = INTERVAL_MS, threads: str = "all") -> None:
        if interval_ms < INTERVAL_MS:
            raise ValueError("interval_ms=%g: shorter than 1 ms costs more than it tells" % interval_ms)
        if threads not in ("all", "own"):
            raise ValueError("threads is \"all\" or \"own\"")
        self.interval_ms, self.threads = interval_ms, threads
        self._library = _library.load(lib_path)
        self._thread: Optional[int] = None
        self._running = False
        self.data: Any = None  # a Document, once there is one
        self.error: Optional[str] = None

    def start(self) -> bool:
        """False: it runs already, or this process cannot be profiled; `error` (and a warning) says why then, and the program goes on without."""
        if self._running:
            return False
        if self._library.profiler_set_interval_us(round(self.interval_ms * 1000)) or self._library.profiler_start():
            return self._failed()
        self._running, self._thread = True, threading.get_native_id()
        return True

    def stop(self) -> bool:
        """False: it does not run, or there is no result; `error` says why then."""
        if not self._running:
            return False
        self._running = False
        if self._library.profiler_stop():
            return self._failed()
        try:
            self.data = self._collect(_library.document(self._library))
        except (OSError, ValueError, InferScopeError) as error:  # no place for a temporary file
            return self._failed(error)
        return True

    def _failed(self, error: Optional[Exception] = None) -> bool:
        self.error = str(error) if error else self._library.profiler_error().decode("utf-8", "replace")
        warnings.warn("not profiled: %s" % self.error, RuntimeWarning, stacklevel=3)
        return False

    def _collect(self, document: Document) -> Document:
        stacks = document["stacks"]
        if self.threads == "own":
            own = str(self._thread)
            stacks = [dict(stack, count=stack["threads"][own], threads={own: stack["threads"][own]}) for stack in stacks if own in stack["threads"]]
            stacks.sort(key=lambda stack: -stack["count"])
        document.update(elapsed_s=document.pop("elapsed_ns") / 1e9, interval_ms=_library.interval_ms(self._library), stacks=stacks, stacks_count=len(stacks), samples=sum(stack["count"] for stack in stacks))
        return document

    def write_json(self, path: Path) -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=1)


class FlameGraphConverter:
    """
    Folded stacks, as flame graph programs read them. Frames come innermost first, as CPUProfiler has them; a line begins with the outermost one.

    >>> FlameGraphConverter().convert_stack({"frames": [{"symbol": "main"}, {"symbol": "process"}, {"symbol": "malloc"}], "count": 100})
    'malloc;process;main 100'
    """

    def convert_stack(self, stack: Dict[str, Any]) -> str:
        return "%s %d" % (";".join(frame["symbol"].replace(";", ":").replace("\n", " ") for frame in reversed(stack["frames"])), stack["count"])

    def convert(self, data: Data) -> str:
        """All stacks of CPUProfiler.data (or of a file that holds it), a line each."""
        return "".join(self.convert_stack(stack) + "\n" for stack in _document(data)["stacks"])

    def save(self, data: Data, path: Path) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.convert(data))


class ProfileReport:
    """Prints what CPUProfiler.data (or a file that holds it) says."""

    def __init__(self, data: Data) -> None:
        self.data = _document(data)

    def summary(self) -> str:
        return "elapsed time: %.3f s\nsamples: %d, every %g ms\n" % (self.data["elapsed_s"], self.data["samples"], self.data["interval_ms"])

    def print_summary(self) -> None:
        print(self.summary(), end="")

    def print_hot_paths(self, count: int = 15) -> None:
        """The stacks seen most often."""
        whole = self.data["samples"] or 1
        for stack in self.data["stacks"][:count]:
            print("%5.1f %%  %6d  %s" % (100 * stack["count"] / whole, stack["count"], " < ".join(frame["symbol"] for frame in stack["frames"])))

    def _print_most(self, what: str, key: str, unit: str, count: int = 15) -> None:
        """The stacks with most of it, where that was counted."""
        if self.data[what + "_why"]:
            print("%s: not known (%s)" % (what, self.data[what + "_why"]))
            return
        print("%s: %d %s" % (what, sum(stack[key] for stack in self.data["stacks"]), unit))
        for stack in sorted(self.data["stacks"], key=lambda stack: -cast(int, stack[key]))[:count]:
            if stack[key]:
                print("%14d  %s" % (stack[key], " < ".join(frame["symbol"] for frame in stack["frames"])))

    def print_memory_stats(self) -> None:
        self._print_most("memory", "memory_delta", "bytes")

    def print_instruction_stats(self) -> None:
        self._print_most("instructions", "instructions", "instructions")


def _save(profiler: CPUProfiler, folder: Path, name: str) -> None:
    os.makedirs(folder, exist_ok=True)
    base = os.path.join(folder, name)
    profiler.write_json(base + ".json")
    report = ProfileReport(profiler.data)
    with open(base + ".txt", "w", encoding="utf-8") as file:
        file.write(report.summary())
    FlameGraphConverter().save(profiler.data, base + ".collapsed")
    report.print_summary()
    report.print_hot_paths()


@contextlib.contextmanager
def _outranked(what: str) -> Iterator[None]:
    """What the function makes of its call is its own, whatever becomes of the profile: that is told as a warning."""
    try:
        yield
    except Exception as error:
        warnings.warn("%s: %s" % (what, error), RuntimeWarning, stacklevel=6)  # who called the function


@contextlib.contextmanager
def _profiled(folder: Path, name: str) -> Iterator[None]:
    profiler, begun = None, False
    with _outranked("%s is not profiled" % name):
        profiler = CPUProfiler()
        begun = profiler.start()
    try:
        yield
    finally:
        if profiler and begun:
            with _outranked("the profile of %s is not saved" % name):
                if profiler.stop():
                    _save(profiler, folder, name)


def profile_function(output_dir: Path = "./results") -> Callable[[F], F]:
    """
    Decorator: each call is profiled, that of a coroutine or generator from its first step to its end; JSON, summary and folded stacks go to OUTPUT_DIR under the
    function's name, and the report is shown. Where that cannot be the function does what it does all the same, and a warning says why.
    """
    def decorator(function: F) -> F:
        return cast(F, around(function, functools.partial(_profiled, output_dir, getattr(function, "__name__", "function"))))
    return decorator


@contextlib.contextmanager
def profiler_context(**options: Any) -> Iterator[CPUProfiler]:
    """`with profiler_context() as profiler:`; profiler.data holds the stacks afterwards (None: profiler.error says why there are none)."""
    profiler = CPUProfiler(**options)
    profiler.start()
    try:
        yield profiler
    finally:
        profiler.stop()
