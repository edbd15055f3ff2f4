# SPDX-License-Identifier: Apache-2.0
#
# The second half of the Python kernel: representations of values that have more than text. Loaded when the
# first such value, or one of the modules that are looked after, is met. Knows put_result, channel, SHORT.

import base64
import datetime
import importlib.machinery
import importlib.util
import json
import math
import re
import sys
import types


def b64(data):
    return base64.b64encode(data).decode() if isinstance(data, (bytes, bytearray)) else data


METHODS = (("html", "_repr_html_"), ("markdown", "_repr_markdown_"), ("svg", "_repr_svg_"), ("png", "_repr_png_"),
           ("jpeg", "_repr_jpeg_"), ("pdf", "_repr_pdf_"), ("latex", "_repr_latex_"), ("*json", "_repr_json_"),
           ("javascript", "_repr_javascript_"))


def as_text(name, value):
    if name.startswith("*"):
        return to_json(value)
    if isinstance(value, (bytes, bytearray)):
        return b64(value)
    return value if isinstance(value, str) else to_json(value)


def add_mime(items, bundle):
    for mime, value in bundle.items():
        if value is None:
            continue
        name = SHORT.get(mime) or ("*" + mime if mime.endswith("+json") or not isinstance(value, (str, bytes)) else mime)
        try:
            items[name] = as_text(name, value)
        except Exception:
            pass


def call(value, method):
    try:
        function = getattr(value, method, None)
        if function is None or isinstance(value, type):
            return None
        result = function()
    except Exception:
        return None
    # Some give (data, metadata).
    return result[0] if isinstance(result, tuple) and result else result


def bundle(value):
    items = {}
    if is_figure(value):
        return figure_items(value)
    found = call(value, "_repr_mimebundle_")
    if isinstance(found, dict):
        add_mime(items, found)
    if "text" not in items:
        items = {"text": repr(value), **items}
    for name, method in METHODS:
        if name in items:
            continue
        found = call(value, method)
        if found is not None:
            items[name] = as_text(name, found)
    if is_table(value):
        try:
            items["*data"] = to_json(table_data(value))
        except Exception:
            pass
    return items


def show(value, main):
    put_result(bundle(value), main)
    if is_figure(value):
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is not None:
            plt.close(value)


# --- JSON ---

