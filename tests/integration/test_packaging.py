# SPDX-License-Identifier: Apache-2.0
"""packaging/Dockerfile against the programs that it is for: what it copies is there, what they link to and run is
installed, what it starts exists. Building it takes minutes and a registry, and is nobody's test."""

import json
import os
import pathlib
import re
import shutil
import signal
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


def make_root(folder):
    """A small root with the tools that the entry runs, and the libraries of these."""
    for name in ("usr/bin", "usr/lib/modules", "etc", "opt/a b", "proc", "sys", "dev", "run", "var/lib/cella", "var/lib/cella-root"):
        (folder / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (folder / name).symlink_to("usr/bin" if name == "bin" else "usr/lib")
    (folder / "etc/kept").write_text("of the image\n")
    tools = [shutil.which(name) for name in ("sh", "grep", "rm", "mkdir", "cp", "chmod", "mv", "mount", "umount", "cat", "pivot_root", "rmdir",
                                             "ls")]
    for tool in [*tools, REPO / "packaging/container-entry"]:
        shutil.copy(tool, folder / "usr/bin")
    linked = subprocess.run(["ldd", *tools], capture_output=True, text=True, check=False).stdout
    for library in set(re.findall(r"(/\S+\.so\S*) \(", linked)):
        shutil.copy(library, folder / "usr/lib")


IN_OVERLAY = """
cd "$1"
mount -t tmpfs none root-volume
mount -t overlay none -o lowerdir=image,upperdir=upper,workdir=work root
for name in proc sys dev; do mount --rbind /$name root/$name; done
mount -t tmpfs none root/run
mount --bind root-volume root/var/lib/cella-root
mount --bind data root/var/lib/cella
mount --bind modules root/usr/lib/modules
mount -o remount,bind,ro root/usr/lib/modules
mount --bind modules "root/opt/a b"
exec 9<root-volume
chroot root container-entry sh -c '
    grep " / " /proc/self/mounts | { read -r _ _ type _; echo root on $type; }
    cat /etc/kept /lib/modules/marker "/opt/a b/marker" /var/lib/cella/marker
    echo x 2>&- >/lib/modules/new || echo read-only
    echo x >/usr/bin/new && echo writable'
ls -A /proc/self/fd/9/root/usr/lib/modules "/proc/self/fd/9/root/opt/a b"
"""


def test_the_entry_copies_an_overlay_and_no_mounts(tmp_path):
    """In a mount namespace of its own, with a root that is an overlay as a container's is."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for name in ("image", "upper", "work", "root", "root-volume", "data", "modules"):
        (tmp_path / name).mkdir()
    make_root(tmp_path / "image")
    for name in ("data", "modules"):
        (tmp_path / name / "marker").write_text(f"{name} of the machine\n")
    done = subprocess.run(["unshare", "--mount", "sh", "-euc", IN_OVERLAY, "sh", tmp_path], capture_output=True, text=True, timeout=60,
                          check=False)
    lines = done.stdout.splitlines()
    assert lines[:7] == ["root on tmpfs", "of the image", "modules of the machine", "modules of the machine", "data of the machine", "read-only",
                         "writable"], done
    # What was copied is below the mounts: nothing.
    assert [line for line in lines[7:] if line] == ["/proc/self/fd/9/root/opt/a b:", "/proc/self/fd/9/root/usr/lib/modules:"], done


def test_compose_gives_it_what_it_needs():
    service = yaml.safe_load((REPO / "packaging/compose.yaml").read_text())["services"]["cella"]
    assert service["privileged"] and service["cgroup"] == "host"
    mounted = {one.split(":")[1] for one in service["volumes"]}
    assert {"/var/lib/cella", "/var/lib/cella-root", "/sys/fs/cgroup", "/dev", "/lib/modules", "/run/cella"} <= mounted
    assert ((REPO / "packaging" / service["build"]["context"]).resolve() / service["build"]["dockerfile"]).exists()


@pytest.mark.parametrize("job,kept", [("restart", True), ("stop", False), (None, False)])
def test_the_unit_keeps_sandboxes_over_a_restart_of_the_service_alone(tmp_path, job, kept):
    """What ExecStop runs, with a systemctl that shows this job for the unit."""
    unit = (REPO / "packaging/cella.service.in").read_text()
    script = re.search(r"(?m)^ExecStop=/bin/sh -c '(.*)'$", unit).group(1).replace("$$", "$").replace("%n", "cella.service")
    fake = tmp_path / "systemctl"
    fake.write_text("#!/bin/sh\n" + (f'[ "$*" = "list-jobs --no-legend cella.service" ] && '
                                     f'echo "  812 cella.service {job} running"\n' if job else "exit 1\n"))
    fake.chmod(0o755)
    with subprocess.Popen(["sleep", "1000"]) as server:
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "MAINPID": str(server.pid)}
        assert subprocess.run(["/bin/sh", "-c", script], env=env, check=False).returncode == 0
        if not kept:
            server.kill()
        assert server.wait(timeout=30) == -(signal.SIGUSR1 if kept else signal.SIGKILL)
