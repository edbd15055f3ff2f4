# SPDX-License-Identifier: Apache-2.0
"""What clients of a server may expect of sandboxes, from the answers that they got: the model that
test_lifecycle_properties.py holds a server against. It knows no HTTP.

Several requests run at once (a batch), and a request that was cut off by a crash may have been carried
out or not. So the model keeps sets: for each sandbox the statuses in which it may come to rest, and for
each file the contents that it may have. An acknowledged request that nothing competes with leaves one
element; looking at a sandbox at rest does, too."""

import collections

DONE, REFUSED, UNKNOWN = "done", "refused", "unknown"  # 2xx; 4xx; the connection was lost

PATHS = ("/workspace/p", "/workspace/q", "/var/t")  # the last is not in the history: no rollback touches it
MEMBERS = ("x", "y")  # the sandboxes that a group is made with

# The status that a sandbox is brought to, by what is asked of it or of its group.
GOALS = {"start": "running", "stop": "stopped", "pause": "paused", "resume": "running"}
# In which status at rest a request has to be accepted when nothing else goes on.
ACCEPTED = {
    "start": {"stopped", "failed", "paused"}, "stop": {"running", "paused"}, "pause": {"running"}, "resume": {"paused"},
    "delete": {"running", "stopped", "paused", "failed"}, "resize": {"running", "stopped", "paused", "failed"},
    "write": {"running"}, "exec": {"running"}, "read": {"running"}, "rollback": {"running"},
}

# values: {path: the contents that it may have left}; passing: {path: what was there on the way}
Effect = collections.namedtuple("Effect", "op outcome values passing", defaults=[{}])


class Violation(AssertionError):
    """The server did what it must not."""


class Box:
    """A sandbox that exists, or may exist (sure is False)."""

    def __init__(self, memory, statuses=("running",), enabled=True, files=None):
        self.sure = True
        self.enabled = enabled
        self.statuses = set(statuses)
        self.memory = {memory} if isinstance(memory, str) else set(memory)
        self.files = {path: set(values) for path, values in (files or {}).items()}
        self.loose = {}  # path: what requests that were cut off may still write
        self.copies = []  # clones that may not have been copied yet
        self.dying = False  # its first process was killed
        self.at_rest = False  # nothing was asked of it since it was looked at

    def may_have(self, path):
        return self.files.get(path, {None}) | self.loose.get(path, set())

    def allow(self, path, values, seen=()):
        """One of these may be there too, here and in what is still to be copied from here."""
        self.files[path] = self.may_have(path) | set(values)
        for copy in self.copies:
            if copy is not self and copy not in seen:
                copy.allow(path, values, (*seen, self))

    def write(self, certain, possible):
        """certain, possible: {path: [contents]} of requests that were acknowledged, or cut off."""
        for path in {*certain, *possible}:
            values = {*certain.get(path, ()), *possible.get(path, ())}
            self.allow(path, values)
            if certain.get(path):
                self.files[path] = values | self.loose.get(path, set())
            self.loose.setdefault(path, set()).update(possible.get(path, ()))

    def ask(self, certain, possible):
        """The same for statuses."""
        self.statuses = {*certain, *possible} if certain else self.statuses | set(possible)

    def merge(self, other):
        self.statuses |= other.statuses
        self.memory |= other.memory
        for path in {*self.files, *other.files}:
            self.files[path] = self.may_have(path) | other.may_have(path)

    def copy(self):
        return Box(self.memory, self.statuses, self.enabled, {path: self.may_have(path) for path in PATHS})

    def could_rest_in(self):
        return self.statuses | ({"failed"} if self.dying else set())


