# SPDX-License-Identifier: Apache-2.0
"""The egress process alone, with secrets to add to requests. The hosts are the world's, which echo all
that they are sent: whatever comes back to the guest must be without the secret."""

import json
import ssl
import subprocess
import uuid

import pytest

from cella_server import wait_until
from egress_process import HTTP, TLS, VERDICTS, Egress, read_all
from world import OTHER, WEB, World
from wirelib import WireError

VERDICTS += [name for name in ("FAILED_TLS", "FAILED_SECRET") if name not in VERDICTS]


@pytest.fixture(scope="module")
def place():
    made = World()
    yield made
    made.close()


@pytest.fixture(scope="module")
def egress(place):
    made = Egress(place, "--ca", place.ca)
    yield made
    made.close()


class Setting:
    """A guest with a secret for one of the two hosts that it may reach."""

    def __init__(self, place, egress, host=None):
        self.place, self.egress = place, egress
        self.secret = f"sk-{uuid.uuid4().hex}"
        self.host, self.other = host or place.name(WEB, label="api"), place.name(OTHER)
        self.guest = egress.guest(f"allow={self.host}", f"allow={self.other}")
        self.set(self.header())

    def header(self, value=None):
        value = self.secret if value is None else value
        return [self.host, "Authorization", value and f"Bearer {value}", value]

    def set(self, *headers, **fields):
        self.egress.control.call("EGRESS_SECRETS", id=self.guest.id, headers=sum(headers, []), **fields)

    def get(self, *fields, line="GET / HTTP/1.1", host=None, more=b""):
        head = "\r\n".join([line, f"Host: {host or self.host}", *fields, "Connection: close", "", ""])
        return self.guest.http(head.encode() + more)

    def logged(self, verdict):
        """The entry for the host, once it is closed: which is after the guest has seen its end."""
        def check():
            found = self.guest.log(name=self.host, kind="http", verdict=verdict, open=0)
            return found and found[-1]
        return wait_until(check, 60, lambda: f"{verdict} in {self.guest.log()}")

    def met(self, since):
        return self.place.met(since, kind="http", host=self.host)

    def came(self, since):
        return [dict(met["fields"]).get("authorization") for met in self.met(since)]


@pytest.fixture
def setting(place, egress):
    return Setting(place, egress)


def test_the_host_gets_it_and_the_guest_does_not(place, setting):
    since = place.now()
    answer = setting.get("authorization: mine", "Accept-Encoding: gzip, br")
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    [met] = setting.met(since)
    assert (met["port"], met["sni"], met["address"]) == (443, setting.host, WEB)
    assert setting.came(since) == [f"Bearer {setting.secret}"]
    assert setting.secret.encode() not in answer and b"Bearer ***" in answer and b"mine" not in answer
    entry = setting.logged("ALLOWED")
    assert entry["port"] == 443 and entry["bytes_in"] > 100 and entry["bytes_out"] > 100
    assert setting.secret not in json.dumps(setting.guest.log())


@pytest.mark.parametrize("path", ["/chunked", "/status/500", "/redirect?to=/next"])
def test_other_answers(place, setting, path):
    since = place.now()
    answer = setting.get(line=f"GET {path} HTTP/1.1")
    assert setting.came(since) == [f"Bearer {setting.secret}"]
    assert setting.secret.encode() not in answer


def test_much_of_it(setting):
    answer = setting.get(line="GET /bytes/3000000 HTTP/1.1")
    assert answer.partition(b"\r\n\r\n")[2] == b"x" * 3000000
    answer = setting.get("Content-Length: 90000", line="POST / HTTP/1.1", more=b"y" * 90000)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["body"] == "y" * 90000


def test_other_hosts_do_not_get_it(place, setting):
    since = place.now()
    assert setting.get(host=setting.other).startswith(b"HTTP/1.1 200 ")
    refused = [
        setting.get(line=f"GET http://{setting.other}/ HTTP/1.1"),
        setting.get(f"Host: {setting.other}"),
        setting.get(line="TRACE / HTTP/1.1"),
        setting.get(host=f"{setting.host}:8080"),
        setting.get(host=f"x.{setting.host}"),
    ]
    assert [answer for answer in refused if answer.startswith(b"HTTP/1.1 2")] == []
    both = setting.guest.http(f"GET / HTTP/1.1\r\nHost: {setting.host}\r\n\r\n"
                              f"GET / HTTP/1.1\r\nHost: {setting.other}\r\n\r\n".encode())
    assert b"HTTP/1.1 421 " in both
    assert setting.came(since) == [f"Bearer {setting.secret}"]
    assert setting.secret not in json.dumps(place.met(since, kind="http", host=setting.other))


