# SPDX-License-Identifier: Apache-2.0
"""What a program in a sandbox tries on its network, and a way to have it tried: tests import Box; the
rest of this file is copied into the sandbox, beside world_dns.py, and used there.

Everything gives a dict of plain values: 'got' (text of what came back), 'error' (the name of the error,
"timeout", or None). QUICK is for what must not work: whether it was reached is for the world to say.
PATIENT is for what must."""

import contextlib
import errno
import json
import pathlib
import socket
import ssl
import struct
import threading
import time

import world_dns

with contextlib.suppress(ImportError):  # which is not there inside
    from cella_server import wait_until

QUICK, PATIENT = 2, 30
FOLDER = "/var/tmp/probe"


class Box:
    """A sandbox with these programs in it."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        here = pathlib.Path(__file__)
        for name in ("network_inside.py", "world_dns.py"):
            sandbox.write(f"{FOLDER}/{name}", here.with_name(name).read_text(encoding="utf-8"))

    def __getattr__(self, name):
        return getattr(self.sandbox, name)

    def program(self, source, values):
        """Writes a program that has everything below; gives the command that runs it."""
        path = f"{FOLDER}/t{time.monotonic_ns()}.py"
        self.sandbox.write(path, f"import sys\nsys.path.insert(0, {FOLDER!r})\nfrom network_inside import *\n"
                           f"globals().update(json.loads({json.dumps(values)!r}))\n{source}")
        return f"exec python3 -B {path}"

    def do(self, source, timeout=90, **values):
        """Runs `source`, an expression or lines that set `result`, with the values as variables; gives it."""
        if "result = " not in source and "result, " not in source:
            source = f"result = ({source})"
        done = self.sandbox.exec(self.program(source + "\nprint()\nprint(json.dumps(result))\n", values),
                                 timeout=timeout)
        assert done.exit_code == 0, done
        return json.loads(done.stdout.rsplit("\n", 2)[-2])

    @contextlib.contextmanager
    def doing(self, source, **values):
        """Runs `source` for as long as the block does, from when it has printed "ready" on; gives what tells
        its output so far."""
        pid = self.sandbox.spawn(self.program(source, values))
        try:
            wait_until(lambda: "ready" in self.sandbox.logs(pid)["stdout"], 60, lambda: self.sandbox.logs(pid))
            yield lambda: self.sandbox.logs(pid)["stdout"]
        finally:
            self.sandbox.request("POST", f"/process/{pid}/kill")


def outcome(function):
    """Runs it; gives its dict, or one with the error."""
    try:
        return function()
    except socket.timeout:
        return {"got": "", "error": "timeout"}
    except ssl.SSLError as refused:
        return {"got": "", "error": f"ssl: {refused.reason}"}
    except OSError as refused:
        return {"got": "", "error": errno.errorcode.get(refused.errno, str(refused))}
    except (ValueError, IndexError, struct.error):
        return {"got": "", "error": "malformed"}


def together(functions):
    """All at once, in threads; the outcomes in order."""
    results = [None] * len(functions)

    def run(number):
        results[number] = outcome(functions[number])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def read_all(sock, enough=None):
    """Until its end, or until `enough` is there."""
    got, error = b"", None
    try:
        while (enough is None or enough not in got) and len(got) < 1 << 20:
            piece = sock.recv(65536)
            if not piece:
                break
            got += piece
    except socket.timeout:
        error = "timeout"
    except OSError as refused:
        error = errno.errorcode.get(refused.errno, str(refused))
    return {"got": got.decode("latin-1"), "error": error}


def as_bytes(data):
    return data if isinstance(data, bytes) else data.encode("latin-1")


def tcp(address, port, data="hello", timeout=PATIENT, enough=None, pause=0):
    """Sends `data` (text, or a list of pieces) and reads until `enough` is there, or to the end."""
    def go():
        with socket.socket(family_of(address)) as sock:
            sock.settimeout(timeout)
            sock.connect((address, port))
            for piece in data if isinstance(data, list) else [data]:
                sock.sendall(as_bytes(piece))
                time.sleep(pause)
            return read_all(sock, enough)
    return outcome(go)


def echo(address, port, data="hello", timeout=PATIENT):
    return tcp(address, port, data, timeout, enough=as_bytes(data))


def udp(address, port, data="hello", timeout=PATIENT):
    def go():
        with socket.socket(family_of(address), socket.SOCK_DGRAM) as sock:
            sock.settimeout(timeout)
            sock.connect((address, port))
            sock.send(data.encode("latin-1"))
            return {"got": sock.recv(65536).decode("latin-1"), "error": None}
    return outcome(go)


def answer_of(result):
    """Status and JSON of an HTTP answer of the world's."""
    head, _, body = result["got"].partition("\r\n\r\n")
    parts = head.split(" ", 2)
    result["status"] = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None
    try:
        result["json"] = json.loads(body)
    except ValueError:
        result["json"] = None
    return result


def http(address, host, path="/", port=80, timeout=PATIENT, method="GET", fields=""):
    """A plain request; `host` is what the Host field says."""
    request = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n"
    return answer_of(tcp(address, port, request, timeout))


def tls_context(ca=None):
    context = ssl.create_default_context(cafile=ca)
    if ca is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def https(address, sni, host=None, path="/", port=443, timeout=PATIENT, ca=None):
    """A request over TLS; the certificate is checked where `ca` is a file."""
    def go():
        with socket.create_connection((address, port), timeout=timeout) as plain:
            with tls_context(ca).wrap_socket(plain, server_hostname=sni) as sock:
                sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host or sni}\r\nConnection: close\r\n\r\n".encode())
                return answer_of(read_all(sock))
    return outcome(go)


