# SPDX-License-Identifier: Apache-2.0
"""A server of one's own for tests: a temporary data folder, a free port, and proof at the end that
nothing of it is left on the machine. Only the standard library, so that any Python 3.9 runs it."""

import atexit
import collections
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

import cella_idle

# Deadlines are for machines of ordinary speed; an emulated one asks for more patience.
PATIENCE = float(os.environ.get("CELLA_TEST_PATIENCE", "1"))
START_DEADLINE = 30
STOP_DEADLINE = 60 * PATIENCE

Pids = collections.namedtuple("Pids", "supervisor warden cellad")


class ImageStash:
    """The folder of images of a closed server, for the next one of this process. Making the image `host` means a
    thousand files, which takes a while on an ext4 where as many were just removed."""

    def __init__(self):
        self.path = None

    def keep(self, data):
        if self.path is None and (data / "images" / "host").is_dir():
            self.path = pathlib.Path(tempfile.mkdtemp(prefix="cella-test-images-", dir="/tmp"))
            atexit.register(shutil.rmtree, self.path, ignore_errors=True)
        if self.path is not None and not (self.path / "images").exists():
            with contextlib.suppress(OSError):
                (data / "images").rename(self.path / "images")
                for other in (self.path / "images").glob("[!h]*"):  # a test's own
                    shutil.rmtree(other, ignore_errors=True)

    def give(self, data):
        if self.path is not None:
            with contextlib.suppress(OSError):
                (self.path / "images").rename(data / "images")


IMAGES = ImageStash()


def bin_dir():
    """Where the programs are: CELLA_BIN_DIR, or build/ of this checkout."""
    chosen = os.environ.get("CELLA_BIN_DIR")
    return pathlib.Path(chosen or pathlib.Path(__file__).parents[2] / "build").resolve()


def wait_until(check, deadline, what):
    """Polls check() until it gives something true; fails after `deadline` seconds."""
    end = time.monotonic() + deadline * PATIENCE
    pause = 0.002
    while True:
        result = check()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what() if callable(what) else what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def process_alive(pid):
    """Whether the process is there and not a zombie."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def current_test():
    """The test that pytest runs now, whatever phase of it; None outside of pytest."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0] or None


class Answer:
    """One HTTP answer: .status, .headers (case-insensitive), .body (bytes), .json(), .text."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.body)

    def error(self):
        """The error code of the envelope, or None."""
        try:
            return self.json()["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return None

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


Exec = collections.namedtuple("Exec", "exit_code stdout stderr pid status")


class Sandbox:
    """A sandbox of a server. Paths of its own API are relative: .request("GET", "/process")."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        self.base = f"/v0/sandbox/{name}"

    def request(self, method, path, body=None, headers=None, timeout=30):
        return self.server.request(method, self.base + path, body, headers, timeout)

    def get(self):
        return self.server.request("GET", self.base).json()

    def status(self):
        answer = self.server.request("GET", self.base)
        return None if answer.status == 404 else answer.json()["status"]

    def wait_status(self, *wanted, deadline=30):
        def check():
            status = self.status()
            if status == "failed" and "failed" not in wanted:
                raise AssertionError(f"{self.name} failed: {self.get()['events']}")
            return (status or "gone") in wanted

        wait_until(check, deadline, lambda: f"{self.name} {wanted}, it is {self.status()}")
        return self

    def exec(self, command, timeout=30, **fields):
        """Runs a shell command to its end and returns an Exec with its whole output."""
        body = {"command": command, "waitForCompletion": True, "timeout": timeout, **fields}
        answer = self.request("POST", "/process", body, timeout=timeout + 15)
        assert answer.status == 200, answer
        process = answer.json()
        if "stdout" not in process:
            process.update(self.logs(process["pid"]))
        return Exec(process["exitCode"], process["stdout"], process["stderr"], process["pid"],
                    process["status"])

    def run(self, command, **fields):
        """As exec(), but the command has to succeed; gives its stdout without the last newline."""
        done = self.exec(command, **fields)
        assert done.exit_code == 0, (command, done)
        return done.stdout.rstrip("\n")

    def python(self, source, **fields):
        """Runs Python source inside, from a file of its own; gives the Exec."""
        path = f"/tmp/t{time.monotonic_ns()}.py"
        self.write(path, source)
        return self.exec(f"python3 {path}", **fields)

    def spawn(self, command, **fields):
        """Starts a command and gives its pid inside the sandbox."""
        answer = self.request("POST", "/process",
                              {"command": command, "waitForCompletion": False, **fields})
        assert answer.status == 200, answer
        return answer.json()["pid"]

    def logs(self, pid):
        answer = self.request("GET", f"/process/{pid}/logs")
        assert answer.status == 200, answer
        return answer.json()

    def write(self, path, content):
        """Raw bytes (or text) into a file."""
        data = content.encode() if isinstance(content, str) else content
        answer = self.request("PUT", "/filesystem" + urllib.parse.quote(path), data,
                              {"Content-Type": "application/octet-stream"})
        assert answer.status == 200, answer

    def read(self, path):
        answer = self.request("GET", "/filesystem" + urllib.parse.quote(path), None,
                              {"Accept": "application/octet-stream"})
        assert answer.status == 200, answer
        return answer.body

    def init_start_time(self):
        """When pid 1 started, in clock ticks: the same number is the same process."""
        return self.run("cut -d' ' -f22 /proc/1/stat")

    def stop(self):
        answer = self.request("PUT", "/stop")
        assert answer.status == 202, answer
        return self.wait_status("stopped")

    def start(self):
        answer = self.request("PUT", "/start")
        assert answer.status == 202, answer
        return self.wait_status("running")

    def delete(self):
        answer = self.server.request("DELETE", self.base)
        assert answer.status == 202, answer
        self.wait_status("gone")


