"""What Information Sciences 2016 says of its figure and tables, judged.

The paper tests ten paired differences one-sided, t > 1.833, and counts every pair of columns on
every set as a test of its own. Here tests are two-sided, and Holm's rule allows for their number.
"""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from onefit.losses import SmoothedHinge
from onefit_papers.claims import MUCH, Verdict, judge, resting_on
from onefit_papers.ins2016_bounds import granularity
from onefit_papers.render import number
from onefit_papers.results import MAIN, Published, Results, middle
from onefit_papers.significance import LEVEL, holm, paired_t

__all__ = ["kinds", "verdicts"]

#: sets on which the paper finds BIF significantly better than GACV
BETTER = {"gaussian": ("breast-cancer", "fourclass"), "polynomial": ("ionosphere",)}
#: replicates that a set needs to be tested, and sets that a claim about all of them needs
ENOUGH = 5
#: what the main reading had to decide
DECIDED = "features mapped to [-1, 1], a prediction of zero an error"


def kinds(results: Results) -> list[str]:
    """The kernels that were run."""
    names = dict.fromkeys(row["table"] for row in results.all if row["variant"] == MAIN)
    return [name.split()[1] for name in names if name.startswith("3 ")]


def verdicts(results: Results, published: Published) -> list[Verdict]:
    """The sentences of sections 3 to 5, in the main reading and in the variants of all sets."""
    found = [_rounded(), _granularities(published)]
    for kind in kinds(results):
        name = f"3 {kind}"
        for variant in results.variants(name):
            own = results if variant == MAIN else results.only(variant)
            rows = [row for row in own.rows(name) if own.values(name, row, "GACV").size >= ENOUGH]
            if variant != MAIN and len(rows) < ENOUGH:
                continue
            where = DECIDED if variant == MAIN else f"{DECIDED}; {variant}"
            judged = [
                _smaller_epsilon(own, name, rows),
                *_close_to_cv(own, kind, rows),
                _against_gacv(own, kind, rows),
            ]
            found += [resting_on(verdict, where) for verdict in judged]
        found.append(resting_on(_times(results, published, f"4 {kind}"), "this machine, liblinear"))
    return found


def _bif(results: Results, name: str) -> list[str]:
    return [column for column in results.columns(name) if column.endswith("-BIF")]


def _cv(results: Results, name: str) -> list[str]:
    return [column for column in results.columns(name) if column.endswith("-CV")]


def _rounded() -> Verdict:
    t = np.linspace(-1.0, 3.0, 4001)
    hinge = np.maximum(1.0 - t, 0.0)
    apart = {
        delta: float(np.abs(SmoothedHinge(delta).value(np.ones_like(t), t) - hinge).max())
        for delta in (2.0, 1.0, 0.1, 0.01)
    }
    return judge(
        "Figure 1",
        "Hinge and Huber loss are almost the same for delta <= 0.1",
        apart[0.1] <= 0.05,
        "largest difference (delta / 4): "
        + ", ".join(f"{number(gap)} at delta = {delta:g}" for delta, gap in apart.items()),
    )


def _granularities(published: Published) -> Verdict:
    accuracies = (0.2, 0.1, 0.05, 0.01)
    printed = [
        tuple(published.cell("1", f"{a:g}", c).mean for c in ("folds", "order")) for a in accuracies
    ]
    same = [granularity(a, 1.0) == pair for a, pair in zip(accuracies, printed, strict=True)]
    evidence = f"{sum(same)} of {len(same)} rows equal the paper's"
    return judge("Table 1", "Folds and order by equation 6", all(same), evidence)


def _smaller_epsilon(results: Results, name: str, rows: list[str]) -> Verdict:
    means = {
        c: float(np.mean([results.mean(name, r, c) for r in results.rows(name)]))
        for c in _bif(results, name)
    }
    falls = all(a >= b for a, b in pairwise(means.values()))
    return judge(
        f"Table {name} (1)",
        "The smaller epsilon, the better",
        falls if len(rows) >= ENOUGH else None,
        "mean error over the sets: " + ", ".join(f"{c} {number(v)}" for c, v in means.items()),
    )


Test = tuple[str, str, str]


def _tested(results: Results, name: str, tests: list[Test]) -> dict[Test, tuple[float, bool]]:
    """For every set and pair of columns the mean gap, and whether it differs from zero."""
    gaps = {test: results.paired(name, *test) for test in tests}
    gaps = {test: gap for test, gap in gaps.items() if gap.size >= ENOUGH}
    sure = holm([paired_t(gap) for gap in gaps.values()])
    return {
        test: (float(gap.mean()), found)
        for (test, gap), found in zip(gaps.items(), sure, strict=True)
    }


