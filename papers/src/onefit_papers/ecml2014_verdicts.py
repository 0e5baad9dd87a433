"""What ECML PKDD 2014 says of its table and figure, judged."""

from __future__ import annotations

import numpy as np

from onefit_papers.claims import Verdict, judge, resting_on
from onefit_papers.render import number
from onefit_papers.results import MAIN, Published, Results

__all__ = ["compare", "tables", "verdicts"]

#: a range of the mean test error, in points, that is "not very sensitive"
CALM = 2.0


def tables(results: Results) -> list[str]:
    """The four parts of Table 1."""
    return list(dict.fromkeys(row["table"] for row in results.all if row["table"].startswith("1 ")))


def compare(results: Results, name: str, one: str, two: str) -> tuple[int, int, int]:
    """On how many sets the first column is better, equal, worse."""
    rows = results.rows(name)
    gaps = [results.mean(name, row, one) - results.mean(name, row, two) for row in rows]
    return sum(g < 0 for g in gaps), sum(g == 0 for g in gaps), sum(g > 0 for g in gaps)


def verdicts(results: Results, published: Published) -> list[Verdict]:
    """The sentences of sections 6.1 and 6.2, and those on k-KS with the other losses inside CV."""
    found = [*_of_table(results), _eta_verdict(results)]
    for variant in results.variants("figure 1"):
        if variant != MAIN:
            own = results.reading(variant)
            judged = [_of_table(own)[0], _eta_verdict(own)]
            found += [resting_on(verdict, variant) for verdict in judged]
    return found


def _of_table(results: Results) -> list[Verdict]:
    names = tables(results)
    size = len(results.rows(names[0]))
    run = size >= 5

    def counted(one: str, two: str) -> list[tuple[int, int, int]]:
        return [compare(results, name, one, two) for name in names]

    def shown(counts: list[tuple[int, int, int]]) -> str:
        return "; ".join(
            f"lambda {name.split('=')[1]}: {b} better, {e} equal, {w} worse"
            for name, (b, e, w) in zip(names, counts, strict=True)
        )

    against_cv = counted("5-KS", "5-CV") + counted("10-KS", "10-CV")
    against_br = counted("5-KS", "BR") + counted("10-KS", "BR")
    br = counted("BR", "ELOO")
    five = counted("5-KS", "10-KS")
    gaps = [
        abs(results.mean(name, row, "5-KS") - results.mean(name, row, "10-KS"))
        for name in names
        for row in results.rows(name)
    ]
    return [
        judge(
            "Table 1 (a)",
            "For each lambda k-KS outperforms k-CV on 8 or more of 9 sets",
            all(9 * b >= 8 * size for b, _, _ in against_cv) if run else None,
            f"5 folds: {shown(against_cv[: len(names)])}. 10 folds: "
            f"{shown(against_cv[len(names) :])}",
        ),
        judge(
            "Table 1 (b)",
            "k-KS is better than BR on most sets (6 or more of 9)",
            all(9 * b >= 6 * size for b, _, _ in against_br) if run else None,
            f"5 folds: {shown(against_br[: len(names)])}. 10 folds: "
            f"{shown(against_br[len(names) :])}",
        ),
        judge(
            "Table 1 (c)",
            "BR is comparable or better than ELOO on most sets",
            all(2 * (b + e) > size for b, e, _ in br) if run else None,
            shown(br),
        ),
        judge(
            "Table 1 (d)",
            "5-KS and 10-KS are comparable",
            float(np.median(gaps)) < 1.0 if run else None,
            f"median difference of mean errors {number(float(np.median(gaps)))} points; "
            f"{shown(five)}",
        ),
    ]


def _eta_verdict(results: Results) -> Verdict:
    reach = {}
    for row in results.rows("figure 1"):
        inside = [
            results.mean("figure 1", row, c)
            for c in results.columns("figure 1")
            if -2 <= int(c.split("^")[1]) <= 5
        ]
        reach[row] = max(inside) - min(inside)
    calm = [row for row, value in reach.items() if value <= CALM]
    return judge(
        "Figure 1",
        "Unseen errors are not very sensitive to eta between 2^-2 and 2^5 on most sets",
        2 * len(calm) > len(reach) if len(reach) >= 5 else None,
        f"range of the mean error over that interval, in points (calm: {CALM:g} or less): "
        + ", ".join(f"{row} {number(value, 2)}" for row, value in reach.items()),
    )