def test_spellings_of_the_host(place, setting):
    since = place.now()
    for host in (setting.host.upper(), f"{setting.host}.", f"{setting.host}:80"):
        assert setting.get(host=host).startswith(b"HTTP/1.1 200 ")
    assert setting.came(since) == [f"Bearer {setting.secret}"] * 3


def test_without_its_secret_a_request_fails(place, setting):
    since = place.now()
    setting.set(setting.header(""))
    assert setting.get().startswith(b"HTTP/1.1 502 ")
    # The policy says that there is one, and none has been told yet.
    later = setting.egress.guest(f"allow={setting.host}", f"header={setting.host} authorization s {{}}")
    assert later.http(f"GET / HTTP/1.1\r\nHost: {setting.host}\r\n\r\n".encode()).startswith(b"HTTP/1.1 502 ")
    assert setting.met(since) == []
    setting.logged("FAILED_SECRET")


def test_a_host_without_its_certificate(place, egress):
    setting = Setting(place, egress, place.zone("badcert.example", A=[WEB]))
    since = place.now()
    answer = setting.get()
    assert answer.startswith(b"HTTP/1.1 502 ") and b"certificate" in answer
    assert setting.met(since) == []
    setting.logged("FAILED_TLS")


def test_a_host_that_is_not_allowed(place, egress):
    host = place.name(WEB)
    guest, since = egress.guest("allow=elsewhere.example"), place.now()
    egress.control.call("EGRESS_SECRETS", id=guest.id, headers=[host, "X-Key", "value-of-it", "value-of-it"])
    answer = guest.http(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert place.met(since, kind="http") == []


def test_a_change_closes_what_is_open(place, setting):
    with setting.guest.connect(HTTP) as sock:
        sock.sendall(f"GET /drip HTTP/1.1\r\nHost: {setting.host}\r\n\r\n".encode())
        assert sock.recv(4096).startswith(b"HTTP/1.1 200 ")
        setting.set(setting.header())  # the same again: nothing happens
        for _ in range(5):
            assert sock.recv(4096)
        setting.set(setting.header(f"sk-{uuid.uuid4().hex}"))
        read_all(sock)  # comes to an end
    setting.logged("REFUSED_CHANGED")


def upgrade(setting):
    sock = setting.guest.connect(HTTP)
    sock.sendall(f"GET /upgrade HTTP/1.1\r\nHost: {setting.host}\r\nConnection: Upgrade\r\n"
                 "Upgrade: websocket\r\n\r\n".encode())
    return sock


def test_web_sockets(place, setting):
    """They may be opened where the header says so; then the secret is taken out of what comes back, and they are
    closed when the header says so no longer."""
    rules = [f"allow={setting.host}", f"allow={setting.other}"]
    header = f"{setting.host} authorization s Bearer {{}}"
    since = place.now()
    for refusing in ([], [f"header={header}"], [f"header-upgrade={header}", f"header={setting.host} x-more t {{}}"]):
        setting.guest.set(*rules, *refusing)
        setting.set(setting.header())
        with upgrade(setting) as sock:
            answer = read_all(sock)
        assert answer.startswith(b"HTTP/1.1 403 ") and b"spec.network.headers" in answer, answer
    assert setting.met(since) == []
    setting.guest.set(*rules, f"header-upgrade={header}")
    with upgrade(setting) as sock:
        got = b""
        while b"\r\n\r\n" not in got:
            got += sock.recv(4096)
        assert got.startswith(b"HTTP/1.1 101 ")
        sock.sendall(b"there and back, with " + setting.secret.encode())
        while not got.endswith(b"*" * len(setting.secret)):
            piece = sock.recv(4096)
            assert piece, got
            got += piece
        setting.guest.set(*rules, f"header={header}")
        assert read_all(sock) == b""
    assert setting.came(since) == [f"Bearer {setting.secret}"]


# --- TLS that ends here ---


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """(certificate, key) of a sandbox's own, as cellad would make it, and the certificate's file."""
    folder = tmp_path_factory.mktemp("authority")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", folder / "key.pem", "-out", folder / "ca.pem", "-days", "30", "-subj", "/CN=Sandbox",
                    "-addext", "keyUsage=critical,keyCertSign"], check=True, stdin=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    key = subprocess.run(["openssl", "pkcs8", "-topk8", "-nocrypt", "-in", folder / "key.pem", "-outform", "DER"],
                         check=True, capture_output=True).stdout
    return {"ca_certificate": (folder / "ca.pem").read_text(encoding="ascii"), "ca_key": key}, folder / "ca.pem"


