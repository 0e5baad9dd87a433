"""Numbers of pages come from committed tables."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))

pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def findings():
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module("findings")
    sys.path.remove(str(DOCS))


@pytest.fixture
def results(tmp_path):
    (tmp_path / "some.csv").write_text("set,rows,error\nx.y,10,0.123456\nz,2000,\n")
    return tmp_path


def filled(findings, text, results):
    source = [text]
    findings.fill(source, results)
    return source[0]


def test_a_value(findings, results):
    text = "<!-- value: some | d.error.max() | .1% --> on <!-- value: some | d.rows.sum() | d -->"
    assert filled(findings, text, results) == "12.3% on 2010"


def test_a_mark_over_two_lines(findings, results):
    text = "<!-- value: some |\n d.error.max() | .2f -->"
    assert filled(findings, text, results) == "0.12"


def test_a_table_of_columns(findings, results):
    lines = filled(findings, "<!-- table: some: set, error -->", results).splitlines()
    assert lines == ["| set | error |", "| --- | --- |", "| x.y | 0.123 |", "| z | - |"]


def test_a_table_of_an_expression_and_its_link(findings, results):
    (results / "some.md").write_text("all of it")
    text = filled(findings, "<!-- table: some | d[d.rows > 100][['rows']] -->", results)
    assert text.splitlines()[2:] == ["| 2000 |", "", "[The whole table](results/some.md)."]


def test_a_mark_that_cannot_be_evaluated_is_an_error(findings, results):
    with pytest.raises(FileNotFoundError):
        filled(findings, "<!-- table: none: a -->", results)
    with pytest.raises(AttributeError):
        filled(findings, "<!-- value: some | d.none.max() | d -->", results)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_mark_of_a_page_can_be_replaced(findings, page):
    if not findings.RESULTS.is_dir():
        pytest.skip("a source distribution has no results")
    text = filled(findings, page.read_text(encoding="utf-8"), findings.RESULTS)
    assert "<!--" not in text
    assert "| nan |" not in text
