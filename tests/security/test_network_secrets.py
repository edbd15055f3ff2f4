# SPDX-License-Identifier: Apache-2.0
"""Secrets that never enter the sandbox: requests to a host get a header that the code inside cannot read,
by no means that is tried here. The host, which echoes all that it is sent, says whether it came."""

import json
import uuid

import pytest

import world_services
from cella_server import wait_until
from network_inside import Box
from world import EVIL, OTHER, WEB, WorldServer


@pytest.fixture(scope="module")
def server(world):
    made = WorldServer(world, "--egress-ca", world.ca)
    yield made
    made.close()


class Setting:
    """A secret, the host it is for, another host that is allowed, and a sandbox that uses them."""

    def __init__(self, server, world):
        self.server, self.world = server, world
        self.secret = f"sk-{uuid.uuid4().hex}"
        self.name = f"s-{uuid.uuid4().hex[:8]}"
        self.host = world.name(WEB, label="api")
        self.other = world.name(OTHER, label="other")
        answer = server.request("PUT", f"/v0/secrets/{self.name}", {"value": self.secret, "hosts": [self.host]})
        assert answer.status == 200, answer
        self.box = self.make()

    def make(self, **more):
        made = self.server.create(network={
            "mode": "allowlist", "allow": [self.host, self.other],
            "headers": [{"host": self.host, "header": "Authorization", "secret": self.name,
                         "format": "Bearer {}"}], **more})
        return Box(made)

    def seen(self, since):
        """The Authorization of each request that the host got."""
        return [dict(met["fields"]).get("authorization")
                for met in self.world.met(since, kind="http", host=self.host)]


@pytest.fixture(scope="module")
def setting(server, world):
    made = Setting(server, world)
    yield made
    made.box.delete()


def test_plain_http_becomes_tls_with_the_header(world, setting):
    since = world.now()
    got = setting.box.do("http(host, host, fields='authorization: mine\\r\\n')", host=setting.host)
    assert got["status"] == 200, got
    [met] = world.met(since, kind="http", host=setting.host)
    assert (met["port"], met["sni"]) == (443, setting.host)
    assert setting.seen(since) == [f"Bearer {setting.secret}"]
    # The host has echoed it, and the sandbox has not got it.
    assert setting.secret not in json.dumps(got)
    assert "Bearer ***" in json.dumps(got)


def test_no_other_host_gets_it(world, setting):
    """Not one that is named on the same connection, nor one that the host redirects to."""
    since = world.now()
    setting.box.do("""
result = together([
    lambda: http(host, other),
    lambda: tcp(host, 80, f"GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: {other}\\r\\nConnection: close\\r\\n\\r\\n"),
    lambda: tcp(host, 80, f"GET http://{other}/ HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n"),
    lambda: tcp(host, 80, f"GET / HTTP/1.1\\r\\nHost: {host}\\r\\nHost: {other}\\r\\n\\r\\n"),
])
""", host=setting.host, other=setting.other)
    got = setting.box.run(f"curl -sL --max-time 60 'http://{setting.host}/redirect?to=http://{setting.other}/'")
    assert setting.secret not in got
    elsewhere = [met for met in world.met(since, kind="http") if met.get("host") != setting.host]
    assert elsewhere and setting.secret not in json.dumps(elsewhere)


def test_not_asked_for_by_address_or_method(world, setting):
    since = world.now()
    got = setting.box.do("""
result = together([
    lambda: http(evil, host),
    lambda: http(host, host, method="TRACE"),
    lambda: http(host, host, fields="Connection: close, Authorization\\r\\n"),
    lambda: http(host, host, fields="Accept-Encoding: gzip\\r\\n"),
    lambda: http(host, host, path="/chunked"),
])
""", host=setting.host, evil=EVIL)
    assert setting.secret not in json.dumps(got)
    assert got[1]["status"] == 405
    assert set(setting.seen(since)) == {f"Bearer {setting.secret}"}
    assert {met["address"] for met in world.met(since, kind="http", host=setting.host)} == {WEB}


