# SPDX-License-Identifier: Apache-2.0
"""JWTs of outside issuers: those that count, and everything that must not.

PyJWT and cryptography are the issuers, as two that have nothing in common with the server."""

import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import signal
import subprocess
import threading
import time

import pytest

jwt = pytest.importorskip("jwt")
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils  # noqa: E402

from cella_auth import Workspace, call, fresh, fresh_address  # noqa: E402
from cella_server import wait_until  # noqa: E402

ISSUER, AUDIENCE = "https://id.example/", "cella"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, size):
    return b64(value.to_bytes(size, "big"))


class Key:
    """A key pair (or a secret) and its public half as a JWK."""

    def __init__(self, algorithm, bits=2048):
        self.algorithm, self.kid = algorithm, fresh("key")
        if algorithm == "RS256":
            self.private = rsa.generate_private_key(65537, bits)
            public = self.private.public_key().public_numbers()
            self.jwk = {"kty": "RSA", "n": number(public.n, bits // 8), "e": "AQAB"}
        elif algorithm == "ES256":
            self.private = ec.generate_private_key(ec.SECP256R1())
            public = self.private.public_key().public_numbers()
            self.jwk = {"kty": "EC", "crv": "P-256", "x": number(public.x, 32), "y": number(public.y, 32)}
        elif algorithm == "EdDSA":
            self.private = ed25519.Ed25519PrivateKey.generate()
            raw = self.private.public_key().public_bytes(serialization.Encoding.Raw,
                                                         serialization.PublicFormat.Raw)
            self.jwk = {"kty": "OKP", "crv": "Ed25519", "x": b64(raw)}
        else:
            self.private = os.urandom(48)
            self.jwk = {"kty": "oct", "k": b64(self.private)}
        self.jwk.update(kid=self.kid, use="sig", alg=algorithm)

    def pem(self):
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def token(self, headers=None, without=(), **claims):
        """A token that is right but for what is said."""
        now = int(time.time())
        body = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice@example.com", "iat": now, "exp": now + 600,
                "role": "write", **claims}
        for name in without:
            del body[name]
        return jwt.encode(body, self.private, self.algorithm, {"kid": self.kid, **(headers or {})})


def assemble(header, claims, sign):
    """A token of raw parts: header and claims are bytes or objects."""
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims)]
    text = ".".join(b64(part) for part in parts)
    return text + "." + b64(sign(text.encode()))


class KeyServer:
    """Serves a key set, and counts who asks."""

    def __init__(self):
        self.answer, self.status, self.asked = b"{}", 200, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked += 1
                self.send_response(outer.status)
                if outer.status == 302:
                    self.send_header("Location", "/elsewhere")
                    outer.status = 200
                self.send_header("Content-Length", str(len(outer.answer)))
                self.end_headers()
                self.wfile.write(outer.answer)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks.json"

    def serve(self, *keys):
        self.answer, self.status = json.dumps({"keys": [key.jwk for key in keys]}).encode(), 200

    def close(self):
        self.server.shutdown()
        self.server.server_close()


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
