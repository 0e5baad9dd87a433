"""Numbers of pages, from the committed tables ``benchmarks/results/*.csv``.

===============================================  ==========================================
mark on a page                                   replaced by
===============================================  ==========================================
``<!-- value: NAME | EXPRESSION | FORMAT -->``   one number, in a format of Python
``<!-- table: NAME | EXPRESSION -->``            a table of the resulting data frame
``<!-- table: NAME: a, b -->``                   a table of the columns a and b
===============================================  ==========================================

EXPRESSION is Python; ``d`` is the table as a data frame of pandas. A mark that cannot be evaluated
stops the build.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
MARK = re.compile(r"<!--\s+(value|table):\s(.+?)\s-->", re.DOTALL)


def fill(source: list[str], results: Path = RESULTS) -> None:
    """Replace the marks of a page, the only element of the list."""
    source[0] = MARK.sub(lambda mark: piece(mark[1], mark[2], results), source[0])


def piece(kind: str, text: str, results: Path = RESULTS) -> str:
    """Replacement of one mark."""
    name, _, rest = re.sub(r"\s*\n\s*", " ", text).replace(" | ", "|").partition("|")
    name, _, columns = name.partition(": ")
    frame = pd.read_csv(results / f"{name}.csv")
    if kind == "value":
        expression, _, style = rest.rpartition("|")
        return format(evaluate(expression, frame), style)
    chosen = frame[columns.split(", ")] if columns else evaluate(rest, frame)
    page = results / f"{name}.md"
    link = f"\n\n[The whole table](results/{name}.md)." if page.exists() else ""
    return markdown(chosen) + link


def evaluate(expression: str, frame: pd.DataFrame):
    """Value of an expression in the data frame ``d``."""
    return eval(expression, {"pd": pd, "d": frame})


def markdown(frame: pd.DataFrame) -> str:
    """The data frame as a Markdown table, numbers in three digits."""
    rows = [list(map(str, frame.columns)), ["---"] * frame.shape[1]]
    rows += [[brief(cell) for cell in row] for row in frame.itertuples(index=False)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def brief(cell: object) -> str:
    """Three digits of a number, "-" for a missing one, text as it is."""
    if isinstance(cell, float):
        return "-" if cell != cell else f"{cell:.3g}" if abs(cell) < 1000 else f"{cell:.0f}"
    return str(cell)
