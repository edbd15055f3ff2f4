# SPDX-License-Identifier: Apache-2.0
"""Frames between cellad, the warden and the agents, for tests: what src/wire says, in Python.

The tables below repeat src/wire/messages.c on purpose: a test that shared the definition with the
code could not notice that it changed.
"""

import os
import socket
import struct
import time

U64, STR, BYTES, STRV = "u64", "str", "bytes", "strv"

WIRE_OK, WIRE_ERROR = 1, 2
RAW = None  # instead of fields: the payload is bytes, in "data"

# name: (type, [(tag, kind, field), …])
MESSAGES = {
    "OK": (WIRE_OK, []),
    "ERROR": (WIRE_ERROR, [(1, U64, "code"), (2, U64, "sys"), (3, STR, "message")]),
    "WARDEN_HELLO": (16, [(1, U64, "epoch")]),
    "WARDEN_ABOUT": (17, [(1, U64, "version"), (2, STR, "instance"), (3, STR, "storage"),
                          (4, STR, "cgroups"), (5, STR, "network"), (6, STR, "gateway"),
                          (7, U64, "agent_version")]),
    "WARDEN_START": (18, [(1, STR, "id"), (2, STR, "hostname"), (3, STR, "image"),
                          (4, U64, "memory_bytes"), (5, U64, "cpu_millis"), (6, U64, "pids_max"),
                          (7, U64, "disk_bytes"), (8, U64, "shm_bytes"), (9, U64, "flags"),
                          (10, U64, "scratch_bytes"), (40, U64, "spare"), (50, U64, "network"),
                          (51, U64, "network_flags"), (52, U64, "network_in_bytes"),
                          (53, U64, "network_out_bytes"), (54, BYTES, "network_rules")]),
    "WARDEN_STARTED": (19, [(1, U64, "pid"), (2, U64, "start_time"), (3, U64, "fresh"),
                            (4, STR, "address"), (5, STR, "address6"), (6, U64, "joined")]),
    "WARDEN_STOP": (20, [(1, STR, "id"), (2, U64, "grace_ms")]),
    "WARDEN_REMOVE": (21, [(1, STR, "id")]),
    "WARDEN_LIST": (22, []),
    "WARDEN_ENTRY": (23, [(1, STR, "id"), (2, U64, "running"), (3, U64, "pid"),
                          (4, U64, "start_time"), (5, STR, "address"), (6, STR, "address6"),
                          (7, U64, "paused")]),
    "WARDEN_PAUSE": (93, [(1, STR, "id")]),
    "WARDEN_RESUME": (94, [(1, STR, "id")]),
    "WARDEN_EXITED": (24, [(1, STR, "id"), (2, U64, "oom")]),
    "WARDEN_STATS": (40, [(1, STRV, "ids")]),
    "WARDEN_SAMPLE": (41, [(1, STR, "id"), (2, U64, "known"), (3, U64, "cpu_usec"),
                           (4, U64, "memory_bytes"), (5, U64, "disk_bytes"), (6, U64, "tasks"),
                           (7, U64, "oom_kills"), (8, U64, "time_usec"),
                           (9, U64, "network_in_bytes"), (10, U64, "network_out_bytes"),
                           (11, U64, "network_in_packets"), (12, U64, "network_out_packets")]),
    "WARDEN_NET_SET": (46, [(1, STR, "id"), (2, U64, "network"), (3, U64, "network_flags"),
                            (4, U64, "network_in_bytes"), (5, U64, "network_out_bytes"),
                            (6, BYTES, "network_rules")]),
    "WARDEN_NET_ADMIT": (47, [(1, BYTES, "sandbox"), (2, BYTES, "address"), (3, U64, "protocol"),
                              (4, U64, "port"), (5, U64, "ttl_s"), (6, U64, "last_port"), (7, STR, "id")]),
    "WARDEN_NET_LISTEN": (48, [(1, U64, "which")]),
    "WARDEN_CLONE": (25, [(1, STR, "id"), (2, STR, "source"), (3, STR, "hostname"),
                          (4, U64, "disk_bytes")]),
    "WARDEN_UPDATE": (26, [(1, STR, "id"), (2, U64, "memory_bytes"), (3, U64, "cpu_millis"),
                           (4, U64, "pids_max"), (5, U64, "disk_bytes")]),
    "WARDEN_FITS": (27, [(1, STR, "id"), (2, U64, "disk_bytes")]),
    "WARDEN_SOCKET": (112, [(1, STR, "id"), (2, U64, "family")]),
    "WARDEN_HELPER": (114, [(1, U64, "group"), (2, U64, "part")]),
    "WARDEN_DELEGATE": (113, [(1, STR, "id"), (2, U64, "controller")]),
    "EGRESS_HELLO": (176, [(1, U64, "epoch")]),
    "EGRESS_ABOUT": (177, [(1, U64, "version"), (2, U64, "started_ms"), (3, STR, "resolvers"),
                           (4, U64, "sandboxes"), (5, U64, "connections")]),
    "EGRESS_SET": (178, [(1, STR, "id"), (2, STR, "address"), (3, STR, "address6"), (4, STRV, "policy"),
                         (5, STR, "workspace"), (8, U64, "log_after")]),
    "EGRESS_DROP": (179, [(1, STR, "id")]),
    "EGRESS_KEEP": (180, [(1, STRV, "ids")]),
    "EGRESS_LOG_READ": (181, [(1, STR, "id"), (2, U64, "after"), (3, U64, "max")]),
    "EGRESS_LOG_PULL": (183, [(1, U64, "after")]),
    "EGRESS_SECRETS": (190, [(1, STR, "id"), (2, STRV, "headers"), (3, STR, "ca_certificate"), (4, BYTES, "ca_key")]),
    "EGRESS_LOG_ENTRY": (182, [(1, U64, "sequence"), (2, U64, "first_ms"), (3, U64, "last_ms"),
                               (4, U64, "kind"), (5, U64, "verdict"), (6, STR, "name"),
                               (7, STR, "address"), (8, U64, "port"), (9, U64, "type"),
                               (10, U64, "bytes_in"), (11, U64, "bytes_out"), (12, U64, "count"),
                               (13, U64, "open"), (14, STR, "detail"), (15, U64, "protocol"),
                               (16, STR, "id"), (17, U64, "change")]),
    "AGENT_HELLO": (64, []),
    "AGENT_ABOUT": (65, [(1, U64, "version"), (2, U64, "started_ms")]),
    "AGENT_EXEC": (66, [(1, STR, "command"), (2, STRV, "argv"), (3, STR, "cwd"), (4, STRV, "env"),
                        (5, STR, "user"), (6, U64, "timeout_ms"), (7, U64, "log_max"),
                        (8, U64, "flags")]),
    "AGENT_WAIT": (67, [(1, U64, "pid")]),
    "AGENT_GET": (68, [(1, U64, "pid")]),
    "AGENT_LIST": (69, []),
    "AGENT_PROCESS": (70, [(1, U64, "pid"), (2, U64, "state"), (3, U64, "exit_code"),
                           (4, U64, "signal"), (5, U64, "started_ms"), (6, U64, "ended_ms"),
                           (7, STR, "command"), (8, STR, "cwd"), (9, STR, "user"),
                           (10, U64, "stdout_total"), (11, U64, "stderr_total"),
                           (12, BYTES, "stdout_data"), (13, BYTES, "stderr_data"),
                           (14, STR, "name"), (15, U64, "flags"), (16, U64, "restarts"),
                           (17, U64, "max_restarts"), (18, U64, "clean"),
                           (19, STR, "execution")]),
    "AGENT_CLEAN_ASK": (85, []),
    "AGENT_CLEAN": (86, [(1, U64, "clean")]),
    "AGENT_STOP": (71, [(1, U64, "pid"), (2, U64, "grace_ms")]),
    "AGENT_LOG_READ": (72, [(1, U64, "pid"), (2, U64, "stream"), (3, U64, "offset"),
                            (4, U64, "max")]),
    "AGENT_CHANGES": (120, [(1, U64, "after")]),
    "AGENT_CHANGE": (121, [(1, U64, "change"), (2, U64, "sequence"), (3, U64, "pid"),
                           (4, STR, "name"), (5, U64, "stdout_total"), (6, U64, "stderr_total")]),
    "AGENT_TIMED_READ": (122, [(1, U64, "sequence"), (2, U64, "stream"), (3, U64, "offset"),
                               (4, U64, "max")]),
    "AGENT_TIMED": (123, [(1, U64, "offset"), (2, U64, "total"), (3, U64, "open"),
                          (4, BYTES, "data"), (5, BYTES, "times")]),
    "FILE_DATA": (135, RAW),
    "FILE_END": (136, []),
    "HISTORY_LIST": (160, [(1, STRV, "roots"), (2, STRV, "ignore"), (3, U64, "entries_max")]),
    "HISTORY_ENTRY": (161, [(1, STR, "path"), (2, U64, "type"), (3, U64, "mode"), (4, U64, "uid"),
                            (5, U64, "gid"), (6, U64, "size"), (7, U64, "mtime_ns"),
                            (8, U64, "ctime_ns"), (9, U64, "inode"), (10, STR, "target"),
                            (11, U64, "flags")]),
    "HISTORY_LISTED": (162, [(1, U64, "entries"), (2, U64, "left_out"), (3, U64, "cut"),
                             (4, U64, "watched"), (5, U64, "compares")]),
    "HISTORY_READ": (163, [(1, STRV, "roots"), (2, STRV, "paths"), (3, U64, "size_max")]),
    "HISTORY_READ_END": (164, [(1, U64, "torn")]),
    "HISTORY_APPLY": (165, [(1, STRV, "roots")]),
    "HISTORY_ITEM": (166, [(1, U64, "op"), (2, STR, "path"), (3, U64, "mode"), (4, U64, "uid"),
                           (5, U64, "gid"), (6, U64, "size"), (7, STR, "target"), (8, U64, "only_new"),
                           (9, U64, "was_inode"), (10, U64, "was_ctime_ns")]),
    "HISTORY_APPLIED": (167, [(1, U64, "done"), (2, U64, "failed"), (3, STR, "failure"), (4, STRV, "left")]),
    "HISTORY_WATCH": (168, []),
    "AGENT_LOG": (73, [(1, U64, "offset"), (2, U64, "total"), (3, U64, "open"),
                       (4, BYTES, "data")]),
}

