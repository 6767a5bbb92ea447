"""The one engine: the packaged program, as a child that measures this very process, with its help."""
from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
from typing import Any, List, Optional

from . import _native
from ._inside import Channel
from ._program import END_SECONDS, InferScopeError, end, error_of, option_words, started
from ._types import Document, Event

WAIT_SECONDS = 30
PASSED = (0, 1)  # 1: a gate of the settings, which is no failure of the measurement

_current: Optional[Engine] = None
_current_lock = threading.Lock()


class Engine:
    """Measures this process between start() and stop(). `result` is the report then, `events` its events, `trace` the bytes of the trace."""

    def __init__(self, **options: Any) -> None:
        self.options, self.folder = options, ""
        self.child: Optional[subprocess.Popen[bytes]] = None
        self.owner: Optional[int] = None
        self.result: Optional[Document] = None
        self.events: List[Event] = []
        self.trace = b""
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
                self.folder = tempfile.mkdtemp(prefix="inferscope-")
                held.callback(shutil.rmtree, self.folder, ignore_errors=True)
                child = self.begin(held)
                self.child, self.held = child, held.pop_all()

    def begin(self, held: contextlib.ExitStack) -> subprocess.Popen[bytes]:
        ready, told = os.pipe()
        self.channel = channel = Channel()
        inherited = (told, channel.theirs) if channel.theirs else (told,)
        held.callback(channel.close)
        with os.fdopen(ready, "rb", 0) as begun, open(os.path.join(self.folder, "log"), "wb") as log:
            words = ["attach", str(os.getpid()), "-d", "0", "-f", "json,events", "-o", os.path.join(self.folder, "report"), "--trace", os.path.join(self.folder, "trace.iscope"),
                     "--ready-fd", str(told), "--inside-fd", str(channel.theirs)] + option_words(self.options)
            held.callback(_native.allow_tracer, 0)
            _native.allow_tracer(-1)  # until its pid is known
            child = started(words, given=inherited, inherited=inherited, stdout=subprocess.DEVNULL, stderr=log)
            held.callback(self.end, child)
            _native.allow_tracer(child.pid)
            self.wait_begun(child, begun)
            return child

    def wait_begun(self, child: subprocess.Popen[bytes], begun: Any) -> None:
        poll = select.poll()
        poll.register(begun, select.POLLIN)
        if not self.channel.serve_until(lambda: bool(poll.poll(0)), WAIT_SECONDS, begun.fileno()):
            raise InferScopeError("measuring did not begin within %d s" % WAIT_SECONDS, "E_TIMEOUT", "see `inferscope doctor %d`" % os.getpid())
        if not begun.read(1):
            raise error_of(self.text(), child.wait(WAIT_SECONDS))

    def text(self) -> str:
        with open(os.path.join(self.folder, "log"), "rb") as file:
            return file.read().decode("utf-8", "replace")

    def ended(self, child: subprocess.Popen[bytes], seconds: float) -> bool:
        """Interrupts it, and helps it to leave."""
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        return self.channel.serve_until(lambda: child.poll() is not None, seconds)

    def end(self, child: subprocess.Popen[bytes]) -> None:
        """CHILD is no more then, and its hooks are off."""
        self.ended(child, END_SECONDS)
        end(child)
        self.channel.serve_until(lambda: not self.channel.open, 1)  # it may have asked for the end before it was killed
        if child.returncode < 0:
            _native.leave()

    def abandon(self) -> None:
        """The child is gone, and nothing of it stays."""
        self.child = None
        self.held.close()

    def stop(self) -> None:
        """Ends the measurement and reads what it came to."""
        with self.lock:
            if not self.child or not self.running:
                return
            try:
                if not self.ended(self.child, 2 * WAIT_SECONDS):
                    raise InferScopeError("the program did not end within %d s" % (2 * WAIT_SECONDS), "E_TIMEOUT", "please report this")
                status = self.child.wait()
                if status not in PASSED:
                    raise error_of(self.text(), status)
                with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as file:
                    self.result = json.load(file)
                with open(os.path.join(self.folder, "report.events.json"), encoding="utf-8") as file:
                    self.events = json.load(file)["events"]
                with open(os.path.join(self.folder, "trace.iscope"), "rb") as file:
                    self.trace = file.read()
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
def _abandon_running() -> None:
    """A program that ends while it measures itself leaves no file behind."""
    if _current and _current.running:
        _current.abandon()
