# SPDX-License-Identifier: Apache-2.0
"""Python that runs in a sandbox, as its root or as its user, and says what the kernel said."""

import time

USERS = ("root", "user")

# call(number, …) makes a raw system call and gives (result, errno); quiet() gives what a function of
# Python's own fails with, or what it returns.
PRELUDE = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *wide)
    return result, ctypes.get_errno()
def quiet(function, *arguments):
    try:
        return function(*arguments)
    except OSError as refused:
        return errno.errorcode[refused.errno]
"""


def command_of(sandbox, source, user="root"):
    """Writes the program into the sandbox; gives the command line that runs it as that user."""
    path = f"/var/tmp/t{time.monotonic_ns()}.py"
    sandbox.write(path, PRELUDE + source)
    return f"exec python3 {path}" if user == "root" else f"exec su user -c 'exec python3 {path}'"


def run_inside(sandbox, source, user="root", timeout=60):
    """To its end, which has to be a good one; gives the lines that it printed."""
    done = sandbox.exec(command_of(sandbox, source, user), timeout=timeout)
    assert done.exit_code == 0, done
    return done.stdout.splitlines()


def spawn_inside(sandbox, source, user="root"):
    return sandbox.spawn(command_of(sandbox, source, user))
