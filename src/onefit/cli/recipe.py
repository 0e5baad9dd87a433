"""From a table and the options to a search: whatever is not said is chosen here, with a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, plan
from onefit._validation import check_choice
from onefit.cli.encode import make_encoder
from onefit.kernels import resolve_kernel
from onefit.kernels.resolve import kernel_parameters
from onefit.tables import DataError, Table, is_sparse

Array = NDArray[Any]

__all__ = ["Options", "Recipe", "make_recipe"]

TASKS = ("auto", "regression", "classification")
#: kernels to try where a search over several is a matter of seconds, and beyond
KERNELS, KERNELS_BEYOND, FEW_ROWS = ("rbf", "laplacian", "matern52", "linear"), ("rbf",), 1500
#: a target of so many different whole numbers at most is taken for classes
MOST_CLASSES = 10
LAMS = np.logspace(-6, 1, 15)
#: multiples of gamma="scale"
GAMMAS = np.logspace(-1.5, 1.5, 7)


@dataclass(frozen=True)
class Options:
    """What the caller asked for; None and () stand for "choose"."""

    task: str = "auto"
    loss: str | None = None
    kernels: tuple[str, ...] = ()
    criterion: str = "cv"
    method: str = "auto"
    folds: int = 10
    seed: int = 0
    jobs: int | None = None


@dataclass(frozen=True)
class Recipe:
    """A search, ready to be fitted.

    Attributes
    ----------
    task : {"regression", "classification"}
    encoder : fitted to all rows
    Z : encoded features
    y : targets
    search : KernelSearchCV
    reasons : list of str
        What was chosen, and why.
    """

    task: str
    encoder: Any
    Z: Any = field(repr=False)
    y: Array = field(repr=False)
    search: KernelSearchCV
    reasons: list[str]


def make_recipe(table: Table, options: Options) -> Recipe:
    """Choose task, loss, kernels and grid, and encode the columns.

    Refuses tables whose kernel matrix would not fit into memory before anything is encoded.
    """
    _check_size(table.X.shape[0], options)
    task, why = _choose_task(table, options.task)
    y = _targets(table, task)
    encoder = make_encoder(table.X)
    Z = encoder.fit_transform(table.X)
    if not is_sparse(table.X):
        Z = np.ascontiguousarray(Z, dtype=np.float64)
    kernels, why_kernels = _choose_kernels(Z.shape[0], options)
    loss = options.loss or "squared"
    reasons = [why, _about_loss(options), why_kernels]
    search = _make_search(task, loss, kernels, Z, y, options)
    return Recipe(task, encoder, Z, y, search, reasons)


def _check_size(n: int, options: Options) -> None:
    """Refuse what no method could hold, naming the way out."""
    if options.folds < 2:
        raise ValueError(f"--folds {options.folds} is too few; use 2 at least")
    if options.folds > n:
        raise ValueError(f"--folds {options.folds} is more than the {n} rows; use at most {n}")
    work = plan.Workload(n=n, lams=LAMS.size, removed=(n // options.folds,) * options.folds)
    needed, available = plan.estimate(work, "block").nbytes, plan.available_memory()
    if needed <= available:
        return
    rows = int(0.9 * n * np.sqrt(available / needed))
    raise MemoryError(
        f"{n:,} rows need {needed / 1024**3:,.0f} GiB for the matrices of a kernel machine, and "
        f"{available / 1024**3:,.1f} GiB are available; nothing was run: use --rows N to select "
        f"on a random sample of N rows (at most about {rows:,} here; {min(rows, 3000):,} takes "
        "minutes)"
    )


def _choose_task(table: Table, task: str) -> tuple[str, str]:
    check_choice("--task", task, TASKS)
    y, name = table.y, table.target
    values = np.unique(y)
    numeric = y.dtype.kind in "fiu"
    if task == "regression" and not numeric:
        raise DataError(
            f"the target {name!r} holds text ({values[0]!r}, say), which --task regression cannot "
            "take; use --task classification"
        )
    if task != "auto":
        return task, f"{task}, as asked"
    if not numeric:
        return "classification", f"classification: the target {name!r} holds text"
    whole = bool((values == np.round(values)).all())
    if whole and values.size <= MOST_CLASSES:
        return "classification", (
            f"classification: the target {name!r} holds {values.size} different whole numbers "
            "(--task regression if they are amounts)"
        )
    return "regression", f"regression: the target {name!r} holds {values.size} different numbers"


def _targets(table: Table, task: str) -> Array:
    if task == "regression":
        return table.y.astype(np.float64)
    y = table.y
    if y.dtype.kind == "f" and bool((y == np.round(y)).all()):
        y = y.astype(np.int64)
    values, counts = np.unique(y, return_counts=True)
    rare = values[counts < 2]
    if rare.size:
        raise DataError(
            f"class {rare[0]!r} of the target {table.target!r} has one row only, so it cannot be "
            "held out; remove it, join it with another class, or use --task regression for amounts"
        )
    return y


def _choose_kernels(n: int, options: Options) -> tuple[tuple[str, ...], str]:
    if options.kernels:
        return options.kernels, f"kernels {', '.join(options.kernels)}, as asked"
    if n <= FEW_ROWS:
        return KERNELS, f"kernels {', '.join(KERNELS)}: a fast search tries them all"
    return KERNELS_BEYOND, (
        f"kernel {', '.join(KERNELS_BEYOND)} alone: {n} rows are many (--kernel adds others)"
    )


def _about_loss(options: Options) -> str:
    if options.loss:
        return f"{options.loss} loss, as asked"
    return "squared loss: its held-out predictions are exact and cheapest (--loss takes others)"


def _make_search(
    task: str,
    loss: str,
    kernels: tuple[str, ...],
    Z: Any,
    y: Array,
    options: Options,
) -> KernelSearchCV:
    estimator: Any
    splitter: Any
    if task == "regression":
        estimator, scoring = KernelRegressor(loss=loss), "neg_root_mean_squared_error"
        splitter = KFold(options.folds, shuffle=True, random_state=options.seed)
    else:
        estimator, scoring = KernelClassifier(loss=loss), "accuracy"
        splitter = StratifiedKFold(options.folds, shuffle=True, random_state=options.seed)
    thresholds = _thresholds(loss, y) if task == "regression" else {}
    grids = [_grid(kernel, Z) | thresholds for kernel in kernels]
    return KernelSearchCV(
        estimator,
        grids,
        cv=splitter,
        scoring=scoring,
        criterion=options.criterion,
        method=options.method,
        n_jobs=options.jobs,
    )


def _grid(kernel: str, Z: Any) -> dict[str, Any]:
    """Fifteen lams; seven widths around the kernel's own scale, where it has one."""
    grid: dict[str, Any] = {"kernel": [kernel], "lam": LAMS}
    names = kernel_parameters(kernel)
    if "gamma" in names:
        grid["gamma"] = resolve_kernel(kernel, Z).gamma * GAMMAS  # type: ignore[attr-defined]
    if "degree" in names:
        grid["degree"] = [2, 3]
    return grid


def _thresholds(loss: str, y: Array) -> dict[str, Any]:
    """Values of b or epsilon in units of the spread of y, robustly measured."""
    spread = 1.4826 * float(np.median(np.abs(y - np.median(y)))) or float(y.std())
    if loss == "huber":
        return {"b": spread * np.array([0.3, 1.0, 3.0])}
    if loss == "epsilon_quadratic":
        return {"epsilon": spread * np.array([0.03, 0.1, 0.3])}
    return {}
