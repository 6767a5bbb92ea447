"""The one engine: the packaged program, as a child that attaches to this very process."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from . import _native
from ._program import InferScopeError, environment, error_of, option_words, program

WAIT_SECONDS = 30


class Engine:
    """Measures this process between start() and stop(). `result` is the report then, `events` its events."""

    def __init__(self, **options):
        self.options, self.child, self.folder = options, None, None
        self.result, self.events = None, []
        self.lock = threading.Lock()

    @property
    def running(self):
        return self.child is not None

    def start(self):
        """Returns once the measurement has begun. InferScopeError: it cannot, and why."""
        with self.lock:
            if self.child:
                return
            self.folder = tempfile.mkdtemp(prefix="inferscope-")
            _native.allow_tracer(-1)  # until its pid is known
            words = [program(), "attach", str(os.getpid()), "-d", "0", "-f", "json,events", "-o", os.path.join(self.folder, "report"), "--trace", os.path.join(self.folder, "trace.iscope"),
                     "--error-format", "json", "--log-level", "debug"] + option_words(self.options)
            self.log = open(os.path.join(self.folder, "log"), "w+b")
            self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log, env=environment())
            _native.allow_tracer(self.child.pid)
            try:
                self.wait_begun()
            except BaseException:
                self.child.kill()
                self.child.wait()
                self.forget()
                raise

    def wait_begun(self):
        hooks = self.options.get("hook") != "none"
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            if self.child.poll() is not None:
                raise error_of(self.text(), self.child.returncode)
            if _native.attached() or (not hooks and self.sampling()) or "samples only" in self.text():
                return
            time.sleep(0.002)
        raise InferScopeError("measuring did not begin within %d s" % WAIT_SECONDS, "E_TIMEOUT", "see `inferscope doctor %d`" % os.getpid())

    def sampling(self):
        """Without hooks there is nothing to see in this process: give the first look its time."""
        return "entering process" in self.text() and time.sleep(0.2) is None

    def text(self):
        with open(self.log.name, "rb") as file:
            return file.read().decode("utf-8", "replace")

    def forget(self):
        self.child = None
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self):
        """Ends the measurement and reads what it came to."""
        with self.lock:
            if not self.child:
                return
            try:
                self.child.send_signal(signal.SIGINT)
                status = self.child.wait(WAIT_SECONDS)
                if status:
                    raise error_of(self.text(), status)
                with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as file:
                    self.result = json.load(file)
                with open(os.path.join(self.folder, "report.events.json"), encoding="utf-8") as file:
                    self.events = json.load(file)["events"]
                with open(os.path.join(self.folder, "trace.iscope"), "rb") as file:
                    self.trace = file.read()
            finally:
                _native.allow_tracer(0)
                self.forget()