class Server:
    """A running `cella server`: .url, .key, .data, .bin, and what to do with it."""

    contract = None  # what all answers are held against (api_contract.Contract), where tests set one
    shares_images = True  # not where sandboxes are folders of an ordinary user
    running = []  # all servers that were started and not closed yet

    def __init__(self, *args, env=None, programs=None, prefix=(), data=None):
        self.bin = pathlib.Path(programs or bin_dir())
        self.prefix = list(prefix)  # a command that its programs are started by, and becomes them
        # Tests make many ordinary sandboxes that do next to nothing, on machines with little memory
        # and less disk; those about admission say how much there is to be promised.
        self.args = [*args] if "--overcommit" in args else ["--overcommit", "1000", *args]
        self.env = {**os.environ, **(env or {})}
        self.data = pathlib.Path(data or tempfile.mkdtemp(prefix="cella-test-", dir="/tmp"))
        if data is None and self.shares_images:
            IMAGES.give(self.data)
        self.log_path = self.data.with_suffix(".log")
        self.process = None
        self.url = self.key = self.instance = None
        self.test = current_test()
        self.running.append(self)
        try:
            self.start()
        except BaseException:
            self.destroy()
            raise

    # --- life ---

    def start(self):
        """Starts it (again, on the same folder) and waits until it answers."""
        listen = [] if "--listen" in self.args else ["--listen", "127.0.0.1:0"]
        command = [*self.prefix, self.bin / "cella", "server", "--data", self.data, *listen,
                   "--volume-size", "20G", *self.args]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.env, start_new_session=True)
        self.wait_healthy()
        self.key = (self.data / "api-key").read_text().strip()
        self.instance = (self.data / "instance").read_text().strip()
        return self

    def wait_healthy(self, deadline=START_DEADLINE):
        def check():
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended ({self.process.returncode}):\n{self.log()}")
            lines = self._lines()
            if len(lines) < 4 or int(lines[0]) != self.process.pid:
                return False
            self.url = lines[3]
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.request("GET", "/health", timeout=5).status == 200
            return False

        wait_until(check, deadline, lambda: f"a healthy server\n{self.log()}")

    def _lines(self):
        try:
            return (self.data / "run" / "server").read_text().split("\n")[:4]
        except FileNotFoundError:
            return []

    def log(self):
        with contextlib.suppress(FileNotFoundError):
            return self.log_path.read_text(errors="replace")[-3000:]
        return ""

    def pids(self):
        return Pids(*(int(line) for line in self._lines()[:3]))

    def running_pids(self, *which):
        """pids(), once these run: 0 stands for one that is about to be started, and for a signal it means everybody."""
        found = wait_until(lambda: [p for p in [self.pids()] if all(getattr(p, n) > 1 for n in which)], 30,
                           lambda: f"running: {which}\n{self.log()}")
        return found[0]

    def egress_pid(self):
        """The process that stands between sandboxes and the network; None while there is none."""
        supervisor = self.pids().supervisor
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
                if lines["Name"].strip() == "cella-egress" and int(lines["PPid"]) == supervisor:
                    return int(status.parent.name)
        return None

    def check_idle(self):
        """Fails when a process of it uses CPU time although nobody asks it for anything."""

        def processes():
            found = {"cellad": self.pids().cellad, "warden": self.pids().warden, "egress": self.egress_pid()}
            return {name: pid for name, pid in found.items() if pid}

        if self.process.poll() is None and len(self._lines()) == 4:
            cella_idle.check_idle(processes, cella_idle.SETTLE_DEADLINE * PATIENCE)

    def kill_egress(self):
        """Kills it, and waits until it is gone."""
        pid = wait_until(self.egress_pid, 30, "an egress process")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not process_alive(pid), 30, "the egress process gone")

    def kill(self, *which, sig=signal.SIGKILL):
        """Kills processes by their names in Pids, and gives the pids that were there before. Waits
        for them to be gone; what comes afterwards is for wait_recovered() or start()."""
        before = self.running_pids(*which)
        for name in which:
            with contextlib.suppress(ProcessLookupError):
                os.kill(getattr(before, name), sig)
        if "supervisor" in which:
            self.process.wait(timeout=30 * PATIENCE)
        for name in which:
            wait_until(lambda: not process_alive(getattr(before, name)), 30, f"{name} gone")
        return before

    def wait_recovered(self, before, *which, deadline=START_DEADLINE):
        """After kill(): waits until the supervisor has put new ones in their places."""

        def check():
            lines = self._lines()
            if len(lines) != 4:
                return False
            now = self.pids()  # 0 stands for one that is about to be started
            return all(getattr(now, name) not in (0, getattr(before, name)) for name in which)

        wait_until(check, deadline, lambda: f"new {which}\n{self.log()}")
        self.wait_healthy()

    def stop(self):
        """SIGTERM; waits for the end, which stops all sandboxes."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=STOP_DEADLINE)
        except subprocess.TimeoutExpired as slow:
            raise AssertionError(f"no end after SIGTERM:\n{self.log()}") from slow
        assert status == 0, f"exit status {status} after SIGTERM:\n{self.log()}"

    def close(self):
        """Stops it, and proves that nothing is left. A server that several tests shared has to be idle before."""
        try:
            if self.test != current_test():
                self.check_idle()
        finally:
            self._close()

    def _close(self):
        try:
            if self.process.poll() is not None:
                self.start()  # a crash test left it dead: only a server can clean up properly
            pids = self.pids()
            self.stop()
            for name, pid in pids._asdict().items():
                wait_until(lambda: not process_alive(pid), 30, f"{name} ({pid}) gone")
            # The kernel lets go of a dead process's mount namespace, and so of the loop device, a
            # moment after its end. Strangers who copied the machine's mounts while this server ran
            # keep the device for as long as they like; that is not ours to prove.
            wait_until(lambda: not self.remains() or self._strangers_hold(), 30,
                       lambda: f"{self.remains()} gone\n{self.log()}")
        finally:
            self.destroy()

    def remains(self):
        """What the machine still holds of this server: mounts, cgroups, loop devices, and what its network takes."""
        found = [f"mount {line.split()[4]}" for line in
                 pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                 if line.split()[4].startswith(f"{self.data}/")]
        found += [f"cgroup {path}" for path in self._cgroups()]
        found += [f"loop device {path}" for path in self._loop_devices()]
        found += [f"link {path.name}" for path in pathlib.Path("/sys/class/net").glob(f"cellaup{self.instance or '-'}*")]
        found += [f"firewall table {line}" for line in self._tables() if line.endswith(f"cella_{self.instance}")]
        return found

    @staticmethod
    def _tables():
        """A machine without the program has none."""
        if shutil.which("nft") is None:
            return []
        return subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout.splitlines()

    def _cgroups(self):
        instance = self.instance
        if not instance:  # it did not get far enough to be asked
            with contextlib.suppress(OSError):
                instance = (self.data / "instance").read_text().strip()
        if not instance:
            return []
        found = []
        for top in ("/sys/fs/cgroup", *pathlib.Path("/sys/fs/cgroup").glob("*/")):
            found += pathlib.Path(top).glob(f"cella-{instance}*")
        return [path for path in found if path.is_dir()]

    def _loop_devices(self):
        for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):
                if path.read_text().startswith(f"{self.data}/"):
                    yield f"/dev/{path.parts[3]}"

    def _strangers_hold(self):
        """Only the loop device is left, and other mount namespaces still have the volume."""
        if any(not item.startswith("loop device") for item in self.remains()):
            return False
        for path in pathlib.Path("/proc").glob("[0-9]*/mountinfo"):
            with contextlib.suppress(OSError):
                if f" {self.data}/" in path.read_text():
                    return True
        return False

    def destroy(self):
        """The last resort, without proof: ends and removes whatever has this server's name on it."""
        with contextlib.suppress(ValueError):
            self.running.remove(self)
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for top in self._cgroups():
            for kill in [top / "cgroup.kill", *top.glob("**/cgroup.kill")]:
                with contextlib.suppress(OSError):
                    kill.write_text("1")
        for top in self._cgroups():
            for path in sorted(top.glob("**/"), key=lambda p: -len(p.parts)):
                with contextlib.suppress(OSError):
                    path.rmdir()
        for line in reversed(pathlib.Path("/proc/self/mountinfo").read_text().splitlines()):
            point = line.split()[4]
            if point.startswith(f"{self.data}/"):
                subprocess.run(["umount", "-l", point], check=False, stderr=subprocess.DEVNULL)
        for device in list(self._loop_devices()):
            subprocess.run(["losetup", "-d", device], check=False, stderr=subprocess.DEVNULL)
        if not any(line.split()[4].startswith(f"{self.data}/") for line in
                   pathlib.Path("/proc/self/mountinfo").read_text().splitlines()):
            if self.shares_images:
                IMAGES.keep(self.data)
            shutil.rmtree(self.data, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            self.log_path.unlink()

    # --- talking to it ---

    def connection(self, timeout=30):
        parts = urllib.parse.urlsplit(self.url)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout * PATIENCE)

    def request(self, method, path, body=None, headers=None, timeout=30):
        """One request on a connection of its own. A dict or list is sent as JSON; the key is sent
        unless headers say otherwise ({"Authorization": None} sends none)."""
        fields = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            fields["Content-Type"] = "application/json"
        elif isinstance(body, str):
            body = body.encode()
        fields.update(headers or {})
        fields = {name: value for name, value in fields.items() if value is not None}
        with contextlib.closing(self.connection(timeout)) as connection:
            connection.request(method, path, body, fields)
            got = connection.getresponse()
            answer = Answer(got.status, got.headers, got.read())
        if self.contract is not None:
            self.contract.check(method, path, fields, answer)
        return answer

    def cli(self, *args, input=None, timeout=60, text=True, env=None):
        """The command-line client, which finds address and key through the data folder."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("CELLA_")}
        return subprocess.run([*self.prefix, self.bin / "cella", "--data", self.data, *map(str, args)],
                              input=input, capture_output=True, timeout=timeout, text=text,
                              env={**clean, **(env or {})})

    def leaks(self):
        """'' when `cella doctor --leaks` finds none; else what it says."""
        done = subprocess.run([*self.prefix, self.bin / "cella", "doctor", "--leaks", "--data", self.data],
                              capture_output=True, text=True, timeout=60 * PATIENCE)
        if done.returncode == 0:
            return ""
        return (done.stdout + done.stderr) or f"exit status {done.returncode}"

    def create(self, name=None, wait=True, **spec):
        """A sandbox; `spec` is the request's spec (resources=…, env_vars=…, enabled=…)."""
        body = {"metadata": {"name": name} if name else {}, "spec": spec}
        answer = self.request("POST", "/v0/sandbox", body)
        assert answer.status == 202, answer
        made = Sandbox(self, answer.json()["metadata"]["name"])
        if wait and spec.get("enabled", True):
            made.wait_status("running")
        return made

    def sandbox(self, name):
        return Sandbox(self, name)

    def list(self):
        answer = self.request("GET", "/v0/sandbox?limit=1000")
        assert answer.status == 200, answer
        return answer.json()["sandboxes"]
