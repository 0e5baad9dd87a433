"""A transformer in front of a search: fitted in every training part, or once to all rows.

A transformer that needs the target must be fitted in the training parts, or the scores are those of
rows whose targets it has seen. One that is fitted without the target may be fitted to all rows,
which costs one kernel matrix for all splits (:mod:`onefit.search.all_rows`).
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from onefit.search.grid import parts

__all__ = ["is_supervised", "with_preparation"]


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


def with_preparation(search: Any, transformer: Any, X: Any, in_folds: bool = False) -> Any:
    """A search over a pipeline with steps "prepare" and "model", for one over "model" alone.

    Parameters
    ----------
    search : KernelSearchCV
        Over a kernel estimator, not over a pipeline.
    transformer : transformer
    X : rows, as the transformer takes them
    in_folds : bool, default=False
        Whether a transformer that does not need the target is fitted in every training part too.
        One that needs it always is.

    Returns
    -------
    KernelSearchCV
        Not fitted; the names in its grid begin with "model__".
    """
    honest = in_folds or is_supervised(transformer, X)
    grid = [
        {f"model__{name}": values for name, values in part.items()}
        for part in parts(search.param_grid)
    ]
    return clone(search).set_params(
        estimator=Pipeline([("prepare", clone(transformer)), ("model", clone(search.estimator))]),
        param_grid=grid,
        method="auto" if honest else "all_rows",
    )
