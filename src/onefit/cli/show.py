"""A summary printed: a ranked table, what was chosen and why, how exact, how long."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from onefit.files import shortened

__all__ = ["progress", "show_summary", "waiting"]

#: classes whose shares are printed
SHARES = 6


def show_summary(summary: dict[str, Any], files: dict[str, str]) -> None:
    """Print the summary of a selection on stdout."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    data = summary["data"]
    console.print(
        f"[bold]{escape(data['file'])}[/]: {data['rows']} rows, {data['columns']} columns, "
        f"target {escape(shortened(data['target']))}"
    )
    for reason in summary["reasons"]:
        console.print(f"  {escape(reason)}")
    for note in summary["notes"]:
        console.print(f"  [bold]Note[/]: {escape(note)}")
    console.print()
    console.print(_ranking(summary))
    console.print()
    for line in _findings(summary):
        console.print(line)
    if summary["comparison"]:
        console.print()
        console.print(_comparison(summary))
    for what, path in files.items():
        console.print(f"{what} written to {escape(path)}")


def _ranking(summary: dict[str, Any]) -> Table:
    names = list(dict.fromkeys(name for one in summary["ranking"] for name in one["params"]))
    table = Table(title=f"Best of {summary['candidates']} candidates", title_justify="left")
    table.add_column("rank", justify="right")
    for name in names:
        table.add_column(escape(name), justify="right")
    with_criterion = any("criterion" in one for one in summary["ranking"])
    if with_criterion:
        table.add_column("criterion", justify="right")
    for name in (summary["metric"], "±"):
        table.add_column(name, justify="right")
    table.add_column("method")
    table.add_column("exact")
    for one in summary["ranking"]:
        row = [str(one["rank"])]
        row += [escape(_short(one["params"].get(name, "-"))) for name in names]
        row += [_short(one["criterion"])] if with_criterion else []
        row += [f"{one['error']:.4g}", f"{one['standard_error']:.2g}", one["method"]]
        table.add_row(*row, "yes" if one["exact"] else "no")
    return table


def _comparison(summary: dict[str, Any]) -> Table:
    table = Table(title="What other criteria would take", title_justify="left")
    for name in ("criterion", "takes"):
        table.add_column(name)
    for name in (summary["metric"], "±", "regret", "±"):
        table.add_column(name, justify="right")
    for one in summary["comparison"]:
        numbers = (one["error"], one["standard_error"], one["regret"], one["regret_standard_error"])
        cells = [one["criterion"], _settings(one["params"])]
        digits = ("{:.4g}", "{:.2g}", "{:.2g}", "{:.2g}")
        table.add_row(*map(escape, cells), *map(str.format, digits, numbers))
    return table


def _settings(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in params.items())


def _findings(summary: dict[str, Any]) -> Iterator[str]:
    best = summary["best"]
    low, high = best["interval"]
    yield f"[bold]Chosen[/]: {escape(_settings(best['params']))}"
    yield (
        f"[bold]Expected {summary['metric']}[/]: {best['error']:.4g}, 95% interval "
        f"{low:.4g} to {high:.4g}, from {summary['splits']} splits (the interval allows for the "
        "choice among the candidates)"
    )
    yield from _beside(best)
    if best["exact"]:
        yield (
            f"[bold]Exact[/]: held-out predictions equal those of refitting every split, up to "
            f"rounding (error at most {best['error_bound']:.1g})"
        )
    else:
        yield (
            f"[bold]Approximate[/]: held-out predictions by {best['method']!r} differ from those "
            f"of refitting (error bound {best['error_bound']:.2g})"
        )
    if summary.get("fallback") is not None:
        yield f"[bold]Features[/]: {escape(summary['fallback']['told'])}"
    near = best["candidates_within_one_standard_error"]
    yield f"{near} of {summary['candidates']} candidates are within one standard error of the best"
    if best["edges"]:
        yield f"At the edge of the grid: {' and '.join(best['edges'])}; better ones may lie beyond"
    yield f"[bold]Time[/]: {summary['seconds']:.2f} s{_compared(summary['speed_up'])}"


def _beside(best: dict[str, Any]) -> Iterator[str]:
    """The baseline with R² or shares, and a warning if it is not beaten."""
    if best["baseline"] is None:
        return
    said = "" if best["r2"] is None else f"; R² {best['r2']:.3f}"
    if best["shares"]:
        ranked = sorted(best["shares"].items(), key=lambda one: -one[1])[:SHARES]
        said = f"; shares {', '.join(f'{name} ({share:.1%})' for name, share in ranked)}"
    name = escape(best["baseline_name"])
    yield f"[bold]Baseline[/] ({name}): {best['baseline']:.4g}{escape(shortened(said))}"
    if best["warning"]:
        yield f"[bold]Warning[/]: {escape(best['warning'])}"


def _compared(speed_up: dict[str, Any] | None) -> str:
    if speed_up is None:
        return ""
    return (
        f"; refitting every split would take {speed_up['estimated_ratio']:.1f} times as long as "
        "the search itself (estimated by the cost model, not measured)"
    )


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


class Progressing:
    """A progress bar on stderr, one step a kernel, as a scikit-learn callback."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.first: tuple[float, float] | None = None

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to prepare: the number of kernels comes with the first task."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        if context.task_name == "search":
            self.step = self.bar.add_task("kernels", total=context.max_subtasks)

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> None:
        if context.task_name == "kernel":
            self.first = None
            self.bar.update(self.step, advance=1, description="kernels")

    def on_iteration(self, above: Any) -> None:
        """After a step of method "iterative": how far the residuals left are above their targets.

        Residuals fall by about as much in every step, so that what is left of the largest one, in
        logarithms, tells the time that is left.
        """
        now, left = perf_counter(), float(np.log(max(above.max(), 1.0)))
        if self.first is None or left > self.first[1]:
            self.first = now, left
        begun, whole = self.first
        gone = whole - left
        rest = (now - begun) * left / gone if gone > 0.0 else 0.0
        about = f", about {rest:.0f} s" if rest >= 1.0 else ""
        note = f"kernels ({above.size} problems left in this one{about})"
        self.bar.update(self.step, description=note)

    def on_rows(self, count: int, done: int, total: int) -> None:
        """While rows are streamed: how many of the parts of a pass are done."""
        if not hasattr(self, "step"):
            self.step = self.bar.add_task("rows", total=total)
        self.bar.update(self.step, completed=done, total=total, description=f"pass {count}")

    def teardown(self, estimator: Any, context: Any) -> None:
        """The bar is closed by whoever opened it."""


@contextmanager
def progress(search: Any) -> Iterator[None]:
    """Show the search's progress on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        search.set_callbacks(Progressing(bar))
        try:
            yield
        finally:
            search.set_callbacks()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say on stderr, where that is a terminal, what is being done."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(escape(what)):
        yield
