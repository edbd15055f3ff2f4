# SPDX-License-Identifier: Apache-2.0
"""JavaScript, TypeScript and Bash contexts: the same promises in other languages."""

import json
import pathlib
import re

import pytest



@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    yield made
    made.delete()


def run(box, code, language=None, **fields):
    body = {"code": code, **fields}
    if language:
        body["language"] = language
    answer = box.request("POST", "/code", body, timeout=90)
    assert answer.status == 200, answer
    return answer.json()


def node_version(box):
    return tuple(int(part) for part in re.findall(r"\d+", box.run("node --version"))[:2])


# --- javascript ---

@pytest.mark.parametrize("code,text", [
    ("1 + 1", "2"), ("const a = 1; a", "1"), ("'s'", "'s'"), ("({a: [1]})", "{ a: [ 1 ] }"), ("undefined", None), ("5;", None),
    ("await Promise.resolve(7)", "7"), ("const p = await Promise.resolve(3)\np + 1", "4"),
    ("import { join } from 'path'\njoin('a', 'b')", "'a/b'"), ("import os from 'os'; typeof os.cpus", "'function'"),
    ("class A { m() { return 'm' } }\nnew A().m()", "'m'"), ("function f() { return 9 }\nf()", "9"),
    ("require('path').basename('/x/y')", "'y'"), ("// nothing", None), ("`const ${1}`", "'const 1'"),
])
def test_javascript_values(box, code, text):
    done = run(box, code, "javascript")
    assert done["error"] is None and done.get("text") == text, done


def test_javascript_variables_live_on_and_can_be_declared_again(box):
    run(box, "const kept = 1; let other = 2; class K {}\nconst late = await Promise.resolve(5)", "js")
    assert run(box, "[kept, other, typeof K, late]", "js")["text"] == "[ 1, 2, 'function', 5 ]"
    assert run(box, "const kept = 2; kept", "js")["text"] == "2"


def test_javascript_output(box):
    done = run(box, "console.log('out'); console.error('err'); process.stdout.write('raw')", "js")
    assert (done["stdout"], done["stderr"]) == ("out\nraw", "err\n")
    done = run(box, "require('child_process').execSync('echo child', {stdio: 'inherit'}); undefined", "js")
    assert done["stdout"] == "child\n"


def test_javascript_errors(box):
    error = run(box, "function inner() { null.x }\ninner()", "js")["error"]
    assert error["name"] == "TypeError" and "inner" in error["traceback"] and "node:" not in error["traceback"]
    assert run(box, "throw 5", "js")["error"]["value"] == "5"
    assert run(box, "let let = 1", "js")["error"]["name"] == "SyntaxError"
    assert run(box, "await Promise.reject(new RangeError('r'))", "js")["error"]["name"] == "RangeError"


@pytest.mark.parametrize("code", ["while (true) {}", "await new Promise(() => {})"])
def test_javascript_time_outs_keep_variables(box, code):
    run(box, "var safe = 'safe'", "js")
    assert run(box, code, "js", timeout=0.5)["error"]["name"] == "TimeoutError"
    assert run(box, "safe", "js")["text"] == "'safe'"


def test_javascript_variables_of_a_run(box):
    assert run(box, "process.env.ONE_RUN", "js", env={"ONE_RUN": "x=y"})["text"] == "'x=y'"
    assert run(box, "process.env.ONE_RUN === undefined", "js")["text"] == "true"


def test_javascript_death(sandbox):
    done = run(sandbox, "console.log('last words'); process.exit(4)", "js")
    assert done["stdout"] == "last words\n"
    assert done["error"]["name"] == "KernelDied" and "status 4" in done["error"]["value"]
    assert run(sandbox, "1", "js")["text"] == "1"
    done = run(sandbox, "require('fs').writeSync(3, 'garbage'); 1", "js")
    assert done["error"]["name"] == "KernelDied"
    assert run(sandbox, "2", "js")["text"] == "2"


def test_javascript_much_output(box):
    done = run(box, "console.log('x'.repeat(3000000))", "js")
    assert len(done["stdout"]) == 3000001 and done["error"] is None


