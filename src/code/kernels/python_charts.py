# SPDX-License-Identifier: Apache-2.0
#
# The third part of the Python kernel: what can be read back from the axes of a matplotlib figure, in the words
# that E2B's clients have for it (https://e2b.dev/docs, "charts"). Loaded when the first figure is shown. Is
# given plain(), which makes values JSON. Where axes do not say what they are, this says "unknown" rather than guess.

import math
import re


def figure_chart(figure):
    """None when nothing was drawn."""
    axes = figure.get_axes()
    if not any(ax.has_data() for ax in axes):
        return None
    if len(axes) == 1:
        return axes_chart(axes[0])
    title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) is not None else ""
    return {"type": "superchart", "title": title, "elements": [axes_chart(ax) for ax in axes]}


def axes_chart(ax):
    kind = axes_kind(ax)
    chart = {"type": kind, "title": ax.get_title() or None}
    return BUILDERS.get(kind, unknown_chart)(ax, chart)


def drawn(ax):
    """What was drawn there, but for words."""
    from matplotlib.text import Text
    children = getattr(ax, "_children", None)
    if children is None:  # before 3.5
        children = list(ax.lines) + list(ax.patches) + list(ax.collections) + list(ax.images)
    return [child for child in children if not isinstance(child, Text)]


def axes_kind(ax):
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge
    artists = drawn(ax)
    if all(isinstance(child, Line2D) for child in artists):
        # A box plot whose boxes are not filled is nothing but lines.
        return "box_and_whisker" if is_box_plot(ax) else "line"
    if all(isinstance(child, (PathPatch, Line2D)) for child in artists):
        return "box_and_whisker"
    artists = [child for child in artists if not (isinstance(child, Line2D) and is_rule(child))]
    if any(type(container).__name__ == "ErrorbarContainer" for container in ax.containers):
        artists = without_error_bars(ax, artists)
    for kind, name in ((PathCollection, "scatter"), (Wedge, "pie"), (Rectangle, "bar")):
        if all(isinstance(child, kind) for child in artists):
            return name
    return "unknown"


def without_error_bars(ax, artists):
    """They say how sure a bar is, and are none."""
    marks = set()
    for container in ax.containers:
        if type(container).__name__ == "ErrorbarContainer":
            _, caps, bars = container.lines
            marks.update(caps, bars)
    return [child for child in artists if child not in marks]


def is_rule(line):
    """A line across or along the axes: of a grid, or a mark."""
    x, y = line.get_xdata(), line.get_ydata()
    return len(x) == 2 and len(y) == 2 and (x[0] == x[1] or y[0] == y[1])


def unknown_chart(ax, chart):
    return dict(chart, elements=[])


# --- axes ---

def unit(label):
    """What stands in brackets: "Speed (km/h)"."""
    found = re.search(r"\s\((.*?)\)|\[(.*?)\]", label or "")
    return (found.group(1) or found.group(2)) if found else None


def add_labels(ax, chart, turned=False):
    x, y = ax.get_xlabel() or None, ax.get_ylabel() or None
    if turned:
        x, y = y, x
    chart.update(x_label=x, y_label=y, x_unit=unit(x), y_unit=unit(y))


