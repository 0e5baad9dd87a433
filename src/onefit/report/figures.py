"""The figures of a report as plain data: traces, and the layout of their axes.

The names are a few of Plotly's (type, mode, x, y, error_y, marker, xaxis, ...);
:mod:`onefit.report.svg` draws them. Text is kept as it is and escaped where it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import auc, confusion_matrix, roc_curve

from onefit.report.criteria import Verdict
from onefit.report.facts import Facts, Family

Array = NDArray[Any]
Figure = dict[str, Any]

__all__ = [
    "calibration",
    "confusion",
    "curve",
    "distinct",
    "number",
    "panels",
    "picks",
    "positive",
    "relevance",
    "residuals",
    "roc",
    "scatter",
    "settings",
    "surface",
]

BLUE, ORANGE, GREEN, RED = "#3b7dd8", "#d97706", "#16a34a", "#dc2626"
#: an axis whose largest value is so many times the smallest is logarithmic
WIDE = 30.0
#: bins of a calibration curve
BINS = 10
#: rows drawn in a scatter
MOST_POINTS = 2000
#: points of a curve that can be pointed at
POINTED_AT = 200


def number(value: Any) -> str:
    """A parameter's value in few digits, or its name."""
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)


def distinct(values: Sequence[Any]) -> list[str]:
    """Labels of values, in as many digits as it takes to tell them apart."""
    labels = [number(value) for value in values]
    return labels if len(set(labels)) == len(labels) else [str(value) for value in values]


def settings(params: dict[str, Any]) -> str:
    """A candidate in words."""
    return ", ".join(f"{name}={number(value)}" for name, value in params.items())


def surface(facts: Facts, family: Family) -> Figure:
    """Shown score over gamma and lam; the winner, its rivals and doubtful cells are marked."""
    index = family.index
    shown = facts.scale(facts.scores)
    x, y = distinct(family.lams), distinct(family.gammas)
    cells = [(r, c) for r, c in np.ndindex(index.shape) if index[r, c] >= 0]
    heat = {
        "type": "heatmap",
        "name": facts.scale.label,
        "x": x,
        "y": y,
        "z": [[_finite(shown[i]) if i >= 0 else None for i in row] for row in index],
        "text": [[_about(facts, int(i)) if i >= 0 else "" for i in row] for row in index],
        "colorscale": "Viridis",
        "reversescale": facts.scale.sign < 0,
        "colorbar": True,
    }

    def mark(name: str, wanted: Array, symbol: str, colour: str, size: int) -> Figure:
        found = [(r, c) for r, c in cells if wanted[index[r, c]]]
        return {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [x[c] for _, c in found],
            "y": [y[r] for r, _ in found],
            "marker": {
                "symbol": symbol,
                "size": size,
                "color": colour,
                "line": {"color": "#1b1f24", "width": 1},
            },
        }

    winner = np.arange(shown.size) == facts.best
    doubtful = ~np.asarray(facts.table["exact"])
    traces = [
        heat,
        mark("within one standard error", facts.near & ~winner, "circle", "#ffffff", 8),
        mark("not exact", doubtful, "x", ORANGE, 8),
        mark("chosen", winner, "star", RED, 16),
    ]
    return _figure(
        [one for one in traces if one["type"] == "heatmap" or one["x"]],
        {"title": "lam", "type": "category"},
        {"title": "gamma", "type": "category"},
        height=max(320, 110 + 34 * len(y)),
    )


def _about(facts: Facts, i: int) -> str:
    table = facts.table
    lines = [f"{name} = {number(value)}" for name, value in table["params"][i].items()]
    lines.append(
        f"{facts.scale.label} = {facts.scale(facts.scores[i]):.4g} ± {facts.errors[i]:.2g}"
    )
    exact = "exact" if table["exact"][i] else "not exact"
    lines.append(f"{table['method'][i]}, {exact}, error bound {table['error'][i]:.1g}")
    if table["reason"][i]:
        lines.append(str(table["reason"][i]))
    return "\n".join(str(line) for line in lines)


