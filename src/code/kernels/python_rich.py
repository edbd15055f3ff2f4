# SPDX-License-Identifier: Apache-2.0
#
# The second part of the Python kernel: representations of values that have more than text. Loaded when the first
# such value, or one of the modules that are looked after, is met. Knows put_result, part and SHORT.

import base64
import datetime
import importlib.machinery
import json
import math
import re
import sys

TABLE_ROWS_MAX = 10000
MIMES_MAX = 40         # of one value; and their names are …
MIME = re.compile(r"[A-Za-z0-9+./_;=-]{1,200}\Z")
JSON_MAX = 4 << 20     # of a list or dict, whose text is there too

METHODS = (("html", "_repr_html_"), ("markdown", "_repr_markdown_"), ("svg", "_repr_svg_"), ("png", "_repr_png_"),
           ("jpeg", "_repr_jpeg_"), ("pdf", "_repr_pdf_"), ("latex", "_repr_latex_"), ("*json", "_repr_json_"),
           ("javascript", "_repr_javascript_"))


def show(value, main):
    """As a notebook shows it."""
    if call(value, "_ipython_display_", shows=True):
        return
    put_result(bundle(value), main)
    if is_figure(value):
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is not None:
            plt.close(value)


def bundle(value):
    """Its representations, by their names; those of JSON begin with *."""
    for is_one, items_of in KINDS:
        if is_one(value):
            return items_of(value)
    items = {}
    found = call(value, "_repr_mimebundle_")
    if isinstance(found, dict):
        add_mime(items, found)
    if "text" not in items:
        items = dict({"text": repr(value)}, **items)
    for name, method in METHODS:
        found = call(value, method) if name not in items else None
        if found is not None:
            items[name] = as_text(name, found)
    return items


def call(value, method, shows=False):
    """What its method gives; None when it has none. One that fails is told on stderr, as notebooks do, and the
    others are asked. Classes are not asked: their methods are for what is made of them. `shows`: whether it is
    there, since what it gives is nothing."""
    function = None if isinstance(value, type) else getattr(value, method, None)
    if not callable(function):
        return None
    try:
        found = ask(function) if method == "_repr_mimebundle_" else function()
    except NotImplementedError:
        return None
    except Exception as error:
        print("%s.%s() failed: %s: %s" % (type(value).__name__, method, type(error).__name__, error), file=sys.stderr)
        return None
    if shows:
        return True
    # Some give (data, metadata).
    return found[0] if isinstance(found, tuple) and found else found


def ask(function):
    """Most take what is wanted and what not, some nothing."""
    try:
        return function(include=None, exclude=None)
    except TypeError:
        return function()


def b64(data):
    return base64.b64encode(data).decode()


def as_text(name, value):
    if name.startswith("*"):
        return to_json(value)
    if isinstance(value, (bytes, bytearray)):
        return b64(value)
    return value if isinstance(value, str) else to_json(value)


def add_mime(items, found):
    for mime, value in list(found.items())[:MIMES_MAX]:
        mime = str(mime)
        if value is None or not MIME.match(mime):
            continue
        name = SHORT.get(mime)
        if name is None:
            is_text = isinstance(value, (str, bytes)) and not mime.endswith("json")
            name = mime if is_text else "*" + mime
        try:
            items[name] = as_text(name, value)
        except Exception:
            pass


def publish(data):
    if not isinstance(data, dict):
        raise TypeError("what is displayed raw is a dict of media types")
    items = {}
    add_mime(items, data)
    put_result(items, False)


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
    if type(value).__name__ == "datetime64":
        return None if value != value else str(value.astype("datetime64[s]"))
    if hasattr(value, "tolist"):  # numpy's
        as_python = value.tolist()
        return plain(as_python) if not hasattr(as_python, "tolist") else str(value)
    if type(value).__name__ == "NAType":  # pandas'
        return None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def to_json(value):
    return json.dumps(plain(value), allow_nan=False)


def is_container(value):
    return isinstance(value, (list, dict)) and not any(hasattr(type(value), method) for _, method in METHODS)


def container_items(value):
    """A list or dict is JSON, too, when everything in it is."""
    items = {"text": repr(value)}
    try:
        text = json.dumps(value, allow_nan=False, default=known)
    except ValueError:  # not a number, or a circle
        try:
            text = json.dumps(plain(value), allow_nan=False)
        except (ValueError, RecursionError):
            return items
    except (TypeError, RecursionError):
        return items
    if len(text) <= JSON_MAX:
        items["*json"] = text
    return items


def known(value):
    """What is no JSON, and can be said in it."""
    if hasattr(value, "tolist") or isinstance(value, (datetime.date, datetime.time)):
        return plain(value)
    raise TypeError


# --- tables ---

def is_table(value):
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, getattr(pandas, "DataFrame", ()))


