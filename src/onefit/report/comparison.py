"""Two selections in one page: what they were given, what they chose, and which one errs less.

A selection here is the JSON document that ``onefit select --format json`` prints. Errors can be
compared if both predicted the same target by the same metric. Where both also used the same
splits, their errors are compared split by split: the difference is tested by Student's t with the
variance enlarged for training parts that overlap (Nadeau and Bengio, Machine Learning 52, 2003).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from onefit.report.figures import settings
from onefit.report.html import render
from onefit.report.section import Section

__all__ = ["differences", "side_by_side", "verdict", "write_comparison"]

Document = dict[str, Any]
#: what has to be equal for errors to be compared, and where it stands in a document
SAME = {
    "target": ("data", "target"),
    "number of rows": ("data", "rows"),
    "task": ("task",),
    "metric": ("metric",),
}


def differences(a: Document, b: Document) -> list[str]:
    """What keeps the errors of the two from being compared, in words."""
    found = []
    for name, path in SAME.items():
        one, other = _at(a, path), _at(b, path)
        if one != other:
            found.append(f"the {name} is {one} in the first and {other} in the second")
    return found


def verdict(a: Document, b: Document) -> str:
    """Which of the two errs less, and how sure that is."""
    hindrances = differences(a, b)
    if hindrances:
        return f"The errors cannot be compared: {'; '.join(hindrances)}."
    one, other = a["best"]["error"], b["best"]["error"]
    if one is None or other is None:
        return "One of the two has no score."
    said = f"{a['metric']}: {one:.4g} in the first, {other:.4g} in the second"
    p = _p_value(a, b)
    if p is None:
        return f"{said}. The splits differ, so that the difference is not tested."
    sure = "more than chance explains" if p < 0.05 else "no more than chance would explain"
    return f"{said}. Split by split, the difference is {sure} (p = {p:.2g})."


def _p_value(a: Document, b: Document) -> float | None:
    """Of equal errors; None where the splits are not known to be the same."""
    one, other = (doc["best"].get("errors_of_splits") for doc in (a, b))
    seeds = [doc["data"].get("seed") for doc in (a, b)]
    if not one or not other or len(one) != len(other) or None in (*seeds, *one, *other):
        return None
    if seeds[0] != seeds[1] or len(one) < 2:
        return None
    gap = np.subtract(one, other)
    if np.allclose(gap, 0.0):
        return 1.0
    scale = np.sqrt((1.0 / gap.size + 1.0 / (gap.size - 1)) * gap.var(ddof=1))
    return float(2.0 * student.sf(abs(gap.mean()) / scale, gap.size - 1))


def side_by_side(a: Document, b: Document) -> list[list[str]]:
    """Rows of a table: a name and the two values."""
    rows = []
    for name, path in {
        "file": ("data", "file"),
        "rows": ("data", "rows"),
        "columns": ("data", "columns"),
        "target": ("data", "target"),
        "metric": ("metric",),
        "chosen": ("best", "params"),
        "error": ("best", "error"),
        "standard error": ("best", "standard_error"),
        "95% interval": ("best", "interval"),
        "baseline": ("best", "baseline"),
        "R²": ("best", "r2"),
        "within one standard error": ("best", "candidates_within_one_standard_error"),
        "candidates": ("candidates",),
        "splits": ("splits",),
        "exact": ("best", "exact"),
        "seconds": ("seconds",),
        "onefit": ("onefit",),
    }.items():
        rows.append([name, *(_shown(_at(doc, path)) for doc in (a, b))])
    return rows


def _at(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return settings(value)
    if isinstance(value, list):
        return " to ".join(_shown(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write_comparison(a: Document, b: Document, names: tuple[str, str], path: str | Path) -> Path:
    """Write the page.

    Parameters
    ----------
    a, b : dict
        What ``onefit select --format json`` printed.
    names : two str
        What the two are called on the page.
    path : str or Path
    """
    rows = side_by_side(a, b)
    sections = [
        Section("numbers", "Side by side", head=["", *names], rows=rows),
        *_intervals(a, b, names),
        *(_candidates(doc, name, place) for place, (doc, name) in enumerate(zip((a, b), names,
                                                                            strict=True))),
        *(_reasons(doc, name, place) for place, (doc, name) in enumerate(zip((a, b), names,
                                                                         strict=True))),
    ]  # fmt: skip
    changed = [(name, f"{one} → {other}") for name, one, other in rows if one != other]
    page = render(
        title=f"{names[0]} and {names[1]}",
        headline=verdict(a, b),
        warning="",
        summary=changed or [("differences", "none")],
        sections=sections,
        again=[],
        methods="",
    )
    path = Path(path)
    path.write_text(page, encoding="utf-8")
    return path


def _intervals(a: Document, b: Document, names: tuple[str, str]) -> list[Section]:
    """Errors with their intervals, where they can be compared."""
    found = [doc["best"] for doc in (a, b)]
    if differences(a, b) or any(one["error"] is None or None in one["interval"] for one in found):
        return []
    labels = [f"{place}. {name}" for place, name in enumerate(names, start=1)]
    points = {
        "type": "scatter",
        "mode": "markers",
        "name": "error with its 95% interval",
        "x": [one["error"] for one in found],
        "y": labels,
        "error_x": {
            "array": [max(one["interval"][1] - one["error"], 0.0) for one in found],
            "arrayminus": [max(one["error"] - one["interval"][0], 0.0) for one in found],
        },
        "text": [f"{one['error']:.4g}\n{_shown(one['interval'])}" for one in found],
        "marker": {"color": "#3b7dd8", "size": 11},
    }
    layout = {
        "xaxis": {"title": {"text": a["metric"]}},
        "yaxis": {"title": {"text": ""}, "type": "category", "autorange": "reversed"},
        "height": 220,
    }
    alt = "; ".join(
        f"{label}: {one['error']:.4g}, 95% interval {_shown(one['interval'])}"
        for label, one in zip(labels, found, strict=True)
    )
    figure = {"data": [points], "layout": layout}
    return [Section("errors", f"Expected {a['metric']}", "", figure, alt)]


def _candidates(document: Document, name: str, place: int) -> Section:
    rows = [
        [str(one["rank"]), _shown(one["error"]), _shown(one["standard_error"]),
         settings(one["params"]), one["method"]]
        for one in document["ranking"]
    ]  # fmt: skip
    head = ["rank", document["metric"], "±", "settings", "method"]
    return Section(f"ranking-{place}", f"Best candidates of {name}", head=head, rows=rows)


def _reasons(document: Document, name: str, place: int) -> Section:
    text = " ".join(f"{one[:1].upper()}{one[1:]}." for one in document["reasons"])
    return Section(f"reasons-{place}", f"How {name} was set up", text)