def curve(facts: Facts, family: Family) -> Figure:
    """Shown score against lam with its standard error, at the gamma of the family's best cell."""
    scores = np.where(family.index >= 0, facts.scores[family.index], np.nan)
    scores = np.where(np.isnan(scores), -np.inf, scores)
    own = np.argwhere(family.index == facts.best)
    row = int(own[0, 0]) if own.size else int(np.unravel_index(scores.argmax(), scores.shape)[0])
    cells = [int(i) for i in family.index[row] if i >= 0]
    lams = [lam for lam, i in zip(family.lams, family.index[row], strict=True) if i >= 0]
    how = facts.search.aggregate
    how = "all held-out rows" if how == "pooled" else f"{how} over splits"
    line: Figure = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{how} ± standard error",
        "x": [float(lam) for lam in lams],
        "y": [_finite(facts.scale(facts.scores[i])) for i in cells],
        "error_y": {"type": "data", "array": [_finite(facts.errors[i]) for i in cells]},
        "text": [_about(facts, i) for i in cells],
        "line": {"color": BLUE},
    }
    traces = [line]
    if facts.best in cells:
        place = cells.index(facts.best)
        star: Figure = {
            "type": "scatter",
            "mode": "markers",
            "name": "chosen",
            "x": [line["x"][place]],
            "y": [line["y"][place]],
            "marker": {"symbol": "star", "size": 15, "color": RED},
        }
        traces.append(star)
    return _figure(
        traces,
        {"title": "lam", "type": "log"},
        {"title": facts.scale.label},
    )


def scatter(y: Array, held: Array, target: str, names: Sequence[Any]) -> Figure:
    """The truth against held-out predictions."""
    ends = [float(min(y.min(), np.nanmin(held))), float(max(y.max(), np.nanmax(held)))]
    equal = {"type": "scatter", "mode": "lines", "name": "truth = prediction", "x": ends, "y": ends}
    style = {"line": {"color": ORANGE, "dash": "dash"}}
    return _figure(
        [_rows(y, held, y, names), equal | style],
        {"title": "held-out prediction"},
        {"title": str(target)},
        height=480,
    )


def residuals(y: Array, held: Array, names: Sequence[Any]) -> Figure:
    """What the held-out predictions miss, against the predictions."""
    ends = [float(np.nanmin(held)), float(np.nanmax(held))]
    zero = {"type": "scatter", "mode": "lines", "name": "no error", "x": ends, "y": [0.0, 0.0]}
    style = {"line": {"color": ORANGE, "dash": "dash"}}
    return _figure(
        [_rows(y - held, held, y, names), zero | style],
        {"title": "held-out prediction"},
        {"title": "truth - prediction"},
    )


def _rows(shown: Array, held: Array, y: Array, names: Sequence[Any]) -> Figure:
    """A point for each row; of very many, for some drawn at random."""
    drawn = np.sort(np.random.default_rng(0).permutation(y.size)[:MOST_POINTS])
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "rows",
        "x": [_finite(value) for value in held[drawn]],
        "y": [_finite(value) for value in shown[drawn]],
        "text": [f"row {names[i]}\ntruth {y[i]:.4g}\nheld out {held[i]:.4g}" for i in drawn],
        "marker": {"color": BLUE, "size": 6, "opacity": 0.6},
    }


def roc(y: Array, held: Array, classes: Array) -> Figure:
    """Receiver operating characteristic of the held-out decision values, one class against rest."""
    columns = held.reshape(y.size, -1)
    wanted = classes[1:] if columns.shape[1] == 1 else classes
    traces: list[Figure] = []
    for one, values in zip(wanted, columns.T, strict=True):
        false, true, _ = roc_curve(y == one, values)
        label = f"{one}: area {auc(false, true):.3f}"
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label,
                "x": false.tolist(),
                "y": true.tolist(),
                "text": [f"{label}\nfalse {a:.3f}, true {b:.3f}"
                         for a, b in zip(false, true, strict=True)]
                if false.size <= POINTED_AT else None,
            }
        )  # fmt: skip
    chance = {"x": [0, 1], "y": [0, 1], "name": "chance"}
    style = {"type": "scatter", "mode": "lines", "line": {"color": "#888888", "dash": "dash"}}
    return _figure(
        [*traces, chance | style],
        {"title": "false positive rate"},
        {"title": "true positive rate"},
        height=480,
    )


def positive(proba: Array, classes: Array) -> tuple[Array, Array]:
    """The classes that are shown, and their columns: of two classes the second alone."""
    return (classes[1:], proba[:, 1:]) if len(classes) == 2 else (classes, proba)


def calibration(y: Array, proba: Array, classes: Array) -> Figure:
    """How often a class occurred among rows that were given about the same probability of it."""
    traces: list[Figure] = []
    for one, p in zip(*(np.asarray(part).T for part in positive(proba, classes)), strict=True):
        happened, said = calibration_curve(y == one, p, n_bins=BINS, strategy="quantile")
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": str(one),
                "x": said.tolist(),
                "y": happened.tolist(),
                "text": [f"{one}\nsaid {a:.3f}, happened {b:.3f}"
                         for a, b in zip(said, happened, strict=True)],
            }
        )  # fmt: skip
    right = {"x": [0, 1], "y": [0, 1], "name": "calibrated"}
    style = {"type": "scatter", "mode": "lines", "line": {"color": "#888888", "dash": "dash"}}
    return _figure(
        [*traces, right | style],
        {"title": "probability that was said"},
        {"title": "share that happened"},
        height=480,
    )


