"""What ICML 2014 says of its tables and figure, judged."""

from __future__ import annotations

from itertools import product

import numpy as np

from onefit_papers.claims import MUCH, Verdict, judge, resting_on, untestable
from onefit_papers.data import SHAPES
from onefit_papers.render import number
from onefit_papers.results import MAIN, Published, Results, middle
from onefit_papers.significance import holm, paired_t

__all__ = ["verdicts"]

#: a claim about the data sets is judged if this many of the 20 were run
ENOUGH = 10
#: and one that needs a test if each has so many replicates
REPLICATES = 5
#: where the paper states that BIF-kCV gives the same test errors as kCV
SAME = (
    *("breast-cancer", "diabetes", "australian", "fourclass", "german.numer", "a2a"),
    *("bodyfat", "housing", "eunite2001", "space_ga", "mg", "abalone"),
)
#: what the main reading had to decide
DECIDED = "features mapped to [-1, 1], labels judged by the error rate, our guard for BIF"


def verdicts(results: Results, published: Published) -> list[Verdict]:
    """The sentences of section 6."""
    folds = [c.removeprefix("exact-") for c in results.columns("1") if c.startswith("exact-")]
    sets = results.rows("1")
    errors = [
        *_of_choices(results, sets, folds),
        _no_worse_than_ep(results, published, sets, folds),
        _order_three(results, folds),
    ]
    beside = [
        resting_on(verdict, f"{DECIDED.rpartition(', ')[0]}; {variant}")
        for variant in results.variants("1")
        if variant != MAIN and len(results.rows("1", variant)) >= ENOUGH
        for verdict in _of_choices(results.reading(variant), sets, folds)
    ]
    times = [_cheaper(results, published, folds), _as_fast_as_eloo(results)]
    return [
        *(resting_on(verdict, DECIDED) for verdict in errors),
        *beside,
        *(
            resting_on(verdict, "this machine, ELOO from one eigendecomposition")
            for verdict in times
        ),
        untestable(
            "Table 2 (b)",
            "BIF-5CV and BIF-10CV are faster than EP, BIF-20CV comparable",
            "EP is defined in none of the papers; its column quotes the paper",
        ),
        _limit_is_exact(results, sets, folds),
    ]


def _of_choices(results: Results, sets: list[str], folds: list[str]) -> list[Verdict]:
    """The sentences on test errors, which another guard or scaling may change."""
    return [
        _same_errors(results, sets, folds),
        _twelve_sets(results, sets, folds),
        _like_eloo_on_labels(results, sets, folds),
        _against_eloo(results, sets, folds),
    ]


def _same_errors(results: Results, sets: list[str], folds: list[str]) -> Verdict:
    gaps = []
    for row in sets:
        for k in folds:
            honest = results.values("1", row, f"exact-{k}")
            series = results.values("1", row, f"BIF-{k}")
            spread = max(float(honest.std(ddof=1)) if honest.size > 1 else 0.0, 1e-300)
            gaps.append((abs(float(series.mean() - honest.mean())) / spread, row, k))
    close = [gap for gap in gaps if gap[0] <= 0.5]
    worst = max(gaps)
    return judge(
        "Table 1 (a)",
        "On most data sets BIF-kCV gives almost the same test errors as kCV",
        2 * len(close) > len(gaps) if len(sets) >= ENOUGH else None,
        f"within half a standard deviation of the replicates in {len(close)} of {len(gaps)} cells; "
        f"the largest gap is {number(worst[0])} standard deviations ({worst[1]}, {worst[2]})",
    )


def _twelve_sets(results: Results, sets: list[str], folds: list[str]) -> Verdict:
    cells = [(row, k) for row, k in product(SAME, folds) if row in sets]
    same = [
        (row, k)
        for row, k in cells
        if not np.any(results.paired("1", row, f"BIF-{k}", f"exact-{k}"))
    ]
    others = [f"{row} {k}" for row, k in cells if (row, k) not in same]
    return judge(
        "Table 1 (a), twelve sets",
        "On twelve named sets BIF-kCV gives the same test errors as kCV",
        not others if len(cells) == len(SAME) * len(folds) else None,
        f"equal in every replicate in {len(same)} of {len(cells)} cells"
        + (f"; not on {', '.join(others)}" if others else ""),
    )


def _no_worse_than_ep(
    results: Results, published: Published, sets: list[str], folds: list[str]
) -> Verdict:
    column = f"BIF-{folds[0]}"
    better = [s for s in sets if results.mean("1", s, column) < published.cell("1", s, "EP").mean]
    return judge(
        "Table 1 (b)",
        "BIF-kCV gives much better results than EP on most data sets (16 of 20)",
        5 * len(better) >= 4 * len(sets) if len(sets) >= ENOUGH else None,
        f"our {column} is below the EP that the paper prints on {len(better)} of {len(sets)} "
        "sets; EP itself "
        "was not run",
    )