def plain(value):
    """A value as JSON can say it; numbers that it can not say are null."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat() if value == value else None
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's
        as_python = value.tolist()
        if type(value).__name__ == "datetime64":
            return str(value)
        return plain(as_python) if not hasattr(as_python, "tolist") else str(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def to_json(value):
    return json.dumps(plain(value), allow_nan=False)


# --- tables ---

def is_table(value):
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, getattr(pandas, "DataFrame", ()))


def table_data(frame):
    """Columns as lists."""
    if len(frame) > 10000:
        frame = frame.head(10000)
    return {str(plain(column)): [plain(item) for item in frame.iloc[:, at].tolist()]
            for at, column in enumerate(frame.columns)}


# --- figures ---

def is_figure(value):
    figure = sys.modules.get("matplotlib.figure")
    return figure is not None and isinstance(value, getattr(figure, "Figure", ()))


def figure_items(figure):
    import io
    out = io.BytesIO()
    items = {"text": repr(figure)}
    figure.savefig(out, format="png", bbox_inches="tight")
    items["png"] = b64(out.getvalue())
    try:
        chart = figure_chart(figure)
        if chart is not None:
            items["*chart"] = to_json(chart)
    except Exception:
        pass
    return items


def show_figures(*_, **__):
    """Every open figure, in the order of their making; then they are closed."""
    plt = sys.modules["matplotlib.pyplot"]
    if not hasattr(plt, "get_fignums"):  # its import has failed half way
        return
    try:
        for number in plt.get_fignums():
            figure = plt.figure(number)
            if figure.get_axes() or figure.texts or figure.images:
                put_result(figure_items(figure), False)
    finally:
        plt.close("all")


def close_figures():
    sys.modules["matplotlib.pyplot"].close("all")


# --- charts: what can be read back from axes ---

def figure_chart(figure):
    axes = [ax for ax in figure.get_axes() if ax.has_data()]
    if not axes:
        return None
    if len(figure.get_axes()) > 1 and len(axes) > 1:
        title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) is not None else ""
        return {"type": "superchart", "title": title, "elements": [axes_chart(ax) for ax in axes]}
    return axes_chart(axes[0])


def axes_kind(ax):
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge
    from matplotlib.text import Text
    artists = [child for child in ax._children if not isinstance(child, Text)]
    if all(isinstance(child, Line2D) for child in artists):
        # A box plot without filled boxes is lines, too, and says so by its parts.
        return "box_and_whisker" if box_lines(ax) else "line"
    if any(isinstance(child, PathPatch) for child in artists) and \
            all(isinstance(child, (PathPatch, Line2D)) for child in artists):
        return "box_and_whisker"
    artists = [child for child in artists if not (isinstance(child, Line2D) and is_rule(child))]
    for kind, name in ((PathCollection, "scatter"), (Wedge, "pie"), (Rectangle, "bar")):
        if all(isinstance(child, kind) for child in artists):
            return name
    return "unknown"


def is_rule(line):
    """A line across or along the axes: of a grid, or a mark."""
    x, y = line.get_xdata(), line.get_ydata()
    return len(x) == 2 and len(y) == 2 and (x[0] == x[1] or y[0] == y[1])


def axes_chart(ax):
    kind = axes_kind(ax)
    chart = {"type": kind, "title": ax.get_title() or None}
    return BUILDERS.get(kind, unknown_chart)(ax, chart)


def unknown_chart(ax, chart):
    return {**chart, "elements": []}


def unit(label):
    found = re.search(r"\s\((.*?)\)|\[(.*?)\]", label or "")
    return (found.group(1) or found.group(2)) if found else None


def add_labels(ax, chart, turned=False):
    x, y = ax.get_xlabel() or None, ax.get_ylabel() or None
    if turned:
        x, y = y, x
    chart.update(x_label=x, y_label=y, x_unit=unit(x), y_unit=unit(y))


def is_dates(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    return "Date" in type(converter).__name__


def ticks(axis, values):
    if is_dates(axis):
        from matplotlib.dates import num2date
        return [num2date(value).isoformat() for value in values]
    return [plain(value) for value in values]


def scale(axis, name, values, labels):
    if is_dates(axis):
        return "datetime"
    if name != "linear":
        return name
    named = values and all(value == i and str(i) != label for i, (value, label) in enumerate(zip(values, labels)))
    return "categorical" if named else "linear"


def add_scales(ax, chart):
    for side, axis, values, labels, name in (
            ("x", ax.xaxis, ax.get_xticks(), ax.get_xticklabels(), ax.get_xscale()),
            ("y", ax.yaxis, ax.get_yticks(), ax.get_yticklabels(), ax.get_yscale())):
        texts = [label.get_text() for label in labels]
        told = ticks(axis, list(values))
        chart[f"{side}_ticks"] = told
        chart[f"{side}_tick_labels"] = texts
        chart[f"{side}_scale"] = scale(axis, name, told, texts)


def points(xs, ys):
    return [[plain(x), plain(y)] for x, y in zip(xs, ys)]


def line_chart(ax, chart):
    add_labels(ax, chart)
    add_scales(ax, chart)
    chart["elements"] = []
    lines = [line for line in ax.get_lines() if not is_rule(line)] or list(ax.get_lines())
    for line in lines:
        label = line.get_label()
        if label.startswith("_child"):
            label = f"Line {label[6:]}"
        chart["elements"].append({"label": label, "points": points(line.get_xdata(), line.get_ydata())})
    return chart


def scatter_chart(ax, chart):
    add_labels(ax, chart)
    add_scales(ax, chart)
    chart["elements"] = [{"label": group.get_label(), "points": [[plain(x), plain(y)] for x, y in group.get_offsets()]}
                         for group in ax.collections]
    return chart


def bar_chart(ax, chart):
    containers = [c for c in ax.containers if hasattr(c, "patches") or hasattr(c, "orientation")]
    turned = any(getattr(c, "orientation", "vertical") == "horizontal" for c in containers)
    add_labels(ax, chart, turned)
    names = [label.get_text() for label in (ax.get_yticklabels() if turned else ax.get_xticklabels())]
    places = list(ax.get_yticks() if turned else ax.get_xticks())
    chart["elements"] = []
    for container in containers:
        group = container.get_label() or ""
        if group.startswith("_container"):
            group = f"Group {group[10:]}"
        for at, bar in enumerate(container):
            middle = bar.get_y() + bar.get_height() / 2 if turned else bar.get_x() + bar.get_width() / 2
            chart["elements"].append({"label": bar_label(middle, at, places, names), "group": group,
                                      "value": plain(bar.get_width() if turned else bar.get_height())})
    return chart


def bar_label(middle, at, places, names):
    near = [name for place, name in zip(places, names) if abs(place - middle) < 0.5]
    if near:
        return near[0]
    return names[at] if at < len(names) else str(plain(middle))


def pie_chart(ax, chart):
    chart["elements"] = [{"label": wedge.get_label(), "angle": round(abs(float(wedge.theta2) - float(wedge.theta1)), 6),
                          "radius": plain(wedge.r)} for wedge in ax.patches]
    return chart


# --- boxes ---

def box_lines(ax):
    """The closed outlines of a box plot's boxes: five points, the last one the first."""
    boxes = []
    for line in ax.get_lines():
        x, y = list(line.get_xdata()), list(line.get_ydata())
        if len(x) == 5 and x[0] == x[4] and y[0] == y[4] and len(set(x)) == 2 and len(set(y)) == 2:
            boxes.append((x, y))
    return boxes


def outlines(ax):
    from matplotlib.patches import PathPatch
    found = box_lines(ax)
    for patch in ax.patches:
        if isinstance(patch, PathPatch):
            at = patch.get_path().vertices
            found.append((list(at[:, 0]), list(at[:, 1])))
    return found


