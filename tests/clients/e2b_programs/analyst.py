# SPDX-License-Identifier: Apache-2.0
"""A data analyst, as cookbooks have it: a CSV goes up, code that a model might have written runs on it, mends
itself after an error, and a table, a chart and a file come back."""

import base64
import json
import os

from e2b_code_interpreter import Sandbox

CSV = "country,year,gdp\n" + "".join(f"{c},{y},{v}\n" for c, y, v in [
    ("A", 2020, 1.5), ("A", 2021, 1.7), ("B", 2020, 2.5), ("B", 2021, 2.2)])

# What a model answers: the first one has a mistake in it, the next one mends it.
ANSWERS = [
    "import csv\nrows = list(csv.DictReader(open(path)))\ntotal = sum(row['gdp'] for row in rows)",
    "total = sum(float(row['gdp']) for row in rows)\nprint(f'total: {total:.1f}')\ntotal",
]

with Sandbox.create(timeout=300, metadata={"program": "analyst"}) as sandbox:
    dataset = sandbox.files.write("/home/user/data/gdp.csv", CSV)
    sandbox.run_code(f"path = {dataset.path!r}")
    seen = []
    for code in ANSWERS:
        execution = sandbox.run_code(
            code, on_stdout=lambda message: seen.append(message.line), on_error=lambda error: seen.append(error.name))
        if execution.error is None:
            break
        assert "unsupported operand" in execution.error.value, execution.error
    assert seen == ["TypeError", "total: 7.9\n"], seen
    assert execution.text.startswith("7.9"), execution
    result = json.loads(execution.to_json())
    assert result["error"] is None, result

    # A picture without matplotlib: what has _repr_png_ is one.
    execution = sandbox.run_code("""
import base64
class Chart:
    def _repr_png_(self):
        return base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==")
Chart()""")
    picture = execution.results[0]
    assert base64.b64decode(picture.png).startswith(b"\x89PNG"), picture
    assert "png" in list(picture.formats())

    sandbox.run_code("open('/home/user/report.md', 'w').write(f'# Report\\ntotal {total:.1f}\\n')")
    assert sandbox.files.read("/home/user/report.md") == "# Report\ntotal 7.9\n"
    upload = sandbox.upload_url("/home/user/more.csv")
    assert upload.startswith(os.environ["E2B_SANDBOX_URL"]), upload
print("done")
