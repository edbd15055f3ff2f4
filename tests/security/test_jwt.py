# SPDX-License-Identifier: Apache-2.0
"""JWTs of outside issuers: those that count, and everything that must not.

PyJWT and cryptography are the issuers, as two that have nothing in common with the server."""

import base64
import contextlib
import hashlib
import hmac
import json
import signal
import subprocess
import time
import urllib.parse

import pytest

jwt = pytest.importorskip("jwt")
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils  # noqa: E402

from cella_auth import Workspace, call, fresh, fresh_address  # noqa: E402
from cella_ports import Published, start_app  # noqa: E402
from cella_server import wait_until  # noqa: E402
from jwt_issuer import AUDIENCE, ISSUER, Key, KeyServer, b64  # noqa: E402


def assemble(header, claims, sign):
    """A token of raw parts: header and claims are bytes or objects."""
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims)]
    text = ".".join(b64(part) for part in parts)
    return text + "." + b64(sign(text.encode()))


class World:
    """A server that trusts an issuer by a file, and others by a URL."""

    ALGORITHMS = ("RS256", "ES256", "EdDSA", "HS256")

    def __init__(self, make_server, folder):
        self.keys = {algorithm: Key(algorithm) for algorithm in self.ALGORITHMS}
        self.key_server, self.folder = KeyServer(), folder
        self.remote = [Key("ES256"), Key("ES256")]
        self.key_server.serve(self.remote[0])
        self.set_path, self.config_path = folder / "jwks.json", folder / "jwt.json"
        self.write_set(*self.keys.values())
        self.issuers = [
            {"issuer": ISSUER, "audience": [AUDIENCE, "other"], "jwksFile": str(self.set_path)},
            {"issuer": "remote", "audience": AUDIENCE, "jwksUrl": self.key_server.url,
             "algorithms": ["ES256"], "leewaySeconds": 0, "workspaceClaim": "org",
             "workspaces": {"org-1": "blue"}, "roleClaim": "/realm/roles",
             "roles": {"boss": "server", "dev": "write"}, "defaultRole": "read"},
        ]
        self.write_config()
        self.server = make_server("--jwt-config", str(self.config_path), "--network", "off",
                                  "--log-level", "debug")
        self.blue = Workspace(self.server, "blue")
        self.seen = []  # every token that was shown

    def write_set(self, *keys):
        self.set_path.write_text(json.dumps({"keys": [key.jwk for key in keys]}))
        self.set_path.chmod(0o600)

    def write_config(self):
        self.config_path.write_text(json.dumps({"issuers": self.issuers}))

    def reload(self):
        self.server.process.send_signal(signal.SIGHUP)

    def ask(self, token, path="/v0/whoami", method="GET", **more):
        self.seen.append(token)
        return call(self.server, method, path, token, source=fresh_address(), **more)


@pytest.fixture(scope="module")
def world(request, tmp_path_factory):
    from cella_fixtures import _requirements
    from cella_server import Server
    _requirements()
    made = World(Server, tmp_path_factory.mktemp("jwt"))
    yield made
    made.key_server.close()
    made.server.close()


# --- where they do not go ---

def test_no_program_sees_them(world):
    """Sent to a public port of a sandbox, what opens this server stays here; what is for others is theirs."""
    box = start_app(world.server.create())
    port = Published(box, access="public")
    ours, remote, theirs, strangers = (
        world.keys["RS256"].token(), world.remote[0].token(iss="remote"), world.keys["RS256"].token(aud="the-program"),
        world.keys["RS256"].token(iss="https://other.example/"))
    for token, passes in ((ours, False), (remote, False), (theirs, True), (strangers, True)):
        for answer in port.everywhere(headers={"Authorization": f"Bearer {token}"}):
            assert answer.status == 200 and (token in answer.json()["head"]) == passes, (passes, answer)
    box.delete()


# --- those that count ---

@pytest.mark.parametrize("algorithm", World.ALGORITHMS)
def test_each_algorithm(world, algorithm):
    token = world.keys[algorithm].token()
    for _ in range(2):  # the second time from memory
        who = world.ask(token)
        assert who.status == 200, who
        assert who.json()["credential"] == "jwt" and who.json()["name"] == "jwt:alice@example.com"
        assert who.json()["workspace"] == "default" and who.json()["scopes"] == ["read", "write"]
        assert "keyId" not in who.json()


