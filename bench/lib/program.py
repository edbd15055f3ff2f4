# SPDX-License-Identifier: Apache-2.0
"""The measuring programs (floor/floor.c, client/client.c), which are driven line by line.

They are resident and take turns, so that the machine's noise hits all of them alike.
"""

import select
import subprocess
import time

STOP_SECONDS = 30


class Failed(Exception):
    """Something that should have run did not; the text says why."""


class Program:
    """with Program("floor", argv) as p: p.run("create", 20); p.samples["create"]"""

    def __init__(self, name, argv):
        self.name = name
        self.argv = argv
        self.samples = {}
        self.process = None
        self._rest = b""

    def __enter__(self):
        # In a session of its own: ctrl-C reaches us alone, and we end it in order.
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        start_new_session=True)
        try:
            if self._line(60) != "ready":
                raise Failed("%s does not start" % self.name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _line(self, seconds):
        deadline = time.monotonic() + seconds
        pipe = self.process.stdout.fileno()
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise Failed("%s does not answer" % self.name)
            data = self.process.stdout.read1(65536)
            if not data:
                raise Failed("%s ended" % self.name)
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        text = line.decode(errors="replace")
        if text.startswith("error "):
            raise Failed("%s: %s" % (self.name, text[6:]))
        return text

    def run(self, verb, count, seconds=600):
        """Gives the order and takes the samples of the answer in, by name; returns them too."""
        self.process.stdin.write(b"%s %d\n" % (verb.encode(), count))
        self.process.stdin.flush()
        new = {}
        while (line := self._line(seconds)) != "done":
            name, value = line.rsplit(" ", 1)
            new.setdefault(name, []).append(int(value))
        for name, values in new.items():
            self.samples.setdefault(name, []).extend(values)
        return new


    def __exit__(self, *_):
        """The end of its input makes it clean up."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