def test_javascript_promises_are_waited_for(box):
    done = run(box, "async function main() { await new Promise(r => setTimeout(r, 20)); console.log('late'); return 7 }\nmain()", "js")
    assert (done["stdout"], done["text"]) == ("late\n", "7")
    assert run(box, "new Promise(() => {})", "js", timeout=0.5)["error"]["name"] == "TimeoutError"


def test_javascript_modules_of_the_working_directory(box):
    box.write("/workspace/m.mjs", "export const v = 'module'; export default 9")
    box.write("/workspace/c.js", "exports.c = 'common'")
    assert run(box, "import d, { v } from './m.mjs'\n[d, v]", "js")["text"] == "[ 9, 'module' ]"
    assert run(box, "require('./c.js').c + (await import('/workspace/m.mjs')).v", "js")["text"] == "'commonmodule'"


@pytest.mark.parametrize("code,text", [
    ("const r = /['\"`{]/.test(\"'\"); const after = 1; after", "1"), ("const t = `a${ `b${ 1 + 1 }` }c`; t", "'ab2c'"),
    ("const q = 8 / 2 / 2; q", "2"), ("class B { static n = 1 }\nclass B { static n = 2 }\nB.n", "2"),
])
def test_javascript_is_not_misread(box, code, text):
    for _ in range(2):  # what was declared can be declared again
        done = run(box, code, "js")
        assert done["error"] is None and done["text"] == text, done


def test_javascript_shows(box):
    done = run(box, "display.html('<b>'); display.png(Buffer.from('abc')); display.json({a: [1]}); display({b: 2}); undefined", "js")
    assert done["results"] == [{"isMainResult": False, "html": "<b>"}, {"isMainResult": False, "png": "YWJj"},
                               {"isMainResult": False, "json": {"a": [1]}}, {"isMainResult": False, "text": "{ b: 2 }"}]
    done = run(box, "({ [Symbol.for('Jupyter.display')]: () => ({'text/html': '<i>', 'application/vnd.x+json': {k: 1}}) })", "js")
    assert done["html"] == "<i>" and done["results"][0]["extra"] == {"application/vnd.x+json": {"k": 1}}
    error = run(box, "throw new Error('outer', { cause: new Error('inner') })", "js")["error"]
    assert "Caused by: Error: inner" in error["traceback"] and "node:" not in error["traceback"]


def test_typescript(box):
    """Node's own stripping of types, where it has it; else it is said what is missing."""
    source = ("enum Color { Red, Green = 5 }\ninterface P { n?: number }\nconst p: P = { n: Color.Green }\n"
              "class A { constructor(private x: number) {} get() { return this.x } }\nnew A(p.n! + 1).get() satisfies number")
    request = {"language": "ts"}
    if node_version(box) < (22, 13):
        answer = box.request("POST", "/code", {"code": source, "language": "typescript"}, timeout=90)
        assert answer.error() == "CODE_INTERPRETER_UNFIT" and "22.13" in answer.json()["error"]["message"], answer
        binary = next(pathlib.Path(__file__).parents[1].glob("clients/node_modules/node-linux-*/bin/node"), None)
        if binary is None:
            pytest.skip("there is no newer node here")
        box.write("/opt/node/bin/node", binary.read_bytes())
        box.run("chmod +x /opt/node/bin/node")
        request["env"] = {"PATH": "/opt/node/bin:/usr/bin:/bin"}
    made = box.request("POST", "/code/contexts", request, timeout=90)
    assert made.status == 201, made
    context = made.json()["id"]
    assert run(box, source, context=context)["text"] == "6"
    assert run(box, "const again: number = await Promise.resolve(p.n!); again", context=context)["text"] == "5"
    assert run(box, "const broken: = 1", context=context)["error"]["name"] == "SyntaxError"


# --- bash ---

