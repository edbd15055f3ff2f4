# SPDX-License-Identifier: Apache-2.0
"""One hop to a program: straight, through nginx, and through the port proxy into a sandbox.

The same program (hop/app.c) answers all three. nginx, with one worker as cellad is one thread, has
connections kept to it and no buffering on disk: its best, and on the host, without a sandbox."""

import http.client
import os
import shutil
import subprocess

from .program import Failed, Program
from .server import await_answer, free_port

BIG = 64 << 20
NGINX = """
daemon off; worker_processes 1; pid %(folder)s/pid; error_log %(folder)s/error.log crit; user root;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 100000000; tcp_nodelay on;
  client_body_temp_path %(folder)s/a; proxy_temp_path %(folder)s/b; fastcgi_temp_path %(folder)s/c;
  uwsgi_temp_path %(folder)s/d; scgi_temp_path %(folder)s/e;
  upstream app { server 127.0.0.1:%(app)d; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:%(port)d;
    location / {
      proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_max_temp_file_size 0; proxy_buffers 16 64k; proxy_buffer_size 64k;
    }
  }
}
"""


class Hops:
    """with Hops(...) as hops: hops.turn("one", 100); hops.samples("ours", "one")"""

    def __init__(self, folder, app, hop, server):
        self.folder, self.app, self.hop, self.server = folder, app, hop, server
        self.parts = {}
        self.running = []
        self.missing = None if shutil.which("nginx") else "nginx is not installed"

    def __enter__(self):
        os.makedirs(self.folder)
        try:
            port = free_port()
            self._spawn([self.app, str(port)], port)
            self._part("direct", "127.0.0.1:%d" % port, "")
            if not self.missing:
                self._start_nginx(port)
            self._start_ours()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _spawn(self, argv, port):
        self.running.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL))
        await_answer("127.0.0.1:%d" % port, "/small", {})

    def _start_nginx(self, app):
        port = free_port()
        path = os.path.join(self.folder, "nginx.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(NGINX % {"folder": self.folder, "app": app, "port": port})
        self._spawn(["nginx", "-c", path, "-p", self.folder], port)
        self._part("nginx", "127.0.0.1:%d" % port, "")

    def _start_ours(self):
        with open(self.server.key_file, encoding="ascii") as file:
            key = file.read().strip()
        fields = {"X-Api-Key": key}
        self._call(fields, "POST", "/v0/sandbox", b'{"metadata": {"name": "bench-hop"}}', 202)
        with open(self.app, "rb") as file:
            binary = file.read()
        box = "/v0/sandbox/bench-hop"
        self._call({**fields, "Content-Type": "application/octet-stream"}, "PUT",
                   box + "/filesystem/tmp/app?permissions=0755", binary, 200)
        self._call(fields, "POST", box + "/process",
                   b'{"command": "exec /tmp/app 8000", "waitForCompletion": false}', 200)
        await_answer(self.server.address, box + "/port/8000/small", fields)
        self._part("ours", self.server.address, box + "/port/8000", "X-Api-Key: " + key)

    def _call(self, fields, method, path, body, status):
        connection = http.client.HTTPConnection(self.server.address, timeout=60)
        connection.request(method, path, body, fields)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status != status:
            raise Failed("%s %s: %d %s" % (method, path, answer.status, text[:200]))

    def _part(self, name, *argv):
        part = Program("hop " + name, [self.hop, *argv])
        self.parts[name] = part.__enter__()

    def turn(self, verb, count):
        for part in self.parts.values():
            part.run(verb, count)

    def forget(self):
        for part in self.parts.values():
            part.samples = {}

    def samples(self, name, verb):
        return self.parts[name].samples.get(verb) if name in self.parts else None

    def __exit__(self, *_):
        for part in self.parts.values():
            part.__exit__()
        for process in reversed(self.running):
            process.terminate()
            process.wait()
