# SPDX-License-Identifier: Apache-2.0
"""Guessing keys: it gets slow for who tries, and for nobody else."""

import pytest

from cella_auth import Workspace, call, fresh_address

ENOUGH = 40  # twenty are allowed, and some come back meanwhile


@pytest.fixture(scope="module")
def workspace(server):
    made = Workspace(server)
    yield made
    made.delete()


def guess(server, source, times=ENOUGH):
    """The statuses of that many wrong keys from an address."""
    return [call(server, "GET", "/v0/whoami", f"cella_{i:043}", source=source).status
            for i in range(times)]


def test_guessing(server, workspace):
    source = fresh_address()
    known, unknown = workspace.key(), workspace.key()
    assert call(server, "GET", "/v0/whoami", known, source=source).status == 200
    statuses = guess(server, source)
    assert statuses[0] == 401 and statuses.count(401) >= 20
    assert 429 in statuses

    for _ in range(ENOUGH):  # an attempt may come back between two requests
        refused = call(server, "GET", "/v0/whoami", "cella_wrong", source=source)
        if refused.status == 429:
            break
    assert (refused.status, refused.error()) == (429, "TOO_MANY_ATTEMPTS")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60

    # The key that worked here before still does; elsewhere every key does.
    assert call(server, "GET", "/v0/whoami", known, source=source).status == 200
    assert call(server, "GET", "/v0/whoami", unknown, source=fresh_address()).status == 200
    assert call(server, "GET", "/health", source=source).status == 200


def test_a_right_guess_is_not_told(server, workspace):
    """While an address has to wait, a key that was never seen there gets the same answer as a wrong
    one: whoever guesses learns nothing."""
    source = fresh_address()
    for _ in range(20):  # an attempt may come back right before the one that is meant
        guess(server, source)
        answer = call(server, "GET", "/v0/whoami", workspace.key(), source=source)
        if answer.status == 429:
            break
    assert (answer.status, answer.error()) == (429, "TOO_MANY_ATTEMPTS")


def test_clients_are_counted_too(server, workspace):
    source, key = fresh_address(), workspace.new_key()
    body = {"grant_type": "client_credentials", "client_id": key["id"], "client_secret": "x"}
    answers = [call(server, "POST", "/v0/oauth/token", body=body, source=source)
               for _ in range(ENOUGH)]
    assert answers[0].status == 401
    slow = [answer for answer in answers if answer.status == 429]
    assert slow and slow[0].json()["error"] == "temporarily_unavailable"
    assert int(slow[0].headers["Retry-After"]) >= 1


def test_no_key_is_no_guess(server):
    source = fresh_address()
    assert {call(server, "GET", "/v0/whoami", source=source).status for _ in range(ENOUGH)} == {401}
