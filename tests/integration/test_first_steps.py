# SPDX-License-Identifier: Apache-2.0
"""What README.md and the tutorial tell a stranger to type, typed. A line `# => text` says that the
output has that text after what was there before."""

import os
import pathlib
import re
import subprocess

import pytest

from cella_server import bin_dir

REPO = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/tutorial.md"]


def blocks(page):
    """The shell lines between the page's markers."""
    text = (REPO / page).read_text()
    marked = re.search(r"<!-- test:begin -->(.*?)<!-- test:end -->", text, re.S).group(1)
    return "\n".join(re.findall(r"^```sh\n(.*?)^```", marked, re.S | re.M))


def for_this_server(script, server):
    """The pages speak of the default data folder and address."""
    return (script.replace("/var/lib/cella", str(server.data))
            .replace("http://127.0.0.1:7070", server.url)
            .replace("build/cella", str(server.bin / "cella")))


@pytest.mark.parametrize("page", PAGES)
def test_commands_of(page, server, tmp_path):
    script = for_this_server(blocks(page), server)
    assert script.count("\n") > 5, "nothing to run"
    env = {k: v for k, v in os.environ.items() if not k.startswith("CELLA_")}
    env["CELLA_DATA"] = str(server.data)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, text=True)
    assert done.returncode == 0, done.stdout
    at = 0
    for expected in re.findall(r"^# => (.*)$", script, re.M):
        found = done.stdout.find(expected, at)
        assert found >= 0, f"no {expected!r} after {done.stdout[:at]!r}:\n{done.stdout[at:]}"
        at = found + len(expected)
    assert server.list() == [], "the page leaves something behind"


def test_links_between_pages_hold():
    for page in [*REPO.glob("*.md"), *(REPO / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_server_says_where_it_is(server):
    """Address, key and two commands, for whoever started it."""
    log = server.log_path.read_text()
    assert f"listening on {server.url}" in log
    assert f"{server.data}/api-key" in log
    assert server.key not in log
    assert "sandbox create" in log and "process exec" in log


def test_the_server_files_own_line_is_enough_for_the_cli(server):
    done = server.cli("sandbox", "list")
    assert done.returncode == 0, done


def test_installed_programs_find_each_other(server_factory, tmp_path):
    """`make install` into a folder of its own; the server runs from there."""
    done = subprocess.run([REPO / "scripts" / "install-files", bin_dir(), tmp_path, "/opt/cella"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    root = tmp_path / "opt/cella"
    for path in ("bin/bl", "libexec/cella/cella-agent", "libexec/cella/cella-egress", "libexec/cella/cella-warden",
                 "share/man/man1/cella.1", "share/bash-completion/completions/cella",
                 "lib/systemd/system/cella.service", "lib/sysusers.d/cella.conf"):
        assert (root / path).exists(), path
    assert "@" not in (root / "lib/systemd/system/cella.service").read_text()
    installed = server_factory(programs=root / "bin")
    box = installed.create()
    assert box.exec("echo installed").stdout == "installed\n"
    box.delete()
