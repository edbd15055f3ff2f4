# SPDX-License-Identifier: Apache-2.0
"""Plays random lives of sandboxes against a server, and holds what it does against lifecycle_model.py.

Hypothesis draws the steps and shrinks a sequence that fails to a few of them. One step is a batch of up to
four requests by as many clients at once, beside which a process may be killed with SIGKILL; another waits
until everything is at rest and looks at it. A sequence begins and ends with an empty server."""

import collections
import concurrent.futures
import contextlib
import http.client
import os
import signal
import sys
import threading
import time

from hypothesis import HealthCheck, Phase, seed as with_seed, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from cella_server import Server, process_alive, wait_until
from lifecycle_model import DONE, GOALS, MEMBERS, PATHS, REFUSED, UNKNOWN, Effect, Model, Violation

QUOTA = 7
MEMORY = "96Mi"
SMALL = {"resources": {"cpu": "500m", "memory": MEMORY, "disk": "128Mi"}}
NAMES = ("a", "b", "c", "d", "e")
GROUP = "g"
SETTLED = {"running", "stopped", "paused", "failed"}
# A sandbox that is not at rest after this long never will be. Shorter while a failure is shrunk, since every
# sequence that still fails waits for it.
AT_REST_S, AT_REST_AGAIN_S = 60, 20
REQUEST_S = 45

# What a client asks for: `target` is the sandbox (or group) that it is about, `name` a new one's.
Op = collections.namedtuple("Op", "kind target name path value")
# As it is drawn: `which` picks one of the sandboxes that exist then, the youngest first; `name` a new name, those
# that are free first.
Draw = collections.namedtuple("Draw", "kind which name path memory")

ON_BOX = ["clone"] * 4 + ["delete"] * 3 + ["stop", "start"] * 2 + ["pause", "resume"] * 2 + ["write", "exec"] * 2 + [
    "read", "resize", "rollback", "kill_init"]
OTHERS = ["create"] * 3 + ["create_off", "group_make", "group_end", "group_start", "group_stop", "group_resize",
                           "pool_make", "pool_drop"]



def draws(kinds):
    return st.builds(Draw, st.sampled_from(kinds), st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 5]),
                     st.sampled_from([0, 0, 0, 0, 0, 1, 2, 4, 6]), st.sampled_from(PATHS),
                     st.sampled_from(["96Mi", "112Mi", "128Mi"]))


BATCHES = st.lists(draws(ON_BOX + OTHERS), min_size=1, max_size=4)
VICTIMS = st.sampled_from(["cellad", "warden", "egress", "cellad+warden", "supervisor"])
STALLS = st.integers(20, 300)
KILLS = st.tuples(VICTIMS, st.integers(0, 30))


class Servers:
    """One server for all sequences; another one after a failure, which may have left anything behind."""

    def __init__(self, *args):
        self.args, self.server, self.failed = args, None, False
        self.steps = self.sequences = 0
        self.until = None  # time.monotonic() at which no more is begun

    def get(self):
        if self.server is None:
            self.server = Server("--quota", f"sandboxes={QUOTA}", *self.args)
        return self.server

    def discard(self):
        self.failed = True
        if self.server is not None:
            self.server.destroy()
        self.server = None

    def close(self):
        if self.server is not None:
            self.server.close()

    def is_over(self):
        return self.until is not None and time.monotonic() > self.until and not self.failed


