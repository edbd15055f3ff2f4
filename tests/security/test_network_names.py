# SPDX-License-Identifier: Apache-2.0
"""An allow list by name is not walked around: not by a raw address, not by another name on the same
address, not by what HTTP and TLS can be bent into. What counts is what the other side saw."""

import pytest

from network_inside import Box
from world import DATABASE, ECHO, EVIL, METADATA, OTHER, PRIVATE, WEB


@pytest.fixture(scope="module")
def names(world):
    """Two names on one address, of which one is allowed; another one elsewhere."""
    return {"good": world.name(WEB, label="good"), "bad": world.name(WEB, label="bad"),
            "far": world.name(OTHER, label="far")}


@pytest.fixture(scope="module")
def box(world_server, names):
    made = world_server.create(network={"mode": "allowlist", "allow": [names["good"]]})
    yield Box(made)
    made.delete()


def assert_good_still_works(world, box, names):
    since = world.now()
    got = box.do("http(web, good)", web=WEB, good=names["good"])
    assert got["status"] == 200 and got["json"]["host"] == names["good"], got
    assert len(world.met(since, kind="http", address=WEB)) == 1


# --- addresses instead of names ---


def test_a_raw_address(world, box, names):
    """At every port that something listens on; 80 and 443 are answered by the proxies, who refuse."""
    since = world.now()
    got = box.do("together([lambda p=p, a=a: tcp(a, p, 'GET / HTTP/1.0\\r\\n\\r\\n', QUICK) for a in (web, other) "
                 "for p in (80, 443, 8080, 8443, echo_port, database, 22, 25, 853)] + "
                 "[lambda p=p: udp(web, p, timeout=QUICK) for p in (443, echo_port, 123)])",
                 web=WEB, other=OTHER, echo_port=ECHO, database=DATABASE)
    assert [each for each in got if "200 OK" in each["got"] or each["got"].startswith("hello")] == []
    assert_good_still_works(world, box, names)
    assert len(world.met(since, kind="tcp")) == 1 and world.met(since, kind="udp") == []


def test_the_address_that_was_dialled_does_not_count(world, box, names):
    """An allowed name sent to a stranger's address ends at the address that the name has."""
    since = world.now()
    got = box.do("together([lambda: http(evil, good), lambda: https(evil, good, ca=None)])",
                 evil=EVIL, good=names["good"])
    assert [each["json"]["address"] for each in got] == [WEB, WEB]
    assert {met["address"] for met in world.met(since, kind="tcp")} == {WEB}


# --- HTTP ---

