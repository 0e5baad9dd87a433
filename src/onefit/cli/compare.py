"""``onefit compare``: two selections side by side, printed or as one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from onefit.cli.errors import clear_errors

__all__ = ["compare"]

#: what a document of ``onefit select --format json`` has
NEEDED = ("data", "task", "metric", "best", "ranking", "reasons", "candidates", "splits")

First = Annotated[
    Path, typer.Argument(help="What onefit select --format json printed.", show_default=False)
]
Second = Annotated[Path, typer.Argument(help="The same of another run.", show_default=False)]
Report = Annotated[Path | None, typer.Option(help="HTML page to write.", show_default=False)]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where an error arose.")]


def compare(
    first: First, second: Second, report: Report = None, traceback: Traceback = False
) -> None:
    """Set two selections side by side, and say which one errs less.

    Runs with the same rows, folds and seed are compared split by split.
    """
    with clear_errors(traceback):
        from onefit.report.comparison import side_by_side, verdict, write_comparison

        a, b = _read(first), _read(second)
        names = _names(first, second)
        _print_table(side_by_side(a, b), names)
        typer.echo(f"\n{verdict(a, b)}")
        if report is not None:
            from onefit.cli.standard import check_place

            check_place(report)
            typer.echo(f"report written to {write_comparison(a, b, names, report)}")


def _read(path: Path) -> dict[str, Any]:
    from onefit.files import DataError

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path.name} is not JSON: {error}") from None
    missing = [name for name in NEEDED if not isinstance(found, dict) or name not in found]
    if missing:
        raise DataError(
            f"{path.name} has no {missing[0]!r}; give what 'onefit select --format json' printed"
        )
    return dict(found)


def _names(first: Path, second: Path) -> tuple[str, str]:
    if first.stem != second.stem:
        return first.stem, second.stem
    return str(first), str(second)


def _print_table(rows: list[list[str]], names: tuple[str, str]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("", *map(escape, names))
    for row in rows:
        table.add_row(*map(escape, row))
    Console(highlight=False).print(table)