def https(setting, host, ca, protocols=("http/1.1",), path="/"):
    context = ssl.create_default_context(cafile=str(ca))
    context.set_alpn_protocols(list(protocols))
    with context.wrap_socket(setting.guest.connect(TLS), server_hostname=host) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return read_all(sock)


def test_tls_under_the_guests_authority(place, setting, authority):
    fields, ca = authority
    since = place.now()
    # Without one it passes as it is: the world's certificate, and no header.
    answer = https(setting, setting.host, place.ca)
    assert answer.startswith(b"HTTP/1.1 200 ") and setting.came(since) == [None]
    setting.set(setting.header(), **fields)
    since = place.now()
    for path in ("/", "/chunked"):
        answer = https(setting, setting.host, ca, ("h2", "http/1.1"), path)
        assert answer.startswith(b"HTTP/1.1 200 ") and setting.secret.encode() not in answer
    assert setting.came(since) == [f"Bearer {setting.secret}"] * 2
    # Other hosts are not decrypted.
    assert https(setting, setting.other, place.ca).startswith(b"HTTP/1.1 200 ")
    with pytest.raises(ssl.SSLError):
        https(setting, setting.other, ca)
    # Nor is it for those who do not believe the authority, or speak something else.
    with pytest.raises(ssl.SSLError):
        https(setting, setting.host, place.ca)
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        https(setting, setting.host, ca, ("h2",))
    assert len(setting.came(since)) == 2
    # One name in the hello and another in the request.
    context = ssl.create_default_context(cafile=str(ca))
    with context.wrap_socket(setting.guest.connect(TLS), server_hostname=setting.host) as sock:
        sock.sendall(f"GET / HTTP/1.1\r\nHost: {setting.other}\r\n\r\n".encode())
        assert read_all(sock).startswith(b"HTTP/1.1 421 ")


def test_bad_messages(egress, setting, authority):
    fields, _ = authority
    for bad in ({"headers": ["a.example", "X"]}, {"headers": ["10.0.0.0/8", "X", "v", "v"]},
                {"headers": ["a.example", "X\r\nY", "v", "v"]}, {"headers": ["a.example", "X", "v\nw", "v"]},
                {"headers": [], "ca_certificate": "none", "ca_key": b"x"},
                {"headers": [], "ca_certificate": fields["ca_certificate"], "ca_key": b"x"}):
        with pytest.raises(WireError):
            egress.control.call("EGRESS_SECRETS", id=setting.guest.id, **bad)
    with pytest.raises(WireError):
        egress.control.call("EGRESS_SECRETS", id="stranger", headers=[])
    assert setting.get().startswith(b"HTTP/1.1 200 ")


def test_a_client_that_goes_away(place, setting):
    """In the middle of a head, a body, a handshake: nothing is left open."""
    for which, data in ((HTTP, f"GET / HTTP/1.1\r\nHost: {setting.host}\r\n"),
                        (HTTP, f"POST / HTTP/1.1\r\nHost: {setting.host}\r\nContent-Length: 9\r\n\r\nabc"),
                        (HTTP, f"GET /drip HTTP/1.1\r\nHost: {setting.host}\r\n\r\n")):
        with setting.guest.connect(which) as sock:
            sock.sendall(data.encode())
            if "drip" in data:
                assert sock.recv(100)
    wait_until(lambda: not [entry for entry in setting.guest.log() if entry["open"]], 60, "all closed")
    assert setting.get().startswith(b"HTTP/1.1 200 ")
