"""The main figures of a finished search for a notebook (matplotlib)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.report.facts import Facts, Family
from onefit.report.figures import number

Array = NDArray[Any]

__all__ = ["plot_relevance", "plot_search"]

#: columns drawn
DRAWN = 30


def plot_search(search: Any) -> Array:
    """Draw the cross-validation surface of the winner's family and its curve over lam.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted, with a winner.

    Returns
    -------
    array of matplotlib axes
        Surface and curve; the curve alone where there is one gamma or one lam.
    """
    from matplotlib import pyplot

    facts = Facts(search)
    family = facts.families[0]
    both = min(family.index.shape) > 1
    columns = 2 if both else 1
    size = (5.5 * columns, 4.0)
    _, axes = pyplot.subplots(1, columns, figsize=size, layout="constrained", squeeze=False)
    found: Array = axes[0]
    if both:
        _surface(found[0], facts, family)
    _curve(found[-1], facts, family)
    return found


def plot_relevance(found: Any) -> Any:
    """Draw the relevance of columns as bars, with their range over parts of the rows.

    Parameters
    ----------
    found : Relevance

    Returns
    -------
    matplotlib axes
    """
    from matplotlib import pyplot

    top = found.order[:DRAWN][::-1]
    size = (6.0, 1.0 + 0.25 * top.size)
    _, axis = pyplot.subplots(figsize=size, layout="constrained")
    axis.barh([_literal(found.names[f]) for f in top], found.values[top], color="#3b7dd8")
    axis.hlines(range(top.size), found.low[top], found.high[top], color="black")
    axis.set_xlabel("relevance (line: range without each part of the rows)")
    return axis


def _surface(axis: Any, facts: Facts, family: Family) -> None:
    shown = np.where(family.index >= 0, facts.scale(facts.scores[family.index]), np.nan)
    colours = "viridis_r" if facts.scale.sign < 0 else "viridis"
    image = axis.imshow(shown, origin="lower", aspect="auto", cmap=colours)
    axis.figure.colorbar(image, ax=axis, label=_literal(facts.scale.label))
    candidates = np.arange(facts.scores.size)
    marks = (
        ("within one standard error", facts.near, {"marker": "o", "c": "white", "s": 20}),
        ("not exact", ~np.asarray(facts.table["exact"]), {"marker": "x", "c": "tab:orange"}),
        ("chosen", candidates == facts.best, {"marker": "*", "c": "tab:red", "s": 160}),
    )
    for name, wanted, style in marks:
        rows, columns = np.nonzero((family.index >= 0) & wanted[family.index])
        if rows.size:
            edge = {} if style["marker"] == "x" else {"edgecolors": "black", "linewidths": 0.6}
            axis.scatter(columns, rows, label=name, **style, **edge)
    axis.set_xticks(range(len(family.lams)), map(number, family.lams), rotation=60)
    axis.set_yticks(range(len(family.gammas)), map(number, family.gammas))
    axis.set(xlabel="lam", ylabel="gamma", title=_literal(family.name))
    axis.legend(loc="upper right", fontsize="small")


def _curve(axis: Any, facts: Facts, family: Family) -> None:
    row = int(np.argwhere(family.index == facts.best)[0, 0])
    cells = family.index[row]
    lams = np.array(family.lams, dtype=float)[cells >= 0]
    cells = cells[cells >= 0]
    shown = facts.scale(facts.scores[cells])
    axis.errorbar(lams, shown, facts.errors[cells], marker="o", capsize=3, label="± standard error")
    best = cells == facts.best
    axis.plot(lams[best], shown[best], "*", color="tab:red", markersize=14, label="chosen")
    axis.set(xscale="log", xlabel="lam", ylabel=_literal(facts.scale.label))
    axis.legend(fontsize="small")


def _literal(text: str) -> str:
    """Text without matplotlib's formulas."""
    return text.replace("$", r"\$")
