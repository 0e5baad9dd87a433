"""What ``onefit select`` and ``onefit explain`` do, without any printing.

The choice is made by :class:`onefit.AutoKernelRegressor` or :class:`onefit.AutoKernelClassifier`;
here a file becomes their arguments, and the files that are asked for are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import TimeSeriesSplit

from onefit.auto.estimator import make_auto
from onefit.auto.size import check_rows
from onefit.cli.arguments import ColumnOptions
from onefit.cli.document import selection_document
from onefit.cli.model import save_model
from onefit.cli.progress import progress
from onefit.cli.standard import check_place
from onefit.prepare import TablePreparer
from onefit.tables import Table, is_sparse, read_table

__all__ = ["Outputs", "Selected", "explain_plan", "select_model", "select_table"]

#: what is left of a time limit at least, in minutes, whatever reading took
LEAST_MINUTES = 1e-3


@dataclass(frozen=True)
class Outputs:
    """Files that a selection writes, and the journal; None for those it does not."""

    report: Path | None = None
    model: Path | None = None
    journal: Path | None = None
    command: str | None = None

    def check(self) -> None:
        """Refuse what cannot be written, before any work is done."""
        for path in (self.report, self.model):
            if path is not None:
                check_place(path)
        if self.journal is None or self.journal.is_dir():
            return
        if self.journal.is_file():
            raise ValueError(f"journal {self.journal} is a file, but a journal is a folder")
        check_place(self.journal)

    @property
    def written(self) -> dict[str, str]:
        """Names of the files, by what they hold."""
        files = {"report": self.report, "model": self.model}
        return {what: str(path) for what, path in files.items() if path is not None}

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """Add to Ctrl-C how the selection is resumed."""
        try:
            yield
        except KeyboardInterrupt as error:
            if self.journal is None:
                raise
            message = f"; finished work is in {self.journal}, run the same command to resume"
            raise KeyboardInterrupt(message) from error


@dataclass(frozen=True)
class Selected:
    """A selection that is done.

    Attributes
    ----------
    auto : AutoKernelRegressor or AutoKernelClassifier
        Fitted.
    file, target : str
    rows, columns : int
        Size of the table, without the target.
    seconds : float
        For preparing and searching.
    files : dict of str
        The files written, by what they hold.
    """

    auto: Any = field(repr=False)
    file: str
    target: str
    rows: int
    columns: int
    seconds: float
    files: dict[str, str]

    @property
    def document(self) -> dict[str, Any]:
        """For JSON."""
        data = {"file": self.file, "rows": self.rows, "columns": self.columns}
        data |= {"target": self.target}
        return selection_document(self.auto, data, self.seconds) | {"files": self.files}


def select_model(
    path: Path,
    columns: ColumnOptions,
    parameters: dict[str, Any],
    outputs: Outputs,
    begun: float,
) -> Selected:
    """Select on the rows of a file, and write the files asked for.

    Parameters
    ----------
    path : Path
    columns : ColumnOptions
    parameters : dict
        As :func:`onefit.select` takes them.
    outputs : Outputs
    begun : float
        When the command began, by :func:`time.monotonic`; reading counts for a time limit.
    """
    from onefit.cli.streamed import is_streamed, select_streamed

    outputs.check()
    parameters = parameters | {"journal": outputs.journal}
    if is_streamed(path, parameters.get("approximation")):
        return select_streamed(path, columns, parameters, outputs)
    table = _read(path, columns, parameters)
    if parameters.get("minutes", 0.0) > 0.0:
        spent = (monotonic() - begun) / 60.0
        parameters["minutes"] = max(parameters["minutes"] - spent, LEAST_MINUTES)
    return select_table(table, path.name, columns.dayfirst, parameters, outputs)


def select_table(
    table: Table,
    name: str,
    dayfirst: bool | None,
    parameters: dict[str, Any],
    outputs: Outputs,
) -> Selected:
    """Select on a table, see :func:`select_model`."""
    start = perf_counter()
    auto, y = _auto(table, dayfirst, parameters)
    with outputs.on_interrupt(), progress(auto):
        auto.fit(table.X, y, groups=table.groups, sample_weight=table.sample_weight)
    auto.notes_[:0] = table.notes
    seconds = perf_counter() - start
    if outputs.model is not None:
        save_model(auto, outputs.model, table.target)
    if outputs.report is not None:
        auto.report(
            outputs.report,
            title=f"{name}: {table.target}",
            target=table.target,
            rows=None if is_sparse(table.X) else table.X,
            command=outputs.command,
        )
    rows, columns = table.X.shape
    return Selected(auto, name, table.target, rows, columns, seconds, outputs.written)


def explain_plan(path: Path, columns: ColumnOptions, parameters: dict[str, Any]) -> str:
    """The plan of a selection, in words."""
    table = _read(path, columns, parameters)
    auto, y = _auto(table, columns.dayfirst, parameters)
    found: str = auto.explain(table.X, y, groups=table.groups, sample_weight=table.sample_weight)
    return found


def _read(path: Path, columns: ColumnOptions, parameters: dict[str, Any]) -> Table:
    """The table; too many rows for a kernel matrix are refused before they are read."""
    whole = not ({"approximation", "minutes"} & set(parameters))
    return read_table(
        path,
        columns.target,
        tuple(columns.drop or ()),
        check_rows if whole else None,
        columns.roles,
        columns.dayfirst,
    )


def _auto(table: Table, dayfirst: bool | None, parameters: dict[str, Any]) -> tuple[Any, Any]:
    """The automatic estimator for a table, and the target as it takes it."""
    given = dict(parameters, prepare=TablePreparer(dayfirst=dayfirst))
    if table.ordered and "cv" in given:
        given["cv"] = TimeSeriesSplit(given["cv"])
    return make_auto(table.y, **with_labels(given, table.y))


def with_labels(parameters: dict[str, Any], y: Any) -> dict[str, Any]:
    """Weights by class for the labels of y, which the command line knows as text."""
    weights = parameters.get("class_weight")
    if not isinstance(weights, dict):
        return parameters
    labels = {str(label): label for label in np.unique(y).tolist()}
    return parameters | {
        "class_weight": {labels.get(name, name): weight for name, weight in weights.items()}
    }
