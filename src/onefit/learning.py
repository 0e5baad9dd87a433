"""Learning curves, and expanding windows of kernel ridge regression and LS-SVM without refits.

One Cholesky factor of the rows in an order solves every leading part of them
(:mod:`onefit.prefixes.factor`). In a learning curve the order is a random permutation of the
training part of a split, in an expanding window it is time.

This requires a ridge that does not depend on the number of rows: ``scaling="total"``. Under
``scaling="mean"`` each size has its own factor; ten equal steps then cost 3 factors of the largest
size instead of one. Large sizes of a learning curve are solved by iterations, side by side, where
that takes less time (:mod:`onefit.prefixes.parts`).

Losses other than the squared one have no such factor. Their learning curves are certified fits
(onefit.proof.certificate), each started from the solution of the previous size multiplied by the
ratio of the two ridges. Kernel values are always computed once for all splits and sizes.

The kernel is computed from all rows, as in searches: ``gamma="scale"`` uses the whole X.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state

from onefit import linalg
from onefit._indexing import select_rows
from onefit._result import DrawnResult
from onefit._types import Array, Indices
from onefit.heldout import HeldOut
from onefit.heldout.refit import refit_fold
from onefit.prefixes import MAX_COLUMNS, Order, PartFits, Prefixes, dense_problem, scores_by
from onefit.problem import Problem
from onefit.progress import counted
from onefit.search.scorers import fast_metric, look_up

__all__ = [
    "ExpandingWindow",
    "LearningCurve",
    "expanding_window",
    "heldout_windows",
    "learning_curve",
]

#: advice for windows of other models
USE_TIME_SERIES = "use heldout_predict with TimeSeriesSplit"


@dataclass(frozen=True)
class LearningCurve(DrawnResult):
    """Scores by number of training rows; larger is better.

    Attributes
    ----------
    train_sizes : (S,) array
    train_scores, test_scores : (S, R) arrays
        One column per split and permutation, split by split within a permutation.
    error : float
        The largest bound on the error of a prediction that was scored, in units of the targets'
        scale; NaN for the squared loss, whose values follow by formulas without a bound.
    """

    train_sizes: Array
    train_scores: Array = field(repr=False)
    test_scores: Array = field(repr=False)
    error: float = np.nan

    @property
    def mean(self) -> Array:
        """Mean test score at each size."""
        return np.asarray(self.test_scores.mean(axis=1))

    def band(self, level: float = 0.8) -> tuple[Array, Array]:
        """Quantiles of the test scores that contain a share ``level`` of the repeats."""
        tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
        low, high = np.quantile(self.test_scores, tails, axis=1)
        return low, high

    @property
    def sentence(self) -> str:
        """The result in words."""
        (few, many), (low, high) = self.train_sizes[[0, -1]], self.mean[[0, -1]]
        return (
            f"mean held-out score {low:.4g} from {few:,} training rows and {high:.4g} from {many:,}"
        )

    def draw(self, axis: Any) -> None:
        """Draw mean test and training scores, with the band of the test scores."""
        axis.fill_between(self.train_sizes, *self.band(), alpha=0.2)
        axis.plot(self.train_sizes, self.mean, marker="o", label="held-out rows")
        axis.plot(self.train_sizes, self.train_scores.mean(axis=1), "--", label="training rows")
        axis.set(xlabel="training rows", ylabel="score")
        axis.legend()


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    train_sizes: Any = None,
    cv: Any = None,
    scoring: Any = None,
    n_permutations: int = 1,
    groups: Any = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> LearningCurve:
    """Scores of models trained on increasing numbers of rows, equal to refits.

    Parameters
    ----------
    estimator : KernelRegressor, KernelClassifier or fitted search
        Of a search the winner is used; its parameters are not tuned again at each size. With the
        squared loss no model is refitted.
    X, y : rows and targets
    train_sizes : array, default=ten equal steps
        Numbers of training rows, or shares of the smallest training part.
    cv : int, splitter or iterable of splits, default=None
        None means the splits of the search, or five folds.
    scoring : str, callable or None, default=None
    n_permutations : int, default=1
        Random orders of each training part.
    groups : array of shape (n,), default=None
        For the splitter; None takes those of the search.
    random_state : int, RandomState or None, default=0
        With one permutation, the scores are those of scikit-learn's ``learning_curve`` with
        ``shuffle=True`` and the same ``random_state``.
    verbose : int, default=0
        1 prints a line after each order of a split.

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
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations!r}")
    given, problem = dense_problem(estimator, X, y, "learning_curve", 2.5, groups=groups)
    model, folds = given.model, given.splits(cv, X, y)
    score = _scorer(model, scoring, X, y, problem.Y)
    sizes = _sizes(train_sizes, min(part.size for part in folds.train))
    random = check_random_state(random_state)
    parts = [(one, k) for one in range(n_permutations) for k in range(len(folds))]
    orders = [random.permutation(folds.train[k]) for _, k in parts]
    for order in orders:
        _check_classes(model, y, order[: sizes[0]])
    closed = problem.quadratic and model.spec().coding.columns_are_targets
    values = _closed_values if closed else _refitted_values
    tests = [folds.test[k] for _, k in parts]
    predicted = values(problem, float(model.lam), orders, sizes, tests)
    found, error = np.empty((2, sizes.size, len(parts))), np.nan
    names = counted(parts, verbose, lambda part: f"order {part[0] + 1} of split {part[1]}")
    for column, _ in enumerate(names):
        trained, tested, one = next(predicted)
        error = float(np.fmax(error, one))
        found[0, :, column] = score(trained, orders[column][: sizes[-1]], sizes)
        found[1, :, column] = score(tested, tests[column], np.full(sizes.size, tests[column].size))
    return LearningCurve(sizes, found[0], found[1], error)


