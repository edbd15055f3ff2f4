# SPDX-License-Identifier: Apache-2.0
"""The command line without a server: usage, help, completion, the manual page, the doctor."""

import json
import os
import pathlib
import socket
import subprocess

import pytest

from cella_server import bin_dir

REPO = pathlib.Path(__file__).resolve().parents[2]


def cella(*args, env=None, program="cella", **kwargs):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CELLA_", "BL_"))}
    return subprocess.run([bin_dir() / program, *map(str, args)], capture_output=True, text=True,
                          timeout=30, check=False, env={**clean, **(env or {})}, **kwargs)


@pytest.mark.parametrize("line, says", [
    ("", "what to do? one of: sandbox, "),
    ("sandbox", "one of: list, get, create"),
    ("snadbox list", "did you mean sandbox?"),
    ("sandbox lst", "did you mean list?"),
    ("sandbox get", "NAME is missing"),
    ("sandbox get a b", "one word too many"),
    ("sandbox create --imgae x", "did you mean --image?"),
    ("sandbox list --status up", "--status is one of"),
    ("sandbox list --limit many", "--limit needs a whole number"),
    ("sandbox list --content x", "has no option --content"),
    ("sandbox create --env NAME", "--env needs NAME=VALUE"),
    ("run box process exec ls -la", "unknown option -la"),
    ("run box file write /x", "one of --content TEXT, --from-file FILE"),
    ("run box file write /x --content a -", "one of --content TEXT, --from-file FILE"),
    ("run box file write /x local.txt", "is no source"),
    ("sandbox list --url nonsense", "http://HOST:PORT"),
    ("sandbox stop a --wait --no-wait", "which one?"),
    ("completion zsh", "completion for bash"),
    ("help sandbox lst", "did you mean list?"),
])
def test_wrong_usage(line, says):
    done = cella(*line.split())
    assert done.returncode == 2, done
    assert says in done.stderr
    assert done.stdout == ""


def test_each_command_is_named_once():
    words = cella().stderr.split("one of: ")[1].split("\n")[0].split(", ")
    assert "run" in words and "shell" in words
    assert len(words) == len(set(words)), words


def test_help():
    everything = cella("help")
    assert everything.returncode == 0
    assert everything.stdout == cella("--help").stdout == cella("-h").stdout
    for line in ("sandbox create", "run NAME file write PATH [SOURCE]", "doctor", "--output"):
        assert line in everything.stdout
    one = cella("help", "run", "file", "write")
    assert one.stdout == cella("run", "box", "file", "write", "--help").stdout
    assert "Usage: cella run NAME file write PATH [SOURCE] [options]" in one.stdout
    assert "--permissions OCTAL" in one.stdout
    assert max(map(len, everything.stdout.splitlines())) < 100


def test_version():
    plain = cella("version").stdout
    assert plain.startswith("cella ")
    assert plain == cella("--version").stdout
    assert json.loads(cella("version", "--output", "json").stdout)["version"] == plain.split()[1]


def test_bl_is_the_same_program():
    assert os.path.islink(bin_dir() / "bl")
    assert cella("help", program="bl").stdout == cella("help").stdout


def test_no_server():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nobody listens on it
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        done = cella("sandbox", "list", "--url", url)
    assert done.returncode == 6
    assert f"no Cella server answers at {url}: start one with `cella server`" in done.stderr


