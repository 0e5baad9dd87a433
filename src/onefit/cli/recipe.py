"""From a table and the options to a search: whatever is not said is chosen here, with a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.model_selection import KFold, StratifiedKFold

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, plan
from onefit._validation import check_choice
from onefit.cli.encode import make_encoder
from onefit.cli.options import Options
from onefit.criteria import CRITERIA
from onefit.decide.calibrate import CALIBRATIONS
from onefit.estimators import inside
from onefit.files import DataError, shown
from onefit.grids import LAMS_JMLR, default_grid
from onefit.heldout import Iterative
from onefit.kernels import KERNELS as KNOWN_KERNELS
from onefit.problem import Problem
from onefit.robust import mad
from onefit.selection import LABELS
from onefit.stream.approximation import APPROXIMATIONS
from onefit.tables import Table, is_sparse

Array = NDArray[Any]

__all__ = ["Recipe", "check_rows", "make_recipe"]

#: rows beyond which the time is looked at before anything is read, and kernels of a usual grid
MANY_ROWS, USUAL = 50_000, 12

TASKS = ("auto", "regression", "classification")
#: kernels to try where a search over several is a matter of seconds, and beyond
KERNELS, KERNELS_BEYOND, FEW_ROWS = ("rbf", "laplacian", "linear"), ("rbf",), 1000
#: criteria that cost no more than the search itself, by the loss that they fit
CHEAP = {
    "squared": ("loo", "gcv"),
    "smoothed_hinge": ("gacv", "span", "sv_count"),
    "squared_hinge": ("span", "sv_count"),
}
CHEAP_FOR_ANY = ("kernel_stability",)


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
    compare : tuple of str
        Criteria to evaluate afterwards, beside the one that chooses.
    reasons : list of str
        What was chosen, and why.
    calibrate : str or None
        How the model is to get its probabilities.
    """

    task: str
    encoder: Any
    Z: Any = field(repr=False)
    y: Array = field(repr=False)
    search: KernelSearchCV
    compare: tuple[str, ...]
    reasons: list[str]
    calibrate: str | None = None

    @property
    def machine(self) -> Any:
        """The winner; with probabilities, if they were asked for."""
        if self.calibrate is None:
            return self.search.best_estimator_
        return self.search.calibrate(self.calibrate)


def make_recipe(table: Table, options: Options, told: bool = False) -> Recipe:
    """Choose task, loss, kernels and grid, and encode the columns.

    Refuses tables whose kernel matrix would not fit into memory before anything is encoded.

    Parameters
    ----------
    table : Table
    options : Options
    told : bool, default=False
        Whether a report is to be written, which compares criteria unless that is needless or
        takes long.
    """
    _check_size(table.X.shape[0], options)
    task, why = _choose_task(table, options.task)
    _check_calibration(task, options.calibrate)
    y = _targets(table, task)
    encoder = make_encoder(table.X)
    Z = encoder.fit_transform(table.X)
    if not is_sparse(table.X):
        Z = np.ascontiguousarray(Z, dtype=np.float64)
    kernels, why_kernels = _choose_kernels(Z, options)
    reasons = [why, _about_loss(options), why_kernels]
    search = _make_search(task, kernels, Z, y, options)
    compare = _choose_criteria(search, Z.shape[0], options, told)
    if set(CHEAP_FOR_ANY) & set(compare):
        search.set_params(keep_heldout="all")
    return Recipe(task, encoder, Z, y, search, compare, reasons, options.calibrate)


