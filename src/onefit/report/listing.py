"""The tables of a report: the candidates, and what each criterion would choose."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from onefit._format import number, settings, shorten
from onefit.report.criteria import verdicts
from onefit.report.facts import Facts

__all__ = ["Listing", "comparison", "ranking"]

#: what a column of numbers holds
NUMBER = re.compile(r"[-+–]?[\d.,]*(e[-+]\d+)?(\s%| ± .*)?")


@dataclass(frozen=True)
class Listing:
    """A table of texts; folded ones open on a click."""

    title: str
    head: list[str]
    rows: list[list[str]] = field(repr=False)
    folded: bool = False

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers, and are aligned to the right."""
        columns = zip(*self.rows, strict=True)
        return [all(NUMBER.fullmatch(one) for one in column) for column in columns]


def ranking(facts: Facts, most: int) -> Listing:
    """The best candidates, at most so many."""
    table, count = facts.table, facts.scores.size
    names = list(dict.fromkeys(name for params in table["params"] for name in params))
    criterion = ["criterion"] if "criterion" in table else []
    rows = []
    for place, i in enumerate(facts.order[:most], start=1):
        row = [str(place), number(facts.scale(facts.scores[i]), 4), number(facts.errors[i], 2)]
        row += [number(table[name][i], 4) for name in criterion]
        row += [shorten(number(table["params"][i].get(name))) for name in names]
        rows.append([*row, str(table["method"][i]), "yes" if table["exact"][i] else "no"])
    head = ["rank", facts.scale.label, "standard error", *criterion, *names, "method", "exact"]
    title = f"All {count:,} candidates" if count <= most else (
        f"The best {most} of {count:,} candidates"
    )  # fmt: skip
    return Listing(title, head, rows)


def comparison(facts: Facts) -> Listing | None:
    """What each criterion chooses; None if the score is the only one."""
    found = verdicts(facts)
    rows = [
        [one.name, settings(facts.table["params"][one.pick]), number(one.values[one.pick], 4),
         f"{number(one.error, 4)} ± {number(one.standard_error, 2)}",
         f"{number(one.regret, 2)} ± {number(one.regret_error, 2)}"]
        for one in found
    ]  # fmt: skip
    head = ["criterion", "chooses", "its value", facts.scale.label, "regret"]
    return Listing("What each criterion would choose", head, rows) if rows else None
