# SPDX-License-Identifier: Apache-2.0
"""Code contexts through the API: what comes back, what is kept, what is survived."""

import json
import threading

import pytest

from cella_server import wait_until


@pytest.fixture(scope="module")
def box(server):
    """One sandbox for all that leave its default context alive."""
    made = server.create()
    yield made
    made.delete()


def run(box, code, **fields):
    answer = box.request("POST", "/code", {"code": code, **fields}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def lines(box, code, **fields):
    answer = box.request("POST", "/code?stream=true", {"code": code, **fields}, timeout=60)
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_run_gives_output_and_the_last_value(box):
    done = run(box, "print('hi')\nimport sys\nprint('oh', file=sys.stderr)\n40 + 2")
    assert (done["stdout"], done["stderr"], done["text"], done["exitCode"]) == ("hi\n", "oh\n", "42", 0)
    assert done["error"] is None
    assert done["results"] == [{"isMainResult": True, "text": "42"}]


def test_variables_live_on_and_runs_are_counted(box):
    first = run(box, "kept = [1]")
    second = run(box, "kept.append(2)\nkept")
    assert second["text"] == "[1, 2]"
    assert second["executionCount"] == first["executionCount"] + 1


@pytest.mark.parametrize("code,text", [
    ("x = 1", None), ("None", None), ("1;", None), ("'a'", "'a'"), ("", None), ("# nothing", None),
    ("import asyncio\nawait asyncio.sleep(0)\n'waited'", "'waited'"),
    ("async def f():\n    return 7\nawait f()", "7"),
    ("def f():\n    return 1\n\nf()", "1"),
])
def test_the_last_value(box, code, text):
    done = run(box, code)
    assert done["error"] is None and done.get("text") == text


def test_an_error_shows_the_code_and_nothing_of_ours(box):
    error = run(box, "def inner():\n    1/0\n\ninner()")["error"]
    assert (error["name"], error["value"]) == ("ZeroDivisionError", "division by zero")
    assert "inner()" in error["traceback"] and "1/0" in error["traceback"]
    assert "cella" not in error["traceback"]


@pytest.mark.parametrize("code,name", [
    ("def f(:", "SyntaxError"), ("nothing_of_that_name", "NameError"), ("input('?')", "StdinNotImplementedError"),
    ("import sys; sys.exit(3)", "SystemExit"), ("await 5", "TypeError"),
    ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E()", "E"),
    ("class R:\n    def __repr__(self): raise KeyError('r')\nR()", "KeyError"),
])
def test_errors_end_a_run_and_not_its_context(box, code, name):
    run(box, "alive = 1")
    done = run(box, code)
    assert done["error"]["name"] == name and done["exitCode"] == (3 if name == "SystemExit" else 1)
    assert "<cella>" not in done["error"]["traceback"]
    assert run(box, "alive")["text"] == "1"


def test_children_and_threads_are_heard(box):
    done = run(box, "import os\nos.system('echo from a child; echo its error >&2')\nprint('after')")
    assert "from a child\n" in done["stdout"] and "after\n" in done["stdout"]
    assert done["stderr"] == "its error\n"
    done = run(box, "import threading\nt = threading.Thread(target=lambda: print('thread'))\nt.start(); t.join()")
    assert done["stdout"] == "thread\n"


def test_what_comes_between_two_runs_comes_with_the_next(box):
    run(box, "import threading\nev = threading.Event()\n"
             "t = threading.Thread(target=lambda: (ev.wait(), print('late')))\nt.start()")
    assert run(box, "ev.set(); t.join()")["stdout"] == "late\n"


def test_half_a_character(box):
    done = run(box, "import sys\nsys.stdout.buffer.write(b'a\\xc3')\nsys.stdout.flush()")
    assert done["stdout"] == "a\ufffd" and done["error"] is None
    events = lines(box, "import os\nos.write(1, b'\\xe2\\x82')\nimport time; time.sleep(0.05)\nos.write(1, b'\\xac!')\nNone")
    assert "".join(e["text"] for e in events if e["type"] == "stdout") == "\u20ac!"


def test_a_cell_may_break_what_it_finds(box):
    done = run(box, "print = None\nimport sys\nsys.stdout.close()")
    assert done["error"] is None
    assert run(box, "del print\nprint('there again')")["stdout"] == "there again\n"


def test_a_fork_that_comes_to_the_end_of_the_cell(box):
    done = run(box, "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('here', flush=True)\n'value'")
    assert done["text"] == "'value'" and len(done["results"]) == 1
    assert done["stdout"].count("here\n") == 2
    assert run(box, "1 + 1")["text"] == "2"


def test_notebooks_habits(box):
    assert run(box, "!echo $((40 + 2))")["stdout"] == "42\n"
    assert run(box, "%cd /tmp\nimport os\nos.getcwd()")["text"] == "'/tmp'"
    assert run(box, "%%bash\necho one\necho two")["stdout"] == "one\ntwo\n"
    shown = run(box, "from IPython.display import display, HTML\ndisplay(HTML('<b>1</b>'))")
    assert shown["html"] == "<b>1</b>" and shown["results"][0]["isMainResult"] is False


def test_representations(box):
    done = run(box, "class T:\n    def _repr_html_(self): return '<i>'\n    def _repr_latex_(self): return '$x$'\n"
                    "    def _repr_json_(self): return {'a': [1, None]}\n    def _repr_png_(self): return b'\\x89PNG'\n"
                    "    def _repr_mimebundle_(self): return {'application/vnd.x+json': {'k': 1}}\nT()")
    result = done["results"][0]
    assert result["html"] == "<i>" and result["latex"] == "$x$" and result["json"] == {"a": [1, None]}
    assert result["png"] == "iVBORw==" == done["png"] and result["extra"] == {"application/vnd.x+json": {"k": 1}}


def test_variables_of_a_run(box):
    assert run(box, "import os\nos.environ['A_VARIABLE']", env={"A_VARIABLE": "of one run"})["text"] == "'of one run'"
    assert run(box, "os.environ.get('A_VARIABLE', 'gone')")["text"] == "'gone'"


def test_a_time_out_interrupts_and_keeps_the_variables(box):
    run(box, "safe = 'safe'")
    done = run(box, "import time\nwhile True: time.sleep(0.01)", timeout=0.3)
    assert done["error"]["name"] == "TimeoutError" and "kept" in done["error"]["value"]
    assert run(box, "safe")["text"] == "'safe'"


def test_streams(box):
    events = lines(box, "print('a')\nprint('b')\n3")
    assert "".join(e["text"] for e in events if e["type"] == "stdout") == "a\nb\n"
    assert [e["type"] for e in events][-2:] == ["result", "end"]
    answer = box.request("POST", "/code", {"code": "1/0"}, headers={"Accept": "text/event-stream"})
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert "event: error\ndata: {" in answer.text and answer.text.rstrip().split("\n")[-2] == "event: end"


def test_much_output(box):
    done = run(box, "print('x' * 10_000_000)")
    assert len(done["stdout"]) == 10_000_001 and done["truncated"] is False
    done = run(box, "for i in range(600): print('y' * 100_000)")
    assert done["truncated"] is True and done["error"] is None
    assert 30 << 20 < len(done["stdout"]) <= 32 << 20


@pytest.mark.parametrize("body,status,code", [
    ({}, 400, "INVALID_ARGUMENT"), ({"code": 1}, 400, "INVALID_ARGUMENT"), ({"code": "1", "x": 1}, 400, "UNKNOWN_FIELD"),
    ({"code": "1", "language": "cobol"}, 400, "CODE_LANGUAGE_UNKNOWN"),
    ({"code": "1", "context": "nowhere"}, 404, "CODE_CONTEXT_NOT_FOUND"),
    ({"code": "1", "context": "a", "language": "python"}, 400, "INVALID_ARGUMENT"),
    ({"code": "1", "timeout": -1}, 400, "INVALID_ARGUMENT"), ({"code": "1", "timeout": "5"}, 400, "INVALID_ARGUMENT"),
    ({"code": "1", "env": {"1": "x"}}, 400, "INVALID_ARGUMENT"),
    ({"code": "x" * (8 << 20) + "x"}, 413, "PAYLOAD_TOO_LARGE"),
])
def test_bad_requests(box, body, status, code):
    answer = box.request("POST", "/code", body)
    assert (answer.status, answer.error()) == (status, code), answer


# --- contexts ---

def make(box, **fields):
    answer = box.request("POST", "/code/contexts", fields, timeout=60)
    assert answer.status == 201, answer
    return answer.json()


def test_contexts_are_apart(sandbox):
    one = make(sandbox, workingDir="/tmp", env={"WHO": "one"})
    two = make(sandbox, language="Python3")
    assert one["language"] == two["language"] == "python" and one["id"] != two["id"]
    seen = run(sandbox, "import os\nv = 1\n(os.getcwd(), os.environ['WHO'])", context=one["id"])
    assert seen["text"] == "('/tmp', 'one')"
    assert run(sandbox, "v", context=two["id"])["error"]["name"] == "NameError"
    listed = sandbox.request("GET", "/code/contexts").json()["contexts"]
    assert [c["id"] for c in listed] == [one["id"], two["id"]]
    assert sandbox.request("DELETE", f"/code/contexts/{one['id']}").status == 200
    assert sandbox.request("GET", f"/code/contexts/{one['id']}").error() == "CODE_CONTEXT_NOT_FOUND"
    assert run(sandbox, "2", context=two["id"])["text"] == "2"


def test_a_restart_forgets_and_keeps_its_settings(sandbox):
    made = make(sandbox, workingDir="/tmp", env={"WHO": "me"})
    run(sandbox, "v = 1", context=made["id"])
    again = sandbox.request("POST", f"/code/contexts/{made['id']}/restart", timeout=60).json()
    assert again["id"] == made["id"] and again["pid"] != made["pid"]
    assert run(sandbox, "v", context=made["id"])["error"]["name"] == "NameError"
    assert run(sandbox, "import os\n(os.getcwd(), os.environ['WHO'])", context=made["id"])["text"] == "('/tmp', 'me')"


@pytest.mark.parametrize("what,expected", [("restart", "KernelDied"), ("interrupt", "KeyboardInterrupt")])
def test_what_ends_a_run_from_outside(sandbox, what, expected):
    made = make(sandbox)
    got = []
    thread = threading.Thread(target=lambda: got.append(
        run(sandbox, "open('/tmp/began', 'w')\nimport time\ntime.sleep(600)", context=made["id"])))
    thread.start()
    wait_until(lambda: sandbox.exec("test -e /tmp/began").exit_code == 0, 60, "the run")
    assert sandbox.request("POST", f"/code/contexts/{made['id']}/{what}", timeout=60).status == 200
    thread.join(60)
    assert got and got[0]["error"]["name"] == expected, got
    assert run(sandbox, "1", context=made["id"])["text"] == "1"


def interpreters(sandbox):
    return [p["name"] for p in sandbox.request("GET", "/process").json()
            if p["status"] == "running" and p["name"].startswith("code.")]


def in_threads(sandbox, count, code, context):
    """Runs it so often at once; returns what gathers the answers."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        sandbox.request("POST", "/code", {"code": code, "context": context}, timeout=60))) for _ in range(count)]
    for thread in threads:
        thread.start()

    def gather():
        for thread in threads:
            thread.join(60)
        assert len(answers) == count
        return answers
    return gather


def test_runs_that_wait_for_a_deleted_context_start_no_other(sandbox):
    made = make(sandbox)
    gather = in_threads(sandbox, 5, "open('/tmp/began', 'w')\nimport time\ntime.sleep(600)", made["id"])
    wait_until(lambda: sandbox.exec("test -e /tmp/began").exit_code == 0, 60, "the run")
    assert sandbox.request("DELETE", f"/code/contexts/{made['id']}", timeout=60).status == 200
    for answer in gather():
        assert answer.status == 404 or answer.json()["error"]["name"] == "KernelDied", answer
    assert interpreters(sandbox) == []


def test_runs_that_wait_for_a_restart_are_run_after_it(sandbox):
    made = make(sandbox)
    first = in_threads(sandbox, 1, "open('/tmp/began', 'w')\nimport time\ntime.sleep(600)", made["id"])
    wait_until(lambda: sandbox.exec("test -e /tmp/began").exit_code == 0, 60, "the run")
    others = in_threads(sandbox, 5, "seen = globals().get('seen', 0) + 1\nseen", made["id"])
    assert sandbox.request("POST", f"/code/contexts/{made['id']}/restart", timeout=60).status == 200
    assert first()[0].json()["error"]["name"] == "KernelDied"
    assert sorted(answer.json()["text"] for answer in others()) == ["1", "2", "3", "4", "5"]
    assert len(interpreters(sandbox)) == 1


@pytest.mark.parametrize("code,words", [
    ("import os; os._exit(3)", "status 3"), ("import os; os.kill(os.getpid(), 9)", "signal 9"),
    ("import ctypes; ctypes.string_at(0)", "signal 11"),
    ("import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'garbage')\n    except OSError: pass\n"
     "import time; time.sleep(60)", "no message"),
])
def test_the_death_of_an_interpreter_is_told_and_survived(sandbox, code, words):
    done = run(sandbox, code)
    assert done["error"]["name"] == "KernelDied" and words in done["error"]["value"], done
    assert run(sandbox, "1 + 1")["text"] == "2"


def test_one_that_ignores_interrupts_is_killed(sandbox):
    done = run(sandbox, "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", timeout=0.2)
    assert done["error"]["name"] == "TimeoutError" and "killed" in done["error"]["value"]
    assert run(sandbox, "1 + 1")["text"] == "2"


def test_runs_in_one_context_wait_for_each_other(sandbox):
    run(sandbox, "order = []")
    threads = [threading.Thread(target=run, args=(sandbox, f"order.append({i})\nimport time; time.sleep(0.05)\norder.append({i})"))
               for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    order = json.loads(run(sandbox, "order")["text"])
    assert len(order) == 16 and order[::2] == order[1::2]


def test_a_client_that_hangs_up_interrupts(sandbox):
    run(sandbox, "kept = 1")
    connection = sandbox.server.connection()
    connection.request("POST", sandbox.base + "/code", json.dumps({"code": "open('/tmp/began', 'w')\nimport time\ntime.sleep(600)"}),
                       {"Content-Type": "application/json", "Authorization": f"Bearer {sandbox.server.key}"})
    wait_until(lambda: sandbox.exec("test -e /tmp/began").exit_code == 0, 60, "the run")
    connection.close()
    assert run(sandbox, "kept")["text"] == "1"


def test_contexts_go_with_their_sandbox(sandbox):
    made = make(sandbox)
    run(sandbox, "x = 1")
    sandbox.stop()
    answer = sandbox.request("POST", "/code", {"code": "1"})
    assert answer.error() == "NOT_RUNNING"
    sandbox.start()
    assert sandbox.request("GET", "/code/contexts").json()["contexts"] == []
    assert sandbox.request("POST", "/code", {"code": "1", "context": made["id"]}).error() == "CODE_CONTEXT_NOT_FOUND"
    assert run(sandbox, "x")["error"]["name"] == "NameError"
