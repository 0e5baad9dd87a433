"""The story of the papers is filled from measurements, or says that there are none."""

from __future__ import annotations

import re

import measured
import pytest
import write

from onefit_papers.results import write_csv
from onefit_papers.run import PAPERS, settings

STORY = write.TEMPLATE.read_text(encoding="utf-8")


@pytest.fixture
def experiments(tmp_path):
    """ICML 2014 with one set, and nothing else."""
    base = {"table": "1", "row": "heart", "replicate": 0}
    values = {"ELOO": 19.0, "5CV": 17.0, "BIF-5CV": 40.0, "exact-5CV": 17.0, "limit-5CV": 17.0}
    rows = [base | {"variant": "main", "column": c, "value": v} for c, v in values.items()]
    rows += [base | {"variant": "other", "column": "BIF-5CV", "value": 17.0}]
    rows += [row | {"table": "2", "value": 1.0} for row in rows]
    (tmp_path / "icml2014").mkdir()
    (tmp_path / "icml2014" / "results.csv").write_text(write_csv(rows))
    return tmp_path


def test_cells(experiments):
    ours = ("icml2014", "1", "heart", "BIF-5CV")
    assert measured.cell(*ours, folder=experiments) == "40.0 (paper 17.4)"
    assert measured.cell(*ours, "other", experiments) == "17.0 (paper 17.4)"
    assert measured.cell(*ours, "none", experiments) == measured.MISSING
    assert measured.cell("icml2014", "1", "heart", "exact-5CV", folder=experiments) == "17.0"
    assert measured.cell("ins2016", "3 gaussian", "heart", "5-CV", folder=experiments) == (
        measured.MISSING
    )


def test_times_have_medians(tmp_path):
    base = {"table": "ratios", "variant": "LU", "row": "ratio", "column": "R_I"}
    rows = [base | {"replicate": i, "value": v} for i, v in enumerate((2.0, 1.0, 9.0))]
    (tmp_path / "ieice2019").mkdir()
    (tmp_path / "ieice2019" / "results.csv").write_text(write_csv(rows))
    assert measured.cell("ieice2019", "ratios", "ratio", "R_I", "LU", tmp_path) == "2.00"


def test_verdicts(experiments):
    claim = ("icml2014", "For the squared loss")
    assert measured.verdict(*claim, folder=experiments) == "**held**"
    text = measured.evidence(*claim, folder=experiments)
    assert text.startswith("test errors of limit and exact equal in 1 of 1 cells")
    assert measured.evidence("icml2014", "No such claim", folder=experiments) == measured.MISSING
    assert measured.verdict("icml2014", "No such claim", folder=experiments) == measured.MISSING
    nowhere = measured.verdict("icml2014", "For the squared", "no setting", experiments)
    assert nowhere == measured.MISSING


def test_the_overview_counts_claims_and_cells(experiments):
    lines = measured.overview(experiments).splitlines()
    assert len(lines) == 2 + len(PAPERS)
    (icml,) = (line for line in lines if "[ICML 2014]" in line)
    assert "| 3 | 2 (67%) | 2 (67%) | 0, 0 |" in icml
    assert sum("not committed" in line for line in lines) == 4


def test_a_claim_counts_once():
    claim = [("T", "a", v) for v in ("not held", "held")] + [("T", "b", "held")]
    claim += [("T", "c", "not held"), ("T", "d", "not testable"), ("T", "d", "not held")]
    found = [measured.Verdict(where, text, verdict, "") for where, text, verdict in claim]
    assert list(measured.tally(found).values()) == [1, 1, 1, 1]


def _asked(mark):
    return [found.split(" | ") for found in re.findall(rf"<!-- {mark}: (.+?) -->", STORY)]


@pytest.mark.parametrize("asked", _asked("cell"), ids=" ".join)
def test_every_cell_of_the_story_is_one_of_the_settings(asked):
    paper, *_, variant = asked if len(asked) == 5 else (*asked, "main")
    full = settings(paper)["full"]
    known = {own["name"] for key in ("variants", "guards") for own in full.get(key, [])}
    known |= {own["tested"]["name"] for own in full.get("variants", []) if "tested" in own}
    assert variant in known | {"main", *VARIANTS.get(paper, ())}


#: variants that are not settings
VARIANTS = {"ieice2019": ["LU"], "ecml2014": ["error rate in percent inside CV"]}


def test_every_verdict_of_the_story_is_found():
    asked = _asked("verdict") + _asked("evidence")
    assert asked
    for each in asked:
        if len(each) == 2:
            assert measured.verdict(*each) != measured.MISSING, each


def test_the_page_has_the_numbers_of_the_committed_results():
    text = write.filled()
    assert "<!--" not in text
    assert write.PAGE.read_text(encoding="utf-8") == text, "make papers updates it"


def test_every_paper_has_committed_results():
    committed = {path.parent.name for path in measured.EXPERIMENTS.glob("*/results.csv")}
    assert committed == set(PAPERS)