@pytest.mark.parametrize("claims,scopes", [
    ({"role": "read"}, ["read"]),
    ({"role": "admin"}, ["read", "write", "admin"]),
    ({"role": ["nothing", "read"]}, ["read"]),
    ({"role": "openid read email"}, ["read"]),
    ({"aud": ["x", AUDIENCE]}, ["read", "write"]),
    ({"nbf": 5, "iat": 1.5}, ["read", "write"]),
    ({"exp": lambda: int(time.time()) - 30}, ["read", "write"]),  # within the leeway of a minute
])
def test_claims(world, claims, scopes):
    claims = {name: value() if callable(value) else value for name, value in claims.items()}
    who = world.ask(world.keys["ES256"].token(**claims))
    assert who.status == 200 and who.json()["scopes"] == scopes, who


def test_a_typ_of_access_tokens(world):
    assert world.ask(world.keys["RS256"].token({"typ": "at+jwt"})).status == 200


def test_roles_are_scopes(world):
    reader, admin = (world.keys["EdDSA"].token(role=role) for role in ("read", "admin"))
    assert world.ask(reader, "/v0/sandbox").status == 200
    assert world.ask(reader, "/v0/sandbox", "POST", body={}).status == 403
    assert world.ask(admin, "/v0/workspaces", "POST", body={"name": "x"}).status == 403
    # A key that outlives the token would let in whom the issuer has shut out.
    answer = world.ask(admin, "/v0/api-keys", "POST", body={"name": fresh("key"), "scopes": ["read"]})
    assert answer.status == 403, answer
    answer = world.ask(admin, "/v0/api-keys", "POST", body={"name": fresh("key"), "expiresIn": 60})
    assert answer.status == 201 and answer.json()["createdBy"] == "jwt:alice@example.com", answer


def test_a_name_is_only_a_name(world):
    who = world.ask(world.keys["RS256"].token(sub='admin"\n\u00e9' + "x" * 300)).json()
    assert who["name"].startswith("jwt:admin__") and len(who["name"]) < 64, who


def test_tokens_of_one_sandbox(world):
    box = fresh("box")
    world.server.request("POST", "/v0/sandbox", {"metadata": {"name": box}, "spec": {"enabled": False}})
    maker = world.keys["RS256"].token()
    made = world.ask(maker, f"/v0/sandbox/{box}/tokens", "POST", body={"expiresIn": "30d"})
    assert made.status == 201, made
    assert world.ask(made.json()["token"], f"/v0/sandbox/{box}").status == 200
    assert world.ask(made.json()["token"], "/v0/sandbox").status == 403
    ends = json.loads(base64.urlsafe_b64decode(made.json()["token"].split(".")[1] + "=="))["exp"]
    assert ends <= time.time() + 600


# --- what is made with one ---

def hidden(world, box, token, **more):
    """A file inside, by E2B's door."""
    return call(world.server, "GET", "/files?path=/etc/hostname", None, None,
                {"E2b-Sandbox-Id": box, "X-Access-Token": token, **more}, fresh_address()).status


def signed(world, box, token):
    """The same by an address that was signed with the token, as E2B's clients do it."""
    digest = hashlib.sha256(f"/etc/hostname:read::{token}".encode()).digest()
    query = urllib.parse.urlencode({"path": "/etc/hostname",
                                    "signature": "v1_" + base64.b64encode(digest).decode().rstrip("=")})
    return call(world.server, "GET", f"/files?{query}", None, None, {"E2b-Sandbox-Id": box},
                fresh_address()).status


@pytest.fixture(scope="module")
def e2b_box(world):
    made = world.server.request("POST", "/sandboxes", {"templateID": "base", "secure": True, "timeout": 600})
    assert made.status == 201, made
    yield made.json()["sandboxID"]
    world.server.request("DELETE", f"/sandboxes/{made.json()['sandboxID']}")


def connect(world, box, token):
    answer = world.ask(token, f"/sandboxes/{box}/connect", "POST", body={"timeout": 600})
    assert answer.status == 200, answer
    world.seen += [answer.json()["envdAccessToken"], answer.json()["trafficAccessToken"]]
    return answer.json()


