# SPDX-License-Identifier: Apache-2.0
"""Docker, as the alternative to compare with, through its Engine API.

The daemon is our own: its data, its sockets and its mounts live in a temporary folder and in a mount
namespace of its own, and its containers below one cgroup that is ours, so that nothing of it can be
left behind and nothing of a Docker that runs here already is touched. It does what our sandboxes do (own
network namespace without a network, limits on memory, cpu and processes) with the smallest image there
can be, and over its unix socket. One that is started in a network namespace may have its bridge there, with
all the rules that it makes for it.
"""

import http.client
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time

START_SECONDS = 60
STOP_SECONDS = 30


class Unavailable(Exception):
    """Docker cannot be measured here; the text says why."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("docker", timeout=300)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Docker:
    """with Docker(folder, files) as docker: docker.create(5); docker.exec(20)"""

    def __init__(self, folder, files, enter=()):
        self.folder = folder
        self.files = files  # name in the image -> path here
        self.enter = list(enter)  # a command that starts another one in a network namespace
        self.socket = os.path.join(folder, "docker.sock")
        self.cgroup = "cella-bench-docker%s-%d" % ("-bridge" if enter else "", os.getpid())
        self.process = None
        self.kept = None
        self.resident = None
        self.samples = {}

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("dockerd needs root")
        if shutil.which("dockerd") is None:
            raise Unavailable("dockerd is not installed (package docker.io)")
        try:
            self._start()
            self._import_image()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        os.makedirs(self.folder)
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*self.enter, "unshare", "--mount", "--propagation", "private", "dockerd",
                 "--host", "unix://" + self.socket,
                 "--data-root", os.path.join(self.folder, "data"),
                 "--exec-root", os.path.join(self.folder, "exec"),
                 "--pidfile", os.path.join(self.folder, "pid"),
                 "--config-file", self._config(),
                 "--cgroup-parent", "/" + self.cgroup,
                 *([] if self.enter else ["--bridge", "none", "--iptables=false", "--ip-forward=false",
                                          "--ip-masq=false"]),
                 "--userland-proxy=false"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._call("GET", "/_ping")
                return
            except (OSError, http.client.HTTPException):
                self._drop()
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Unavailable("dockerd does not start: " + self._last_line())
            time.sleep(0.05)

    def _config(self):
        """An empty configuration: the machine's own must not be read."""
        path = os.path.join(self.folder, "daemon.json")
        with open(path, "w", encoding="ascii") as config:
            config.write("{}")
        return path

    def _last_line(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            lines = log.read().strip().splitlines()
        return lines[-1] if lines else "no message"

    def _import_image(self):
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as image:
            for name, path in self.files.items():
                image.add(os.path.realpath(path), arcname=name)
        self._call("POST", "/images/create?fromSrc=-&repo=cella-bench&tag=latest", tar.getvalue(),
                   "application/x-tar")

    def _drop(self):
        if self.kept is not None:
            self.kept.close()
            self.kept = None

    def _call(self, method, path, body=None, kind="application/json"):
        """One request on the kept connection; the answer's JSON, or None."""
        if self.kept is None:
            self.kept = _Connection(self.socket)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.kept.request(method, path, body, {"Content-Type": kind} if body is not None else {})
        answer = self.kept.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise Unavailable("%s %s: %d %s" % (method, path, answer.status, text.decode()[:300]))
        return json.loads(text) if text.startswith(b"{") else None

    def _make(self):
        made = self._call("POST", "/containers/create", {
            "Image": "cella-bench", "Cmd": ["/busybox", "sleep", "1000000"],
            "HostConfig": {"NetworkMode": "bridge" if self.enter else "none", "Memory": 512 << 20,
                           "NanoCpus": 10 ** 9, "PidsLimit": 512}})
        self._call("POST", "/containers/%s/start" % made["Id"])
        return made["Id"]

    def place(self):
        """The network namespace of a container that stays, as a path."""
        if self.resident is None:
            self.resident = self._make()
        return "/proc/%d/ns/net" % self._call("GET", "/containers/%s/json" % self.resident)["State"]["Pid"]

    def _exec(self, container, argv):
        """Runs argv to the end of its output. The stream takes its connection with it."""
        made = self._call("POST", "/containers/%s/exec" % container,
                          {"Cmd": argv, "AttachStdout": True})
        stream = _Connection(self.socket)
        stream.request("POST", "/exec/%s/start" % made["Id"], b'{"Detach":false,"Tty":false}',
                       {"Content-Type": "application/json"})
        output = stream.getresponse().read()
        stream.close()
        return output

    def _remove(self, container):
        self._call("DELETE", "/containers/%s?force=1&v=1" % container)

    def create(self, count):
        for _ in range(count):
            start = time.monotonic_ns()
            container = self._make()
            output = self._exec(container, ["/busybox", "echo", "hi"])
            self.samples.setdefault("create", []).append(time.monotonic_ns() - start)
            self._remove(container)
            if not output.endswith(b"hi\n"):
                raise Unavailable("docker's exec gave %r" % output)

    def burst(self, count):
        """From the first request to the last of so many first outputs, all asked for at once; each
        asker has a connection of his own."""
        made, failed = [], []

        def one():
            try:
                asker = Docker(self.folder, self.files, self.enter)
                container = asker._make()
                made.append(container)
                if not asker._exec(container, ["/busybox", "echo", "hi"]).endswith(b"hi\n"):
                    failed.append("no output")
                asker._drop()
            except (Unavailable, OSError, http.client.HTTPException) as error:
                failed.append(str(error))

        askers = [threading.Thread(target=one) for _ in range(count)]
        start = time.monotonic_ns()
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        taken = time.monotonic_ns() - start
        for container in made:
            self._remove(container)
        if failed:
            raise Unavailable("docker, %d at once: %s" % (count, failed[0]))
        return taken

    def exec(self, count):
        if self.resident is None:
            self.resident = self._make()
        for _ in range(count):
            start = time.monotonic_ns()
            self._exec(self.resident, ["/true"])
            self.samples.setdefault("exec", []).append(time.monotonic_ns() - start)

    def python(self, code, count):
        """How long each of so many `docker exec python3 -c` takes, with the machine's own python3."""
        made = self._call("POST", "/containers/create", {
            "Image": "cella-bench", "Cmd": ["/busybox", "sleep", "1000000"],
            "HostConfig": {"NetworkMode": "none", "Binds": ["/usr:/usr:ro", "/usr/lib:/lib:ro", "/usr/lib64:/lib64:ro"]}})
        taken = []
        try:
            self._call("POST", "/containers/%s/start" % made["Id"])
            for _ in range(count):
                start = time.monotonic_ns()
                output = self._exec(made["Id"], ["/usr/bin/python3", "-c", "print(%s)" % code])
                taken.append(time.monotonic_ns() - start)
                if not output.endswith(b"2\n"):
                    raise Unavailable("docker's python3 gave %r" % output)
        finally:
            self._remove(made["Id"])
        return taken

    def clone(self, folder):
        """How long it takes to commit a container that holds a copy of the folder, and to run the
        image to its first output."""
        made = self._call("POST", "/containers/create", {
            "Image": "cella-bench", "Cmd": ["/busybox", "sleep", "1000000"],
            "HostConfig": {"NetworkMode": "none", "Binds": ["%s:/source:ro" % folder]}})
        source, clone = made["Id"], None
        try:
            self._call("POST", "/containers/%s/start" % source)
            self._exec(source, ["/busybox", "cp", "-a", "/source", "/data"])
            os.sync()
            start = time.monotonic_ns()
            image = self._call("POST", "/commit?container=%s&repo=cella-bench-clone" % source)["Id"]
            clone = self._call("POST", "/containers/create", {
                "Image": image, "Cmd": ["/busybox", "sleep", "1000000"],
                "HostConfig": {"NetworkMode": "none"}})["Id"]
            self._call("POST", "/containers/%s/start" % clone)
            output = self._exec(clone, ["/busybox", "echo", "hi"])
            taken = time.monotonic_ns() - start
            if not output.endswith(b"hi\n"):
                raise Unavailable("docker's exec gave %r" % output)
            return taken
        finally:
            for container in filter(None, (clone, source)):
                self._remove(container)

    def __exit__(self, *_):
        try:
            if self.resident is not None:
                self._remove(self.resident)
        except (Unavailable, OSError, http.client.HTTPException):
            pass
        self._drop()
        if self.process is not None:
            self._stop()
        self._remove_cgroups()

    def _stop(self):
        """By its pid; what it started (containerd, shims) is in its session, and ends with it."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _remove_cgroups(self):
        root = "/sys/fs/cgroup"
        parents = [os.path.join(root, name, self.cgroup) for name in os.listdir(root)]
        for parent in parents + [os.path.join(root, self.cgroup)]:
            if os.path.isdir(parent):
                for folder, _, _ in os.walk(parent, topdown=False):
                    os.rmdir(folder)