class Client:
    """Sends a request of the model's, and says what came of it."""

    def __init__(self, server):
        self.server = server

    def base(self, name):
        group, _, member = name.rpartition("/")
        return f"/v0/groups/{group}/sandbox/{member}" if group else f"/v0/sandbox/{name}"

    def _send(self, method, path, body=None, headers=None):
        """(outcome, answer or what went wrong)"""
        try:
            answer = self.server.request(method, path, body, headers, timeout=REQUEST_S)
        except (OSError, http.client.HTTPException) as lost:
            return UNKNOWN, repr(lost)
        if answer.status < 300:
            return DONE, answer
        if answer.status < 500:
            return REFUSED, answer
        if answer.status == 500:
            raise Violation(f"{method} {path}: {answer}")
        return UNKNOWN, answer

    def send(self, op):
        """(Effect, answer)"""
        special = getattr(self, f"_{op.kind}", None)
        if special is not None:
            return special(op)
        outcome, answer = self._send(*self._request(op))
        return Effect(op, outcome, {op.path: [op.value]} if op.kind == "write" else {}), answer

    def _request(self, op):
        kind, base = op.kind, None if op.target is None else self.base(op.target)
        if kind in ("create", "create_off"):
            group, _, name = op.name.rpartition("/")
            body = {"metadata": {"name": name}, "spec": {**SMALL, "enabled": kind == "create"}}
            return "POST", f"/v0/groups/{group}/sandbox" if group else "/v0/sandbox", body
        if kind == "clone":
            return "POST", f"{base}/clone", {"name": op.name.rpartition("/")[2]}
        if kind == "delete":
            return "DELETE", base
        if kind == "write":
            return "PUT", f"{base}/filesystem{op.path}", op.value.encode(), {"Content-Type": "application/octet-stream"}
        if kind == "resize":
            return "POST", f"{base}/resize", {"memory": op.value}
        if kind == "group_make":
            return "POST", "/v0/groups", {"name": op.target, "spec": SMALL, "sandboxes": [{"name": n} for n in MEMBERS]}
        if kind == "group_resize":
            return "POST", f"/v0/groups/{op.target}/resize", {"memory": op.value}
        if kind.startswith("group_"):
            return "POST", f"/v0/groups/{op.target}/{kind[len('group_'):]}"
        if kind == "pool_make":
            return "POST", "/v0/pools", {"name": "pool", "size": 1, **SMALL}
        if kind == "pool_drop":
            return "DELETE", "/v0/pools/pool"
        return "PUT", f"{base}/{kind}"

    def _run(self, op, value):
        """A command that leaves the file with the new content or as it was."""
        command = f"printf {value} > {op.path}.new && mv {op.path}.new {op.path}"
        return self._send("POST", f"{self.base(op.target)}/process",
                          {"command": command, "waitForCompletion": True, "timeout": 30})

    def _exec(self, op):
        outcome, answer = self._run(op, op.value)
        if outcome == DONE and answer.json().get("exitCode") != 0:
            outcome = UNKNOWN  # its sandbox ended under it
        return Effect(op, outcome, {op.path: [op.value]}), answer

    def _rollback(self, op):
        """Writes twice and goes back to what the first command left."""
        old, new = f"{op.value}-1", f"{op.value}-2"
        values, executions = [], []
        for value in (old, new):
            outcome, answer = self._run(op, value)
            if outcome == REFUSED:
                break
            values.append(value)
            if outcome == UNKNOWN or answer.json().get("exitCode") != 0:
                return Effect(op, UNKNOWN, {op.path: values}), answer
            executions.append(answer.json().get("executionId"))
        if len(executions) < 2:
            return Effect(op, DONE if values else REFUSED, {op.path: values} if values else {}), answer
        outcome, answer = self._send("POST", f"{self.base(op.target)}/rollback", {"executionId": executions[0]})
        if outcome == DONE and op.path.startswith("/workspace"):
            return Effect(op, DONE, {op.path: [old]}, {op.path: values}), answer
        if outcome == UNKNOWN:
            return Effect(op, UNKNOWN, {op.path: values}), answer
        return Effect(op, DONE, {op.path: [new]}, {op.path: values}), answer

    def _read(self, op):
        return Effect(op, *self.content(op.target, op.path)), None

    def content(self, name, path):
        """(outcome, the text or None where there is no such file)"""
        outcome, answer = self._send("GET", f"{self.base(name)}/filesystem{path}", None,
                                     {"Accept": "application/octet-stream"})
        if outcome == DONE:
            return DONE, answer.text
        if outcome == REFUSED and answer.error() == "FILE_NOT_FOUND":
            return DONE, None
        return outcome, answer

    def _kill_init(self, op):
        """kill -9 of its first process, if it runs."""
        outcome, answer = self._send("GET", self.base(op.target))
        if outcome != DONE:
            return Effect(op, REFUSED, {}), answer
        record = self.server.data / "run" / "sandboxes" / answer.json()["metadata"]["id"]
        with contextlib.suppress(OSError, KeyError, ValueError):
            fields = dict(line.split(" ", 1) for line in record.read_text().splitlines())
            pid = int(fields["pid"])
            if pid > 1 and self._is_init(pid):
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: not process_alive(pid), 20, f"{pid} gone")
                return Effect(op, DONE, {}), pid
        return Effect(op, REFUSED, {}), None

    @staticmethod
    def _is_init(pid):
        """So that nothing else is ever killed: it is the first process of a pid namespace that is not ours."""
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            inside = [line.split() for line in status if line.startswith("NSpid:")]
        return bool(inside) and len(inside[0]) > 2 and inside[0][-1] == "1"