def hello(sni):
    """The bytes of a ClientHello, as OpenSSL makes it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls_context().wrap_bio(incoming, outgoing, server_hostname=sni)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def resolver():
    for line in open("/etc/resolv.conf", encoding="utf-8"):
        if line.startswith("nameserver"):
            return line.split()[1]
    raise OSError(errno.ENOENT, "no nameserver")


def ask(name, kind="A", server=None, timeout=PATIENT, over_tcp=False, raw=None):
    """A question to a server; {'rcode', 'answers': [[type, ttl, text]], …} when it was answered."""
    message = bytes.fromhex(raw) if raw else world_dns.query(name, kind)

    def go():
        where = (server or resolver(), 53)
        with socket.socket(family_of(where[0]), socket.SOCK_STREAM if over_tcp else socket.SOCK_DGRAM) as sock:
            sock.settimeout(timeout)
            sock.connect(where)
            if over_tcp:
                sock.sendall(struct.pack(">H", len(message)) + message)
                data = b""
                while len(data) < 2 or len(data) < 2 + struct.unpack(">H", data[:2])[0]:
                    piece = sock.recv(65536)
                    if not piece:
                        return {"got": "", "error": "closed"}
                    data += piece
                data = data[2:]
            else:
                sock.send(message)
                data = sock.recv(65536)
            return {"error": None, "size": len(data), **world_dns.parse(data)}
    return outcome(go)


def addresses(name, **options):
    """The A records that the sandbox is told; [] for none."""
    found = ask(name, **options)
    return [text for kind, _, text in found.get("answers", []) if kind == "A"]


# --- messages that a library would not make ---


def extension(number, body):
    return struct.pack(">HH", number, len(body)) + body


def server_names(names, kind=0):
    """The extension that names hosts; a text is written byte by byte, whatever it holds."""
    entries = b"".join(struct.pack(">BH", kind, len(as_bytes(name))) + as_bytes(name) for name in names)
    return extension(0, struct.pack(">H", len(entries)) + entries)


def client_hello(extensions, versions=b"\x02\x03\x04", records=1, padding=0):
    """A ClientHello in so many records, with these extensions and what TLS 1.3 needs."""
    if padding:
        extensions = extensions + extension(21, b"\0" * padding)
    extensions += extension(43, versions) + extension(10, b"\0\x04\0\x1d\0\x17") + \
        extension(13, b"\0\x08\x04\x03\x08\x04\x04\x01\x08\x05") + \
        extension(51, b"\0\x24\0\x1d\0\x20" + b"\x09" * 32)
    body = b"\x03\x03" + b"R" * 32 + b"\x20" + b"S" * 32 + b"\0\x06\x13\x01\x13\x02\x13\x03" + b"\x01\0" + \
        struct.pack(">H", len(extensions)) + extensions
    message = b"\x01" + struct.pack(">I", len(body))[1:] + body
    size = -(-len(message) // records)
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(message[at:at + size])) + message[at:at + size]
                    for at in range(0, len(message), size))


def served(result):
    """Whether a TLS server answered: its hello is a handshake record, a refusal an alert or nothing."""
    return result["got"][:1] == "\x16"


def freely(sock):
    """May be bound to any address (IP_FREEBIND, IPV6_FREEBIND)."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, 78, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, 15, 1)


def udp_from(source, address, port, data="hello", timeout=QUICK):
    """A datagram from an address that need not be one's own."""
    def go():
        with socket.socket(family_of(address), socket.SOCK_DGRAM) as sock:
            sock.settimeout(timeout)
            freely(sock)
            sock.bind((source, 0))
            sock.sendto(data.encode(), (address, port))
            return {"got": sock.recv(65536).decode("latin-1"), "error": None}
    return outcome(go)


def tcp_from(source, address, port, timeout=QUICK):
    def go():
        with socket.socket(family_of(address)) as sock:
            sock.settimeout(timeout)
            freely(sock)
            sock.bind((source, 0))
            sock.connect((address, port))
            return {"got": "connected", "error": None}
    return outcome(go)


def own_address(version=4):
    """The address that this sandbox's packets have."""
    target = "2a0b:91::10" if version == 6 else "45.91.0.10"
    with socket.socket(family_of(target), socket.SOCK_DGRAM) as sock:
        sock.connect((target, 9))
        return sock.getsockname()[0]


def gateway(version=4):
    if version == 6:
        for line in open("/proc/net/ipv6_route", encoding="ascii"):
            fields = line.split()
            if fields[1] == "00" and fields[9] == "eth0":
                return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[4]))
        raise OSError(errno.ENOENT, "no default route")
    for line in open("/proc/net/route", encoding="ascii"):
        fields = line.split()
        if fields[1] == "00000000":
            return socket.inet_ntoa(struct.pack("<I", int(fields[2], 16)))
    raise OSError(errno.ENOENT, "no default route")


def scan(ready):
    """Packets to one address after the other, for ever; says so after that many."""
    sent = 0
    while True:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        for _ in range(500):
            with contextlib.suppress(OSError):
                sock.sendto(b"x", (f"45.{100 + sent // 65536 % 100}.{sent // 256 % 256}.{sent % 256}", 9))
            sent += 1
        sock.close()
        if sent == ready:
            print("ready", flush=True)
