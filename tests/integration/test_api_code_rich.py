# SPDX-License-Identifier: Apache-2.0
"""What Python's own libraries show: the packages are Debian's, in the host image. Each run is one cell, as a
notebook's user would write it: without a line of set-up."""

import base64
import json

import pytest

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    yield made
    made.delete()


def run(box, code, **fields):
    answer = box.request("POST", "/code", {"code": code, **fields}, timeout=120)
    assert answer.status == 200, answer
    done = answer.json()
    assert done["error"] is None, done["error"]
    return done


def show(box, code):
    """The one result."""
    results = run(box, code)["results"]
    assert len(results) == 1, results
    return results[0]


def chart(box, code):
    """That of the one figure."""
    results = [r for r in run(box, "import matplotlib.pyplot as plt\n" + code)["results"] if "png" in r]
    assert len(results) == 1 and results[0]["isMainResult"] is False
    return results[0]["chart"]


# --- matplotlib ---

def test_a_figure_is_a_picture_without_any_set_up(box):
    shown = show(box, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    assert base64.b64decode(shown["png"]).startswith(PNG) and shown["isMainResult"] is False
    assert shown["text"].startswith("<Figure size 640x480 with 1 Axes>")
    assert run(box, "1")["results"] == [{"isMainResult": True, "text": "1"}]  # it is not shown again


@pytest.mark.parametrize("code,mains", [
    ("plt.plot([1, 2]);", [False]),                      # at the end, without show()
    ("fig, ax = plt.subplots()\nax.plot([1])\nfig", [True]),
    ("fig, ax = plt.subplots()\nax.plot([1])\nfig.show()", [False]),
    ("plt.plot([1]); plt.show()\nplt.plot([2]); plt.show()", [False, False]),
    ("from matplotlib.figure import Figure\nf = Figure()\nf.subplots().plot([1])\nf", [True]),
    ("plt.figure()", [True]),
    ("plt.figure();", []),                               # nothing in it
])
def test_when_figures_are_shown(box, code, mains):
    results = run(box, "import matplotlib.pyplot as plt\n" + code)["results"]
    assert [r["isMainResult"] for r in results if "png" in r] == mains


def test_what_was_drawn_before_an_error_is_seen(box):
    done = box.request("POST", "/code", {"code": "import matplotlib.pyplot as plt\nplt.plot([1])\n1/0"}, timeout=60).json()
    assert done["error"]["name"] == "ZeroDivisionError" and "png" in done["results"][0]


@pytest.mark.parametrize("backend", ["module://matplotlib_inline.backend_inline", "agg"])
def test_an_image_that_was_made_for_notebooks(box, backend):
    made = box.request("POST", "/code/contexts", {"env": {"MPLBACKEND": backend}}, timeout=60).json()
    done = run(box, "import matplotlib.pyplot as plt\nplt.plot([1]);", context=made["id"])
    assert "png" in done["results"][0]
    box.request("DELETE", f"/code/contexts/{made['id']}")


def test_a_line_chart(box):
    found = chart(box, "plt.plot([1, 2, 3], [4, 5, 6.5], label='sin')\nplt.plot([1, 2], [3, 1])\nplt.title('A title')\n"
                       "plt.xlabel('Time (s)')\nplt.ylabel('Speed [km/h]')\nplt.grid()\nplt.axvline(2)")
    assert (found["type"], found["title"]) == ("line", "A title")
    assert (found["x_label"], found["x_unit"], found["x_scale"]) == ("Time (s)", "s", "linear")
    assert (found["y_label"], found["y_unit"], found["y_scale"]) == ("Speed [km/h]", "km/h", "linear")
    assert found["elements"] == [{"label": "sin", "points": [[1, 4], [2, 5], [3, 6.5]]},
                                 {"label": "Line 1", "points": [[1, 3], [2, 1]]}]
    assert len(found["x_ticks"]) == len(found["x_tick_labels"]) and 1 in found["x_ticks"]


@pytest.mark.parametrize("code,scale,first", [
    ("plt.plot(['a', 'b'], [1, 2])", "categorical", "a"),
    ("plt.plot([1, 10], [1, 2]); plt.xscale('log')", "log", 1),
    ("import datetime\nplt.plot([datetime.date(2023, 9, 1), datetime.date(2023, 9, 3)], [1, 2])", "datetime", "2023-09-01"),
    ("import numpy\nplt.plot(numpy.array(['2023-09-01', '2023-09-03'], 'datetime64[D]'), [1, 2])", "datetime",
     "2023-09-01T00:00:00"),
    ("plt.plot([float('nan'), 1], [1, 2])", "linear", None),
])
def test_scales(box, code, scale, first):
    found = chart(box, code)
    assert found["x_scale"] == scale and found["elements"][0]["points"][0][0] == first


def test_a_scatter_chart(box):
    found = chart(box, "plt.scatter([1, 2], [3, 4], label='A')\nplt.scatter([5], [7.5], label='B')\nplt.axhline(3)")
    assert found["type"] == "scatter"
    assert found["elements"] == [{"label": "A", "points": [[1, 3], [2, 4]]}, {"label": "B", "points": [[5, 7.5]]}]


def test_bar_charts(box):
    found = chart(box, "plt.bar(['a', 'b'], [1, 2], label='low', yerr=[0.1, 0.1])\nplt.bar(['a', 'b'], [3, 1], bottom=[1, 2])\n"
                       "plt.ylabel('Books (pcs)')")
    assert (found["type"], found["y_label"], found["y_unit"], found["x_label"]) == ("bar", "Books (pcs)", "pcs", None)
    assert [(e["label"], e["group"], e["value"]) for e in found["elements"]] == [
        ("a", "low", 1), ("b", "low", 2), ("a", "Group 2", 3), ("b", "Group 2", 1)]
    lying = chart(box, "plt.barh(['a', 'b'], [1, 2])\nplt.xlabel('n')\nplt.ylabel('who')")
    assert (lying["x_label"], lying["y_label"]) == ("who", "n")
    assert [(e["label"], e["value"]) for e in lying["elements"]] == [("a", 1), ("b", 2)]
    grouped = chart(box, "import pandas\npandas.DataFrame({'x': [1, 2], 'y': [3, 4]}, index=['r', 's']).plot.bar()")
    assert [(e["label"], e["group"], e["value"]) for e in grouped["elements"]] == [
        ("r", "x", 1), ("s", "x", 2), ("r", "y", 3), ("s", "y", 4)]
    counted = chart(box, "plt.hist([0, 1, 1, 10], bins=2)")
    assert [(e["label"], e["value"]) for e in counted["elements"]] == [("2.5", 3), ("7.5", 1)]


def test_a_pie_chart(box):
    found = chart(box, "plt.pie([1, 1, 1, 5], labels=list('abcd'), autopct='%d')\nplt.title('P')")
    assert (found["type"], found["title"]) == ("pie", "P")
    assert found["elements"] == [{"label": name, "angle": angle, "radius": 1}
                                 for name, angle in (("a", 45), ("b", 45), ("c", 45), ("d", 225))]
    assert [e["angle"] for e in chart(box, "plt.pie([1, 1, 1])")["elements"]] == [120, 120, 120]


@pytest.mark.parametrize("how", ["patch_artist=True", "patch_artist=False", "patch_artist=True, vert=False", "vert=False"])
def test_box_charts(box, how):
    along, across = ("y", "x") if "vert" in how else ("x", "y")
    found = chart(box, f"plt.boxplot([[1, 2, 3, 4, 100], [2, 3, 4, 5, 6]], {how})\n"
                       f"plt.{along}ticks([1, 2], ['m', 'n'])\nplt.{across}label('V (u)')")
    assert (found["type"], found["y_label"], found["y_unit"]) == ("box_and_whisker", "V (u)", "u")
    assert found["elements"] == [
        {"label": "m", "min": 1, "first_quartile": 2, "median": 3, "third_quartile": 4, "max": 4, "outliers": [100]},
        {"label": "n", "min": 2, "first_quartile": 3, "median": 4, "third_quartile": 5, "max": 6, "outliers": []}]


def test_several_charts_and_none(box):
    found = chart(box, "fig, (a, b) = plt.subplots(1, 2)\na.plot([1, 2])\na.set_title('one')\nb.bar(['x'], [2])\nfig.suptitle('both')")
    assert (found["type"], found["title"]) == ("superchart", "both")
    assert [(e["type"], e["title"]) for e in found["elements"]] == [("line", "one"), ("bar", None)]
    assert chart(box, "plt.imshow([[1, 2], [3, 4]])") == {"type": "unknown", "title": None, "elements": []}
    assert chart(box, "plt.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0])")["type"] == "line"  # a rectangle is no box plot
    blank = show(box, "plt.figure().add_subplot();")
    assert "png" in blank and "chart" not in blank


# --- tables, images, plotly ---

def test_a_table_is_html_and_data(box):
    shown = show(box, "import pandas as pd, numpy as np\npd.DataFrame({'a': [1, 2], 'b': [0.5, np.nan], 'c': ['x', None],\n"
                      "    'd': [pd.Timestamp('2024-01-02'), pd.NaT], 'e': pd.array([1, None], 'Int64')})")
    assert "<table" in shown["html"] and "2024-01-02" in shown["text"] and shown["isMainResult"] is True
    assert shown["data"] == {"a": [1, 2], "b": [0.5, None], "c": ["x", None], "d": ["2024-01-02T00:00:00", None], "e": [1, None]}
    assert len(show(box, "pd.DataFrame({'n': range(20000)})")["data"]["n"]) == 10000
    assert show(box, "display(pd.DataFrame({'n': [1]}))")["data"] == {"n": [1]}
    assert "data" not in show(box, "pd.Series([1, 2])")


def test_images(box):
    shown = show(box, "from PIL import Image\nimage = Image.new('RGB', (2, 2), 'red')\nimage")
    assert base64.b64decode(shown["png"]).startswith(PNG) and shown["isMainResult"] is True
    assert show(box, "image.show()")["isMainResult"] is False
    assert "jpeg" in show(box, "import io\nfrom IPython.display import Image as Shown\nout = io.BytesIO()\nimage.save(out, 'JPEG')\n"
                               "Shown(out.getvalue())")


@pytest.mark.parametrize("code,main", [("figure", True), ("figure.show()", False), ("display(figure)", False)])
def test_plotly(box, code, main):
    shown = show(box, "import plotly.graph_objects as go\nfigure = go.Figure(go.Bar(x=['a'], y=[2]))\n" + code)
    assert "plotly" in shown["html"] and shown["isMainResult"] is main
    assert shown["extra"]["application/vnd.plotly.v1+json"]["data"][0]["type"] == "bar"


# --- anything ---

def test_lists_and_dicts_are_json_too(box):
    shown = show(box, "import datetime, numpy\n{'a': [1, None, 'x'], 2: float('nan'), 'd': datetime.date(2024, 1, 2), 'n': numpy.int64(3)}")
    assert shown["json"] == {"a": [1, None, "x"], "2": None, "d": "2024-01-02", "n": 3}
    assert "json" not in show(box, "[object()]") and "json" not in show(box, "(1, 2)")
    assert "json" not in show(box, "circle = []\ncircle.append(circle)\ncircle")
    assert show(box, "deep = []\nfor _ in range(100000): deep = [deep]\nNone;'deep'")["text"] == "'deep'"


@pytest.mark.parametrize("body,expected", [
    ("_repr_mimebundle_(self, include, exclude): return {'text/plain': 'p', 'image/svg+xml': '<svg/>'}, {}",
     {"text": "p", "svg": "<svg/>"}),
    ("_repr_pdf_(self): return b'%PDF'", {"pdf": base64.b64encode(b"%PDF").decode()}),
    ("_repr_jpeg_(self): return b'j', {'width': 1}", {"jpeg": base64.b64encode(b"j").decode()}),
    ("_repr_javascript_(self): return 'alert()'", {"javascript": "alert()"}),
    ("_repr_markdown_(self): return '*m*'", {"markdown": "*m*"}),
    ("_repr_html_(self): return None", {}),
    ("_ipython_display_(self): display({'text/html': 'own'}, raw=True)", {"html": "own"}),
])
def test_methods_of_notebooks(box, body, expected):
    shown = show(box, f"class T:\n    def __repr__(self): return 'T'\n    def {body}\nT()")
    assert {key: value for key, value in shown.items() if key not in ("isMainResult", "text")} == \
        {key: value for key, value in expected.items() if key != "text"}
    if "text" in expected:
        assert shown["text"] == expected["text"]


def test_a_method_that_fails_is_told_and_the_others_are_asked(box):
    done = run(box, "class T:\n    def _repr_html_(self): raise ValueError('no html')\n    def _repr_latex_(self): return '$x$'\nT()")
    assert done["results"][0]["latex"] == "$x$" and "html" not in done["results"][0]
    assert "no html" in done["stderr"]
    assert run(box, "T")["results"][0]["text"] == "<class '__main__.T'>"  # a class is not asked


def test_media_types_that_are_none(box):
    shown = show(box, "display({'text/plain': 'p', 'text/x y': '1', 'a\\nb': '2', 3: '3', '': '4', 'x' * 300: '5', "
                      "'text/v1; q=1': '6', 'application/x': b'7', 'application/a+json': {'b': 1}}, raw=True)")
    assert shown["text"] == "p" and shown["extra"] == {"3": "3", "application/x": "Nw==", "application/a+json": {"b": 1}}
    assert len(show(box, "display({f'x/{i}': '1' for i in range(1000)}, raw=True)")["extra"]) == 40
    assert box.request("POST", "/code", {"code": "display(1, raw=True)"}).json()["error"]["name"] == "TypeError"


def test_results_in_the_order_of_their_making(box):
    done = run(box, "display('one')\nprint('between')\ndisplay(2, [3])\n'four'")
    assert [r["text"] for r in done["results"]] == ["'one'", "2", "[3]", "'four'"]
    assert [r["isMainResult"] for r in done["results"]] == [False, False, False, True]
    answer = box.request("POST", "/code?stream=true", {"code": "display(1)\nprint('x')\ndisplay(2)"})
    assert [json.loads(line)["type"] for line in answer.text.splitlines()] == ["result", "stdout", "result", "end"]


def test_one_that_is_too_large_says_so(box):
    shown = show(box, "'x' * (17 << 20)")
    assert "too large" in shown["text"] and len(shown["text"]) < 200