def _like_eloo_on_labels(results: Results, sets: list[str], folds: list[str]) -> Verdict:
    cells = [(row, k) for row, k in product(sets, folds) if SHAPES[row][2]]
    gaps = {(row, k): results.paired("1", row, f"BIF-{k}", "ELOO") for row, k in cells}
    sure = holm([paired_t(gap) for gap in gaps.values()])
    apart = [
        f"{row} {k} ({gap.mean():+.1f})"
        for ((row, k), gap), found in zip(gaps.items(), sure, strict=True)
        if found
    ]
    size = float(np.median([abs(gap.mean()) for gap in gaps.values()])) if gaps else float("nan")
    enough = len(sets) >= ENOUGH and min((g.size for g in gaps.values()), default=0) >= REPLICATES
    return judge(
        "Table 1 (c), labels",
        "For classification BIF-kCV and ELOO give comparable results",
        not apart if enough else None,
        f"median difference of the mean errors {number(size)} points; two-sided paired t-tests, "
        f"Holm over {len(gaps)}: {', '.join(apart) or 'none'} differ",
    )


def _against_eloo(results: Results, sets: list[str], folds: list[str]) -> Verdict:
    column = f"BIF-{folds[0]}"
    plain = [s for s in sets if not SHAPES[s][2]]
    better = [s for s in plain if results.mean("1", s, column) < results.mean("1", s, "ELOO")]
    return judge(
        "Table 1 (c)",
        "For regression BIF-kCV outperforms ELOO on 8 of 10 data sets",
        5 * len(better) >= 4 * len(plain) if len(sets) >= ENOUGH else None,
        f"{column} is better on {len(better)} of {len(plain)} sets ({', '.join(better) or 'none'})",
    )


def _order_three(results: Results, folds: list[str]) -> Verdict:
    near, far = "figure 1", "figure 1 at the smallest lambda"
    rows = results.rows(near)
    left = [
        results.mean(near, row, f"{k}, order 3") / results.mean(near, row, f"{k}, order 1")
        for row in rows
        for k in folds
    ]
    gone, small = sum(part < 0.01 for part in left), sum(part < 0.05 for part in left)
    slow = [results.mean(far, row, f"{k}, order 3") for row in rows for k in folds]
    return judge(
        "Figure 1",
        "On most data sets the discrepancy between kCV and BIF-kCV is zero from order 3 on",
        2 * gone > len(left) if len(rows) >= 5 else None,
        f"of its size at order 1 less than 1 % is left at order 3 in {gone} of {len(left)} cases "
        f"at kCV's choice, less than 5 % in {small} (verdict: 1 %); below 0.1 % of the variance "
        f"of y it is in {_of_variance(results, folds)}. At the smallest lambda of the grid it "
        f"reaches {number(max(slow, default=float('nan')))}",
    )


def _of_variance(results: Results, folds: list[str]) -> str:
    cells = list(product(results.rows("variance"), folds))
    shares = [
        results.mean("figure 1", row, f"{k}, order 3") / results.mean("variance", row, "y")
        for row, k in cells
    ]
    return f"{sum(share < 1e-3 for share in shares)} of {len(cells)}"


def _cheaper(results: Results, published: Published, folds: list[str]) -> Verdict:
    lines, holds = [], []
    for k in folds:
        rows = [row for row in results.rows("2") if results.values("2", row, k).size]
        gain, exact = (_ratio(results, rows, k, f"{kind}-{k}") for kind in ("BIF", "exact"))
        cells = [[published.cell("2", r, c).mean for c in (k, f"BIF-{k}")] for r in rows]
        theirs = middle([a / b for a, b in cells])
        holds.append(gain >= MUCH)
        lines.append(
            f"{k}: BIF {number(gain)} times faster in the median (the paper's "
            f"{number(theirs)}), exact {number(exact)} times"
        )
    return judge(
        "Table 2 (a)",
        "The time cost of BIF-kCV is much lower than that of kCV",
        all(holds),
        f"much is {MUCH:g} times or more for every k. " + "; ".join(lines),
    )


def _ratio(results: Results, rows: list[str], slow: str, fast: str) -> float:
    """The median over the sets of the ratio of median times."""
    return middle([results.median("2", r, slow) / results.median("2", r, fast) for r in rows])


def _as_fast_as_eloo(results: Results) -> Verdict:
    middle = _ratio(results, results.rows("2"), "BIF-5CV", "ELOO")
    return judge(
        "Table 2 (c)",
        "BIF-5CV and ELOO take similar times",
        1.0 / MUCH <= middle <= MUCH,
        f"BIF-5CV takes {number(middle)} times as long in the median; ELOO here shares one "
        "eigendecomposition among all lambdas",
    )


def _limit_is_exact(results: Results, sets: list[str], folds: list[str]) -> Verdict:
    gaps = [results.paired("1", s, f"limit-{k}", f"exact-{k}") for s in sets for k in folds]
    same = [not gap.any() for gap in gaps if gap.size]
    refits = [
        float(results.values("1", s, k)[0]) == float(results.values("1", s, f"exact-{k}")[0])
        for s in sets
        for k in folds
        if results.values("2", s, k).size
    ]
    return judge(
        "ours",
        "For the squared loss the limit of the series is kCV, and so is the exact engine",
        all(same) and all(refits),
        f"test errors of limit and exact equal in {sum(same)} of {len(same)} cells, of exact and "
        "refits "
        f"in {sum(refits)} of {len(refits)}",
    )
