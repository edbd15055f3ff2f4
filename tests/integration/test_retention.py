# SPDX-License-Identifier: Apache-2.0
"""Nothing is kept too long: of a sandbox that was deleted, or whose time was over, nothing is found in the data
folder any more: no output, log, history, event, upload or measurement. A word that is in all of them is looked
for, byte by byte, in every file (the database and its log included) and every name. The audit log stays, as it has
to, with the commands that were run, and has nothing of what they wrote: another word is in outputs alone.

What a file system has freed it has not overwritten: the volume's raw file is not looked into, the volume is."""

import contextlib
import os
import sqlite3
import uuid

import pytest

from cella_server import Server, wait_until


@pytest.fixture(scope="module")
def quiet(contract):
    """A server of these tests' own: others' work would write over what is to be found."""
    made = Server()
    yield made
    made.close()


def new_word():
    return "needle" + uuid.uuid4().hex[:12]


def written(word):
    """The word that commands write, which stands in none of them."""
    return word[::-1]


def files_with(folder, word):
    """Files with the word in their contents or names, below the folder and what is mounted there."""
    return [path for path in all_files_with(folder, word) if not path.startswith("/audit")] + \
        all_files_with(folder, written(word))


def all_files_with(folder, word):
    found, needle = [], word.encode()
    for top, folders, names in os.walk(os.fsencode(folder)):
        found += [os.path.join(top, name) for name in folders + names if needle in name]
        for name in names:
            path = os.path.join(top, name)
            if name == b"volume.img" or not os.path.isfile(path) or os.path.islink(path) or b"/images/host/" in path:
                continue
            with contextlib.suppress(OSError), open(path, "rb") as file:  # namespaces, and what goes away just now
                if needle in file.read():
                    found.append(path)
    return [os.fsdecode(path.removeprefix(os.fsencode(folder))) for path in found]


def use(server, word, **spec):
    """A sandbox in which the word is everywhere that anything is kept."""
    box = server.create(env_vars={"WORD": word}, network={"mode": "allowlist", "allow": [f"{word}.example"]}, **spec)
    assert server.request("PATCH", box.base, {"metadata": {"labels": {"word": word}}}).status == 200
    box.run(f"mkdir -p /workspace /home/user && echo {word} >/workspace/{word} && echo {word} >/home/user/kept")
    assert written(word) in box.run(f"echo {word} | rev; echo {word} | rev >&2")
    box.spawn(f"echo {word} | rev; exec sleep 1000", name=word)
    box.write(f"/srv/{word}", word)
    upload = box.request("POST", f"/filesystem-multipart/initiate/srv/{word}.big", {}).json()["uploadId"]
    part = box.request("PUT", f"/filesystem-multipart/{upload}/part?partNumber=1", word.encode(),
                       {"Content-Type": "application/octet-stream"})
    assert part.status == 200, part
    done = box.request("POST", "/code", {"code": f"x = '{word}'[::-1]; print(x); x"})
    assert done.status == 200 and written(word) in done.text, done
    box.run(f"getent hosts {word}.example || true")
    wait_until(lambda: word in box.request("GET", "/network/log").text, 30, "its question in its network's log")
    session = box.request("POST", "/terminal/sessions", {"command": f"echo {word}; sleep 1000"})
    assert session.status in (200, 201), session
    wait_until(lambda: written(word) in box.request("GET", "/logs").text, 30, "its output in its log")
    return box


def kept_by_id(server, box_id):
    """What is called by the sandbox's id."""
    names = [os.path.join(top, name) for top, folders, files in os.walk(server.data)
             for name in folders + files if box_id in name]
    with sqlite3.connect(f"file:{server.data}/db/cella.db?mode=ro", uri=True) as database:
        dump = [line for line in database.iterdump() if box_id in line]
    return names + dump


def check_gone(server, word, box_id):
    wait_until(lambda: not files_with(server.data, word), 60, lambda: f"nothing in {files_with(server.data, word)}")
    wait_until(lambda: not kept_by_id(server, box_id), 30, lambda: f"nothing of {kept_by_id(server, box_id)}")


def test_the_search_finds_what_is_kept(quiet):
    word = new_word()
    box = use(quiet, word)
    found = files_with(quiet.data, word)
    assert any(path.startswith("/db/cella.db") for path in found), found
    assert any(path.startswith("/volume/") for path in found), found
    assert kept_by_id(quiet, box.get()["metadata"]["id"])
    box.delete()


def test_delete_removes_all_of_it(quiet):
    word = new_word()
    box = use(quiet, word)
    box_id = box.get()["metadata"]["id"]
    box.delete()
    check_gone(quiet, word, box_id)


def test_expiry_removes_all_of_it(quiet):
    word = new_word()
    box = use(quiet, word)
    box_id = box.get()["metadata"]["id"]
    answer = quiet.request("PATCH", box.base, {"spec": {"lifecycle": {"ttl": 1, "onExpire": "delete"}}})
    assert answer.status == 200, answer
    box.wait_status("gone", deadline=60)
    check_gone(quiet, word, box_id)


def test_a_server_that_was_killed_forgets_too(quiet):
    word = new_word()
    box = use(quiet, word)
    box_id = box.get()["metadata"]["id"]
    before = quiet.pids()
    box.delete()
    quiet.kill("cellad")
    quiet.wait_recovered(before, "cellad")
    check_gone(quiet, word, box_id)
