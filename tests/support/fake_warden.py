#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A provider for tests that need no isolation: speaks the warden's protocol and the agent's, and its sandboxes
are plain folders of an ordinary user. No namespaces, no cgroups, no mounts, no privileges.

The supervisor starts it in the warden's place (CELLA_TEST_WARDEN), with the same arguments. What it does not
know it refuses in the protocol's own words, so that a test which needs a real sandbox fails clearly."""

import os
import pathlib
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import wirelib

EXEC_WAIT, EXEC_STDIN, EXEC_STDIN_ONCE = 1, 4, 8
RUNNING, EXITED, STOPPED, KILLED, TIMED_OUT = range(5)
INLINE = 64 * 1024
CHUNK = 128 * 1024
ERRNO_CODES = {2: "FILE_NOT_FOUND", 20: "NOT_A_DIRECTORY", 21: "IS_A_DIRECTORY", 39: "DIRECTORY_NOT_EMPTY",
               13: "PERMISSION_DENIED", 17: "ALREADY_EXISTS"}

# What wirelib's tests never send: (tag, kind, field).
wirelib.MESSAGES.update({
    "WARDEN_MACHINE_ASK": (28, []),
    "WARDEN_MACHINE": (29, [(1, "u64", "flags"), (2, "u64", "disk_total"), (3, "u64", "disk_used"),
                            (4, "u64", "disk_free"), (5, "str", "disk_io"), (6, "str", "memory_bandwidth"),
                            (7, "str", "ipv6")]),
    "FILE_ENTRY": (134, [(1, "str", "path"), (2, "u64", "type"), (3, "u64", "mode"), (4, "u64", "size"),
                         (5, "u64", "mtime_ms"), (6, "u64", "uid"), (7, "u64", "gid"), (8, "str", "owner"),
                         (9, "str", "group"), (10, "str", "target"), (11, "u64", "inode")]),
    "FILE_END": (136, []),
})
NAMES = {16: "hello", 18: "start", 20: "stop", 21: "remove", 22: "list", 27: "fits", 26: "update", 28: "machine",
         40: "stats", 46: "net_set", 64: "agent_hello", 66: "exec", 67: "wait", 68: "get", 69: "processes", 71: "end",
         72: "log", 74: "cancel", 128: "stat", 129: "folder", 130: "read", 131: "write", 132: "mkdir", 133: "unlink"}
FILE_DATA = 135


