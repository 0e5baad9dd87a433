"""Two selections side by side: when they can be compared, and how."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import ttest_rel

from onefit.report.comparison import differences, side_by_side, verdict, write_comparison


def document(errors, **changes):
    best = {
        "rank": 1, "params": {"lam": 0.1}, "error": float(np.mean(errors)), "standard_error": 0.1,
        "method": "eigen", "exact": True, "interval": [0.1, 0.9], "errors_of_splits": list(errors),
    }  # fmt: skip
    data = {"file": "a.csv", "rows": 9, "columns": 2, "target": "t", "seed": 0}
    found = {"data": data, "task": "regression", "metric": "root mean squared error", "best": best,
             "ranking": [best], "reasons": ["squared loss: as asked"], "candidates": 4,
             "splits": len(errors), "seconds": 1.0}  # fmt: skip
    return copy.deepcopy(found) | changes


ONE, OTHER = [0.5, 0.6, 0.4, 0.5, 0.7], [0.8, 0.95, 0.7, 0.82, 1.0]


def test_equal_splits_are_compared_in_pairs():
    text = verdict(document(ONE), document(OTHER))
    assert "0.54 in the first, 0.854 in the second" in text
    assert "more than chance explains" in text
    plain = ttest_rel(ONE, OTHER).pvalue
    assert float(text.partition("p = ")[2].rstrip(").")) > plain  # allows for the overlap
    assert "no more than chance" in verdict(document(ONE), document(ONE[::-1]))
    assert "p = 1)" in verdict(document(ONE), document(ONE))


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"file": "a.csv", "rows": 9, "columns": 2, "target": "t", "seed": 1}},
        {"data": {"file": "a.csv", "rows": 9, "columns": 2, "target": "t"}},
    ],
)
def test_other_splits_are_not_tested(change):
    assert "not tested" in verdict(document(ONE), document(OTHER, **change))
    assert "not tested" in verdict(document(ONE), document(OTHER[:4]))


def test_what_keeps_errors_apart_is_named():
    other = document(OTHER, metric="error rate")
    assert differences(document(ONE), other) == [
        "the metric is root mean squared error in the first and error rate in the second"
    ]
    assert verdict(document(ONE), other).startswith("The errors cannot be compared: the metric")


def test_a_run_without_a_score_is_said_to_have_none():
    broken = document(OTHER)
    broken["best"]["error"] = None
    assert verdict(document(ONE), broken) == "One of the two has no score."


def test_the_table_has_a_dash_where_nothing_is_known():
    rows = {name: values for name, *values in side_by_side(document(ONE), document(OTHER))}
    assert rows["chosen"] == ["lam=0.1", "lam=0.1"]
    assert rows["95% interval"] == ["0.1 to 0.9", "0.1 to 0.9"]
    assert rows["R²"] == ["–", "–"]


def test_the_page_says_what_changed(tmp_path):
    pytest.importorskip("jinja2")
    path = write_comparison(
        document(ONE), document(OTHER), ("first", "<second>"), tmp_path / "c.html"
    )
    text = path.read_text(encoding="utf-8")
    assert "0.54 → 0.854" in text
    assert "&lt;second&gt;" in text
    assert text.count("<svg viewBox") == 1
    assert "<second>" not in text
