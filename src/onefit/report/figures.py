"""The figures, each a function that draws on matplotlib axes, for the page and for notebooks.

The colours of :data:`COLOURS` become CSS variables in the SVG, so that a page can show the same
drawing on light and on dark paper.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from io import StringIO
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._format import labels, number, shorten
from onefit.report.facts import Facts, Family

Array = NDArray[Any]

__all__ = [
    "as_svg",
    "draw_confusion",
    "draw_curve",
    "draw_heldout",
    "draw_relevance",
    "draw_reliability",
    "draw_surface",
    "plot_search",
]

INK, GRID, BLUE, ORANGE, RED = "#1b1f24", "#c9ced6", "#3b7dd8", "#d97706", "#dc2626"
COLOURS = {INK: "ink", GRID: "grid", BLUE: "blue", ORANGE: "orange", RED: "red"}
#: of curves beside each other, on light and on dark paper; orange is that of the diagonal
CURVES = (BLUE, "#12a150", "#a855f7", RED, "#0e9aa7", "#b58900")
#: rows drawn in a scatter
MAX_POINTS = 1500
#: columns whose relevance is drawn
MAX_PLOTTED_COLUMNS = 30
#: labels on the axes of a heat map, and cells whose counts are written
MAX_TICKS, MAX_COUNTED_CLASSES = 10, 12
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 11,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "legend.fontsize": 10,
    "legend.framealpha": 0.0,
    "legend.edgecolor": "none",
}


def as_svg(
    draw: Callable[..., None], *given: Any, name: str, size: tuple[float, float] = (5.0, 3.8)
) -> str:
    """A drawing as an SVG element of the width of its parent; ``name`` makes its ids unique."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    out = StringIO()
    with rc_context(STYLE | {"svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the browser has other fonts
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot(), *given)
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=metadata)
    text = out.getvalue().partition("<svg")[2]
    opening, _, text = text.partition(">")
    opening = re.sub(r' (?:width|height)="[^"]*"', " ", opening)
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    for colour, variable in COLOURS.items():
        text = text.replace(colour, f"var(--{variable})")
    return f'<svg aria-hidden="true"{opening}>{text}'


def draw_heldout(axis: Any, y: Array, held: Array, target: str) -> None:
    """Targets against held-out predictions."""
    some = _some(y.size)
    ends = [min(y.min(), np.nanmin(held)), max(y.max(), np.nanmax(held))]
    axis.plot(held[some], y[some], ".", color=BLUE, alpha=0.5, markersize=5, label="rows")
    axis.plot(ends, ends, "--", color=ORANGE, label="target = prediction")
    axis.set(xlabel="held-out prediction", ylabel=_literal(shorten(target, 40)))
    _separate(axis)
    axis.legend()


def draw_confusion(axis: Any, counts: Array, names: Sequence[Any]) -> None:
    """Counts of rows by class and held-out label; colours are shares of the class."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axis.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="none")
    if len(names) <= MAX_COUNTED_CLASSES:
        for (row, column), count in np.ndenumerate(counts):
            dark = shares[row, column] > 0.5
            axis.text(column, row, f"{count:,}", ha="center", va="center",
                      color="white" if dark else "black")  # fmt: skip
    shown = [_literal(shorten(name, 14)) for name in names]
    _ticks(axis.set_xticks, shown, rotation=30 if max(map(len, shown)) > 5 else 0)
    _ticks(axis.set_yticks, shown)
    axis.set(xlabel="held-out label", ylabel="class")


def draw_reliability(axis: Any, curves: Sequence[tuple[str, Array, Array]], what: str) -> None:
    """Observed against predicted shares: (name, predicted, observed) for each curve."""
    axis.plot([0, 1], [0, 1], "--", color=ORANGE, label="calibrated")
    for (name, predicted, observed), colour in zip(curves, cycle(CURVES), strict=False):
        axis.plot(predicted, observed, "o-", ms=4, label=_literal(shorten(name)), color=colour)
    axis.set(xlabel=f"predicted {what}", ylabel="observed share")
    axis.legend()


def draw_surface(axis: Any, facts: Facts, family: Family) -> None:
    """The score over gamma and lam with its best cells; colours end at the baseline's score."""
    shown = np.where(family.index >= 0, facts.scale(facts.scores[family.index]), np.nan)
    colours = "viridis_r" if facts.scale.sign < 0 else "viridis"
    low, high, extend = _limits(facts, shown)
    image = axis.imshow(shown, origin="lower", aspect="auto", cmap=colours, vmin=low, vmax=high,
                        interpolation="none")  # fmt: skip
    bar = axis.figure.colorbar(image, ax=axis, label=_literal(facts.scale.label), extend=extend)
    bar.formatter = _plain
    bar.update_ticks()
    winner = np.arange(facts.scores.size) == facts.best
    marks = (
        ("within one SE", facts.near & ~winner, {"marker": "o", "c": "white", "s": 18}),
        ("not exact", ~np.asarray(facts.table["exact"]), {"marker": "x", "c": ORANGE}),
        ("chosen", winner, {"marker": "*", "c": RED, "s": 160}),
    )
    for name, wanted, style in marks:
        rows, columns = np.nonzero((family.index >= 0) & wanted[family.index])
        if rows.size:
            edge = {} if style["marker"] == "x" else {"edgecolors": "black", "linewidths": 0.6}
            axis.scatter(columns, rows, label=name, **style, **edge)
    if facts.best in family.index:
        _mark_edges(axis, facts, family)
    _ticks(axis.set_xticks, labels(family.lams), rotation=60)
    _ticks(axis.set_yticks, labels(family.gammas))
    axis.set(xlabel="lam", ylabel="gamma")
    _legend_above(axis)


