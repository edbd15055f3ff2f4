# SPDX-License-Identifier: Apache-2.0
#
# The Python kernel: runs cells in one namespace and tells what comes of them (src/code/frames.h).
#
# The main thread reads requests and runs cells, so that signals and libraries that insist on the main thread
# work; a second one passes on what is written to descriptors 1 and 2 (by children, by C code) and takes new
# connections. Nothing here is needed by the cells, which may redefine, close or break whatever they find: a
# kernel that is broken ends, and is started anew.
#
# What a one-liner costs is system calls and wake-ups, so there are few: two polls, one recv, one sigaction
# and one send. And what an idle kernel costs is imports, so the modules behind the modules are used where they will do:
# socket, signal and threading bring enum and more with them, traceback and linecache bring re and tokenize.

import _ast
import _signal
import _socket
import _thread
import builtins
import io
import os
import select
import struct
import sys
import time
from _collections import deque
from _frozen_importlib_external import PathFinder

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
TWO = struct.Struct("<II")
END = struct.Struct("<cIIII")
monotonic = time.monotonic
get_ident = _thread.get_ident
Module = type(sys)


class Channel:
    """The connection, and what is remembered for the next one. All under one lock."""

    def __init__(self, name):
        self.lock = _thread.RLock()
        self.came = _thread.allocate_lock()  # taken by who waits for a connection
        self.listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self.listener.bind("\0" + name)
        self.listener.listen(16)
        self.conn = None
        self.live = False     # the connection wants what comes
        self.source = None    # the connection that … was read from
        self.inbox = b""
        self.out = []         # frames that were not sent yet
        self.out_size = 0
        self.sent_at = 0.0
        self.sends = 0        # in this run
        self.late = deque()
        self.late_size = 0
        self.late_lost = 0
        self.history = deque()
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
            if self.interrupted and self.guard == 0 and self.run:
                self.interrupted = False
                raise KeyboardInterrupt  # it came meanwhile

    # --- telling ---

    def put(self, kind, data, now=None):
        """now: True: sent at once; False: it can wait for the end, which is near."""
        with self:
            frame = HEAD.pack(kind, len(data)) + data
            if self.run == 0:
                self.keep_late(frame)
                return
            self.remember(frame)
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

    def remember(self, frame):
        self.history.append(frame)
        self.history_size += len(frame)
        while self.history_size > HISTORY_MAX and len(self.history) > 1:
            old = self.history.popleft()
            self.history_size -= len(old)
            self.history_lost += len(old) - HEAD.size

    def keep_late(self, frame):
        self.late.append(frame)
        self.late_size += len(frame)
        while self.late_size > LATE_MAX and len(self.late) > 1:
            old = self.late.popleft()
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
                self.conn.shutdown(_socket.SHUT_RDWR)  # whoever reads it wakes up
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
        conn = _socket.socket(fileno=self.listener._accept()[0])
        # Only who comes from outside the sandbox has no pid in here.
        pid, _, _ = struct.unpack("3i", conn.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
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
                    conn.sendall(b"".join(self.history))
                self.conn = conn
                self.live = mode == b"F"
                if self.came.locked():
                    self.came.release()
        except OSError:
            conn.close()

    # --- requests: the main thread ---

    def connection(self):
        while self.conn is None:
            self.came.acquire(False)
            if self.conn is None:
                self.came.acquire()
        return self.conn

    def next_request(self):
        """The payload of the next one."""
        while True:
            conn = self.conn or self.connection()
            if conn is not self.source:
                self.source, self.inbox = conn, b""
                self.readable = select.poll()
                self.readable.register(conn, select.POLLIN)
            inbox = self.inbox
            try:
                while True:
                    if len(inbox) >= HEAD.size:
                        end = HEAD.size + HEAD.unpack_from(inbox)[1]
                        if len(inbox) >= end:
                            self.inbox = inbox[end:]
                            return inbox[HEAD.size:end]
                    # Who sleeps in recv() is woken for nothing each time that the other end takes what was sent:
                    # the kernel tells all who wait for anything at this socket that it has room again.
                    self.readable.poll()
                    more = conn.recv(4096 if len(inbox) < 4096 else 1 << 20)
                    if not more:
                        raise OSError
                    inbox += more
            except OSError:
                with self.lock:
                    if self.conn is conn:
                        self.conn = None
                        self.live = False

    def begin(self, number):
        frame = HEAD.pack(b"S", 4) + U32.pack(number)
        with self.lock:
            self.history.clear()
            self.history.append(frame)
            self.history_size = len(frame)
            self.history_lost = 0
            self.out.append(frame)
            self.interrupted = False
            self.guard = 1
            self.live = self.conn is not None
            self.run = number
            self.count += 1
            self.sends = 0
            self.status = 0
            if self.late_size or self.late_lost:
                self.tell_late()

    def tell_late(self):
        if self.late_lost:
            self.put(b"G", struct.pack("<Q", self.late_lost))
        for frame in self.late:
            self.remember(frame)
            self.out.append(frame)
        self.late.clear()
        self.late_size = self.late_lost = 0
        self.wake()  # it may have stopped reading

    def end(self):
        """With the guard up: no interrupt is for what comes after."""
        with self.lock:
            frame = END.pack(b"D", 12, self.run, self.count, self.status)
            self.remember(frame)
            self.out.append(frame)
            self.flush()
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
        if getattr(getattr(sys, name, None), "closed", True):
            setattr(sys, name, stream(kind, fd))


def flush_streams():
    try:
        sys.stdout.flush()
    except Exception:
        pass
    try:
        sys.stderr.flush()
    except Exception:
        pass


def is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


class Pipes:
    """Descriptors 1 and 2, which end here."""

    def __init__(self):
        self.ends = {}
        self.closed = []  # those that nobody writes to any more: the cell has closed them
        self.filled = select.poll()
        for kind, fd in ((b"O", 1), (b"E", 2)):
            self.open(kind, fd)

    def open(self, kind, fd):
        end, write = os.pipe()
        os.dup2(write, fd)
        os.close(write)
        os.set_blocking(end, False)
        self.ends[end] = kind, fd
        self.filled.register(end, select.POLLIN)

    def reopen(self):
        """Between two runs, for those that come; what the cell has there instead stays."""
        with channel:
            gone = [(kind, fd) for kind, fd in self.closed if not is_open(fd)]
            filled = 0
            while filled <= 2:  # or else a pipe's ends would be in their place
                filled = os.open(os.devnull, os.O_RDWR)
            os.close(filled)
            for kind, fd in gone:
                self.open(kind, fd)
                self.closed.remove((kind, fd))
            channel.wake()

    def read(self, end):
        """Whether there was something."""
        with channel:  # so that whoever drains waits for what is being passed on
            if end not in self.ends:
                return False
            try:
                data = os.read(end, CHUNK)
            except BlockingIOError:
                return False
            except OSError:  # the cell has closed this end
                data = b""
            if data:
                channel.put(self.ends[end][0], data)
            else:
                self.forget(end)
            return bool(data)

    def forget(self, end):
        self.filled.unregister(end)
        self.closed.append(self.ends.pop(end))
        try:
            os.close(end)
        except OSError:
            pass

    def drain(self):
        if not self.filled.poll(0):
            return
        for end in list(self.ends):
            for _ in range(32):
                if not self.read(end):
                    break

    def pump(self):
        poll = select.poll()
        poll.register(channel.wake_r, select.POLLIN)
        poll.register(channel.listener, select.POLLIN)
        heard = set()
        while True:
            full = channel.run == 0 and channel.late_size >= LATE_MAX // 2
            wanted = set() if full else set(self.ends)
            for end in heard - wanted:
                poll.unregister(end)
            for end in wanted - heard:
                poll.register(end, select.POLLIN)
            heard = wanted
            for fd, events in poll.poll(10 if channel.gathering else None):
                if fd in heard:
                    self.read(fd)
                elif events & select.POLLNVAL:  # the cell has closed what is ours
                    poll.unregister(fd)
                elif fd != channel.wake_r:
                    channel.accept()
                else:
                    os.read(fd, 4096)
                    time.sleep(0.01)
            if channel.gathering:
                with channel:
                    channel.flush()


# --- results ---

REPRS = ("_repr_mimebundle_", "_ipython_display_", "_repr_html_", "_repr_png_", "_repr_svg_", "_repr_jpeg_",
         "_repr_latex_", "_repr_markdown_", "_repr_json_", "_repr_javascript_", "_repr_pdf_")
PLAIN = frozenset((int, float, str, bool, tuple, set, bytes, complex, type))
parts = dict(zip(("rich", "charts", "magics", "errors"), PARTS))  # of the kernel: source, or a module


def part(name):
    """One that is compiled when it is first needed."""
    if type(parts[name]) is bytes:
        module = Module("cella_" + name)
        module.__dict__.update(put_result=put_result, namespace=namespace, part=part, SHORT=SHORT)
        exec(compile(parts[name], "<cella>", "exec"), module.__dict__)
        parts[name] = module
    return parts[name]


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
    if kind in PLAIN or not (isinstance(value, (list, dict)) or any(hasattr(kind, name) for name in REPRS)):
        put_result({"text": repr(value)}, main)
    else:
        part("rich").show(value, main)


def display(*values, raw=False, **_):
    for value in values:
        if raw:
            part("rich").publish(value)
        else:
            show(value, False)


class StdinNotImplementedError(RuntimeError):
    __module__ = "builtins"


def no_input(prompt=""):
    raise StdinNotImplementedError(
        "input() is not available: a run has no stdin. Put the value into the code, or into its environment")


# --- cells ---

# A class of its own, so that what is pickled or spawned finds it.
main_module = Module("__main__")
namespace = main_module.__dict__
FLAGS = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
loop = None
cells = {}  # sources by name


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


def parse(source, name):
    try:
        return compile(source, name, "exec", _ast.PyCF_ONLY_AST, True)
    except SyntaxError:
        if "!" not in source and "%" not in source:
            raise
        try:
            tree = compile(part("magics").without_magics(source), name, "exec", _ast.PyCF_ONLY_AST, True)
        except SyntaxError:
            tree = None
        if tree is None:
            raise
        return tree


def compile_line(source, name):
    """One line that is plainly an assignment, or one expression, is compiled in one go. None: it is more."""
    if "\n" in source or ";" in source:
        return None
    word, _, rest = source.partition(" ")
    try:
        if rest.startswith("= ") and word.isidentifier():
            return compile(source, name, "exec", FLAGS, True)
        return compile(source, name, "eval", FLAGS, True)
    except SyntaxError:  # told by whoever looks at all of it
        return None


def compile_cell(source, name):
    """What comes before the last expression, and that: None where there is none."""
    line = compile_line(source, name)
    if line is not None:
        return None, line
    first = last = None
    body = parse(source, name).body
    if body and type(body[-1]) is _ast.Expr:
        last = compile(_ast.Expression(body.pop().value), name, "eval", FLAGS, True)
    if body:
        first = compile(_ast.Module(body, []), name, "exec", FLAGS, True)
    return first, last


def run_cell(source, name):
    first, last = compile_cell(source, name)
    if first is not None:
        run_code(first)
    value = None if last is None else run_code(last)
    if value is not None:
        namespace["_"] = value
        if not source.rstrip().endswith(";"):
            show(value, True)
    if "matplotlib.pyplot" in sys.modules:
        part("rich").show_figures()


def put_error(error):
    flush_streams()
    code = error.code if isinstance(error, SystemExit) else 1
    channel.status = code & 255 if isinstance(code, int) else 0 if code is None else 1
    try:
        told = part("errors").describe(error)
    except BaseException:  # there may be no memory left, or no room on the stack
        told = type.__dict__["__name__"].__get__(type(error)), "", ""
    told = [text.encode("utf-8", "backslashreplace")[:FRAME_MAX // 4] for text in told]
    channel.put(b"X", b"".join(U32.pack(len(text)) + text for text in told), False)


def run_guarded(source, name):
    try:
        run_cell(source, name)
    except BaseException as error:  # SystemExit too: a cell does not end its kernel
        if "matplotlib.pyplot" in sys.modules:
            try:  # what was drawn before the error can be seen
                part("rich").show_figures(isinstance(error, Exception))
            except BaseException:
                pass
        put_error(error)


def set_environment(pairs):
    """What was there before."""
    before = []
    for key, value in pairs:
        before.append((key, os.environ.get(key)))
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value
    return before[::-1]


def cache_entry(name, source):
    """Lines as Python counts them, each with its end, by which carets are placed."""
    return len(source), None, [line + "\n" for line in source.split("\n")], name


def keep_source(name, number, source):
    """For tracebacks."""
    old = f"<cell {number - CELLS_KEPT}>"
    cells[name] = source
    cells.pop(old, None)
    linecache = sys.modules.get("linecache")
    if linecache is not None:
        linecache.cache[name] = cache_entry(name, source)
        linecache.cache.pop(old, None)


def show_sources(linecache):
    """To one that has just been imported."""
    for name, source in cells.items():
        linecache.cache[name] = cache_entry(name, source)


def run(payload):
    number, env_size = TWO.unpack_from(payload)
    source = payload[8 + env_size:].decode("utf-8", "replace")
    before = None
    if pipes.closed:
        pipes.reopen()
    if env_size:
        before = set_environment([pair.decode("utf-8", "surrogateescape").partition("=")[::2]
                                  for pair in payload[8:8 + env_size].split(b"\0") if pair])
    open_streams()
    channel.begin(number)
    name = f"<cell {channel.count}>"
    keep_source(name, channel.count, source)
    _signal.signal(_signal.SIGINT, on_interrupt)
    try:
        try:
            channel.guard = 0
            if channel.interrupted:
                raise KeyboardInterrupt
            run_guarded(source, name)
        finally:
            channel.guard += 1
    except KeyboardInterrupt as error:  # it came at the very end, or while another error was told
        channel.guard = 1
        put_error(error)
    flush_streams()
    if channel.forked:  # a child of the cell's that came to its end
        os._exit(0)
    if before:
        set_environment(before)
    pipes.drain()
    channel.end()


def on_interrupt(number, frame):
    if channel.forked or channel.run == 0:
        return
    if channel.guard:
        channel.interrupted = True  # for who takes the guard down
    else:
        raise KeyboardInterrupt


def after_fork():
    channel.forked = True
    channel.lock = _thread.RLock()
    for thing in (channel.conn, channel.listener):
        if thing is not None:
            thing.close()
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)


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
    namespace.update(__builtins__=builtins, __name__="__main__", display=display)
    builtins.input = no_input
    sys.meta_path.insert(0, Hook())
    _signal.signal(_signal.SIGINT, on_interrupt)
    os.register_at_fork(before=lambda: channel.lock.acquire(), after_in_parent=lambda: channel.lock.release(),
                        after_in_child=after_fork)
    _thread.start_new_thread(pipes.pump, ())
    while True:
        run(channel.next_request())


class Hook:
    """Looks after a few modules when they are imported: what they show is to be seen here."""

    names = ("linecache", "matplotlib.pyplot", "matplotlib.figure", "plotly.basedatatypes", "PIL.Image", "IPython",
             "IPython.display", "IPython.core.display_functions")

    def find_spec(self, name, path=None, target=None):
        if name not in self.names:
            return None
        spec = PathFinder.find_spec(name, path)
        if name != "linecache":
            return part("rich").hook(name, spec)
        if spec is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (load(module), show_sources(module))
        return spec


start(NAME)
