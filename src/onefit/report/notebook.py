"""A finished search as a few lines of HTML, for a notebook: the choice, its worth, the surface."""

from __future__ import annotations

from html import escape
from typing import Any

from onefit.report import figures, svg
from onefit.report.facts import Facts
from onefit.report.words import headline

__all__ = ["as_html"]

#: cells of the largest surface that is drawn; a larger one is left to the report
MOST_CELLS = 400


def as_html(search: Any) -> str:
    """Headline, warning, and the surface of the winner's family (its curve, if it is a line)."""
    facts = Facts(search)
    words = f"<p>{escape(headline(facts))}</p>"
    if facts.verdict:
        words += f"<p><strong>Look twice:</strong> {escape(facts.verdict)}.</p>"
    names = [escape(type(one).__name__) for one in (search, search.estimator)]
    parts = [f"<p><strong>{names[0]}</strong> over {names[1]}, fitted</p>", words]
    return f'<div style="max-width: 34rem">{"".join(parts)}{_drawn(facts)}</div>'


def _drawn(facts: Facts) -> str:
    family = facts.families[0]
    if family.index.size > MOST_CELLS:
        return ""
    both = min(family.index.shape) > 1
    figure = (figures.surface if both else figures.curve)(facts, family)
    (picture,) = svg.draw(figure)
    style = "text { fill: currentColor; font: 12px sans-serif } .grid line { stroke: #8888 }"
    head, _, rest = picture.partition(">")
    return f"{head}><style>{style}</style>{rest}"
