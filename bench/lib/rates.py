# SPDX-License-Identifier: Apache-2.0
"""Requests per second: /health and an authenticated GET of a sandbox, next to nginx with the same bytes in
static files.

A server of its own and nginx with one worker share one core and take turns on it; wrk asks from another,
over kept connections. nginx has its best: no log, and open files kept."""

import os
import re
import shutil
import subprocess

from .clones import Api
from .program import Failed
from .report import median
from .server import Server, await_answer, free_port

CONNECTIONS = 32
SECONDS = 2
SERVING, ASKING = 1, 0  # cores
NGINX = """
daemon off; worker_processes 1; pid %(folder)s/pid; error_log %(folder)s/error.log crit; user root;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 100000000; tcp_nodelay on; sendfile on; open_file_cache max=16;
  client_body_temp_path %(folder)s/a; proxy_temp_path %(folder)s/b; fastcgi_temp_path %(folder)s/c;
  uwsgi_temp_path %(folder)s/d; scgi_temp_path %(folder)s/e;
  server { listen 127.0.0.1:%(port)d; root %(folder)s/static; default_type application/json; }
}
"""


def missing():
    """Why it cannot be measured here, or None."""
    for program, package in (("nginx", "nginx"), ("wrk", "wrk"), ("taskset", "util-linux")):
        if shutil.which(program) is None:
            return "%s is not installed (package %s)" % (program, package)
    return None if os.cpu_count() > 1 else "there is one core, and it takes two"


class Nginx:
    """with Nginx(folder, {"health": bytes}) as nginx: nginx.address"""

    def __init__(self, folder, files):
        self.address = "127.0.0.1:%d" % free_port()
        self.folder, self.files = folder, files
        self.process = None

    def __enter__(self):
        os.makedirs(os.path.join(self.folder, "static"))
        for name, data in self.files.items():
            with open(os.path.join(self.folder, "static", name), "wb") as file:
                file.write(data)
        path = os.path.join(self.folder, "nginx.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(NGINX % {"folder": self.folder, "port": int(self.address.rpartition(":")[2])})
        self.process = subprocess.Popen(["taskset", "-c", str(SERVING), "nginx", "-c", path, "-p", self.folder],
                                        stdin=subprocess.DEVNULL)
        try:
            await_answer(self.address, "/" + next(iter(self.files)), {})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def _ask(address, path, key):
    """Requests per second. Both are sent the key, so that both read as much."""
    done = subprocess.run(["taskset", "-c", str(ASKING), "wrk", "-t1", "-c%d" % CONNECTIONS, "-d%ds" % SECONDS,
                           "-H", "X-Api-Key: " + key, "http://%s%s" % (address, path)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    rate = re.search(r"^Requests/sec:\s+([0-9.]+)$", done.stdout, re.MULTILINE)
    if rate is None or "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise Failed("wrk at %s: %s" % (path, (done.stdout + done.stderr).strip()[-300:]))
    return float(rate.group(1))


def _measure(bench, server, folder):
    api = Api(server)
    api.call("POST", "/v0/sandbox", {"metadata": {"name": "rates"}})
    paths = {"health": "/health", "sandbox": "/v0/sandbox/rates"}
    bodies = {name: api.get(path) for name, path in paths.items()}
    with open(server.key_file, encoding="ascii") as file:
        key = file.read().strip()
    taken = {name: {"ours": [], "nginx": []} for name in paths}
    with Nginx(folder, bodies) as nginx:
        for number in range(bench.size["rates"] + 1):
            for name, path in paths.items():
                once = {"ours": _ask(server.address, path, key), "nginx": _ask(nginx.address, "/" + name, key)}
                for who, rate in once.items():
                    if number > 0:  # the first round warms up
                        taken[name][who].append(rate)
    api.delete("rates")
    api.close()
    return taken


def measure(bench):
    """{"health", "sandbox": {"ours", "nginx": requests per second}}"""
    with Server(bench.server.program, os.path.join(bench.folder, "rates"), core=SERVING) as server:
        return _measure(bench, server, os.path.join(bench.folder, "rates-nginx"))


def report(taken, out):
    for name, what, bar in (("health", "requests per second: `/health`", None),
                            ("sandbox", "requests per second: an authenticated GET of a sandbox", 0.4)):
        ours, nginx = median(taken[name]["ours"]), median(taken[name]["nginx"])
        out.row(what + "; the same bytes from nginx, on the same core", "%.0f /s" % ours, "nginx %.0f /s" % nginx,
                "%.0f %%" % (100 * ours / nginx), bar="≥ %.0f %% of nginx" % (100 * bar) if bar else "",
                met=(ours / nginx >= bar,) if bar else ())
