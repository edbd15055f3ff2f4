# SPDX-License-Identifier: Apache-2.0
"""e2b-code-interpreter: runs and contexts."""

from e2b_code_interpreter import NotFoundException, Sandbox
from e2b_code_interpreter.charts import (BarChart, BoxAndWhiskerChart, LineChart, PieChart, ScaleType, ScatterChart,
                                         SuperChart)

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
    assert shared.run_code("import os; os.getcwd()", context=context).text == "/tmp"
    assert context.id in [c.id for c in shared.list_code_contexts()]
    shared.restart_code_context(context)
    shared.remove_code_context(context)
    try:
        shared.run_code("1", context=context)
    except NotFoundException:
        return
    raise AssertionError("a context that was removed still runs code")


def check_charts():
    """Each is of the client's class for it."""
    run = shared.run_code("""
import datetime
import matplotlib.pyplot as plt
plt.plot([datetime.date(2024, 1, 1), datetime.date(2024, 1, 3)], [1, 2], label="days")
plt.xlabel("Day (d)")
plt.show()
plt.scatter([1], [2]); plt.show()
plt.bar(["a"], [2]); plt.show()
plt.pie([1, 1, 1], labels=["a", "b", "c"]); plt.show()
plt.boxplot([[1, 2, 3]], patch_artist=True); plt.show()
fig, axes = plt.subplots(2)
for ax in axes: ax.plot([1, 2]);
""")
    assert run.error is None, run.error
    charts = [result.chart for result in run.results]
    assert [type(chart) for chart in charts] == [
        LineChart, ScatterChart, BarChart, PieChart, BoxAndWhiskerChart, SuperChart]
    assert charts[0].x_scale == ScaleType.DATETIME and charts[0].x_unit == "d"
    assert charts[0].elements[0].points[0] == ("2024-01-01", 1)
    assert (charts[2].elements[0].label, charts[2].elements[0].value) == ("a", 2)
    assert [slice.angle for slice in charts[3].elements] == [120, 120, 120]
    assert (charts[4].elements[0].median, charts[4].elements[0].outliers) == (2, [])
    assert [type(chart) for chart in charts[5].elements] == [LineChart, LineChart]


def check_results():
    assert shared.run_code("'text'").text == "text"
    assert shared.run_code("[1, {'a': None}]").results[0].json == [1, {"a": None}]
    table = shared.run_code("import pandas as pd\npd.DataFrame({'a': [1, 2]})").results[0]
    assert table.data == {"a": [1, 2]} and "<table" in table.html and "html" in table.formats()
    image = shared.run_code("from PIL import Image\nImage.new('RGB', (2, 2)).show()").results[0]
    assert image.png and not image.is_main_result
