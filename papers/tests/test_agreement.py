"""Cells counted by hand, and variants that do or do not explain them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from onefit_papers.agreement import Compared, Gap, agreement, section
from onefit_papers.results import MAIN, Published, Results, middle, read_csv, write_csv
from onefit_papers.significance import holm, paired_t, paired_wilcoxon
from onefit_papers.variants import is_main, units_of


def _rows(row, column, mean, variant=MAIN, count=6, table="1"):
    spread = np.linspace(-1.0, 1.0, count) * 1e-3 if count > 1 else [0.0]
    base = {"table": table, "variant": variant, "row": row, "column": column}
    return [base | {"replicate": i, "value": mean + x} for i, x in enumerate(spread)]


#: of the paper: heart 5CV 16.56 +- 3.35, sonar 5CV 16.92 +- 4.49, fourclass 5CV 18.19 +- 3.33
MEASURED = [
    *_rows("heart", "5CV", 20.0),
    *_rows("sonar", "5CV", 16.0),
    *_rows("fourclass", "5CV", 0.0),
    *_rows("pyrim", "EP", 99.0),
    *_rows("eunite2001", "BIF-5CV", 1.0),
]


def _found(*more):
    rows = [row for row in MEASURED if row["column"] != "EP"]
    return agreement(Results([*rows, *more]), Published("icml2014"), Compared(("1",)))


def test_cells_with_a_spread_are_counted():
    found = _found()
    assert found.cells == [("1", "fourclass", "5CV"), ("1", "heart", "5CV"), ("1", "sonar", "5CV")]
    assert list(found.counts().values()) == [3, 2, 2, 1, 1]


@pytest.mark.parametrize(
    ("variant", "count", "confirmed"),
    [
        ({"fourclass": 18.0, "heart": 17.0, "sonar": 17.0}, 6, True),
        ({"fourclass": 18.0}, 6, True),
        ({"fourclass": 18.0}, 4, False),
        ({"fourclass": 18.0, "heart": 40.0}, 6, False),
        ({"fourclass": 18.0, "heart": 40.0, "sonar": 60.0}, 6, False),
        ({"heart": 17.0, "sonar": 17.0}, 6, False),
    ],
)
def test_a_variant_is_confirmed_by_its_whole_column(variant, count, confirmed):
    more = [row for name, v in variant.items() for row in _rows(name, "5CV", v, "other", count)]
    found = _found(*more)
    assert found.confirmed == ({("other", "1", "5CV")} if confirmed else set())
    assert found.counts()["either"] == (3 if confirmed else 2)
    assert found.counts()["main"] == 2
    near = len(variant.keys() - {"sonar"}) if confirmed else 0
    assert found.counts()["either by chance"] == 1 + near


def test_a_variant_that_leaves_half_of_its_column_off_is_not_confirmed():
    off = [*_rows("mpg", "5CV", 99.0), *_rows("mpg", "5CV", 99.0, "other")]
    more = [*off, *_rows("fourclass", "5CV", 18.0, "other")]
    assert _found(*more).confirmed == set()
    more += [*_rows("heart", "5CV", 17.0, "other"), *_rows("sonar", "5CV", 17.0, "other")]
    assert _found(*more).confirmed == {("other", "1", "5CV")}


def test_a_cell_of_a_variant_alone_is_compared_but_not_in_the_main_reading():
    found = _found(*_rows("mpg", "5CV", 8.7, "other"))
    assert found.counts()["cells"] == 4
    assert found.counts()["main"] == 2
    assert found.counts()["either"] == 3


def test_standard_errors_are_made_standard_deviations():
    rows = Results(_rows("F1", "LOO", 1.63 + 0.5))
    for error, agrees in (("sd", False), ("se", True)):
        compared = Compared(("1",), 20, error)
        assert agreement(rows, Published("jmlr2008"), compared).counts()["main"] == agrees


def test_chance_allows_for_both_means():
    gap = Gap(ours=11.0, ours_sd=2.0, count=10, theirs=10.0, theirs_sd=1.0, theirs_count=10)
    assert gap.agrees
    assert gap.within_chance  # 1 against 2 sqrt(0.4 + 0.1) = 1.41
    assert not Gap(11.5, 2.0, 10, 10.0, 1.0, 10).within_chance
    assert not Gap(10.0, float("nan"), 1, 10.0, 1.0, 10).within_chance


def test_the_section_names_what_is_left_and_what_was_tried():
    text = "\n".join(section(_found(*_rows("fourclass", "5CV", 9.0, "other"))))
    assert "3 cells can be compared" in text
    assert "2 (67%) in the main reading, 2 (67%) in the main reading or a confirmed variant" in text
    assert "| other | 1 | 1 | 0 | 0 | none |" in text
    assert "| 1 | fourclass | 5CV | 18.2 | 1.16e-19" not in text
    assert "| other: 9.00 (-2.8 sd) |" in text
    assert "| 1 | heart" not in text
    whole = "\n".join(section(_found(*_rows("fourclass", "5CV", 18.0, "other"))))
    assert "No cell is left over." in whole
    nothing = agreement(Results([]), Published("ieice2019"), Compared(()))
    assert "no spread" in section(nothing)[1]


def test_a_reading_replaces_whole_cells():
    results = Results([*MEASURED, *_rows("heart", "5CV", 1.0, "other", 2)])
    reading = results.reading("other")
    assert reading.values("1", "heart", "5CV").size == 2
    assert reading.mean("1", "heart", "5CV") == pytest.approx(1.0)
    assert reading.mean("1", "sonar", "5CV") == pytest.approx(16.0)
    assert results.only("other").rows("1") == ["heart"]
    assert results.mean("1", "heart", "5CV") == pytest.approx(20.0)


def test_pairs_are_of_common_replicates():
    rows = [*_rows("a", "x", 3.0, count=4), *_rows("a", "y", 1.0, count=4)[1:3]]
    np.testing.assert_allclose(Results(rows).paired("1", "a", "x", "y"), 2.0)
    assert Results(rows).paired("1", "a", "x", "z").size == 0


def test_what_is_written_is_read():
    rows = [{**row, "tau": "0.5"} for row in _rows("a", "x", 3.0, count=2)]
    assert read_csv(write_csv(rows)).all == rows


def test_times_have_medians_and_minima():
    results = Results([_rows("a", "x", v, count=1)[0] | {"replicate": v} for v in (5, 1, 2)])
    assert (results.median("1", "a", "x"), results.least("1", "a", "x")) == (2.0, 1.0)
    assert np.isnan(results.least("1", "a", "none"))
    assert np.isnan(results.median("1", "a", "none"))


def test_the_middle_of_what_is_known():
    assert middle([3.0, float("nan"), 1.0, 2.0]) == 2.0
    assert np.isnan(middle([float("nan")]))
    assert np.isnan(middle([]))


def test_variants_have_their_own_settings():
    config = {"replicates": 2, "sets": ["a", "b"], "lam": 1}
    config["variants"] = [
        {"name": "v", "sets": ["a"], "lam": 2},
        {"name": MAIN, "sets": ["b"], "lam": 3},
    ]
    units = units_of(config, ("lam", "tau"))
    assert [(u["variant"], u["set"], u["replicate"], u["lam"]) for u in units] == [
        *((MAIN, "a", i, 1) for i in range(2)),
        *((MAIN, "b", i, 1) for i in range(2)),
        *(("v", "a", i, 2) for i in range(2)),
        *((MAIN, "b", i, 3) for i in range(2)),
    ]
    assert all(u["tau"] is None for u in units)
    assert sum(map(is_main, units)) == 6


def test_paired_tests():
    gaps = np.random.default_rng(3).standard_normal(10) + 0.4
    assert paired_t(gaps) == pytest.approx(stats.ttest_rel(gaps, np.zeros(10)).pvalue)
    assert paired_t(-gaps) == pytest.approx(paired_t(gaps))
    assert paired_wilcoxon(gaps) == pytest.approx(stats.wilcoxon(gaps).pvalue)
    assert paired_t(np.zeros(5)) == paired_wilcoxon(np.zeros(5)) == 1.0
    assert paired_t(np.full(5, 0.3)) == 0.0
    assert paired_t(np.array([2.0])) == 1.0


def test_holm_counts_the_tests():
    assert holm([]) == []
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert holm([0.02, 0.02]) == [True, True]
    assert sum(holm([0.04] * 20)) == 0
