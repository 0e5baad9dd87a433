"""One self-contained HTML file about a finished search: no request leaves it.

Figures are drawn as SVG (:mod:`onefit.report.svg`); a short script lets them answer to the mouse,
and sorts, filters and saves tables. The script is named by its hash in the page's content security
policy, so that markup in the data could not run even if it got through the escaping.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.report import svg
from onefit.report.facts import Facts
from onefit.report.sections import sections
from onefit.report.summary import again, summary
from onefit.report.words import headline, methods

Array = NDArray[Any]

__all__ = ["render", "write_report"]

#: rows of a table that are seen before "show all" is asked for
SEEN = 12


def write_report(
    search: Any,
    path: str | Path,
    *,
    y: Any = None,
    title: str = "Model selection",
    target: str = "target",
    rows: Any = None,
    about: Mapping[str, str] | None = None,
    command: str | None = None,
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
    rows : DataFrame of n rows, default=None
        The features as the reader knows them. Influential rows are then shown by their index and
        values, not by their number alone.
    about : dict of str, default=None
        What else the summary should say of the data: missing values, preprocessing, ...
    command : str, default=None
        The command that made the search, for those who want to run it again.

    Returns
    -------
    Path
    """
    facts = Facts(search)
    y = None if y is None else np.asarray(y)
    if rows is not None and not hasattr(rows, "iloc"):
        raise TypeError(f"rows must be a pandas DataFrame, got {type(rows).__name__}")
    if rows is not None and y is not None and len(rows) != len(y):
        raise ValueError(f"rows has {len(rows)} rows and y has {len(y)}; they must be as many")
    page = render(
        title=title,
        headline=headline(facts),
        warning=facts.verdict,
        summary=summary(facts, {"target": target} | dict(about or {})),
        sections=sections(facts, y, target, rows),
        again=again(facts, command),
        methods=methods(facts),
    )
    path = Path(path)
    path.write_text(page, encoding="utf-8")
    return path


def render(**parts: Any) -> str:
    """The page of a title, a headline, a summary and sections."""
    import jinja2

    folder = files("onefit.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.globals |= {"draw": svg.draw, "legend": svg.legend, "seen": SEEN}
    template = environment.from_string(folder.joinpath("page.html").read_text(encoding="utf-8"))
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    return template.render(
        **parts,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        style=folder.joinpath("page.css").read_text(encoding="utf-8"),
        script=script,
        hash=_hash(script),
    )


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