def test_access_tokens_end_with_the_jwt(world, e2b_box):
    key, ends = world.keys["ES256"], int(time.time()) + 600
    made = connect(world, e2b_box, key.token(exp=ends))
    door = made["envdAccessToken"]
    assert int(door[64:74], 16) == int(made["trafficAccessToken"][64:74], 16) == ends
    assert hidden(world, e2b_box, door) == signed(world, e2b_box, door) == 200
    # Nothing of it can be changed.
    for forged in (door[:64], door[:64] + f"{ends + 9999:010x}" + door[74:], door[:74] + "00000000", door + "0",
                   door[:74], door.upper(), made["trafficAccessToken"]):
        assert hidden(world, e2b_box, forged) == 401, forged
    assert signed(world, e2b_box, door[:64]) == 401
    # The sandbox's own, which a key is given, has no end, and is another.
    own = connect(world, e2b_box, world.server.key)["envdAccessToken"]
    assert len(own) == 64 and own != door[:64] and hidden(world, e2b_box, own) == 200
    # A JWT that is taken in its leeway makes one that has ended.
    late = connect(world, e2b_box, key.token(exp=int(time.time()) - 20))["envdAccessToken"]
    assert hidden(world, e2b_box, late) == signed(world, e2b_box, late) == 401
    scalebox = world.ask(key.token(exp=ends), f"/v1/sandboxes/{e2b_box}")
    assert scalebox.status == 200 and f"{ends:010x}" in scalebox.json()["data"]["envd_access_token"], scalebox


def test_revoking_covers_access_tokens(world, e2b_box):
    token = world.keys["ES256"].token()
    before = [connect(world, e2b_box, shown)["envdAccessToken"] for shown in (token, world.server.key)]
    assert [hidden(world, e2b_box, door) for door in before] == [200, 200]
    assert world.server.request("DELETE", f"/v0/sandbox/{e2b_box}/tokens").status == 200
    assert [hidden(world, e2b_box, door) for door in before] == [401, 401]
    assert [signed(world, e2b_box, door) for door in before] == [401, 401]
    after = [connect(world, e2b_box, shown)["envdAccessToken"] for shown in (token, world.server.key)]
    assert [hidden(world, e2b_box, door) for door in after] == [200, 200]


def test_an_issuer_that_is_removed(world, e2b_box):
    """With it goes whatever was made with its tokens, but what is the sandbox's own."""
    token = world.keys["ES256"].token()
    door = connect(world, e2b_box, token)["envdAccessToken"]
    own = connect(world, e2b_box, world.server.key)["envdAccessToken"]
    bound = world.ask(token, f"/v0/sandbox/{e2b_box}/tokens", "POST", body={}).json()["token"]
    # A key that was made with one, and what is made with that.
    ends = int(time.time()) + 600
    key = world.ask(world.keys["ES256"].token(role="admin", exp=ends + 60), "/v0/api-keys", "POST",
                    body={"name": fresh("key"), "scopes": ["write"], "expiresIn": 600}).json()["secret"]
    step = connect(world, e2b_box, key)["envdAccessToken"]
    assert ends <= int(step[64:74], 16) <= ends + 60

    def look():
        return [world.ask(token).status, world.ask(bound, f"/v0/sandbox/{e2b_box}").status,
                hidden(world, e2b_box, door), signed(world, e2b_box, door), world.ask(key).status,
                hidden(world, e2b_box, step), signed(world, e2b_box, step), hidden(world, e2b_box, own)]

    assert look() == [200] * 8
    first = world.issuers.pop(0)
    try:
        world.write_config()
        world.reload()
        wait_until(lambda: world.ask(token).status == 401, 30, "the issuer gone")
        assert look() == [401] * 7 + [200]
    finally:
        world.issuers.insert(0, first)
        world.write_config()
        world.reload()
    wait_until(lambda: look() == [200] * 8, 30, "the issuer back")


