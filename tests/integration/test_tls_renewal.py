# SPDX-License-Identifier: Apache-2.0
"""Certificates that are renewed while the server runs, and clients that behave badly before they are known."""

import contextlib
import http.client
import os
import pty
import signal
import socket
import ssl
import subprocess
import urllib.parse

import pytest

from cella_server import Server, wait_until


def port_of(server):
    return urllib.parse.urlsplit(server.url).port


def openssl(*words, **kwargs):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, **kwargs)


def make_pair(folder, name, days="2"):
    """A certificate for localhost that signs itself, in folder/cert.pem and folder/key.pem."""
    made = [folder / f".{part}" for part in ("cert", "key")]
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", days,
            "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost",
            "-out", made[0], "-keyout", made[1])
    os.replace(made[1], folder / "key.pem")
    os.replace(made[0], folder / "cert.pem")


def shake_hands(server, context=None, name="localhost", host="127.0.0.1"):
    """A connection, whose certificate is whoever's."""
    if context is None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, port_of(server)), timeout=60) as plain:
        return context.wrap_socket(plain, server_hostname=name)


def served(server):
    """The certificate that a new connection gets, in DER."""
    with shake_hands(server) as tls:
        return tls.getpeercert(binary_form=True)


def in_file(path):
    text = path.read_text()
    return ssl.PEM_cert_to_DER_cert(text[:text.index("-----END CERTIFICATE-----") + 26])


def look_again(server):
    server.process.send_signal(signal.SIGHUP)


def await_served(server, wanted):
    wait_until(lambda: served(server) == wanted, 30, lambda: f"the renewed certificate\n{server.log()}")


def ask(connection):
    connection.request("GET", "/health")
    answer = connection.getresponse()
    answer.read()
    return answer.status


# --- one server for all of these ---

@pytest.fixture(scope="module")
def named(request):
    made = Server("--listen", "[::1]:0", "--domain", "boxes.example.test")
    request.addfinalizer(made.close)
    return made


@pytest.fixture(scope="module")
def stalled(named):
    """Clients that began a handshake when the tests did, and did not go on."""
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(socket.create_connection(("::1", port_of(named)))) for _ in range(50)]
        for number, connection in enumerate(made):
            connection.sendall(hello[:1 + number % len(hello)])
        yield made


def trusting(server):
    return ssl.create_default_context(cafile=server.data / "tls" / "ca.pem")


