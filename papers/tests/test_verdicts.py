"""Verdicts on made-up measurements."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from made_up import unit_of

from onefit_papers import (
    ecml2014,
    icml2014,
    ieice2019,
    ieice2019_verdicts,
    ins2016,
    jmlr2008_toy,
    jmlr2008_verdicts,
)
from onefit_papers.data import SHAPES
from onefit_papers.results import Published, Results


def _rows(table, values, variant="main"):
    """{(row, column): values of the replicates} as measurements."""
    return [
        {
            "table": table,
            "variant": variant,
            "row": row,
            "column": column,
            "replicate": i,
            "value": v,
        }
        for (row, column), several in values.items()
        for i, v in enumerate(several)
    ]


def _verdict(module, rows, where):
    found = module.verdicts(Results(rows), Published(module.NAME))
    return next(v for v in found if v.where == where)


def _icml_rows(series, sets=12):
    names = list(SHAPES)[:sets]
    errors = {}
    for name in names:
        errors |= {(name, "ELOO"): [9.0, 11.0], (name, "5CV"): [9.0, 11.0]}
        errors |= {(name, f"{c}-5CV"): [9.0, 11.0] for c in ("limit", "exact")}
        errors[name, "BIF-5CV"] = [v + series for v in (9.0, 11.0)]
    seconds = {key: [2.1 if key[1] == "5CV" else 1.0] for key in errors}
    return _rows("1", errors) + _rows("2", seconds)


@pytest.mark.parametrize(
    ("series", "sets", "verdict"),
    [(0.1, 12, "held"), (3.0, 12, "not held"), (0.1, 4, "not testable")],
)
def test_icml_same_errors(series, sets, verdict):
    assert _verdict(icml2014, _icml_rows(series, sets), "Table 1 (a)").verdict == verdict


def test_icml_times_and_exactness():
    rows = _icml_rows(0.1)
    assert _verdict(icml2014, rows, "Table 2 (a)").verdict == "held"
    assert _verdict(icml2014, rows, "ours").verdict == "held"
    for row in rows:
        if row["column"] == "limit-5CV" and row["table"] == "1":
            row["value"] += 1e-3
        if row["column"] == "BIF-5CV" and row["table"] == "2":
            row["value"] = 3.0
    assert _verdict(icml2014, rows, "Table 2 (a)").verdict == "not held"
    assert _verdict(icml2014, rows, "ours").verdict == "not held"


@pytest.mark.parametrize(("better", "verdict"), [(9, "held"), (8, "held"), (7, "not held")])
def test_ecml_counts_the_sets(better, verdict):
    values = {}
    for i in range(9):
        for column in ecml2014.COLUMNS:
            values[f"s{i}", column] = [9.0 if column.endswith("KS") and i < better else 10.0]
    rows = [row for lam in (0.001, 0.1) for row in _rows(f"1 lam={lam:g}", values)]
    figure = {(f"s{i}", f"5-KS, eta 2^{p}"): [10.0] for i in range(9) for p in (-2, 0, 5)}
    rows += _rows("figure 1", figure)
    assert _verdict(ecml2014, rows, "Table 1 (a)").verdict == verdict
    assert _verdict(ecml2014, rows, "Figure 1").verdict == "held"


def _ins_rows(kind="gaussian"):
    """Ten sets where all criteria but GACV choose alike, and GACV is worse."""
    rng = np.random.default_rng(0)
    values, seconds = {}, {}
    names = ["sonar", "breast-cancer", "fourclass", "ionosphere", *(f"s{i}" for i in range(6))]
    for name in names:
        same = 10.0 + rng.standard_normal(10)
        for column in ("0.2-BIF", "0.1-BIF", "0.05-BIF", "5-CV", "10-CV", "20-CV", "exact-5"):
            values[name, column] = list(same + 0.1 * rng.standard_normal(10))
            seconds[name, column] = [9.0 if column.endswith("CV") else 2.0]
        values[name, "GACV"] = list(same + 0.1 * rng.standard_normal(10))
        seconds[name, "GACV"] = [1.0]
    for name in ("breast-cancer", "fourclass"):
        values[name, "GACV"] = [v + 5.0 for v in values[name, "GACV"]]
    return _rows(f"3 {kind}", values) + _rows(f"4 {kind}", seconds)


def _moved(rows, name, column, by):
    """The rows with a cell moved, by a little less or more in each replicate."""
    hit = [row for row in rows if (row["row"], row["column"]) == (name, column)]
    for row in hit:
        if row["table"].startswith("3 "):
            row["value"] += by + 0.01 * row["replicate"]
    return rows


def test_ins_differences_are_tested_on_both_sides():
    where = "Table 3 gaussian (2)"
    assert _verdict(ins2016, _ins_rows(), where).verdict == "held"
    assert "Holm over 40 tests" in _verdict(ins2016, _ins_rows(), where).evidence
    for by in (4.0, -4.0):
        rows = _moved(_ins_rows(), "s1", "10-CV", by)
        assert _verdict(ins2016, rows, where).verdict == "not held"
    rows = _moved(_moved(_ins_rows(), "sonar", "10-CV", -4.0), "sonar", "20-CV", -4.0)
    assert _verdict(ins2016, rows, where).verdict == "held"
    assert _verdict(ins2016, rows, "Table 3 gaussian (2b)").verdict == "held"
    assert _verdict(ins2016, _ins_rows(), "Table 3 gaussian (2b)").verdict == "not held"


def test_ins_looks_at_the_named_sets():
    where = "Table 3 gaussian (3)"
    assert _verdict(ins2016, _ins_rows(), where).verdict == "held"
    elsewhere = _moved(_moved(_ins_rows(), "fourclass", "GACV", -5.0), "s2", "GACV", 5.0)
    assert _verdict(ins2016, elsewhere, where).verdict == "not held"
    worse = _moved(_ins_rows(), "s3", "GACV", -5.0)
    assert "worse on s3" in _verdict(ins2016, worse, where).evidence
    assert _verdict(ins2016, worse, where).verdict == "not held"


def test_ins_much_less_time_is_less_than_half():
    where, rows = "Table 4 gaussian", _ins_rows()
    assert _verdict(ins2016, rows, where).verdict == "held"
    for row in rows:
        if row["table"] == "4 gaussian" and row["column"] == "5-CV":
            row["value"] = 2.02
    assert _verdict(ins2016, rows, where).verdict == "not held"


def test_ins_variants_are_judged_beside():
    rows = _ins_rows()
    rows += [row | {"variant": "other"} for row in _moved(_ins_rows(), "s1", "10-CV", 4.0)]
    found = ins2016.verdicts(Results(rows), Published("ins2016"))
    two = [v for v in found if v.where == "Table 3 gaussian (2)"]
    assert [v.verdict for v in two] == ["held", "not held"]
    assert "other" in two[1].rests_on
    assert "other" not in two[0].rests_on
    figure = next(v for v in found if v.where == "Figure 1")
    assert figure.verdict == "held"
    assert "0.0250 at delta = 0.1" in figure.evidence
    assert figure.rests_on == "the paper's setting"


def test_icml_twelve_sets_and_labels():
    names = list(SHAPES)[:20]
    spread = [float(v) for v in range(10)]
    errors = {}
    for name in names:
        errors |= {(name, c): spread for c in ("ELOO", "5CV", "BIF-5CV", "limit-5CV", "exact-5CV")}
    rows = _rows("1", errors) + _rows("2", {key: [1.0] for key in errors})
    assert _verdict(icml2014, rows, "Table 1 (a), twelve sets").verdict == "held"
    assert _verdict(icml2014, rows, "Table 1 (c), labels").verdict == "held"
    moved = _rows("1", errors | {("a2a", "BIF-5CV"): [v + 1.0 for v in spread]})
    found = _verdict(icml2014, moved, "Table 1 (a), twelve sets")
    assert found.verdict == "not held"
    assert "a2a 5CV" in found.evidence
    labels = _verdict(icml2014, moved, "Table 1 (c), labels")
    assert labels.verdict == "not held"
    assert "a2a 5CV (+1.0) differ" in labels.evidence


def _jmlr_rows(least=1.0, spoilt=3.0, huber=1.0):
    rng = np.random.default_rng(0)
    values = {}
    for row in ("F1", "F2", "F3", "B", "O", "S", "B+o", "O+o", "S+o"):
        base = 1.0 + 0.01 * rng.standard_normal(20)
        for column in jmlr2008_verdicts.COLUMNS:
            noise = 1e-3 * rng.standard_normal(20)
            plain = column in ("LOO", "CV", "C_IF5")
            size = (spoilt if row.endswith("+o") else least) if plain else huber
            values[row, column] = list(size * (base + noise))
    return _rows("1", values)


@cache
def _toy_rows():
    """The figures of one sample, which other claims rest on."""
    return jmlr2008_toy.measure(unit_of("jmlr2008", kind="toy"))


def _jmlr(rows, start):
    found = jmlr2008_verdicts.verdicts(Results([*rows, *_toy_rows()]), Published("jmlr2008"))
    return [v for v in found if v.claim.startswith(start)]


def test_jmlr_similar_and_large_benefits():
    similar, benefit = "Without outliers the Huber", "With outliers the benefit"
    assert [v.verdict for v in _jmlr(_jmlr_rows(), similar)] == ["held"]
    assert [v.verdict for v in _jmlr(_jmlr_rows(huber=1.2), similar)] == ["not held"]
    assert [v.verdict for v in _jmlr(_jmlr_rows(), benefit)] == ["held"]
    assert [v.verdict for v in _jmlr(_jmlr_rows(spoilt=1.0), benefit)] == ["not held"]
    few = [row for row in _jmlr_rows() if row["replicate"] < 6]  # the smallest p is 0.03
    assert [v.verdict for v in _jmlr(few, benefit)] == ["not held"]
    assert [v.verdict for v in _jmlr(_jmlr_rows(spoilt=0.5), benefit)] == ["not held"]
    shifted = [
        row | {"variant": "moved up", "value": 0.1 * row["value"]}
        for row in _jmlr_rows()
        if row["row"].endswith("+o") and not row["column"].startswith("b")
    ]
    both = _jmlr([*_jmlr_rows(), *shifted], benefit)
    assert [v.verdict for v in both] == ["held", "not held"]
    assert both[1].rests_on == "ours: moved up"


def test_jmlr_figure_4_counts_samples():
    values = {("C_IF5", "squared"): [3.0, 3.0, 1.0], ("C_IF5", "absolute"): [2.0, 2.0, 2.0]}
    part, counts = jmlr2008_toy._wider(Results(_rows("figure 4", values)), "C_IF5")
    assert part == pytest.approx(2 / 3)
    assert "larger sigma in 2 of 3 samples, the smaller in 1, the same in 0" in counts


def test_ieice_crossovers():
    def row(table, name, column, value):
        return {
            "table": table,
            "variant": "main",
            "row": name,
            "column": column,
            "replicate": 0,
            "value": value,
        }

    rows = [row("ratios", "ratio", c, v) for c, v in (("R_L", 0.72), ("R_I", 1.88), ("R_E", 4.69))]
    for count, fast, prop in ((1, 1.0, 3.0), (2, 2.0, 3.1), (4, 4.0, 3.2), (8, 8.0, 3.4)):
        rows += [
            row("figure 1", f"5-fold, {count}", c, v) for c, v in (("Fast", fast), ("Prop", prop))
        ]
        rows += [row("figure 1", f"5-fold, {count}", c, 1.0) for c in ("block", "eigen")]
    results, paper = Results(rows), Published("ieice2019")
    assert ieice2019_verdicts.predicted(results, "5-fold", 2000) == pytest.approx(
        paper.cell("eq. 21", "crossover", "5-fold").mean, abs=0.01
    )
    assert ieice2019_verdicts.crossing(results, "5-fold", "Fast", "Prop") == 4
    assert ieice2019_verdicts.crossing(results, "5-fold", "block", "eigen") == float("inf")
    verdicts = ieice2019.verdicts(results, paper)
    assert {v.verdict for v in verdicts if v.where.startswith("section")} == {"held"}
    assert {v.rests_on for v in verdicts[:2]} == {"ours: Cholesky, LAPACK on this machine"}
    slow = [
        row | {"variant": "LU", "value": 9 * row["value"]} for row in rows if "R_I" in row["column"]
    ]
    both = ieice2019.verdicts(Results([*rows, *slow]), paper)
    ordered = [v for v in both if v.where == "section 3"]
    assert [v.verdict for v in ordered] == ["held", "not held"]
    assert ordered[1].rests_on.startswith("ours: LU")


@pytest.mark.parametrize(("inverse", "verdict"), [(1.01, "not held"), (1.1, "held")])
def test_ieice_ratios_that_are_nearly_equal_have_no_order(inverse, verdict):
    rows = _rows(
        "ratios", {("ratio", "R_L"): [0.4], ("ratio", "R_I"): [inverse], ("ratio", "R_E"): [5]}
    )
    assert ieice2019_verdicts._ordered(Results(rows)).verdict == verdict
