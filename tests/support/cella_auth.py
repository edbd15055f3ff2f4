# SPDX-License-Identifier: Apache-2.0
"""Callers other than the first key: workspaces, keys and addresses for tests about who may do what.

Wrong keys are counted by address, and tests share a server: whoever shows one on purpose does it from
an address of its own (everything in 127.0.0.0/8 is this machine), so that nobody else has to wait."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import random
import sqlite3
import time
import urllib.parse
import uuid

from cella_server import PATIENCE, Answer


def fresh(prefix):
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def fresh_address():
    return f"127.{random.randint(1, 250)}.{random.randint(0, 250)}.{random.randint(2, 250)}"


def call(server, method, path, key=None, body=None, headers=None, source=None):
    """A request with that key (None: none), from an address of this machine."""
    fields = {"Authorization": f"Bearer {key}"} if key else {}
    if isinstance(body, dict):
        body = json.dumps(body).encode()
        fields["Content-Type"] = "application/json"
    fields.update(headers or {})
    parts = urllib.parse.urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30 * PATIENCE,
                                            source_address=(source or "127.0.0.1", 0))
    with contextlib.closing(connection):
        connection.request(method, path, body, fields)
        got = connection.getresponse()
        answer = Answer(got.status, got.headers, got.read())
    if server.contract is not None:
        server.contract.check(method, path, fields, answer)
    return answer


class Workspace:
    """A workspace of the test's own, made with the server's first key."""

    def __init__(self, server, name=None):
        self.server, self.name = server, name or fresh("ws")
        answer = server.request("POST", "/v0/workspaces", {"name": self.name})
        assert answer.status == 201, answer

    def new_key(self, *scopes, **fields):
        """The whole answer: id, secret, …"""
        body = {"name": fresh("key"), **({"scopes": list(scopes)} if scopes else {}), **fields}
        answer = self.server.request("POST", f"/v0/workspaces/{self.name}/api-keys", body)
        assert answer.status == 201, answer
        return answer.json()

    def key(self, *scopes):
        return self.new_key(*scopes)["secret"]

    def create(self, name, enabled=False):
        answer = self.server.request("POST", "/v0/sandbox",
                                     {"metadata": {"name": name}, "spec": {"enabled": enabled}},
                                     {"X-Cella-Workspace": self.name})
        assert answer.status == 202, answer
        return answer.json()

    def delete(self):
        answer = self.server.request("DELETE", f"/v0/workspaces/{self.name}?force=true", timeout=90)
        assert answer.status in (200, 404), answer


def request_token(server, key):
    """The bearer token for a key as new_key() gave it."""
    answer = call(server, "POST", "/v0/oauth/token", body={
        "grant_type": "client_credentials", "client_id": key["id"], "client_secret": key["secret"]})
    assert answer.status == 200, answer
    return answer.json()["access_token"]


def _base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token_claims(token):
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def forge_token(server, claims, header=None):
    """A token signed with the server's own secret, whatever it says."""
    database = f"file:{server.data}/db/cella.db?mode=ro"
    with contextlib.closing(sqlite3.connect(database, uri=True)) as connection:
        secret = connection.execute("SELECT value FROM secret WHERE name = 'token'").fetchone()[0]
    text = b".".join(_base64url(json.dumps(part).encode())
                     for part in (header or {"alg": "HS256", "typ": "JWT"}, claims))
    return (text + b"." + _base64url(hmac.new(secret, text, hashlib.sha256).digest())).decode()


def expired_token(server, key_id, workspace):
    now = int(time.time())
    return forge_token(server, {
        "iss": "cella", "aud": "api", "sub": key_id, "workspace": workspace, "scope": "read write",
        "iat": now - 4000, "nbf": now - 4000, "exp": now - 400, "jti": "x"})
