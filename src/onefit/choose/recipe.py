"""From a table and the options to a search: whatever is not said is chosen here, with a reason."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._validation import check_choice
from onefit.choose.class_weight import choose_class_weight
from onefit.choose.data_checks import find_copies, strong_columns, together
from onefit.choose.encode import make_encoder
from onefit.choose.grid import choose_grid, choose_kernels, growing
from onefit.choose.metric import choose_metric
from onefit.choose.options import Options
from onefit.choose.size import check_size
from onefit.choose.splits import choose_splits
from onefit.choose.task import choose_task, targets
from onefit.criteria import CRITERIA
from onefit.decide.calibrate import CALIBRATIONS
from onefit.estimators import KernelClassifier, KernelRegressor
from onefit.fallback import Fallback
from onefit.heldout import Iterative
from onefit.plan import Deadline
from onefit.problem import Problem
from onefit.search_cv import KernelSearchCV
from onefit.stream.approximation import APPROXIMATIONS
from onefit.tables import ColumnReader, Table, is_sparse

Array = NDArray[Any]

__all__ = ["Recipe", "checked_splits", "make_recipe"]

#: rows up to which a report compares criteria
FEW_ROWS = 1000
#: criteria that cost no more than the search itself, by the loss that they fit
CHEAP = {
    "squared": ("loo", "gcv"),
    "smoothed_hinge": ("gacv", "span", "sv_count"),
    "squared_hinge": ("span", "sv_count"),
}
CHEAP_FOR_ANY = ("kernel_stability",)


@dataclass(frozen=True)
class Recipe:
    """A search, ready to be fitted; or fitted, as :func:`onefit.choose.fit.fit_recipe` returns it.

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
    reader : ColumnReader or None
        What made the columns of the raw table numbers and text.
    notes : list of str
        What a user should know of the data.
    strong : list of (name, share)
        Columns that alone explain nearly all of the target, to be judged beside the winner.
    calibrate : str or None
        How the model is to get its probabilities.
    groups, weights : arrays or None
        Groups are those of the splits: copies of a row are in one group.
    metric : str or callable
        What the search reports.
    may_be_robust : bool
        Whether outliers may change the loss.
    fallback : Fallback or None
        What was given up for lack of time.
    deadline : Deadline or None
        When it is to be done.
    growing : tuple of str
        Parameters whose lists may grow.
    seed : int
        For a sample of the rows.
    """

    task: str
    encoder: Any
    Z: Any = field(repr=False)
    y: Array = field(repr=False)
    search: KernelSearchCV
    compare: tuple[str, ...]
    reasons: list[str]
    calibrate: str | None = None
    groups: Any = field(default=None, repr=False)
    weights: Any = field(default=None, repr=False)
    metric: Any = None
    may_be_robust: bool = False
    fallback: Fallback | None = None
    deadline: Deadline | None = field(default=None, repr=False)
    reader: ColumnReader | None = field(default=None, repr=False)
    notes: list[str] = field(default_factory=list)
    strong: list[tuple[Any, float]] = field(default_factory=list)
    growing: tuple[str, ...] = ()
    seed: int = 0

    @property
    def model(self) -> Any:
        """The winner, calibrated where that is asked for."""
        how = self.calibrate
        return self.search.best_estimator_ if how is None else self.search.calibrate(how)

    @property
    def params(self) -> dict[str, Any]:
        """What a fit is given beside the rows."""
        found = {"groups": self.groups, "sample_weight": self.weights}
        return {name: one for name, one in found.items() if one is not None}


def make_recipe(table: Table, options: Options, told: bool = False) -> Recipe:
    """Choose task, metric, splits, loss, kernels and grid, and encode the columns.

    Refuses tables whose kernel matrix would not fit into memory before anything is encoded.

    Parameters
    ----------
    table : Table
    options : Options
    told : bool, default=False
        Whether a report is to be written, which compares criteria unless that is needless or
        takes long.
    """
    check_size(table.X.shape[0], options)
    task, why = choose_task(table, options)
    _check_for_task(task, options)
    y = targets(table, task)
    splits, why_splits, groups, notes = checked_splits(table, y, task, options)
    for note in notes:
        warnings.warn(note, stacklevel=3)
    encoder, Z = _encoded(table, options)
    kernels, why_kernels = choose_kernels(Z, options)
    metric, why_metric = choose_metric(y, task, options)
    reasons = [
        one for one in (why, why_metric, why_splits, _about_loss(options), why_kernels) if one
    ]
    grid = choose_grid(task, kernels, Z, y, options)
    search = _make_search(_machine(task, y, options), grid, splits, metric, options)
    compare = _choose_criteria(search, Z.shape[0], options, told)
    return Recipe(
        task, encoder, Z, y, search, compare, reasons, options.calibrate, groups,
        table.weights, metric, options.may_be_robust and task == "regression" and y.ndim == 1,
        reader=table.reader, notes=[*table.notes, *notes],
        strong=strong_columns(table, y, task, groups), growing=growing(options),
        seed=options.seed,
    )  # fmt: skip


def checked_splits(
    table: Table, y: Array, task: str, options: Options
) -> tuple[Any, str, Any, list[str]]:
    """Splits that keep copies of a row together, with a reason, their groups, and warnings."""
    copies, groups, notes = find_copies(table, y), table.groups, []
    if copies.count:
        groups, why_apart = together(copies, table, y, task, options)
        notes.append(copies.note(table.X, why_apart))
    splits, why = choose_splits(replace(table, groups=groups), task, options)
    return splits, why if table.groups is not None or groups is None else "", groups, notes


def _encoded(table: Table, options: Options) -> tuple[Any, Any]:
    """The encoder, fitted, and what it makes of the rows."""
    encoder = make_encoder(table.X, options.scale)
    Z = encoder.fit_transform(table.X)
    return encoder, Z if is_sparse(table.X) else np.ascontiguousarray(Z, dtype=np.float64)


def _check_for_task(task: str, options: Options) -> None:
    """Refuse for a regression what is for classes alone."""
    if options.calibrate is not None:
        check_choice(options.word("calibrate"), options.calibrate, CALIBRATIONS)
    if task == "classification":
        return
    if options.calibrate is not None:
        raise ValueError(
            f"{options.word('calibrate')} makes probabilities of classes, and this is a "
            "regression, which has intervals instead: onefit predict and predict_interval give them"
        )
    if options.class_weight is not None:
        raise ValueError(
            f"{options.word('class-weight')} is for classes, and this is a regression; leave it out"
        )


def _choose_criteria(
    search: KernelSearchCV, n: int, options: Options, told: bool
) -> tuple[str, ...]:
    """The criteria to compare; whatever does not fit is refused here, before any work."""
    loss = search.estimator.spec().loss
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
    flag = options.word("loss")
    return f"squared loss: its held-out predictions are exact and cheapest (change with {flag})"


def _machine(task: str, y: Array, options: Options) -> Any:
    """The estimator, not fitted yet."""
    given: dict[str, Any] = {"loss": options.loss or "squared"}
    if options.approximation is not None:
        flag = options.word("approximation")
        check_choice(flag, options.approximation, APPROXIMATIONS)
        kind = APPROXIMATIONS[options.approximation]
        size = {} if options.components is None else {"n_components": options.components}
        given |= {"approximation": kind(**size), "random_state": options.seed}
    if task == "regression":
        return KernelRegressor(**given)
    return KernelClassifier(**given, class_weight=choose_class_weight(y, options))


def _make_search(
    estimator: Any, grid: Any, splits: Any, metric: Any, options: Options
) -> KernelSearchCV:
    return KernelSearchCV(
        estimator,
        grid,
        cv=splits,
        scoring=metric,
        aggregate="pooled",
        criterion=options.criterion,
        method=options.method if options.tol is None else Iterative(options.tol),
        n_jobs=options.jobs,
    )