GET = "GET /x HTTP/1.1\r\n"
HTTP_TRICKS = {
    "another name": GET + "Host: {bad}\r\n\r\n",
    "no name": GET + "\r\n",
    "no name, old": "GET /x HTTP/1.0\r\n\r\n",
    "oldest": "GET /x\r\n",
    "an empty name": GET + "Host:\r\n\r\n",
    "two names": GET + "Host: {good}\r\nHost: {bad}\r\n\r\n",
    "two names, turned": GET + "Host: {bad}\r\nHost: {good}\r\n\r\n",
    "the same name twice": GET + "Host: {good}\r\nHost: {good}\r\n\r\n",
    "absolute": "GET http://{bad}/x HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "absolute, turned": "GET http://{good}/x HTTP/1.1\r\nHost: {bad}\r\n\r\n",
    "absolute, https": "GET https://{bad}/x HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "absolute with user": "GET http://{good}@{bad}/x HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "absolute with backslash": "GET http://{bad}\\@{good}/x HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "a NUL": GET + "Host: {good}\0.{bad}\r\n\r\n",
    "a NUL before": GET + "Host: {bad}\0{good}\r\n\r\n",
    "user in host": GET + "Host: {good}@{bad}\r\n\r\n",
    "a path in host": GET + "Host: {bad}/{good}\r\n\r\n",
    "a fragment in host": GET + "Host: {bad}#{good}\r\n\r\n",
    "a comma": GET + "Host: {good}, {bad}\r\n\r\n",
    "a blank": GET + "Host: {good} {bad}\r\n\r\n",
    "a blank before the colon": GET + "Host : {bad}\r\n\r\n",
    "folded": GET + "Host: {good}\r\n {bad}\r\n\r\n",
    "folded, empty": GET + "Host:\r\n {bad}\r\n\r\n",
    "a bare line feed": GET + "X: y\nHost: {bad}\r\nHost: {good}\r\n\r\n",
    "line feeds alone": "GET /x HTTP/1.1\nHost: {bad}\n\n",
    "a bare carriage return": GET + "X: y\rHost: {bad}\r\nHost: {good}\r\n\r\n",
    "percent": GET + "Host: %62ad{bad}\r\n\r\n",
    "another name with a dot": GET + "Host: {bad}.\r\n\r\n",
    "another name, capital": GET + "Host: {BAD}\r\n\r\n",
    "below it": GET + "Host: www.{good}\r\n\r\n",
    "before it": GET + "Host: {good}.evil.example\r\n\r\n",
    "glued to it": GET + "Host: evil{good}\r\n\r\n",
    "two dots": GET + "Host: {good}..\r\n\r\n",
    "a dot before": GET + "Host: .{good}\r\n\r\n",
    "letters beyond ASCII": GET + "Host: g\xf6od.example\r\n\r\n",
    "a dot beyond ASCII": GET + "Host: good\xe3\x80\x82example\r\n\r\n",
    "another port": GET + "Host: {good}:22\r\n\r\n",
    "no port": GET + "Host: {good}:x\r\n\r\n",
    "a huge port": GET + "Host: {good}:65616\r\n\r\n",
    "CONNECT": "CONNECT {bad}:443 HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "CONNECT to it": "CONNECT {good}:80 HTTP/1.1\r\nHost: {good}\r\n\r\nGET / HTTP/1.1\r\nHost: {bad}\r\n\r\n",
    "CONNECT to an address": "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "h2c": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    "version 2": "GET /x HTTP/2.0\r\nHost: {good}\r\n\r\n",
    "SOCKS 4": "\x04\x01\0\x50\x2d\x5b\0\x0auser\0",
    "SOCKS 5": "\x05\x01\0\x05\x01\0\x03\x03bad\0\x50",
    "TLS": "\x16\x03\x01\0\x05\x01\0\0\x01\0",
    "SSH": "SSH-2.0-x\r\n",
    "a PROXY line": "PROXY TCP4 10.0.0.1 10.0.0.2 1 80\r\nGET / HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "two lengths": "POST /x HTTP/1.1\r\nHost: {good}\r\nContent-Length: 0\r\nContent-Length: 50\r\n\r\n",
    "both framings": "POST /x HTTP/1.1\r\nHost: {good}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: {bad}\r\n\r\n",
    "a framing in disguise": "POST /x HTTP/1.1\r\nHost: {good}\r\nTransfer-Encoding: xchunked\r\n\r\n"
                             "GET /smuggled HTTP/1.1\r\nHost: {bad}\r\n\r\n",
    "a framing with a blank": "POST /x HTTP/1.1\r\nHost: {good}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a signed length": "POST /x HTTP/1.1\r\nHost: {good}\r\nContent-Length: +3\r\n\r\nabc",
}
LITERALS = ["169.254.169.254", "169.254.169.254.", "2852039166", "0xa9fea9fe", "0XA9FEA9FE", "0xa9.0xfe.0xa9.0xfe",
            "0251.0376.0251.0376", "169.254.43518", "169.16689662", "[::ffff:169.254.169.254]",
            "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[fd00:ec2::254]", "[::1]",
            "127.0.0.1", "127.1", "0", "localhost", "10.77.0.5", "0x0a4d0005", "169.254.169.254:80",
            "00000251.0000376.0251.0376", "[::169.254.169.254]", "[fe80::1%25eth0]", WEB, "755695626"]
for _literal in LITERALS:
    HTTP_TRICKS[f"the address {_literal}"] = GET + f"Host: {_literal}\r\n\r\n"
    HTTP_TRICKS[f"the absolute address {_literal}"] = f"GET http://{_literal}/x HTTP/1.1\r\nHost: {_literal}\r\n\r\n"


