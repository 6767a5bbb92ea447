"""The C functions of libinferscope-profiler.so, which samples this process by the packaged program."""
from __future__ import annotations

import ctypes
import json
import os
import tempfile
from typing import Any, Optional

from ._program import InferScopeError
from ._types import Document, Path

FOLDER = os.path.dirname(os.path.abspath(__file__))


class State(ctypes.Structure):
    """struct profiler_state of inferscope/profiler.h."""

    _fields_ = [("running", ctypes.c_int32), ("interval_us", ctypes.c_uint32), ("elapsed_ns", ctypes.c_uint64), ("samples", ctypes.c_uint64), ("stacks", ctypes.c_uint64)]


def get_library() -> str:
    """Path of the packaged libinferscope-profiler.so, for C programs and ctypes."""
    return os.path.join(FOLDER, "_bin", "libinferscope-profiler.so")


def get_include() -> str:
    """The folder for a C compiler's -I: #include <inferscope/profiler.h>."""
    return os.path.join(FOLDER, "include")


def load(path: Optional[Path] = None) -> Any:
    """The library, its functions with their types. InferScopeError: it cannot be loaded."""
    path = os.fspath(path) if path else get_library()
    try:
        library = ctypes.CDLL(path)
        library.profiler_error.restype = ctypes.c_char_p
        library.profiler_set_interval_us.argtypes = [ctypes.c_uint32]
        library.profiler_write_json.argtypes = library.profiler_write_summary.argtypes = [ctypes.c_char_p]
        library.profiler_get_state.argtypes = [ctypes.POINTER(State)]
    except (OSError, AttributeError) as error:
        raise InferScopeError("the profiler's library cannot be used: %s" % error, hint="lib_path=None takes the packaged one")
    return library


def interval_ms(library: Any) -> float:
    """What profiler_set_interval_us() made of it: samples come a whole number of times per second."""
    state = State()
    library.profiler_get_state(ctypes.byref(state))
    return float(state.interval_us / 1000)


def document(library: Any) -> Document:
    """What profiler_write_json() writes."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        if library.profiler_write_json(file.name.encode()):
            raise InferScopeError(library.profiler_error().decode("utf-8", "replace"))
        written: Document = json.load(file)
    return written