def table_items(frame):
    items = {"text": repr(frame)}
    html = call(frame, "_repr_html_")
    if html is not None:
        items["html"] = html
    try:
        items["*data"] = to_json(table_data(frame))
    except Exception as error:
        print("the table's data can not be told: %s" % error, file=sys.stderr)
    return items


def table_data(frame):
    """Columns as lists."""
    if len(frame) > TABLE_ROWS_MAX:
        frame = frame.head(TABLE_ROWS_MAX)
    return {str(column): [plain(item) for item in frame.iloc[:, at].tolist()]
            for at, column in enumerate(frame.columns)}


# --- figures ---

def is_figure(value):
    figure = sys.modules.get("matplotlib.figure")
    return figure is not None and isinstance(value, getattr(figure, "Figure", ()))


def figure_items(figure):
    import io
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    items = {"text": repr(figure), "png": b64(out.getvalue())}
    try:
        charts = part("charts")
        charts.plain = plain
        chart = charts.figure_chart(figure)
        if chart is not None:
            items["*chart"] = to_json(chart)
    except Exception:
        pass  # the picture is there
    return items


def show_figures(wanted=True):
    """Every open figure, in the order of their making; then they are closed."""
    plt = sys.modules["matplotlib.pyplot"]
    if not hasattr(plt, "get_fignums"):  # its import has failed half way
        return
    try:
        for number in plt.get_fignums() if wanted else ():
            figure = plt.figure(number)
            if figure.get_axes() or figure.texts or figure.images:
                put_result(figure_items(figure), False)
    finally:
        plt.close("all")


def is_plotly(value):
    module = sys.modules.get("plotly.basedatatypes")
    return module is not None and isinstance(value, getattr(module, "BaseFigure", ()))


def plotly_items(figure):
    """Its own choice depends on where it thinks that it is."""
    return {"text": repr(figure), "html": figure.to_html(include_plotlyjs="cdn", full_html=False),
            "*application/vnd.plotly.v1+json": figure.to_json()}


KINDS = ((is_container, container_items), (is_figure, figure_items), (is_table, table_items),
         (is_plotly, plotly_items))


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


def nothing(*_, **__):
    pass


def before_pyplot():
    """There is no display; and no notebook, whatever the image was made for."""
    import os
    import matplotlib
    if os.environ.get("MPLBACKEND", "module:").startswith("module:"):
        matplotlib.rcParams["backend"] = "agg"


def after_pyplot(plt):
    plt.show = lambda *_, **__: show_figures()


def after_figure(module):
    module.Figure.show = lambda self, *_, **__: show(self, False)


def after_plotly(module):
    module.BaseFigure.show = lambda self, *_, **__: show(self, False)
    module.BaseFigure._ipython_display_ = None


def after_image(module):
    module._show = lambda image, **_: show(image, False)


def after_display(module):
    module.publish_display_data = lambda data, metadata=None, **_: publish(data)
    module.display = display


def display(*values, raw=False, **_):
    for value in values:
        if raw:
            publish(value)
        else:
            show(value, False)


HOOKS = {"matplotlib.pyplot": (before_pyplot, after_pyplot), "matplotlib.figure": (nothing, after_figure),
         "plotly.basedatatypes": (nothing, after_plotly), "PIL.Image": (nothing, after_image),
         "IPython.core.display_functions": (nothing, after_display)}


# --- IPython, where there is none ---

class Shim:
    """IPython.display for images that have no IPython: programs import it by habit."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__ == "IPython":
            module.__path__ = []
            module.get_ipython = lambda: None
            module.display = importlib.import_module("IPython.display")
            return
        module.display = display
        module.clear_output = nothing
        module.publish_display_data = lambda data, metadata=None, **_: publish(data)
        for kind, method in (("HTML", "html"), ("Markdown", "markdown"), ("SVG", "svg"), ("Latex", "latex"),
                             ("Math", "latex"), ("Javascript", "javascript"), ("JSON", "json")):
            setattr(module, kind, shim_class(kind, method))
        module.Image = ShimImage


def shim_class(kind, method):
    def __init__(self, data=None, url=None, filename=None, **_):
        if filename is not None:
            with open(filename, encoding="utf-8") as file:
                data = file.read()
        self.data = data

    def represent(self):
        return self.data

    return type(kind, (), {"__init__": __init__, "_repr_%s_" % method: represent,
                           "__repr__": lambda self: "<IPython.core.display.%s object>" % kind})


class ShimImage:
    def __init__(self, data=None, url=None, filename=None, format=None, **_):
        if isinstance(data, str) and filename is None:
            data, filename = None, data
        if filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
        self.data, self.url = data, url
        self.is_jpeg = format in ("jpeg", "jpg") or (data or b"")[:2] == b"\xff\xd8"

    def __repr__(self):
        return "<IPython.core.display.Image object>"

    def _repr_html_(self):
        return '<img src="%s"/>' % self.url if self.url else None

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
