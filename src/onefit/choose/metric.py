"""The metric that candidates are judged by, under scikit-learn's name or a short one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer_names

from onefit._validation import suggest
from onefit.choose.options import Options

Array = NDArray[Any]

__all__ = ["SHORT", "choose_metric", "scorer_name"]

#: short names, in the way most people write them
SHORT = {
    "mae": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
    "mape": "neg_mean_absolute_percentage_error",
    "medae": "neg_median_absolute_error",
    "auc": "roc_auc",
    "brier": "neg_brier_score",
}
#: how the names of scorers of amounts begin; all others judge classes
OF_AMOUNTS = ("neg_mean_", "neg_root_", "neg_median", "neg_max", "r2", "explained", "d2_absolute")
#: a class with less than this part of its even share of the rows is rare
RARE = 0.5


def choose_metric(y: Array, task: str, options: Options) -> tuple[Any, str]:
    """A scorer's name, and why it was taken.

    The task alone decides, so that another sample of the same rows is judged by the same metric:
    amounts by their squared error, classes by accuracy. Rare classes are mentioned.
    """
    flag = options.word("metric")
    if options.metric is not None:
        return _asked(options, task), f"metric {options.metric}, as asked"
    if task == "regression":
        name = "r2" if y.ndim == 2 else options.amounts_by
        words = "R²" if name == "r2" else "root mean squared error"
        return name, f"metric: {words} of all held-out rows together (change with {flag})"
    counts = np.unique(y, return_counts=True)[1]
    advice = f"change with {flag}"
    if counts.min() < RARE * counts.sum() / counts.size:
        advice = (
            f"{flag} balanced_accuracy counts classes alike: the smallest has {counts.min()} of "
            f"{counts.sum()} rows"
        )
    return "accuracy", f"metric: accuracy ({advice})"


def _asked(options: Options, task: str) -> Any:
    metric = options.metric
    if not isinstance(metric, str):
        return metric
    name = scorer_name(metric, options)
    amounts = name.startswith(OF_AMOUNTS)
    if amounts != (task == "regression"):
        what = "amounts" if amounts else "classes"
        other = "accuracy or balanced_accuracy" if amounts else "rmse, mae or r2"
        said = options.said("metric", metric)
        raise ValueError(f"{said} judges {what}, and this is a {task}; use {other}, say")
    return name


def scorer_name(metric: str, options: Options) -> str:
    """scikit-learn's name of a metric; the nearest one is suggested if there is none."""
    known = get_scorer_names()
    for name in (metric, SHORT.get(metric, ""), f"neg_{metric}"):
        if name in known:
            return name
    said, near = options.said("metric", metric), suggest(metric, [*SHORT, *known])
    raise ValueError(
        f"{said} is not known{near} Any name of a scikit-learn scorer will do, and "
        f"{', '.join(SHORT)}"
    )
