"""How many cells of a paper's tables agree with ours, cell by cell.

A cell can be compared if the paper prints a number with a spread behind it and something was
measured for it here; times, which belong to a machine, are left out. It agrees if our mean lies
within two of the paper's standard deviations (a paper that prints standard errors has these
multiplied by the root of its replicates). That is a mild test: the stricter one, also counted, is
two standard errors of the difference of the two means, which allows for chance alone.

Variants were found by looking at the papers' numbers, and a variant that fits one cell by chance
explains nothing. So a variant counts for a column of a table only if it is *confirmed* there: at
least `ENOUGH` replicates, more of the column's cells agree than in the main reading of the same
rows, and three quarters of them or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from onefit_papers.render import number, table
from onefit_papers.results import MAIN, Cell, Published, Results

__all__ = ["Agreement", "Compared", "Gap", "agreement", "section"]

#: replicates that a variant needs to be confirmed
ENOUGH = 5
#: and the part of its cells that must agree
MOST = 0.75

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Compared:
    """What of a paper can be compared.

    Parameters
    ----------
    tables : tuple of str
        Names of the tables.
    replicates : int
        Behind each number of the paper.
    error : {"sd", "se"}
        What the paper prints behind the sign, as in :func:`onefit_papers.render.beside`.
    """

    tables: tuple[str, ...]
    replicates: int = 10
    error: str = "sd"

    def deviation(self, cell: Cell) -> float:
        """The paper's standard deviation over replicates."""
        return cell.sd * float(np.sqrt(self.replicates) if self.error == "se" else 1.0)


@dataclass(frozen=True)
class Gap:
    """Ours and the paper's in one cell."""

    ours: float
    ours_sd: float
    count: int
    theirs: float
    theirs_sd: float
    theirs_count: int

    @property
    def deviations(self) -> float:
        """Our mean minus the paper's, in the paper's standard deviations."""
        return (self.ours - self.theirs) / self.theirs_sd

    @property
    def agrees(self) -> bool:
        """Whether the two are within two of the paper's standard deviations."""
        return abs(self.deviations) <= 2.0

    @property
    def within_chance(self) -> bool:
        """Whether they are within two standard errors of the difference; never by one replicate."""
        variance = self.theirs_sd**2 / self.theirs_count + self.ours_sd**2 / self.count
        return bool(abs(self.ours - self.theirs) <= 2.0 * np.sqrt(variance))


@dataclass(frozen=True)
class Agreement:
    """All comparable cells of a paper, by reading, and the variants confirmed for a column."""

    gaps: dict[str, dict[Key, Gap]]
    confirmed: set[tuple[str, str, str]]

    @property
    def cells(self) -> list[Key]:
        """The cells that can be compared, in the paper's order."""
        return list(dict.fromkeys(key for own in self.gaps.values() for key in own))

    def main(self, key: Key) -> bool:
        """Whether the main reading agrees."""
        gap = self.gaps[MAIN].get(key)
        return gap is not None and gap.agrees

    def counted(self, key: Key) -> list[Gap]:
        """The main reading and the variants that are confirmed for the cell's column."""
        return [
            own[key]
            for name, own in self.gaps.items()
            if key in own and (name == MAIN or (name, key[0], key[2]) in self.confirmed)
        ]

    def either(self, key: Key) -> bool:
        """Whether the main reading or a confirmed variant agrees."""
        return any(gap.agrees for gap in self.counted(key))

    def counts(self) -> dict[str, int]:
        """Comparable cells, and how many of them agree by which measure."""
        return {
            "cells": len(self.cells),
            "main": sum(map(self.main, self.cells)),
            "either": sum(map(self.either, self.cells)),
            "main by chance": sum(gap.within_chance for gap in self.gaps[MAIN].values()),
            "either by chance": sum(
                any(gap.within_chance for gap in self.counted(key)) for key in self.cells
            ),
        }


