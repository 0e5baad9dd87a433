"""The main figures of a finished search for a notebook (matplotlib)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from onefit.report.facts import Facts
from onefit.report.figures import draw_curve, draw_relevance, draw_surface

Array = NDArray[Any]

__all__ = ["plot_relevance", "plot_search"]

#: columns drawn
MAX_PLOTTED_COLUMNS = 30


def plot_search(search: Any) -> Array:
    """Draw the cross-validation surface of the winner's family and its curve over lam.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted, with a winner.

    Returns
    -------
    array of matplotlib axes
        Surface and curve; the curve alone if there is one gamma or one lam.
    """
    from matplotlib import pyplot

    facts = Facts(search)
    family = facts.families[0]
    drawn = (draw_surface, draw_curve) if min(family.index.shape) > 1 else (draw_curve,)
    size = (5.5 * len(drawn), 4.0)
    _, axes = pyplot.subplots(1, len(drawn), figsize=size, layout="constrained", squeeze=False)
    found: Array = axes[0]
    for draw, axis in zip(drawn, found, strict=True):
        draw(axis, facts, family)
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

    top = found.order[:MAX_PLOTTED_COLUMNS]
    _, axis = pyplot.subplots(figsize=(6.0, 1.0 + 0.25 * top.size), layout="constrained")
    draw_relevance(axis, found, top)
    return axis
