# SPDX-License-Identifier: Apache-2.0
"""Python cells that do what cells should not: told with its reason, and the next run works."""

import ast
import json
import pathlib

import pytest

from cella_server import wait_until


@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    yield made
    made.delete()


def run(box, code, **fields):
    answer = box.request("POST", "/code", {"code": code, **fields}, timeout=120)
    assert answer.status == 200, answer
    return answer.json()


def told(box, code):
    """The error's name, and its traceback without the header."""
    error = run(box, code)["error"]
    lines = error["traceback"].splitlines()
    return error["name"], [line for line in lines if line != "Traceback (most recent call last):"]


def frames(box, code):
    """(where, line) of each frame of the traceback."""
    found = []
    for line in told(box, code)[1]:
        if line.startswith('  File "'):
            name, number = line.split('"')[1], line.split("line ")[1].split(",")[0]
            found.append(("cell" if name.startswith("<cell ") else name, int(number)))
    return found


# --- old interpreters ---

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "src/code/kernels"


@pytest.mark.parametrize("file", sorted(path.name for path in KERNELS.glob("*.py")))
def test_kernels_are_the_python_of_3_8(file):
    ast.parse((KERNELS / file).read_text(), feature_version=(3, 8))


# --- errors ---

@pytest.mark.parametrize("code,name,shown", [
    ("def f(:", "SyntaxError", "    def f(:"), ("return 5", "SyntaxError", "    return 5"),
    ("if True:\nx", "IndentationError", "    x"), ("'abc", "SyntaxError", "    'abc"),
    ("x = {}\nx['k']", "KeyError", "    x['k']"), ("assert 1 == 2, 'no'", "AssertionError", "    assert 1 == 2, 'no'"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt", "    raise KeyboardInterrupt"),
    ("import sys; sys.exit('bye')", "SystemExit", "    import sys; sys.exit('bye')"),
])
def test_the_line_is_shown(box, code, name, shown):
    found, lines = told(box, code)
    assert found == name and shown in lines and lines[0].startswith('  File "<cell ')


def test_the_caret_is_below_its_place(box):
    _, lines = told(box, "x = 1\nx + x / 0")
    assert lines[1:3] == ["    x + x / 0", "        ~~^~~"]


def test_nested_functions(box):
    assert frames(box, "def a():\n    def b():\n        raise KeyError('k')\n    b()\na()") == [("cell", 5), ("cell", 4), ("cell", 3)]
    run(box, "def before():\n    return missing_one\n")
    assert frames(box, "\n\nbefore()") == [("cell", 3), ("cell", 2)]  # two cells


@pytest.mark.parametrize("how,words", [
    (" from e", "direct cause"), ("", "During handling"), (" from None", None),
])
def test_chained_errors(box, how, words):
    error = run(box, f"try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('v'){how}")["error"]
    assert (error["name"], error["value"]) == ("ValueError", "v")
    assert ("ZeroDivisionError" in error["traceback"]) is (words is not None) and (words or "") in error["traceback"]


def test_modules_of_the_user_are_shown_and_libraries_are_not(box):
    box.write("/tmp/user_module.py", "def go():\n    return inner()\n\ndef inner():\n    import json\n    json.loads('x')\n")
    code = "import sys\nsys.path.insert(0, '/tmp')\nimport user_module\nuser_module.go()"
    assert frames(box, code) == [("cell", 4), ("/tmp/user_module.py", 2), ("/tmp/user_module.py", 6)]
    box.write("/tmp/broken_module.py", "x = (\n")
    name, lines = told(box, "import broken_module")
    assert name == "SyntaxError" and '  File "/tmp/broken_module.py", line 1' in lines and "    x = (" in lines
    assert frames(box, "import no_such_module") == [("cell", 1)]
    assert frames(box, "import asyncio\nasync def f():\n    1/0\nawait asyncio.gather(f())") == [("cell", 4), ("cell", 3)]


@pytest.mark.parametrize("code,name", [
    ("class M(type):\n    @property\n    def __name__(self): raise ValueError\nclass E(Exception, metaclass=M): pass\nraise E()", "E"),
    ("class E(Exception):\n    def __str__(self): return 5\nraise E()", "E"),
    ("e = None\nfor i in range(3000):\n    n = ValueError(i); n.__context__ = e; e = n\nraise e", "ValueError"),
    ("e = ValueError(1); e.__context__ = e2 = KeyError(2); e2.__context__ = e\nraise e", "ValueError"),
    ("def f(n): return f(n + 1)\nf(0)", "RecursionError"),
    ("raise ValueError('x' * (20 << 20))", "ValueError"), ("raise ValueError('\\ud800')", "ValueError"),
    ("x = bytearray(1 << 50)", "MemoryError"), ("'\\0'" + "\0", "ValueError"),
])
def test_errors_that_are_hard_to_tell(box, code, name):
    error = run(box, code)["error"]
    assert error["name"] in (name, "SyntaxError") and name in error["traceback"].replace("SyntaxError", name)
    assert len(error["traceback"]) < 100_000
    assert run(box, "1 + 1")["text"] == "2"


def test_groups_of_errors(box):
    if run(box, "import sys\nsys.version_info >= (3, 11)")["text"] == "True":
        text = run(box, "raise ExceptionGroup('g', [ValueError(1), KeyError(2)])")["error"]["traceback"]
        assert "ValueError: 1" in text and "KeyError: 2" in text and "<cella>" not in text


# --- await, stdin ---

def test_await(box):
    assert run(box, "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x\nawait f(1)")["text"] == "1"
    assert run(box, "[await f(i) for i in range(3)]")["text"] == "[0, 1, 2]"
    assert run(box, "async with asyncio.Lock() as lock:\n    got = await asyncio.gather(f(1), f(2))\ngot")["text"] == "[1, 2]"
    assert run(box, "asyncio.run(f(5))")["text"] == "5"
    done = run(box, "import asyncio\nawait asyncio.sleep(600)", timeout=0.3)
    assert done["error"]["name"] == "TimeoutError" and "kept" in done["error"]["value"]
    assert run(box, "await f(6)")["text"] == "6"


@pytest.mark.parametrize("code", ["input()", "input('Name? ')", "breakpoint()"])
def test_there_is_no_stdin(box, code):
    error = run(box, code)["error"]
    assert error["name"] == "StdinNotImplementedError" and "no stdin" in error["value"]


def test_the_stdin_that_programs_see_is_empty(box):
    assert run(box, "import sys\nsys.stdin.read()")["text"] == "''"
    assert run(box, "!cat; echo $?")["stdout"] == "0\n"


# --- what a cell may do to the interpreter ---

@pytest.mark.parametrize("code", [
    "import sys; del sys.stdout", "import sys; sys.stdout = None", "import sys; sys.stderr.close(); sys.stdout.close()",
    "import os; os.close(0)", "import os; os.close(1); os.close(2)", "print = 5", "import io, sys; sys.stdout = io.StringIO(); sys.stdout.close()",
    "import signal\nfor s in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE): signal.signal(s, signal.SIG_IGN)",
    "import sys; sys.path[:] = []; sys.meta_path[:] = []", "import sys; sys.settrace(lambda *a: None)",
    "import os\nfor i in range(4): os.fork()",
])
def test_output_comes_again_after(sandbox, code):
    run(sandbox, code)
    done = run(sandbox, "try: del print\nexcept NameError: pass\nprint('there')\nimport os\nos.system('echo child; echo its error >&2') and None")
    assert done["error"] is None and "there\n" in done["stdout"] and "child\n" in done["stdout"]
    assert "its error\n" in done["stderr"]


def test_builtins_that_a_cell_has_broken_are_its_own(sandbox):
    assert run(sandbox, "import builtins\nfor name in ('isinstance', 'len', 'type', 'getattr', 'list', 'compile', 'eval'):\n"
                        "    setattr(builtins, name, None)")["error"] is None
    assert run(sandbox, "1 + 1")["text"] == "2"
    assert run(sandbox, "print('x')")["stdout"] == "x\n"
    assert run(sandbox, "1/0")["error"]["name"] == "ZeroDivisionError"
    assert run(sandbox, "def f():\n    return 5\nf()")["text"] == "5"


@pytest.mark.parametrize("code", ["import os; os.closerange(3, 256)", "import os; os.execvp('sleep', ['sleep', '1000'])"])
def test_an_interpreter_that_leaves_its_connection_is_ended(sandbox, code):
    error = run(sandbox, code)["error"]
    assert error["name"] == "KernelDied" and "ended" in error["value"]
    assert run(sandbox, "1 + 1")["text"] == "2"
    assert "sleep" not in sandbox.run("ps -e -o comm=")


def test_memory_bombs(server):
    box = server.create(resources={"memory": "128Mi"})
    try:
        error = run(box, "hoard = []\nwhile True: hoard.append(bytearray(1 << 20))")["error"]
        assert error["name"] == "MemoryError" or "memory" in error["value"], error
        assert run(box, "1 + 1")["text"] == "2"
    finally:
        box.delete()


def test_recursion_without_a_limit(sandbox):
    error = run(sandbox, "import sys, threading\nsys.setrecursionlimit(10 ** 9)\nclass C:\n    def __repr__(self): return repr(self)\nrepr(C())")["error"]
    assert error["name"] in ("KernelDied", "RecursionError")
    assert run(sandbox, "1 + 1")["text"] == "2"


def test_a_stopped_interpreter_is_killed_in_time(sandbox):
    done = run(sandbox, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", timeout=0.2)
    assert done["error"]["name"] == "TimeoutError" and "killed" in done["error"]["value"]
    assert run(sandbox, "1 + 1")["text"] == "2"


# --- what is written, by whom and when ---

def test_a_flood_until_the_time_is_over(box):
    done = run(box, "kept = 1\nwhile True: print('x' * 1000)", timeout=1)
    assert done["error"]["name"] == "TimeoutError" and "kept" in done["error"]["value"] and done["truncated"]
    assert run(box, "kept")["text"] == "1"


def test_threads_print_later(box):
    run(box, "import threading\nstop = threading.Event()\ndef talk():\n    while not stop.wait(0.001): print('late')\n"
             "thread = threading.Thread(target=talk)\nthread.start()")
    wait_until(lambda: "late\n" in run(box, "None")["stdout"], 60, "the thread's words")
    assert run(box, "stop.set(); thread.join()")["error"] is None
    run(box, "None")
    assert run(box, "1")["stdout"] == ""
    done = run(box, "t = threading.Thread(target=lambda: 1/0)\nt.start(); t.join()")
    assert done["error"] is None and "ZeroDivisionError" in done["stderr"]
    assert run(box, "t = threading.Thread(target=display, args=(1,))\nt.start(); t.join()")["results"][0]["text"] == "1"


def test_processes_of_python(box):
    assert run(box, "import multiprocessing\nwith multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, -2]))")["stdout"] == "[1, 2]\n"
    done = run(box, "import subprocess\nsubprocess.run(['sh', '-c', 'echo out; echo err >&2'])\nsubprocess.check_output(['echo', 'caught'])")
    assert (done["stdout"], done["stderr"], done["text"]) == ("out\n", "err\n", "b'caught\\n'")
    code = "import os\npid = os.fork()\nif pid == 0:\n    raise ValueError('in the child')\nos.waitpid(pid, 0)[1]"
    done = run(box, code)
    assert done["error"] is None and len(done["results"]) == 1  # the child's error is not the run's


def test_bytes_that_are_no_characters(box):
    done = run(box, "import os, sys\nos.write(1, b'\\xff\\xfe')\nsys.stdout.write('\\ud800')\nprint('\\x00\\x1b[31m')\nos.write(2, b'\\x80'*3) and None")
    assert done["error"] is None and "\\ud800" in done["stdout"] and "\x00\x1b[31m" in done["stdout"] and "\ufffd" in done["stdout"]
    answer = box.request("POST", "/code?stream=true", {"code": "'\\ud800'"})
    assert [json.loads(line)["type"] for line in answer.text.splitlines()] == ["result", "end"]