def test_previews_of_a_jwt(world, e2b_box):
    """A token of a preview is the sandbox's, and lives as its maker says; one for the sandbox's whole API does not
    outlive the JWT."""
    ends = int(time.time()) + 600
    token = world.keys["ES256"].token(exp=ends)
    base = f"/v0/sandboxes/{e2b_box}/previews"
    for name, port, capped in (("page", 3000, False), ("session", 443, True)):
        made = world.ask(token, base, "POST", body={"metadata": {"name": name}, "spec": {"port": port, "public": False}})
        assert made.status == 200, made
        for wish in ({}, {"expiresAt": "2099-01-01T00:00:00Z"}):
            shown = world.ask(token, f"{base}/{name}/tokens", "POST", body={"spec": wish}).json()["spec"]
            world.seen.append(shown["token"])
            if capped:
                assert shown["expiresAt"].startswith(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ends)))
            else:
                assert shown.get("expiresAt", "").startswith(wish.get("expiresAt", "")[:19])
    # One that becomes a session has none of the tokens that it had before, whichever way it becomes one.
    for name, before in (("page", {"port": 3000, "public": False}), ("open", {"port": 443, "public": True})):
        put = world.ask(token, f"{base}?force=true", "POST", body={"metadata": {"name": name}, "spec": before})
        assert put.status == 200, put
        lasting = world.ask(token, f"{base}/{name}/tokens", "POST", body={"spec": {}}).json()["spec"]["token"]
        world.seen.append(lasting)
        put = world.ask(token, f"{base}/{name}", "PUT", body={"metadata": {"name": name},
                                                            "spec": {"port": 443, "public": False}})
        assert put.status == 200, put
        assert world.ask(token, f"{base}/{name}/tokens").json() == []
        url = urllib.parse.urlsplit(put.json()["spec"]["url"]).path
        answer = call(world.server, "GET", f"{url}/filesystem/etc/hostname?bl_preview_token={lasting}", None,
                      source=fresh_address())
        assert answer.status in (401, 404), answer


# --- those that do not ---

def bad_claims():
    now = int(time.time())
    return {
        "expired": {"exp": now - 120}, "no end": {"without": ("exp",)}, "exp as text": {"exp": str(now + 600)},
        "exp below zero": {"exp": -1}, "exp without end": {"exp": 1e300},
        "not yet": {"nbf": now + 600}, "from the future": {"iat": now + 600},
        "nbf as text": {"nbf": "x"}, "for somebody else": {"aud": "x"}, "for a part": {"aud": "cell"},
        "for nobody": {"without": ("aud",)}, "aud as an object": {"aud": {"cella": "cella"}},
        "of a stranger": {"iss": "https://id.example"}, "of nobody": {"without": ("iss",)},
        "iss as a list": {"iss": [ISSUER]}, "of ourselves": {"iss": "cella"},
        "about nobody": {"without": ("sub",)}, "sub as a number": {"sub": 7}, "sub empty": {"sub": ""},
    }


@pytest.mark.parametrize("name", bad_claims())
def test_claims_that_are_wrong(world, name):
    answer = world.ask(world.keys["RS256"].token(**bad_claims()[name]))
    assert answer.status == 401, (name, answer)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("claims", [{"role": "root"}, {"role": 7}, {"without": ("role",)}, {"role": "server"},
                                    {"role": {"admin": True}}, {"role": "Write"}])
def test_no_role(world, claims):
    answer = world.ask(world.keys["RS256"].token(**claims))
    assert (answer.status, answer.error()) == (403, "FORBIDDEN"), answer


def claims_now(**more):
    now = int(time.time())
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "iat": now, "exp": now + 600, "role": "admin", **more}


def mac(secret):
    return lambda text: hmac.new(secret, text, hashlib.sha256).digest()