#: values of the rows of the largest part (S, m, q), meaningless beyond a part, and of the test
#: rows (S, t, q); and the largest bound on their errors
_Values = tuple[Array, Array, float]


def _closed_values(
    problem: Problem, lam: float, orders: list[Indices], sizes: Indices, tests: list[Indices]
) -> Iterator[_Values]:
    """The values of the squared loss for every order; u = y - c a on the rows of a part."""
    K, q = problem.K.matrix, problem.Y.shape[1]
    parts = [
        Order(order[: sizes[-1]], sizes, np.array([problem.ridge(lam, order[:m]) for m in sizes]))
        for order in orders
    ]
    fits = PartFits(K, problem.Y, problem.fit_intercept)
    step = max(1, MAX_COLUMNS // (sizes.size * q))
    for first in range(0, len(parts), step):
        some = slice(first, first + step)
        for part, test, own in zip(parts[some], tests[some], fits.fits(parts[some]), strict=True):
            a = np.stack([fit.a[part.rows] for fit in own], axis=1)
            trained = problem.Y[part.rows][:, None] - part.ridges[:, None] * a
            across = linalg.submatrix(K, test, part.rows)
            columns = np.asfortranarray(a.reshape(part.rows.size, -1))
            tested = linalg.matmul(across, columns).reshape(test.size, *a.shape[1:])
            tested = tested + np.array([fit.b for fit in own])
            yield trained.swapaxes(0, 1), tested.swapaxes(0, 1), np.nan


def _refitted_values(
    problem: Problem, lam: float, orders: list[Indices], sizes: Indices, tests: list[Indices]
) -> Iterator[_Values]:
    """The values of other losses, each fit started from that of the previous size."""
    everything = np.arange(problem.n)
    for order, test in zip(orders, tests, strict=True):
        trained, tested, errors, start = [], [], [], None
        for m, larger in zip(sizes, [*sizes[1:], sizes[-1]], strict=True):
            found = refit_fold(problem, lam, order[:m], everything, start)
            errors.append((found.error / problem.scale).max())
            trained.append(found.values[order[: sizes[-1]]])
            tested.append(found.values[test])
            ratio = problem.ridge(lam, order[:m]) / problem.ridge(lam, order[:larger])
            start = found.solution.scaled(np.full(problem.Y.shape[1], ratio))
        yield np.array(trained), np.array(tested), float(np.max(errors))


def _scorer(model: Any, scoring: Any, X: Any, y: Any, Y: Array) -> Callable[..., Array]:
    """Scores of values (S, m, q) of some rows, of all or of the first ones of them each."""
    scorer = check_scoring(model, scoring)
    plain = model.spec().coding.columns_are_targets
    metric, sign = fast_metric(scorer, model) if plain else (None, 1)
    if metric is not None:
        fast = scores_by(metric, sign)

        def score(values: Array, rows: Indices, sizes: Indices) -> Array:
            return fast(values, Y[rows], (np.arange(rows.size) < sizes[:, None]).astype(float))

        return score

    def one(u: Array, rows: Indices) -> float:
        return float(scorer(look_up(model, u), select_rows(X, rows), select_rows(y, rows)))

    return lambda values, rows, sizes: np.array(
        [one(u[:m], rows[:m]) for m, u in zip(sizes, values, strict=True)]
    )


@dataclass(frozen=True)
class ExpandingWindow:
    """One-step-ahead residuals of a model that is trained on all rows before.

    Attributes
    ----------
    residuals : (n - 1,) or (n - 1, q) array
        Target minus prediction, from the second row on; of a classifier for labels -1 and +1.
    log_evidence : (n - 1,) or (n - 1, q) array
        Logarithm of the density of the targets up to each row under the Gaussian process with this
        kernel and ridge, its scale chosen best; infinite while all targets so far are equal. See
        :mod:`onefit.prefixes.factor`.
    """

    residuals: Array = field(repr=False)
    log_evidence: Array = field(repr=False)


def expanding_window(estimator: Any, X: Any, y: Any) -> ExpandingWindow:
    """Predict each row by the model of all rows before it; one factor gives all n models.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier with the squared loss and scaling="total"
        Or a fitted search over one.
    X, y : rows and targets in the order of time

    Returns
    -------
    ExpandingWindow

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> X = np.linspace(0, 9, 50)[:, None]
    >>> model = KernelRegressor(gamma=1.0, lam=0.1, scaling="total")
    >>> expanding_window(model, X, np.sin(X[:, 0])).residuals.shape
    (49,)
    """
    given, problem = dense_problem(
        estimator, X, y, "expanding_window", 2.0, squared=True, advice=USE_TIME_SERIES
    )
    model = given.model
    if model.scaling != "total":
        raise ValueError(
            "expanding_window needs scaling='total': with scaling='mean' the ridge grows with the "
            "number of rows and every row needs a factor of its own; pass "
            "scaling='total', lam=lam * n, or use heldout_windows with fewer splits"
        )
    found = Prefixes(problem.K.matrix, problem.Y, float(model.lam), problem.fit_intercept)
    pair = found.one_step, found.log_evidence
    return ExpandingWindow(*(one[:, 0] if one.shape[1] == 1 else one for one in pair))


def heldout_windows(estimator: Any, X: Any, y: Any, *, cv: Any = None) -> HeldOut:
    """Held-out values of splits that train on all rows up to some row, without refits.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier with the squared loss, or a fitted search
        With ``scaling="total"`` one factor serves all splits.
    X, y : rows and targets in the order of time
    cv : splitter or iterable of splits, default=None
        ``TimeSeriesSplit``, with or without a gap; None means the splits of the search. Every
        training part must be the first m rows.

    Returns
    -------
    HeldOut
        Without error bounds.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import TimeSeriesSplit
    >>> from onefit import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> heldout_windows(KernelRegressor(), X, y, cv=TimeSeriesSplit(4)).by_fold[0].shape
    (88,)
    """
    given, problem = dense_problem(
        estimator, X, y, "heldout_windows", 2.5, squared=True, advice=USE_TIME_SERIES
    )
    model, folds = given.model, given.splits(cv, X, y)
    for k, (train, test) in enumerate(folds):
        if not np.array_equal(np.sort(train), np.arange(train.size)) or test.min() < train.size:
            raise ValueError(
                f"the training part of split {k} is not the first rows of the data, with its test "
                "rows after them; use TimeSeriesSplit without max_train_size, or heldout_predict"
            )
        _check_classes(model, y, train)
    K, lam = problem.K.matrix, float(model.lam)
    sizes, place = np.unique([train.size for train in folds.train], return_inverse=True)
    ridges = np.array([problem.ridge(lam, np.arange(m)) for m in sizes])
    parts = PartFits(K, problem.Y, problem.fit_intercept)
    fits = next(parts.fits([Order(np.arange(sizes[-1]), sizes, ridges)]))
    values = [
        linalg.matmul(linalg.submatrix(K, test, train), fits[i].a[train]) + fits[i].b
        for i, (train, test) in zip(place, folds, strict=True)
    ]
    unknown = np.full(len(folds), np.nan)
    zero, none = np.zeros(len(folds), dtype=np.intp), np.zeros(len(folds), dtype=bool)
    known = {"targets": y, **model.spec().coding.decoders}
    return HeldOut(np.concatenate(values), folds, "prefixes", none, unknown, zero, zero, **known)


def _sizes(wanted: Any, most: int) -> Array:
    """Numbers of training rows, increasing."""
    given = np.ravel(np.linspace(0.1, 1.0, 10) if wanted is None else wanted)
    sizes = given * most if given.dtype.kind == "f" else given
    if given.dtype.kind not in "fiu" or not (sizes.size and np.all((sizes >= 2) & (sizes <= most))):
        raise ValueError(
            f"train_sizes={wanted!r} must be shares in (0, 1] or numbers from 2 to {most}, the "
            "rows of the smallest training part; each size needs at least two rows"
        )
    return np.unique(sizes.astype(int))


def _check_classes(model: Any, y: Any, rows: Array) -> None:
    """Refuse training rows that lack a class, as a fit does."""
    if is_classifier(model) and np.unique(np.asarray(y)[rows]).size < len(model.classes_):
        raise ValueError(
            f"the first {rows.size} training rows lack a class; start with more training rows"
        )
