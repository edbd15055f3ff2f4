# SPDX-License-Identifier: Apache-2.0
"""Other ways to a first output, for orientation: each as its command line, where it is installed."""

import json
import os
import shutil
import subprocess
import time

from .apart import apart


def _bwrap(folder, busybox):
    return ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
            "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
            busybox, "echo", "hi"]


def _bundle(program):
    def prepare(folder, busybox):
        bundle = os.path.join(folder, program)
        os.makedirs(os.path.join(bundle, "rootfs"))
        shutil.copy(os.path.realpath(busybox), os.path.join(bundle, "rootfs", "busybox"))
        subprocess.run([program, "spec"], cwd=bundle, check=True)
        path = os.path.join(bundle, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["process"]["terminal"] = False
        config["process"]["args"] = ["/busybox", "echo", "hi"]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return [program, "--root", os.path.join(bundle, "state"), "run", "--bundle", bundle,
                "cella-bench-%d" % os.getpid()]
    return prepare


def _podman(folder, busybox):
    root = os.path.join(folder, "podman", "rootfs")
    os.makedirs(root)
    shutil.copy(os.path.realpath(busybox), os.path.join(root, "busybox"))
    return ["podman", "--root", os.path.join(folder, "podman", "storage"), "--runroot",
            os.path.join(folder, "podman", "run"), "--runtime", "crun", "--cgroup-manager", "cgroupfs",
            "run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit",
            "nproc=1024:1024", "--rootfs", root + ":O",
            "/busybox", "echo", "hi"]


_PEERS = {"bwrap": _bwrap, "crun": _bundle("crun"), "runc": _bundle("runc"), "podman (crun)": _podman}


def _sample(prepare, folder, busybox, count):
    argv = prepare(folder, busybox)
    samples = []
    for _ in range(count):
        start = time.monotonic_ns()
        done = subprocess.run(argv, capture_output=True, check=False, timeout=60)
        samples.append(time.monotonic_ns() - start)
        if done.stdout != b"hi\n":
            raise ValueError(done.stderr.decode(errors="replace").strip()[-200:] or
                             "exit status %d" % done.returncode)
    return samples


def measure(folder, busybox, count):
    """Nanoseconds by name; None where it is not installed, a text where it does not work."""
    results = {}
    for name, prepare in _PEERS.items():
        missing = shutil.which(name.split()[0]) is None
        results[name] = None if missing else apart(_sample, prepare, folder, busybox, count)
    return results