def fill(names, text):
    return text.format(BAD=names["bad"].upper(), **names)


def test_tricks_of_http(world, box, names):
    since = world.now()
    requests = {trick: fill(names, text) for trick, text in HTTP_TRICKS.items()}
    got = box.do("""
result = {}
for at in range(0, len(tricks), 60):
    batch = tricks[at:at + 60]
    result.update(zip([name for name, _ in batch], together([
        lambda t=t: tcp(web, 80, t, QUICK, enough=b'\\r\\n\\r\\n') for _, t in batch])))
""", tricks=list(requests.items()), web=WEB)
    through = {trick: each for trick, each in got.items() if "200 OK" in each["got"] or "101 " in each["got"][:12]}
    assert through == {}
    assert_good_still_works(world, box, names)
    # Not one byte of any of them went anywhere: the one that was met is the last one.
    assert len(world.met(since, kind="tcp")) == 1, world.met(since)
    assert len(world.met(since, kind="http")) == 1, world.met(since, kind="http")


@pytest.mark.parametrize("host", ["{good}", "{GOOD}", "{good}.", "{good}:80", " {good}\t", "{GOOD}.:80"])
def test_spellings_that_mean_it(world, box, names, host):
    since = world.now()
    got = box.do("http(web, host)", web=WEB, host=host.format(good=names["good"], GOOD=names["good"].upper()))
    assert got["status"] == 200, got
    [met] = world.met(since, kind="http")
    assert met["host"].lower().rstrip(".").removesuffix(":80").rstrip(".") == names["good"]


def test_an_absolute_target_that_means_it(world, box, names):
    got = box.do("answer_of(tcp(web, 80, request))", web=WEB, request=(
        f"GET http://{names['good']}/abs HTTP/1.1\r\nHost: {names['good']}\r\nConnection: close\r\n\r\n"))
    assert got["status"] == 200 and "/abs" in got["json"]["line"], got