# What a program inside that is after the secret can do with a host that echoes what it is sent.
ATTACK = """
class Host:
    def __init__(self):
        self.sock = socket.create_connection((host, 80), PATIENT)
        self.file = self.sock.makefile("rb")

    def ask(self, line, body=b"", fields=""):
        "The status, the sizes of the chunks that the answer came in, and the answer."
        self.sock.sendall(f"{line} HTTP/1.1\\r\\nHost: {host}\\r\\n{fields}Content-Length: {len(body)}\\r\\n\\r\\n".encode() + body)
        status = int(self.file.readline().split()[1])
        fields = {}
        while line := self.file.readline().strip():
            fields[line.partition(b":")[0].lower()] = line.partition(b":")[2].strip()
        if b"content-length" in fields:
            return status, [], self.file.read(int(fields[b"content-length"])).decode("latin-1")
        sizes, got = [], b""
        while size := int(self.file.readline(), 16):
            sizes.append(size)
            got += self.file.read(size)
            self.file.readline()
        self.file.readline()
        return status, sizes, got.decode("latin-1")

def recover(known, alphabet, count):
    "One character after the other: the one that had most held back, or anything else of its own."
    found, peer = known, Host()
    for _ in range(count):
        seen = {}
        for guess in alphabet:
            for text in (found + guess, "x" * 3000 + found + guess):
                _, sizes, got = peer.ask("POST /mirror", text.encode() + bytes(1) + b" and more")
                seen.setdefault(guess, []).append((sizes, len(got), got == text + " and more"))
        best = min(alphabet, key=lambda guess: seen[guess][1][0][:1])
        if sum(seen[best] == other for other in seen.values()) > 1:
            break
        found += best
    return found[len(known):]
"""


def test_a_host_that_echoes_guesses_tells_nothing(setting):
    """The sizes of the pieces that an answer arrives in are the same, however much of the secret it resembles: of
    nothing, of a part, and of all but its end."""
    known = [setting.secret[:size] for size in (0, 3, 10, len(setting.secret) - 6)]
    found = setting.box.do(ATTACK + """
result = [recover(text, "0123456789abcdefsk-", 5) for text in known]
""", host=setting.host, known=known)
    assert found == [""] * len(known)
    # The whole secret is taken out, wherever it is cut in two: whoever guesses all of it learns that.
    got = setting.box.do(ATTACK + """
result = [Host().ask("POST /mirror", b"to " + secret[:at].encode() + bytes(1) + secret[at:].encode() + b" end")[2]
          for at in range(0, len(secret), 5)]
""", host=setting.host, secret=setting.secret)
    assert got == [f"to {'*' * len(setting.secret)} end"] * len(got)


def test_parts_of_answers(world, setting):
    """Ranges are not passed on, nor are answers in parts: a secret that is cut in two is not found."""
    since = world.now()
    got = setting.box.do(ATTACK + """
peer = Host()
whole = peer.ask("GET /ranged")
where = whole[2].index("Bearer ")
found, status = "", []
for at in range(where, where + 50, 5):
    for field in ("Range", "range", "Request-Range"):
        answer = peer.ask("GET /ranged", fields=f"{field}: bytes={at}-{at + 4}\\r\\nIf-Range: x\\r\\n")
        status.append(answer[0])
        found += answer[2] if answer[0] == 206 else ""
result = {"found": found, "status": status, "partial": Host().ask("GET /partial")}
""", host=setting.host)
    assert got["found"] == "" and set(got["status"]) == {200}
    assert got["partial"][0] == 502 and "206" in got["partial"][2]
    assert not any({"range", "if-range", "request-range"} & set(dict(met["fields"])) for met in
                   world.met(since, kind="http", host=setting.host))


