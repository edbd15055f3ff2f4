# SPDX-License-Identifier: Apache-2.0
"""Tools of an agent as frameworks wrap them: one sandbox behind four functions, whose results and errors are text
for a model. Long output, time-outs, files that are not there, users, and the sandbox's end in the middle."""

from e2b import (CommandExitException, InvalidArgumentException, NotFoundException, Sandbox, SandboxException,
                 TimeoutException)


class Tools:
    def __init__(self):
        self.sandbox = Sandbox.create("base", timeout=300, envs={"LANG": "C.UTF-8"})

    def bash(self, command, timeout=60):
        try:
            result = self.sandbox.commands.run(command, timeout=timeout)
            return result.stdout + result.stderr
        except CommandExitException as failed:
            return f"exit {failed.exit_code}\n{failed.stdout}{failed.stderr}"
        except TimeoutException:
            return "timed out"

    def read(self, path):
        try:
            return self.sandbox.files.read(path)
        except NotFoundException:
            return "no such file"
        except InvalidArgumentException:
            return "not a file"

    def write(self, path, text):
        return self.sandbox.files.write(path, text).path

    def tree(self, path, depth=2):
        return sorted(entry.path for entry in self.sandbox.files.list(path, depth=depth))


tools = Tools()
assert tools.bash("echo hi; echo there >&2") == "hi\nthere\n"
assert tools.bash("ls /nope") .startswith("exit 2\n")
assert tools.bash("sleep 1000", timeout=1) == "timed out"
assert len(tools.bash("seq 200000")) == 1288895
assert tools.bash("cd /tmp && pwd") == "/tmp\n" and tools.bash("pwd") == "/home/user\n"
assert tools.write("src/deep/main.py", "print('ä')\n") == "/home/user/src/deep/main.py"
assert tools.read("src/deep/main.py") == "print('ä')\n"
assert (tools.read("src/none"), tools.read("src")) == ("no such file", "not a file")
assert tools.tree("src") == ["/home/user/src/deep", "/home/user/src/deep/main.py"]
assert tools.bash("python3 src/deep/main.py") == "ä\n"
assert tools.sandbox.commands.run("id -un", user="root").stdout == "root\n"
background = tools.sandbox.commands.run("while true; do sleep 1; done", background=True, timeout=0)
assert tools.sandbox.kill() and not tools.sandbox.is_running()
try:
    background.wait()
    raise AssertionError("a command has survived its sandbox")
except SandboxException:
    pass
try:
    tools.sandbox.commands.run("ls")
    raise AssertionError("a sandbox that was killed still runs commands")
except SandboxException:
    pass
print("done")
