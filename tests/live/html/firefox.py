"""A headless Firefox, told what to do over Marionette, which it listens for on a port of this machine; as much of browser.py as the tests of both need."""
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from browser import BrowserError


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Firefox:
    def __init__(self, width=1280, height=900):
        program = shutil.which("firefox-esr") or shutil.which("firefox")
        if not program:
            raise FileNotFoundError("firefox-esr is not installed here")
        self.profile = tempfile.mkdtemp(prefix="inferscope-firefox-")
        port = free_port()
        with open(os.path.join(self.profile, "user.js"), "w") as file:
            for name, value in (("marionette.port", port), ("datareporting.policy.dataSubmissionEnabled", False), ("app.update.enabled", False), ("network.captive-portal-service.enabled", False),
                                ("browser.shell.checkDefaultBrowser", False), ("network.connectivity-service.enabled", False)):
                file.write("user_pref(%s, %s);\n" % (json.dumps(name), json.dumps(value)))
        self.process = subprocess.Popen([program, "--headless", "--marionette", "--no-remote", "--profile", self.profile, "--width", str(width), "--height", str(height), "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ, HOME=self.profile))
        self.number, self.buffer, self.messages = 0, b"", []
        self.socket = self._connect(port)
        self._read()  # it says who it is
        self.call("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})
        self.call("WebDriver:SetWindowRect", width=width, height=height)

    def _connect(self, port):
        deadline = time.monotonic() + 120
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=60)
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.close()
                    raise BrowserError("Firefox does not listen")
                time.sleep(0.2)

    def close(self):
        if getattr(self, "socket", None):
            self.socket.close()
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _more(self):
        try:
            part = self.socket.recv(1 << 16)
        except socket.timeout:
            raise BrowserError("Firefox does not answer")
        if not part:
            raise BrowserError("Firefox died")
        self.buffer += part

    def _read(self):
        """A message is its length, a colon, and so many bytes of JSON."""
        while b":" not in self.buffer:
            self._more()
        length, _, self.buffer = self.buffer.partition(b":")
        while len(self.buffer) < int(length):
            self._more()
        message, self.buffer = self.buffer[:int(length)], self.buffer[int(length):]
        return json.loads(message)

    def call(self, command, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        while True:
            kind, number, error, result = self._read()
            if (kind, number) != (1, self.number):
                continue
            if error:
                raise BrowserError("%s: %s" % (command, error.get("message")))
            return result.get("value") if isinstance(result, dict) and set(result) == {"value"} else result

    def open(self, path, fragment="", ready=None, timeout=60):
        self.call("WebDriver:Navigate", url="about:blank")
        self.call("WebDriver:Navigate", url="file://" + os.path.abspath(path) + fragment)
        if ready:
            self.wait(ready, timeout)

    def evaluate(self, expression):
        """Of what the page's script declares, `page` alone can be seen from here."""
        return self.call("WebDriver:ExecuteScript", script="const page = (window.wrappedJSObject || window).page; return (%s);" % expression, args=[])

    def wait(self, expression, timeout=60):
        deadline = time.monotonic() + timeout
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise BrowserError("never true: " + expression)
            time.sleep(0.05)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("WebDriver:TakeScreenshot", full=False)))
