# SPDX-License-Identifier: Apache-2.0
"""ipykernel, driven by jupyter_client as notebooks do it: one order a line ("warm 100"), the
samples in ns as the answer. A run is over when its reply is there and the kernel has said that it
is idle again."""

import subprocess
import sys
import time

from jupyter_client.manager import KernelManager

WAIT = 120


class Kernel:
    """One of them, with its client."""

    def __init__(self):
        self.manager = KernelManager()
        # Not by a kernel spec: none is installed.
        self.manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager.start_kernel(stderr=subprocess.DEVNULL)
        self.client = self.manager.client()
        self.client.start_channels()

    def run(self, code):
        """All messages of a run."""
        sent = self.client.execute(code)
        told = []
        while True:
            message = self.client.get_iopub_msg(timeout=WAIT)
            if message["parent_header"].get("msg_id") != sent:
                continue
            told.append(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        reply = self.client.get_shell_msg(timeout=WAIT)
        if reply["content"]["status"] != "ok":
            raise RuntimeError("%s: %s" % (reply["content"]["ename"], reply["content"]["evalue"]))
        return told

    def ready(self):
        self.client.wait_for_ready(timeout=WAIT)
        return self

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def timed(name, what):
    start = time.monotonic_ns()
    result = what()
    print(name, time.monotonic_ns() - start, flush=True)
    return result


def start_one():
    kernel = Kernel().ready()
    kernel.run(CODE["one"])
    return kernel


def first(count):
    for _ in range(count):
        timed("first", start_one).end()


def start_many(count):
    started = [Kernel() for _ in range(count)]  # these do not wait for each other
    for kernel in started:
        kernel.ready().run(CODE["one"])
    return started


def output(kernel):
    told = kernel.run(CODE["output"])
    size = sum(len(message["content"]["text"]) for message in told if message["msg_type"] == "stream")
    if size < OUTPUT_BYTES:
        raise RuntimeError("%d bytes of output, not %d" % (size, OUTPUT_BYTES))


def figure(kernel):
    if not any("image/png" in message["content"].get("data", {}) for message in kernel.run(CODE["figure"])):
        raise RuntimeError("no picture came")


def main():
    kernel, crowd = Kernel().ready(), []
    kernel.run("%matplotlib inline")
    verbs = {"warm": lambda: kernel.run(CODE["one"]), "output": lambda: output(kernel),
             "figure": lambda: figure(kernel)}
    print("ready", flush=True)
    for line in sys.stdin:
        verb, count = line.split()
        if verb == "first":
            first(int(count))
        elif verb == "crowd":
            crowd = timed("crowd", lambda: start_many(int(count)))
        elif verb == "disperse":
            for one in crowd:
                one.end()
        else:
            for _ in range(int(count)):
                timed(verb, verbs[verb])
        print("done", flush=True)
    kernel.end()


if __name__ == "__main__":
    CODE = dict(zip(("one", "output", "figure"), sys.argv[1:4]))
    OUTPUT_BYTES = int(sys.argv[4])
    try:
        main()
    except Exception as error:  # whoever reads the answers has to hear of it
        print("error %s: %s" % (type(error).__name__, str(error).splitlines()[:1]), flush=True)
        raise
