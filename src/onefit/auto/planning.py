"""Apply the rules of automatic selection: from data and parameters to a search that can be run.

A transformer that needs the target is fitted in the training parts, or the scores would be those of
rows whose targets it has seen. One that does not need the target is fitted once, to all rows, so
that all splits share one kernel matrix.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags

from onefit import plan
from onefit._frames import is_frame
from onefit._validation import check_choice
from onefit.auto import rules
from onefit.auto.data_checks import find_copies, shares_of_columns, together
from onefit.auto.learned import left_to_rules
from onefit.auto.prepared import PreparedRows
from onefit.auto.run import Selection
from onefit.auto.stacked import chosen_stack
from onefit.decide.calibrate import CALIBRATIONS
from onefit.estimators import KernelClassifier, KernelRegressor
from onefit.grids import LAMS_JMLR
from onefit.plan import Deadline
from onefit.prepare import TablePreparer
from onefit.search.grid import parts
from onefit.search_cv import KernelSearchCV
from onefit.tables import mistakes

Array = NDArray[Any]

#: typical number of kernels
USUAL_KERNELS = 12
ADVICE = "nothing was run: set minutes or approximation, or use fewer rows"
#: reason why preparation in the training parts switches off other rules
IN_FOLDS = (
    "the preparation is fitted in every training part, so the grid does not grow, no race on a "
    "sample narrows it, and outliers do not change the loss"
)

__all__ = ["check_rows", "is_supervised", "make_model", "plan_search", "seed_of"]


def make_model(auto: Any) -> Any:
    """The kernel model of an automatic estimator, not fitted."""
    given: dict[str, Any] = {"loss": auto.loss or "squared"}
    if auto.approximation is not None:
        given |= {"approximation": auto.approximation, "random_state": seed_of(auto.random_state)}
    if auto._task == "classification":
        return KernelClassifier(class_weight=auto.class_weight, **given)
    return KernelRegressor(**given)


def plan_search(auto: Any, X: Any, y: Array, params: dict[str, Any]) -> Selection:
    """The search of an automatic estimator, with its data, reasons and notes.

    Parameters
    ----------
    auto : AutoKernelRegressor or AutoKernelClassifier
        Not changed.
    X, y : data, checked
    params : dict
        ``groups`` and ``sample_weight``, if given.
    """
    calibrate = getattr(auto, "calibrate", None)
    if calibrate is not None:
        check_choice("calibrate", calibrate, CALIBRATIONS)
    deadline = None if auto.minutes is None else Deadline(auto.minutes)
    if deadline is not None and auto.approximation is not None:
        raise ValueError(
            f"minutes replaces the kernel matrix by features where time is short, and "
            f"approximation={auto.approximation!r} always does; leave one of them out"
        )
    scoring, why_scoring = rules.choose_scoring(auto.scoring, y, auto._task)
    if auto.param_grid is None and auto.minutes is None and auto.approximation is None:
        check_rows(X.shape[0], squared=auto.loss in (None, "squared"))
    seed = seed_of(auto.random_state)
    in_folds = _in_folds(auto, X)
    stacked = chosen_stack(auto, y, in_folds)
    preparer, rows, Z = _prepare(auto.prepare, X, y if in_folds else None)
    notes = list(getattr(preparer, "notes_", ()))
    notes += mistakes(rows) if is_frame(rows) else []
    splits, why_splits, params, copied = _choose_splits(auto, rows, y, params, seed)
    notes += copied
    for note in notes:
        warnings.warn(note, stacklevel=4)
    grid, why_grid = _choose_grid(auto, Z, y, seed)
    why_loss = f"{auto.loss} loss, as given" if auto.loss else (
        "squared loss: its held-out predictions are exact and cheapest (change with loss)"
    )  # fmt: skip
    why_task = auto._why or f"{auto._task}: {type(auto).__name__}"
    reasons = [why_task, why_scoring, why_splits, why_loss, why_grid]
    shares = shares_of_columns(
        rows, y, auto._task, params.get("groups"), isinstance(splits, TimeSeriesSplit)
    )
    search = KernelSearchCV(
        make_model(auto), grid, cv=splits, scoring=scoring, aggregate="pooled",
        n_jobs=auto.n_jobs, journal=auto.journal,
    )  # fmt: skip
    if in_folds:
        reasons.append(IN_FOLDS)
        search.set_params(
            estimator=Pipeline([("prepare", clone(auto.prepare)), ("model", search.estimator)]),
            param_grid=[
                {f"model__{name}": values for name, values in part.items()} for part in parts(grid)
            ],
        )
    return Selection(
        search,
        PreparedRows(X if in_folds else Z, y, params),
        auto._task,
        auto._may_be_robust(y) and not in_folds,
        shares,
        [one for one in reasons if one],
        notes,
        deadline,
        may_grow=not (in_folds or auto.param_grid is not None or auto.approximation),
        seed=seed,
        preparer=preparer,
        in_folds=in_folds,
        stack=stacked,
        learning=left_to_rules(auto, y, in_folds) and (auto._task == "regression" or bool(stacked)),
    )


def is_supervised(transformer: Any, X: Any) -> bool:
    """Whether a transformer needs the target: one that says so, or cannot be fitted without it.

    A transformer that fails for another reason counts as supervised too: the search fits it in the
    training parts, and names the step and the split where it fails.

    Parameters
    ----------
    transformer : transformer, Pipeline or ColumnTransformer, "passthrough" or None
    X : rows

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest, f_regression
    >>> from sklearn.preprocessing import StandardScaler
    >>> rows = [[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]]
    >>> is_supervised(StandardScaler(), rows), is_supervised(SelectKBest(f_regression), rows)
    (False, True)
    """
    if transformer is None or transformer == "passthrough":
        return False
    if get_tags(transformer).target_tags.required:
        return True
    try:
        clone(transformer).fit(X)
    except Exception:
        return True
    return False


def _in_folds(auto: Any, X: Any) -> bool:
    """Whether the preparation is fitted in every training part."""
    known = auto.prepare is None or isinstance(auto.prepare, TablePreparer)
    if known or auto.prepare == "passthrough" or not is_supervised(auto.prepare, X):
        return False
    if auto.stack:
        raise ValueError(
            "prepare needs the target, so it is fitted in every training part, and stack averages "
            "models of rows that are prepared once; use stack=False, or another preparation"
        )
    if auto.minutes is not None:
        raise ValueError(
            "prepare needs the target, so it is fitted in every training part, which has no time "
            "limit; leave minutes out, or use a preparation that does not need the target"
        )
    return True


def _prepare(prepare: Any, X: Any, y: Any = None) -> tuple[Any, Any, Any]:
    """The fitted preparer; rows as the checks of the data take them, and as the kernel does.

    With ``y`` the preparer may use the target; the rows are then those that were given.
    """
    preparer = TablePreparer() if prepare is None else prepare
    if preparer == "passthrough":
        Z = X
    else:
        preparer = clone(preparer)
        if isinstance(preparer, TablePreparer):
            return preparer, *preparer.fit_rows(X)
        Z = preparer.fit_transform(X) if y is None else preparer.fit_transform(X, y)
    Z = Z if issparse(Z) else np.ascontiguousarray(Z, dtype=np.float64)
    return preparer, Z if y is None else X, Z


def _choose_splits(
    auto: Any, rows: Any, y: Array, params: dict[str, Any], seed: int
) -> tuple[Any, str, dict[str, Any], list[str]]:
    """Splits that keep copies of a row together, the reason, their groups, and notes."""
    groups, notes = params.get("groups"), []
    copies = find_copies(rows, y)
    if copies.count:
        groups, why_apart = together(copies, groups, y, auto._task, auto.cv)
        notes.append(copies.note(rows, why_apart))
    splits, why = rules.choose_splits(auto.cv, len(y), auto._task, groups, seed)
    if groups is not None:
        why, params = why if "groups" in params else "", params | {"groups": groups}
    return splits, why, params, notes


def _choose_grid(auto: Any, Z: Any, y: Array, seed: int) -> tuple[list[dict[str, Any]], str]:
    """Candidates, and the reason."""
    if auto.param_grid is not None:
        grid = auto.param_grid
        return grid if isinstance(grid, list) else [grid], "grid, as given"
    kernels, why = rules.choose_kernels(auto.kernels, Z, auto.approximation)
    further = auto.approximation is None and auto.loss in (None, "squared")
    loss = auto.loss or "squared"
    return rules.choose_grid(kernels, loss, Z, y, auto._task, seed, further), why


def seed_of(random_state: Any) -> int:
    """A seed, drawn from a RandomState where it is one."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_rows(n: int, squared: bool = True) -> None:
    """Refuse tables whose kernel matrices would exceed the memory, or take more than a day.

    Parameters
    ----------
    n : int
        Number of rows.
    squared : bool, default=True
        Whether the loss is the squared one, which has a method that holds no matrix.
    """
    work = plan.Workload(n=max(n, 1), lams=len(LAMS_JMLR), removed=(), tiled=True)
    methods = ("block", "iterative") if squared else ("block",)
    needed, available = min(plan.peak_bytes(work, one) for one in methods), plan.available_memory()
    if needed > available:
        rows = int(0.9 * n * np.sqrt(available / needed))
        raise MemoryError(
            f"{n:,} rows need {needed / 1024**3:,.0f} GiB for kernel matrices, and "
            f"{available / 1024**3:,.1f} GiB are available; {ADVICE} (at most about {rows:,})"
        )
    days = USUAL_KERNELS * plan.estimate(work, "iterative").seconds / 86400.0
    if days > 1.0:
        raise MemoryError(
            f"{n:,} rows are too many for a kernel matrix: a selection would take {days:,.0f} "
            f"days; {ADVICE} (about {int(n / np.sqrt(days)):,} take a day)"
        )
