# SPDX-License-Identifier: Apache-2.0
"""Requests whose end two readers could see in different places. Whoever reads them otherwise than the
next one in line lets a stranger put words into another client's mouth; so nothing here may be read in
two ways: it is one request, or it is refused and the connection closed."""

import json
import pathlib

import pytest

import raw_http
from cella_server import wait_until

APP = pathlib.Path(__file__).resolve().parents[1] / "support/port_app.py"
PORT = 8000
SMUGGLED = b"DELETE /v0/sandbox/smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def ask(server, *fields, body=b"", line="POST /v0/sandbox HTTP/1.1", host=True):
    own = ["Host: x"] if host else []
    return raw_http.exchange(server, raw_http.head(server, line, *own, *fields) + body + SMUGGLED)


# Each of these is refused as a whole: one answer, and nothing of what is behind it is looked at.
AMBIGUOUS = [
    # CL.TE, TE.CL: both lengths
    (["Content-Length: 6", "Transfer-Encoding: chunked"], b"0\r\n\r\nG"),
    (["Transfer-Encoding: chunked", "Content-Length: 4"], b"5c\r\n"),
    # CL.CL
    (["Content-Length: 0", "Content-Length: 44"], b""),
    (["Content-Length: 2", "Content-Length: 2"], b"{}"),
    (["Content-Length: 2, 2"], b"{}"),
    (["Content-Length: +2"], b"{}"),
    (["Content-Length: 0x2"], b"{}"),
    (["Content-Length: -1"], b""),
    (["Content-Length: 18446744073709551618"], b"{}"),
    (["Content-Length : 2"], b"{}"),
    (["Content-Length:"], b""),
    # TE.TE: one of the two would not understand it
    (["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], b"0\r\n\r\n"),
    (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding: identity"], b""),
    (["Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding: chunked, identity"], b"0\r\n\r\n"),
    (["Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding : chunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding:\x0bchunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding: \x00chunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding: \"chunked\""], b"0\r\n\r\n"),
    # Fields that go on, and line ends that are none
    (["X-A: b\r\n Transfer-Encoding: chunked"], b""),
    ([" X-First: 1"], b""),
    (["X-A: b\nTransfer-Encoding: chunked"], b"0\r\n\r\n"),
    (["X-A: b\rTransfer-Encoding: chunked"], b"0\r\n\r\n"),
    (["X-A: b\x00c"], b""),
    (["X A: b"], b""),
    (["X-A"], b""),
    ([": b"], b""),
    (["Host: y"], b""),
    # Chunks
    (["Transfer-Encoding: chunked"], b"2\n{}\r\n0\r\n\r\n"),
    (["Transfer-Encoding: chunked"], b"0x2\r\n{}\r\n0\r\n\r\n"),
    (["Transfer-Encoding: chunked"], b"+2\r\n{}\r\n0\r\n\r\n"),
    (["Transfer-Encoding: chunked"], b"-2\r\n{}\r\n0\r\n\r\n"),
    (["Transfer-Encoding: chunked"], b" 2\r\n{}\r\n0\r\n\r\n"),
    (["Transfer-Encoding: chunked"], b"2\r\n{}0\r\n\r\n"),
    (["Transfer-Encoding: chunked"], b"2\r\n{}XX0\r\n\r\n"),
    (["Transfer-Encoding: chunked"], b"10000000000000002\r\n{}\r\n0\r\n\r\n"),
    (["Transfer-Encoding: chunked"], b"2;a\n\r\n{}\r\n0\r\n\r\n"),
    (["Transfer-Encoding: chunked"], b"2;" + b"x" * 100000 + b"\r\n{}\r\n0\r\n\r\n"),
]


@pytest.mark.parametrize("fields, body", AMBIGUOUS)
def test_refused_as_a_whole(server, fields, body):
    got = raw_http.answers(ask(server, *fields, body=body))
    assert len(got) == 1 and got[0][0] in (400, 411, 413, 431, 501), got
    assert json.loads(got[0][1])["error"]["code"], got


@pytest.mark.parametrize("line", [
    "POST  /v0/sandbox HTTP/1.1", "POST /v0/sandbox  HTTP/1.1", "POST /v0/sandbox HTTP/1.1 ", " POST / HTTP/1.1",
    "POST\t/v0/sandbox\tHTTP/1.1", "POST /v0/ sandbox HTTP/1.1", "POST /v0/sandbox HTTP/1.10", "POST /v0/sandbox",
    "POST /v0/sandbox HTTP/2.0", "POST /v0/sand\x00box HTTP/1.1", "P\xf6ST / HTTP/1.1", "POST /\xff HTTP/1.1",
    "GET /v0/sandbox HTTP/0.9", "CONNECT 127.0.0.1:22 HTTP/1.1", "TRACE / HTTP/1.1",
])
def test_request_lines(server, line):
    got = raw_http.answers(ask(server, "Content-Length: 0", line=line))
    assert got and got[0][0] in (400, 404, 405, 501, 505), got
    # Refused for its form, it is the last; a method or a path that is merely not served is an ordinary answer.
    assert len(got) == (1 if got[0][0] in (400, 501, 505) else 2), got


def test_bare_line_feeds(server):
    plain = f"GET /v0/whoami HTTP/1.1\nHost: x\nAuthorization: Bearer {server.key}\n\n".encode()
    got = raw_http.answers(raw_http.exchange(server, plain + SMUGGLED))
    assert [status for status, _ in got] == [400]


def test_no_host_and_two(server):
    for fields in ([], ["Host: a", "Host: b"], ["Host: a", "host: a"]):
        got = raw_http.answers(ask(server, *fields, "Content-Length: 0", host=False))
        assert [status for status, _ in got] == [400], (fields, got)


def test_absolute_targets_are_ours_whatever_they_name(server):
    for target in ("http://evil.example/v0/whoami", "http://169.254.169.254/v0/whoami", "https://x/v0/whoami"):
        got = raw_http.answers(raw_http.exchange(server, raw_http.head(
            server, f"GET {target} HTTP/1.1", "Host: x", "Connection: close")))
        assert [status for status, _ in got] == [200] and b"workspace" in got[0][1], (target, got)


def test_pipelined_requests_are_each_their_own(server):
    """Three in one write: as many answers, in order, each with its own key or none."""
    ours = raw_http.head(server, "GET /v0/whoami HTTP/1.1", "Host: x")
    theirs = raw_http.head(server, "GET /v0/whoami HTTP/1.1", "Host: x", key=False)
    last = raw_http.head(server, "GET /v0/whoami HTTP/1.1", "Host: x", "Connection: close")
    got = raw_http.answers(raw_http.exchange(server, ours + theirs + last))
    assert [status for status, _ in got] == [200, 401, 200]


def test_a_chunked_body_with_extensions_and_trailers(server):
    """Allowed, and nothing of it is more than a body."""
    body = b"2;a=b\r\n{}\r\n0\r\nAuthorization: Bearer x\r\nContent-Length: 44\r\n\r\n"
    request = raw_http.head(server, "PUT /v0/sandbox/no-such/stop HTTP/1.1", "Host: x", "Transfer-Encoding: chunked",
                            "Content-Type: application/json")
    got = raw_http.answers(raw_http.exchange(server, request + body + raw_http.head(
        server, "GET /v0/whoami HTTP/1.1", "Host: x", "Connection: close")))
    assert [status for status, _ in got] in ([404, 200], [400]), got


def test_a_get_with_a_body(server):
    """It is its body, not the next request."""
    got = raw_http.answers(raw_http.exchange(server, raw_http.head(
        server, "GET /v0/whoami HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(SMUGGLED)}") + SMUGGLED))
    assert [status for status, _ in got] == [200]


# --- behind an upgrade, and behind a proxied request ---

@pytest.fixture(scope="module")
def app(server):
    sandbox = server.create()
    sandbox.write("/tmp/port_app.py", APP.read_text())
    sandbox.spawn(f"exec python3 /tmp/port_app.py {PORT}")
    wait_until(lambda: sandbox.request("GET", f"/port/{PORT}/text").status == 200, 20, "the program")
    yield sandbox
    sandbox.delete()


def test_nothing_follows_a_refused_upgrade(server, app):
    """A handshake that is refused leaves an HTTP connection, on which the next request is a request."""
    request = raw_http.head(server, f"GET {app.base}/exec/ws HTTP/1.1", "Host: x", "Connection: Upgrade",
                            "Upgrade: websocket", "Sec-WebSocket-Version: 8", "Sec-WebSocket-Key: x")
    got = raw_http.answers(raw_http.exchange(server, request + raw_http.head(
        server, "GET /v0/whoami HTTP/1.1", "Host: x", "Connection: close", key=False)))
    assert [status for status, _ in got] in ([426, 401], [426], [400], [400, 401]), got


def test_nothing_is_http_behind_an_upgrade(server, app):
    """What comes behind a handshake that succeeded are frames: a request there is a broken one."""
    request = raw_http.head(server, f"GET {app.base}/exec/ws HTTP/1.1", "Host: x", "Connection: Upgrade",
                            "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
    got = raw_http.exchange(server, request + raw_http.head(server, "GET /v0/whoami HTTP/1.1", "Host: x"))
    assert got.startswith(b"HTTP/1.1 101 ") and got.count(b"HTTP/1.1 ") == 1 and b"workspace" not in got


def test_an_upgrade_that_the_program_refuses(server, app):
    """Through the port proxy: the program says 200, and the client sends frames all the same."""
    request = raw_http.head(server, f"GET {app.base}/port/{PORT}/echo HTTP/1.1", "Host: x", "Connection: Upgrade",
                            "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
    behind = raw_http.head(server, "GET /v0/whoami HTTP/1.1", "Host: x", "Connection: close", key=False)
    got = raw_http.answers(raw_http.exchange(server, request + behind))
    assert [status for status, _ in got] in ([200, 401], [200]), got
    assert b"whoami" not in got[0][1]


def test_what_the_proxy_passes_on_is_framed_anew(server, app):
    """Chunks with extensions become plain ones, or a length: the program sees one request."""
    inner = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    body = b"%x;ext=%s\r\n%s\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n" % (len(inner), b"y" * 20, inner)
    got = raw_http.answers(raw_http.exchange(server, raw_http.head(
        server, f"POST {app.base}/port/{PORT}/echo HTTP/1.1", "Host: x", "Transfer-Encoding: chunked",
        "Connection: close") + body))
    assert [status for status, _ in got] == [200], got
    seen = json.loads(got[0][1])
    assert seen["length"] == len(inner) and seen["target"] == "/echo" and "ext=" not in seen["head"]
    assert app.request("GET", f"/port/{PORT}/next").json()["target"] == "/next"


def test_line_ends_in_what_comes_back(server, app):
    """Names that are told again in fields or messages end no line."""
    for path in ("/v0/sandbox/a%0d%0aX-Evil:%201", f"{app.base}/process/a%0d%0aX-Evil:%201",
                 f"{app.base}/filesystem/tmp/a%0d%0aX-Evil:%201%0d%0a%0d%0aEVIL"):
        got = raw_http.exchange(server, raw_http.head(server, f"GET {path} HTTP/1.1", "Host: x", "Connection: close"))
        top = got.split(b"\r\n\r\n", 1)[0]
        assert b"X-Evil" not in top and len(raw_http.answers(got)) == 1, got
    app.write("/tmp/a\r\nX-Evil: 1", "x")
    for accept in ("application/octet-stream", "application/json"):
        got = raw_http.exchange(server, raw_http.head(
            server, f"GET {app.base}/filesystem/tmp/a%0d%0aX-Evil:%201 HTTP/1.1", "Host: x", f"Accept: {accept}",
            "Connection: close"))
        assert got.startswith(b"HTTP/1.1 200") and b"X-Evil" not in got.split(b"\r\n\r\n", 1)[0], got
