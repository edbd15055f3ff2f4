# SPDX-License-Identifier: Apache-2.0
"""A warden under test: started as the supervisor starts it, spoken to as cellad speaks to it.

Needs root. The programs are looked for in $CELLA_BIN_DIR, or build/ next to tests/.
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time

import wirelib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("CELLA_BIN_DIR") or ROOT / "build")

NO_NEW_PRIVS, READ_ONLY_ROOT, NO_SUBPROCESS, NO_CAPABILITIES = 1, 2, 4, 8
PR_SET_CHILD_SUBREAPER = 36

PLAN = {
    "hostname": "box",
    "image": "host",
    "memory_bytes": 256 << 20,
    "cpu_millis": 1000,
    "pids_max": 128,
    "disk_bytes": 64 << 20,
    "shm_bytes": 16 << 20,
    "flags": 0,
    "scratch_bytes": 8 << 20,
}


def error_codes():
    """Numbers of error codes, by name, from the table in error.h."""
    text = (ROOT / "src/base/error.h").read_text()
    return {name: int(number) for name, number in re.findall(r"^    X\((\w+), (\d+),", text, re.M)}


CODES = error_codes()


def program(name):
    folder = name.removeprefix("cella-")
    for path in (BUILD / name, BUILD / "src" / folder / name):
        if path.exists():
            return str(path)
    raise FileNotFoundError(f"{name} is not in {BUILD}")


def become_subreaper():
    """Orphans of a killed warden come to this process, as they come to the supervisor."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.01)


class Warden:
    def __init__(self, data=None, arguments=(), fail_at=None, user=(0, 0), prefix=()):
        become_subreaper()
        self.own_data = data is None
        self.data = data or tempfile.mkdtemp(prefix="cella-warden-")
        self.arguments = list(arguments)
        self.user = user
        self.prefix = list(prefix)  # a command that runs the warden
        self.process = None
        self.start_warden(fail_at)

    # the warden itself

    @property
    def socket_path(self):
        return f"{self.data}/run/warden.sock"

    @property
    def egress_path(self):
        return f"{self.data}/run/warden-egress.sock"

    def start_warden(self, fail_at=None):
        os.makedirs(f"{self.data}/run", exist_ok=True)
        with contextlib.ExitStack() as stack:
            listener, egress = [stack.enter_context(self.listen(path))
                                for path in (self.socket_path, self.egress_path)]
            arguments = [*self.prefix, program("cella-warden"), "--data", self.data, "--listen-fd", "3",
                         "--agent", program("cella-agent"),
                         "--user", f"{self.user[0]}:{self.user[1]}",
                         "--egress-fd", "4", "--volume-size", str(2 << 30), *self.arguments]
            environment = dict(os.environ)
            if fail_at is not None:
                arguments += ["--fail-at", fail_at]
                environment["CELLA_TEST"] = "1"
            # fd 3 has to be the socket, whichever it is here: bash can say so
            fds = [fcntl.fcntl(sock, fcntl.F_DUPFD, 20) for sock in (listener, egress)]
            self.process = subprocess.Popen(
                ["/bin/bash", "-c", f'exec "$@" 3<&{fds[0]} 4<&{fds[1]} {fds[0]}<&- {fds[1]}<&-', "sh",
                 *arguments], pass_fds=fds, env=environment)
            for fd in fds:
                os.close(fd)
        self.connection = wirelib.Connection(self.socket_path)
        self.connection.call("WARDEN_HELLO")

    @staticmethod
    def listen(path):
        if os.path.exists(path):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(16)
        return listener

    def kill_warden(self):
        self.process.kill()
        self.process.wait()
        self.connection.close()

    def restart_warden(self, fail_at=None):
        self.kill_warden()
        self.start_warden(fail_at)

    def terminate_warden(self):
        self.connection.close()
        self.process.terminate()
        return self.process.wait(60)

    def close(self):
        """Ends everything, whatever state a test left it in."""
        if self.process.poll() is None:
            self.terminate_warden()
        else:
            subprocess.run([*self.prefix, program("cella-warden"), "--cleanup", "--data", self.data], check=True)
        self.reap_orphans()
        if self.own_data:
            shutil.rmtree(self.data)

    @staticmethod
    def reap_orphans():
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # sandboxes

    def start(self, sandbox_id, **changes):
        return self.connection.call("WARDEN_START", id=sandbox_id, **{**PLAN, **changes})

    def stop(self, sandbox_id, grace_ms=0):
        return self.connection.call("WARDEN_STOP", id=sandbox_id, grace_ms=grace_ms)

    def remove(self, sandbox_id):
        return self.connection.call("WARDEN_REMOVE", id=sandbox_id)

    def list(self):
        return {entry["id"]: entry for entry in self.connection.call_many("WARDEN_LIST")}

    def agent(self, sandbox_id):
        return wirelib.Connection(f"{self.data}/run/agents/{sandbox_id}")

    def run(self, sandbox_id, command, user="root", timeout_ms=30000):
        """(exit status, stdout, stderr) of a shell command in the sandbox."""
        with self.agent(sandbox_id) as agent:
            process = agent.call("AGENT_EXEC", command=command, cwd="/", user=user,
                                 timeout_ms=timeout_ms, flags=wirelib.EXEC_WAIT)
        return (process["exit_code"], process["stdout_data"].decode(errors="replace"),
                process["stderr_data"].decode(errors="replace"))

    def output(self, sandbox_id, command, **how):
        status, out, err = self.run(sandbox_id, command, **how)
        assert status == 0, f"{command}: {status}: {out}{err}"
        return out

    def spawn(self, sandbox_id, command, user="root"):
        """Starts a command and lets it run; its pid inside."""
        with self.agent(sandbox_id) as agent:
            return agent.call("AGENT_EXEC", command=command, cwd="/", user=user)["pid"]

    def layer(self, sandbox_id):
        return pathlib.Path(self.data) / "volume" / sandbox_id

    def instance(self):
        return pathlib.Path(self.data, "instance").read_text()

    # leaks

    def leaks(self, **known):
        """What --leaks prints, given what the database would know of each id."""
        lines = "".join(f"{name} {state}\n" for name, state in known.items())
        done = subprocess.run([*self.prefix, program("cella-warden"), "--leaks", "--data", self.data],
                              input=lines, capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        assert (done.returncode == 1) == bool(done.stdout)
        return done.stdout.splitlines()
