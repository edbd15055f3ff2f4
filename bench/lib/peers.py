# SPDX-License-Identifier: Apache-2.0
"""Other ways to a first output, for orientation: each as its command line, where it is installed."""

import json
import os
import shutil
import subprocess
import time


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


_PEERS = {"bwrap": _bwrap, "crun": _bundle("crun"), "runc": _bundle("runc")}


def measure(folder, busybox, count):
    """Nanoseconds by name; None where it is not installed, a text where it does not work."""
    results = {}
    for name, prepare in _PEERS.items():
        if shutil.which(name) is None:
            results[name] = None
            continue
        try:
            argv = prepare(folder, busybox)
            samples = []
            for _ in range(count):
                start = time.monotonic_ns()
                done = subprocess.run(argv, capture_output=True, check=True, timeout=60)
                samples.append(time.monotonic_ns() - start)
                if done.stdout != b"hi\n":
                    raise ValueError("no output")
            results[name] = samples
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            status = getattr(error, "returncode", None)
            results[name] = "does not work here (%s)" % (
                error if status is None else "exit status %d" % status)
    return results