def test_bash_state_lives_on(box):
    run(box, "x=5; declare y=6; cd /tmp; f() { echo \"f $x\"; }; export Z=z", "bash")
    done = run(box, "f; echo $y $PWD; env | grep ^Z=", "bash")
    assert done["stdout"] == "f 5\n6 /tmp\nZ=z\n" and done["exitCode"] == 0 and done["error"] is None


def test_bash_streams_and_status(box):
    done = run(box, "echo out; echo err >&2; printf 'no newline'; false", "bash")
    assert (done["stdout"], done["stderr"], done["exitCode"]) == ("out\nno newline", "err\n", 1)
    assert run(box, "(exit 42)", "bash")["exitCode"] == 42
    assert run(box, "cat", "bash")["stdout"] == ""


def test_bash_is_not_confused(box):
    done = run(box, "printf '\\036\\036cell\\036\\036\\036x'; printf '\\036'", "bash")
    assert done["stdout"] == "\x1e\x1ecell\x1e\x1e\x1ex\x1e"
    assert run(box, "if then", "bash")["exitCode"] == 2
    assert run(box, "exec >/dev/null; echo hidden", "bash")["stdout"] == ""
    assert run(box, "echo seen", "bash")["stdout"] == "seen\n"
    assert run(box, "echo 'q\"uo$te' \"and\ntwo lines\" é", "bash")["stdout"] == "q\"uo$te and\ntwo lines é\n"
    answer = box.request("POST", "/code", {"code": "a\x00b", "language": "bash"})
    assert answer.error() == "INVALID_ARGUMENT"


def test_bash_variables_of_a_run(box):
    assert run(box, "echo \"$ONE_RUN\"", "bash", env={"ONE_RUN": "it's $HOME"})["stdout"] == "it's $HOME\n"
    assert run(box, "echo \"[$ONE_RUN]\"", "bash")["stdout"] == "[]\n"


@pytest.mark.parametrize("code", ["sleep 600", "while :; do :; done", "while true; do sleep 1; done",
                                  "g() { while true; do sleep 0.1; done; }; g"])
def test_bash_time_outs_keep_variables(box, code):
    run(box, "safe=1", "bash")
    done = run(box, code, "bash", timeout=0.5)
    assert done["exitCode"] == 130 and done["error"]["name"] == "TimeoutError"
    assert run(box, "echo $safe", "bash")["stdout"] == "1\n"


@pytest.mark.parametrize("code,status,stdout", [
    ("echo bye; exit 7", 7, "bye\n"), ("set -e; echo x; (exit 4); echo never", 4, "x\n"),
    ("exec sh -c 'echo replaced; exit 5'", 5, "replaced\n"), ("trap 'echo trapped' EXIT; exit 6", 6, "trapped\n"), ("kill -9 $$", 137, ""),
])
def test_bash_the_end_of_the_shell_is_not_the_contexts(box, code, status, stdout):
    body = {"language": "bash", "workingDir": "/tmp", "env": {"KEPT": "kept"}}
    context = box.request("POST", "/code/contexts", body, timeout=90).json()["id"]
    first = run(box, "x=1", context=context)
    assert (first["stdout"], first["stderr"]) == ("", "")
    done = run(box, code, context=context)
    assert (done["exitCode"], done["stdout"], done["error"]["name"]) == (status, stdout, "KernelDied"), done
    assert run(box, "echo \"[$x] $PWD $KEPT\"", context=context)["stdout"] == "[] /tmp kept\n"
    assert box.request("DELETE", f"/code/contexts/{context}").status == 200


def test_bash_options_are_the_codes_own(box):
    context = box.request("POST", "/code/contexts", {"language": "bash"}, timeout=90).json()["id"]
    assert run(box, "set -x; echo a", context=context)["stderr"] == "++ echo a\n"
    done = run(box, "echo b", context=context)
    assert done["stdout"] == "b\n" and "cella" not in done["stderr"] and "++ echo b" in done["stderr"]
    run(box, "set +x -u -o pipefail", context=context)
    done = run(box, "echo $nothing", context=context)
    assert done["exitCode"] != 0 and "unbound" in done["stderr"]
    assert run(box, "trap 'echo caught' USR1; kill -USR1 $$; sleep 60 & echo $((1 + 1))", context=context)["stdout"] == "caught\n2\n"
    assert run(box, "set -o | grep pipefail; unset -f __cella_end", context=context)["stdout"].split() == ["pipefail", "on"]
    assert run(box, "jobs -p | wc -l; kill %1", context=context)["stdout"].strip() == "1"
    assert box.request("DELETE", f"/code/contexts/{context}").status == 200


