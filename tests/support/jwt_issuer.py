# SPDX-License-Identifier: Apache-2.0
"""Issuers of JWTs for tests: keys, tokens by PyJWT, and a server of key sets, with TLS or without."""

import base64
import datetime
import http.server
import ipaddress
import json
import os
import ssl
import threading
import time

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from cella_auth import fresh

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


class Authority:
    """A certificate authority of the test's own, as files in a folder."""

    def __init__(self, folder, name):
        self.folder, self.key = folder, ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key, x509.BasicConstraints(ca=True, path_length=None))
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(self, subject, key, *extensions):
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name)
                   .public_key(key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(now - datetime.timedelta(hours=1))
                   .not_valid_after(now + datetime.timedelta(hours=1)))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def context(self):
        """For a server on 127.0.0.1, which is also localhost."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"),
                                             x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        certificate = self._sign(subject, key, names)
        path = self.folder / fresh("server.pem")
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


class KeyServer:
    """Serves a key set, and counts who asks. `location`: it answers with a redirect there instead."""

    def __init__(self, context=None):
        self.answer, self.status, self.asked, self.paths, self.location = b"{}", 200, 0, [], None
        self.sources = []  # who asked, by address
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked += 1
                outer.paths.append(self.path)
                outer.sources.append(self.client_address)
                self.send_response(outer.status)
                if outer.status in (301, 302, 303, 307, 308):
                    self.send_header("Location", outer.location or "/elsewhere")
                    if outer.location is None:
                        outer.status = 200
                self.send_header("Content-Length", str(len(outer.answer)))
                self.end_headers()
                self.wfile.write(outer.answer)

            do_POST = do_GET

            def log_message(self, *args):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def finish_request(self, request, address):
                if context is not None:  # in the thread of the connection: one that is slow holds up nobody
                    request = context.wrap_socket(request, server_side=True)
                super().finish_request(request, address)

            def handle_error(self, request, address):
                pass  # of handshakes that were to fail

        self.server = Quiet(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_port
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.port}/jwks.json"

    def serve(self, *keys):
        self.answer, self.status = json.dumps({"keys": [key.jwk for key in keys]}).encode(), 200

    def close(self):
        self.server.shutdown()
        self.server.server_close()
