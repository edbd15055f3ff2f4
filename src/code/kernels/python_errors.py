# SPDX-License-Identifier: Apache-2.0
#
# How the Python kernel tells an error: a traceback of the user's own code, as Python writes it. What stands in
# libraries, in the import machinery and in the kernel itself is left out. Loaded with the first error; and since
# it may be about anything, among it errors of classes that break whoever looks at them, nothing in here is sure.

import os

TEXT_MAX = 64 << 10


def describe(error):
    """Name, value, traceback."""
    kind = type(error)
    name = type.__dict__["__name__"].__get__(kind)
    try:
        value = str(error)
    except BaseException:
        value = "<%s that can not be shown>" % name
    try:
        text = as_python(error)
    except BaseException:  # who knows what the cell has made of the library, or of its path
        text = by_hand(error.__traceback__) + "%s: %s\n" % (name, value)
    if len(text) > TEXT_MAX:
        text = text[:TEXT_MAX // 2] + "\n  [%d characters are left out]\n" % (len(text) - TEXT_MAX) + text[-TEXT_MAX // 2:]
    return name, value, text


def as_python(error):
    import linecache
    import traceback
    linecache.cache.pop("<string>", None)  # the kernel's own first line, for some Pythons
    if isinstance(error, SyntaxError) and error.text is None and str(error.filename).startswith("<cell "):
        error.text = linecache.getline(error.filename, error.lineno)
    report = traceback.TracebackException(type(error), error, error.__traceback__)
    seen, left = set(), [report]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.stack = traceback.StackSummary.from_list(of_the_user(list(one.stack)))
        left += [one.__cause__, one.__context__] + list(getattr(one, "exceptions", None) or ())
    return "".join(report.format())


def of_the_user(frames):
    """From the cell on; where there is none, an error that was made elsewhere, all that are no library's."""
    cells = [at for at, frame in enumerate(frames) if frame.filename.startswith("<cell ")]
    return [frame for frame in frames[cells[0] if cells else 0:] if not is_library(frame.filename)]


LIBRARY = os.__file__.rpartition("/")[0] + "/"


def is_library(path):
    return path.startswith(("<cella>", "<frozen ", LIBRARY)) or "/site-packages/" in path or "/dist-packages/" in path


def by_hand(step):
    text = "Traceback (most recent call last):\n"
    while step is not None:
        code = step.tb_frame.f_code
        if not is_library(code.co_filename):
            text += '  File "%s", line %d, in %s\n' % (code.co_filename, step.tb_lineno, code.co_name)
        step = step.tb_next
    return text