def confusion(y: Array, labels: Array, classes: Array) -> tuple[Figure, Array]:
    """Truth against held-out label as a heat map, and the counts."""
    counts = confusion_matrix(y, labels, labels=classes)
    names = [str(one) for one in classes]
    heat = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": counts.tolist(),
        "text": [[f"truth {a}\nheld-out label {b}\n{int(n)} rows"
                  for b, n in zip(names, row, strict=True)]
                 for a, row in zip(names, counts, strict=True)],
        "cells": counts.astype(str).tolist(),
        "colorscale": "Blues",
    }  # fmt: skip
    rows = {"title": "truth", "type": "category", "autorange": "reversed"}
    return _figure([heat], {"title": "held-out label", "type": "category"}, rows), counts


def relevance(found: Any, columns: Array) -> Figure:
    """Bars of some columns, with the range over parts of the rows."""
    values, low, high = (one[columns].tolist() for one in (found.values, found.low, found.high))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": [str(found.names[f]) for f in columns],
        "marker": {"color": BLUE},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [max(h - v, 0.0) for h, v in zip(high, values, strict=True)],
            "arrayminus": [max(v - w, 0.0) for w, v in zip(low, values, strict=True)],
        },
    }
    height = 120 + 22 * len(values)
    y = {"title": "column", "autorange": "reversed", "type": "category"}
    return _figure([bars], {"title": "relevance"}, y, height)


def picks(facts: Facts, found: list[Verdict]) -> Figure:
    """Held-out error of the candidate that each criterion takes, beside the best there is."""
    names = [one.name for one in found]
    points = {
        "type": "scatter",
        "mode": "markers",
        "name": "its candidate ± standard error",
        "x": [_finite(one.error) for one in found],
        "y": names,
        "error_x": {"type": "data", "array": [_finite(one.standard_error) for one in found]},
        "text": [f"{one.name}\n{_about(facts, one.pick)}" for one in found],
        "marker": {"color": BLUE, "size": 11},
    }
    best = {"name": "best candidate", "x": [found[0].error] * len(names), "y": names}
    style = {"type": "scatter", "mode": "lines", "line": {"color": ORANGE, "dash": "dash"}}
    return _figure(
        [points, best | style],
        {"title": facts.scale.label},
        {"title": "chosen by", "type": "category", "autorange": "reversed"},
        height=150 + 40 * len(names),
    )


def panels(facts: Facts, found: list[Verdict]) -> Figure:
    """Each criterion against lam, on the kernel that it takes; its candidate is marked."""
    traces: list[Figure] = []
    axes: Figure = {}
    for place, one in enumerate(found, start=1):
        suffix = "" if place == 1 else str(place)
        line, star = _panel(facts, one)
        traces += [part | {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"} for part in (line, star)]
        shown = [value for value in line["y"] if value is not None]
        wide = min(shown) > 0 and max(shown) > WIDE * min(shown)
        label = facts.scale.label if place == 1 else one.name
        axes[f"xaxis{suffix}"] = {
            "title": {"text": "lam"},
            "type": "log",
        }
        axes[f"yaxis{suffix}"] = {
            "title": {"text": label},
            "type": "log" if wide else "linear",
        }
    figure = _figure(traces, {"title": ""}, {"title": ""})
    figure["layout"] |= {**axes, "grid": {"columns": 2}, "showlegend": False}
    return figure


def _panel(facts: Facts, one: Verdict) -> tuple[Figure, Figure]:
    family = next(family for family in facts.families if one.pick in family.index)
    row = int(np.argwhere(family.index == one.pick)[0, 0])
    cells = [int(i) for i in family.index[row] if i >= 0]
    lams = [float(lam) for lam, i in zip(family.lams, family.index[row], strict=True) if i >= 0]
    line: Figure = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": one.name,
        "x": lams,
        "y": [_finite(one.values[i]) for i in cells],
        "text": [f"{one.name} = {one.values[i]:.4g}\n{_about(facts, i)}" for i in cells],
        "line": {"color": BLUE},
    }
    place = cells.index(one.pick)
    star: Figure = {
        "type": "scatter",
        "mode": "markers",
        "name": f"taken by {one.name}",
        "x": [lams[place]],
        "y": [line["y"][place]],
        "marker": {"symbol": "star", "size": 15, "color": RED},
    }
    return line, star


def _figure(traces: list[Figure], x: Figure, y: Figure, height: int = 400) -> Figure:
    x, y = ({**axis, "title": {"text": axis["title"]}} for axis in (x, y))
    layout = {
        "xaxis": x,
        "yaxis": y,
        "height": height,
        "showlegend": len(traces) > 1,
    }
    return {"data": traces, "layout": layout}


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
