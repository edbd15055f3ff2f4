# SPDX-License-Identifier: Apache-2.0
#
# The Python kernel: runs cells in one namespace and tells what comes of them (src/code/frames.h).
#
# The main thread reads requests and runs cells, so that signals and libraries that insist on the main thread
# work; a second one passes on what is written to descriptors 1 and 2 (by children, by C code) and takes new
# connections. Nothing here is needed by the cells, which may redefine, close or break whatever they find: a
# kernel that is broken ends, and is started anew.

import _thread
import ast
import builtins
import collections
import io
import linecache
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import types

VERSION = 1
CHUNK = 65536
FRAME_MAX = (16 << 20) - 4096  # a frame that is longer is not taken
HISTORY_MAX = 1 << 20          # of a run's events, for whoever lost the connection
LATE_MAX = 65536               # of what threads and children write between two runs
GATHER = 0.005                 # output that comes faster than this is gathered, but for …
SENT_AT_ONCE = 4               # … the first frames of a run
CELLS_KEPT = 1000              # whose source tracebacks can show

HEAD = struct.Struct("<cI")
U32 = struct.Struct("<I")
monotonic = time.monotonic
get_ident = threading.get_ident


class Channel:
    """The connection, and what is remembered for the next one. All under one lock."""

    def __init__(self, name):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind("\0" + name)
        self.listener.listen(16)
        self.conn = None
        self.live = False     # the connection wants what comes
        self.inbox = b""
        self.out = []         # frames that were not sent yet
        self.out_size = 0
        self.sent_at = 0.0
        self.sends = 0        # in this run
        self.late = collections.deque()
        self.late_size = 0
        self.late_lost = 0
        self.history = collections.deque()
        self.history_size = 0
        self.history_lost = 0
        self.status = 0
        self.run = 0          # number of the run under way, 0: none
        self.count = 0
        self.main = get_ident()
        self.guard = 0        # the main thread is where it must not be interrupted
        self.interrupted = False
        self.forked = False
        self.gathering = False
        self.wake_r, self.wake_w = os.pipe()
        os.set_blocking(self.wake_w, False)

    # --- the main thread is not interrupted in here ---

    def __enter__(self):
        if get_ident() == self.main:
            self.guard += 1
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()
        if get_ident() == self.main:
            self.guard -= 1

    # --- telling ---

    def put(self, kind, data, now=None):
        """now: True: sent at once; False: it can wait for the end, which is near."""
        with self:
            frame = HEAD.pack(kind, len(data)) + data
            if self.run == 0:
                self.keep_late(kind, frame)
                return
            self.remember(kind, frame)
            self.out.append(frame)
            self.out_size += len(frame)
            if now or self.out_size > CHUNK:
                self.flush()
            elif now is False:
                return
            elif self.sends < SENT_AT_ONCE or monotonic() - self.sent_at > GATHER:
                self.flush()
            elif not self.gathering:
                self.gathering = True
                self.wake()

    def remember(self, kind, frame):
        self.history.append((kind, frame))
        self.history_size += len(frame)
        while self.history_size > HISTORY_MAX and len(self.history) > 1:
            _, old = self.history.popleft()
            self.history_size -= len(old)
            self.history_lost += len(old) - HEAD.size

    def keep_late(self, kind, frame):
        self.late.append((kind, frame))
        self.late_size += len(frame)
        while self.late_size > LATE_MAX and len(self.late) > 1:
            _, old = self.late.popleft()
            self.late_size -= len(old)
            self.late_lost += len(old) - HEAD.size

    def flush(self):
        self.gathering = False
        if not self.out:
            return
        data = b"".join(self.out)
        self.out.clear()
        self.out_size = 0
        if self.conn is not None and self.live:
            try:
                self.conn.sendall(data)
            except OSError:
                self.lose()
        self.sent_at = monotonic()
        self.sends += 1

    def lose(self):
        if self.conn is not None:
            try:
                self.conn.shutdown(socket.SHUT_RDWR)  # whoever reads it wakes up
            except OSError:
                pass
        self.conn = None
        self.live = False

    def wake(self):
        try:
            os.write(self.wake_w, b"w")
        except OSError:
            pass

    # --- connections: the second thread ---

    def accept(self):
        conn, _ = self.listener.accept()
        # Only who comes from outside the sandbox has no pid in here.
        pid, _, _ = struct.unpack("3i", conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if pid != 0:
            conn.close()
            return
        conn.settimeout(5)
        try:
            mode = conn.recv(1)
            conn.settimeout(None)
            with self:
                self.flush()
                self.lose()
                told = struct.pack("<III", VERSION, self.run, self.count)
                conn.sendall(HEAD.pack(b"H", len(told)) + told)
                if mode == b"F":
                    if self.history_lost:
                        conn.sendall(HEAD.pack(b"G", 8) + struct.pack("<Q", self.history_lost))
                    conn.sendall(b"".join(frame for _, frame in self.history))
                self.conn = conn
                self.inbox = b""
                self.live = mode == b"F"
                self.changed.notify_all()
        except OSError:
            conn.close()

    # --- requests: the main thread ---

    def next_request(self):
        """The payload of the next one."""
        while True:
            with self.lock:
                while self.conn is None:
                    self.changed.wait()
                conn = self.conn
            try:
                while True:
                    if len(self.inbox) >= HEAD.size:
                        kind, size = HEAD.unpack_from(self.inbox)
                        if len(self.inbox) >= HEAD.size + size:
                            payload = self.inbox[HEAD.size:HEAD.size + size]
                            self.inbox = self.inbox[HEAD.size + size:]
                            return payload
                    more = conn.recv(1 << 20)
                    if not more:
                        raise OSError
                    self.inbox += more
            except OSError:
                with self.lock:
                    if self.conn is conn:
                        self.conn = None
                        self.live = False

    def begin(self, number):
        with self.lock:
            self.history.clear()
            self.history_size = self.history_lost = 0
            self.interrupted = False
            self.live = self.conn is not None
            self.run = number
            self.count += 1
            self.sends = 0
            self.status = 0
            frame = HEAD.pack(b"S", 4) + U32.pack(number)
            self.remember(b"S", frame)
            self.out.append(frame)
            if self.late_lost:
                self.put(b"G", struct.pack("<Q", self.late_lost))
            for kind, frame in self.late:
                self.remember(kind, frame)
                self.out.append(frame)
            if self.late_size:
                self.late.clear()
                self.wake()  # which may have stopped reading for it
            self.late_size = self.late_lost = 0

    def end(self):
        """With the guard up: no interrupt is for what comes after."""
        with self.lock:
            self.put(b"D", struct.pack("<III", self.run, self.count, self.status), True)
            self.run = 0
            self.interrupted = False
            self.guard = 0


class Raw(io.RawIOBase):
    """Where sys.stdout and sys.stderr of the cells end."""

    def __init__(self, kind, fd):
        self.kind = kind
        self.fd = fd

    def write(self, data):
        data = bytes(data)
        if channel.forked:
            return os.write(self.fd, data)
        for at in range(0, len(data), CHUNK):
            channel.put(self.kind, data[at:at + CHUNK])
        return len(data)

    def fileno(self):
        return self.fd

    def writable(self):
        return True


def stream(kind, fd):
    made = io.TextIOWrapper(io.BufferedWriter(Raw(kind, fd)), "utf-8", "backslashreplace", line_buffering=True)
    made.mode = "w"
    return made


def open_streams():
    """Those of a cell that closed them are made anew."""
    for name, kind, fd in (("stdout", b"O", 1), ("stderr", b"E", 2)):
        if getattr(getattr(sys, name), "closed", False) or getattr(sys, name) is None:
            setattr(sys, name, stream(kind, fd))


def flush_streams():
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except Exception:
            pass


class Pipes:
    """Descriptors 1 and 2, which end here."""

    def __init__(self):
        self.ends = {}
        for kind, fd in ((b"O", 1), (b"E", 2)):
            end, write = os.pipe()
            os.dup2(write, fd)
            os.close(write)
            os.set_blocking(end, False)
            self.ends[end] = kind

    def read(self, end):
        """Whether there was something."""
        with channel:  # so that whoever drains waits for what is being passed on
            try:
                data = os.read(end, CHUNK)
            except OSError:
                return False
            if data:
                channel.put(self.ends[end], data)
            return bool(data)

    def drain(self):
        for end in self.ends:
            for _ in range(32):
                if not self.read(end):
                    break

    def pump(self):
        poll = select.poll()
        poll.register(channel.wake_r, select.POLLIN)
        poll.register(channel.listener, select.POLLIN)
        listening = False
        while True:
            full = channel.run == 0 and channel.late_size >= LATE_MAX // 2
            if listening == full:
                for end in self.ends:
                    poll.unregister(end) if full else poll.register(end, select.POLLIN)
                listening = not full
            for fd, _ in poll.poll(10 if channel.gathering else None):
                if fd == channel.wake_r:
                    os.read(fd, 4096)
                    time.sleep(0.01)
                    if channel.interrupted and channel.run:
                        channel.interrupted = False
                        _thread.interrupt_main()
                elif fd in self.ends:
                    self.read(fd)
                else:
                    channel.accept()
            if channel.gathering:
                with channel:
                    channel.flush()


# --- results ---

REPRS = ("_repr_mimebundle_", "_repr_html_", "_repr_png_", "_repr_svg_", "_repr_jpeg_", "_repr_latex_",
         "_repr_markdown_", "_repr_json_", "_repr_javascript_", "_repr_pdf_")
PLAIN = frozenset((int, float, str, bool, list, dict, tuple, set, bytes, complex, type))
rich_module = None


def rich():
    """What knows of figures, tables and images: compiled when it is first needed."""
    global rich_module
    if rich_module is None:
        module = types.ModuleType("cella_rich")
        module.__dict__.update(put_result=put_result, channel=channel, SHORT=SHORT)
        exec(compile(RICH, "<cella>", "exec"), module.__dict__)
        rich_module = module
    return rich_module


SHORT = {"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
         "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
         "application/json": "*json", "application/javascript": "javascript"}


def put_result(items, main):
    """items: names (those of JSON begin with *) and text. What is too long is left out, and said to be."""
    flush_streams()
    parts = [b"\1" if main else b"\0"]
    left = FRAME_MAX
    for name, value in items.items():
        data = value if isinstance(value, bytes) else value.encode("utf-8", "backslashreplace")
        if len(data) > left:
            name, data = "text", f"<{name} of {len(data)} bytes is too large to be shown>".encode()
        left -= len(data) + 300
        key = name.encode()[:255]
        parts.append(bytes((len(key),)) + key + U32.pack(len(data)) + data)
    channel.put(b"R", b"".join(parts), not main)


def show(value, main):
    kind = type(value)
    if kind in PLAIN or not any(hasattr(kind, name) for name in REPRS):
        put_result({"text": repr(value)}, main)
    else:
        rich().show(value, main)


def display(*values, **_):
    for value in values:
        show(value, False)


class StdinNotImplementedError(RuntimeError):
    __module__ = "builtins"


def no_input(prompt=""):
    raise StdinNotImplementedError(
        "input() is not available: a run has no stdin. Put the value into the code, or into its environment")


# --- cells ---

# A class of its own, so that what is pickled or spawned finds it.
main_module = types.ModuleType("__main__")
namespace = main_module.__dict__
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
loop = None


def run_code(code):
    if code.co_flags & 0x80:  # a coroutine
        global loop
        import asyncio
        if loop is None or loop.is_closed():
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
        task = loop.create_task(eval(code, namespace))
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            try:
                loop.run_until_complete(task)
            except BaseException:
                pass
            raise
    return eval(code, namespace)


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
    """What notebooks understand besides Python: !command and %magic, on lines of their own."""
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


def parse(source, name):
    try:
        return ast.parse(source, name)
    except SyntaxError:
        if "!" not in source and "%" not in source:
            raise
        try:
            tree = ast.parse(without_magics(source), name)
        except SyntaxError:
            tree = None
        if tree is None:
            raise
        return tree


def run_cell(source, name):
    body = parse(source, name).body
    last = None
    if body and type(body[-1]) is ast.Expr:
        last = compile(ast.Expression(body.pop().value), name, "eval", FLAGS, True)
    if body:
        run_code(compile(ast.Module(body, []), name, "exec", FLAGS, True))
    if last is not None:
        value = run_code(last)
        if value is not None:
            namespace["_"] = value
            if not source.rstrip().endswith(";"):
                show(value, True)
    if "matplotlib.pyplot" in sys.modules:
        rich().show_figures()


def clean(report):
    """Without frames that are not the cell's: those before it, and the kernel's own."""
    frames = list(report.stack)
    cells = [at for at, frame in enumerate(frames) if frame.filename.startswith("<cell ")]
    frames = frames[cells[0]:] if cells else []
    report.stack = traceback.StackSummary.from_list([f for f in frames if f.filename != "<cella>" and
                                                         not f.filename.startswith("<frozen importlib")])
    for other in (report.__cause__, report.__context__):
        if other is not None:
            clean(other)


def put_error(error):
    flush_streams()
    code = error.code if isinstance(error, SystemExit) else 1
    channel.status = code & 255 if isinstance(code, int) else 0 if code is None else 1
    kind = type(error)
    try:
        value = str(error)
    except BaseException:
        value = f"<{kind.__name__} that can not be shown>"
    try:
        report = traceback.TracebackException(kind, error, error.__traceback__)
        clean(report)
        text = "".join(report.format())
    except BaseException:
        text = f"{kind.__name__}: {value}\n"
    parts = [part.encode("utf-8", "backslashreplace")[:FRAME_MAX // 4] for part in (kind.__name__, value, text)]
    channel.put(b"X", b"".join(U32.pack(len(part)) + part for part in parts), False)


def run_guarded(source, name):
    try:
        run_cell(source, name)
    except BaseException as error:  # SystemExit too: a cell does not end its kernel
        if "matplotlib.pyplot" in sys.modules:
            try:
                rich().close_figures()
            except BaseException:
                pass
        put_error(error)


def run(payload):
    number, env_size = struct.unpack_from("<II", payload)
    env = [pair.decode("utf-8", "surrogateescape").partition("=")
           for pair in payload[8:8 + env_size].split(b"\0") if pair]
    source = payload[8 + env_size:].decode("utf-8", "replace")
    before = {}
    for key, _, value in env:
        before[key] = os.environ.get(key)
        os.environ[key] = value
    open_streams()
    channel.begin(number)
    name = f"<cell {channel.count}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    linecache.cache.pop(f"<cell {channel.count - CELLS_KEPT}>", None)
    signal.signal(signal.SIGINT, on_interrupt)
    try:
        try:
            run_guarded(source, name)
        finally:
            channel.guard += 1
    except KeyboardInterrupt as error:  # it came at the very end, or while another error was told
        channel.guard = 1
        put_error(error)
    flush_streams()
    if channel.forked:  # a child of the cell's that came to its end
        os._exit(0)
    for key, value in before.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value
    pipes.drain()
    channel.end()


def on_interrupt(number, frame):
    if channel.forked or channel.run == 0:
        return
    if channel.guard:  # it comes again in a moment
        channel.interrupted = True
        channel.wake()
    else:
        raise KeyboardInterrupt


def after_fork():
    channel.forked = True
    channel.lock = threading.RLock()
    for thing in (channel.conn, channel.listener):
        if thing is not None:
            thing.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def start(name):
    global channel, pipes
    channel = Channel(name)
    pipes = Pipes()
    sys.stdout, sys.stderr = stream(b"O", 1), stream(b"E", 2)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    sys.modules["__main__"] = main_module
    sys.argv = [""]
    if "" not in sys.path:
        sys.path.insert(0, "")
    namespace.update(__builtins__=builtins, __name__="__main__", __cella_shell__=shell, __cella_magic__=magic,
                     display=display)
    builtins.input = no_input
    sys.meta_path.insert(0, Hook())
    signal.signal(signal.SIGINT, on_interrupt)
    os.register_at_fork(before=lambda: channel.lock.acquire(), after_in_parent=lambda: channel.lock.release(),
                        after_in_child=after_fork)
    threading.Thread(target=pipes.pump, name="cella", daemon=True).start()
    while True:
        run(channel.next_request())


class Hook:
    """Looks after a few modules when they are imported: what they show is to be seen here."""

    names = ("matplotlib.pyplot", "plotly.basedatatypes", "IPython", "IPython.display",
             "IPython.core.display_functions")

    def find_spec(self, name, path=None, target=None):
        if name not in self.names:
            return None
        import importlib.machinery
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        return rich().hook(name, spec)


start(NAME)
