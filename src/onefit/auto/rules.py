"""The rules of :class:`onefit.AutoKernelRegressor` and :class:`onefit.AutoKernelClassifier`.

Each rule returns its choice and the reason, a sentence for ``reasons_``; an empty one where the
choice needs no explanation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.stats import median_abs_deviation
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.utils.multiclass import type_of_target

from onefit._format import is_missing
from onefit._frames import listed, shown
from onefit._validation import DataError, check_choice, check_positive, suggest
from onefit.grids import LAMS_JMLR, default_grid
from onefit.kernels import KERNELS as KNOWN_KERNELS
from onefit.tables import are_codes
from onefit.written import MAX_LABELS

Array = NDArray[Any]

__all__ = [
    "DEFAULT_KERNELS",
    "TASKS",
    "check_class_weight",
    "check_values",
    "choose_grid",
    "choose_kernels",
    "choose_scoring",
    "choose_splits",
    "choose_task",
    "is_count",
]

TASKS = ("auto", "regression", "classification")
#: kernels to try; with many rows, a race on a sample chooses the bandwidths of each
DEFAULT_KERNELS = ("rbf", "laplacian", "matern32", "linear")
#: lams of regression beside those of the default grid, for targets with hardly any noise or hardly
#: any signal, in units of the mean of K(x, x); with the squared loss further lams cost little
FURTHER_LAMS = (1e-8, 1e-7, 1e-6, 0.3, 2.0)
#: short names of scorers
SHORT_SCORERS = {
    "mae": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
    "mape": "neg_mean_absolute_percentage_error",
    "medae": "neg_median_absolute_error",
    "auc": "roc_auc",
    "brier": "neg_brier_score",
}
#: prefixes of the names of regression scorers; all others score classes
REGRESSION_SCORERS = (
    "neg_mean_",
    "neg_root_",
    "neg_median",
    "neg_max",
    "r2",
    "explained",
    "d2_absolute",
)
#: a class with less than this part of an even share of the rows is rare
RARE_SHARE = 0.5


def check_values(y: Array) -> None:
    """Refuse targets that are missing, infinite or dates."""
    if y.dtype.kind in "mM":
        raise DataError("y holds dates or times; turn it into numbers (days since a date, say)")
    wrong = np.zeros(y.shape, dtype=bool)
    if y.dtype.kind == "f":
        wrong = ~np.isfinite(y)
    elif y.dtype.kind == "O":
        wrong = np.array([is_missing(one) for one in y.flat], dtype=bool).reshape(y.shape)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        raise ValueError(f"y holds {y[place]} in row {place[0]}; drop the row, or fill it in")


def choose_task(y: Array, task: str = "auto") -> tuple[str, str]:
    """Regression or classification, by the values of the target.

    Text, booleans, two different whole numbers, and the codes 0, 1, ..., k - 1 or 1, 2, ..., k of
    at most 20 classes, each in at least two rows, are labels. All other numbers, and several
    columns of them, are quantities: whole numbers that start elsewhere or skip values, such as
    grades from 3 to 8 and counts, are an ordered scale.
    """
    check_choice("task", task, TASKS)
    if y.ndim == 2:
        kind = type_of_target(y)
        if y.dtype.kind not in "fiu" or kind == "multilabel-indicator" or task == TASKS[2]:
            raise ValueError(
                f"y has {y.shape[1]} columns of labels ({kind}); call select for each column, or "
                "pass numbers for a regression"
            )
        return "regression", f"regression: the target has {y.shape[1]} columns of numbers"
    values = np.unique(y)
    if task != "auto":
        return task, f"{task}, as given"
    if y.dtype.kind not in "fiu":
        return "classification", (
            f"classification: the target holds {values.size:,} labels, for example "
            f"{shown(values[0])}"
        )
    if are_codes(y):
        return "classification", (
            f"classification: the target holds {values.size} different whole numbers, which look "
            "like codes of classes (set task to regression if they are quantities)"
        )
    if values.size <= MAX_LABELS and (values == np.round(values)).all():
        return "regression", (
            f"regression: the target holds {values.size} whole numbers from {values[0]:g} to "
            f"{values[-1]:g}, which look like an ordered scale (set task to classification if they "
            "are codes of classes)"
        )
    return "regression", f"regression: the target holds {values.size:,} different numbers"


def choose_scoring(scoring: Any, y: Array, task: str) -> tuple[Any, str]:
    """A scorer. The task alone decides, so that samples of the same rows are scored alike."""
    if isinstance(scoring, str):
        name = _scorer_name(scoring)
        quantities = name.startswith(REGRESSION_SCORERS)
        if quantities != (task == "regression"):
            what = "quantities" if quantities else "classes"
            other = "accuracy or balanced_accuracy" if quantities else "rmse, mae or r2"
            raise ValueError(
                f"scoring={scoring!r} scores {what}, and this is a {task}; use {other}, for example"
            )
        return name, f"scoring {scoring}, as given"
    if scoring is not None:
        if not callable(scoring):
            raise ValueError(
                f"scoring={scoring!r} must be the name of one score or a callable; several scores "
                "are for KernelSearchCV"
            )
        return scoring, f"scoring {getattr(scoring, '__name__', scoring)}, as given"
    if task == "regression":
        return "r2", "scoring: R² of all held-out rows together (change with scoring)"
    counts = np.unique(y, return_counts=True)[1]
    advice = "change with scoring"
    if counts.min() < RARE_SHARE * counts.sum() / counts.size:
        advice = (
            f"scoring balanced_accuracy gives classes equal weight: the smallest has "
            f"{counts.min()} of {counts.sum()} rows"
        )
    return "accuracy", f"scoring: accuracy ({advice})"


def _scorer_name(scoring: str) -> str:
    known = get_scorer_names()
    for name in (scoring, SHORT_SCORERS.get(scoring, ""), f"neg_{scoring}"):
        if name in known:
            return name
    raise ValueError(
        f"scoring={scoring!r} is not known{suggest(scoring, [*SHORT_SCORERS, *known])} Use the "
        f"name of a scikit-learn scorer, or one of {', '.join(SHORT_SCORERS)}"
    )


def check_class_weight(class_weight: Any, y: Array) -> None:
    """Refuse weights of labels that the target does not have, and weights that are not positive."""
    if not isinstance(class_weight, Mapping):
        if class_weight is not None:
            check_choice("class_weight", class_weight, ("balanced",))
        return
    labels = np.unique(y).tolist()
    for name, weight in class_weight.items():
        if name not in labels:
            near = suggest(str(name), map(str, labels))
            raise ValueError(
                f"class_weight: the target has no class {shown(name)}{near} Its classes are "
                f"{listed(labels)}"
            )
        hint = "give each class a positive weight"
        check_positive(f"class_weight of {shown(name)}", weight, hint)


def is_count(cv: Any) -> bool:
    """Whether ``cv`` is a number of folds, not a splitter."""
    return isinstance(cv, (int, np.integer))


def choose_splits(cv: Any, n: int, task: str, groups: Any, seed: int) -> tuple[Any, str]:
    """Shuffled folds: stratified for classes, groups kept together; or the splitter given."""
    if not is_count(cv):
        if isinstance(cv, TimeSeriesSplit):
            if groups is not None:
                raise ValueError(
                    "splits in order of time cannot keep groups together as well; leave out groups "
                    "or time"
                )
            k = cv.get_n_splits()
            return cv, f"{k} splits in order of time: each tests later rows"
        if not (hasattr(cv, "get_n_splits") or np.iterable(cv)) or isinstance(cv, str):
            raise ValueError(
                f"cv={cv!r} must be a number of splits, a splitter, or a list of (training rows, "
                "test rows)"
            )
        return cv if hasattr(cv, "split") else list(cv), "splits as given"
    if not 2 <= cv <= n:
        raise ValueError(f"cv={cv} must be at least 2 and at most the number of rows, {n}")
    labels = task == "classification"
    if groups is None:
        kind = StratifiedKFold if labels else KFold
        return kind(cv, shuffle=True, random_state=seed), ""
    found = np.unique(np.asarray(groups)).size
    if found < 2:
        raise ValueError(
            "groups must have a value per row, and at least two different values; pass the column "
            "itself, as in groups=X['patient'], and leave it out of X"
        )
    k = found if cv == n else cv  # leave one row out becomes leave one group out
    if found < k:
        raise ValueError(
            f"there are {found} groups, fewer than the {k} folds of cv; use cv={found}"
        )
    kind = StratifiedGroupKFold if labels else GroupKFold
    reason = f"{k} splits that keep each of the {found} groups on one side"
    return kind(k, shuffle=True, random_state=seed), reason


def choose_kernels(
    kernels: Any, Z: Any, approximation: str | None = None
) -> tuple[tuple[str, ...], str]:
    """Names of the kernels to try."""
    names: Sequence[str] = (kernels,) if isinstance(kernels, str) else tuple(kernels or ())
    if kernels is not None and not names:
        raise ValueError("kernels names none; give at least one, or leave it out for the default")
    for name in names:
        check_choice("kernels", name, [one for one in KNOWN_KERNELS if one != "precomputed"])
    if names:
        return tuple(names), f"kernels {', '.join(names)}, as given"
    without = {"laplacian"} if issparse(Z) else set()
    without |= {"linear"} if approximation == "fourier" else set()  # no function of x - y
    chosen = tuple(one for one in DEFAULT_KERNELS if one not in without)
    return chosen, f"kernels {', '.join(chosen)} (change with kernels)"


def choose_grid(
    kernels: tuple[str, ...], loss: str, Z: Any, y: Array, task: str, seed: int, further: bool
) -> list[dict[str, Any]]:
    """:func:`onefit.default_grid` for the kernels, with thresholds of the loss.

    ``further`` adds :data:`FURTHER_LAMS` for a regression.
    """
    labels = task == "classification"
    try:
        grids = default_grid(Z, y if labels else None, kernels, random_state=seed)
    except ValueError as error:
        if "are equal" not in str(error):
            raise
        raise DataError(
            "all rows have the same features, so nothing can be predicted from them; use other "
            "columns"
        ) from error
    if labels:
        return grids
    thresholds = _thresholds(loss, y)
    return [(_with_further_lams(grid) if further else grid) | thresholds for grid in grids]


def _with_further_lams(grid: dict[str, Any]) -> dict[str, Any]:
    """A default grid with :data:`FURTHER_LAMS`."""
    unit = max(grid["lam"]) / max(LAMS_JMLR)
    return dict(grid, lam=sorted([*grid["lam"], *(unit * lam for lam in FURTHER_LAMS)]))


def _thresholds(loss: str, y: Array) -> dict[str, Any]:
    """Values of threshold or epsilon in units of a robust scale of y.

    Several targets have one epsilon, in units of the smallest scale, and a threshold each.
    """
    columns = y.reshape(len(y), -1)
    scales = median_abs_deviation(columns, axis=0, scale="normal")
    scales = np.where(scales > 0.0, scales, columns.std(axis=0))
    scale = float(scales[scales > 0.0].min())
    if loss == "huber":
        return {"loss__threshold": scale * np.array([0.3, 1.0, 3.0]) if y.ndim == 1 else ["mad"]}
    if loss in ("epsilon_quadratic", "epsilon_insensitive"):
        return {"loss__epsilon": scale * np.array([0.03, 0.1, 0.3])}
    return {}
