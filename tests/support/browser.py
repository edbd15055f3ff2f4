# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium without a screen, spoken to over a pipe (Chrome DevTools Protocol): no driver, no package."""

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

from cella_server import PATIENCE, wait_until

PROGRAMS = ("chromium-headless-shell", "chromium")


def program():
    """A browser of this machine, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Page:
    """One page: .open(url), .run(script) gives its value; .requests, .errors are what it asked for and complained of."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cella-browser-", dir="/tmp")
        self.requests, self.errors, self.number, self.buffer, self.session = [], [], 0, b"", None
        to_browser, ours_out = os.pipe()
        ours_in, from_browser = os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (to_browser, from_browser)]

        def place():
            os.dup2(theirs[0], 3)
            os.dup2(theirs[1], 4)

        self.process = subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             f"--user-data-dir={self.folder}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        for fd in (to_browser, from_browser, *theirs):
            os.close(fd)
        self.out, self.input = ours_out, ours_in
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            got = self._next()
            if got.get("id") == self.number:
                assert "error" not in got, (method, got["error"])
                return got["result"]
            self._hear(got.get("method"), got.get("params", {}))

    def _next(self):
        end = time.monotonic() + 60 * PATIENCE
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.input], [], [], left)[0], "the browser says nothing"
            piece = os.read(self.input, 1 << 16)
            assert piece, "the browser has gone"
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def _hear(self, event, params):
        if event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description") or str(params))
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def until(self, script, what):
        """Waits until the script's value is a true one."""
        return wait_until(lambda: self.run(script), 60, what)

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.out)
        os.close(self.input)
        shutil.rmtree(self.folder, ignore_errors=True)
