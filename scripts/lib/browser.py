"""A browser without a window, driven over the pipe that Chromium offers for that: messages of the
DevTools protocol (https://chromedevtools.github.io/devtools-protocol), each ended by a zero byte."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from lib.needs import Skip, Failure

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# Seconds in which it answers: for a machine with other work.
PATIENCE = 60
# Its file descriptors for input and output (`--remote-debugging-pipe`).
IN, OUT = 3, 4


def chromium():
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not found:
        raise Skip("no chromium: apt-get install chromium")
    return found


class Browser:
    """Chromium with one page, while the block lasts. `console` has the page's messages,
    `asked` the addresses that it requested."""

    def __init__(self):
        self._program = chromium()
        self._last, self._rest, self._session = 0, b"", None
        self.console, self.asked = [], []

    def __enter__(self):
        # The name makes two runs at a time possible; the folder is removed with the browser.
        self._folder = tempfile.TemporaryDirectory(prefix="pollux-browser.", ignore_cleanup_errors=True)
        (here_in, there_out), (there_in, here_out) = os.pipe(), os.pipe()
        # Above the two that they become in the child.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (there_in, there_out)]
        options = ["--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
                   "--hide-scrollbars", f"--user-data-dir={self._folder.name}"]
        # It has no sandbox for root.
        options += ["--no-sandbox"] if os.geteuid() == 0 else []
        self._child = subprocess.Popen(
            [self._program, *options, "about:blank"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, pass_fds=(IN, OUT),
            preexec_fn=lambda: (os.dup2(ends[0], IN), os.dup2(ends[1], OUT)))
        for end in (there_in, there_out, *ends):
            os.close(end)
        self._from, self._to = here_in, here_out
        try:
            pages = self.call("Target.getTargets")["targetInfos"]
            page = next(page["targetId"] for page in pages if page["type"] == "page")
            attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._child.terminate()
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        os.close(self._from)
        os.close(self._to)
        self._folder.cleanup()

    def call(self, method, **parameters):
        """One command and its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + PATIENCE
        while True:
            answer = self._hear(limit, method)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _hear(self, limit, method):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0, limit - time.monotonic()))
            more = os.read(self._from, 1 << 16) if ready else b""
            if not more:
                raise Failure(f"the browser does not answer {method}")
            self._rest += more
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        told = event.get("params", {})
        if event.get("method") == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(word.get("value", word.get("description")))
                                         for word in told["args"]))
        elif event.get("method") == "Runtime.exceptionThrown":
            self.console.append(str(told["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded":
            self.console.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        elif event.get("method") == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])

    def see(self, expression):
        """The value of an expression in the page; of a promise, its result."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Failure(f"`{expression}`: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, what, expression):
        """Waits until an expression in the page holds; its value."""
        limit = time.monotonic() + PATIENCE
        while not (value := self.see(expression)):
            if time.monotonic() > limit:
                raise Failure(what)
            time.sleep(0.05)
        return value

    def size(self, width, height, phone=False):
        """How large the window is, in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=phone)

    def scheme(self, name):
        """`light` or `dark`, as the user prefers it."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self):
        """The whole page, as WebP."""
        shot = self.call("Page.captureScreenshot", format="webp", quality=80, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])
