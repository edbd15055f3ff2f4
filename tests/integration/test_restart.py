# SPDX-License-Identifier: Apache-2.0
"""Restart policies (spec.restart): which sandboxes come back after the server or the machine was restarted, and how."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import time

import pytest

import e2b_box
from cella_ports import APP, PORT, Published
from cella_server import Sandbox, Server, process_alive, wait_until

NO_BOOT = "00000000-0000-0000-0000-000000000000"


def record(box):
    """What the warden keeps of a running sandbox."""
    return box.server.data / "run" / "sandboxes" / box.get()["metadata"]["id"]


def init_pid(path):
    """The pid, on the host, of the pid 1 that a record names; None while there is none."""
    with contextlib.suppress(OSError):
        pid = int(re.search(r"(?m)^pid (\d+)", path.read_text()).group(1))
        return pid if pid > 1 and process_alive(pid) else None
    return None


def kill_init(box, path=None):
    """Kills a sandbox's pid 1 and waits until it is gone; gives the time before."""
    pid = wait_until(lambda: init_pid(path or record(box)), 60, "pid 1")
    began = time.monotonic()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not process_alive(pid), 30, "pid 1 gone")
    return began


def killing(box, path, seen):
    """Kills pid 1 whenever there is one, until seen() gives something true, which is given back."""

    def check():
        if init_pid(path):
            kill_init(box, path)
        return seen()

    return wait_until(check, 60, "what is to be seen while it does not run")


def term(server):
    server.stop()
    server.start()


def reboot(server):
    """Everything dies at once, and what is left was written down in another boot."""
    records = list((server.data / "run" / "sandboxes").iterdir())
    inits = [pid for pid in map(init_pid, records) if pid]
    egress = server.egress_pid()
    before = server.kill("supervisor")
    for pid in inits:
        os.kill(pid, signal.SIGKILL)
    for pid in [*before, *inits, *([egress] if egress else [])]:
        wait_until(lambda: not process_alive(pid), 30, f"{pid} gone")  # pylint: disable=cell-var-from-loop
    for path in records:
        path.write_text(re.sub(r"(?m)^boot .*", f"boot {NO_BOOT}", path.read_text()))
    server.start()


def events(box, kind):
    return [event for event in box.get()["events"] if event["type"] == kind and event["status"] == "SUCCESS"]


def waits_for_use(box):
    about = box.get()
    return about["status"] == "stopped" and about.get("startsOnUse", False)


# --- each policy, after each kind of restart ---

class World:
    """A server with sandboxes in every state that matters, restarted."""

    def __init__(self, restart):
        self.server = Server()
        try:
            self._make()
            restart(self.server)
        except BaseException:
            self.server.destroy()
            raise

    def _make(self):
        server = self.server
        self.boxes = {name: server.create(name=name, restart=name) for name in ("on-use", "on-boot", "always", "no")}
        self.ways = {way: server.create(name=f"way-{way}") for way in WAYS}
        self.stopped = server.create(name="user-stopped", restart="always")
        self.paused = server.create(name="user-paused", restart="always")
        self.off = server.create(name="never-started", restart="always", enabled=False)
        server.create(name="started-later", restart="on-boot", enabled=False).start()
        self.ready = {way: prepare(self.ways[way]) for way, (prepare, _) in WAYS.items() if prepare}
        self.e2b = e2b_box.Box(server)
        for box in [*self.boxes.values(), *self.ways.values(), self.stopped, self.paused]:
            box.write("/kept", box.name)
        self.stopped.stop()
        assert self.paused.request("PUT", "/pause").status == 202
        self.paused.wait_status("paused")

    def close(self):
        self.server.close()


def publish(box):
    box.write("/port_app.py", APP.read_text())
    return Published(box, access="public", command=f"exec python3 /port_app.py {PORT}")


def ok(answer, status=200):
    assert answer.status == status, answer