class Model:
    """Everything that was asked for so far. Names of sandboxes in a group are "group/name"."""

    def __init__(self, quota, memory):
        self.quota, self.memory = quota, memory
        self.boxes = {}
        self.groups = {}  # name: whether it exists for certain
        self.leaving = set()  # names whose deletion was acknowledged, and that may still be listed

    def members(self, group):
        return [name for name in self.boxes if name.startswith(f"{group}/")]

    # --- what a single request may be answered ---

    def must_be_accepted(self, op):
        """Whether a request that nothing else runs beside has to succeed."""
        box = self.boxes.get(op.target)
        if op.kind in ("create", "create_off", "clone"):
            free = not self.leaving and op.name not in self.boxes and len(self.boxes) < self.quota
            in_group = "/" not in op.name or self.groups.get(op.name.split("/")[0], False)
            return free and in_group and (op.kind != "clone" or (box is not None and box.sure))
        if box is None or not box.sure or not box.at_rest or len(box.statuses) != 1:
            return False
        return box.statuses <= ACCEPTED.get(op.kind, set())

    def may_refuse_for_quota(self, asked_for):
        """Whether the quota may be reached, with as many asked for in the batch."""
        return len(self.boxes) + len(self.leaving) + asked_for > self.quota

    # --- a batch ---

    def apply(self, effects):
        """Effects of requests that ran at the same time, in whatever order."""
        before = dict(self.boxes)
        as_it_was = {name: box.copy() for name, box in before.items()}
        for effect in effects:
            if effect.op.target in before:
                for path, values in effect.passing.items():
                    as_it_was[effect.op.target].allow(path, values)
                    for copy in before[effect.op.target].copies:
                        copy.allow(path, values)
        self._change(effects)
        made = self._made(effects, before, as_it_was)
        self._count_groups(effects, made)
        ended = {e.op.target for e in effects if e.op.kind == "group_end" and e.outcome == DONE}
        for name in {*before, *made}:
            self._count(name, effects, before.get(name), made.get(name, []), ended)
        for effect in effects:
            if effect.op.kind == "kill_init" and effect.outcome == DONE and effect.op.target in self.boxes:
                self.boxes[effect.op.target].dying = True

    def _of(self, name, effects, kinds):
        """(certain, possible) requests of these kinds to a sandbox, or to its group."""
        group = name.split("/")[0] if "/" in name else None
        found = [e for e in effects if (e.op.kind in kinds and e.op.target == name) or
                 (group is not None and e.op.kind in {f"group_{kind}" for kind in kinds} and e.op.target == group)]
        return [e for e in found if e.outcome == DONE], [e for e in found if e.outcome == UNKNOWN]

    def _change(self, effects):
        for name, box in self.boxes.items():
            if any(e.op.target in (name, name.split("/")[0]) for e in effects):
                box.at_rest = False
            self._change_box(name, box, effects)

    def _change_box(self, name, box, effects):
        def goals(found):
            return [GOALS[e.op.kind.replace("group_", "")] for e in found]

        def contents(found):
            values = collections.defaultdict(list)
            for effect in found:
                for path, some in effect.values.items():
                    values[path] += some
            return values

        done, unknown = self._of(name, effects, GOALS)
        box.ask(goals(done), goals(unknown))
        done, unknown = self._of(name, effects, {"resize"})
        if done:
            box.memory = {e.op.value for e in done + unknown}
        else:
            box.memory |= {e.op.value for e in unknown}
        done, unknown = self._of(name, effects, {"write", "exec", "rollback"})
        old = {path: box.may_have(path) for path in PATHS}
        box.write(contents(done), contents(unknown))
        if any(e.op.kind == "rollback" for e in done + unknown) and len(done + unknown) > 1:
            for path, values in old.items():  # it may have undone what was written beside it
                box.allow(path, values)

    def _made(self, effects, before, as_it_was):
        """{name: [new Box]} of creations that were acknowledged or cut off."""
        made = collections.defaultdict(list)
        for effect in effects:
            op = effect.op
            if effect.outcome == REFUSED:
                continue
            if op.kind == "create":
                made[op.name].append((effect, Box(self.memory)))
            elif op.kind == "create_off":
                made[op.name].append((effect, Box(self.memory, ["stopped"], enabled=False)))
            elif op.kind == "group_make":
                for member in MEMBERS:
                    made[f"{op.target}/{member}"].append((effect, Box(self.memory)))
        for effect in effects:
            op = effect.op
            if op.kind == "clone" and effect.outcome != REFUSED:
                sources = [before[op.target]] if op.target in before else []
                sources += [box for _, box in made.get(op.target, ())]
                made[op.name].append((effect, self._clone(op, sources, as_it_was.get(op.target))))
        return made

    def _clone(self, op, sources, as_it_was):
        """Its source may have been as it was before the batch, or as it is after it."""
        if not sources:
            raise Violation(f"{op}: a clone of a sandbox that does not exist was accepted")
        clone = None
        for source in sources:
            one = Box(source.memory, ["running" if source.enabled else "stopped"], source.enabled,
                      {path: source.may_have(path) for path in PATHS})
            if as_it_was is not None:
                one.memory |= as_it_was.memory
                one.files = {path: values | as_it_was.may_have(path) for path, values in one.files.items()}
            clone = clone or one
            clone.merge(one)
            source.copies.append(clone)
        return clone

    def _count_groups(self, effects, made):
        for name in {e.op.target for e in effects if e.op.kind in ("group_make", "group_end")}:
            of = [e for e in effects if e.op.target == name and e.op.kind in ("group_make", "group_end")]
            sure = self.groups.get(name, True) and all(e.outcome != UNKNOWN for e in of)
            net = (name in self.groups) + sum((e.op.kind == "group_make") - (e.op.kind == "group_end")
                                              for e in of if e.outcome == DONE)
            if sure and net not in (0, 1):
                raise Violation(f"group {name}: {[(e.op.kind, e.outcome) for e in of]}: {net} groups of one name")
            if sure and net == 0:
                self.groups.pop(name, None)
            elif any(e.outcome != REFUSED for e in of):
                self.groups[name] = sure

    def _count(self, name, effects, before, made, ended):
        """How many sandboxes of a name there are now: one or none, if all answers are known."""
        done, unknown = self._of(name, effects, {"delete", "end"})
        creations = [effect for effect, _ in made]
        if not (done or unknown or creations):
            return
        certain = not unknown and all(e.outcome == DONE for e in creations) and (before is None or before.sure)
        net = (before is not None) + len(creations) - len(done)
        group = name.split("/")[0]
        if group in ended:  # which deletes what is in it at that time
            certain, net = certain and not any(e.op.kind == "group_make" for e in creations), 0
        if certain and net not in (0, 1) and not (net < 0 and creations):
            raise Violation(f"{name}: {[(e.op.kind, e.outcome) for e in creations + done]}: {net} sandboxes of one name")
        if done or unknown:
            self.leaving.add(name)
        if certain and net <= 0:
            self.boxes.pop(name, None)
            return
        boxes = [box for _, box in made] or [before]
        if before is not None and made and not (certain and done):
            boxes.append(before)
        merged = boxes[0]
        for box in boxes[1:]:
            merged.merge(box)
            merged.copies += [copy for copy in box.copies if copy is not merged]
        merged.sure = certain
        if made:
            self._change_new(name, merged, effects)
        self.boxes[name] = merged

    def _change_new(self, name, box, effects):
        """What was asked of it in the batch that made it, if it was meant by that."""
        done, unknown = self._of(name, effects, GOALS)
        box.statuses |= {GOALS[e.op.kind.replace("group_", "")] for e in done + unknown}
        done, unknown = self._of(name, effects, {"resize"})
        box.memory |= {e.op.value for e in done + unknown}
        done, unknown = self._of(name, effects, {"write", "exec", "rollback"})
        for effect in done + unknown:
            for path, values in effect.values.items():
                box.allow(path, values)

    # --- looking ---

    def check_listed(self, listed):
        """listed: {name: (status, memory)} of all sandboxes, at rest."""
        missing = [name for name, box in self.boxes.items() if box.sure and name not in listed]
        if missing:
            raise Violation(f"acknowledged, and gone: {missing}")
        strange = [name for name in listed if name not in self.boxes]
        if strange:
            raise Violation(f"deleted or never acknowledged, and there: {strange}")
        if len(listed) > self.quota:
            raise Violation(f"{len(listed)} sandboxes with a quota of {self.quota}")
        for name, (status, memory) in listed.items():
            box = self.boxes[name]
            if status not in box.could_rest_in():
                raise Violation(f"{name} is {status}, and should be {' or '.join(sorted(box.could_rest_in()))}")
            if memory not in box.memory:
                raise Violation(f"{name} has {memory} of memory, and should have {' or '.join(sorted(box.memory))}")

    def settle(self, listed):
        """After check_listed(): what was open is known now."""
        self.boxes = {name: box for name, box in self.boxes.items() if name in listed}
        self.leaving.clear()
        for name, (status, memory) in listed.items():
            box = self.boxes[name]
            box.sure = box.at_rest = True
            box.statuses, box.memory = {status}, {memory}
            box.dying = False
            box.copies = []
            box.files.update({path: box.may_have(path) for path in box.loose})
            box.loose = {}

    def check_content(self, name, path, value):
        box = self.boxes[name]
        if value not in box.may_have(path):
            raise Violation(f"{name}: {path} has {value!r}, and should have {sorted(map(repr, box.may_have(path)))}")
        box.files[path] = {value}
        box.loose.pop(path, None)
