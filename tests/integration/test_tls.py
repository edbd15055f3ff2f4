# SPDX-License-Identifier: Apache-2.0
"""https on the port of http: the server's own certificate, given ones, and what clients make of them."""

import contextlib
import http.client
import json
import os
import pathlib
import socket
import ssl
import stat
import subprocess
import tempfile
import urllib.parse

import pytest

from cella_server import Answer, bin_dir, wait_until


def port_of(server):
    return urllib.parse.urlsplit(server.url).port


def trusting(server, cafile=None):
    return ssl.create_default_context(cafile=cafile or server.data / "tls" / "ca.pem")


def ask(server, method, path, body=None, headers=None, host="localhost", context=None):
    """As server.request(), by TLS."""
    fields = {"Authorization": f"Bearer {server.key}", **(headers or {})}
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
        fields["Content-Type"] = "application/json"
    connection = http.client.HTTPSConnection(host, port_of(server), timeout=60,
                                             context=context or trusting(server))
    with contextlib.closing(connection):
        connection.request(method, path, body, fields)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())


def certificate_of(server, host="127.0.0.1", context=None):
    with socket.create_connection((host, port_of(server)), timeout=30) as plain, \
            (context or trusting(server)).wrap_socket(plain, server_hostname=host) as tls:
        return tls.getpeercert()


def names_in(certificate):
    return {value for _, value in certificate["subjectAltName"]}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_the_servers_own_certificate_is_believed_by_who_trusts_its_authority(server, host):
    answer = ask(server, "GET", "/v0/sandbox", host=host)
    assert answer.status == 200 and "sandboxes" in answer.json()
    assert server.request("GET", "/v0/sandbox").status == 200


def test_who_does_not_trust_it_does_not_get_in(server):
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(server, "GET", "/health", context=ssl.create_default_context())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_nothing_below_tls_1_2(server):
    context = trusting(server)
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        ask(server, "GET", "/health", context=context)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_files_of_any_size_pass(server, sandbox, version):
    context = trusting(server)
    context.minimum_version = context.maximum_version = version
    for size in (0, 1, 16 * 1024, 5 * 1000 * 1000):
        content = os.urandom(size)
        path = f"{sandbox.base}/filesystem/tmp/file-{size}"
        octets = {"Content-Type": "application/octet-stream"}
        assert ask(server, "PUT", path, content, octets, context=context).status == 200
        answer = ask(server, "GET", path, None, {"Accept": "application/octet-stream"}, context=context)
        assert answer.body == content
        assert sandbox.read(f"/tmp/file-{size}") == content


def test_a_stream_of_output_passes_as_it_comes(server, sandbox):
    sandbox.run("mkfifo /tmp/gate")
    pid = sandbox.spawn("echo first; cat /tmp/gate; echo last")
    connection = http.client.HTTPSConnection("localhost", port_of(server), timeout=60,
                                             context=trusting(server))
    with contextlib.closing(connection):
        connection.request("GET", f"{sandbox.base}/process/{pid}/logs/stream", None,
                           {"Authorization": f"Bearer {server.key}"})
        stream = connection.getresponse()
        assert b"first" in stream.readline()
        sandbox.run("echo middle > /tmp/gate")
        rest = stream.read()
    assert b"middle" in rest and b"last" in rest


def test_the_command_line_trusts_the_authority_in_the_data_folder(server, sandbox, tmp_path):
    url = f"https://localhost:{port_of(server)}"
    by_tls = ("--url", url, "--api-key", server.key)  # the folder's key would go over its socket
    done = server.cli(*by_tls, "run", sandbox.name, "process", "exec", "echo by TLS")
    assert (done.returncode, done.stdout) == (0, "by TLS\n"), done.stderr
    big = tmp_path / "big"
    big.write_bytes(os.urandom(3 * 1000 * 1000))
    assert server.cli(*by_tls, "cp", big, f"{sandbox.name}:/tmp/big").returncode == 0
    assert server.cli(*by_tls, "cp", f"{sandbox.name}:/tmp/big", tmp_path / "back").returncode == 0
    assert (tmp_path / "back").read_bytes() == big.read_bytes()


def test_the_command_line_says_what_is_wrong_with_a_certificate(server, tmp_path):
    url = f"https://localhost:{port_of(server)}"
    done = subprocess.run([server.bin / "cella", "--data", tmp_path, "--url", url, "sandbox", "list"],
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "CELLA_API_KEY": server.key})
    assert done.returncode != 0 and "certificate" in done.stderr, done


def test_a_websocket_through_the_command_line(server, sandbox):
    """A process whose input and output are attached, which is a WebSocket."""
    url = f"https://127.0.0.1:{port_of(server)}"
    done = server.cli("--url", url, "--api-key", server.key, "run", sandbox.name, "process", "exec", "--stdin", "cat",
                      input="x" * 300000)
    assert (done.returncode, len(done.stdout)) == (0, 300000), done.stderr


def test_tls_ca_prints_the_authority(server):
    done = server.cli("tls", "ca")
    assert done.returncode == 0
    assert done.stdout == (server.data / "tls" / "ca.pem").read_text()
    ssl.create_default_context(cadata=done.stdout)


