"""What IEICE 2019 says of its ratios and figure, judged, with Cholesky and with LU."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from onefit_papers.claims import Verdict, judge, resting_on
from onefit_papers.render import number
from onefit_papers.results import MAIN, Published, Results

__all__ = ["LU", "RATIOS", "crossing", "panels", "predicted", "verdicts"]

#: the variant that solves and inverts by LU
LU = "LU"
RATIOS = ("R_L", "R_I", "R_E")
#: medians of times that differ by less than this count as equal
MARGIN = 1.05


def panels(results: Results) -> list[str]:
    """The two kinds of cross-validation."""
    return list(dict.fromkeys(row.split(", ")[0] for row in results.rows("figure 1")))


def predicted(results: Results, panel: str, n: int) -> float:
    """Equation 21 with the ratios measured here."""
    ell = n if panel == "LOO" else int(panel.split("-")[0])
    inverse, eigen = (
        results.median("ratios", "ratio", "R_I"),
        results.median("ratios", "ratio", "R_E"),
    )
    return ell * eigen / (ell * inverse - 1.0)


def crossing(results: Results, panel: str, slow: str, fast: str) -> float:
    """The measured number of lambdas from which on ``fast`` wins; infinity for never."""
    rows = [row for row in results.rows("figure 1") if row.startswith(f"{panel},")]
    wins = [results.median("figure 1", r, fast) < results.median("figure 1", r, slow) for r in rows]
    counts = [int(row.split(", ")[1]) for row in rows]
    for i, count in enumerate(counts):
        if all(wins[i:]):
            return float(count)
    return float("inf")


def verdicts(results: Results, published: Published) -> list[Verdict]:
    """The sentences of sections 3 and 6."""
    found = []
    for variant, how in ((MAIN, "Cholesky"), (LU, "LU")):
        if variant in results.variants("ratios"):
            own = results.reading(variant)
            judged = [_ordered(own), *(_crosses(own, panel) for panel in panels(own))]
            found += [resting_on(verdict, f"{how}, LAPACK on this machine") for verdict in judged]
    return [*found, _same_residuals(results)]


def _ordered(results: Results) -> Verdict:
    ratios = [results.median("ratios", "ratio", name) for name in RATIOS]
    solve, inverse, eigen = ratios
    return judge(
        "section 3",
        "R_L < 1 < R_I < R_E",
        all(MARGIN * a < b for a, b in pairwise((solve, 1.0, inverse, eigen))),
        f"medians {', '.join(number(ratio) for ratio in ratios)}; each must be at least "
        f"{MARGIN - 1:.0%} above the one before",
    )


def _crosses(results: Results, panel: str) -> Verdict:
    expected, seen = predicted(results, panel, 2000), crossing(results, panel, "Fast", "Prop")
    rows = [row for row in results.rows("figure 1") if row.startswith(f"{panel},")]
    counts = sorted(int(row.split(", ")[1]) for row in rows)
    after = [count for count in counts if count > expected]
    near = bool(after) and _steps_apart(counts, seen, float(after[0])) <= 1
    return judge(
        "section 6",
        f"{panel}: the eigendecomposition is faster than An et al. except for few lambdas, "
        "approximately as equation 21 says",
        near if after else None,
        f"predicted beyond {number(expected)}, seen from {seen:g} on (measured at "
        f"{', '.join(map(str, counts))}); block and eigen of this package cross at "
        f"{crossing(results, panel, 'block', 'eigen'):g}",
    )


def _same_residuals(results: Results) -> Verdict:
    worst = max(
        (row["value"] for row in results.all if row["table"] == "agreement"), default=float("nan")
    )
    return judge(
        "equations 14 and 16",
        "Both give the residuals of the refits exactly",
        worst < 1e-8,
        f"largest difference between the algorithms {worst:.1e}",
    )


def _steps_apart(counts: list[int], one: float, two: float) -> int:
    """How many measured points lie between two crossovers."""
    places = [counts.index(int(c)) if np.isfinite(c) else len(counts) for c in (one, two)]
    return abs(places[0] - places[1])
