"""A selection printed: reasons and notes, a ranked table, and what was found."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from onefit.auto.findings import findings, number
from onefit.cli.document import RANKED
from onefit.cli.run import Selected
from onefit.files import shortened
from onefit.report.criteria import verdicts
from onefit.report.facts import Facts

__all__ = ["show"]


def show(found: Selected) -> None:
    """Print a selection on stdout."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    auto, facts = found.auto, Facts(found.auto.search_)
    console.print(
        f"[bold]{escape(found.file)}[/]: {found.rows} rows, {found.columns} columns, target "
        f"{escape(shortened(found.target))}"
    )
    for reason in auto.reasons_:
        console.print(f"  {escape(reason)}")
    for note in auto.notes_:
        console.print(f"  [bold]Note[/]: {escape(note)}")
    console.print()
    console.print(_ranking(facts))
    console.print()
    for line in findings(auto):
        console.print(escape(line))
    console.print(f"Time: {found.seconds:.2f} s{_compared(facts)}")
    if verdicts(facts):
        console.print()
        console.print(_comparison(facts))
    for what, path in found.files.items():
        console.print(f"{what} written to {escape(path)}")


def _ranking(facts: Facts) -> Table:
    results, order = facts.table, facts.order[:RANKED]
    params = [results["params"][i] for i in order]
    names = list(dict.fromkeys(name for one in params for name in one))
    table = Table(title=f"Best of {len(results['params'])} candidates", title_justify="left")
    table.add_column("rank", justify="right")
    numbers = [*names, *(["criterion"] if "criterion" in results else []), facts.scale.label, "±"]
    for name in numbers:
        table.add_column(escape(name), justify="right")
    table.add_column("method")
    table.add_column("exact")
    for place, i in enumerate(order):
        row = [str(place + 1), *(escape(number(params[place].get(name, "-"))) for name in names)]
        row += [number(float(results["criterion"][i]))] if "criterion" in results else []
        row += [f"{facts.scale(facts.scores[i]):.4g}", f"{facts.errors[i]:.2g}"]
        table.add_row(*row, results["method"][i], "yes" if results["exact"][i] else "no")
    return table


def _comparison(facts: Facts) -> Table:
    table = Table(title="What other criteria would choose", title_justify="left")
    for name in ("criterion", "chooses"):
        table.add_column(name)
    for name in (facts.scale.label, "±", "regret", "±"):
        table.add_column(name, justify="right")
    for one in verdicts(facts):
        numbers = (one.error, one.standard_error, one.regret, one.regret_error)
        digits = ("{:.4g}", "{:.2g}", "{:.2g}", "{:.2g}")
        chosen = _settings(facts.table["params"][one.pick])
        table.add_row(escape(one.name), escape(chosen), *map(str.format, digits, numbers))
    return table


def _settings(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={number(value)}" for name, value in params.items())


def _compared(facts: Facts) -> str:
    if facts.speed_up is None:
        return ""
    return (
        f"; refitting every split would take {facts.speed_up.ratio:.1f} times as long as the "
        "search itself (estimated by the cost model, not measured)"
    )