def _close_to_cv(results: Results, kind: str, rows: list[str]) -> list[Verdict]:
    """Claims (2a) and (2b): t-CV beside BIF, and for the Gaussian kernel the fewer folds."""
    name = f"3 {kind}"
    few = ["0.2-BIF", "5-CV"] if kind == "gaussian" else _bif(results, name)
    many = ["10-CV", "20-CV"] if kind == "gaussian" else _cv(results, name)
    tests = [(row, one, two) for row, one, two in product(rows, few, many)]
    found = _tested(results, name, tests)
    plain = sum(paired_t(results.paired(name, *test)) < LEVEL for test in found)
    apart = {test: gap for test, (gap, sure) in found.items() if sure}
    shown = "; ".join(f"{r} ({a} - {b}: {gap:+.1f})" for (r, a, b), gap in apart.items())
    enough = len({test[0] for test in found}) >= ENOUGH
    others = [row for row, _, _ in apart if (kind, row) != ("gaussian", "sonar")]
    close = judge(
        f"Table {name} (2)",
        "Errors of epsilon-BIF and t-CV do not differ significantly"
        if kind == "polynomial"
        else "Errors of 0.2-BIF or 5-CV and of 10-CV or 20-CV do not differ significantly on 9 of "
        "10 sets",
        not others if enough else None,
        f"two-sided, Holm over {len(found)} tests: {len(apart)} differ"
        + (f": {shown}" if shown else "")
        + f"; {plain} have p < {LEVEL:g} each for itself, {LEVEL * len(found):.1f} would by chance",
    )
    if kind != "gaussian":
        return [close]
    sonar = {test[1:]: gap for test, gap in apart.items() if test[0] == "sonar"}
    worse = [f"{a} - {b}: {gap:+.1f}" for (a, b), gap in sonar.items() if gap > 0]
    return [
        close,
        judge(
            f"Table {name} (2b)",
            "On sonar 0.2-BIF and 5-CV are significantly worse than 10-CV and 20-CV",
            len(worse) == 4 if "sonar" in rows and enough else None,
            f"significant: {'; '.join(worse) or 'none'} of 4",
        ),
    ]


def _against_gacv(results: Results, kind: str, rows: list[str]) -> Verdict:
    name, named = f"3 {kind}", BETTER[kind]
    tests = [(row, "GACV", column) for row, column in product(rows, _bif(results, name))]
    found = _tested(results, name, tests)
    better = {row for (row, _, _), (gap, sure) in found.items() if sure and gap > 0}
    worse = {row for (row, _, _), (gap, sure) in found.items() if sure and gap < 0}
    return judge(
        f"Table {name} (3)",
        f"BIF is significantly better than GACV on {' and '.join(named)}, significantly worse on "
        "no set",
        set(named) <= better and not worse if len(rows) >= ENOUGH else None,
        f"two-sided, Holm over {len(found)} tests: better on "
        f"{', '.join(sorted(better)) or 'none'}; worse on {', '.join(sorted(worse)) or 'none'}",
    )


def _times(results: Results, published: Published, name: str) -> Verdict:
    rows = results.rows(name)

    def ratio(slow: str, fast: str) -> float:
        return middle([results.median(name, r, slow) / results.median(name, r, fast) for r in rows])

    def printed(slow: str, fast: str) -> float:
        cells = [[published.cell(name, r, c).mean for c in (slow, fast)] for r in rows]
        return middle([a / b for a, b in cells])

    saved, gacv = ratio("5-CV", "0.1-BIF"), ratio("0.1-BIF", "GACV")
    return judge(
        f"Table {name}",
        "BIF takes much less time than CV, GACV less than BIF",
        saved >= MUCH and gacv > 1.0 if np.isfinite(saved + gacv) else None,
        f"medians over the sets: 5-CV takes {number(saved)} times as long as 0.1-BIF (the paper's "
        f"{number(printed('5-CV', '0.1-BIF'))}; much is {MUCH:g} or more) and "
        f"{number(ratio('5-CV', 'exact-5'))} times as long as exact 5-fold; 0.1-BIF takes "
        f"{number(gacv)} times as long as GACV (the paper's {number(printed('0.1-BIF', 'GACV'))})",
    )