@pytest.mark.parametrize("form", ["plain", "json", "percent", "html", "hex", "HEX", "base64", "base64-1", "base64-2"])
def test_echoes_in_other_forms(setting, form):
    """What the answer still has of a form is not enough to get any of the secret back."""
    [got] = setting.box.do(ATTACK + f'result = [Host().ask("GET /as/{form}")[2]]', host=setting.host)
    whole = world_services.echoed_as(form, f"Bearer {setting.secret}")
    assert len(got) == len(whole) and "*" * len(setting.secret) in got
    left = [place for place in range(len(whole)) if got[place] != "*"]
    assert all(got[place] == whole[place] for place in left)
    other = world_services.echoed_as(form, "Bearer " + "sk-" + "0" * (len(setting.secret) - 3))
    if len(other) == len(whole):  # what is left would be there with another secret, too
        assert all(got[place] == other[place] for place in left)


def test_web_sockets_are_asked_for(server, setting):
    """Their messages have no line ends, so what is held back of them goes on soon: only who wants that has it."""
    path, ask = f"/v0/sandbox/{setting.box.name}/network", ATTACK + """
with socket.create_connection((host, 80), PATIENT) as sock:
    sock.sendall(f"GET /upgrade HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n".encode())
    got = sock.recv(65536)
    if b" 101 " in got:
        sock.sendall(b"<" + secret.encode() + b">")
        while b">" not in got:
            got += sock.recv(65536)
result = {"got": got.decode("latin-1")}
"""
    before = server.request("GET", path).json()["headers"]
    assert "HTTP/1.1 403 " in setting.box.do(ask, host=setting.host, secret=setting.secret)["got"]
    allowed = [{**header, "upgrade": True} for header in before]
    assert server.request("PATCH", path, {"headers": allowed}).json()["headers"] == allowed
    assert f"<{'*' * len(setting.secret)}>" in setting.box.do(ask, host=setting.host, secret=setting.secret)["got"]
    done = server.cli("network", "set", setting.box.name, "--header", f"{setting.host}:Authorization=Bearer {{{setting.name}}}",
                      "--header-upgrade")
    assert done.returncode == 0 and "WebSockets allowed" in done.stdout, done
    assert server.request("PATCH", path, {"headers": before}).json()["headers"] == before


def test_it_is_nowhere_inside(setting):
    """Not in the environment, the memory, the files or the processes of the sandbox."""
    look = f"""
needle = {setting.secret[::-1]!r}[::-1]
import os
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    if pid == str(os.getpid()):
        continue
    for name in ("environ", "cmdline"):
        try:
            if needle.encode() in open(f"/proc/{{pid}}/{{name}}", "rb").read():
                found.append(pid)
        except OSError:
            pass
for top in ("/etc", "/run", "/root", "/home", "/workspace", "/tmp", "/.cella"):
    for folder, _, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path) and needle.encode() in open(path, "rb").read(1 << 20):
                    found.append(path)
            except OSError:
                pass
result = found
"""
    assert setting.box.do(look) == []


def test_not_in_answers_and_logs_of_the_server(server, setting):
    path = f"/v0/sandbox/{setting.box.name}"
    told = "".join(server.request("GET", path + below).text
                   for below in ("", "/network", "/network/log", "/logs?tail=1000"))
    assert setting.secret not in told + server.log()
    for file in (server.data / "db").glob("cella.db*"):
        assert setting.secret.encode() not in file.read_bytes()


def test_without_the_secret_nothing_goes_out(server, world, setting):
    """Deleted, or no longer for this host: requests fail, and do not go without it. Then it is back."""
    secrets = f"/v0/secrets/{setting.name}"
    since = world.now()
    assert server.request("PUT", secrets, {"hosts": ["elsewhere.example"]}).status == 200
    got = setting.box.do("http(host, host)", host=setting.host)
    assert got["status"] == 502, got
    assert server.request("DELETE", secrets).status == 200
    assert setting.box.do("http(host, host)", host=setting.host)["status"] == 502
    assert world.met(since, kind="http", host=setting.host) == []
    body = {"value": setting.secret, "hosts": [setting.host]}
    assert server.request("PUT", secrets, body).status == 200
    assert setting.box.do("http(host, host)", host=setting.host)["status"] == 200
    assert setting.seen(since) == [f"Bearer {setting.secret}"]


