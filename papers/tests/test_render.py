"""Tables, cells and verdicts on a page."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser

import numpy as np
import pytest

from onefit_papers.claims import judge, untestable
from onefit_papers.render import as_html, beside, number, verdict_table
from onefit_papers.results import Published, Results, write_csv
from onefit_papers.run import PAPERS


def _rows(values, column="5CV", row="heart", table="1", variant="main"):
    return [
        {
            "table": table,
            "variant": variant,
            "row": row,
            "column": column,
            "replicate": i,
            "value": v,
        }
        for i, v in enumerate(values)
    ]


def test_a_cell_has_ours_theirs_and_the_difference():
    # the paper's cell is 16.56 +- 3.35
    results = Results(_rows([22.0, 24.52]))
    text = beside(results, Published("icml2014"), "1", ["EP", "5CV", "exact-5CV"])
    assert text.splitlines()[2] == (
        "| heart | 19.0 ± 3.1 | **23.3 ± 1.8**<br>16.6 ± 3.4<br>+2.0 sd | - |"
    )


def test_standard_errors_are_those_of_the_mean():
    results = Results(_rows([1.0, 3.0], "LOO", "F1"))
    text = beside(results, Published("jmlr2008"), "1", ["LOO"], error="se")
    assert "**2.00 ± 1.0**<br>1.63 ± 0.090<br>+4.1 se" in text


def test_unreadable_cells_say_so():
    results = Results(_rows([10.0, 11.0], "5-CV", "heart", "1 lam=0.001"))
    text = beside(results, Published("ecml2014"), "1 lam=0.001", ["5-CV"])
    assert "unreadable" in text
    assert " sd" not in text


def test_results_keep_variants_apart_and_replicates_in_order():
    rows = _rows([1.0, 2.0]) + _rows([9.0], variant="other")
    results = Results(rows[::-1])
    np.testing.assert_array_equal(results.values("1", "heart", "5CV"), [1.0, 2.0])
    assert results.mean("1", "heart", "5CV", "other") == 9.0
    assert np.isnan(results.mean("1", "heart", "10CV"))


def test_csv_has_every_measurement():
    rows = [*_rows([1.5]), {**_rows([2.5], "10CV")[0], "tau": 0.25}]
    lines = list(csv.DictReader(io.StringIO(write_csv(rows))))
    assert [(line["value"], line["tau"]) for line in lines] == [("1.5", ""), ("2.5", "0.25")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (123.4, "123"),
        (4.5e-5, "4.50e-05"),
        (np.nan, "-"),
        (12345.0, "1.23e+04"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_verdicts():
    text = verdict_table(
        [judge("T", "c", True, "e"), judge("T", "c", False, "e"), untestable("T", "c", "r")]
    )
    assert [line.split("|")[3].strip() for line in text.splitlines()[2:]] == [
        "**held**",
        "**not held**",
        "**not testable**",
    ]
    assert judge("T", "c", None, "e").verdict == "not testable"


def test_the_papers_numbers_are_where_they_were_printed():
    icml = Published("icml2014")
    assert (icml.cell("1", "sonar", "BIF-10CV").mean, icml.cell("1", "sonar", "BIF-10CV").sd) == (
        18.62,
        2.45,
    )
    assert icml.cell("2", "space_ga", "20CV").mean == 600.1
    assert np.isnan(icml.cell("2", "abalone", "ELOO").mean)
    assert Published("jmlr2008").cell("1", "O+o", "C_IF5").mean == 78.77
    assert Published("ins2016").cell("3 gaussian", "sonar", "GACV").sd == 3.42
    assert Published("ins2016").cell("4 polynomial", "a2a", "20-CV").mean == 306.15
    assert Published("ecml2014").cell("1 lam=0.1", "a2a", "10-KS").mean == 22.68
    assert Published("ieice2019").cell("text", "ratio", "R_E").mean == 4.69


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_is_one_and_every_gap_has_a_note(paper):
    cells = Published(paper)._cells
    assert cells
    for cell in cells.values():
        assert np.isfinite(cell.mean) or cell.note
        assert not cell.mean < 0
        assert not cell.sd < 0


class _Tags(HTMLParser):
    """The tags of a document, and its text by tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)


def test_the_html_page_has_the_cells_of_the_markdown_page():
    results = Results(_rows([22.0, 24.52]))
    text = beside(results, Published("icml2014"), "1", ["EP", "5CV", "exact-5CV"])
    page = _Tags(as_html(f"# A title & more\n\n- cut: *nothing*\n\n## Table 1\n\n{text}\n"))
    assert page.text["title"] == ["A title & more"]
    assert page.text["h1"] == ["A title & more"]
    assert page.text["th"] == ["EP", "5CV", "exact-5CV"]
    assert page.text["td"] == ["heart", "19.0 ± 3.1", "-"]
    assert page.text["strong"] == ["23.3 ± 1.8"]
    assert page.text["br"] == ["16.6 ± 3.4", "+2.0 sd"]


def test_the_html_page_is_escaped_and_stands_alone():
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    verdicts = [judge("T", hostile, True, '"quoted" & <b>e</b>')]
    page = _Tags(as_html(f"# {hostile}\n\n{verdict_table(verdicts)}\n\n<u>1e-05</u>\n"))
    names = {tag for tag, _ in page.tags}
    assert "u" in names
    assert not names & {"script", "img", "b", "link", "a", "iframe"}
    assert hostile in "".join(page.text["td"])
    assert hostile in "".join(page.text["title"])
    assert not any({"src", "href"} & attrs.keys() for _, attrs in page.tags)
