"""From a file to a fitted selection, and the files that are asked for.

The choice is made by :class:`onefit.AutoKernelRegressor` or :class:`onefit.AutoKernelClassifier`;
here a file becomes their arguments.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.model_selection import TimeSeriesSplit

from onefit.auto.estimator import make_auto
from onefit.auto.planning import check_rows
from onefit.cli.model import save_model
from onefit.cli.output import Outputs
from onefit.cli.progress import progress
from onefit.prepare import TablePreparer
from onefit.tables import Roles, Table, read_table

__all__ = ["Selected", "auto_for", "explain_file", "select_file", "select_table", "write_files"]

#: smallest time limit in minutes that remains after reading
MIN_MINUTES = 1e-3


@dataclass(frozen=True)
class Selected:
    """A selection that is done.

    Attributes
    ----------
    auto : AutoKernelRegressor or AutoKernelClassifier
        Fitted.
    data : dict
        Names of the "file" and the "target"; numbers of "rows" and of "columns" without the target.
    seconds : float
        For preparing and searching.
    files : dict of str to Path
        The files written, by what they hold.
    """

    auto: Any = field(repr=False)
    data: dict[str, Any]
    seconds: float
    files: dict[str, Path]


def write_files(
    auto: Any, data: dict[str, Any], seconds: float, outputs: Outputs, notes: list[str],
    rows: Any = None,
) -> Selected:  # fmt: skip
    """Write the files of a fitted estimator; ``rows`` are described in its report.

    ``notes`` are all that stderr had.
    """
    if outputs.report is not None:
        auto.compare_criteria()  # which may note what it leaves out
    auto.notes_ = list(notes)
    if outputs.model is not None:
        save_model(auto, outputs.model, data["target"])
    if outputs.report is not None:
        auto.report(
            outputs.report,
            title=f"{data['file']}: {data['target']}",
            target=data["target"],
            command=shlex.join(["onefit", *sys.argv[1:]]),
            rows=rows,
        )
    return Selected(auto, data, seconds, outputs.files)


def select_file(
    path: Path,
    roles: Roles,
    parameters: dict[str, Any],
    outputs: Outputs,
    begun: float,
    notes: list[str],
) -> Selected:
    """Select on the rows of a file, and write the files asked for.

    Parameters
    ----------
    path : Path
    roles : Roles
    parameters : dict
        As :func:`onefit.select` takes them.
    outputs : Outputs
    begun : float
        When the command began, by :func:`time.monotonic`; reading counts for a time limit.
    notes : list of str
        Notes on stderr so far; later ones are appended.
    """
    from onefit.cli.streamed import is_streamed, select_streamed

    outputs.check()
    parameters = parameters | {"journal": outputs.journal}
    if is_streamed(path, parameters.get("approximation")):
        return select_streamed(path, roles, parameters, outputs, notes)
    table = _read(path, roles, parameters)
    if parameters.get("minutes", 0.0) > 0.0:
        spent = (monotonic() - begun) / 60.0
        parameters["minutes"] = max(parameters["minutes"] - spent, MIN_MINUTES)
    return select_table(table, path.name, roles.dayfirst, parameters, outputs, notes)


def select_table(
    table: Table,
    name: str,
    dayfirst: bool | None,
    parameters: dict[str, Any],
    outputs: Outputs,
    notes: list[str],
) -> Selected:
    """Select on a table, see :func:`select_file`."""
    start = perf_counter()
    auto, y = auto_for(table.y, dayfirst, parameters, table.ordered)
    with outputs.on_interrupt(), progress(auto):
        auto._choose(table.X, y, table.groups, table.sample_weight)
    seconds, (n, d) = perf_counter() - start, table.X.shape
    data = {"file": name, "rows": n, "columns": d, "target": table.target}
    rows = None if issparse(table.X) else table.X
    return write_files(auto, data, seconds, outputs, notes, rows)


def explain_file(path: Path, roles: Roles, parameters: dict[str, Any]) -> str:
    """The plan of a selection, in words."""
    if path.is_dir():
        raise ValueError(
            f"{str(path)!r} is a folder; explain plans for rows in memory, of one file"
        )
    table = _read(path, roles, parameters)
    auto, y = auto_for(table.y, roles.dayfirst, parameters, table.ordered)
    found: str = auto.explain(table.X, y, groups=table.groups, sample_weight=table.sample_weight)
    return found


def _read(path: Path, roles: Roles, parameters: dict[str, Any]) -> Table:
    """The table; too many rows for a kernel matrix are refused before they are read."""
    whole = not ({"approximation", "minutes"} & set(parameters))
    return read_table(path, roles, check_rows if whole else None)


def auto_for(
    y: Any, dayfirst: bool | None, parameters: dict[str, Any], ordered: bool = False
) -> tuple[Any, Any]:
    """The automatic estimator for a target, and the target as it takes it.

    ``ordered`` rows have splits in order of time.
    """
    given = parameters | {"prepare": TablePreparer(dayfirst=dayfirst)}
    if ordered and "cv" in given:
        given["cv"] = TimeSeriesSplit(given["cv"])
    weights = given.get("class_weight")
    if isinstance(weights, dict):  # of labels, which the command line knows as text
        labels = {str(label): label for label in np.unique(y).tolist()}
        given["class_weight"] = {labels.get(name, name): one for name, one in weights.items()}
    return make_auto(y, **given)
