"""A fitted search as a few lines of HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from onefit.report.facts import Facts
from onefit.report.figures import as_svg, draw_curve, draw_surface
from onefit.report.words import headline

__all__ = ["as_html"]

#: a larger surface is left to the report
MAX_CELLS = 400
#: the colours of figures, whatever the theme of the notebook
STYLE = "--ink:currentColor;--grid:#8888;--blue:#3b7dd8;--orange:#d97706;--red:#dc2626"


def as_html(search: Any, further: Sequence[str] = ()) -> str:
    """Headline, further lines, and the surface of the winner's family, or its curve over lam."""
    facts = Facts(search)
    names = " over ".join(escape(type(one).__name__) for one in (search, search.estimator))
    parts = [f"<p><strong>{names}, fitted</strong></p>"]
    parts += [f"<p>{escape(line)}</p>" for line in [*headline(facts), *further]]
    return f'<div style="max-width:34rem;{STYLE}">{"".join(parts)}{_drawn(facts)}</div>'


def _drawn(facts: Facts) -> str:
    """Empty without matplotlib."""
    family = facts.families[0]
    if family.index.size > MAX_CELLS:
        return ""
    draw = draw_surface if min(family.index.shape) > 1 else draw_curve
    try:
        return as_svg(draw, facts, family, name="notebook")
    except ModuleNotFoundError:
        return ""