def box_chart(ax, chart):
    """Boxes stand upright, or lie: then everything is read with x and y exchanged."""
    shapes = outlines(ax)
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in ax.get_lines()]
    names_x = [label.get_text() for label in ax.get_xticklabels()]
    turned = boxes_lie(shapes, lines)
    if turned:
        shapes = [(y, x) for x, y in shapes]
        lines = [(y, x) for x, y in lines]
        names_x = [label.get_text() for label in ax.get_yticklabels()]
    add_labels(ax, chart, turned)
    chart["elements"] = [box_element(x, y, lines, names_x[at] if at < len(names_x) else str(at + 1))
                         for at, (x, y) in enumerate(shapes)]
    return chart


def boxes_lie(shapes, lines):
    """The median goes across its box: it is as long as the box is wide."""
    for x, y in shapes:
        for lx, ly in lines:
            if len(lx) == 2 and lx[0] == lx[1] and ly[0] != ly[1] and min(x) < lx[0] < max(x) and \
                    close(min(ly), min(y)) and close(max(ly), max(y)):
                return True
    return False


def close(a, b):
    return abs(a - b) <= 1e-9 * max(1, abs(a), abs(b))


def box_element(x, y, lines, label):
    left, right, low, high = min(x), max(x), min(y), max(y)
    element = {"label": label, "min": low, "first_quartile": low, "median": None, "third_quartile": high,
               "max": high, "outliers": []}
    for lx, ly in lines:
        if not len(lx) or not all(left - 1e-9 <= at <= right + 1e-9 for at in lx):
            continue
        if len(lx) == 2 and ly[0] == ly[1] and low <= ly[0] <= high and close(min(lx), left):
            element["median"] = ly[0]
        elif len(lx) == 2 and lx[0] == lx[1]:  # a whisker
            element["min"] = min(element["min"], *ly)
            element["max"] = max(element["max"], *ly)
        elif len(set(lx)) == 1 and len(lx) != 2:
            element["outliers"].extend(ly)
    return {key: plain(value) for key, value in element.items()}


BUILDERS = {"line": line_chart, "scatter": scatter_chart, "bar": bar_chart, "pie": pie_chart,
            "box_and_whisker": box_chart}


# --- modules that are looked after ---

class After:
    """A loader that has something done when the module is there."""

    def __init__(self, loader, before, after):
        self.loader, self.before, self.after = loader, before, after

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.before()
        self.loader.exec_module(module)
        self.after(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


def nothing(*_):
    pass


def before_pyplot():
    import os
    import matplotlib
    if "MPLBACKEND" not in os.environ:
        matplotlib.rcParams["backend"] = "agg"


def after_pyplot(plt):
    plt.show = show_figures


def after_plotly(module):
    module.BaseFigure.show = lambda self, *_, **__: show(self, False)


def after_display(module):
    module.publish_display_data = lambda data, metadata=None, **_: publish(data)
    module.display = display


def publish(data):
    items = {}
    add_mime(items, data)
    put_result(items, False)


def display(*values, raw=False, **_):
    from builtins import isinstance as is_a
    for value in values:
        if raw and is_a(value, dict):
            publish(value)
        else:
            put_result(bundle(value) if not is_a(value, str) else {"text": repr(value)}, False)


HOOKS = {"matplotlib.pyplot": (before_pyplot, after_pyplot), "plotly.basedatatypes": (nothing, after_plotly),
         "IPython.core.display_functions": (nothing, after_display)}


class Shim:
    """IPython.display for images that have no IPython: programs import it by habit."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__ == "IPython":
            module.__path__ = []
            module.get_ipython = lambda: None
            return
        module.display = display
        module.clear_output = nothing
        module.publish_display_data = lambda data, metadata=None, **_: publish(data)
        for kind, method in (("HTML", "html"), ("Markdown", "markdown"), ("SVG", "svg"), ("Latex", "latex"),
                             ("Math", "latex"), ("Javascript", "javascript"), ("JSON", "json")):
            setattr(module, kind, shim_class(kind, method))
        module.Image = shim_image


def shim_class(kind, method):
    def __init__(self, data=None, filename=None, url=None, **_):
        if filename is not None:
            with open(filename, encoding="utf-8") as file:
                data = file.read()
        self.data = data

    def represent(self):
        return self.data

    return type(kind, (), {"__init__": __init__, f"_repr_{method}_": represent,
                           "__repr__": lambda self: f"<IPython.core.display.{kind} object>"})


class shim_image:
    def __init__(self, data=None, filename=None, format=None, **_):
        if isinstance(data, str) and filename is None:
            data, filename = None, data
        if filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
        self.data = data
        self.is_jpeg = format in ("jpeg", "jpg") or (data or b"")[:2] == b"\xff\xd8"

    def __repr__(self):
        return "<IPython.core.display.Image object>"

    def _repr_png_(self):
        return None if self.is_jpeg else self.data

    def _repr_jpeg_(self):
        return self.data if self.is_jpeg else None


def hook(name, spec):
    if spec is None:
        if name in ("IPython", "IPython.display"):
            return importlib.machinery.ModuleSpec(name, Shim(), is_package=name == "IPython")
        return None
    if name in HOOKS and spec.loader is not None:
        spec.loader = After(spec.loader, *HOOKS[name])
    return spec
