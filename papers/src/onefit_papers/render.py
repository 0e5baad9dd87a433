"""The page of a paper: what was run, tables with the paper's numbers beside ours, verdicts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import numpy as np
from markdown_it import MarkdownIt

from onefit_papers.claims import Verdict
from onefit_papers.results import MAIN, Published, Results

__all__ = [
    "as_html",
    "beside",
    "header",
    "list_of",
    "means",
    "number",
    "other_readings",
    "table",
    "times_beside",
    "verdict_table",
]


def number(value: float, digits: int = 3) -> str:
    """A number to a few significant digits, "-" for none."""
    if np.isnan(value):
        return "-"
    text = f"{value:#.{digits}g}" if 1e-3 <= abs(value) < 1e4 else f"{value:.{digits - 1}e}"
    return text.rstrip(".") if value else "0"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def list_of(lines: Iterable[str]) -> str:
    """A Markdown list."""
    return "\n".join(f"- {line}" for line in lines)


def beside(
    results: Results,
    published: Published,
    name: str,
    columns: Sequence[str],
    rows: Sequence[str] | None = None,
    error: str = "sd",
) -> str:
    """Ours, the paper's, and their difference in the paper's standard deviations, cell by cell.

    Parameters
    ----------
    results, published : what was measured, what the paper prints
    name : str
        Of the table.
    columns, rows : names
        All measured rows by default. A column that was not measured shows the paper's number alone.
    error : {"sd", "se"}
        What stands behind the sign of the paper: the standard deviation of the replicates, or
        that of their mean.
    """
    lines = []
    for row in results.rows(name) if rows is None else rows:
        cells = [_cell(results, published, name, row, column, error) for column in columns]
        lines.append([row, *cells])
    return table(["", *columns], lines)


def _cell(
    results: Results, published: Published, name: str, row: str, column: str, error: str
) -> str:
    ours, theirs = results.values(name, row, column, MAIN), published.cell(name, row, column)
    parts = []
    if ours.size:
        spread = float(ours.std(ddof=1)) if ours.size > 1 else float("nan")
        spread /= np.sqrt(ours.size) if error == "se" else 1.0
        parts.append(f"**{_pair(float(ours.mean()), spread)}**")
    if not np.isnan(theirs.mean):
        parts.append(_pair(theirs.mean, theirs.sd))
    elif theirs.note:
        parts.append("unreadable")
    if ours.size and theirs.sd > 0:
        parts.append(f"{(float(ours.mean()) - theirs.mean) / theirs.sd:+.1f} {error}")
    return "<br>".join(parts) or "-"


def other_readings(
    results: Results,
    published: Published,
    name: str,
    columns: Sequence[str] | None = None,
    error: str = "sd",
) -> str:
    """Every variant that has a table, as :func:`beside` shows the main reading."""
    parts = []
    for variant in results.variants(name):
        if variant != MAIN:
            own = results.only(variant)
            shown = [c for c in columns or published.columns(name) if c in own.columns(name)]
            parts += [f"### {variant}", beside(own, published, name, shown, error=error)]
    return "\n\n".join(parts) or "None was run."


def times_beside(results: Results, published: Published, name: str, columns: Sequence[str]) -> str:
    """Seconds: our median and minimum over replicates, and the mean that the paper prints.

    No difference is shown, for the paper's machine was another.
    """
    lines = []
    for row in results.rows(name):
        line = [row]
        for column in columns:
            middle, least = results.median(name, row, column), results.least(name, row, column)
            theirs = published.cell(name, row, column).mean
            ours = "" if np.isnan(middle) else f"**{number(middle)}**, {number(least)}"
            line.append("<br>".join(filter(None, [ours, number(theirs).strip("-")])) or "-")
        lines.append(line)
    return table(["", *columns], lines)


def means(results: Results, name: str, variant: str = MAIN) -> str:
    """Means over replicates alone, a line for each column."""
    rows, columns = results.rows(name, variant), results.columns(name, variant)
    lines = [[c, *(number(results.mean(name, r, c, variant)) for r in rows)] for c in columns]
    return table(["", *rows], lines)


def _pair(mean: float, spread: float) -> str:
    return number(mean) if np.isnan(spread) else f"{number(mean)} ± {number(spread, 2)}"


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Claims, verdicts and evidence."""
    return table(
        ["where", "claim", "verdict", "evidence", "rests on"],
        [[v.where, v.claim, f"**{v.verdict}**", v.evidence, v.rests_on] for v in verdicts],
    )


def header(title: str, facts: dict[str, str]) -> str:
    """The top of the page: title, and what made the numbers."""
    return f"# {title}\n\n" + list_of(f"{name}: {value}" for name, value in facts.items())


#: all that a page of tables needs, in either colour scheme and in print
_STYLE = """
:root { color-scheme: light dark; --line: #8888; --shade: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.87rem; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--line); padding: 0.3em 0.6em; text-align: left; }
th, td { vertical-align: top; }
thead th { background: var(--shade); }
tbody td:first-child { font-weight: 600; }
@media print { body { max-width: none; margin: 0; font-size: 9pt; } .wide { overflow: visible; } }
"""
#: the marks of HTML that our Markdown has; everything else in angle brackets is text
_MARKS = ("<br>", "<u>", "</u>")


def as_html(page: str) -> str:
    """A page of ours, in Markdown, as one HTML document that refers to nothing outside it.

    Whatever else than `_MARKS` looks like HTML is escaped.
    """
    body = MarkdownIt("js-default").render(page)
    for mark in _MARKS:
        body = body.replace(html.escape(mark), mark)
    body = body.replace("<table>", '<div class="wide" tabindex="0"><table>')
    body = body.replace("</table>", "</table></div>")
    title = html.escape(page.partition("\n")[0].lstrip("# "))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
