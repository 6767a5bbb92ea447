"""What programs call: scope(), mark_event(), attach(), analyze(), TraceReader."""
from __future__ import annotations

import contextlib
import functools
import html
import importlib
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _native
from ._around import around
from ._program import InferScopeError, call, end, events_of, failure_of, option_words, started
from ._types import Document, Event, Path

METADATA_BYTES = 1000
JSON = json.JSONEncoder(default=repr, separators=(",", ":"))
Tell = Callable[[str], object]


def _encode(metadata: Any) -> str:
    """JSON of at most METADATA_BYTES, of what _metadata.c leaves to us; what JSON does not know is its repr(), and so is the whole where JSON refuses it (keys that are tuples, circles)."""
    try:
        text = JSON.encode(metadata)
    except Exception:
        text = repr(metadata)
    return text if len(text) <= METADATA_BYTES else json.dumps({"cut": text[:METADATA_BYTES - 100]}, separators=(",", ":"))[:METADATA_BYTES + 200]


def _decorate(one: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """FUNCTION inside a scope of its own per call."""
    return around(function, functools.partial(_native.scope, one.name, one.metadata))


class _no_scope:
    """INFERSCOPE_ENABLED=0: scope() that does nothing."""

    __slots__ = ("name", "metadata")
    name: Any
    metadata: None

    def __new__(cls, name: Any, metadata: Any = None) -> Any:
        if callable(name):
            return name
        self = object.__new__(cls)
        self.name, self.metadata = name, None
        return self

    def __call__(self, function: Any) -> Any:
        return function

    def __enter__(self) -> _no_scope:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    async def __aenter__(self) -> _no_scope:
        return self

    async def __aexit__(self, *exception: object) -> None:
        return None


def _no_mark(name: str, metadata: Any = None) -> None:
    """INFERSCOPE_ENABLED=0: mark_event() that does nothing."""


_native.set_helpers(_decorate, _encode)
os.register_at_fork(after_in_child=_native.forked)
if os.environ.get("INFERSCOPE_ENABLED", "1").strip().lower() not in ("0", "no", "false", "off"):
    from ._native import mark_event as mark_event, scope as scope
else:
    scope, mark_event = _no_scope, _no_mark


def is_attached() -> bool:
    """True while InferScope measures this process with hooks."""
    return _native.attached()


class Report(Document):
    """A report, as `inferscope -f json` writes it (docs/report.md). `trace` is the file it was made of, or None; in Jupyter it shows itself as HTML."""

    def __init__(self, document: Document, trace: Optional[str] = None, page: Optional[str] = None) -> None:
        super().__init__(document)
        self.trace, self._page = trace, page

    def to_html(self) -> str:
        """The report as one HTML page."""
        if self._page is None:
            if not self.trace:
                raise InferScopeError("this report was made without keeping its trace", hint="give trace=PATH")
            self._page = call("analyze", self.trace, "-f", "html", "-o", "-").decode()
        return self._page

    def _repr_html_(self) -> str:
        return '<iframe srcdoc="%s" style="width:100%%;height:720px;border:0" sandbox="allow-scripts"></iframe>' % html.escape(self.to_html(), quote=True)


def analyze(trace: Path, **options: Any) -> Report:
    """The report of a kept trace (or a Chrome trace, or event JSON) as a dict. Options are those of `inferscope analyze`: parameter="name=1", top=20."""
    return Report(json.loads(call("analyze", trace, "-f", "json", "-o", "-", *option_words(options))), trace=os.fspath(trace))


def _shown(line: str) -> None:
    sys.stderr.write("\r%-79s" % line)
    sys.stderr.flush()


def _teller(progress: Union[bool, Tell, None]) -> Optional[Tell]:
    """Who is told of progress: a function of a line, or None."""
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    return _shown if progress else None


def _follow(terminal: Any, tell: Optional[Tell]) -> str:
    """What the program writes to its terminal until it ends: lines about progress to TELL, the rest is returned."""
    text = ""
    rest: List[str] = []
    while True:
        try:
            got = terminal.read(65536)
        except OSError:  # EIO: nobody writes any more
            got = b""
        text += got.decode("utf-8", "replace")
        *lines, text = re.split(r"[\r\n]+", text)
        for line in map(str.strip, lines if got else lines + [text]):
            if line.startswith("{"):
                rest.append(line)
            elif line and tell:
                tell(line)
        if not got:
            return "\n".join(rest)


def _watched(words: Sequence[str], tell: Optional[Tell]) -> Tuple[str, int]:
    """Runs the program on a terminal of its own, so that it tells of progress as it does to people. Returns the failure that it told, and its status."""
    try:
        ours, its = pty.openpty()
    except OSError:  # no terminals here: a line every ten seconds will do
        ours, its = os.pipe()
    with contextlib.ExitStack() as held, os.fdopen(ours, "rb", 0) as terminal:
        if tell is _shown:
            held.callback(sys.stderr.write, "\r%-79s\r" % "")
        child = started(words, given=(its,), stdout=subprocess.DEVNULL, stderr=its)
        held.callback(end, child)
        return _follow(terminal, tell), child.wait()


def attach(pid: int, duration: Union[float, str] = 30, trace: Optional[Path] = None, progress: Union[bool, Tell, None] = None, **options: Any) -> Report:
    """
    Measures the running process PID for so many seconds (or "500ms", "2m") and returns its report. trace: where to keep the trace; progress: True shows a line on
    stderr that is written over, False nothing, None: only on a terminal and in a notebook; or a function that is called with each line. Other options as of
    `inferscope attach`: rate=1000, native="hold", hook="none", max_overhead="2%".
    """
    with tempfile.TemporaryDirectory(prefix="inferscope-") as folder:
        kept = os.fspath(trace) if trace else os.path.join(folder, "trace.iscope")
        report = os.path.join(folder, "report")
        words = ["attach", str(pid), "-d", str(duration), "-f", "json" if trace else "json,html", "-o", report + (".json" if trace else ""), "--trace", kept] + option_words(options)
        text, status = _watched(words, _teller(progress))
        failure = failure_of(words, text, status) if status else None
        if failure:
            raise failure
        with open(report + ".json", encoding="utf-8") as file:
            document = json.load(file)
        page = None
        if not trace:
            with open(report + ".html", encoding="utf-8") as file:
                page = file.read()
        return Report(document, trace=kept if trace else None, page=page)


class TraceReader:
    """
    Events of a trace: `for event in TraceReader("x.iscope")` gives dicts as docs/schema/inferscope-events-1.schema.json has them, times in µs from the start of
    the capture. Needs memory for one line at a time, unless pandas or Arrow ask for all.
    """

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        if not os.path.exists(self.path):
            raise FileNotFoundError(self.path)

    def __iter__(self) -> Iterator[Event]:
        return events_of(self.path)

    def report(self, **options: Any) -> Report:
        """The report, as analyze() gives it."""
        return analyze(self.path, **options)

    def to_pandas(self) -> Any:
        """All events as a pandas DataFrame (pandas must be installed)."""
        pandas: Any = importlib.import_module("pandas")
        return pandas.DataFrame(list(self))

    def to_arrow(self) -> Any:
        """All events as a pyarrow Table (pyarrow must be installed); metadata is JSON text, as each event's has a form of its own."""
        pyarrow: Any = importlib.import_module("pyarrow")
        columns: Dict[str, List[Any]] = {}
        for row, event in enumerate(self):
            for key, value in event.items():
                columns.setdefault(key, [None] * row).append(json.dumps(value) if key == "metadata" and value is not None else value)
            for values in columns.values():
                values.extend([None] * (row + 1 - len(values)))
        return pyarrow.table(columns)