def agreement(results: Results, published: Published, compared: Compared) -> Agreement:
    """Compare every cell in every reading."""
    variants = dict.fromkeys(v for name in compared.tables for v in results.variants(name))
    gaps = {
        variant: _gaps(results, published, compared, variant)
        for variant in dict.fromkeys([MAIN, *variants])
    }
    found = Agreement(gaps, set())
    for variant in gaps:
        if variant != MAIN:
            columns = dict.fromkeys((key[0], key[2]) for key in gaps[variant])
            found.confirmed.update(
                (variant, *column) for column in columns if _confirmed(found, variant, *column)
            )
    return found


def _gaps(
    results: Results, published: Published, compared: Compared, variant: str
) -> dict[Key, Gap]:
    found = {}
    for name in compared.tables:
        for (row, column), cell in published.spread_cells(name).items():
            ours = results.values(name, row, column, variant)
            if ours.size:
                own = float(ours.std(ddof=1)) if ours.size > 1 else float("nan")
                theirs = cell.mean, compared.deviation(cell), compared.replicates
                found[name, row, column] = Gap(float(ours.mean()), own, ours.size, *theirs)
    return found


def _confirmed(found: Agreement, variant: str, name: str, column: str) -> bool:
    own = {k: gap for k, gap in found.gaps[variant].items() if (k[0], k[2]) == (name, column)}
    there, here = sum(gap.agrees for gap in own.values()), sum(map(found.main, own))
    replicated = min(gap.count for gap in own.values()) >= ENOUGH
    return replicated and there > here and there >= MOST * len(own)


def section(found: Agreement) -> list[str]:
    """The count, the variants, and every cell that agrees in neither, for a paper's page."""
    title = "## Agreement with the paper, cell by cell"
    if not found.cells:
        return [title, "The paper prints no spread behind its numbers: there is no cell to count."]
    parts = [title, _sentence(found)]
    if len(found.gaps) > 1:
        parts += [
            f"A variant is confirmed for a column if it has {ENOUGH} replicates or more, and if "
            f"more of the column's cells agree than in the main reading, at least {MOST:.0%} of "
            "them. All were chosen after looking at the paper's numbers.",
            _variant_table(found),
        ]
    return [*parts, *_left(found)]


def _sentence(found: Agreement) -> str:
    n = found.counts()
    return (
        f"{n['cells']} cells can be compared. Within two of the paper's standard deviations are "
        f"{n['main']} ({n['main'] / n['cells']:.0%}) in the main reading, {n['either']} "
        f"({n['either'] / n['cells']:.0%}) in the main reading or a confirmed variant. By the "
        f"stricter measure of two standard errors of the difference, {n['main by chance']} and "
        f"{n['either by chance']} agree."
    )


def _variant_table(found: Agreement) -> str:
    lines = []
    for variant, own in found.gaps.items():
        if variant == MAIN:
            continue
        for name, group in groupby(own, key=lambda key: key[0]):
            keys = list(group)
            columns = list(dict.fromkeys(key[2] for key in keys))
            sure = [column for column in columns if (variant, name, column) in found.confirmed]
            agree = sum(own[key].agrees for key in keys), sum(map(found.main, keys))
            shown = ", ".join(sure) or "none"
            lines.append([variant, name, str(len(keys)), *map(str, agree), shown])
    head = ["variant", "table", "cells", "agree there", "agree in the main reading"]
    return table([*head, "confirmed for"], lines)


def _left(found: Agreement) -> list[str]:
    left = [key for key in found.cells if not found.either(key)]
    if not left:
        return ["No cell is left over."]
    lines = []
    for key in left:
        main = found.gaps[MAIN].get(key)
        tried = [
            f"{name}: {_shown(own[key])}"
            for name, own in found.gaps.items()
            if name != MAIN and key in own
        ]
        theirs = next(own[key].theirs for own in found.gaps.values() if key in own)
        shown = _shown(main) if main else "not run"
        lines.append([*key, number(theirs), shown, "; ".join(tried) or "nothing else"])
    head = ["table", "row", "column", "paper", "main reading", "tried"]
    return ["Cells that agree in neither, with what was tried:", table(head, lines)]


def _shown(gap: Gap) -> str:
    return f"{number(gap.ours)} ({gap.deviations:+.1f} sd)"