def test_what_runs_in_the_background_is_heard_later(sandbox):
    run(sandbox, "(while [ ! -e /tmp/go ]; do sleep 0.01; done; echo later) & true", "bash")
    run(sandbox, "touch /tmp/go; wait", "bash")
    told = run(sandbox, "echo now", "bash")["stdout"]
    assert "now\n" in told


def test_each_language_has_a_context(sandbox):
    for language, code in (("python", "1"), ("javascript", "1"), ("bash", "echo 1")):
        run(sandbox, code, language)
    listed = sandbox.request("GET", "/code/contexts").json()["contexts"]
    assert [c["id"] for c in listed] == ["default-python", "default-javascript", "default-bash"]
    assert all(c["default"] and c["status"] == "idle" for c in listed)


def test_a_missing_interpreter_is_named(sandbox):
    """A PATH without it is as good as an image without it."""
    answer = sandbox.request("POST", "/code/contexts", {"language": "javascript", "env": {"PATH": "/bin/nowhere:/sbin"}},
                             timeout=90)
    if answer.status == 201:
        pytest.skip("node is on that path, too")
    assert answer.error() == "CODE_INTERPRETER_MISSING", answer
    assert sandbox.request("GET", "/code/contexts").json()["contexts"] == []


@pytest.mark.parametrize("language,first,second", [
    ("javascript", "var x = 'js'", "x"), ("bash", "x=sh", "echo $x"),
])
def test_they_survive_the_server(server_factory, language, first, second):
    server = server_factory()
    box = server.create()
    run(box, first, language)
    before = server.pids()
    server.kill("cellad")
    server.wait_recovered(before, "cellad")
    done = run(box, second, language)
    assert done.get("text", done["stdout"]) in ("'js'", "sh\n")
    followed = box.request("GET", f"/code/contexts/default-{language}/run", timeout=60).json()
    assert followed.get("text", followed["stdout"]) in ("'js'", "sh\n")


def test_the_command_line(server, box):
    def cli(*args, **kwargs):
        return server.cli("run", box.name, "code", *args, **kwargs)

    assert cli("cli_x = 20").stdout == ""
    assert cli("cli_x * 2 + 2").stdout == "42\n"
    done = cli("import sys\nprint('out'); print('err', file=sys.stderr)\n1/0")
    assert done.stdout == "out\n" and done.stderr.startswith("err\nTraceback") and done.returncode == 1
    assert cli("--language", "bash", "exit_status() { return 3; }; exit_status").returncode == 3
    assert cli("-", input="print('from a file')").stdout == "from a file\n"
    assert cli("--env", "CLI_V=v", "import os; os.environ['CLI_V']").stdout == "'v'\n"
    events = [json.loads(line) for line in cli("--output", "json", "1").stdout.splitlines()]
    assert [event["type"] for event in events] == ["result", "end"]
    assert cli("--language", "cobol", "1").returncode == 2
    assert server.cli("code", box.name, input="print('a script')\n").stdout == "a script\n"


def test_there_are_only_so_many(sandbox):
    made = []
    for _ in range(32):
        answer = sandbox.request("POST", "/code/contexts", {"language": "bash"}, timeout=90)
        assert answer.status == 201, answer
        made.append(answer.json()["id"])
    answer = sandbox.request("POST", "/code/contexts", {"language": "bash"})
    assert answer.error() == "LIMIT_EXCEEDED", answer
    assert sandbox.request("POST", "/code", {"code": "1"}).error() == "LIMIT_EXCEEDED"
    assert sandbox.request("DELETE", f"/code/contexts/{made[0]}").status == 200
    assert run(sandbox, "1")["text"] == "1"
