# SPDX-License-Identifier: Apache-2.0
"""E2B's protocol byte by byte, for tests of what its clients never send."""

import base64
import contextlib
import hashlib
import json
import struct
import urllib.parse

START = "/process.Process/Start"
CONNECT = "/process.Process/Connect"
STREAM_TYPE = "application/connect+json"
END = 2  # the flag of a stream's last frame


class Box:
    """A sandbox by E2B's API, and calls into it as its clients make them."""

    def __init__(self, server, **options):
        self.server = server
        answer = self.control("POST", "/sandboxes", {"templateID": "base", "timeout": 600, "secure": True, **options})
        assert answer.status == 201, answer
        self.about = answer.json()
        self.id = self.about["sandboxID"]

    def control(self, method, path, body=None):
        return self.server.request(method, path, body, {
            "Authorization": None, "X-API-KEY": "e2b_" + self.server.key.encode().hex()})

    def fields(self, port=49983, token=True, **more):
        """The header fields of a call; names with _ for -."""
        fields = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(port)}
        if token:
            fields["X-Access-Token"] = self.about["envdAccessToken"]
        fields.update({name.replace("_", "-"): value for name, value in more.items()})
        return fields

    def call(self, method, path, body=None, port=49983, token=True, **fields):
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            fields.setdefault("Content_Type", "application/json")
        return self.server.request(method, path, body, {
            "Authorization": None, **self.fields(port, token, **fields)})

    def stream(self, method, message, **fields):
        """A whole stream: the answer, and its frames."""
        body = message if isinstance(message, bytes) else envelope(message)
        answer = self.call("POST", method, body, Content_Type=STREAM_TYPE, **fields)
        return answer, frames(answer.body) if answer.status == 200 else []

    @contextlib.contextmanager
    def open_stream(self, method, message, timeout=60, **fields):
        """The frames of a stream as they come; the connection goes with the block."""
        connection = self.server.connection(timeout)
        try:
            connection.request("POST", method, envelope(message), self.fields(Content_Type=STREAM_TYPE, **fields))
            answer = connection.getresponse()
            assert answer.status == 200, (answer.status, answer.read())
            yield _frames_of(answer)
        finally:
            connection.close()

    def run(self, command, **fields):
        """A command's standard output."""
        _, found = self.stream(START, shell(command), **fields)
        assert found[-1] == (END, {}), found
        return b"".join(base64.b64decode(m["event"]["data"]["stdout"]) for _, m in found[:-1]
                        if "stdout" in m["event"].get("data", {}))

    def processes(self):
        return self.call("POST", "/process.Process/List", {}).json()["processes"]

    def kill(self):
        assert self.control("DELETE", f"/sandboxes/{self.id}").status == 204


def shell(command, **fields):
    return {"process": {"cmd": "/bin/bash", "args": ["-c", command]}, **fields}


def envelope(message, flags=0):
    text = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(text)) + text


def frames(data):
    found = []
    while data:
        flags, length = struct.unpack(">BI", data[:5])
        found.append((flags, json.loads(data[5:5 + length])))
        data = data[5 + length:]
    return found


def _frames_of(answer):
    while True:
        head = answer.read(5)
        if len(head) < 5:
            return
        flags, length = struct.unpack(">BI", head)
        yield flags, json.loads(answer.read(length))


def error_of(found):
    """The code of a stream that is nothing but an error."""
    assert [flags for flags, _ in found] == [END], found
    return found[0][1]["error"]["code"]


def signed_query(path, operation, token, user="", expires=None):
    """The query of an address that was signed with a sandbox's token, as the clients make it."""
    text = f"{path}:{operation}:{user}:{token}" + (f":{expires}" if expires is not None else "")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    query = {"path": path, "signature": f"v1_{digest}"}
    if user:
        query["username"] = user
    if expires is not None:
        query["signature_expiration"] = expires
    return urllib.parse.urlencode(query)