def test_a_certificate_that_is_not_the_hosts(server, world, setting):
    """Whoever answers for the host without its certificate is not told anything."""
    bad = world.zone("badcert.example", A=[WEB])
    assert server.request("PUT", f"/v0/secrets/{setting.name}-bad",
                          {"value": setting.secret, "hosts": [bad]}).status == 200
    made = Box(server.create(network={
        "mode": "allowlist", "allow": [bad],
        "headers": [{"host": bad, "header": "X-Key", "secret": f"{setting.name}-bad"}]}))
    try:
        since = world.now()
        got = made.do("http(host, host)", host=bad)
        assert got["status"] == 502 and "certificate" in got["got"], got
        assert world.met(since, kind="http", host=bad) == []
    finally:
        made.delete()


def test_tls_under_the_sandboxs_own_authority(server, world, setting):
    """https:// as programs write it; other hosts keep their own certificates; and it ends when it should."""
    path = f"/v0/sandbox/{setting.box.name}/network/ca"
    before = setting.box.do("https(host, host, ca=None)", host=setting.host)
    assert setting.secret not in json.dumps(before)
    answer = server.request("PUT", path)
    assert answer.status == 200 and answer.json()["installed"], answer
    certificate = answer.json()["certificate"]
    assert server.request("PUT", path).json()["certificate"] == certificate
    assert "PRIVATE" not in answer.text
    since = world.now()
    got = setting.box.run(f"curl -sS --max-time 60 https://{setting.host}/")
    assert json.loads(got)["sni"] == setting.host and setting.secret not in got
    assert setting.seen(since) == [f"Bearer {setting.secret}"]
    got = setting.box.do("""
import urllib.request
result = {"got": urllib.request.urlopen(f"https://{host}/chunked", timeout=PATIENT).read().decode()}
""", host=setting.host)
    assert setting.secret not in got["got"] and "Bearer ***" in got["got"]
    # The other host is not decrypted: its certificate is the world's, which the sandbox does not know.
    refused = setting.box.exec(f"curl -sS --max-time 60 https://{setting.other}/", timeout=90)
    assert refused.exit_code == 60, refused
    assert server.request("DELETE", path).json() == {"certificate": None, "removed": True}
    refused = setting.box.exec(f"curl -sS --max-time 60 https://{setting.host}/", timeout=90)
    assert refused.exit_code == 60, refused


def test_it_holds_after_everything(server, world, setting):
    """Stop and start, a clone, a crash of the egress process and of the server's own."""
    fetch = "http(host, host)"

    def works(box):
        since = world.now()
        assert box.do(fetch, host=setting.host)["status"] == 200
        assert setting.seen(since) == [f"Bearer {setting.secret}"]

    setting.box.stop()
    setting.box.start()
    works(setting.box)
    copied = setting.box.request("POST", "/clone", {"metadata": {}})
    assert copied.status == 202, copied
    clone = server.sandbox(copied.json()["metadata"]["name"])
    try:
        clone.wait_status("running")
        works(Box(clone))
    finally:
        clone.delete()
    before = server.kill("cellad", "warden")
    server.wait_recovered(before, "cellad", "warden")
    wait_until(lambda: setting.box.do(fetch, host=setting.host).get("status") == 200, 60, "its network is back")
    works(setting.box)


def test_it_is_killed_while_secrets_are_in_use(server, world, setting):
    """The egress process alone, again and again, with requests under way: none of them went without the secret, none
    came back with it, and it is known again afterwards."""
    since = world.now()
    with setting.box.doing("""
print("ready", flush=True)
while True:
    got = outcome(lambda: http(web, host, timeout=10))
    print("LEAK" if leak in json.dumps(got) else got.get("status"), flush=True)
    time.sleep(0.02)
""", web=WEB, host=setting.host, leak="sk-") as said:
        for _ in range(2):
            seen = len(said().split())
            wait_until(lambda at=seen: "200" in said().split()[at:], 60, said)
            server.kill_egress()
        seen = len(said().split())
        wait_until(lambda: "200" in said().split()[seen:], 60, said)
        assert "LEAK" not in said()
    assert set(setting.seen(since)) == {f"Bearer {setting.secret}"}
    assert world.met(since, kind="http", host=setting.host, port=80) == []


