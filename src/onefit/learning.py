"""Learning curves of kernel ridge regression and LS-SVM without refits.

Put the training rows of a split in a fixed order and factor M = K + c I = L L' once. The leading
block L_m of L factors the matrix of the first m rows, so every prefix is solved by one back
substitution. With v = L^-1 y and w = L^-1 1, both computed once, the model of the first m rows is

    a = L_m^-T (v - b w)_{1..m},     b = sum_{j<=m} w_j v_j / sum_{j<=m} w_j^2

(b = 0 without an intercept): the intercept is a second column. Training predictions follow from
the stationarity condition, u = y - c a, and test predictions are K_test a + b.

This needs a ridge c that does not depend on m: ``scaling="total"``. Under ``scaling="mean"`` the
ridge is c = lam m, and no factor of one size serves another, so each size is factored by itself.
Ten equal steps then cost 3 factors of the largest size instead of one; kernel values are still
computed once for all splits and sizes.

The kernel is fixed on all rows, as in searches: ``gamma="scale"`` reads the whole X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state

from onefit import linalg
from onefit._indexing import select_rows
from onefit._types import Array
from onefit.estimators.accepted import check_accepted, check_exact_kernel, unwrap
from onefit.folds import Folds
from onefit.search.scorers import look_up

__all__ = ["LearningCurve", "learning_curve"]


@dataclass(frozen=True)
class LearningCurve:
    """Scores by number of training rows; larger is better.

    Attributes
    ----------
    train_sizes : (S,) array
    train_scores, test_scores : (S, R) arrays
        One column per split and permutation, split by split within a permutation.
    """

    train_sizes: Array
    train_scores: Array = field(repr=False)
    test_scores: Array = field(repr=False)

    @property
    def mean(self) -> Array:
        """Mean test score at each size."""
        return np.asarray(self.test_scores.mean(axis=1))

    def band(self, level: float = 0.8) -> tuple[Array, Array]:
        """Quantiles of the test scores that contain a share ``level`` of the repeats."""
        tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
        low, high = np.quantile(self.test_scores, tails, axis=1)
        return low, high

    def plot(self, ax: Any = None) -> Any:
        """Draw mean test and training scores, with the band of the test scores."""
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(layout="constrained")
        ax.fill_between(self.train_sizes, *self.band(), alpha=0.2)
        ax.plot(self.train_sizes, self.mean, marker="o", label="held-out rows")
        ax.plot(self.train_sizes, self.train_scores.mean(axis=1), "--", label="training rows")
        ax.set(xlabel="training rows", ylabel="score")
        ax.legend()
        return ax


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    train_sizes: Any = None,
    cv: Any = 5,
    groups: Any = None,
    n_permutations: int = 1,
    scoring: Any = None,
    random_state: Any = None,
) -> LearningCurve:
    """Scores of models trained on more and more rows, equal to refits.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier with the squared loss, or a fitted search
        Of a search, the parameters of the winner are used at every size; they are not tuned again.
    X, y : rows and targets
    train_sizes : array, default=ten equal steps
        Numbers of training rows, or shares of the smallest training part.
    cv : int, splitter or iterable of splits, default=5
    groups : array of shape (n,), default=None
        For the splitter.
    n_permutations : int, default=1
        Random orders of each training part.
    scoring : str, callable or None, default=None
    random_state : int, RandomState or None, default=None
        With one permutation, the scores are those of scikit-learn's ``learning_curve`` with
        ``shuffle=True`` and the same ``random_state``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefit import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelRegressor(gamma=3.0, lam=0.1, scaling="total")
    >>> curve = learning_curve(model, X, y, random_state=0)
    >>> bool(curve.mean[-1] > curve.mean[0])
    True
    """
    if hasattr(estimator, "param_grid") and not hasattr(estimator, "best_estimator_"):
        raise ValueError("learning_curve needs a fitted search: fit it first, with refit=True")
    model = clone(unwrap(getattr(estimator, "best_estimator_", estimator)))
    check_accepted(model, "learning_curve")
    check_exact_kernel(model, "learning_curve", "pass an estimator with approximation=None")
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations!r}")
    if issparse(X) or linalg.is_elsewhere(X) or model.spec().precomputed:
        raise ValueError(
            "learning_curve takes a dense X in host memory and no precomputed kernel; use "
            "sklearn.model_selection.learning_curve"
        )
    problem = model._prepare(X, y, None)
    if not problem.quadratic or not model.spec().coding.columns_are_targets:
        raise ValueError(
            "learning_curve is for the squared loss with one column per target or class; use "
            "sklearn.model_selection.learning_curve"
        )
    if (problem.s != 1.0).any():
        raise ValueError("learning_curve does not take class weights; set class_weight=None")
    scorer = check_scoring(model, scoring)
    folds = Folds.draw(cv, X, y, groups, classifier=is_classifier(model))
    sizes = _sizes(train_sizes, min(part.size for part in folds.train))
    random = check_random_state(random_state)
    K, Y, columns = problem.K.matrix, problem.Y, []
    for _ in range(n_permutations):
        for train, test in folds:
            order = random.permutation(train)
            _check_classes(model, y, order[: sizes[0]])
            M = linalg.submatrix(K, order, order)
            across = linalg.submatrix(K, test, order)
            prefixes = _Prefixes(M, Y[order], problem.fit_intercept, model, int(sizes[-1]))
            scores = []
            for m in map(int, sizes):
                a, b, c = prefixes.solve(m)
                values = (Y[order[:m]] - c * a, across[:, :m] @ a + b)
                rows = (order[:m], test)
                scores.append(
                    [
                        scorer(look_up(model, u), select_rows(X, r), select_rows(y, r))
                        for u, r in zip(values, rows, strict=True)
                    ]
                )
            columns.append(scores)
    found = np.array(columns, dtype=float)
    return LearningCurve(sizes, found[:, :, 0].T, found[:, :, 1].T)


class _Prefixes:
    """Models of the first m rows of one order."""

    def __init__(self, M: Array, Y: Array, fit_intercept: bool, model: Any, largest: int) -> None:
        self.M, self.Y, self.fit_intercept = M, Y, fit_intercept
        self.ridge: Callable[[int], float] = lambda m: model.spec().ridge(model.lam, float(m))
        self.shared = self._factor(largest) if model.scaling == "total" else None

    def _factor(self, m: int) -> tuple[Array, Array]:
        """L, and L^-1 [y, 1]."""
        M = np.array(self.M[:m, :m], order="F")
        M[np.diag_indices(m)] += self.ridge(m)
        lower = linalg.cholesky(M, overwrite=True)
        right = np.column_stack([self.Y[:m], np.ones(m, dtype=self.Y.dtype)])
        return lower, linalg.solve_lower(lower, np.asfortranarray(right))

    def solve(self, m: int) -> tuple[Array, Array, float]:
        """Coefficients (m, q), intercepts (q,) and ridge."""
        lower, solved = self.shared or self._factor(m)
        v, w = solved[:m, :-1], solved[:m, -1]
        b = (w @ v) / (w @ w) if self.fit_intercept else np.zeros(v.shape[1], dtype=v.dtype)
        right = np.asfortranarray(v - w[:, None] * b)
        return linalg.solve_upper(lower[:m, :m].T, right), b, self.ridge(m)


def _sizes(wanted: Any, most: int) -> Array:
    """Numbers of training rows, increasing."""
    given = np.unique(np.linspace(0.1, 1.0, 10) if wanted is None else np.asarray(wanted))
    found = np.unique((given * most).astype(int)) if given.dtype.kind == "f" else given
    if found.size == 0 or found[0] < 2 or found[-1] > most:
        raise ValueError(
            f"train_sizes={wanted!r} must be shares in (0, 1] or numbers from 2 to {most}, the "
            "rows of the smallest training part; each size needs two rows at least"
        )
    return found


def _check_classes(model: Any, y: Any, rows: Array) -> None:
    """Refuse a smallest size whose rows lack a class, which no refit accepts either."""
    if is_classifier(model) and np.unique(np.asarray(y)[rows]).size < len(model.classes_):
        raise ValueError(
            f"the first {rows.size} training rows lack a class; begin train_sizes with more rows"
        )
