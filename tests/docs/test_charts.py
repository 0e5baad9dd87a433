"""Charts name only what exists, and notebooks of the gallery hold the code of their pages."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from onefit.criteria import CRITERIA
from onefit.heldout import METHODS
from onefit.kernels import KERNELS
from onefit.losses import LOSSES

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import charts  # noqa: E402
import notebooks  # noqa: E402

KNOWN = {
    "loss": {*LOSSES, "mad"},
    "kernel": {*KERNELS, "precomputed"},
    "criterion": {*CRITERIA, "cv"},
    "method": {*METHODS, "auto", "race"},
}


def choices(tree):
    for _, after in tree:
        yield from [after] if isinstance(after, str) else choices(after)


@pytest.mark.parametrize("name", charts.CHARTS)
def test_a_chart_names_what_exists(name):
    question, tree = charts.CHARTS[name]
    quoted = {word for choice in choices(tree) for word in re.findall(r'"(\w+)"', choice)}
    assert quoted <= KNOWN[name]
    drawn = ElementTree.fromstring(charts.chart(name))
    text = [one.text for one in drawn.iter() if one.text]
    assert question in text
    assert set(choices(tree)) <= set(text)


def test_every_chart_is_on_a_page_and_every_mark_has_a_chart():
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    marks = re.findall(r"<!-- chart: (\w+) -->", text)
    assert sorted(marks) == sorted(charts.CHARTS)


def test_speed_is_that_of_the_committed_benchmark(tmp_path):
    assert "×)" in charts.speed()
    assert "not committed" in charts.speed(tmp_path)


def test_notebooks_hold_all_code_and_no_output():
    made = notebooks.notebooks(DOCS / "gallery")
    assert "toy.ipynb" in made
    for name, text in made.items():
        page = (DOCS / "gallery" / name).with_suffix(".md").read_text(encoding="utf-8")
        cells = json.loads(text)["cells"]
        code = ["".join(one["source"]) for one in cells if one["cell_type"] == "code"]
        assert code == [body.strip("\n") for body in re.findall(r"```python\n(.*?)```", page, re.S)]
        for one in code:
            ast.parse(one)
        words = "".join("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")
        assert 'title="output"' not in words
        assert "<!--" not in words


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(notebooks.notebooks(DOCS / "gallery")))
def test_a_notebook_runs_in_jupyter(name, tmp_path):
    """From top to bottom in a fresh kernel, in a folder that has nothing else in it."""
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    client = pytest.importorskip("nbclient", reason="nbclient is not installed")
    text = notebooks.notebooks(DOCS / "gallery")[name]
    found = nbformat.reads(text, as_version=4)
    nbformat.validate(found)
    where = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(found, timeout=300, kernel_name="python3", resources=where).execute()
    cells = [one for one in found.cells if one.cell_type == "code"]
    assert cells
    assert all(one.execution_count for one in cells)
