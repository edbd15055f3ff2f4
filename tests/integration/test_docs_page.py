# SPDX-License-Identifier: Apache-2.0
"""/docs in a browser: what the document has is on the page, and nothing of it goes wrong, or anywhere else."""

import contextlib
import json
import os

import pytest

import browser


@pytest.fixture(scope="module")
def page(server):
    if browser.program() is None:
        assert "CI" not in os.environ, "no browser, where everything is to be tested: scripts/install-deps test"
        pytest.skip("no browser: scripts/install-deps test (Debian: chromium-headless-shell)")
    with contextlib.closing(browser.Page()) as made:
        made.open(f"{server.url}/docs")
        made.until("document.querySelectorAll('section > details').length", "operations")
        yield made


@pytest.fixture(scope="module")
def document(server):
    return server.request("GET", "/openapi.json").json()


def test_every_operation_is_on_it(page, document):
    listed = set(page.run("[...document.querySelectorAll('details')].map((one) => one.id)"))
    wanted = {operation["operationId"] for item in document["paths"].values() for name, operation in item.items()
              if name in ("get", "put", "post", "patch", "delete")}
    assert {name for name in wanted if not name.endswith("AtEndpoint")} <= listed
    assert {f"schema-{name}" for name in document["components"]["schemas"]} <= listed
    assert page.run("document.title") == f"{document['info']['title']} API {document['info']['version']}"


def test_every_operation_can_be_opened(page):
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.until("[...document.querySelectorAll('section > details')].every((one) => one.children.length > 1)", "all drawn")
    assert page.errors == []


def test_finding(page):
    def shown(words):
        return page.run(f"(byId => {{ byId('find').value = {json.dumps(words)};"
                        "byId('find').dispatchEvent(new Event('input'));"
                        "return document.querySelectorAll('section:not([hidden]) > details:not([hidden])').length; })"
                        "((id) => document.getElementById(id))")

    everything = shown("")
    assert 0 < shown("get /metrics") < everything
    assert shown("nothing has this") == 0
    assert shown("") == everything


def test_trying_something(page, server):
    """With the key in its field; it is in no address."""
    page.run(f"document.getElementById('key').value = {json.dumps(server.key)}")
    page.run("document.querySelector('#getServerMetrics button[type=submit], #getServerMetrics button').click()")
    page.until("document.getElementById('getServerMetrics').textContent.includes('cella_build_info')", "an answer")
    assert not [url for url in page.requests if server.key in url]
    assert page.run("document.cookie + localStorage.length + sessionStorage.length") == "00"


def test_nothing_goes_wrong_or_elsewhere(page, server):
    assert page.errors == []
    assert page.requests and all(url.startswith(f"{server.url}/") or url == "about:blank" for url in page.requests), page.requests


def test_the_policy_holds(page):
    """What is put in from elsewhere does not run, nor is anything sent there."""
    page.run("window.evil = 0; document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.evil = 1'}))")
    assert page.run("window.evil") == 0
    assert page.run("fetch('http://127.0.0.2:9/').then(() => 'sent', (failure) => failure.name)") == "TypeError"
    assert any("Content Security Policy" in text for text in page.errors), page.errors
    page.errors.clear()
