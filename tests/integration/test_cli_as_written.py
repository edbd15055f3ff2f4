# SPDX-License-Identifier: Apache-2.0
"""Every command line of the first users' document, as it stands there, one after the other.

What differs: `--image host` where an image would have to come from a registry, and the number of a
process, which nobody can know beforehand.
"""

import json
import os
import shlex
import subprocess

import pytest

from cella_server import bin_dir


@pytest.fixture(scope="module")
def bl(server, tmp_path_factory):
    """Runs a line as a shell would; fails when it fails."""
    folder = tmp_path_factory.mktemp("as-written")
    (folder / "local-file.txt").write_bytes(b"from a local file\n\x00\xff")
    env = dict(os.environ, PATH=f"{bin_dir()}:{os.environ['PATH']}", CELLA_URL=server.url,
               CELLA_API_KEY=server.key)

    def run(line):
        done = subprocess.run(shlex.split(line), cwd=folder, env=env, capture_output=True,
                              timeout=100, check=False)
        assert done.returncode == 0, (line, done)
        return done.stdout

    run("bl sandbox create --name my-sandbox --image host --cpu 1 --memory 1Gi --disk 10Gi"
        " --env MY_VAR=my_value")
    run("bl sandbox wait my-sandbox --status running")
    yield run
    for name in ("my-sandbox", "cloned-sandbox"):
        server.sandbox(name).delete()


def test_sandbox_management(bl):
    assert b"my-sandbox" in bl("bl sandbox list")
    assert b"my-sandbox" in bl("bl sandbox list --status running --limit 10 --offset 0")
    assert b"MY_VAR" in bl("bl sandbox get my-sandbox")
    bl("bl sandbox stop my-sandbox")
    bl("bl sandbox wait my-sandbox --status stopped")
    bl("bl sandbox start my-sandbox")
    bl("bl sandbox wait my-sandbox --status running")
    bl("bl run my-sandbox file write /home/user/kept --content kept")
    bl("bl sandbox clone my-sandbox --name cloned-sandbox --cpu 2 --memory 2Gi")
    bl("bl sandbox wait cloned-sandbox --status running")
    assert bl("bl run cloned-sandbox file read /home/user/kept") == b"kept"


def test_sandbox_monitoring(bl):
    assert b"started" in bl("bl sandbox logs my-sandbox --tail 20")
    assert b"CPU" in bl("bl sandbox metrics my-sandbox --period 1h --resolution 60")


def test_files(bl):
    bl('bl run my-sandbox file write /home/user/file.txt --content "Hello World"')
    assert bl("bl run my-sandbox file read /home/user/file.txt") == b"Hello World"
    assert b"file.txt" in bl("bl run my-sandbox file ls /home/user")
    assert b"file.txt" in bl("bl run my-sandbox file tree /home/user --depth 3")
    bl("bl run my-sandbox file write /home/user/file.txt --content aGVsbG8A/w==")
    assert bl("bl run my-sandbox file read /home/user/file.txt --decode") == b"hello\x00\xff"
    bl("bl run my-sandbox file write /home/user/file.txt --from-file ./local-file.txt")
    assert bl("bl run my-sandbox file read /home/user/file.txt") == b"from a local file\n\x00\xff"
    bl("bl run my-sandbox file rm /home/user/file.txt")
    bl("bl run my-sandbox file write /home/user/directory/file --content x")
    bl("bl run my-sandbox file rm /home/user/directory --recursive")
    assert b"directory" not in bl("bl run my-sandbox file ls /home/user")


def test_processes(bl):
    bl("""bl run my-sandbox file write /home/user/script.py --content "print('hello')" """)
    assert bl('bl run my-sandbox process exec "python3 script.py" --working-dir /home/user') == \
        b"hello\n"
    bl("""bl run my-sandbox file write /workspace/script.py --content "print('there')" """)
    assert bl('bl run my-sandbox process exec "python3 script.py"') == b"there\n"
    assert b"python3 script.py" in bl("bl run my-sandbox process list")
    bl('bl run my-sandbox process exec "sleep 1000" --detach --name sleeper')
    listed = json.loads(bl("bl run my-sandbox process list --output json"))
    pid = next(process["pid"] for process in listed if process["name"] == "sleeper")
    bl(f"bl run my-sandbox process logs {pid}")
    bl(f"bl run my-sandbox process kill {pid}")