def test_keys_are_roots_alone(server):
    for name in ("ca.key", "server.pem"):
        info = (server.data / "tls" / name).stat()
        assert (info.st_uid, stat.S_IMODE(info.st_mode)) == (0, 0o600)
    assert stat.S_IMODE((server.data / "tls" / "ca.pem").stat().st_mode) == 0o644


def test_half_a_handshake_holds_nobody_up(server):
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            half = stack.enter_context(socket.create_connection(("127.0.0.1", port_of(server))))
            half.sendall(hello)
        assert ask(server, "GET", "/health").status == 200
        assert server.request("GET", "/health").status == 200


@pytest.mark.parametrize("garbage", [b"\x16" * 1000, b"\x16GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                     b"\x16\x03\x01\xff\xff" + bytes(70000)])
def test_what_is_no_tls_is_refused(server, garbage):
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=60) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
    assert ask(server, "GET", "/health").status == 200


def test_it_stays_the_same_through_restarts(server_factory):
    server = server_factory()
    before = {path.name: path.read_bytes() for path in (server.data / "tls").iterdir()}
    assert set(before) == {"ca.pem", "ca.key", "server.pem"}
    pids = server.kill("cellad")
    server.wait_recovered(pids, "cellad")
    assert ask(server, "GET", "/health").status == 200
    server.stop()
    server.start()
    assert {path.name: path.read_bytes() for path in (server.data / "tls").iterdir()} == before
    assert ask(server, "GET", "/health").status == 200


def test_other_names_get_another_certificate_of_the_same_authority(server_factory):
    server = server_factory()
    authority = (server.data / "tls" / "ca.pem").read_bytes()
    assert {"localhost", "127.0.0.1", "0:0:0:0:0:0:0:1", "*.localhost"} <= names_in(certificate_of(server))
    server.stop()
    server.args += ["--public-url", "https://box.example.test:8443", "--domain", "boxes.example.test"]
    server.start()
    assert {"localhost", "box.example.test", "boxes.example.test", "*.boxes.example.test"} <= names_in(
        certificate_of(server))
    assert (server.data / "tls" / "ca.pem").read_bytes() == authority


def test_half_an_authority(server_factory):
    """Killed between key and certificate, nobody trusts it yet: it is made anew. A certificate that
    people trust without its key is never replaced."""
    server = server_factory()
    server.stop()
    folder = server.data / "tls"
    (folder / "ca.pem").unlink()
    server.start()
    assert ask(server, "GET", "/health").status == 200
    server.stop()
    (folder / "server.pem").unlink()
    key = (folder / "ca.key").read_bytes()
    (folder / "ca.key").unlink()
    done = subprocess.run([server.bin / "cella", "server", "--data", server.data, "--listen", "127.0.0.1:0"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "ca.key" in done.stderr, done
    (folder / "ca.key").write_bytes(key)
    (folder / "ca.key").chmod(0o600)
    server.start()
    assert ask(server, "GET", "/health").status == 200


def test_a_certificate_that_is_given(server_factory, tmp_path):
    pair = [tmp_path / "cert.pem", tmp_path / "key.pem"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=given", "-addext", "subjectAltName=DNS:localhost",
                    "-out", pair[0], "-keyout", pair[1]], check=True, capture_output=True)
    server = server_factory("--tls-cert", pair[0], "--tls-key", pair[1])
    assert ask(server, "GET", "/health", context=trusting(server, pair[0])).status == 200
    assert list((server.data / "tls").iterdir()) == []


@pytest.mark.parametrize("args, words", [
    (["--tls-key", "/etc/hostname"], "--tls-cert"),
    (["--tls-cert", "/nonexistent"], "/nonexistent"),
    (["--tls-cert", "/etc/hostname"], "certificate"),
    (["--tls", "maybe"], "on|off"),
])
def test_bad_options_are_told_before_anything_starts(args, words):
    with tempfile.TemporaryDirectory(prefix="cella-test-", dir="/tmp") as folder:
        os.chmod(folder, 0o711)
        done = subprocess.run([bin_dir() / "cella", "server", "--data", f"{folder}/data",
                               "--listen", "127.0.0.1:0", *args],
                              capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and words in done.stderr, done


def test_it_can_be_off(server_factory):
    server = server_factory("--tls", "off")
    assert server.request("GET", "/health").status == 200
    assert not list(pathlib.Path(server.data / "tls").iterdir())
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=60) as connection:
        connection.sendall(b"\x16\x03\x01\x00\x05hello\r\n\r\n")
        wait_until(lambda: b"HTTP/1.1 400" in connection.recv(4096), 10, "a refusal in HTTP")


def test_addresses_in_answers_are_those_that_were_used(server, sandbox):
    name = f"/v0/sandboxes/{sandbox.name}"
    assert ask(server, "GET", name).json()["metadata"]["url"].startswith("https://localhost:")
    assert server.request("GET", name).json()["metadata"]["url"].startswith("http://127.0.0.1:")
