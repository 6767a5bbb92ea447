"""The one engine: the packaged program, as a child that attaches to this very process."""
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from . import _native
from ._program import InferScopeError, environment, error_of, option_words, program

WAIT_SECONDS = 30
PASSED = (0, 1)  # 1: a gate of the settings, which is no failure of the measurement

_current = None
_current_lock = threading.Lock()


class Engine:
    """Measures this process between start() and stop(). `result` is the report then, `events` its events, `trace` the bytes of the trace."""

    def __init__(self, **options):
        self.options, self.child, self.folder, self.owner = options, None, None, None
        self.result, self.events, self.trace = None, [], b""
        self.lock = threading.Lock()

    @property
    def running(self):
        return self.child is not None and self.owner == os.getpid()  # a forked child is not measured

    def start(self):
        """Returns once the measurement has begun. InferScopeError: it cannot, and why."""
        with self.lock:
            if self.running:
                return
            self.child, self.owner = None, os.getpid()
            self.folder = tempfile.mkdtemp(prefix="inferscope-")
            ready, told = os.pipe()
            words = [program(), "attach", str(os.getpid()), "-d", "0", "-f", "json,events", "-o", os.path.join(self.folder, "report"), "--trace", os.path.join(self.folder, "trace.iscope"),
                     "--error-format", "json", "--ready-fd", str(told)] + option_words(self.options)
            self.log = open(os.path.join(self.folder, "log"), "w+b")
            try:
                _native.allow_tracer(-1)  # until its pid is known
                self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log, env=environment(), pass_fds=(told,))
                _native.allow_tracer(self.child.pid)
                os.close(told)
                told = None
                self.wait_begun(ready)
            except BaseException:
                self.end()
                raise
            finally:
                os.close(ready)
                if told is not None:
                    os.close(told)

    def wait_begun(self, ready):
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            if select.select([ready], [], [], 1)[0]:
                if os.read(ready, 1):
                    return
                raise error_of(self.text(), self.child.wait(WAIT_SECONDS))
        raise InferScopeError("measuring did not begin within %d s" % WAIT_SECONDS, "E_TIMEOUT", "see `inferscope doctor %d`" % os.getpid())

    def text(self):
        with open(self.log.name, "rb") as file:
            return file.read().decode("utf-8", "replace")

    def end(self):
        """The child is gone, and nothing of it stays."""
        if self.child:
            self.child.kill()
            self.child.wait()
        self.child = None
        self.log.close()
        _native.allow_tracer(0)
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self):
        """Ends the measurement and reads what it came to."""
        with self.lock:
            if not self.running:
                return
            try:
                self.child.send_signal(signal.SIGINT)
                status = self.child.wait(2 * WAIT_SECONDS)
                if status not in PASSED:
                    raise error_of(self.text(), status)
                with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as file:
                    self.result = json.load(file)
                with open(os.path.join(self.folder, "report.events.json"), encoding="utf-8") as file:
                    self.events = json.load(file)["events"]
                with open(os.path.join(self.folder, "trace.iscope"), "rb") as file:
                    self.trace = file.read()
            finally:
                self.end()


def shared(engine):
    """Starts ENGINE, or joins the one that runs already with the same options: a process is measured once at a time. Returns the one that runs."""
    global _current
    with _current_lock:
        if _current and _current.running and _current.options == engine.options:
            return _current
        engine.start()
        _current = engine
        return engine