def is_dates(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    # pandas registers converters of its own.
    return "Date" in type(converter).__name__


def as_date(number):
    from matplotlib.dates import num2date
    return num2date(number).isoformat()


def ticks(axis, values):
    if is_dates(axis):
        return [as_date(value) for value in values]
    return [plain(value) for value in values]


def scale(axis, name, values, labels):
    if is_dates(axis):
        return "datetime"
    if name != "linear":
        return name
    # Ticks that count from 0 and are called otherwise.
    named = values and all(value == i and str(i) != label for i, (value, label) in enumerate(zip(values, labels)))
    return "categorical" if named else "linear"


def texts(labels):
    return [label.get_text() for label in labels]


def add_scales(ax, chart):
    for side, axis, values, labels, name in (
            ("x", ax.xaxis, ax.get_xticks(), texts(ax.get_xticklabels()), ax.get_xscale()),
            ("y", ax.yaxis, ax.get_yticks(), texts(ax.get_yticklabels()), ax.get_yscale())):
        told = ticks(axis, list(values))
        chart[side + "_ticks"] = told
        chart[side + "_tick_labels"] = labels
        chart[side + "_scale"] = scale(axis, name, told, labels)


# --- lines and points ---

def points(pairs):
    return [[plain(x), plain(y)] for x, y in pairs]


def line_chart(ax, chart):
    add_labels(ax, chart)
    add_scales(ax, chart)
    lines = list(ax.get_lines())
    lines = [line for line in lines if not is_rule(line)] or lines
    chart["elements"] = [{"label": re.sub(r"^_(?:child|line)(\d+)$", r"Line \1", line.get_label()),
                          "points": points(zip(line.get_xdata(), line.get_ydata()))} for line in lines]
    return chart


def scatter_chart(ax, chart):
    add_labels(ax, chart)
    add_scales(ax, chart)
    chart["elements"] = [{"label": group.get_label(), "points": points(group.get_offsets())}
                         for group in ax.collections]
    return chart


# --- bars ---

def bar_chart(ax, chart):
    containers = [c for c in ax.containers if hasattr(c, "patches")]
    turned = any(lies(container) for container in containers)
    add_labels(ax, chart, turned)
    axis = ax.yaxis if turned else ax.xaxis
    names = list(zip(ax.get_yticks(), texts(ax.get_yticklabels())) if turned else
                 zip(ax.get_xticks(), texts(ax.get_xticklabels())))
    chart["elements"] = []
    for container in containers:
        group = re.sub(r"^_container(\d+)$", r"Group \1", container.get_label() or "")
        for bar in container:
            start, size = (bar.get_y(), bar.get_height()) if turned else (bar.get_x(), bar.get_width())
            chart["elements"].append({"label": bar_label(axis, start, size, names), "group": group,
                                      "value": plain(bar.get_width() if turned else bar.get_height())})
    return chart


def lies(container):
    orientation = getattr(container, "orientation", None)
    if orientation is not None:
        return orientation == "horizontal"
    heights = [bar.get_height() for bar in container]  # before 3.4
    return len(heights) > 1 and len(set(heights)) == 1


def bar_label(axis, start, size, names):
    """That of the tick that is nearest to its middle: bars that stand beside each other share one. Where ticks
    are but numbers, as below a histogram, it has to be at the middle indeed."""
    middle = start + size / 2
    reach = max(abs(size) / 2, 0.5)
    near = min(((abs(place - middle), name) for place, name in names), default=(math.inf, ""))
    if near[1] and near[0] <= (1e-6 * reach if is_number(near[1]) else reach):
        return near[1]
    return as_date(middle) if is_dates(axis) else "%g" % middle


def is_number(text):
    try:
        float(text.replace("\u2212", "-"))
    except ValueError:
        return False
    return True


# --- pies ---

def pie_chart(ax, chart):
    chart["elements"] = [{"label": wedge.get_label(), "angle": rounded(abs(wedge.theta2 - wedge.theta1)),
                          "radius": plain(wedge.r)} for wedge in ax.patches]
    return chart


def rounded(angle):
    """As many digits as the angle, which was computed in single precision, has."""
    angle = float(angle)
    size = math.floor(math.log10(angle)) if angle > 0 else 0
    return float("%.*g" % (max(1, 8 - size), angle))


# --- boxes ---

def box_lines(ax):
    """The closed outlines of a box plot's boxes: five points, the last one the first."""
    boxes = []
    for line in ax.get_lines():
        x, y = list(line.get_xdata()), list(line.get_ydata())
        if len(x) == 5 and x[0] == x[4] and y[0] == y[4] and len(set(x)) == 2 and len(set(y)) <= 2:
            boxes.append((x, y))
    return boxes


def is_box_plot(ax):
    """Whether each of them has its median: a rectangle that was plotted has none."""
    boxes = box_lines(ax)
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in ax.get_lines()]
    turned = [(y, x) for x, y in lines]
    return bool(boxes) and (all(has_median(x, y, lines) for x, y in boxes) or
                            all(has_median(y, x, turned) for x, y in boxes))


def has_median(x, y, lines):
    """It goes across the box: from its left to its right."""
    return any(len(lx) == 2 and lx[0] != lx[1] and close(ly[0], ly[1]) and min(y) <= ly[0] <= max(y) and
               close(min(lx), min(x)) and close(max(lx), max(x)) for lx, ly in lines)


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
    turned = any(has_median(y, x, [(ly, lx) for lx, ly in lines]) for x, y in shapes)
    names = list(zip(ax.get_xticks(), texts(ax.get_xticklabels())))
    if turned:
        shapes = [(y, x) for x, y in shapes]
        lines = [(y, x) for x, y in lines]
        names = list(zip(ax.get_yticks(), texts(ax.get_yticklabels())))
    add_labels(ax, chart, turned)
    axis = ax.yaxis if turned else ax.xaxis
    chart["elements"] = [box_element(x, y, lines, bar_label(axis, min(x), max(x) - min(x), names)) for x, y in shapes]
    return chart


def close(a, b):
    return abs(a - b) <= 1e-9 * max(1, abs(a), abs(b))


def box_element(x, y, lines, label):
    left, right, low, high = min(x), max(x), min(y), max(y)
    element = {"label": label, "min": low, "first_quartile": low, "median": None, "third_quartile": high,
               "max": high, "outliers": []}
    for lx, ly in lines:
        if not len(lx) or not all(left - 1e-9 <= at <= right + 1e-9 for at in lx):
            continue
        if len(lx) == 2 and close(ly[0], ly[1]) and low <= ly[0] <= high and close(min(lx), left):
            element["median"] = ly[0]
        elif len(lx) == 2 and close(lx[0], lx[1]) and (close(max(ly), low) or close(min(ly), high)):  # a whisker
            element["min"] = min(element["min"], *ly)
            element["max"] = max(element["max"], *ly)
        elif len(set(lx)) == 1 and not (len(ly) == 2 and min(ly) >= low and max(ly) <= high):
            element["outliers"].extend(ly)
    return {key: plain(value) for key, value in element.items()}


BUILDERS = {"line": line_chart, "scatter": scatter_chart, "bar": bar_chart, "pie": pie_chart,
            "box_and_whisker": box_chart}