def test_each_request_of_a_connection_is_judged(world, box, names):
    """Pipelined, and one after the other: the second goes nowhere, the first is answered."""
    good, bad = ("GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, names[path]) for path in ("good", "bad"))
    for data, pause in ((good + bad, 0), ([good, bad], 0.3)):
        since = world.now()
        got = box.do("tcp(web, 80, data, timeout=10, pause=pause)", web=WEB, data=data, pause=pause)
        assert got["got"].count("200 OK") == 1, got
        assert [met["host"] for met in world.met(since, kind="http")] == [names["good"]]


def test_many_requests_on_a_connection(world, box, names):
    """Pipelining that is allowed, with bodies of both kinds, arrives in order."""
    good = names["good"]
    data = (f"POST /1 HTTP/1.1\r\nHost: {good}\r\nContent-Length: 5\r\n\r\nhello"
            f"POST /2 HTTP/1.1\r\nHost: {good}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            f"GET /chunked HTTP/1.1\r\nHost: {good}\r\n\r\n"
            f"GET /4 HTTP/1.1\r\nHost: {good}\r\nConnection: close\r\n\r\n")
    since = world.now()
    got = box.do("tcp(web, 80, data)", web=WEB, data=data)
    assert got["got"].count("200 OK") == 4, got
    assert [(met["line"].split()[1], met["body"]) for met in world.met(since, kind="http")] == [
        ("/1", "hello"), ("/2", "abc"), ("/chunked", ""), ("/4", "")]


def test_a_request_in_pieces(world, box, names):
    request = f"GET /slow HTTP/1.1\r\nHost: {names['good']}\r\nConnection: close\r\n\r\n"
    got = box.do("answer_of(tcp(web, 80, list(request), pause=0.002))", web=WEB, request=request)
    assert got["status"] == 200, got


def test_an_upgrade_is_a_tunnel_to_the_same_place(world, box, names):
    """A WebSocket works; what is said in it is between the two, and no request any more."""
    since = world.now()
    got = box.do("tcp(web, 80, [request, 'GET / HTTP/1.1\\r\\nHost: ' + bad + '\\r\\n\\r\\n'], pause=0.3, "
                 "enough=bad.encode())", web=WEB, bad=names["bad"], request=(
                     f"GET /upgrade HTTP/1.1\r\nHost: {names['good']}\r\nConnection: Upgrade\r\n"
                     "Upgrade: websocket\r\n\r\n"))
    assert got["got"].startswith("HTTP/1.1 101") and names["bad"] in got["got"], got
    assert [met["host"] for met in world.met(since, kind="http")] == [names["good"]]


def test_an_upgrade_to_h2_is_not_passed_on(world, box, names):
    """HTTP/2 in the clear would carry requests that nobody reads."""
    since = world.now()
    box.do("tcp(web, 80, request, timeout=10, enough=b'\\r\\n\\r\\n')", web=WEB, request=(
        f"GET /upgrade HTTP/1.1\r\nHost: {names['good']}\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"))
    for met in world.met(since, kind="http"):
        assert "h2c" not in str(met["fields"]), met


# --- TLS ---

TLS_TRICKS = {
    "another name": "client_hello(server_names([bad]))",
    "no name": "client_hello(b'')",
    "an empty name": "client_hello(server_names(['']))",
    "an empty list": "client_hello(extension(0, b'\\0\\0'))",
    "an empty extension": "client_hello(extension(0, b''))",
    "two names": "client_hello(server_names([good, bad]))",
    "two names, turned": "client_hello(server_names([bad, good]))",
    "two extensions": "client_hello(server_names([good]) + server_names([bad]))",
    "two extensions, turned": "client_hello(server_names([bad]) + server_names([good]))",
    "a kind that nobody knows": "client_hello(server_names([good], kind=7))",
    "a NUL": "client_hello(server_names([good + '\\0.' + bad]))",
    "a NUL before": "client_hello(server_names([bad + '\\0' + good]))",
    "another name with a dot": "client_hello(server_names([bad + '.']))",
    "another name, capital": "client_hello(server_names([bad.upper()]))",
    "below it": "client_hello(server_names(['www.' + good]))",
    "glued to it": "client_hello(server_names(['evil' + good]))",
    "two dots": "client_hello(server_names([good + '..']))",
    "a port": "client_hello(server_names([good + ':443']))",
    "letters beyond ASCII": "client_hello(server_names(['g\\xf6od.example']))",
    "a wildcard": "client_hello(server_names(['*.example']))",
    "an address": "client_hello(server_names([web]))",
    "a hexadecimal address": "client_hello(server_names(['0xa9fea9fe']))",
    "an encrypted hello": "client_hello(server_names([good]) + extension(0xfe0d, b'\\0\\0\\x01\\0\\x01\\x07\\0\\0\\0\\0'))",
    "a draft of an encrypted hello": "client_hello(server_names([good]) + extension(0xffce, b'\\x13\\x01\\0\\x1d\\0\\0'))",
    "another name in records": "client_hello(server_names([bad]), records=40)",
    "padding before another name": "client_hello(extension(21, b'\\0' * 14000) + server_names([bad]))",
    "a name beyond the message": "client_hello(extension(0, b'\\0\\xff\\0\\0\\xfc' + good.encode()))",
    "HTTP": "b'GET / HTTP/1.1\\r\\nHost: ' + good.encode() + b'\\r\\n\\r\\n'",
    "SSH": "b'SSH-2.0-x\\r\\n'",
    "SOCKS": "b'\\x05\\x01\\0\\x05\\x01\\0\\x01' + socket.inet_aton(web) + b'\\x01\\xbb'",
    "an old hello": "b'\\x80\\x2e\\x01\\x03\\x01\\0\\x15\\0\\0\\0\\x10' + b'\\0\\0\\x2f' * 7 + b'c' * 16",
    "another record first": "b'\\x15\\x03\\x01\\0\\x02\\x01\\0' + client_hello(server_names([bad]))",
    "an empty record": "b'\\x16\\x03\\x01\\0\\0' + client_hello(server_names([bad]))",
    "a message of megabytes": "b'\\x16\\x03\\x01\\x40\\0\\x01\\xff\\xff\\xff' + b'x' * 16380",
    "garbage": "bytes(range(256)) * 8",
}


def test_tricks_of_tls(world, box, names):
    since = world.now()
    got = box.do("""
result, tricks = {}, [(name, eval(text)) for name, text in tricks.items()]
for at in range(0, len(tricks), 20):
    batch = tricks[at:at + 20]
    result.update(zip([name for name, _ in batch], together([
        lambda t=t: tcp(web, 443, [t], QUICK, enough=b'\\r\\n\\r\\n') for _, t in batch])))
result = {name: each for name, each in result.items() if served(each) or 'NOT TLS' in each['got']}
""", tricks=TLS_TRICKS, web=WEB, **names)
    assert got == {}
    assert_good_still_works(world, box, names)
    assert len(world.met(since, kind="tcp")) == 1, world.met(since, kind="tcp")


@pytest.mark.parametrize("made", [
    "client_hello(server_names([good]))", "client_hello(server_names([good.upper()]))",
    "client_hello(server_names([good]), records=60)", "client_hello(server_names([good]), padding=12000)",
    "client_hello(extension(0x6a6a, b'') + server_names([good]))",
])
def test_hellos_that_mean_it(world, box, names, made):
    """At once, in records of a few bytes, and byte by byte."""
    since = world.now()
    got = box.do(f"data = {made}\nresult = together([lambda: served(tcp(web, 443, [data], enough=b'\\x16')), lambda: "
                 "served(tcp(web, 443, [data[:1], data[1:5], data[5:11], data[11:]], pause=0.05, enough=b'\\x16'))])",
                 web=WEB, **names)
    assert got == [True, True]
    assert {met["sni"].lower() for met in world.met(since, service="tls")} == {names["good"]}


def test_nobody_ends_the_tls_of_others(world, box, names):
    """The certificate is the server's own, checked inside against the CA of the world."""
    box.write("/tmp/world.crt", world.ca.read_text())
    got = box.do("https(web, good, ca='/tmp/world.crt')", web=WEB, good=names["good"])
    assert got["status"] == 200 and got["json"]["sni"] == names["good"], got


def test_a_hello_that_never_ends_holds_nobody_up(world, box, names):
    """Half a hello, and half a request, for as long as the proxies like; others are served meanwhile."""
    got = box.do("""
kept = []
for port, data in ((443, client_hello(server_names([good]))[:30]), (80, b'GET / HTTP/1.1\\r\\nHost: ')) * 8:
    sock = socket.create_connection((web, port), timeout=PATIENT)
    sock.sendall(data)
    kept.append(sock)
result = http(web, good)
""", web=WEB, good=names["good"])
    assert got["status"] == 200, got


def test_quic_is_refused(world, box, names):
    """UDP 443 would carry names that nobody can see, also to an address that was just looked up."""
    since = world.now()
    got = box.do("[addresses(good), udp(web, 443, timeout=QUICK)]", web=WEB, good=names["good"])
    assert got[0] == [WEB] and got[1]["got"] == ""
    assert world.met(since, kind="udp", port=443) == []


def test_private_ranges_are_not_named_either(world, boxes):
    """A name that is allowed, and leads to where nobody may go: refused by proxies and resolver."""
    inner = [world.name(address, label="inner") for address in (METADATA, PRIVATE, "127.0.0.1", "45.90.0.2", "0.0.0.0")]
    inner.append(world.name("::ffff:a9fe:a9fe", label="inner"))
    box, since, before = boxes("allowlist", allow=inner), world.now(), world.host.now()
    got = box.do("together([lambda n=n: http(web, n, timeout=10) for n in inner] + "
                 "[lambda n=n: https(web, n, timeout=10) for n in inner])", web=WEB, inner=inner)
    assert [each for each in got if each.get("status") == 200] == []
    assert box.do("[addresses(n) for n in inner]", inner=inner) == [[]] * len(inner)
    assert [met for met in world.met(since) if met["kind"] != "dns"] == [] and world.host.met(before) == []
