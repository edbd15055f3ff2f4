# SPDX-License-Identifier: Apache-2.0
"""What tests of clones share: making one, things to have in a source, and a program that writes two
files in step."""

import contextlib
import json
import os
import signal


def clone(source, name=None, wait="running", **body):
    """A clone of a sandbox, once it has this status (None: at once)."""
    answer = source.request("POST", "/clone", {**({"name": name} if name else {}), **body})
    assert answer.status == 202, answer
    made = source.server.sandbox(answer.json()["metadata"]["name"])
    return made.wait_status(wait) if wait else made


@contextlib.contextmanager
def deleting(*boxes):
    """Deletes sandboxes that are still there."""
    try:
        yield
    finally:
        for box in boxes:
            if box.status() not in (None, "deleting"):
                box.delete()


@contextlib.contextmanager
def frozen_warden(server):
    """Stops the warden for a moment: requests are accepted, and nothing that they ask for is done before the end."""
    pid = server.running_pids("warden").warden
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


# One of everything that a writable layer can hold, overlayfs' own marks included: a renamed lower
# directory (redirect), a removed lower file and directory (whiteouts), one made anew (opaque), changed
# attributes of a lower file alone (metacopy).
FURNISH = r"""
set -e
mkdir -p /workspace/d/e && cd /workspace
printf data > file && chown 1000:1001 file && chmod 640 file
printf x > setuid && chmod 4755 setuid && printf x > setgid && chmod 2755 setgid
mkdir sticky && chmod 1777 sticky
ln -s /nowhere/at/all link && ln file hard && mkfifo -m 600 pipe
printf 'deep' > d/e/f && touch -d '2001-02-03 04:05:06.789' d/e/f
truncate -s 1G sparse
printf unicode > "$(printf 'na\xc3\xafve \xff')"
python3 -c 'import os; os.setxattr("/workspace/file", "user.note", b"\0\1\2"); import socket; socket.socket(socket.AF_UNIX).bind("/workspace/socket")'
rm /etc/issue 2>/dev/null || rm /etc/debian_version
mv /usr/share/doc /usr/share/doc-moved
rm -r /usr/share/man && mkdir /usr/share/man && echo mine > /usr/share/man/mine
chmod 700 /usr/bin/yes
"""

# Everything about a tree that a user can see, as JSON.
SURVEY = r"""
import hashlib, json, os, stat
seen, links = {}, {}
def look(path):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    item = [oct(st.st_mode), st.st_uid, st.st_gid]
    if kind != stat.S_IFDIR:
        item += [st.st_size, st.st_nlink, st.st_mtime_ns]
        links.setdefault(st.st_ino, []).append(os.fsencode(path).decode("latin-1"))
    if kind == stat.S_IFLNK:
        item.append(os.readlink(path))
    if kind == stat.S_IFREG:
        if st.st_size < 1 << 20:
            item.append(hashlib.sha256(open(path, "rb").read()).hexdigest())
        else:
            item.append(st.st_blocks)
        item.append({k: os.getxattr(path, k).hex() for k in os.listxattr(path)})
    seen[os.fsencode(path).decode("latin-1")] = item
def walk(top):
    look(top)
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            look(os.path.join(folder, name))
walk("/workspace"); walk("/usr/share/man"); look("/usr/bin/yes")
for path in ("/usr/share/doc", "/usr/share/doc-moved", "/etc/issue", "/etc/debian_version"):
    seen["exists " + path] = os.path.exists(path)
seen["moved"] = sorted(os.listdir("/usr/share/doc-moved"))[:50]
print(json.dumps([seen, sorted(sorted(names) for names in links.values() if len(names) > 1)], sort_keys=True))
"""


def furnish(box):
    box.run(FURNISH)


def survey(box):
    """The tree that furnish() made, as it is seen inside. The program goes through an argument: a
    file of its own would be one more in the tree."""
    done = box.exec("python3 - <<'END'\n" + SURVEY + "\nEND")
    assert done.exit_code == 0, done
    return json.loads(done.stdout)


# Writes n to one file, then to the other: at no moment can they be apart by more than one.
IN_STEP = r"""
import os, struct
a = os.open("/workspace/a", os.O_RDWR | os.O_CREAT)
b = os.open("/workspace/b", os.O_RDWR | os.O_CREAT)
for fd in (a, b):
    os.pwrite(fd, struct.pack("<Q", 0) * 512, 0)
open("/workspace/ready", "w").close()
n = 0
while True:
    n += 1
    os.pwrite(a, struct.pack("<Q", n) * 512, 0)
    os.pwrite(b, struct.pack("<Q", n) * 512, 0)
"""


def steps(box):
    """The two numbers, each of which fills a page of its own."""
    values = []
    for path in ("/workspace/a", "/workspace/b"):
        page = box.read(path)
        assert len(page) == 4096
        words = {page[i:i + 8] for i in range(0, 4096, 8)}
        assert len(words) == 1, f"{path} is torn"
        values.append(int.from_bytes(words.pop(), "little"))
    return values
