"""Progress on stderr, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["progress"]


class Progressing:
    """A progress bar on stderr, one step per kernel, as a scikit-learn callback."""

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