# way → (what has to be there before the restart, what is done after it)
WAYS = {
    "exec": (None, lambda box, _: box.run("true")),
    "file": (None, lambda box, _: box.read("/kept")),
    "upload": (None, lambda box, _: ok(box.request("POST", "/filesystem-multipart/initiate/tmp/x", {}))),
    "find": (None, lambda box, _: ok(box.request("GET", "/filesystem-find/tmp"))),
    "tree": (None, lambda box, _: ok(box.request("GET", "/filesystem/tree/tmp"))),
    "code": (None, lambda box, _: ok(box.request("POST", "/code", {"code": "1 + 1"}, timeout=60))),
    "context": (None, lambda box, _: ok(box.request("POST", "/code/contexts", {"language": "python"}, timeout=60), 201)),
    "terminal": (None, lambda box, _: ok(box.request("POST", "/terminal/sessions", {}), 201)),
    "processes": (None, lambda box, _: ok(box.request("GET", "/process"))),
    "pause": (None, lambda box, _: ok(box.request("PUT", "/pause"), 202)),
    "port": (publish, lambda box, port: ok(port.on_host())),
    "blaxel": (None, lambda box, _: ok(box.server.request(
        "POST", f"/default/sandboxes/{box.name}/process", {"command": "true", "waitForCompletion": True}))),
    "aisandbox": (None, lambda box, _: ok(box.server.request(
        "POST", "/api/sandbox/exec", {"containerId": box.name, "command": "true"}))),
}


@pytest.fixture(scope="module", params=[term, reboot])
def world_after(request):
    made = World(request.param)
    yield made
    made.close()


def test_on_boot_and_always_start_with_the_server(world_after):
    world_after.server.sandbox("started-later").wait_status("running")
    for name in ("on-boot", "always"):
        box = world_after.boxes[name].wait_status("running")
        assert box.read("/kept").decode() == name
        assert box.get()["events"][-1]["message"] == "Sandbox started successfully"


def test_on_use_waits_for_its_first_use_and_starts_once(world_after):
    box = world_after.boxes["on-use"]
    assert waits_for_use(box)
    assert box.request("GET", "/metrics").status == 200 and waits_for_use(box)  # which is looking
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda way: way(), [lambda: box.run("cat /kept"), lambda: box.read("/kept").decode()] * 4))
    assert read == ["on-use"] * 8
    assert len(events(box, "RESUME")) == 1 and not waits_for_use(box)
    assert any("Woken by a request" in entry["message"] for entry in box.request("GET", "/logs").json()["logs"])


@pytest.mark.parametrize("way", WAYS)
def test_every_use_starts_it(world_after, way):
    box = world_after.ways[way]
    assert waits_for_use(box)
    WAYS[way][1](box, world_after.ready.get(way))
    assert len(events(box, "RESUME")) == 1
    assert box.status() in ("running", "pausing", "paused")


def test_no_stays_stopped_until_it_is_started(world_after):
    box = world_after.boxes["no"]
    assert box.status() == "stopped" and not waits_for_use(box)
    answer = box.request("POST", "/process", {"command": "true"})
    assert answer.status == 409 and answer.error() == "NOT_RUNNING" and "start it first" in answer.text
    assert box.start().read("/kept") == b"no"


def test_what_its_user_stopped_stays_stopped(world_after):
    for box in (world_after.stopped, world_after.off):
        assert box.status() == "stopped" and not waits_for_use(box)
        assert box.request("POST", "/process", {"command": "true"}).error() == "NOT_RUNNING"
    assert world_after.stopped.start().read("/kept") == b"user-stopped"


def test_a_paused_one_comes_back_stopped_with_its_files(world_after):
    box = world_after.paused
    assert box.status() == "stopped" and not waits_for_use(box)
    assert "its memory is gone" in events(box, "STOP")[-1]["message"]
    answer = box.request("POST", "/process", {"command": "true"})
    assert answer.status == 409 and answer.error() == "NOT_RUNNING"
    assert box.request("PUT", "/resume").status == 202
    assert box.wait_status("running").read("/kept") == b"user-paused"