def test_something_else_answers():
    """A server that is none of ours is said to be one, whatever it sends."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        with subprocess.Popen([bin_dir() / "cella", "sandbox", "list", "--url", url],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
            with other.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
                out, err = client.communicate(timeout=30)
    assert client.returncode == 1
    assert out == ""
    assert "does not answer as a Cella server does" in err


def test_an_error_cannot_write_on_the_terminal():
    body = json.dumps({"error": {"code": "CONFLICT", "message": "a\x1b[31mb\nc"}}).encode()
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}"
        with subprocess.Popen([bin_dir() / "cella", "sandbox", "list", "--url", url],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
            with other.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\n\r\n"
                                   % len(body) + body)
                _, err = client.communicate(timeout=30)
    assert client.returncode == 4
    assert err == "cella: a\\x1b[31mb\\nc\n"


def complete(*words, env=None):
    """What bash would offer for the last word."""
    script = ('source <("$0" completion bash); COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; _cella; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, bin_dir() / "cella", *words], text=True,
                          capture_output=True, timeout=30, check=False,
                          env={**os.environ, **(env or {})})
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1] if done.stdout != "\n" else []


def test_completion(tmp_path):
    assert complete("sandbox", "st") == ["start", "stop"]
    assert complete("run", "box", "") == ["file", "process", "code", "shell", "terminal"]
    assert complete("sandbox", "list", "--st") == ["--status"]
    assert complete("sandbox", "list", "-o", "") == ["table", "json"]
    assert complete("sandbox", "list", "--output", "=", "j") == ["json"]
    assert "--image" in complete("sandbox", "create", "--")
    assert complete("nonsense", "") == []
    (tmp_path / "file with blanks").touch()
    assert complete("run", "b", "file", "write", "/x", "--from-file", f"{tmp_path}/") == [
        f"{tmp_path}/file with blanks"]
    assert complete("sandbox", "get", "", env={"CELLA_URL": "http://127.0.0.1:1"}) == []


def test_completion_script_is_sound():
    script = cella("completion", "bash").stdout
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_manual_page_is_up_to_date():
    page = REPO / "packaging" / "man" / "cella.1"
    assert page.read_text() == cella("__man").stdout, (
        "out of date: build/cella __man > packaging/man/cella.1")


def test_doctor():
    done = cella("doctor")
    assert done.returncode == 0, done.stdout
    marks = [line[0] for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert set(marks[:-1]) <= {"✓", "!"}
    found = json.loads(cella("doctor", "--output", "json").stdout)
    assert found["ok"] is True
    names = {check["name"] for check in found["checks"]}
    assert {"kernel", "namespaces", "cgroups", "cella-warden", "disk space", "server", "published ports"} <= names
    assert all(check.get("fix") for check in found["checks"] if check["status"] != "ok")


def firewall(rules):
    """What the doctor says of other programs' firewalls on a machine with these rules: a namespace of its own."""
    done = subprocess.run(["unshare", "--net", "sh", "-c", f"nft -f - && exec {bin_dir()}/cella doctor -o json"],
                          input=rules, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    [found] = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "other firewalls"]
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a network namespace")
def test_doctor_sees_what_docker_does_to_forwarding():
    assert firewall("table ip mine { chain f { type filter hook forward priority 0; policy accept; }; }") == {
        "name": "other firewalls", "status": "ok", "message": "none drops what is forwarded"}
    docker = "table ip filter { chain DOCKER-USER { %s }; chain FORWARD { type filter hook forward priority 0; " \
             "policy drop; jump DOCKER-USER; }; }"
    found = firewall(docker % "")
    assert found["status"] == "warning" and found["message"].startswith("ip filter FORWARD drops what is forwarded")
    assert found["fix"].startswith("iptables -I DOCKER-USER -i cellaup+ -j ACCEPT; ")
    assert firewall(docker % 'iifname "cellaup*" accept;')["status"] == "ok"
    # What it advises works: afterwards it finds nothing to advise.
    other = "table inet fw { chain pass { type filter hook forward priority 10; policy drop; }; }\n"
    advice = firewall(other)["fix"].replace("nft insert", "insert").replace("'", '"').replace("; ", "\n")
    assert firewall(other + advice)["status"] == "ok"


def test_doctor_says_what_is_missing(tmp_path):
    """A copy of the program in a folder of its own finds neither warden nor agent."""
    alone = tmp_path / "cella"
    alone.write_bytes((bin_dir() / "cella").read_bytes())
    alone.chmod(0o755)
    done = subprocess.run([alone, "doctor"], capture_output=True, text=True, timeout=30,
                          check=False)
    assert done.returncode == 1
    assert "✗ cella-warden" in done.stdout
    assert "→ make build" in done.stdout


def test_leaks_of_no_folder():
    done = cella("doctor", "--leaks", "--data", "/nonexistent-folder")
    assert done.returncode == 3
    assert "/nonexistent-folder" in done.stderr


def test_nobody_reads():
    """Output into a pipe whose reader went away ends the program quietly, as SIGPIPE does."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as out:
        done = subprocess.run([bin_dir() / "cella", "help"], stdout=out, stderr=subprocess.PIPE,
                              timeout=30, check=False)
    assert done.returncode == -13
    assert done.stderr == b""


def test_full_disk():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([bin_dir() / "cella", "help"], stdout=full, stderr=subprocess.PIPE,
                              timeout=30, check=False)
    assert done.returncode == 1
    assert b"writing to stdout" in done.stderr


def test_programs_are_found_beside_the_program():
    assert pathlib.Path(bin_dir() / "cella-warden").exists()
