# SPDX-License-Identifier: Apache-2.0
"""Client credentials against a token (RFC 6749 §4.4), and what a token is worth."""

import base64
import time
import urllib.parse

import pytest

from cella_auth import (Workspace, call, forge_token, fresh_address, request_token, token_claims)

PATH = "/v0/oauth/token"
GRANT = {"grant_type": "client_credentials"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def workspace(server):
    made = Workspace(server)
    yield made
    made.delete()


@pytest.fixture(scope="module")
def client(workspace):
    return workspace.new_key("write")


def basic(identity, secret):
    pair = base64.b64encode(f"{identity}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def form(**fields):
    return urllib.parse.urlencode(fields).encode()


def forms_of(client):
    """The same request in every form that it has: (body, headers)."""
    pair = {"client_id": client["id"], "client_secret": client["secret"]}
    shown = basic(client["id"], client["secret"])
    return {
        "basic, JSON": (GRANT, shown),
        "basic, JSON without a type": (b'{"grant_type": "client_credentials"}', shown),
        "basic, form": (form(**GRANT), {**shown, **FORM}),
        "basic, form with charset": (form(**GRANT), {
            **shown, "Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}),
        "basic, and the id again": ({**GRANT, "client_id": client["id"]}, shown),
        "body, JSON": ({**GRANT, **pair}, {}),
        "body, form": (form(**GRANT, **pair), FORM),
        "body, more than is known": ({**GRANT, **pair, "audience": "x", "resource": 1}, {}),
    }


def test_every_form(server, client):
    for name, (body, headers) in forms_of(client).items():
        answer = call(server, "POST", PATH, body=body, headers=headers)
        assert answer.status == 200, (name, answer)
        given = answer.json()
        assert set(given) == {"access_token", "token_type", "expires_in", "scope"}, name
        assert (given["token_type"], given["scope"]) == ("Bearer", "read write"), name
        assert 0 < given["expires_in"] <= 3600, name
        assert answer.headers["Cache-Control"] == "no-store", name
        who = call(server, "GET", "/v0/whoami", given["access_token"])
        assert who.json()["name"] == client["name"], (name, who)


def test_claims(server, workspace, client):
    before = int(time.time())
    claims = token_claims(request_token(server, client))
    assert claims["sub"] == client["id"]
    assert claims["workspace"] == workspace.name
    assert claims["scope"] == "read write"
    assert before - 1 <= claims["iat"] <= time.time() + 1
    assert claims["exp"] - claims["iat"] <= 3600
    assert claims["jti"] != token_claims(request_token(server, client))["jti"]


def test_fewer_scopes(server, client):
    body = {**GRANT, "client_id": client["id"], "client_secret": client["secret"], "scope": "read"}
    given = call(server, "POST", PATH, body=body).json()
    assert given["scope"] == "read"
    answer = call(server, "POST", "/v0/sandbox", given["access_token"], {})
    assert (answer.status, answer.error()) == (403, "FORBIDDEN")


def test_token_lives_no_longer_than_its_key(server, workspace):
    key = workspace.new_key("read", expiresIn=600)
    body = {**GRANT, "client_id": key["id"], "client_secret": key["secret"]}
    assert call(server, "POST", PATH, body=body).json()["expires_in"] <= 600


@pytest.mark.parametrize("body, headers, status, code", [
    (b"", {}, 400, "invalid_request"),
    (b"{", {}, 400, "invalid_request"),
    (b"[]", {}, 400, "invalid_request"),
    ({"grant_type": 1}, {}, 400, "invalid_request"),
    ({"grant_type": "password"}, {}, 400, "unsupported_grant_type"),
    ({"grant_type": "client_credentials"}, {}, 401, "invalid_client"),
    ({**GRANT, "client_id": "ID"}, {}, 401, "invalid_client"),
    ({**GRANT, "client_id": "ID", "client_secret": "wrong"}, {}, 401, "invalid_client"),
    ({**GRANT, "client_id": "wrong", "client_secret": "SECRET"}, {}, 401, "invalid_client"),
    ({**GRANT, "client_id": "ID", "client_secret": "SECRET", "scope": "admin"}, {}, 400,
     "invalid_scope"),
    ({**GRANT, "client_id": "ID", "client_secret": "SECRET", "scope": "nothing"}, {}, 400,
     "invalid_scope"),
    ({**GRANT, "client_id": "ID", "client_secret": "SECRET\0"}, {}, 400, "invalid_request"),
    ({**GRANT, "client_id": "ID", "client_secret": "SECRET"}, "BASIC", 400, "invalid_request"),
    ({**GRANT, "client_id": "other"}, "BASIC", 400, "invalid_request"),
    (GRANT, {"Authorization": "Basic !!!"}, 401, "invalid_client"),
    (GRANT, {"Authorization": "Basic bm9jb2xvbg=="}, 401, "invalid_client"),
    (GRANT, {"Authorization": "Basic"}, 401, "invalid_client"),
    (b"grant_type=client_credentials&grant_type=client_credentials", FORM, 400, "invalid_request"),
    (b"grant_type=%zz", FORM, 400, "invalid_request"),
])
def test_refused(server, client, body, headers, status, code):
    if headers == "BASIC":
        headers = basic(client["id"], client["secret"])
    if isinstance(body, dict):
        body = {name: value.replace("ID", client["id"]).replace("SECRET", client["secret"])
                if isinstance(value, str) else value for name, value in body.items()}
    answer = call(server, "POST", PATH, body=body, headers=headers, source=fresh_address())
    assert (answer.status, answer.json()["error"]) == (status, code), answer
    assert answer.json()["error_description"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert client["secret"] not in answer.text
    if status == 401:
        assert answer.headers["WWW-Authenticate"].startswith("Basic")


def test_large_body(server):
    answer = call(server, "POST", PATH, body=b" " * (1 << 20))
    assert (answer.status, answer.error()) == (413, "PAYLOAD_TOO_LARGE")


def test_get_is_no_way_to_ask(server):
    assert call(server, "GET", PATH).status == 405


def test_forgeries(server, workspace, client):
    right = token_claims(request_token(server, client))
    token = forge_token(server, right)
    assert call(server, "GET", "/v0/whoami", token).status == 200  # the forger knows his trade
    now = int(time.time())
    head, body, tail = token.split(".")
    unsigned = forge_token(server, right, {"alg": "none"}).rsplit(".", 1)[0]
    others = [
        unsigned + ".",
        unsigned + "." + tail,
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{head}.{body}.{tail}.",
        f"{head}.{body}.{tail[:-2]}AA",
        forge_token(server, right, {"alg": "none"}),
        forge_token(server, right, {"alg": "HS512"}),
        forge_token(server, right, {"alg": "HS256", "crit": ["exp"]}),
        forge_token(server, {**right, "exp": now - 1}),
        forge_token(server, {**right, "nbf": now + 3600}),
        forge_token(server, {**right, "aud": "preview/x/y"}),
        forge_token(server, {**right, "sub": "nobody"}),
        forge_token(server, {name: value for name, value in right.items() if name != "exp"}),
        forge_token(server, {**right, "jti": "x" * 4096}),
    ]
    for other in others:
        answer = call(server, "GET", "/v0/whoami", other, source=fresh_address())
        assert (answer.status, answer.error()) == (401, "UNAUTHORIZED"), other
    # What it says beyond its key counts for nothing.
    more = forge_token(server, {**right, "scope": "read write admin server", "workspace": "default"})
    who = call(server, "GET", "/v0/whoami", more).json()
    assert (who["scopes"], who["workspace"]) == (["read", "write"], workspace.name)
