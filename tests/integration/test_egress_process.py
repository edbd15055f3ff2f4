# SPDX-License-Identifier: Apache-2.0
"""The egress process alone: questions, connections, and what it writes down about them."""

import json
import socket
import ssl
import struct
import threading

import pytest

import world_dns
from cella_server import wait_until
from egress_process import HTTP, TLS, Egress, read_all, wirelib
from world import CUT_OFF, EVIL, HOST, OTHER, RESOLVER, WEB, World

REFUSED, NXDOMAIN, NOERROR, SERVFAIL = 5, 3, 0, 2


@pytest.fixture(scope="module")
def place():
    made = World()
    yield made
    made.close()


@pytest.fixture(scope="module")
def egress(place):
    made = Egress(place)
    yield made
    made.close()


def request(host, line="GET / HTTP/1.1", *fields):
    return "\r\n".join([line, f"Host: {host}", *fields, "", ""]).encode()


def body(answer):
    return json.loads(answer.partition(b"\r\n\r\n")[2])


# --- names ---

def test_a_listed_name_is_resolved_and_others_are_not_even_asked_about(place, egress):
    good, evil = place.name(WEB, OTHER), place.name(EVIL)
    guest, since = egress.guest(f"allow={good}"), place.now()
    answer = guest.resolve(good.upper())
    assert answer["rcode"] == NOERROR and [text for _, _, text in answer["answers"]] == [WEB, OTHER]
    assert guest.resolve(evil)["rcode"] == REFUSED
    assert guest.resolve(f"data.{good}")["rcode"] == REFUSED
    assert [met["name"].lower() for met in place.met(since, kind="dns")] == [good]
    assert guest.log(kind="dns", name=good)[0]["verdict"] == "ALLOWED"
    assert guest.log(kind="dns", name=evil)[0]["verdict"] == "REFUSED_UNLISTED"


def test_wildcards_and_remembered_answers(place, egress):
    name = place.name(WEB, under="wild.example")
    guest, since = egress.guest("allow=*.wild.example"), place.now()
    for _ in range(3):
        assert guest.resolve(name)["answers"]
    assert guest.resolve("wild.example")["rcode"] == REFUSED
    assert len(place.met(since, kind="dns")) == 1


@pytest.mark.parametrize("what", sorted(what for what in CUT_OFF if "documentation" not in what))
def test_a_name_that_leads_to_what_is_cut_off_is_refused(place, egress, what):
    name = place.name(CUT_OFF[what])
    for mode in ("allowlist", "full"):
        guest = egress.guest(*([f"allow={name}"] if mode == "allowlist" else []), mode=mode)
        answer = guest.resolve(name)
        assert answer["rcode"] == REFUSED and not answer["answers"]
        assert guest.log(name=name)[0]["verdict"] == "REFUSED_REBINDING"


def test_of_a_mixed_answer_only_what_is_public_is_told(place, egress):
    name = place.name(CUT_OFF["metadata"], WEB, HOST)
    guest = egress.guest(f"allow={name}")
    assert [text for _, _, text in guest.resolve(name)["answers"]] == [WEB]


def test_types(place, egress):
    name = place.name(WEB, raw={"TXT": b"\5words".hex()})
    listed, open_ = egress.guest(f"allow={name}"), egress.guest(mode="isolated")
    for kind in ("AAAA", "HTTPS"):
        answer = listed.resolve(name, kind)
        assert answer["rcode"] == NOERROR and not answer["answers"]
    for kind in ("TXT", "MX", "ANY", "NULL", "PTR", "CNAME"):
        assert listed.resolve(name, kind)["rcode"] == REFUSED
    assert [entry["type"] for entry in listed.log(verdict="REFUSED_TYPE")]
    assert open_.resolve(name, "TXT")["answers"]
    assert open_.resolve(name, "ANY")["rcode"] == REFUSED


