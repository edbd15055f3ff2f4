# SPDX-License-Identifier: Apache-2.0
"""R and Java contexts, with the interpreters themselves; and what is said where there is none that fits."""

import base64

import pytest


@pytest.fixture(scope="module")
def box(server):
    """One sandbox, and in it one interpreter of each language, for all that leave it alive."""
    made = server.create()
    yield made
    made.delete()


def run(box, code, language, **fields):
    answer = box.request("POST", "/code", {"code": code, "language": language, **fields}, timeout=150)
    assert answer.status == 200, answer
    return answer.json()


def skip_without(box, program):
    if box.exec(f"command -v {program}").exit_code != 0:
        pytest.skip(f"there is no {program} here")


@pytest.fixture
def r(box):
    skip_without(box, "R")
    return lambda code, **fields: run(box, code, "r", **fields)


@pytest.fixture
def java(box):
    skip_without(box, "javac")
    return lambda code, **fields: run(box, code, "java", **fields)


# --- R ---

def test_r_values_live_on(r):
    assert r("x <- 40; x + 2")["text"] == "[1] 42"
    done = r("f <- function(a) a * x\nf(2)\n'é'")
    assert done["text"] == "[1] \"é\"" and [item["text"] for item in done["results"]] == ["[1] 80", "[1] \"é\""]
    assert [item["isMainResult"] for item in done["results"]] == [False, True]
    for code in ("y <- 1", "invisible(3)", "3;", "# nothing", ""):
        assert r(code)["results"] == [], code


def test_r_streams(r):
    done = r("print('out'); message('told'); cat('err\\n', file = stderr()); warning('careful'); system('echo child')")
    assert done["stdout"] == "[1] \"out\"\nchild\n" and done["error"] is None
    assert done["stderr"] == "told\nerr\nWarning: careful\n"
    assert len(r("cat(strrep('x', 3e6))")["stdout"]) == 3000000
    assert r("readLines(file('stdin'))")["text"] == "character(0)"


def test_r_errors_show_the_code_only(r):
    done = r("inner <- function(a) stop('bad ', a)\nouter_one <- function() inner(3)\nouter_one()")
    error = done["error"]
    assert (error["name"], error["value"], done["exitCode"]) == ("Error", "bad 3", 1)
    assert error["traceback"].splitlines() == ["Error in inner(3) : bad 3", "Traceback:", "    1. outer_one()", "    2. inner(3)"]
    assert r("1 +")["error"]["name"] == "SyntaxError"
    assert r("library(nonesuch)")["error"]["name"] == "packageNotFoundError"
    assert "stack" in r("deep <- function(n) deep(n + 1)\ndeep(1)")["error"]["value"]
    assert r("1 + 1")["text"] == "[1] 2"


def test_r_tables_and_plots(r):
    done = r("data.frame(n = c(1.5, NA), s = c('<a>', 'b'), l = c(TRUE, FALSE))")
    assert "<td>&lt;a&gt;</td>" in done["html"]
    assert done["results"][0]["data"] == {"n": [1.5, None], "s": ["<a>", "b"], "l": [True, False]}
    done = r("plot(1:3)\nhist(c(1, 2, 2))\n7")
    pictures = [base64.b64decode(item["png"]) for item in done["results"] if "png" in item]
    assert len(pictures) == 2 and all(data.startswith(b"\x89PNG") for data in pictures) and done["text"] == "[1] 7"


def test_r_time_outs_and_variables_of_a_run(r):
    r("safe <- 'safe'")
    for code in ("while (TRUE) {}", "Sys.sleep(600)"):
        assert r(code, timeout=0.5)["error"]["name"] == "TimeoutError"
    assert r("safe")["text"] == "[1] \"safe\""
    assert r("Sys.getenv('ONE_RUN')", env={"ONE_RUN": "x=y"})["text"] == "[1] \"x=y\""
    assert r("Sys.getenv('ONE_RUN', NA)")["text"] == "[1] NA"


def test_r_ends(box, r):
    done = r("cat('bye\\n'); quit(status = 3)")
    assert done["stdout"] == "bye\n" and "status 3" in done["error"]["value"] and done["exitCode"] == 3
    assert r("exists('safe')")["text"] == "[1] FALSE"


# --- Java ---

def test_java_values_live_on(java):
    assert java("int x = 40; x + 2")["text"] == "42"
    assert java("int twice(int n) { return 2 * n; }\nrecord P(int a, String b) {}\nnew P(twice(x), \"é\")")["text"] == "P[a=80, b=é]"
    assert java("Stream.of(1, 2).map(i -> i * 2).collect(Collectors.toList())")["text"] == "[2, 4]"
    for code in ("int y = 1;", "x + 1;", "// nothing", ""):
        assert java(code)["results"] == [], code


