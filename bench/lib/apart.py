# SPDX-License-Identifier: Apache-2.0
"""Some peers refuse to work beside a cgroup2 tree that has a controller next to v1 ones ("hybrid mode").
They are measured in a mount namespace of their own, in which that tree is not there."""

import ctypes
import json
import os

_UNIFIED = b"/sys/fs/cgroup/unified"
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE, _MNT_DETACH = 0x20000, 0x4000, 0x40000, 2


def _leave():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0 or libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "a mount namespace")
    if os.path.ismount(_UNIFIED):
        libc.umount2(_UNIFIED, _MNT_DETACH)


def _child(channel, function, args):
    try:
        _leave()
        result = function(*args)
    except Exception as error:  # whatever it is, it is the parent's to say
        result = "does not work here (%s)" % error
    os.write(channel, json.dumps(result).encode())


def apart(function, *args):
    """function(*args), whose result can be JSON of a few kilobytes, in a child; "" if that died."""
    inside, outside = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _child(outside, function, args)
        finally:
            os._exit(0)
    os.close(outside)
    with os.fdopen(inside, "rb") as file:
        text = file.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else "does not work here"
