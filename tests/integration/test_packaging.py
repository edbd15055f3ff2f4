# SPDX-License-Identifier: Apache-2.0
"""packaging/Dockerfile against the programs that it is for: what it copies is there, what they link to and run is
installed, what it starts exists. Building it takes minutes and a registry, and is nobody's test."""

import json
import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

from cella_server import bin_dir

REPO = pathlib.Path(__file__).resolve().parents[2]
# A program that is run → the package that has it.
TOOLS = {"nft": "nftables", "mkfs.btrfs": "btrfs-progs", "modprobe": "kmod", "git": "git", "tar": "tar", "useradd": "passwd",
         "pivot_root": "util-linux", "mount": "mount", "/etc/protocols": "netbase"}


def instructions():
    """(stage, word, rest) of each, with continued lines put together."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (REPO / "packaging/Dockerfile").read_text()).replace("\\\n", " ")
    stage, found = -1, []
    for line in filter(None, map(str.strip, text.splitlines())):
        word, rest = line.split(None, 1)
        stage += word == "FROM"
        found.append((stage, word, rest))
    return found


@pytest.fixture(scope="module")
def installed():
    """Packages of the last stage."""
    last = instructions()[-1][0]
    line = next(rest for stage, word, rest in instructions() if stage == last and word == "RUN")
    names = re.search(r"--no-install-recommends\s+(.*?)&&", line).group(1).split()
    return {name for name in names if not name.startswith("$")}


def test_what_is_copied_is_there():
    ignored = (REPO / ".dockerignore").read_text().split()
    copied = [source for _, word, rest in instructions() if word == "COPY" and "--from" not in rest
              for source in rest.split()[:-1]]
    assert copied
    for source in copied:
        assert (REPO / source).exists() and source not in ignored, source
    # The build needs all that is in the repository, but for what it is told to leave out.
    for part in re.findall(r"subdir\('(\w+)", (REPO / "meson.build").read_text()):
        assert part not in ignored, f"{part} is built, and ignored"


def test_scripts_are_called_as_they_are_used():
    for _, word, rest in instructions():
        for script in re.findall(r"scripts/[\w-]+", rest) if word == "RUN" else ():
            assert (REPO / script).stat().st_mode & 0o111, script


def test_every_library_is_installed(installed):
    if shutil.which("dpkg") is None:
        pytest.skip("no Debian")
    needed = {}
    for program in ("cella", "cella-warden", "cella-egress"):
        linked = subprocess.run(["ldd", bin_dir() / program], capture_output=True, text=True, check=False).stdout
        for path in re.findall(r"=> (/\S+)", linked):
            needed[pathlib.Path(path).resolve().name] = program
    # By their names, and at once: where /lib is a link, dpkg knows the paths of before, and it takes its time.
    owners = subprocess.run(["dpkg", "-S", *(f"*/{name}" for name in needed)], capture_output=True, text=True, check=False).stdout
    for name, program in needed.items():
        packages = {line.split(":")[0].removesuffix("t64") for line in owners.splitlines() if line.endswith("/" + name)}
        assert packages & (installed | {"libc6", "libgcc-s1"}), f"{program} needs {name} of {packages}"


def test_every_tool_is_installed(installed):
    assert set(TOOLS.values()) <= installed


def test_what_it_starts_exists():
    last = {word: rest for _, word, rest in instructions()}
    entry, program, verb = json.loads(last["ENTRYPOINT"])
    assert any(word == "COPY" and rest.split() == ["packaging/container-entry", entry] for _, word, rest in instructions())
    assert (REPO / "packaging/container-entry").stat().st_mode & 0o111 and (bin_dir() / program).exists()
    helped = subprocess.run([bin_dir() / program, verb, "--help"], capture_output=True, text=True, check=True).stdout
    assert json.loads(last["CMD"])[0] in helped
    check = json.loads(last["HEALTHCHECK"].split("CMD", 1)[1])
    assert subprocess.run([bin_dir() / check[0], *check[1:], "--help"], capture_output=True, check=False).returncode == 0
    assert json.loads(last["VOLUME"]) == ["/var/lib/cella", "/var/lib/cella-root"]


def test_the_entry_starts_what_it_is_given():
    """Where the root is no overlay. What it does where it is one would change this machine's."""
    if re.search(r"(?m)^\S+ / overlay ", pathlib.Path("/proc/self/mounts").read_text()):
        pytest.skip("the root of this machine is an overlay")
    done = subprocess.run([REPO / "packaging/container-entry", "echo", "a  b"], capture_output=True, text=True, check=True)
    assert done.stdout == "a  b\n"


def test_compose_gives_it_what_it_needs():
    service = yaml.safe_load((REPO / "packaging/compose.yaml").read_text())["services"]["cella"]
    assert service["privileged"] and service["cgroup"] == "host"
    mounted = {one.split(":")[1] for one in service["volumes"]}
    assert {"/var/lib/cella", "/var/lib/cella-root", "/sys/fs/cgroup", "/dev", "/lib/modules", "/run/cella"} <= mounted
    assert ((REPO / "packaging" / service["build"]["context"]).resolve() / service["build"]["dockerfile"]).exists()