@pytest.mark.usefixtures("stalled")
@pytest.mark.parametrize("name", ["boxes.example.test", "abc.boxes.example.test", "3000-abc.boxes.example.test"])
def test_names_below_the_domain(named, name):
    with shake_hands(named, trusting(named), name, "::1") as tls:
        assert tls.version() in ("TLSv1.2", "TLSv1.3")
        tls.sendall(f"GET /health HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        assert tls.recv(100).startswith(b"HTTP/1.1 ")


def test_a_name_of_somebody_else_is_not_in_it(named):
    for name in ("boxes.example", "a.b.boxes.example.test", "example.test"):
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(named, trusting(named), name, "::1")


def test_by_ipv6(named):
    connection = http.client.HTTPSConnection("::1", port_of(named), timeout=60, context=trusting(named))
    with contextlib.closing(connection):
        assert ask(connection) == 200
    url = f"https://[::1]:{port_of(named)}"
    done = named.cli("--url", url, "--api-key", named.key, "sandbox", "list")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("offered, chosen", [
    (["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), (None, None),
])
def test_http_1_1_is_what_is_spoken(named, offered, chosen):
    context = trusting(named)
    if offered:
        context.set_alpn_protocols(offered)
    with shake_hands(named, context, "boxes.example.test", "::1") as tls:
        assert tls.selected_alpn_protocol() == chosen


def test_who_speaks_nothing_else_is_told(named):
    context = trusting(named)
    context.set_alpn_protocols(["h2", "spdy/3"])
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol|alert"):
        shake_hands(named, context, "boxes.example.test", "::1")


def test_plain_bytes_inside_of_tls(named):
    """A client that falls back to plain HTTP in the middle is cut off, and nobody else notices."""
    for middle in (b"GET / HTTP/1.1\r\n\r\n", b"\x17\x03\x03\xff\xff" + bytes(100), b"\x15\x03\x03\x00\x02\x02\x28"):
        plain = socket.create_connection(("::1", port_of(named)), timeout=60)
        tls = trusting(named).wrap_socket(plain, server_hostname="boxes.example.test")
        with socket.socket(fileno=os.dup(tls.fileno())) as raw:
            raw.settimeout(60)
            raw.sendall(middle)
            with contextlib.suppress(OSError):
                raw.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while raw.recv(4096):
                    pass
        with contextlib.suppress(OSError):
            tls.close()
    assert named.request("GET", "/health").status == 200


def test_many_handshakes_and_no_word(named):
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(shake_hands(named, trusting(named), "boxes.example.test", "::1"))
        assert named.request("GET", "/health").status == 200


# --- renewal ---

def test_files_that_were_replaced_are_taken(server_factory, tmp_path):
    make_pair(tmp_path, "first")
    server = server_factory("--tls-cert", tmp_path / "cert.pem", "--tls-key", tmp_path / "key.pem")
    first = in_file(tmp_path / "cert.pem")
    assert served(server) == first
    trusting = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    old = http.client.HTTPSConnection("localhost", port_of(server), timeout=60, context=trusting)
    with contextlib.closing(old):
        assert ask(old) == 200
        make_pair(tmp_path, "second")
        second = in_file(tmp_path / "cert.pem")
        assert served(server) == first  # nobody has said anything yet
        look_again(server)
        await_served(server, second)
        assert ask(old) == 200  # goes on with what it began with
        assert old.sock.getpeercert(binary_form=True) == first
    # What does not fit is not taken, and said.
    before = (tmp_path / "key.pem").read_bytes()
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", tmp_path / "key.pem")
    look_again(server)
    wait_until(lambda: "stays as it is" in server.log(), 30, server.log)
    (tmp_path / "cert.pem").write_text("no certificate at all\n")
    look_again(server)
    wait_until(lambda: server.log().count("stays as it is") == 2, 30, server.log)
    assert served(server) == second
    # A cellad that is started now gets what is good.
    (tmp_path / "key.pem").write_bytes(before)
    pids = server.kill("cellad")
    server.wait_recovered(pids, "cellad")
    assert served(server) == second
    make_pair(tmp_path, "third")
    look_again(server)
    await_served(server, in_file(tmp_path / "cert.pem"))


def sign_by_authority(server, days):
    """Puts a certificate of the server's own authority in its place that ends in so many days."""
    folder, work = server.data / "tls", server.data / "tls" / "work"
    work.mkdir()
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=old",
            "-keyout", work / "key", "-out", work / "request")
    (work / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\n")
    openssl("x509", "-req", "-in", work / "request", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
            "-CAcreateserial", "-days", days, "-extfile", work / "names", "-out", work / "cert")
    (folder / "server.pem").write_text("".join((path.read_text() for path in (
        work / "cert", folder / "ca.pem", work / "key"))))
    for path in work.iterdir():
        path.unlink()
    work.rmdir()
    for left in folder.glob("*.srl"):
        left.unlink()


@pytest.mark.parametrize("days", ["10", "1"])
def test_its_own_is_made_anew_before_it_ends(server_factory, days):
    server = server_factory()
    folder = server.data / "tls"
    authority = (folder / "ca.pem").read_bytes()
    sign_by_authority(server, days)
    ending = in_file(folder / "server.pem")
    look_again(server)
    wait_until(lambda: in_file(folder / "server.pem") != ending, 30, server.log)
    await_served(server, in_file(folder / "server.pem"))
    assert (folder / "ca.pem").read_bytes() == authority
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    with shake_hands(server, context) as tls:
        assert ssl.cert_time_to_seconds(tls.getpeercert()["notAfter"]) > 0
    # Nothing to do: it stays.
    kept = in_file(folder / "server.pem")
    for _ in range(3):
        look_again(server)
    assert served(server) == kept and in_file(folder / "server.pem") == kept
    assert server.process.poll() is None


def test_where_tls_is_off_nothing_happens(server_factory):
    server = server_factory("--tls", "off")
    look_again(server)
    look_again(server)
    assert server.request("GET", "/health").status == 200
    assert not list((server.data / "tls").iterdir())


def test_the_server_ends_with_its_terminal(server_factory):
    """SIGHUP that a terminal's end sends is no request to look at certificates."""
    master, slave = pty.openpty()
    take = "import os, sys; os.open(sys.argv[1], os.O_RDWR | os.O_CLOEXEC); os.execv(sys.argv[2], sys.argv[2:])"
    server = server_factory(prefix=["python3", "-c", take, os.ttyname(slave)])
    os.close(slave)
    server.prefix = []  # for who cleans up behind it
    for _ in range(2):
        look_again(server)  # the terminal is there: nothing but a look
        assert server.request("GET", "/health").status == 200
    os.close(master)
    assert server.process.wait(timeout=120) == 0, server.log()


def test_who_does_not_go_on_is_dropped(stalled):
    """The last test: they had the others' time."""
    for connection in stalled:
        connection.settimeout(120)
        with contextlib.suppress(ConnectionError):
            while connection.recv(4096):
                pass
