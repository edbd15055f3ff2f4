# SPDX-License-Identifier: Apache-2.0
"""The server under test: started on a temporary data folder, stopped, and nothing left of it."""

import http.client
import os
import socket
import subprocess
import time

from .program import Failed

START_SECONDS = 60
STOP_SECONDS = 120
GONE_SECONDS = 20


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_answer(address, path, fields, alive=lambda: True):
    """Returns once a GET of the path is answered with 200. Whoever is not alive any more is not waited for."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        connection = http.client.HTTPConnection(address, timeout=5)
        try:
            connection.request("GET", path, headers=fields)
            if connection.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        if time.monotonic() > deadline or not alive():
            raise Failed("%s%s does not answer" % (address, path))
        time.sleep(0.02)


class Server:
    """with Server("build/cella", folder) as server: server.address, server.key_file

    With a core, it and its sandboxes run there and nowhere else."""

    def __init__(self, program, data, *options, core=None):
        self.program = program
        self.pinned = () if core is None else ("taskset", "-c", str(core))
        self.data = data
        self.options = options
        self.address = "127.0.0.1:%d" % free_port()
        self.key_file = os.path.join(data, "api-key")
        self.process = None

    def __enter__(self):
        os.makedirs(self.data, mode=0o755)
        self.log = self.data + ".log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*self.pinned, self.program, "server", "--listen", self.address, "--data", self.data,
                 *self.options, *self._overcommit()],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            self._await_health()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _overcommit(self):
        """Thousands of ordinary sandboxes are made here, and all of them are idle."""
        return () if "--overcommit" in self.options else ("--overcommit", "100000")

    def _await_health(self):
        try:
            await_answer(self.address, "/health", {}, lambda: self.process.poll() is None)
        except Failed as error:
            raise Failed("the server does not start: " + self.last_lines()) from error

    def last_lines(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return " | ".join(log.read().strip().splitlines()[-5:]) or "no message"

    def leaks(self):
        """What `cella doctor --leaks` finds; empty when there is none. What is just being deleted is on no list
        any more, and goes."""
        deadline = time.monotonic() + GONE_SECONDS
        while (found := self._leaks()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def _leaks(self):
        done = subprocess.run([self.program, "doctor", "--leaks", "--data", self.data],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=120)
        if done.returncode == 0:
            return ""
        return ", ".join(done.stdout.strip().splitlines()) or "exit status %d" % done.returncode

    def agents(self):
        """The pids of this server's sandboxes' pid 1: first in a pid namespace, and in a cgroup that
        carries the data folder's instance id."""
        with open(os.path.join(self.data, "instance"), encoding="ascii") as file:
            instance = file.read().strip()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/status" % pid, encoding="utf-8") as file:
                    ids = next((line.split()[1:] for line in file if line.startswith("NSpid:")), [])
                with open("/proc/%s/cgroup" % pid, encoding="utf-8") as file:
                    cgroups = file.read()
            except OSError:  # it ended meanwhile
                continue
            if len(ids) > 1 and ids[-1] == "1" and instance in cgroups:
                found.append(int(pid))
        return found

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        unmount_below(self.data)


def unmount_below(folder):
    """The data folder's volume may stay mounted for the next start; here there is none."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        points = [line.split()[4] for line in file]
    for point in reversed(points):
        if point.startswith(folder + "/"):
            subprocess.run(["umount", point], check=False)