def forgeries(world):
    """Tokens that say what they must not, each wrong in one way."""
    rs, es, ed, hs = (world.keys[algorithm] for algorithm in World.ALGORITHMS)
    claims = claims_now()

    def rsa_sign(text):
        return rs.private.sign(text, padding.PKCS1v15(), hashes.SHA256())

    def ec_raw(text):
        r, s = utils.decode_dss_signature(es.private.sign(text, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    rs_head = {"alg": "RS256", "kid": rs.kid}
    es_head = {"alg": "ES256", "kid": es.kid}
    good = assemble(rs_head, claims, rsa_sign)
    head, body, tail = good.split(".")
    found = {
        "none": assemble({"alg": "none"}, claims, lambda text: b""),
        "None": assemble({"alg": "None", "kid": rs.kid}, claims, lambda text: b"x"),
        "no alg": assemble({"kid": rs.kid}, claims, rsa_sign),
        "alg as a list": assemble({"alg": ["RS256"], "kid": rs.kid}, claims, rsa_sign),
        "no signature": f"{head}.{body}.", "two parts": f"{head}.{body}", "four parts": good + ".x",
        "a padded part": f"{head}.{body}=.{tail}", "a blank": f"{head}.{body} .{tail}",
        "stray bits": good[:-1] + ("B" if good[-1] == "A" else chr(ord(good[-1]) + 1)),
        "another body": f"{head}.{b64(json.dumps(claims_now(role='read')).encode())}.{tail}",
        "a cut signature": good[:-8],
        # A public key is no secret, in none of its spellings.
        "confusion, PEM": assemble({"alg": "HS256", "kid": rs.kid}, claims, mac(rs.pem())),
        "confusion, DER": assemble({"alg": "HS256", "kid": rs.kid}, claims, mac(
            rs.private.public_key().public_bytes(serialization.Encoding.DER,
                                                 serialization.PublicFormat.SubjectPublicKeyInfo))),
        "confusion, n": assemble({"alg": "HS256", "kid": rs.kid}, claims, mac(
            base64.urlsafe_b64decode(rs.jwk["n"] + "=="))),
        "confusion, no kid": assemble({"alg": "HS256"}, claims, mac(rs.pem())),
        "confusion, Ed25519": assemble({"alg": "HS256", "kid": ed.kid}, claims, mac(
            base64.urlsafe_b64decode(ed.jwk["x"] + "=="))),
        "an empty secret": assemble({"alg": "HS256", "kid": hs.kid}, claims, mac(b"")),
        "RSA under EC's kid": assemble({"alg": "RS256", "kid": es.kid}, claims, rsa_sign),
        "EC called RSA": assemble({"alg": "RS256", "kid": rs.kid}, claims, ec_raw),
        "PSS": assemble({"alg": "PS256", "kid": rs.kid}, claims, rsa_sign),
        "RS512": assemble({"alg": "RS512", "kid": rs.kid}, claims, rsa_sign),
        "EC in DER": assemble(es_head, claims,
                              lambda text: es.private.sign(text, ec.ECDSA(hashes.SHA256()))),
        "EC of zeros": assemble(es_head, claims, lambda text: bytes(64)),
        "EC of its order": assemble(es_head, claims, lambda text: 2 * bytes.fromhex(
            "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")),
        "EdDSA of zeros": assemble({"alg": "EdDSA", "kid": ed.kid}, claims, lambda text: bytes(64)),
        "crit": assemble({**rs_head, "crit": ["exp"]}, claims, rsa_sign),
        "crit, empty": assemble({**rs_head, "crit": []}, claims, rsa_sign),
        "b64": assemble({**rs_head, "crit": ["b64"], "b64": False}, claims, rsa_sign),
        "typ": assemble({**rs_head, "typ": "logout+jwt"}, claims, rsa_sign),
        "kid of nobody": assemble({**rs_head, "kid": "nobody"}, claims, rsa_sign),
        "kid as a path": assemble({**rs_head, "kid": "../../etc/passwd"}, claims, rsa_sign),
        "kid as a number": assemble({**rs_head, "kid": 1}, claims, rsa_sign),
        "kid too long": assemble({**rs_head, "kid": "x" * 300}, claims, rsa_sign),
        "alg twice": assemble(b'{"alg":"none","kid":"%s","alg":"RS256"}' % rs.kid.encode(), claims, rsa_sign),
        "iss twice": assemble(rs_head, json.dumps(claims).encode()[:-1] + b',"iss":"x"}', rsa_sign),
        "role twice": assemble(rs_head, json.dumps(claims).encode()[:-1] + b',"role":"admin"}', rsa_sign),
        "bytes behind": assemble(rs_head, json.dumps(claims).encode() + b"{}", rsa_sign),
        "claims as a list": assemble(rs_head, b"[]", rsa_sign),
        "header as text": assemble(b'"x"', claims, rsa_sign),
        "deep": assemble(rs_head, b'{"a":' * 900 + b"1" + b"}" * 900, rsa_sign),
        "too large": assemble(rs_head, {**claims, "pad": "x" * 9000}, rsa_sign),
        "own key in it": assemble({"alg": "ES256", "jwk": Key("ES256").jwk}, claims, ec_raw)[:-4] + "AAAA",
        "dots": "..", "a dot": ".", "many": "." * 500,
    }
    stranger = Key("RS256")
    stranger.kid = rs.kid
    found["a stranger's key"] = stranger.token()
    for place in ("jku", "x5u"):
        found[place] = stranger.token({place: "http://127.0.0.1:1/"})
    return found, good


def test_forgeries(world):
    found, good = forgeries(world)
    wrong = [(name, answer) for name, token in found.items()
             if (answer := world.ask(token)).status not in (401, 431)]
    assert not wrong, wrong
    assert world.ask(good).status == 200  # and so were the parts that the others were made of
    # None of them is let in by what the right one left in memory.
    assert not [name for name, token in found.items() if world.ask(token).status == 200]


def test_without_a_kid(world):
    """Then it has to be clear which key is meant: there is one of each algorithm."""
    token = jwt.encode(claims_now(), world.keys["EdDSA"].private, "EdDSA")
    assert world.ask(token).status == 200


# --- keys from a URL ---

def remote(key, **more):
    return key.token(**{"iss": "remote", "org": "org-1", "realm": {"roles": ["dev"]}, **more})


def test_url(world):
    first, second = world.remote
    who = world.ask(remote(first))
    assert who.status == 200 and who.json()["workspace"] == "blue", who
    assert who.json()["scopes"] == ["read", "write"]
    assert world.ask(remote(first, realm={})).json()["scopes"] == ["read"]
    assert "server" in world.ask(remote(first, realm={"roles": ["boss"]})).json()["scopes"]
    assert world.ask(remote(first, org="blue")).status == 403
    assert world.ask(remote(first, org=None)).status == 403
    assert world.ask(remote(first, exp=int(time.time()) - 2)).status == 401  # no leeway
    # A key of another algorithm than the issuer uses, and a secret from a URL, do not count.
    assert world.ask(world.keys["RS256"].token(iss="remote")).status == 401

    # A new key is asked for when the first token of it comes; the old one is gone then.
    asked = world.key_server.asked
    world.key_server.serve(second)
    assert world.ask(remote(second)).status == 200
    assert world.key_server.asked == asked + 1
    assert world.ask(remote(first)).status == 401

    # What cannot be had leaves what there is; and strangers do not have it asked without end.
    for broken, status in ((b"{}", 200), (b"[", 200), (b'{"keys": []}', 200), (b"", 500), (b"", 302)):
        world.key_server.answer, world.key_server.status = broken, status
        assert world.ask(remote(Key("ES256"))).status == 401
    assert world.ask(remote(second, jti="again")).status == 200
    for _ in range(20):
        assert world.ask(remote(Key("ES256"))).status == 401
    assert world.key_server.asked <= asked + 6
    world.key_server.serve(second)


# --- the configuration ---

def test_reload(world):
    """Another set of keys, without a restart; a broken one changes nothing."""
    old, new = world.keys["EdDSA"], Key("EdDSA")
    token = old.token()
    assert world.ask(token).status == 200
    world.set_path.write_text("{")
    world.reload()
    wait_until(lambda: "stays as it is" in world.server.log(), 30, "a word about it")
    assert world.ask(token).status == 200
    world.keys["EdDSA"] = new
    world.write_set(*world.keys.values())
    world.reload()
    wait_until(lambda: world.ask(new.token()).status == 200, 30, "the new key")
    assert world.ask(token).status == 401  # not by what is remembered of it, either


BAD_CONFIGS = {
    "no JSON": "{", "twice": '{"issuers": [], "issuers": []}', "no list": "{}",
    "unknown member": {"x": 1}, "no issuer": {"issuer": None}, "ourselves": {"issuer": "cella"},
    "no audience": {"audience": None}, "audience as a number": {"audience": 1}, "audience of none": {"audience": []},
    "no keys": {"jwks": None}, "two sources": {"jwksUrl": "https://id.example/"},
    "plain http": {"jwks": None, "jwksUrl": "http://id.example/"},
    "a user in it": {"jwks": None, "jwksUrl": "https://a:b@id.example/"},
    "another scheme": {"jwks": None, "jwksUrl": "file:///etc/passwd"},
    "an authority that is none": {"jwks": None, "jwksUrl": "https://id.example/", "jwksCaFile": "/etc/hostname"},
    "an authority that is not there": {"jwks": None, "jwksUrl": "https://id.example/", "jwksCaFile": "/nonexistent"},
    "an authority for plain http": {"jwks": None, "jwksUrl": "http://127.0.0.1/", "jwksCaFile": "/etc/hostname"},
    "an authority for nothing": {"jwksCaFile": "/etc/hostname"},
    "never fetched again": {"jwks": None, "jwksUrl": "https://id.example/", "jwksRefreshSeconds": 0},
    "old before it is fetched": {"jwks": None, "jwksUrl": "https://id.example/", "jwksStaleSeconds": 599},
    "old for ever": {"jwks": None, "jwksUrl": "https://id.example/", "jwksStaleSeconds": 99999999},
    "no such file": {"jwks": None, "jwksFile": "/nonexistent"},
    "an empty set": {"jwks": {"keys": []}}, "a short secret": {"jwks": {"keys": [{"kty": "oct", "k": "AAAA"}]}},
    "a short RSA key": {"jwks": {"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}},
    "no point": {"jwks": {"keys": [{"kty": "EC", "crv": "P-256", "x": "A" * 43, "y": "A" * 43}]}},
    "none": {"algorithms": ["none"]}, "leeway": {"leewaySeconds": 3600},
    "a role": {"roles": {"x": "root"}}, "a default role": {"defaultRole": "root"},
    "a workspace": {"workspace": "A b"}, "workspaces": {"workspaces": {"x": "../y"}},
}


@pytest.mark.parametrize("name", BAD_CONFIGS)
def test_bad_configurations(world, name, tmp_path):
    """Told before anything is started, with the member that is wrong."""
    change = BAD_CONFIGS[name]
    if not isinstance(change, str):
        issuer = {"issuer": "a", "audience": "b", "jwks": {"keys": [world.keys["RS256"].jwk]}, **change}
        change = json.dumps({"issuers": [{k: v for k, v in issuer.items() if v is not None}]})
    path = tmp_path / "jwt.json"
    path.write_text(change)
    done = subprocess.run([world.server.bin / "cella", "server", "--data", tmp_path / "data", "--listen",
                           "127.0.0.1:0", "--jwt-config", path], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode != 0 and "--jwt-config" in done.stderr, done


# --- and no secret in any log ---

def test_no_secret_is_logged(world):
    """After all of the above, with the log at its loudest: no token, key or secret that was shown, whole or
    its signature, is in what the server wrote."""
    server = world.server
    box = fresh("box")
    server.request("POST", "/v0/sandbox", {"metadata": {"name": box}})
    key = server.request("POST", "/v0/api-keys", {"name": fresh("key")}).json()
    bound = server.request("POST", f"/v0/sandbox/{box}/tokens", {}).json()["token"]
    secrets = {server.key, key["secret"], bound, *world.seen}
    wait_until(lambda: call(server, "GET", f"/v0/sandbox/{box}", bound).json()["status"] == "running", 60, "running")
    for secret in (key["secret"], bound):
        call(server, "GET", f"/v0/sandbox/{box}/terminal?token={secret}")
        call(server, "GET", f"/v0/sandbox/{box}/process?token={secret}", secret)
    e2b = call(server, "POST", "/sandboxes", None, {"templateID": "base", "secure": True}, {"X-API-Key": server.key})
    assert e2b.status == 201, e2b
    inside = {"E2b-Sandbox-Id": e2b.json()["sandboxID"]}
    door, signature = e2b.json()["envdAccessToken"], "v1_" + "s" * 43
    secrets |= {door, signature}
    assert call(server, "GET", f"/files?path=/x&signature={signature}", None, None, inside,
                fresh_address()).status == 401
    assert call(server, "GET", "/files?path=/etc/hostname", None, None,
                {**inside, "X-Access-Token": door}).status == 200
    server.request("DELETE", f"/sandboxes/{e2b.json()['sandboxID']}")
    call(server, "GET", "/v0/sandbox", "cella_" + "w" * 43, source=fresh_address())
    secrets |= {"cella_" + "w" * 43} | {token.rsplit(".", 1)[-1] for token in world.seen}
    secrets = {secret for secret in secrets if len(secret) > 20}
    assert len(secrets) > 100
    texts = {server.log_path: server.log_path.read_text(errors="replace")}
    for folder in ("log", "logs", "audit"):
        for path in (server.data / folder).rglob("*") if (server.data / folder).exists() else ():
            if path.is_file():
                texts[path] = path.read_text(errors="replace")
    assert "whoami" in texts[server.log_path]  # it was loud
    for path, text in texts.items():
        assert not [secret for secret in secrets if secret in text], path
    with contextlib.suppress(FileNotFoundError):
        for pid in server.pids():
            assert server.key.encode() not in open(f"/proc/{pid}/cmdline", "rb").read()