def test_e2b_s_clients_notice_only_lost_processes(world_after):
    box = world_after.e2b
    assert waits_for_use(Sandbox(world_after.server, box.id))
    assert box.control("GET", f"/sandboxes/{box.id}").json()["state"] == "running"
    assert world_after.server.request("GET", f"/v0/sandboxes/{box.id}").json()["status"] == "DEPLOYED"
    assert world_after.server.request("GET", f"/api/sandbox/{box.id}").json()["status"] == "running"
    assert box.id in [one["sandboxID"] for one in box.control("GET", "/v2/sandboxes?state=running").json()]
    assert box.call("GET", "/health", token=False).status == 204
    assert waits_for_use(Sandbox(world_after.server, box.id))  # they only looked
    assert box.run("echo back") == b"back\n"


# --- what else decides ---

def test_stop_takes_a_start_by_use_back(server_factory):
    server = server_factory()
    box, gone = server.create(restart="on-boot"), server.create()
    term(server)
    box.wait_status("running")
    assert waits_for_use(gone)
    gone.stop()
    assert not waits_for_use(gone) and gone.request("PUT", "/stop").error() == "NOT_RUNNING"
    box.stop()
    term(server)
    assert (box.status(), gone.status()) == ("stopped", "stopped")
    assert not waits_for_use(gone) and gone.request("POST", "/process", {"command": "true"}).status == 409


def test_a_start_by_use_can_be_refused_for_want_of_room(server_factory):
    server = server_factory("--overcommit", "1", "--capacity", "cpu=4,memory=1Gi,disk=8Gi")
    small = {"resources": {"cpu": "500m", "memory": "600Mi", "disk": "1Gi"}}
    box = server.create(**small)
    port = publish(box)
    term(server)
    other = server.create(**small)
    answer = box.request("POST", "/process", {"command": "true", "waitForCompletion": True})
    assert answer.status == 409 and answer.error() == "INSUFFICIENT_RESOURCES" and "memory" in answer.text
    answer = port.on_host()
    assert answer.status == 503 and "memory" not in answer.text  # which is not for strangers
    assert waits_for_use(box)
    other.delete()
    assert box.run("echo here") == "here"


def test_a_restart_of_the_service_keeps_sandboxes(server_factory):
    """SIGUSR1 before SIGTERM, as the systemd unit sends them."""
    server = server_factory()
    box = server.create(restart="no")
    born = box.init_start_time()
    server.process.send_signal(signal.SIGUSR1)
    term(server)
    assert box.init_start_time() == born
    term(server)  # once: not for good
    assert box.status() == "stopped"


# --- always, while the server runs ---

def test_always_comes_back_when_its_pid_1_dies(server):
    box = server.create(restart="always")
    path = record(box)
    box.write("/kept", "x")
    kill_init(box, path)
    wait_until(lambda: len(events(box, "START")) == 2, 30, lambda: box.get()["events"])
    assert box.read("/kept") == b"x"
    box.delete()


@pytest.mark.parametrize("policy", ["on-use", "on-boot", "no"])
def test_others_do_not(server, policy):
    box = server.create(restart=policy)
    kill_init(box)
    box.wait_status("failed")
    answer = box.request("POST", "/process", {"command": "true"})
    assert answer.error() == "NOT_RUNNING" and "ended unexpectedly" in answer.text, answer
    box.delete()


