"""Relevance of columns, from bandwidths per column, with repetitions on parts of the rows.

In a kernel with a gamma for every column, the weight of a column is its gamma times its
spread: the variance where gamma multiplies squares (Gaussian), the standard deviation elsewhere.
Those products, divided by their sum, are the relevance of the columns. It is a statement about one
sample. To see how much of it is chance, the whole search is repeated without each part of the rows
in turn. A column with little relevance may still be useful: correlated columns share theirs in any
proportion, and a column with a linear effect needs only a small gamma.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import indexable
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from onefit._indexing import select_rows
from onefit._result import DrawnResult
from onefit._types import Array
from onefit.estimators.accepted import Given
from onefit.kernels import Gaussian, named_kernel
from onefit.progress import in_parallel

__all__ = ["Relevance", "relevance"]

#: columns that a repr lists
MAX_LISTED_COLUMNS = 10


@dataclass(frozen=True)
class Relevance(DrawnResult):
    """Shares of the columns, summing to one.

    Attributes
    ----------
    names : list of str
    values : (d,) array
        Of the search on all rows.
    folds : (k, d) array
        Of the searches without each part of the rows.
    """

    names: list[str]
    values: Array
    folds: Array = field(repr=False)

    @property
    def low(self) -> Array:
        """The smallest value over the parts."""
        return np.asarray(self.folds.min(axis=0))

    @property
    def high(self) -> Array:
        """The largest value over the parts."""
        return np.asarray(self.folds.max(axis=0))

    @property
    def order(self) -> Array:
        """Columns from the most relevant to the least."""
        return np.argsort(-self.values, kind="stable")

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [
            f"{self.names[f]:{width}}  {self.values[f]:6.1%}  ({self.low[f]:.1%} to "
            f"{self.high[f]:.1%} without a part of the rows)"
            for f in self.order[:MAX_LISTED_COLUMNS]
        ]
        left = len(self.names) - MAX_LISTED_COLUMNS
        return "\n".join(lines + ([f"and {left} more columns"] if left > 0 else []))

    @property
    def sentence(self) -> str:
        """The result in words."""
        best = self.order[0]
        return f"the most relevant column is {self.names[best]}, with {self.values[best]:.0%}"

    def draw(self, axis: Any) -> None:
        """Draw the first columns as bars, with the range over the parts."""
        from onefit.report.figures import MAX_PLOTTED_COLUMNS, draw_relevance

        draw_relevance(axis, self, self.order[:MAX_PLOTTED_COLUMNS])


def relevance(
    search: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    sample_weight: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Relevance:
    """The relevance of every column, and its range when parts of the rows are left out.

    Parameters
    ----------
    search : KernelGradientSearchCV
        With ``gamma=Interval(..., per_feature=True)``, fitted to X and y.
    X, y : rows and targets
    cv : int, splitter or iterable, default=5
        The parts, of whole groups where there are any: the search is repeated on the training rows
        of each split. Its own ``cv`` must be a number or a splitter, as a list of splits knows all
        rows only.
    sample_weight, groups : arrays of shape (n,), default=None
        For the fits; None takes those of the search.
    n_jobs : int, default=None
        Searches side by side.
    verbose : int, default=0
        1 prints a line after each part.

    Returns
    -------
    Relevance

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelGradientSearchCV, KernelRegressor
    >>> from onefit.relevance import relevance
    >>> from onefit.search import Interval
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> y = np.sin(2 * X[:, 1])
    >>> grid = {"gamma": Interval(1e-3, 1e1, per_feature=True), "lam": Interval(1e-6, 1.0, 5)}
    >>> search = KernelGradientSearchCV(KernelRegressor(), grid).fit(X, y)
    >>> found = relevance(search, X, y, cv=3)
    >>> int(found.order[0]), bool(found.low[1] > 0.9)
    (1, True)
    """
    check_is_fitted(search, "best_params_")
    given = Given.of(search, "relevance", X, y, sample_weight, groups)
    X, y = indexable(X, y)
    units = _units(search, X)
    values = _shares(search, units)
    if given.groups is not None and isinstance(cv, int):
        cv = GroupKFold(cv)
    splitter = check_cv(cv, y, classifier=is_classifier(search.estimator))
    parts = [train for train, _ in splitter.split(X, y, given.groups)]
    known = {"sample_weight": given.sample_weight, "groups": given.groups}
    params = {name: one for name, one in known.items() if one is not None}
    calls = [delayed(_part)(clone(search), units, X, y, rows, params) for rows in parts]
    outcomes = in_parallel(calls, range(len(parts)), n_jobs, verbose, "without part {}".format)
    found = np.array([shares for _, shares in outcomes])
    names = [str(name) for name in getattr(X, "columns", range(units.size))]
    return Relevance(names, values, found)


def _part(search: Any, units: Array, X: Any, y: Any, rows: Array, params: dict[str, Any]) -> Array:
    """Relevance by a search on a part of the rows."""
    some = {name: select_rows(v, rows) for name, v in params.items()}
    with warnings.catch_warnings():
        # scores of the parts are of no interest, only what is chosen
        warnings.filterwarnings("ignore", "the mean score over the splits")
        search.fit(select_rows(X, rows), select_rows(y, rows), **some)
    return _shares(search, units)


def _shares(search: Any, units: Array) -> Array:
    gamma = search.best_params_.get("gamma")
    if not isinstance(gamma, (int, float, np.ndarray)) or units.size == 0:
        raise ValueError(
            f"relevance needs a search for one gamma per column, but the winner has gamma={gamma!r}"
            "; fit KernelGradientSearchCV with gamma=Interval(..., per_feature=True)"
        )
    if np.size(gamma) not in (1, units.size):
        raise ValueError(
            f"X has {units.size} columns, but the search chose a gamma for {np.size(gamma)}; pass "
            "the rows that it was fitted to"
        )
    found = np.broadcast_to(gamma, units.size) * units
    return np.asarray(found / found.sum())


def _units(search: Any, X: Any) -> Array:
    """The factor of gamma: the spread of each column."""
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    spread = dense.std(axis=0)
    kernel = search.best_params_.get("kernel", search.estimator.kernel)
    return np.asarray(spread**2 if isinstance(named_kernel(kernel), Gaussian) else spread)
