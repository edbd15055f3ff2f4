# SPDX-License-Identifier: Apache-2.0
"""Terminals: who gets at them from outside, and what a sandbox can do to them from inside."""

import pytest

from cella_auth import Workspace, fresh, fresh_address
from cella_websocket import Refused, Terminal


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def refused(server, name, **how):
    """(status, code) of the answer to a client that must not get a terminal."""
    with pytest.raises(Refused) as why:
        Terminal(server, name, **how)
    return why.value.status, why.value.code()


@pytest.fixture
def workspace(server):
    made = Workspace(server, fresh("tty"))
    yield made
    made.delete()


def test_no_key_no_terminal(server, sandbox):
    source = fresh_address()
    for how in ({"fields": {}}, {"fields": bearer("wrong")}, {"fields": {}, "token": "wrong"}):
        assert refused(server, sandbox.name, source=source, **how) == (401, "UNAUTHORIZED")
    with Terminal(server, sandbox.name, fields={}, token=server.key, command="echo by token") as t:
        t.await_end()
        assert b"by token\r\n" in t.seen


def test_reading_is_not_typing(server, sandbox):
    """A key for looking lists sessions, but gets into none."""
    made = server.request("POST", "/v0/api-keys", {"name": fresh("looks"), "scopes": ["read"]})
    assert made.status == 201, made
    key = made.json()
    base = f"/v0/sandbox/{sandbox.name}/terminal"
    try:
        assert refused(server, sandbox.name, fields=bearer(key["secret"])) == (403, "FORBIDDEN")
        assert refused(server, sandbox.name, fields={}, token=key["secret"]) == (403, "FORBIDDEN")
        fields = bearer(key["secret"])
        assert server.request("GET", f"{base}/sessions", headers=fields).status == 200
        for method, path in (("POST", f"{base}/sessions"), ("DELETE", f"{base}/x"), ("GET", base)):
            assert server.request(method, path, headers=fields).status == 403, (method, path)
    finally:
        server.request("DELETE", f"/v0/api-keys/{key['id']}")


def test_another_workspace(server, sandbox, workspace):
    """Neither by the sandbox's name, nor by the address of its workspace, nor by the session's id."""
    key = workspace.key("read", "write")
    base = f"/v0/sandbox/{sandbox.name}/terminal"
    with Terminal(server, sandbox.name, sessionId="private", command="echo secret; cat") as t:
        t.await_(b"secret\r\n")
        for how in ({}, {"sessionId": "private"}, {"sessionId": "private", "create": "false"}):
            assert refused(server, sandbox.name, fields=bearer(key), **how) == (
                404, "SANDBOX_NOT_FOUND")
            assert refused(server, sandbox.name, base="/default/sandbox", fields=bearer(key),
                           **how)[0] in (403, 404)
        assert server.request("GET", f"{base}/sessions", headers=bearer(key)).status == 404
        assert server.request("DELETE", f"{base}/private", headers=bearer(key)).status == 404
        # A sandbox of the same name in the other workspace is another one.
        workspace.create(sandbox.name, enabled=True)
        assert refused(server, sandbox.name, fields=bearer(key), sessionId="private",
                       create="false") == (404, "TERMINAL_NOT_FOUND")
        t.type("still mine\n")
        t.await_(b"still mine\r\nstill mine\r\n")


def test_another_sandbox(server, sandbox):
    other = server.create()
    try:
        with Terminal(server, sandbox.name, sessionId="private", command="echo secret; cat") as t:
            t.await_(b"secret\r\n")
            assert refused(server, other.name, sessionId="private", create="false") == (
                404, "TERMINAL_NOT_FOUND")
            answer = server.request("DELETE", f"/v0/sandbox/{other.name}/terminal/private")
            assert answer.status == 404
            with Terminal(server, other.name, sessionId="private", command="echo mine; cat") as u:
                u.await_(b"mine\r\n")
                assert b"secret" not in u.seen
    finally:
        other.delete()


def test_a_strangers_page(server_factory):
    """Where no key is asked for, a page from elsewhere must not get a shell through its visitor."""
    server = server_factory("--no-auth")
    sandbox = server.create()
    for origin in ("https://evil.example", "http://evil.example:7070", "null"):
        status, _ = refused(server, sandbox.name, fields={"Origin": origin})
        assert status == 403, origin
    with Terminal(server, sandbox.name, fields={"Origin": server.url}, command="echo own") as t:
        t.await_end()
        assert b"own\r\n" in t.seen
    sandbox.delete()


def test_root_inside_changes_the_devices(server, sandbox):
    """/dev/ptmx is root's to replace; terminals come from the file system itself."""
    sandbox.run("rm -f /dev/ptmx; mkfifo /dev/ptmx; mv /dev/tty /dev/tty.gone 2>/dev/null; true")
    with Terminal(server, sandbox.name, command="tty; echo works") as t:
        assert t.await_end()["exitCode"] == 0
        assert b"/dev/pts/" in t.seen and b"works\r\n" in t.seen


def test_one_user_cannot_read_anothers(server, sandbox):
    with Terminal(server, sandbox.name, command="tty; cat") as mine:
        mine.await_(b"\r\n")
        path = mine.seen.split(b"\r\n")[0].decode()
        with Terminal(server, sandbox.name, user="nobody",
                      command=f"cat < {path}; echo x > {path}; echo tried") as theirs:
            theirs.await_end()
        assert theirs.seen.count(b"ermission denied") == 2, theirs.seen
        mine.type("quiet\n")
        mine.await_(b"quiet\r\nquiet\r\n")
        assert b"x\r\n" not in mine.seen.replace(b"quiet", b"")


def test_one_sandbox_does_not_take_all_there_are(server, sandbox):
    """The kernel's pseudo-terminals are for all sandboxes together."""
    count = sandbox.run("python3 -c '\n"
                        "import os\n"
                        "n = 0\n"
                        "try:\n"
                        "    while True:\n"
                        "        os.open(\"/dev/pts/ptmx\", os.O_RDWR | os.O_NOCTTY); n += 1\n"
                        "except OSError:\n"
                        "    print(n)\n"
                        "'")
    assert 0 < int(count) <= 256
    # They are free again with their process.
    with Terminal(server, sandbox.name, command="echo again") as t:
        t.await_end()
        assert b"again\r\n" in t.seen
