"""What JMLR 2008 says of Table 1, judged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from onefit_papers import jmlr2008_toy as toy
from onefit_papers.claims import Verdict, judge, resting_on
from onefit_papers.render import number
from onefit_papers.results import MAIN, Published, Results
from onefit_papers.significance import holm, paired_wilcoxon

__all__ = ["COLUMNS", "p_value", "verdicts"]

COLUMNS = ("LOO", "CV", "C_IF5", "b=3", "b=2", "b=1", "b optimised")
#: replicates without which a test can reject nothing
REPLICATES = 6
#: what the main reading had to decide
SCALED = "features standardised"
NOISE = "the noise of Friedman's functions"
OUTLIERS = "Gaussian outliers of 5 standard deviations"


def p_value(results: Results, row: str, one: str, two: str) -> float:
    """Two-sided paired Wilcoxon test of two columns; 1 where they never differ."""
    return paired_wilcoxon(results.paired("1", row, one, two))


def verdicts(results: Results, published: Published) -> list[Verdict]:
    """The sentences of section 6; those that a variant bears on, in the variant too."""
    rows = results.rows("1")
    spoilt = [row for row in rows if row.endswith("+o")]
    found = [
        *toy.verdicts(results),
        resting_on(_same_three(results, rows), SCALED),
        resting_on(_small_b_hurts(results), NOISE),
        resting_on(_similar(results), NOISE),
        *(resting_on(verdict, OUTLIERS) for verdict in _with_outliers(results, spoilt)),
        resting_on(_optimised(results, rows), f"{NOISE}; {OUTLIERS}"),
    ]
    for variant in results.variants("1"):
        own = results.rows("1", variant)
        reading = results.reading(variant)
        if variant != MAIN and {"F1", "F2", "B"} & set(own):
            found.append(resting_on(_small_b_hurts(reading), variant))
        if variant != MAIN and set(spoilt) == {row for row in own if row.endswith("+o")} != set():
            judged = _with_outliers(reading, spoilt)
            found += [resting_on(verdict, variant) for verdict in judged]
    return found


def _with_outliers(results: Results, rows: list[str]) -> list[Verdict]:
    return [
        _outliers_hurt(results, rows),
        _smaller_is_better(results, rows),
        _large_benefit(results, rows),
    ]


def _same_three(results: Results, rows: list[str]) -> Verdict:
    gaps = {
        row: max(
            abs(results.mean("1", row, c) / results.mean("1", row, "LOO") - 1.0)
            for c in ("CV", "C_IF5")
        )
        for row in rows
    }
    worst = max(gaps, key=lambda row: gaps[row])
    return judge(
        "Table 1",
        "With least squares the difference between LOO, CV and C_IF^5 is very small",
        gaps[worst] < 0.02,
        f"largest relative difference of the mean errors {gaps[worst]:.1%} ({worst})",
    )


def _small_b_hurts(results: Results) -> Verdict:
    rows = [row for row in ("F1", "F2", "B") if row in results.rows("1")]
    gains = {row: results.mean("1", row, "b=1") / results.mean("1", row, "C_IF5") for row in rows}
    shown = ", ".join(f"{row}: {value:.2f}" for row, value in gains.items())
    return judge(
        "Table 1",
        "Without outliers a small b is inappropriate for Boston, Friedman 1 and especially "
        "Friedman 2",
        all(v > 1.0 for v in gains.values()) and gains["F2"] == max(gains.values())
        if len(rows) == 3
        else None,
        f"error at b = 1 over that of least squares: {shown}",
    )


def _outliers_hurt(results: Results, rows: list[str]) -> Verdict:
    ratios = {row: results.mean("1", row, "C_IF5") / results.mean("1", row, "b=3") for row in rows}
    shown = ", ".join(f"{row}: {value:.1f}" for row, value in ratios.items())
    return judge(
        "Table 1",
        "With outliers least squares is not a good option; b = 3 already is a large improvement",
        all(value > 1.5 for value in ratios.values()) if rows else None,
        f"error of least squares over that at b = 3: {shown}",
    )


def _smaller_is_better(results: Results, rows: list[str]) -> Verdict:
    falls = {
        row: results.mean("1", row, "b=3")
        > results.mean("1", row, "b=2")
        > results.mean("1", row, "b=1")
        for row in rows
    }
    shown = "; ".join(
        f"{row}: {', '.join(number(results.mean('1', row, c)) for c in ('b=3', 'b=2', 'b=1'))}"
        for row in rows
    )
    return judge(
        "Table 1",
        "With outliers decreasing b leads to even better results",
        all(falls.values()) if rows else None,
        shown,
    )


def _similar(results: Results) -> Verdict:
    rows = [row for row in ("F3", "O", "S") if row in results.rows("1")]
    tests = list(product(rows, ("b=3", "b=2", "b=1")))
    sure = holm([p_value(results, row, column, "C_IF5") for row, column in tests])
    apart = [f"{row} {c}" for (row, c), found in zip(tests, sure, strict=True) if found]
    shown = "; ".join(
        f"{row}: {', '.join(f'{_over(results, row, c):.2f}' for c in ('b=3', 'b=2', 'b=1'))}"
        for row in rows
    )
    return judge(
        "Table 1",
        "Without outliers the Huber loss and least squares give similar results on Friedman 3, "
        "Ozone and Servo",
        not apart if len(rows) == 3 and _enough(results, rows) else None,
        f"error over that of least squares {shown}; Wilcoxon, two-sided, Holm over {len(tests)}: "
        f"{', '.join(apart) or 'none'} differ",
    )


def _over(results: Results, row: str, column: str) -> float:
    return results.mean("1", row, column) / results.mean("1", row, "C_IF5")


def _large_benefit(results: Results, rows: list[str]) -> Verdict:
    found = {row: p_value(results, row, "b optimised", "C_IF5") for row in rows}
    better = all(_over(results, row, "b optimised") < 1.0 for row in rows)
    return judge(
        "Table 1",
        "With outliers the benefit of the automatic choice of b over least squares has p < 1e-4",
        better and max(found.values()) < 1e-4 if rows and _enough(results, rows) else None,
        ", ".join(f"{row}: p = {p:.0e}" for row, p in found.items()),
    )


def _enough(results: Results, rows: Sequence[str]) -> bool:
    return all(results.values("1", row, "LOO").size >= REPLICATES for row in rows)


def _optimised(results: Results, rows: list[str]) -> Verdict:
    worse = []
    for row in rows:
        best = min(COLUMNS, key=lambda c: results.mean("1", row, c))
        if p_value(results, row, "b optimised", best) < 0.05:
            worse.append(row)
    return judge(
        "Table 1",
        "Only for Friedman 2 is the automatic choice of b significantly worse than the best choice",
        set(worse) <= {"F2"} if _enough(results, rows) else None,
        f"significantly worse (0.05, each for itself) on: {', '.join(worse) or 'none'}; "
        f"{0.05 * len(rows):.1f} of {len(rows)} would be by chance",
    )