class Life(RuleBasedStateMachine):
    """A server, several clients, and the model."""

    servers = None  # set by machine()

    def __init__(self):
        super().__init__()
        self.over = self.servers.is_over()
        self.trace = []
        self.count = 0
        self.pending = set()  # names that are asked for in the batch at hand
        self.broken = False
        if not self.over:
            self.servers.sequences += 1
            self.server = self.servers.get()
            self.client = Client(self.server)
            self.model = Model(QUOTA, MEMORY)
            self.patience = AT_REST_AGAIN_S if self.servers.failed else AT_REST_S

    # --- steps ---

    @initialize(names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    def begin(self, names):
        with self._checked():
            self._batch([Op("create", None, name, None, None) for name in names], None)

    @rule(batch=BATCHES)
    def together(self, batch):
        self._together(batch, None)

    @rule(batch=BATCHES, kill=KILLS)
    def together_with_a_kill(self, batch, kill):
        self._together(batch, kill)

    @rule(first=draws(ON_BOX), batch=BATCHES)
    def one_after_the_other(self, first, batch):
        """As fast as one client can ask."""
        for draw in (first, *batch):
            self._together([draw], None)

    @rule(first=draws(ON_BOX), batch=BATCHES, stall_ms=STALLS)
    def one_after_the_other_while_the_warden_stalls(self, first, batch, stall_ms):
        """Requests are accepted, and nothing is done for a while: so each of them meets the ones before half done."""
        with self._stalled(stall_ms):
            self.one_after_the_other(first, batch)

    @rule(batch=BATCHES, stall_ms=STALLS)
    def together_while_the_warden_stalls(self, batch, stall_ms):
        with self._stalled(stall_ms):
            self._together(batch, None)

    @rule(batch=BATCHES, kill=KILLS, stall_ms=STALLS)
    def together_with_a_kill_while_the_warden_stalls(self, batch, kill, stall_ms):
        with self._stalled(stall_ms):
            self._together(batch, kill)

    @rule()  # whatever the server did: what is drawn must not depend on it, or a replay would go astray
    def settle(self):
        with self._checked():
            self._settle()

    def teardown(self):
        if self.over:
            return
        try:
            if not self.broken:
                with self._checked():
                    self._settle()
                    self._wake_all()
                    self._clear()
        finally:
            if self.broken:
                self.servers.discard()

    # --- how ---

    def _together(self, batch, kill):
        with self._checked():
            self.pending.clear()
            self._batch([op for op in map(self._op, batch) if op is not None], kill)

    @contextlib.contextmanager
    def _checked(self):
        """A step; nothing more happens after one that failed. Its trace is printed, since the replay of a race may
        take another turn."""
        if self.over:
            yield
            return
        try:
            yield
        except BaseException as failure:
            if isinstance(failure, Exception):
                self.broken = True
                self._report(failure)
            raise
        self.servers.steps += 1

    def _report(self, failure):
        print(f"\n--- a sequence failed: {failure}", *self.trace, sep="\n    ", file=sys.stderr)
        with contextlib.suppress(Exception):
            print("    listed:", self._listed(), file=sys.stderr)
        print("    the server's log ends with:", self.server.log()[-2000:], sep="\n", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def _stalled(self, stall_ms):
        """Stops the warden, and has it go on after that time, or when the block ends."""
        if self.over:
            yield
            return
        pid = self.server.running_pids("warden").warden

        def go_on():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

        self.trace.append(f"the warden stalls for {stall_ms} ms, while")
        timer = threading.Timer(stall_ms / 1000, go_on)
        os.kill(pid, signal.SIGSTOP)
        timer.start()
        try:
            yield
        finally:
            go_on()
            timer.cancel()

    def _op(self, draw):
        if self.over:
            return None
        self.count += 1
        if draw.kind.startswith("group_"):
            return Op(draw.kind, GROUP, None, None, draw.memory)
        if draw.kind in OTHERS:
            return Op(draw.kind, None, self._new_name(draw, GROUP in self.model.groups and draw.which == 1), None, None)
        boxes = list(reversed(self.model.boxes))
        if not boxes:
            return None
        target = boxes[draw.which % len(boxes)]
        # A clone that is asked for by its source's address in a group is made in the group.
        name = self._new_name(draw, "/" in target) if draw.kind == "clone" else None
        value = draw.memory if draw.kind == "resize" else f"v{self.count}"
        return Op(draw.kind, target, name, draw.path, value)

    def _new_name(self, draw, in_group):
        names = [f"{GROUP}/{name}" for name in NAMES] if in_group else NAMES
        taken = {*self.model.boxes, *self.pending}
        name = sorted(names, key=lambda name: (name in taken, name))[draw.name % len(names)]
        self.pending.add(name)
        return name

    def _batch(self, ops, kill):
        if self.over or not (ops or kill):
            return
        must = len(ops) == 1 and kill is None and self.model.must_be_accepted(ops[0])
        start = threading.Barrier(len(ops) + 1)
        with concurrent.futures.ThreadPoolExecutor(len(ops) + 1) as pool:
            jobs = [pool.submit(self._send, start, op) for op in ops]
            start.wait()
            if kill is not None:
                self._kill(*kill)
            done = [job.result() for job in jobs]
        self.trace.append(" | ".join([self._line(op, effect, answer) for op, (effect, answer) in zip(ops, done)] +
                                     ([f"kill -9 {kill[0]} after {kill[1]} ms"] if kill else [])))
        self._check_refusals(ops, done, kill, must)
        if kill is not None:  # the first command's files may be looked at after the second, by the next server
            done = [(effect._replace(values=effect.passing or effect.values), answer) for effect, answer in done]
        before = {name: {path: box.may_have(path) for path in PATHS} for name, box in self.model.boxes.items()}
        for effect, _ in done:
            for path, values in effect.passing.items():
                before.get(effect.op.target, {}).get(path, set()).update(values)
        self.model.apply([effect for effect, _ in done])
        self._check_reads(done, before)

    def _send(self, start, op):
        start.wait()
        return self.client.send(op)

    @staticmethod
    def _line(op, effect, answer):
        what = " ".join(str(part) for part in op if part is not None)
        code = f" {answer.status} {answer.error() or ''}".rstrip() if hasattr(answer, "status") else ""
        return f"{what}: {effect.outcome}{code}"

    def _check_refusals(self, ops, done, kill, must):
        for op, (effect, answer) in zip(ops, done):
            if must and effect.outcome != DONE:
                raise Violation(f"{self._line(op, effect, answer)}: nothing stands against it: {answer}")
            if effect.outcome == REFUSED and hasattr(answer, "error") and answer.error() == "TOO_MANY_SANDBOXES":
                asked_for = sum(2 if o.kind == "group_make" else o.kind in ("create", "create_off", "clone") for o in ops)
                if not self.model.may_refuse_for_quota(asked_for):
                    raise Violation(f"{self._line(op, effect, answer)}: the quota is not reached")

    def _check_reads(self, done, before):
        for effect, _ in done:
            op = effect.op
            if op.kind != "read" or effect.outcome != DONE or op.target not in self.model.boxes:
                continue
            allowed = before.get(op.target, {}).get(op.path, set()) | self.model.boxes[op.target].may_have(op.path)
            if effect.values not in allowed:
                raise Violation(f"{op.target}: {op.path} had {effect.values!r}, and should have had one of {allowed}")

    # --- kills ---

    def _kill(self, victims, delay_ms):
        time.sleep(delay_ms / 1000)
        before = self.server.running_pids("warden", "cellad")
        if victims == "egress":
            self._kill_egress()
            return
        names = victims.split("+")
        self.server.kill(*names)
        if "supervisor" in names:
            for pid in before:
                wait_until(lambda pid=pid: not process_alive(pid), 30, f"{before} gone")
            self.server.start()
        else:
            self.server.wait_recovered(before, *names, deadline=60)

    def _kill_egress(self):
        pid = self.server.egress_pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # --- at rest ---

    def _listed(self):
        answer = self.server.request("GET", "/v0/sandbox?limit=1000", timeout=REQUEST_S)
        assert answer.status == 200, answer
        found = {}
        for item in answer.json()["sandboxes"]:
            metadata = item["metadata"]
            name = f"{metadata['group']}/{metadata['name']}" if metadata.get("group") else metadata["name"]
            found[name] = (item["status"], item["spec"]["resources"]["memory"])
        return found

    def _at_rest(self):
        listed = self._listed()
        if not all(status in SETTLED for status, _ in listed.values()):
            return None
        # One whose first process was killed shows that in a moment.
        for name, box in self.model.boxes.items():
            if box.dying and listed.get(name, ("",))[0] in ("running", "paused"):
                outcome, _ = self.client.content(name, "/etc/hostname")
                if listed[name][0] == "running" and outcome != DONE:
                    return None
        return {"listed": listed}

    def _settle(self):
        if self.over:
            return
        rest = wait_until(self._at_rest, self.patience, lambda: f"everything at rest: {self._listed()}")["listed"]
        self.trace.append(f"at rest: {', '.join(f'{name} {status}' for name, (status, _) in rest.items())}")
        self.model.check_listed(rest)
        paused_and_killed = {name for name, box in self.model.boxes.items() if box.dying and rest.get(name, ("",))[0] == "paused"}
        self.model.settle(rest)
        for name in paused_and_killed & set(self.model.boxes):
            self.model.boxes[name].dying = True
        for name, (status, _) in rest.items():
            for path in PATHS if status == "running" else ():
                outcome, value = self.client.content(name, path)
                if outcome == DONE:
                    self.model.check_content(name, path, value)
        self._check_groups()

    def _check_groups(self):
        answer = self.server.request("GET", "/v0/groups", timeout=REQUEST_S)
        assert answer.status == 200, answer
        there = {group["metadata"]["name"] for group in answer.json()["groups"] if group["status"] != "ending"}
        sure = {name for name, known in self.model.groups.items() if known}
        if not sure <= there <= set(self.model.groups):
            raise Violation(f"groups: {there}, and there should be {self.model.groups}")
        self.model.groups = {name: True for name in there}

    # --- the end ---

    def _wake_all(self):
        """Everything runs once more, and has what it should have."""
        for name, box in self.model.boxes.items():
            verb = {"paused": "resume", "running": None}.get(next(iter(box.statuses)), "start")
            if verb is not None:
                effect, answer = self.client.send(Op(verb, name, None, None, None))
                self.trace.append(f"at the end: {self._line(effect.op, effect, answer)}")
                if effect.outcome != DONE and not box.dying:
                    raise Violation(f"{name} cannot be woken: {answer}")
                box.ask([GOALS[verb]], [])
        self._settle()

    def _clear(self):
        for group in self.model.groups:
            self.client.send(Op("group_end", group, None, None, None))
        boxes = [Op("delete", name, None, None, None) for name in self.model.boxes]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(self.client.send, boxes))
        self.client.send(Op("pool_drop", None, None, None, None))
        wait_until(lambda: not self._listed(), self.patience, lambda: f"nothing left: {self._listed()}")
        wait_until(lambda: self.server.request("GET", "/v0/groups").json()["total"] == 0, self.patience, "no group left")
        wait_until(lambda: self.server.leaks() == "", self.patience, self.server.leaks)


def _alone(kind):
    """A step of a single request. A rule for each kind, so that Hypothesis can leave kinds out of a sequence."""
    def step(self, draw):
        self._together([draw], None)  # pylint: disable=protected-access
    step.__name__ = kind
    return rule(draw=draws([kind]))(step)


for _kind in sorted({*ON_BOX, *OTHERS}):
    setattr(Life, _kind, _alone(_kind))


def play(servers, seed, sequences, steps):
    """Plays sequences that follow from the seed. Raises what the shortest failing one raised, after printing it."""
    factory = with_seed(seed)(type("Life", (Life,), {"servers": servers}))
    run_state_machine_as_test(factory, settings=settings(
        max_examples=sequences, stateful_step_count=steps, deadline=None, database=None, print_blob=False,
        phases=(Phase.generate, Phase.shrink), suppress_health_check=HealthCheck.all()))