def test_java_streams(java):
    done = java("System.out.println(\"out\"); System.err.println(\"err\"); System.out.print(\"é\");\n"
                "new ProcessBuilder(\"echo\", \"child\").inheritIO().start().waitFor();")
    assert sorted(done["stdout"].replace("é", "é\n").split()) == ["child", "out", "é"] and done["stderr"] == "err\n"
    assert len(java("System.out.print(\"x\".repeat(3_000_000));")["stdout"]) == 3000000


def test_java_errors_show_the_code_only(java):
    done = java("\nint inner(int a) {\n  return 1 / a;\n}\ninner(0)")
    error = done["error"]
    assert (error["name"], error["value"], done["exitCode"]) == ("ArithmeticException", "/ by zero", 1)
    lines = error["traceback"].splitlines()
    assert lines[0] == "java.lang.ArithmeticException: / by zero" and len(lines) == 3, lines
    assert lines[1].startswith("    at inner (<cell ") and lines[1].endswith(">:3)") and lines[2].endswith(">:5)")
    error = java("int z = \"no\";")["error"]
    assert error["name"] == "CompileError" and "cannot be converted" in error["value"] and "        ^" in error["traceback"]
    assert "Caused by: java.lang.IllegalStateException: inner" in \
        java("throw new RuntimeException(\"outer\", new IllegalStateException(\"inner\"));")["error"]["traceback"]
    assert java("foo(")["error"]["name"] == "CompileError"
    assert java("int deep(int n) { return deep(n + 1) + 1; }\ndeep(0)")["error"]["name"] == "StackOverflowError"
    assert "no stdin" in java("System.in.read()")["error"]["value"]


def test_java_shows_pictures_and_what_has_html(java):
    done = java("new java.awt.image.BufferedImage(2, 2, 1)")
    assert base64.b64decode(done["png"]).startswith(b"\x89PNG")
    done = java("public class Shown { public String toHtml() { return \"<b>\"; } public String toString() { return \"t\"; } }\nnew Shown()")
    assert (done["html"], done["text"]) == ("<b>", "t")
    assert [item["text"] for item in java("display(1, \"two\");")["results"]] == ["1", "two"]


def test_java_time_outs_and_variables_of_a_run(java):
    java("String safe = \"safe\";")
    for code in ("while (true) {}", "Thread.sleep(600_000);"):
        assert java(code, timeout=0.5)["error"]["name"] == "TimeoutError"
    assert java("safe")["text"] == "\"safe\""
    assert java("System.getenv(\"ONE_RUN\")", env={"ONE_RUN": "x=y"})["text"] == "\"x=y\""
    assert java("System.getenv(\"ONE_RUN\")")["text"] == "null"


def test_java_ends(java):
    done = java("System.out.println(\"bye\"); System.exit(3);")
    assert done["stdout"] == "bye\n" and "status 3" in done["error"]["value"] and done["exitCode"] == 3
    assert java("1 + 1")["text"] == "2"


# --- none that fits ---

@pytest.mark.parametrize("language,program,script,needs", [
    ("java", "java", "echo 'Unrecognized option: --add-opens' >&2; exit 1", "a JDK 11 or newer"),
    ("javascript", "node", "echo 'this is Node.js v12.0.0' >&2; exit 126", "Node.js 16 or newer"),
    ("python", "python3", "echo 'this is Python 3.6' >&2; exit 126", "Python 3.8 or newer"),
])
def test_an_interpreter_that_does_not_fit_is_named(box, language, program, script, needs):
    """A program that says what an old one would."""
    box.run(f"mkdir -p /tmp/old && printf '%s\\n' '#!/bin/sh' \"$S\" > /tmp/old/{program} && chmod +x /tmp/old/{program}", env={"S": script})
    before = len(box.request("GET", "/code/contexts").json()["contexts"])
    answer = box.request("POST", "/code/contexts", {"language": language, "env": {"PATH": "/tmp/old:/usr/bin:/bin"}}, timeout=90)
    assert (answer.status, answer.error()) == (409, "CODE_INTERPRETER_UNFIT"), answer
    assert needs in answer.json()["error"]["message"]
    assert len(box.request("GET", "/code/contexts").json()["contexts"]) == before


@pytest.mark.parametrize("language,package", [("r", "r-base-core"), ("java", "default-jdk-headless"), ("javascript", "nodejs"),
                                              ("typescript", "nodejs")])
def test_a_missing_interpreter_is_named_with_what_to_install(box, language, package):
    box.run("mkdir -p /tmp/few && for p in sh cat mktemp rm; do ln -sf $(command -v $p) /tmp/few/; done")
    answer = box.request("POST", "/code/contexts", {"language": language, "env": {"PATH": "/tmp/few"}}, timeout=90)
    assert (answer.status, answer.error()) == (409, "CODE_INTERPRETER_MISSING"), answer
    assert package in answer.json()["error"]["message"]