class Refused(Exception):
    """Becomes a WIRE_ERROR."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def codes():
    """Numbers of error codes by name; the list is handed over in the environment."""
    return {name: int(number) for name, number in (row.split("=") for row in os.environ["CELLA_TEST_CODES"].split(","))}


def fields_of(payload):
    """{tag: bytes}; what the tags mean is for who asks."""
    found = {}
    while payload:
        tag, length = struct.unpack_from("<HI", payload)
        found[tag], payload = payload[6:6 + length], payload[6 + length:]
    return found


def number(fields, tag):
    return struct.unpack("<Q", fields[tag])[0] if tag in fields else 0


def text(fields, tag):
    return os.fsdecode(fields[tag][:-1]) if tag in fields else None


def texts(fields, tag):
    return [os.fsdecode(item) for item in fields.get(tag, b"").split(b"\0")[:-1]]


class Process:
    """A command: a subprocess, and what it wrote."""

    def __init__(self, box, fields):
        argv = texts(fields, 2) or ["/bin/sh", "-c", text(fields, 1)]
        self.command = text(fields, 1) or " ".join(argv)
        self.cwd, self.user = text(fields, 3) or "/workspace", text(fields, 5) or "root"
        self.flags = number(fields, 8)
        self.name = text(fields, 9) or f"proc-{secrets.token_hex(4)}"
        self.started, self.ended, self.state, self.status = time.time(), 0, RUNNING, 0
        self.out, self.errors = b"", b""
        env = {"PATH": os.environ["PATH"], "HOME": str(box.root), **dict(
            item.split("=", 1) for item in texts(fields, 4))}
        folder = box.path(self.cwd)
        if not folder.is_dir():
            raise Refused("FILE_NOT_FOUND", f"{self.cwd}: No such file or directory")
        try:
            # pylint: disable-next=consider-using-with
            self.child = subprocess.Popen(argv, cwd=folder, env=env, start_new_session=True, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except FileNotFoundError:
            raise Refused("FILE_NOT_FOUND", f"{argv[0]}: No such file or directory") from None
        self.pid = self.child.pid
        self.done = threading.Event()
        timeout = number(fields, 6) / 1000 or None
        threading.Thread(target=self.run, args=(fields.get(10, b""), timeout), daemon=True).start()

    def run(self, given, timeout):
        try:
            self.out, self.errors = self.child.communicate(given, timeout)
        except subprocess.TimeoutExpired:
            self.end(TIMED_OUT)
            self.out, self.errors = self.child.communicate()
        if self.state == RUNNING:
            self.state = EXITED
        self.status = self.child.returncode if self.child.returncode >= 0 else 128 - self.child.returncode
        self.ended = time.time()
        self.done.set()

    def end(self, state):
        if self.state == RUNNING:
            self.state = state
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def message(self, output=False):
        values = {"pid": self.pid, "state": self.state if self.done.is_set() else RUNNING, "exit_code": self.status,
                  "started_ms": int(self.started * 1000), "ended_ms": int(self.ended * 1000), "command": self.command,
                  "cwd": self.cwd, "user": self.user, "stdout_total": len(self.out), "name": self.name,
                  "stderr_total": len(self.errors), "flags": self.flags & EXEC_STDIN}
        if output:
            values.update(stdout_data=self.out[-INLINE:], stderr_data=self.errors[-INLINE:])
        return "AGENT_PROCESS", values


class Box:
    """A sandbox: a folder, a socket where its agent would listen, and its processes."""

    def __init__(self, warden, name):
        self.warden, self.id, self.root = warden, name, warden.boxes / name
        self.processes, self.listener, self.running = {}, None, False

    def path(self, inside):
        """Where a path of the sandbox is. Links are not for this provider."""
        return pathlib.Path(os.path.normpath(f"{self.root}/{os.path.normpath('/' + inside)}"))

    def start(self):
        fresh = not self.root.exists()
        (self.root / "workspace").mkdir(parents=True, exist_ok=True)
        (self.root / "tmp").mkdir(exist_ok=True)
        where = self.warden.agents / self.id
        where.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(os.path.relpath(where))
        self.listener.listen(64)
        self.running = True
        threading.Thread(target=serve, args=(self.listener, Agent(self)), daemon=True).start()
        return fresh

    def stop(self):
        self.running = False
        if self.listener is not None:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            self.listener = None
        for process in self.processes.values():
            process.end(KILLED)

    def entry(self, inside, name=None):
        place = self.path(inside)
        st = place.lstat() if name else place.stat()
        kind = 1 if place.is_dir() else 2 if name and place.is_symlink() else 0
        return "FILE_ENTRY", {"path": name or os.path.normpath("/" + inside), "type": kind, "mode": st.st_mode & 0o7777,
                              "size": st.st_size, "mtime_ms": int(st.st_mtime * 1000), "uid": 0, "gid": 0,
                              "owner": "root", "group": "root", "inode": st.st_ino}


class Handler:
    """Answers requests: a method per message, which yields (name, values)."""

    def answer(self, sock, kind, fields):
        method = getattr(self, NAMES.get(kind, ""), None)
        if method is None:
            raise Refused("NOT_IMPLEMENTED", f"the test's provider knows no message {kind}")
        return method(sock, fields)


class Agent(Handler):
    """What happens inside one sandbox."""

    def __init__(self, box):
        self.box = box

    def find(self, fields):
        pid, name = number(fields, 1), text(fields, 2)
        for process in reversed(list(self.box.processes.values())):
            if process.pid == pid or (pid == 0 and process.name == name):
                return process
        raise Refused("PROCESS_NOT_FOUND", f"there is no process {name or pid}")

    def agent_hello(self, _, __):
        yield "AGENT_ABOUT", {"version": 1, "started_ms": int(time.time() * 1000)}

    def exec(self, _, fields):
        process = Process(self.box, fields)
        self.box.processes[process.pid] = process
        if process.flags & EXEC_WAIT:
            process.done.wait()
        yield process.message(process.flags & EXEC_WAIT)

    def wait(self, _, fields):
        process = self.find(fields)
        process.done.wait()
        yield process.message(True)

    def get(self, _, fields):
        yield self.find(fields).message()

    def processes(self, _, __):
        for process in self.box.processes.values():
            yield process.message()
        yield "OK", {}

    def end(self, _, fields):
        process = self.find({1: fields.get(1, b"\0" * 8), **({2: fields[3]} if 3 in fields else {})})
        process.end(STOPPED if number(fields, 2) else KILLED)
        process.done.wait()
        yield process.message()

    def log(self, _, fields):
        process, stream = self.find({1: fields.get(1, b"\0" * 8), **({2: fields[5]} if 5 in fields else {})}), number(fields, 2)
        data = {1: process.out, 2: process.errors, 3: process.out + process.errors}[stream]
        offset = min(number(fields, 3), len(data))
        yield "AGENT_LOG", {"offset": offset, "total": len(data), "open": int(not process.done.is_set()),
                            "data": data[offset:offset + CHUNK]}

    def cancel(self, _, __):
        return iter(())

    def stat(self, _, fields):
        yield self.box.entry(text(fields, 1))

    def folder(self, _, fields):
        place = text(fields, 1)
        names = sorted(os.listdir(self.box.path(place)))
        yield self.box.entry(place)
        for name in names:
            yield self.box.entry(f"{place}/{name}", name)
        yield "OK", {}

    def read(self, _, fields):
        place, offset, length = text(fields, 1), number(fields, 2), number(fields, 3)
        if self.box.path(place).is_dir():
            raise Refused("IS_A_DIRECTORY", f"{place} is a directory")
        data = self.box.path(place).read_bytes()[offset:]
        data = data[:length] if length else data
        yield self.box.entry(place)
        for at in range(0, len(data), CHUNK):
            yield "FILE_DATA", data[at:at + CHUNK]
        yield "FILE_END", {}

    def write(self, sock, fields):
        place, data = self.box.path(text(fields, 1)), b""
        while True:
            kind, _, payload = receive(sock)
            if kind != FILE_DATA:
                break
            data += payload
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        mode = number(fields, 2)
        if mode < 0o10000:
            place.chmod(mode)
        yield self.box.entry(text(fields, 1))

    def mkdir(self, _, fields):
        self.box.path(text(fields, 1)).mkdir(parents=True, exist_ok=True)
        yield self.box.entry(text(fields, 1))

    def unlink(self, _, fields):
        place = self.box.path(text(fields, 1))
        entry = self.box.entry(text(fields, 1))
        if place.is_dir():
            (shutil.rmtree if number(fields, 2) else os.rmdir)(place)
        else:
            place.unlink()
        yield entry


class Warden(Handler):
    """Sandboxes: which there are, and which run."""

    def __init__(self, data):
        self.boxes, self.agents = data / "fake-boxes", data / "run/agents"
        self.boxes.mkdir(exist_ok=True)
        self.agents.mkdir(exist_ok=True)
        self.instance = (data / "instance").read_text().strip()
        self.known = {place.name: Box(self, place.name) for place in self.boxes.iterdir()}
        self.lock = threading.Lock()

    def box(self, fields):
        name = text(fields, 1)
        if name not in self.known:
            raise Refused("SANDBOX_NOT_FOUND", f"there is no sandbox {name}")
        return self.known[name]

    def hello(self, _, __):
        yield "WARDEN_ABOUT", {"version": 2, "agent_version": 1, "instance": self.instance, "storage": "plain", "cgroups": "none",
                               "network": "off"}

    def machine(self, _, __):
        yield "WARDEN_MACHINE", {"flags": 0, "disk_total": 1 << 40, "disk_used": 0, "disk_free": 1 << 40,
                                 "disk_io": "not limited here", "memory_bandwidth": "not limited here"}

    def start(self, _, fields):
        name = text(fields, 1)
        with self.lock:
            box = self.known.setdefault(name, Box(self, name))
            fresh = box.start() if not box.running else False
        yield "WARDEN_STARTED", {"pid": os.getpid(), "start_time": 1, "fresh": int(fresh)}

    def stop(self, _, fields):
        with self.lock:
            if text(fields, 1) in self.known:
                self.box(fields).stop()
        yield "OK", {}

    def remove(self, _, fields):
        with self.lock:
            if text(fields, 1) in self.known:
                box = self.known.pop(text(fields, 1))
                box.stop()
                shutil.rmtree(box.root, ignore_errors=True)
        yield "OK", {}

    def list(self, _, __):
        for box in list(self.known.values()):
            yield "WARDEN_ENTRY", {"id": box.id, "running": int(box.running), "pid": os.getpid() if box.running else 0,
                                   "start_time": 1}
        yield "OK", {}

    def stats(self, _, __):
        yield "OK", {}

    fits = update = net_set = stats


def receive(sock):
    def exactly(size):
        data = b""
        while len(data) < size:
            piece = sock.recv(size - len(data))
            if not piece:
                raise ConnectionError
            data += piece
        return data

    length, kind, _, request = struct.unpack("<IHHI", exactly(12))
    return kind, request, exactly(length)


def converse(sock, handler):
    """One request at a time on each connection but for those that wait: each of these has a thread."""
    lock = threading.Lock()

    def send(request, name, values):
        data = struct.pack("<IHHI", len(values), FILE_DATA, 0, request) + values if name == "FILE_DATA" else \
            wirelib.encode(name, request, **values)
        with lock:
            sock.sendall(data)

    def one(kind, request, payload):
        try:
            for name, values in handler.answer(sock, kind, fields_of(payload)):
                send(request, name, values)
        except Refused as why:
            send(request, "ERROR", {"code": CODES[why.code], "sys": 0, "message": str(why)})
        except OSError as why:
            code = CODES[ERRNO_CODES.get(why.errno, "INTERNAL")]
            send(request, "ERROR", {"code": code, "sys": why.errno or 0, "message": str(why)})

    with sock:
        while True:
            try:
                kind, request, payload = receive(sock)
                if NAMES.get(kind) in ("exec", "wait", "end"):
                    threading.Thread(target=one, args=(kind, request, payload), daemon=True).start()
                else:
                    one(kind, request, payload)
            except (ConnectionError, OSError):
                return


def serve(listener, handler):
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=converse, args=(sock, handler), daemon=True).start()


def main():
    data = pathlib.Path(sys.argv[sys.argv.index("--data") + 1])
    os.chdir(data)  # paths of sockets are short
    warden = Warden(data)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    listener = socket.socket(fileno=int(sys.argv[sys.argv.index("--listen-fd") + 1]))
    listener.setblocking(True)
    serve(listener, warden)


if __name__ == "__main__":
    CODES = codes()
    main()
