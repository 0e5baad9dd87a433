"""Numbers and verdicts of the papers, straight from ``../experiments/*/results.csv``.

A page that tells a story has marks where its numbers belong, and these functions fill them; so the
story cannot say what was not measured. What a mark asks for and no run has measured is reported as
missing.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from onefit_papers.agreement import agreement
from onefit_papers.claims import HELD, NOT_HELD, NOT_TESTABLE, Verdict
from onefit_papers.render import number, table
from onefit_papers.results import MAIN, Published, Results, read_csv
from onefit_papers.run import PAPERS

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"
MISSING = "(not measured at this version)"
#: paper and table of times, of which the median counts
TIMES = {("ieice2019", "ratios")}


@cache
def results_of(paper: str, experiments: Path = EXPERIMENTS) -> Results:
    """All measurements of a paper, none if no run is committed."""
    path = experiments / paper / "results.csv"
    return read_csv(path.read_text(encoding="utf-8")) if path.exists() else Results([])


def _module(paper: str) -> Any:
    return import_module(f"onefit_papers.{paper}")


def cell(
    paper: str, name: str, row: str, column: str, variant: str = MAIN, folder: Path = EXPERIMENTS
) -> str:
    """Our mean in a cell, the median of times, and the paper's number if it prints one."""
    results = results_of(paper, folder)
    middle = results.median if (paper, name) in TIMES else results.mean
    ours = middle(name, row, column, variant)
    theirs = Published(paper).cell(name, row, column).mean
    if ours != ours:
        return MISSING
    return number(ours) + (f" (paper {number(theirs)})" if theirs == theirs else "")


def verdicts_of(paper: str, folder: Path = EXPERIMENTS) -> list[Verdict]:
    """The verdicts, by today's rules on the committed measurements."""
    results = results_of(paper, folder)
    return _module(paper).verdicts(results, Published(paper)) if results.all else []


def _judged(paper: str, start: str, setting: str, folder: Path) -> Verdict | None:
    """The first claim that starts so, in a setting that mentions so."""
    found = verdicts_of(paper, folder)
    fitting = (v for v in found if v.claim.startswith(start) and setting in v.rests_on)
    return next(fitting, None)


def verdict(paper: str, start: str, setting: str = "", folder: Path = EXPERIMENTS) -> str:
    """The verdict on a claim."""
    found = _judged(paper, start, setting, folder)
    return f"**{found.verdict}**" if found else MISSING


def evidence(paper: str, start: str, setting: str = "", folder: Path = EXPERIMENTS) -> str:
    """What the verdict on a claim rests on."""
    found = _judged(paper, start, setting, folder)
    return found.evidence if found else MISSING


def tally(verdicts: list[Verdict]) -> dict[str, int]:
    """How many claims held in the main reading, in a variant only, not, or could not be tested."""
    claims: dict[tuple[str, str], list[str]] = {}
    for found in verdicts:
        claims.setdefault((found.where, found.claim), []).append(found.verdict)
    first = [several[0] for several in claims.values()]
    later = [v[0] != HELD and HELD in v for v in claims.values()]
    return {
        "held": first.count(HELD),
        "held in a variant": sum(later),
        "not held": sum(f == NOT_HELD and not x for f, x in zip(first, later, strict=True)),
        "not testable": sum(f == NOT_TESTABLE and not x for f, x in zip(first, later, strict=True)),
    }


def overview(folder: Path = EXPERIMENTS) -> str:
    """One line a paper: claims by verdict, and cells that agree."""
    rows = []
    for paper in sorted(PAPERS, key=lambda name: name[-4:]):  # by year
        results = results_of(paper, folder)
        link = f"[{paper[:-4].upper()} {paper[-4:]}](results/papers/{paper}.md)"
        if not results.all:
            rows.append([link, "not committed at this version", *[""] * 7])
            continue
        claims = [str(n) for n in tally(verdicts_of(paper, folder)).values()]
        counts = agreement(results, Published(paper), _module(paper).COMPARED).counts()
        cells, *agree = counts.values()
        shown = [f"{n} ({n / cells:.0%})" if cells else "-" for n in agree]
        harder = f"{agree[2]}, {agree[3]}" if cells else "-"
        rows.append([link, *claims, str(cells), shown[0], shown[1], harder])
    head = ["paper", "claims held", "held in a variant", "not held", "not testable"]
    return table([*head, "cells", "agree", "or in a variant", "by the stricter measure"], rows)
