# SPDX-License-Identifier: Apache-2.0
"""e2b-code-interpreter: runs and contexts."""

from e2b_code_interpreter import NotFoundException, Sandbox

shared = Sandbox.create(timeout=600)


def finish():
    shared.kill()


def check_runs():
    run = shared.run_code("print('hi'); x = 1; x + 1")
    assert run.logs.stdout == ["hi\n"], run
    assert run.text == "2"
    assert run.error is None
    assert shared.run_code("x").text == "1"


def check_errors():
    run = shared.run_code("raise ValueError('no')")
    assert (run.error.name, run.error.value) == ("ValueError", "no")
    assert "ValueError" in run.error.traceback


def check_contexts():
    context = shared.create_code_context(cwd="/tmp")
    assert shared.run_code("import os; os.getcwd()", context=context).text == "'/tmp'"
    assert context.id in [c.id for c in shared.list_code_contexts()]
    shared.restart_code_context(context)
    shared.remove_code_context(context)
    try:
        shared.run_code("1", context=context)
    except NotFoundException:
        return
    raise AssertionError("a context that was removed still runs code")