def test_headers_that_are_taken_away(server, world, setting):
    """From then on requests go as they are, to where they say."""
    path = f"/v0/sandbox/{setting.box.name}/network"
    before = server.request("GET", path).json()
    policy = {"mode": "allowlist", "allow": [setting.host, setting.other]}
    assert server.request("PUT", path, {**policy, "headers": []}).status == 200
    since = world.now()
    assert setting.box.do("http(host, host)", host=setting.host)["status"] == 200
    [met] = world.met(since, kind="http", host=setting.host)
    assert met["port"] == 80 and setting.seen(since) == [None]
    assert server.request("PUT", path, {**policy, "headers": before["headers"]}).status == 200
    since = world.now()
    assert setting.box.do("http(host, host)", host=setting.host)["status"] == 200
    assert setting.seen(since) == [f"Bearer {setting.secret}"]


def test_rules_of_e2bs_clients(world, server):
    """network.rules, with a secret that their API has made and with a value as it is, over https from inside;
    a fork's requests get them as well, and one's whose rules were taken away do not."""
    host, name, value = world.name(WEB, label="api"), f"E2B_KEY.{uuid.uuid4().hex[:8]}", f"sk-{uuid.uuid4().hex}"
    answer = server.request("POST", "/secrets", {"name": name, "value": value, "metadata": {"hosts": f"{host}, *.a.example"}})
    assert answer.status == 201 and value not in answer.text, answer
    network = {"allowOut": [host], "denyOut": ["0.0.0.0/0"], "rules": {host: [{"transform": {"headers": {
        "Authorization": f"Bearer ${{e2b.secrets.{name}}}", "X-Plain": "as it is"}}}]}}
    answer = server.request("POST", "/v2/sandboxes", {"templateID": "base", "network": network})
    assert answer.status == 201, answer
    made = [answer.json()["sandboxID"]]
    try:
        answer = server.request("POST", f"/sandboxes/{made[0]}/fork", {"count": 1})
        made.append(answer.json()[0]["sandbox"]["sandboxID"])
        for sandbox in made:
            since = world.now()
            got = server.sandbox(sandbox).run(f"curl -sS --max-time 60 https://{host}/")
            [met] = world.met(since, kind="http", host=host)
            fields = dict(met["fields"])
            assert (fields.get("authorization"), fields.get("x-plain")) == (f"Bearer {value}", "as it is")
            assert value not in got
        shown = server.request("GET", f"/sandboxes/{made[0]}").json()["network"]
        assert shown == network
        assert all("rules" not in item.get("network", {}) for item in server.request("GET", "/v2/sandboxes").json())
        answer = server.request("PUT", f"/sandboxes/{made[0]}/network", {"allowOut": [host], "denyOut": ["0.0.0.0/0"]})
        assert answer.status == 204, answer
        since = world.now()
        server.sandbox(made[0]).run(f"curl -sS --max-time 60 http://{host}/")
        [met] = world.met(since, kind="http", host=host)
        assert not {"authorization", "x-plain"} & set(dict(met["fields"]))
        refused = {f"other.{host}": "FORBIDDEN", host: None}
        for goal, error in refused.items():
            rules = {goal: network["rules"][host]}
            answer = server.request("PUT", f"/sandboxes/{made[0]}/network", {"rules": rules})
            assert answer.status == (204 if error is None else 403), (goal, answer)
    finally:
        for sandbox in made:
            assert server.request("DELETE", f"/sandboxes/{sandbox}").status == 204
        assert server.request("DELETE", f"/secrets/{name}").status == 204
