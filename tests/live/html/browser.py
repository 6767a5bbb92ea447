"""A headless Chromium, told what to do over the DevTools protocol through a pair of pipes: no port, no library."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class BrowserError(Exception):
    pass


class Browser:
    """One page. `messages` gathers what the console and the network say: a report should leave it empty."""

    def __init__(self, width=1280, height=900):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if not program:
            raise FileNotFoundError("chromium is not installed here")
        self.profile = tempfile.mkdtemp(prefix="inferscope-chromium-")
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()

        def set_pipes():  # where --remote-debugging-pipe looks for them
            low, high = os.dup(to_child), os.dup(from_child)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--remote-debugging-pipe", "--user-data-dir=" + self.profile, "--window-size=%d,%d" % (width, height), "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=set_pipes, close_fds=False, start_new_session=True)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.number, self.session, self.messages, self.requests = b"", 0, None, [], []
        target = self._first_page()
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.resize(width, height)

    def _first_page(self):
        """It comes a while after the browser answers."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for target in self.call("Target.getTargets", timeout=120)["targetInfos"]:
                if target["type"] == "page":
                    return target
            time.sleep(0.1)
        raise BrowserError("the browser opens no page")

    def close(self):
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.into], [], [], max(0, deadline - time.monotonic()))[0]:
                raise BrowserError("the browser does not answer")
            part = os.read(self.into, 1 << 20)
            if not part:
                raise BrowserError("the browser died")
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description") or details.get("text", "exception"))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.messages.append("console: " + " ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.messages.append("log: " + params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, timeout=60, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._read(deadline)
            if answer.get("id") != self.number:
                self._note(answer)
            elif "error" in answer:
                raise BrowserError("%s: %s" % (method, answer["error"].get("message")))
            else:
                return answer["result"]

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def media(self, scheme="light", medium="screen"):
        self.call("Emulation.setEmulatedMedia", media=medium, features=[{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def scripts(self, on):
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def open(self, path, fragment="", ready=None, timeout=60):
        self.messages.clear()
        self.requests.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url="file://" + os.path.abspath(path) + fragment)
        if ready:
            self.wait(ready, timeout)

    def wait(self, expression, timeout=60):
        deadline = time.monotonic() + timeout
        while True:
            try:
                if self.evaluate(expression):
                    return
            except BrowserError:
                pass  # the page is being replaced
            if time.monotonic() > deadline:
                raise BrowserError("never true: " + expression)
            time.sleep(0.05)

    def evaluate(self, expression, timeout=60):
        answer = self.call("Runtime.evaluate", timeout=timeout, expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError("%s: %s" % (expression[:80], details.get("exception", {}).get("description") or details.get("text")))
        return answer["result"].get("value")

    def key(self, key, modifiers=0):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers, **text)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=False)["data"]))
