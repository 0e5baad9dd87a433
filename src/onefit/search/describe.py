"""The settings of a search in words: what a journal knows it by."""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit import _version
from onefit._describe import describe, digest
from onefit.kernels import as_rows

__all__ = ["settings"]


def settings(search: Any, X: Any, y: Any, weight: Any, setup: Any, metric: Any) -> dict[str, str]:
    """Everything but the candidates that the outcomes of a search depend on, in words, by name."""
    folds = setup.folds
    about = {
        "onefit": _version.__version__,
        "X": describe(X if hasattr(X, "shape") else np.asarray(as_rows(X))),
        "y": describe(y if hasattr(y, "shape") else np.asarray(y)),
        "sample_weight": describe(weight if weight is None else np.asarray(weight)),
        "splits": f"{len(folds)} splits ({digest(folds.rows, folds.offsets, *folds.removed)})",
        "estimator": type(search.estimator).__name__,
        "scoring": describe(search.scoring),
        "criterion": describe(search.criterion),
        "method": describe(search.method),
        "aggregate": search.aggregate,
        "lam_per_target": f"{search.lam_per_target}" + (f" by {metric}" if metric else ""),
    }
    for name, value in search.estimator.get_params(deep=False).items():
        about[f"estimator.{name}"] = describe(value)
    return about
