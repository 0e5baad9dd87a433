"""One self-contained HTML file about a finished search: no request leaves it.

Plotly's script is copied in from the installed package. Every script is named by its hash in the
page's content security policy, so that markup in the data could not run even if it got through the
escaping.
"""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.report.facts import Facts
from onefit.report.sections import Section, sections
from onefit.report.words import headline, methods

Array = NDArray[Any]

__all__ = ["write_report"]


def write_report(
    search: Any,
    path: str | Path,
    *,
    y: Any = None,
    title: str = "Model selection",
    target: str = "target",
) -> Path:
    """Write the report of a fitted search as one HTML file.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted, with a winner. Criteria that :func:`compare_criteria` added are compared.
    path : str or Path
    y : array of shape (n,), default=None
        The targets that the search was fitted to. With them the report compares held-out
        predictions with the truth, and lists the most influential rows.
    title, target : str
        Names of the data and of the target; any text.

    Returns
    -------
    Path
    """
    import jinja2
    from plotly.offline import get_plotlyjs

    facts = Facts(search)
    parts = sections(facts, None if y is None else np.asarray(y), target)
    folder = files("onefit.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(folder.joinpath("page.html").read_text(encoding="utf-8"))
    plotly = get_plotlyjs()
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    page = template.render(
        title=title,
        target=target,
        headline=headline(facts),
        warning=facts.verdict,
        sections=parts,
        figures=_as_script(parts),
        methods=methods(facts),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        style=folder.joinpath("page.css").read_text(encoding="utf-8"),
        plotly=plotly,
        script=script,
        hashes=[_hash(plotly), _hash(script)],
    )
    path = Path(path)
    path.write_text(page, encoding="utf-8")
    return path


def _as_script(parts: list[Section]) -> str:
    """All figures as JSON that is safe inside a script element."""
    figures = {one.anchor: one.figure for one in parts if one.figure is not None}
    text = json.dumps(figures, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
