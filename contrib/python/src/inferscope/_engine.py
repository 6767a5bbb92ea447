"""The one engine: the packaged program, as a child that measures this very process, with its help."""
from __future__ import annotations

import atexit
import collections
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from typing import Any, Iterator, List, Optional, Tuple

from . import _native
from ._inside import Channel
from ._program import END_SECONDS, InferScopeError, end, error_of, events_of, failure_of, option_words, started
from ._types import Document, Event

WAIT_SECONDS = 30
LONGEST_SECONDS = 600  # that it may work on what it measured

_current: Optional[Engine] = None
_current_lock = threading.Lock()
_recordings: weakref.WeakSet[Recording] = weakref.WeakSet()


def used_ticks(pid: int) -> List[bytes]:
    """CPU time of a child, and of its children that it waited for; nothing where /proc does not tell."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[11:15]
    except OSError:
        return []


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child's is its parent's
        shutil.rmtree(path, ignore_errors=True)


class Recording:
    """The folder of one measurement, which goes with this object, or with the process. What is in there may be large: it is read when it is asked for, and never held whole."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="inferscope-")
        self.trace = os.path.join(self.folder, "trace.iscope")
        self.counted: Optional[collections.Counter[Tuple[str, Optional[int]]]] = None
        self.owner = os.getpid()
        weakref.finalize(self, _remove, self.folder, self.owner).atexit = False  # what writes into it has to end before: _leave_nothing()
        _recordings.add(self)

    def events(self) -> Iterator[Event]:
        yield from events_of(self.trace)  # this frame keeps the folder

    def counts(self) -> collections.Counter[Tuple[str, Optional[int]]]:
        """How many events there are, by kind and thread."""
        if self.counted is None:
            self.counted = collections.Counter((event["event_type"], event.get("thread_id")) for event in self.events())
        return self.counted


class Engine:
    """Measures this process between start() and stop(). `result` is the report then, and `recording` what it was made of."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.child: Optional[subprocess.Popen[bytes]] = None
        self.owner: Optional[int] = None
        self.result: Optional[Document] = None
        self.recording: Optional[Recording] = None
        self.current: Optional[Recording] = None  # while it lasts
        self.lock = threading.Lock()

    @property
    def running(self) -> bool:
        return self.child is not None and self.owner == os.getpid()  # a forked child is not measured

    def start(self) -> None:
        """Returns once the measurement has begun. InferScopeError: it cannot, and why."""
        with self.lock:
            if self.running:
                return
            self.child, self.owner = None, os.getpid()
            with contextlib.ExitStack() as held:
                self.current = Recording()
                held.callback(setattr, self, "current", None)
                child = self.begin(held, self.current)
                self.child, self.held = child, held.pop_all()

    def begin(self, held: contextlib.ExitStack, recording: Recording) -> subprocess.Popen[bytes]:
        ready, told = os.pipe()
        self.channel = channel = Channel()
        inherited = (told, channel.theirs) if channel.theirs else (told,)
        held.callback(channel.close)
        with os.fdopen(ready, "rb", 0) as begun, open(os.path.join(recording.folder, "log"), "wb") as log:
            words = ["attach", str(os.getpid()), "-d", "0", "-f", "json", "-o", os.path.join(recording.folder, "report.json"), "--trace", recording.trace,
                     "--ready-fd", str(told), "--inside-fd", str(channel.theirs)] + option_words(self.options)
            held.callback(_native.allow_tracer, 0)
            _native.allow_tracer(-1)  # until its pid is known
            child = started(words, given=inherited, inherited=inherited, stdout=subprocess.DEVNULL, stderr=log)
            held.callback(self.end, child)
            _native.allow_tracer(child.pid)
            self.wait_begun(child, begun, recording)
            return child

    def wait_begun(self, child: subprocess.Popen[bytes], begun: Any, recording: Recording) -> None:
        poll = select.poll()
        poll.register(begun, select.POLLIN)
        if not self.channel.serve_until(lambda: bool(poll.poll(0)), WAIT_SECONDS, begun.fileno()):
            raise InferScopeError("measuring did not begin within %d s" % WAIT_SECONDS, "E_TIMEOUT", "see `inferscope doctor %d`" % os.getpid())
        if not begun.read(1):
            raise error_of(self.text(recording), child.wait(WAIT_SECONDS))

    @staticmethod
    def text(recording: Recording) -> str:
        with open(os.path.join(recording.folder, "log"), "rb") as file:
            return file.read().decode("utf-8", "replace")

    def leaves(self, child: subprocess.Popen[bytes], seconds: float) -> bool:
        """Interrupts it, and helps it to leave."""
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        return self.channel.serve_until(lambda: child.poll() is not None, seconds)

    def finishes(self, child: subprocess.Popen[bytes]) -> bool:
        """The same, for as long as it works: what it has to analyse may be much."""
        limit, used = time.monotonic() + LONGEST_SECONDS, used_ticks(child.pid)
        done = self.leaves(child, 2 * WAIT_SECONDS)
        while not done:
            before, used = used, used_ticks(child.pid)
            if used == before or time.monotonic() > limit:
                return False
            done = self.channel.serve_until(lambda: child.poll() is not None, 2 * WAIT_SECONDS)
        return True

    def end(self, child: subprocess.Popen[bytes]) -> None:
        """CHILD is no more then, and its hooks are off."""
        self.leaves(child, END_SECONDS)
        end(child)
        self.channel.serve_until(lambda: not self.channel.open, 1)  # it may have asked for the end before it was killed
        if child.returncode < 0:
            _native.leave()

    def abandon(self) -> None:
        """The child is gone, and nothing of it stays."""
        self.child = None
        self.held.close()

    def stop(self) -> None:
        """Ends the measurement and reads its report."""
        with self.lock:
            if not self.child or not self.current or not self.running:
                return
            self.result = self.recording = None
            try:
                if not self.finishes(self.child):
                    raise InferScopeError("the program did not end in time", "E_TIMEOUT", "please report this")
                status = self.child.wait()
                failure = failure_of(option_words(self.options), self.text(self.current), status) if status else None
                if failure and failure.code != "E_GATE":
                    raise failure
                with open(os.path.join(self.current.folder, "report.json"), encoding="utf-8") as file:
                    self.result = json.load(file)
                self.recording = self.current
            finally:
                self.abandon()


def shared(engine: Engine) -> Engine:
    """Starts ENGINE, or joins the one that runs already with the same options: a process is measured once at a time. Returns the one that runs."""
    global _current
    with _current_lock:
        if _current and _current.running and _current.options == engine.options:
            return _current
        engine.start()
        _current = engine
        return engine


@atexit.register
def _leave_nothing() -> None:
    """A program that ends leaves no file behind, also while it measures itself."""
    recordings = list(_recordings)
    if _current and _current.running:
        _current.abandon()
    for recording in recordings:
        _remove(recording.folder, recording.owner)