def test_a_pid_1_that_dies_at_once(server):
    """The delay doubles, and nothing is busy meanwhile; a stop ends it, a start begins again."""
    box = server.create(restart="always")
    path = record(box)
    killed = [kill_init(box, path) for _ in range(3)]
    gaps = [after - before for before, after in zip(killed, killed[1:])]
    assert gaps[0] > 0.45 and gaps[1] > 0.95, gaps

    def delayed():
        answer = box.request("POST", "/process", {"command": "true"})
        return answer.error() == "NOT_RUNNING" and re.search(r"started again in (\d+\.\d) s", answer.text)

    delay = float(killing(box, path, delayed).group(1))
    server.check_idle()
    box.stop()
    assert not delayed()
    time.sleep(delay + 0.5)  # until it would have been started
    assert box.status() == "stopped"
    box.start().delete()


def test_always_is_tried_again_when_there_was_no_room(server_factory):
    server = server_factory("--overcommit", "1", "--capacity", "cpu=4,memory=1Gi,disk=8Gi")
    small = {"resources": {"cpu": "500m", "memory": "600Mi", "disk": "1Gi"}}
    box = server.create(restart="always", **small)

    def other():
        answer = server.request("POST", "/v0/sandbox", {"spec": small})
        return answer.status == 202 and server.sandbox(answer.json()["metadata"]["name"])

    other = killing(box, record(box), other).wait_status("running")
    wait_until(lambda: "Not started again" in box.request("GET", "/logs").text, 60, "a refused start")
    other.delete()
    wait_until(lambda: box.status() == "running", 60, "it runs")


# --- the setting ---

def test_it_is_shown_changed_copied_and_inherited(server):
    box = server.create()
    assert box.get()["spec"]["restart"] == "on-use"
    for policy in ("always", "no", "on-boot"):
        answer = server.request("PATCH", box.base, {"spec": {"restart": policy}})
        assert answer.status == 200 and answer.json()["spec"]["restart"] == policy
    for method, path, body in (("PATCH", box.base, {"spec": {"restart": "sometimes"}}),
                               ("POST", "/v0/sandbox", {"spec": {"restart": "sometimes"}})):
        answer = server.request(method, path, body)
        assert answer.status == 400 and "on-use, on-boot, always, no" in answer.text
    copies = [server.request("POST", f"{box.base}/clone", body).json()["metadata"]["name"]
              for body in ({}, {"spec": {"restart": "always"}})]
    assert [server.sandbox(name).get()["spec"]["restart"] for name in copies] == ["on-boot", "always"]
    group = server.request("POST", "/v0/groups", {"spec": {"restart": "no"}, "sandboxes": [
        {"name": "a"}, {"name": "b", "spec": {"restart": "always"}}]})
    assert group.status == 202, group
    name = group.json()["metadata"]["name"]
    members = server.request("GET", f"/v0/sandbox?group={name}").json()["sandboxes"]
    assert [member["spec"]["restart"] for member in members] == ["no", "always"]
    server.request("DELETE", f"/v0/groups/{name}")
    for one in (box, *map(server.sandbox, copies)):
        one.delete()


def test_on_the_command_line(server):
    done = server.cli("sandbox", "create", "--name", "cli-restart", "--restart", "always")
    assert done.returncode == 0, done
    box = server.sandbox("cli-restart")
    assert re.search(r"(?m)^Restart +always$", server.cli("sandbox", "get", "cli-restart").stdout)
    assert server.cli("sandbox", "update", "cli-restart", "--restart", "no").returncode == 0
    assert box.get()["spec"]["restart"] == "no"
    refused = server.cli("sandbox", "create", "--restart", "never")
    assert refused.returncode != 0 and "on-use" in refused.stderr
    box.wait_status("running").delete()


def test_a_claim_of_a_pool_is_not_hindered(server):
    answer = server.request("POST", "/v0/pools", {"name": "restart", "image": "host", "size": 1})
    assert answer.status == 201, answer

    def status():
        return server.request("GET", "/v0/pools/restart").json()["status"]

    wait_until(lambda: status()["ready"] == 1, 30, status)
    box = server.create(restart="always")
    assert status()["claimed"] == 1, status()
    assert box.get()["spec"]["restart"] == "always"
    box.delete()
    server.request("DELETE", "/v0/pools/restart")
