# SPDX-License-Identifier: Apache-2.0
"""Behind a reverse proxy: who asks is whom a trusted proxy names, in the limits, in the audit log and for wrong keys;
from everybody else the same fields are words. (Every form of them is a unit test: api/forwarded.)"""

import json
import subprocess

import pytest

from cella_auth import call, fresh_address
from cella_server import PATIENCE, Server, wait_until

PROXY = "127.77.0.1"


@pytest.fixture(scope="module")
def proxied():
    from cella_fixtures import _requirements
    _requirements()
    made = Server("--trusted-proxy", "127.77.0.0/16", "--trusted-proxy", "10.9.0.0/16,fd99::/64", "--network", "off",
                  "--rate-limit", "read=1:3")
    yield made
    made.close()


def ask(server, key=None, source=PROXY, path="/v0/whoami", **fields):
    return call(server, "GET", path, key or server.key, None,
                {name.replace("_", "-"): value for name, value in fields.items()}, source)


def guess(server, times, **where):
    return [ask(server, f"cella_{i:043}", **where).status for i in range(times)]


def test_wrong_keys_are_counted_by_who_asks(proxied):
    guesser = {"X_Forwarded_For": "192.0.2.66"}
    assert 429 in guess(proxied, 40, **guesser)
    # Somebody else behind the same proxy is not made to wait, nor is the proxy itself.
    assert guess(proxied, 1, X_Forwarded_For="192.0.2.67") == [401]
    assert guess(proxied, 1) == [401]
    # Names that the guesser thinks up for himself are no others than he.
    for i in range(3):
        assert set(guess(proxied, 3, X_Forwarded_For=f"198.51.100.{i}, 192.0.2.66, 10.9.0.{i}")) <= {401, 429}
    assert 429 in guess(proxied, 40, X_Forwarded_For="198.51.100.9, 192.0.2.66")
    assert guess(proxied, 1, X_Forwarded_For="198.51.100.9") == [401]


def test_strangers_are_not_believed(proxied):
    """Who is no proxy and names somebody has him neither locked out nor counted."""
    source = fresh_address()
    assert 429 in guess(proxied, 40, source=source, X_Forwarded_For="192.0.2.80", Forwarded="for=192.0.2.80")
    assert guess(proxied, 1, X_Forwarded_For="192.0.2.80") == [401]
    assert 429 in guess(proxied, 40, source=source, X_Forwarded_For="192.0.2.81")
    assert guess(proxied, 1, X_Forwarded_For="192.0.2.81") == [401]


def is_limited(server, **fields):
    """Of three at once and one a second, many more are asked for."""
    return any(ask(server, **fields).error() == "RATE_LIMITED" for _ in range(100))


def test_limits_go_by_who_asks(proxied):
    """Callers of this machine are not counted; those whom its proxy stands for are, and cannot say that they are local."""
    assert {ask(proxied).status for _ in range(8)} == {200}
    assert ask(proxied, path="/v0/limits").json()["rateLimits"]["counted"] is False
    for shown in ("192.0.2.90", "127.0.0.1", "::1", "unknown", "nonsense", "127.0.0.1, 192.0.2.90"):
        assert is_limited(proxied, X_Forwarded_For=shown), shown
    assert is_limited(proxied, X_Forwarded_For="192.0.2.91", Forwarded="for=192.0.2.92")


def test_the_audit_log_says_who(proxied):
    def addresses():
        found = proxied.request("GET", "/v0/audit?limit=100")
        assert found.status == 200, found
        return json.dumps(found.json())

    call(proxied, "DELETE", "/v0/sandbox/nobody", proxied.key, None, {"X-Forwarded-For": "192.0.2.93, 10.9.0.1"}, PROXY)
    call(proxied, "DELETE", "/v0/sandbox/nobody", proxied.key, None, {"Forwarded": 'for="[2001:db8::93]:4711"'}, PROXY)
    call(proxied, "DELETE", "/v0/sandbox/nobody", proxied.key, None, {"X-Forwarded-For": "192.0.2.94"})
    wait_until(lambda: "192.0.2.93:0" in addresses() and "[2001:db8::93]:4711" in addresses(), 30, "the lines")
    assert "192.0.2.94" not in addresses()


@pytest.mark.parametrize("text", ["", "x", "10.0.0.1/8", "proxy.example", "10.0.0.0/8,y", "10.0.0.0/8 y", "[::1]:80"])
def test_bad_options(server, tmp_path, text):
    done = subprocess.run([server.bin / "cella", "server", "--data", tmp_path / "none", "--listen", "127.0.0.1:0",
                           "--trusted-proxy", text], capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    assert done.returncode == 2 and "--trusted-proxy" in done.stderr, done
    assert not (tmp_path / "none").exists()