def test_over_tcp_too(place, egress):
    good, evil = place.name(WEB), place.name(EVIL)
    guest = egress.guest(f"allow={good}")
    assert guest.resolve_tcp(good)["answers"]
    assert guest.resolve_tcp(evil)["rcode"] == REFUSED


def test_strange_questions(place, egress):
    good = place.name(WEB)
    guest, since = egress.guest(f"allow={good}", "allow=*.example"), place.now()
    assert world_dns.parse(guest.send(world_dns.query("a b.example")))["rcode"] == 1
    assert guest.resolve("127.0.0.1")["rcode"] == NXDOMAIN
    long = ".".join(["x" * 60] * 3 + ["y" * 20, "example"])
    assert guest.resolve(long)["rcode"] == REFUSED
    assert guest.log(verdict="REFUSED_LIMIT", name=long)
    assert not place.met(since, kind="dns")
    assert guest.resolve(good)["answers"]  # and it still answers


def test_no_such_name(place, egress):
    guest = egress.guest("allow=*.example")
    assert guest.resolve("nobody-has-this.example")["rcode"] == NXDOMAIN


def test_an_address_is_admitted_before_it_is_told(place, egress):
    name = place.name(WEB, ttl=30)
    guest = egress.guest(f"allow={name}", f"allow={name}:5432/tcp", f"allow={name}:7000-7010/udp")
    egress.router.admitted.clear()
    assert guest.resolve(name)["answers"]
    mine = [(m["protocol"], m["port"], m["last_port"]) for m in egress.router.admitted
            if m["sandbox"] == socket.inet_aton(guest.address) and m["address"] == socket.inet_aton(WEB)]
    assert mine == [(6, 5432, 5432), (17, 7000, 7010)]
    assert all(5 <= m["ttl_s"] <= 32 for m in egress.router.admitted)


def test_a_policy_is_not_in_force_before_the_last_admission_of_the_one_before(place, egress):
    """The kernel forgets what was admitted when the warden gets the new policy, which is when this process
    has taken it. What is still on its way to the warden by then would outlive the policy."""
    name, another, router = place.name(WEB, OTHER), place.name(WEB), egress.router
    guest, others = egress.guest(f"allow={name}:5432/tcp"), egress.guest(f"allow={name}:5432/tcp")
    before, answers = len(router.admitted), []
    router.may_answer.clear()
    asking = threading.Thread(target=lambda: answers.append(guest.resolve(name)))
    setting = threading.Thread(target=lambda: guest.set(f"allow={another}"))
    try:
        asking.start()
        wait_until(lambda: len(router.admitted) > before, 30, "the first admission")
        setting.start()
        # It was taken, and not said to be in force.
        wait_until(lambda: guest.resolve(another)["rcode"] == NOERROR, 30, "the new policy")
        assert guest.resolve(name)["rcode"] == REFUSED
        assert setting.is_alive()
    finally:
        router.may_answer.set()
        asking.join()
        setting.join()
    assert answers[0]["rcode"] == REFUSED
    # The second address was not asked for any more.
    assert len(router.admitted) == before + 1
    assert others.resolve(name)["rcode"] == NOERROR and len(router.admitted) == before + 3


def test_a_stranger_gets_no_answer(place, egress):
    guest = egress.guest(mode="full")
    guest.drop()
    assert guest.send(world_dns.query(place.name(WEB)), patience=1) is None
    with guest.connect(HTTP) as sock:
        assert read_all(sock) == b""


# --- HTTP ---