BY_TYPE = {number: (name, fields) for name, (number, fields) in MESSAGES.items()}

EXEC_WAIT = 1


def next_epoch():
    """For the HELLO of whoever is to take over from a cellad that runs; see struct warden_hello."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class WireError(Exception):
    """A WIRE_ERROR answer."""

    def __init__(self, code, sys, message):
        super().__init__(message)
        self.code, self.sys, self.message = code, sys, message


def encode(name, request_id=0, /, **values):
    number, fields = MESSAGES[name]
    if fields is RAW:
        return struct.pack("<IHHI", len(values["data"]), number, 0, request_id) + values["data"]
    payload = b""
    for tag, kind, field in fields:
        value = values.pop(field, None)
        if value is None:
            continue
        if kind == U64:
            data = struct.pack("<Q", value)
        elif kind == STR:
            data = os.fsencode(value) + b"\0"
        elif kind == STRV:
            data = b"".join(os.fsencode(item) + b"\0" for item in value)
        else:
            data = value
        payload += struct.pack("<HI", tag, len(data)) + data
    if values:
        raise TypeError(f"{name} has no field {', '.join(values)}")
    return struct.pack("<IHHI", len(payload), number, 0, request_id) + payload


def decode(number, payload):
    """(name, {field: value}); fields that are absent have the value that absence stands for."""
    name, fields = BY_TYPE[number]
    if fields is RAW:
        return name, {"data": payload}
    by_tag = {tag: (kind, field) for tag, kind, field in fields}
    absent = {U64: 0, STR: None, BYTES: b"", STRV: []}
    message = {field: absent[kind] for _, kind, field in fields}
    while payload:
        tag, length = struct.unpack_from("<HI", payload)
        data, payload = payload[6:6 + length], payload[6 + length:]
        kind, field = by_tag[tag]
        if kind == U64:
            message[field] = struct.unpack("<Q", data)[0]
        elif kind == STR:
            message[field] = os.fsdecode(data[:-1])
        elif kind == STRV:
            message[field] = [os.fsdecode(item) for item in data.split(b"\0")[:-1]]
        else:
            message[field] = data
    return name, message


class Connection:
    """One client; requests may overlap, events are kept in `events`."""

    def __init__(self, path, timeout=30):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.last_id = 0
        self.events = []

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self, size):
        data = b""
        while len(data) < size:
            chunk = self.sock.recv(size - len(data))
            if not chunk:
                raise ConnectionError("the other end closed the connection")
            data += chunk
        return data

    def receive(self):
        """(name, request id, message) of the next frame."""
        length, number, _, request_id = struct.unpack("<IHHI", self._read(12))
        name, message = decode(number, self._read(length))
        return name, request_id, message

    def send(self, name, **values):
        self.last_id += 1
        self.sock.sendall(encode(name, self.last_id, **values))
        return self.last_id

    def wait(self, request_id):
        """The next answer to that request."""
        while True:
            name, answer_id, message = self.receive()
            if answer_id == 0:
                self.events.append((name, message))
            elif answer_id == request_id:
                if name == "ERROR":
                    raise WireError(**message)
                return name, message

    def wait_event(self):
        while not self.events:
            name, answer_id, message = self.receive()
            if answer_id == 0:
                self.events.append((name, message))
        return self.events.pop(0)

    def call(self, name, **values):
        """The one answer, without its name."""
        return self.wait(self.send(name, **values))[1]

    def call_many(self, name, **values):
        """All answers up to OK."""
        request_id, answers = self.send(name, **values), []
        while True:
            kind, message = self.wait(request_id)
            if kind == "OK":
                return answers
            answers.append(message)
