"""One part of a report, as plain data for the template."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Section"]


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Attributes
    ----------
    anchor : str
        Name of its element.
    title, text : str
    figure : dict or None
        What :func:`onefit.report.svg.draw` draws.
    alt : str
        What the figure shows, for those who do not see it.
    head, rows : lists
        A table.
    """

    anchor: str
    title: str
    text: str = ""
    figure: dict[str, Any] | None = None
    alt: str = ""
    head: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
