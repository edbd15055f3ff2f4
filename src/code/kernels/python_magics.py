# SPDX-License-Identifier: Apache-2.0
#
# What notebooks understand besides Python: !command and %magic, on lines of their own. A part of the Python
# kernel that is loaded when a cell is no Python, and might be this. Knows namespace, that of the cells.

import os
import sys


def shell(command):
    import subprocess
    status = subprocess.call(command, shell=True, executable="/bin/bash" if os.path.exists("/bin/bash") else None)
    if status:
        namespace["_exit_code"] = status


def magic(name, rest):
    if name in ("pip", "pip3"):
        shell(f"{sys.executable} -m pip {rest}")
        import importlib
        importlib.invalidate_caches()
    elif name in ("conda", "sh", "bash", "system"):
        shell(rest if name != "conda" else f"conda {rest}")
    elif name == "cd":
        os.chdir(os.path.expanduser(rest.strip() or "~"))
    elif name in ("env", "set_env") and rest:
        key, _, value = rest.replace(" ", "=", 1).partition("=")
        os.environ[key.strip()] = value.strip()
    elif name not in ("matplotlib", "config", "load_ext", "autoreload"):
        raise SyntaxError(f"there is no %{name} here")


def without_magics(source):
    """The same as Python."""
    namespace.update(__cella_shell__=shell, __cella_magic__=magic)
    if source.startswith("%%"):
        head, _, body = source.partition("\n")
        name = head[2:].split()[0] if head[2:].split() else ""
        if name in ("bash", "sh", "system"):
            return f"__cella_shell__({body!r})"
        if name in ("time", "timeit", "capture"):
            return body
    lines = source.split("\n")
    for i, line in enumerate(lines):
        bare = line.lstrip()
        indent = line[:len(line) - len(bare)]
        if bare.startswith("!"):
            lines[i] = f"{indent}__cella_shell__({bare[1:]!r})"
        elif bare.startswith("%"):
            name, _, rest = bare[1:].partition(" ")
            lines[i] = f"{indent}__cella_magic__({name!r}, {rest!r})"
    return "\n".join(lines)
