# SPDX-License-Identifier: Apache-2.0
"""The least that runs code for somebody else: one process, one socket, exec(), "ok". No results, no
output, no errors, no time-outs, no sandbox: the floor of a warm one-liner."""

import os
import socket
import sys

path = sys.argv[1]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(1)
print("ready", flush=True)
connection, _ = listener.accept()
os.unlink(path)
scope = {}
while code := connection.recv(65536):
    exec(compile(code, "<code>", "exec"), scope)
    connection.sendall(b"ok")
