"""A selection printed: reasons and notes, a ranked table, and what was found."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from onefit._format import duration
from onefit.cli.document import RANKED
from onefit.cli.run import Selected
from onefit.files import shortened
from onefit.report.facts import Facts
from onefit.report.listing import Listing, comparison, ranking
from onefit.report.words import headline, spent

__all__ = ["show"]


def show(found: Selected) -> None:
    """Print a selection on stdout."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    auto, facts = found.auto, Facts(found.auto.search_)
    console.print(
        f"[bold]{escape(found.file)}[/]: {found.rows:,} rows, {found.columns:,} columns, target "
        f"{escape(shortened(found.target))}"
    )
    for reason in auto.reasons_:
        console.print(f"  {escape(reason)}")
    for note in auto.notes_:
        console.print(f"  [bold]Note[/]: {escape(note)}")
    for table in (ranking(facts, RANKED), comparison(facts)):
        if table is not None:
            console.print()
            console.print(_as_rich(table))
    console.print()
    for line in headline(facts, found.target):
        console.print(escape(line))
    console.print(f"Time: {duration(found.seconds)}. {escape(spent(facts))}")
    for what, path in found.files.items():
        console.print(f"{what} written to {escape(path)}")


def _as_rich(listing: Listing) -> Table:
    table = Table(title=escape(listing.title), title_justify="left")
    for name, numeric in zip(listing.head, listing.numeric, strict=True):
        table.add_column(escape(name), justify="right" if numeric else "left")
    for row in listing.rows:
        table.add_row(*map(escape, row))
    return table