def test_http_goes_where_the_host_leads(place, egress):
    good = place.name(WEB)
    guest = egress.guest(f"allow={good}")
    answer = guest.http(request(good.upper() + ".", "GET /x?y HTTP/1.1", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200") and body(answer)["address"] == WEB
    assert body(answer)["line"] == "GET /x?y HTTP/1.1" and body(answer)["host"] == good
    [entry] = wait_until(lambda: guest.log(kind="http", open=0), 20, "the end in the log")
    assert entry["name"] == good and entry["address"] == WEB and entry["port"] == 80
    assert entry["bytes_in"] == len(answer) and entry["bytes_out"] > 0


BAD = ["CONNECT {evil}:443 HTTP/1.1\r\nHost: {good}\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: {evil}\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: {good}\r\nHost: {evil}\r\n\r\n",
       "GET http://{evil}/ HTTP/1.1\r\nHost: {good}\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: {good}:8080\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: {good}\0.{evil}\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: {good}@{evil}\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: 45.66.66.66\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: 0x2d.66.66.66\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: [::ffff:45.66.66.66]\r\n\r\n",
       "GET / HTTP/1.1\r\n\r\n",
       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
       "\x05\x01\x00"]


@pytest.mark.parametrize("text", BAD)
def test_http_that_is_refused(place, egress, text):
    good, evil = place.name(WEB), place.name(EVIL)
    guest, since = egress.guest(f"allow={good}"), place.now()
    answer = guest.http(text.format(good=good, evil=evil).encode("latin-1"))
    assert answer.split(b" ")[1] in (b"400", b"403"), answer
    assert not place.met(since, kind="tcp", port=80)
    assert [e for e in guest.log(kind="http") if e["verdict"].startswith("REFUSED")]


def test_requests_behind_an_allowed_one_are_read_too(place, egress):
    good, evil = place.name(WEB), place.name(WEB)
    guest, since = egress.guest(f"allow={good}"), place.now()
    behind = request(good, "POST / HTTP/1.1", "Content-Length: 3") + b"abc" + request(good) + request(evil)
    assert guest.http(behind).count(b"HTTP/1.1 200") == 2
    assert {met["host"] for met in place.met(since, kind="http")} == {good}
    assert guest.log(name=evil, verdict="REFUSED_MALFORMED")


def test_a_body_is_passed_on_to_its_end_and_no_further(place, egress):
    good = place.name(WEB)
    guest, since = egress.guest(f"allow={good}"), place.now()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (b"a" * 5000, b"b")) + b"0\r\n\r\n"
    answer = guest.http(request(good, "POST /up HTTP/1.1", "Transfer-Encoding: chunked") + chunks
                        + request(good, "GET / HTTP/1.1", "Connection: close"))
    assert answer.count(b"HTTP/1.1 200") == 2
    first, second = place.met(since, kind="http")
    assert first["body"] == "a" * 5000 + "b" and second["line"] == "GET / HTTP/1.1"


def test_much_in_both_directions(place, egress):
    good, size = place.name(WEB), 3_000_000
    guest = egress.guest(f"allow={good}")
    with guest.connect(HTTP) as sock:
        sock.sendall(request(good, f"GET /bytes/{size} HTTP/1.1"))
        data = b""
        while len(data.partition(b"\r\n\r\n")[2]) < size:
            data += sock.recv(1 << 20)
    answer = guest.http(request(good, "POST / HTTP/1.1", f"Content-Length: {size}", "Connection: close")
                        + b"z" * size)
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_websocket_is_a_tunnel_only_once_the_server_agrees(place, egress):
    good, evil = place.name(WEB), place.name(WEB)
    guest, since = egress.guest(f"allow={good}"), place.now()
    wish = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x"]
    with guest.connect(HTTP) as sock:
        sock.sendall(request(good, "GET /upgrade HTTP/1.1", *wish) + b"early")
        data = b""
        while not data.endswith(b"early"):
            data += sock.recv(65536)
        assert data.startswith(b"HTTP/1.1 101")
        sock.sendall(b"more")
        assert sock.recv(4, socket.MSG_WAITALL) == b"more"
    answer = guest.http(request(good, "GET / HTTP/1.1", *wish) + request(evil))
    assert answer.count(b"HTTP/1.1 200") == 1
    assert evil not in {met["host"] for met in place.met(since, kind="http")}
    answer = guest.http(request(good, "GET / HTTP/1.1", "Connection: Upgrade, close", "Upgrade: h2c"))
    assert answer.startswith(b"HTTP/1.1 200") and not [met for met in place.met(since, kind="http") if ["upgrade", "h2c"] in met["fields"]]


# --- TLS ---

def tls_get(place, guest, name, send=None):
    context = ssl.create_default_context(cafile=str(place.ca))
    with guest.connect(TLS) as sock, context.wrap_socket(sock, server_hostname=name) as tls:
        tls.sendall(send or request(name, "GET / HTTP/1.1", "Connection: close"))
        return read_all(tls)


def test_tls_goes_where_its_name_leads(place, egress):
    good = place.name(WEB)
    guest = egress.guest(f"allow={good}")
    answer = body(tls_get(place, guest, good))
    assert (answer["address"], answer["port"], answer["sni"]) == (WEB, 443, good)
    [entry] = wait_until(lambda: guest.log(kind="tls", open=0), 20, "the end in the log")
    assert entry["name"] == good and entry["bytes_in"] > 500 and entry["bytes_out"] > 200


def test_tls_that_is_refused(place, egress):
    good, evil = place.name(WEB), place.name(WEB)
    guest, since = egress.guest(f"allow={good}"), place.now()
    with pytest.raises(ssl.SSLError, match="(?i)access.denied"):
        tls_get(place, guest, evil)
    with guest.connect(TLS) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert read_all(sock)[:1] in (b"\x15", b"")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with guest.connect(TLS) as sock, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(sock)
    assert not place.met(since, kind="tcp", port=443)
    assert [entry["verdict"] for entry in guest.log(kind="tls")] == [
        "REFUSED_UNLISTED", "REFUSED_MALFORMED", "REFUSED_NO_NAME"]


def hello(name, *extensions):
    sni = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name.encode()
    parts = b"".join(struct.pack(">HH", kind, len(data)) + data for kind, data in [(0, sni), *extensions])
    data = b"\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0" + struct.pack(">H", len(parts)) + parts
    return b"\1" + len(data).to_bytes(3, "big") + data


def records(message, size):
    return b"".join(b"\x16\3\1" + struct.pack(">H", len(message[at:at + size])) + message[at:at + size]
                    for at in range(0, len(message), size))


def test_an_encrypted_hello_is_refused(place, egress):
    good = place.name(WEB)
    guest, since = egress.guest(f"allow={good}"), place.now()
    with guest.connect(TLS) as sock:
        sock.sendall(records(hello(good, (0xFE0D, b"secret")), 16384))
        assert read_all(sock) == b"\x15\3\1\0\2\2\x31"
    assert not place.met(since, kind="tcp", port=443)
    assert guest.log(name=good)[0]["verdict"] == "REFUSED_HIDDEN_NAME"


def test_a_hello_in_pieces(place, egress):
    good, evil = place.name(WEB), place.name(EVIL)
    guest, since = egress.guest(f"allow={good}"), place.now()
    for name in (good, evil):
        with guest.connect(TLS) as sock:
            for byte in records(hello(name), 7):
                sock.sendall(bytes([byte]))
            read_all(sock)
    assert {met["address"] for met in place.met(since, kind="tcp", port=443)} == {WEB}
    assert guest.log(name=evil)[0]["verdict"] == "REFUSED_UNLISTED"


# --- what changes, and what must not be reached ---

def test_connections_are_closed_when_the_policy_no_longer_allows_them(place, egress):
    good, other = place.name(WEB), place.name(OTHER)
    guest = egress.guest(f"allow={good}", f"allow={other}")
    with guest.connect(HTTP) as sock, guest.connect(HTTP) as kept:
        for name, used in ((good, sock), (other, kept)):
            used.sendall(request(name, "GET /drip HTTP/1.1"))
            assert used.recv(10)
        guest.set(f"allow={other}")
        read_all(sock)  # it ends
        assert kept.recv(1)
        assert guest.log(name=good, open=0)[0]["verdict"] == "REFUSED_CHANGED"
        assert guest.log(name=other, open=1)
        guest.drop()
        read_all(kept)


@pytest.mark.parametrize("what", ["the host", "metadata", "private 10", "loopback"])
def test_proxies_do_not_connect_to_what_is_cut_off(place, egress, what):
    name = place.name(CUT_OFF[what])
    guest, since, at_host = egress.guest(f"allow={name}"), place.now(), place.host.now()
    assert guest.http(request(name)).startswith(b"HTTP/1.1 403")
    with pytest.raises((ssl.SSLError, OSError)):
        tls_get(place, guest, name)
    assert not place.met(since, kind="tcp") and not place.host.met(at_host, kind="tcp", port=80)
    assert {entry["verdict"] for entry in guest.log(name=name)} == {"REFUSED_REBINDING"}


def test_a_flood_of_questions_is_dropped_and_leaves_others_alone(place, egress):
    good = place.name(WEB)
    flooder, neighbour = egress.guest("allow=*.flood.example"), egress.guest(f"allow={good}")
    since = place.now()
    with flooder._socket(socket.SOCK_DGRAM, 1) as sock:  # pylint: disable=protected-access
        for number in range(2000):
            sock.send(world_dns.query(f"n{number}.flood.example"))
    # The queue is one (the kernel keeps floods out of it): a question may have to be asked again.
    message = world_dns.query(good)
    answer = wait_until(lambda: neighbour.send(message, patience=1), 30, "an answer for the neighbour")
    assert world_dns.parse(answer)["answers"]
    wait_until(lambda: flooder.log(verdict="REFUSED_LIMIT"), 20, "the limit in the log")
    assert len(place.met(since, kind="dns")) < 1000


def test_hello_and_keep(place, egress):
    guest, other = egress.guest(mode="full"), egress.guest(mode="full")
    about = egress.control.call("EGRESS_HELLO")
    assert about["version"] == 2 and about["resolvers"] == RESOLVER and about["sandboxes"] >= 2
    egress.control.call("EGRESS_KEEP", ids=[other.id])
    assert egress.control.call("EGRESS_HELLO")["sandboxes"] == 1
    assert other.log() == []
    guest.drop()


def test_a_collector_gets_no_empty_answer_at_once(place, egress):
    """Also when the newest events are gone with their sandbox: its next question would be answered as quickly."""
    lost, other, name = egress.guest("allow=*.lost.example"), egress.guest("allow=*.kept.example"), place.name(WEB, under="kept.example")
    assert lost.resolve(place.name(WEB, under="lost.example"))["answers"]
    last = egress.control.call_many("EGRESS_LOG_PULL", after=0)[-1]["change"]
    assert lost.resolve("refused.example")["rcode"] == REFUSED
    lost.drop()
    asked = egress.control.send("EGRESS_LOG_PULL", after=last)
    assert other.resolve(name)["answers"]
    answer, entry = egress.control.wait(asked)
    assert answer == "EGRESS_LOG_ENTRY" and (entry["id"], entry["name"]) == (other.id, name)
    assert egress.control.wait(asked)[0] == "OK"


def test_a_later_connection_takes_over(egress):
    """What a cellad that was killed has left unread is no rule for anybody any more."""
    guest, earlier = egress.guest(mode="full"), egress.control
    egress.control = egress.connect()
    egress.control.call("EGRESS_HELLO", epoch=wirelib.next_epoch())
    for name, fields in [("EGRESS_SET", {"id": guest.id, "address": guest.address, "policy": ["mode=full"]}),
                         ("EGRESS_DROP", {"id": guest.id}), ("EGRESS_HELLO", {"epoch": 1})]:
        with pytest.raises(wirelib.WireError, match="taken over"):
            earlier.call(name, **fields)
    earlier.close()
    assert guest.log() == []
    guest.drop()
