# SPDX-License-Identifier: Apache-2.0
"""A name server that answers as it is told to, truthfully or not: the part of tests/support/world.py
that knows the format of DNS. Only what tests need: one question per message, no EDNS of its own."""

import ipaddress
import struct
import threading
import time

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28,
         "SRV": 33, "HTTPS": 65, "ANY": 255}
TYPE_NAMES = {number: name for name, number in TYPES.items()}
NOERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5


def encode_name(name):
    """Labels; those that are too long or strange are written as they are."""
    out = b""
    for label in (name.encode("latin-1").split(b".") if name else []):
        if label:
            out += bytes([len(label)]) + label
    return out + b"\0"


def decode_name(data, at):
    """(name, where it ends); compressed names are followed."""
    labels, end, jumps = [], None, 0
    while data[at]:
        if data[at] >= 0xC0:
            end = end or at + 2
            at = (data[at] & 0x3F) << 8 | data[at + 1]
            jumps += 1
            if jumps > 20:
                raise ValueError("names in circles")
            continue
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels), end or at + 1


def query(name, kind="A", ident=0x1234, flags=0x0100):
    """A question, for programs that ask; `kind` is a name or a number."""
    number = kind if isinstance(kind, int) else TYPES[kind]
    return struct.pack(">6H", ident, flags, 1, 0, 0, 0) + encode_name(name) + struct.pack(">2H", number, 1)


def parse(data):
    """{'id', 'rcode', 'truncated', 'name', 'type', 'answers': [(type, ttl, text)]} of a message."""
    ident, flags, questions, answers = struct.unpack(">4H", data[:8])
    at, name, kind = 12, "", 0
    for _ in range(questions):
        name, at = decode_name(data, at)
        kind = struct.unpack(">H", data[at:at + 2])[0]
        at += 4
    found = []
    for _ in range(answers):
        _, at = decode_name(data, at)
        number, _, ttl, length = struct.unpack(">2HIH", data[at:at + 10])
        value = data[at + 10:at + 10 + length]
        if number == TYPES["CNAME"]:
            text = decode_name(data, at + 10)[0]
        else:
            text = str(ipaddress.ip_address(value)) if length in (4, 16) else value.hex()
        found.append((TYPE_NAMES.get(number, number), ttl, text))
        at += 10 + length
    return {"id": ident, "rcode": flags & 15, "truncated": bool(flags & 0x200), "name": name,
            "type": TYPE_NAMES.get(kind, kind), "answers": found}


def record(name, kind, ttl, value):
    return encode_name(name) + struct.pack(">2HIH", TYPES[kind], 1, ttl, len(value)) + value


class Zone:
    """What the server says. An entry of a name (or of "*.name") is a dict:

    A, AAAA      addresses; "sequence": a list of lists of A, one per question, the last one stays
    cname        another name, whose addresses follow in the answer where the server has them
    raw          {type: hex}, records of any other type
    ttl          seconds (60)
    delay        seconds before the answer
    rcode        instead of an answer
    lie          wrong-id | wrong-question | garbage | drop | short | huge | many | truncate | foreign |
                 flood: how the answer is spoiled
    """

    def __init__(self):
        self.entries, self.lock = {}, threading.Lock()

    def set(self, name, entry):
        with self.lock:
            if entry is None:
                self.entries.pop(name.lower(), None)
            else:
                self.entries[name.lower()] = dict(entry)

    def find(self, name):
        name = name.lower().rstrip(".")
        with self.lock:
            if name in self.entries:
                return self.entries[name]
            parts = name.split(".")
            for skip in range(1, len(parts)):
                entry = self.entries.get("*." + ".".join(parts[skip:]))
                if entry is not None:
                    return entry
        return None

    def records(self, name, kind, depth=0):
        """Encoded records for a question, in order; None for a name that is not there."""
        entry = self.find(name)
        if entry is None:
            return None
        ttl = entry.get("ttl", 60)
        if "cname" in entry:
            more = self.records(entry["cname"], kind, depth + 1) if depth < 8 else None
            return [record(name, "CNAME", ttl, encode_name(entry["cname"]))] + (more or [])
        values = entry.get(kind, [])
        if kind == "A" and entry.get("sequence"):
            with self.lock:
                values = entry["sequence"][0]
                if len(entry["sequence"]) > 1:
                    entry["sequence"].pop(0)
        if kind in entry.get("raw", {}):
            return [record(name, kind, ttl, bytes.fromhex(entry["raw"][kind]))]
        return [record(name, kind, ttl, ipaddress.ip_address(value).packed) for value in values]

    def answers(self, data, tcp):
        """The messages that this question is answered with: none, one, or many."""
        ident = struct.unpack(">H", data[:2])[0]
        name, at = decode_name(data, 12)
        number = struct.unpack(">H", data[at:at + 2])[0]
        question, kind = data[12:at + 4], TYPE_NAMES.get(number, "")
        entry = self.find(name) or {}
        if entry.get("delay"):
            time.sleep(entry["delay"])

        def message(found, ident=ident, question=question, rcode=NOERROR, flags=0):
            head = struct.pack(">6H", ident, 0x8180 | flags | rcode, 1, len(found), 0, 0)
            return head + question + b"".join(found)

        found = self.records(name, kind) if kind else []
        rcode = entry.get("rcode", NXDOMAIN if found is None else NOERROR)
        found = found if found and not rcode else []
        return self._spoil(entry, name, found, message, tcp) or [message(found, rcode=rcode)]

    @staticmethod
    def _spoil(entry, name, found, message, tcp):
        evil = [record(name, "A", 60, ipaddress.ip_address(entry.get("evil", "45.66.66.66")).packed)]
        lie = entry.get("lie")
        if lie == "wrong-id":
            return [message(evil, ident=wrong) for wrong in (0, 1, 0xFFFF)] + [message(found)]
        if lie == "wrong-question":
            other = encode_name("other." + name) + struct.pack(">2H", 1, 1)
            return [message(evil, question=other), message(found)]
        if lie == "garbage":
            return [b"\0", b"\xff" * 11, b"\xc0" * 400, message(found)[:-3], message(found)]
        if lie == "drop":
            return [b""]
        if lie == "short":
            return [message(found)[:-3]]
        if lie == "huge":
            text = record(name, "TXT", 60, (b"\xff" + b"x" * 255) * 200)
            return [message([text] + found)] if tcp else [message([], flags=0x200)]
        if lie == "many":
            return [message([record(name, "A", 60, bytes([45, 70, i // 256, i % 256])) for i in range(3000)])] \
                if tcp else [message([], flags=0x200)]
        if lie == "truncate" and not tcp:
            return [message([], flags=0x200)]
        if lie == "foreign":
            return [message(found + [record("bank.example", "A", 60, bytes([45, 66, 66, 66]))])]
        if lie == "flood":
            return [message(evil, ident=number) for number in range(2000)] + [message(found)]
        return None