def _check_size(n: int, options: Options) -> None:
    """Refuse folds and jobs that make no sense, and what no method could hold."""
    if options.folds < 2:
        raise ValueError(f"--folds {options.folds} is too few; use 2 at least")
    if options.jobs == 0:
        raise ValueError("--jobs 0 would do nothing; use 1 or more, or -1 for every core")
    if options.folds > n:
        raise ValueError(f"--folds {options.folds} is more than the {n} rows; use at most {n}")
    if options.tol is not None and options.method not in ("auto", "iterative"):
        raise ValueError(
            f"--tol is for --method iterative, not for {options.method!r}, which has no tolerance"
        )
    _check_minutes(options)
    if options.whole:
        check_rows(n, (n // options.folds,) * options.folds, options.loss in (None, "squared"))


def _check_minutes(options: Options) -> None:
    """Refuse a limit of time where features cannot be fallen back to, or are there already."""
    if options.minutes is None:
        return
    for name, value in (("--approximation", options.approximation), ("--device", options.device)):
        if value is not None:
            raise ValueError(
                f"--minutes turns from the whole kernel to features on the processor where that "
                f"takes too long, which {name} {value} decides already; leave one of them out"
            )


def check_rows(n: int, removed: tuple[int, ...] = (), squared: bool = True) -> None:
    """Refuse so many rows that no method could hold its arrays; splits take some more.

    The squared loss has a method that holds no matrix.
    """
    work = plan.Workload(n=max(n, 1), lams=len(LAMS_JMLR), removed=removed, tiled=True)
    ways = ("block", "iterative") if squared else ("block",)
    needed, available = min(plan.peak_bytes(work, way) for way in ways), plan.available_memory()
    if needed <= available:
        _check_time(work, n)
        return
    rows = int(0.9 * n * np.sqrt(available / needed))
    raise MemoryError(
        f"{n:,} rows need {needed / 1024**3:,.0f} GiB for the matrices of a kernel machine, and "
        f"{available / 1024**3:,.1f} GiB are available; nothing was run: use --approximation "
        "nystrom for features in place of the matrices, or --rows N to select on a random sample "
        f"of N rows (at most about {rows:,} here; {min(rows, 3000):,} takes minutes)"
    )


def _check_time(work: plan.Workload, n: int) -> None:
    """Refuse what takes longer than anybody waits for, whatever the memory."""
    if n <= MANY_ROWS:
        return
    days = USUAL * plan.estimate(work, "iterative").seconds / 86400.0
    if days > 1.0:
        rows = int(n / np.sqrt(days))
        raise MemoryError(
            f"{n:,} rows are too many for one machine: a selection would take {days:,.0f} days; "
            "nothing was run: use --minutes M or --approximation nystrom for features in place of "
            "the kernel matrix, or --rows N to select on a random sample of N rows (about "
            f"{rows:,} take a day, 20,000 take minutes)"
        )


def _choose_task(table: Table, task: str) -> tuple[str, str]:
    check_choice("--task", task, TASKS)
    y, name = table.y, shown(table.target)
    values, counts = np.unique(y, return_counts=True)
    numeric = y.dtype.kind in "fiu"
    if task == "regression" and not numeric:
        raise DataError(
            f"the target {name} holds text ({shown(values[0])}, say), which --task regression "
            "cannot take; use --task classification"
        )
    if task != "auto":
        return task, f"{task}, as asked"
    if not numeric:
        return "classification", (
            f"classification: the target {name} holds {values.size} labels, as {shown(values[0])}"
        )
    whole = bool((values == np.round(values)).all())
    if whole and values.size <= LABELS and counts.min() > 1:
        return "classification", (
            f"classification: the target {name} holds {values.size} different whole numbers "
            "(--task regression if they are amounts)"
        )
    return "regression", f"regression: the target {name} holds {values.size} different numbers"


def _check_calibration(task: str, method: str | None) -> None:
    if method is None:
        return
    check_choice("--calibrate", method, CALIBRATIONS)
    if task == "regression":
        raise ValueError(
            "--calibrate makes probabilities of classes, and this is a regression; onefit predict "
            "gives intervals for amounts"
        )


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
            f"class {shown(rare[0])} of the target {shown(table.target)} has one row only, so it "
            "cannot be held out; remove it, or join it with another class"
        )
    return y


def _choose_kernels(Z: Any, options: Options) -> tuple[tuple[str, ...], str]:
    n = Z.shape[0]
    for name in options.kernels:
        check_choice("--kernel", name, [one for one in KNOWN_KERNELS if one != "precomputed"])
    if options.kernels:
        return options.kernels, f"kernels {', '.join(options.kernels)}, as asked"
    if n > FEW_ROWS:
        return KERNELS_BEYOND, (
            f"kernel {', '.join(KERNELS_BEYOND)} alone: {n} rows are many (--kernel adds others)"
        )
    kernels = tuple(one for one in KERNELS if one != "laplacian") if issparse(Z) else KERNELS
    return kernels, f"kernels {', '.join(kernels)}: a fast search tries them all"


def _choose_criteria(
    search: KernelSearchCV, n: int, options: Options, told: bool
) -> tuple[str, ...]:
    """The criteria to compare; whatever does not fit is refused here, before any work."""
    loss = inside.loss_of(search.estimator)
    chosen = options.compare
    if chosen is None:
        chosen = CHEAP.get(loss.name, CHEAP_FOR_ANY) if told and n <= FEW_ROWS else ()
    nothing = Problem(np.empty((0, 0)), np.empty((0, 1)), np.empty(0), loss)
    for name in chosen:
        check_choice("--compare", name, CRITERIA)
        criterion = CRITERIA[name]
        if criterion is not None:
            criterion.check(nothing)
    return chosen


def _about_loss(options: Options) -> str:
    if options.loss:
        return f"{options.loss} loss, as asked"
    return "squared loss: its held-out predictions are exact and cheapest (--loss takes others)"


def _make_search(
    task: str, kernels: tuple[str, ...], Z: Any, y: Array, options: Options
) -> KernelSearchCV:
    estimator: Any
    splitter: Any
    loss = options.loss or "squared"
    features: dict[str, Any] = {}
    if options.approximation is not None:
        check_choice("--approximation", options.approximation, APPROXIMATIONS)
        features = {"approximation": options.approximation, "random_state": options.seed}
        if options.components is not None:
            features["n_components"] = options.components
    if task == "regression":
        estimator, scoring = KernelRegressor(loss=loss, **features), "neg_root_mean_squared_error"
        splitter = KFold(options.folds, shuffle=True, random_state=options.seed)
    else:
        estimator, scoring = KernelClassifier(loss=loss, **features), "accuracy"
        splitter = StratifiedKFold(options.folds, shuffle=True, random_state=options.seed)
    return KernelSearchCV(
        estimator,
        _grid(task, loss, kernels, Z, y),
        cv=splitter,
        scoring=scoring,
        aggregate="pooled",
        criterion=options.criterion,
        method=options.method if options.tol is None else Iterative(options.tol),
        n_jobs=options.jobs,
        device=options.device,
    )


def _grid(task: str, loss: str, kernels: tuple[str, ...], Z: Any, y: Array) -> list[dict[str, Any]]:
    """The library's own grid, and thresholds of the loss."""
    labels = task == "classification"
    try:
        grids = default_grid(Z, y if labels else None, kernels)
    except ValueError as error:
        if "are equal" not in str(error):
            raise
        raise DataError(
            "all rows have the same features, so that there is nothing to predict by; use other "
            "columns"
        ) from error
    thresholds = {} if labels else _thresholds(loss, y)
    return [grid | thresholds for grid in grids]


def _thresholds(loss: str, y: Array) -> dict[str, Any]:
    """Values of threshold or epsilon in units of the spread of y, robustly measured."""
    spread = mad(y) or float(y.std())
    if loss == "huber":
        return {"threshold": spread * np.array([0.3, 1.0, 3.0])}
    if loss in ("epsilon_quadratic", "epsilon_insensitive"):
        return {"epsilon": spread * np.array([0.03, 0.1, 0.3])}
    return {}