def draw_curve(axis: Any, facts: Facts, family: Family) -> None:
    """The score over lam with its standard error, at the gamma of the family's best candidate."""
    cells = family.index[family.index >= 0]
    best = facts.best if facts.best in cells else int(
        cells[np.argmax(np.nan_to_num(facts.scores[cells], nan=-np.inf))]
    )  # fmt: skip
    lams, row = family.row(best)
    shown = facts.scale(facts.scores[row])
    how = {"color": BLUE, "marker": "o", "ms": 4, "capsize": 3, "label": "± standard error"}
    axis.errorbar(lams, shown, facts.errors[row], **how)
    if best == facts.best:
        place = row.index(best)
        axis.plot(lams[place], shown[place], "*", color=RED, markersize=14, label="chosen")
        if facts.edge_sides.get("lam"):
            axis.axvline(lams[place], color=ORANGE, lw=1, label="edge of the grid")
    low, high = axis.get_ylim()
    if 2 * low - high < facts.baseline < 2 * high - low:
        axis.axhline(facts.baseline, ls=":", color=INK, label="baseline")
    axis.set(xscale="log", xlabel="lam", ylabel=_literal(facts.scale.label))
    axis.yaxis.set_major_formatter(_plain)
    _legend_above(axis)


def draw_relevance(axis: Any, found: Any, columns: Array) -> None:
    """Bars of the relevance of some columns, with the range without each part of the rows."""
    top = columns[::-1]
    places = np.arange(top.size)
    axis.barh(places, found.values[top], color=BLUE)
    axis.hlines(places, found.low[top], found.high[top], color=INK)
    axis.set_yticks(places, [_literal(shorten(found.names[f])) for f in top])
    axis.set_xlabel("relevance (line: range)")
    axis.locator_params(axis="x", nbins=5)


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


def _limits(facts: Facts, shown: Array) -> tuple[float, float, str]:
    """The colours end where a candidate is no better than the baseline."""
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    if low < facts.baseline < high:
        return (low, facts.baseline, "max") if facts.scale.sign < 0 else (
            facts.baseline, high, "min")  # fmt: skip
    return low, high, "neither"


def _mark_edges(axis: Any, facts: Facts, family: Family) -> None:
    """A thick line where the chosen value is the last of its grid."""
    ends = {"lam": (-0.5, len(family.lams) - 0.5), "gamma": (-0.5, len(family.gammas) - 0.5)}
    for name, side in facts.edge_sides.items():
        line = axis.axvline if name == "lam" else axis.axhline
        line(ends[name][side == "largest"], color=ORANGE, lw=6, solid_capstyle="butt",
             label=f"edge: {side} {name}")  # fmt: skip


def _legend_above(axis: Any) -> None:
    if axis.get_legend_handles_labels()[0]:
        axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.01), ncols=2, borderaxespad=0.0,
                    columnspacing=1.2, handlelength=1.2, handletextpad=0.5)  # fmt: skip


def _ticks(put: Callable[..., Any], names: list[str], **style: Any) -> None:
    """Put at most ten labels, evenly spaced."""
    step = -(-len(names) // MAX_TICKS)
    put(range(0, len(names), step), names[::step], **style)


def _separate(axis: Any) -> None:
    """Thousands separators on both axes, few enough ticks for a phone."""
    for one in (axis.xaxis, axis.yaxis):
        one.set_major_formatter(_plain)
    axis.locator_params(nbins=4)


def _plain(value: float, _: Any = None) -> str:
    return number(round(value, 12), 4)


def _some(n: int) -> Array:
    """All rows; of very many, some drawn at random."""
    return np.sort(np.random.default_rng(0).permutation(n)[:MAX_POINTS])


def _literal(text: str) -> str:
    """Text without matplotlib's formulas."""
    return str(text).replace("$", r"\$")
