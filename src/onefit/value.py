r"""Values of training rows for the held-out score, by removal and by Shapley, without refits.

The score is minus the squared error of held-out values (of a classifier, of decision values against
labels -1 and +1), or any metric that is a function of means over rows
(:class:`onefit.scoring.Metric`).

**Removal.** The value of a row, or of a unit of rows such as a patient, is the cross-validated
score with it minus the score without it, at the same kernel and lam and with the same folds: rows G
leave both the training parts and the test rows. A split that tests S then trains on all rows
but S and G. With P the projected inverse at the ridge of that training part and alpha = P y
(onefit.heldout.squared), its held-out residuals are those of leaving out both sets,

    [ P_SS  P_SG ] [ t_S ]   [ alpha_S ]
    [ P_GS  P_GG ] [ t_G ] = [ alpha_G ].

Eliminating S once per split, with Z = P_SS^-1 P_S. and z = P_SS^-1 alpha_S,

    (P_GG - P_GS Z_G) t_G = alpha_G - P_GS z,         t_S = z - Z_G t_G,

costs n^2 |S| operations per split, and n^2 |S| more for all rows G = {i} together. Under mean
scaling the ridge is lam times the number of training rows: each number has an inverse of its own,
two for single rows and equal folds.

**Shapley values** (Ghorbani and Zou 2019, "Data Shapley") average, over random orders of the
training rows, what a row adds to the score of the rows before it. One Cholesky factor per order
solves all leading parts, and the predictions of all of them are cumulative sums
(:mod:`onefit.prefixes.factor`): n^3 / 3 operations for n models. The orders are independent, so
that their standard deviation gives a standard error. (What a row adds is skewed, most of all where
it comes first: with few orders, fewer values than usual are within two standard errors.) The values
of all rows of a training part add up to the score of its model minus that of no rows, whose
prediction is the mean of the targets (0 without an intercept). ``max_rows`` truncates each order:
rows after that number add 0, which is nearly true where the score no longer changes.

All subsets have the ridge of the whole training part. Under ``scaling="mean"`` it is lam times the
number of its rows; a ridge that grew with the subset would need a factor for each.

**Mislabelled rows** lower the score and are among the rows of least value. The margin of the
held-out decision value finds them at least as well, whichever score is used (benchmarks/value.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, mean_squared_error
from sklearn.utils import check_random_state, gen_batches

from onefit import linalg
from onefit._result import DrawnResult
from onefit._types import Array, Indices
from onefit.folds import Folds
from onefit.heldout.ties import rounded_decisions
from onefit.inverse import DenseInverse
from onefit.prefixes import Prefixes, Score, dense_problem, scores_by
from onefit.problem import Problem
from onefit.progress import counted
from onefit.scoring import ROW_METRICS
from onefit.search.scorers import fast_metric
from onefit.spec.coding import class_codes

__all__ = ["RowValues", "removal_values", "shapley_values"]

#: the score of ``scoring=None``, also of the decision values of a classifier
SQUARED_ERROR = ROW_METRICS[mean_squared_error]


@dataclass(frozen=True)
class RowValues(DrawnResult):
    """Values of units: the increase of the score by each; negative for harmful units.

    Attributes
    ----------
    units : (U,) array
        Numbers of the rows, or the labels of the units, sorted.
    values : (U,) array
    standard_errors : (U,) array
        NaN with a single order; 0 for removal, which is exact.
    score : float
        With all rows.
    """

    units: Array = field(repr=False)
    values: Array = field(repr=False)
    standard_errors: Array = field(repr=False)
    score: float

    @property
    def worst(self) -> Array:
        """The units in increasing order of their values."""
        return np.asarray(self.units[np.argsort(self.values, kind="stable")])

    @property
    def sentence(self) -> str:
        """The result in words."""
        lower, least = int((self.values < 0.0).sum()), float(np.nanmin(self.values))
        return (
            f"the score {self.score:.4g} would be higher without {lower:,} of "
            f"{self.values.size:,} units; unit {self.worst[0]} has the least value, {least:.3g}"
        )

    def draw(self, axis: Any) -> None:
        """Draw the values in increasing order, with their standard errors."""
        order = np.argsort(self.values, kind="stable")
        axis.errorbar(
            np.arange(order.size), self.values[order], self.standard_errors[order], fmt=".",
            ecolor="0.7",
        )  # fmt: skip
        axis.axhline(0.0, color="0.5", lw=1)
        axis.set(xlabel="units by value", ylabel="increase of the score")


def removal_values(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    scoring: Any = None,
    units: Any = None,
    groups: Any = None,
    verbose: int = 0,
) -> RowValues:
    """Decrease of the cross-validated score when a row or a unit is removed from the data.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier with the squared loss, or a fitted search
        For a search, its winner; parameters are not tuned again.
    X, y : rows and targets
    cv : int, splitter or iterable of splits, default=None
        None means the splits of the search, or five folds. The score is the mean over the splits
        that have test rows left.
    scoring : str, callable or None, default=None
        None is minus the mean squared error of held-out values; a
        :class:`onefit.scoring.Metric` sets another one.
    units : array of shape (n,), default=None
        Labels of rows that are removed together; None removes each row by itself.
    groups : array of shape (n,), default=None
        For the splitter; None takes those of the search.
    verbose : int, default=0
        1 prints a line after each split.

    Returns
    -------
    RowValues

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> X = np.linspace(0, 5, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[20] += 3
    >>> found = removal_values(KernelRegressor(gamma=1.0, lam=1e-2), X, y)
    >>> int(found.worst[0])
    20
    """
    given, problem = dense_problem(
        estimator, X, y, "removal_values", 3.0, groups=groups, squared=True
    )
    model, folds = given.model, given.splits(cv, X, y)
    score = _scorer(model, scoring)
    labels, member = _units(units, problem.n)
    everything = [
        np.empty(0, dtype=np.intp),
        *(np.flatnonzero(member == u) for u in range(labels.size)),
    ]
    ridges = _ridges(problem, float(model.lam), folds, everything, model)
    scores = np.full((len(folds), len(everything)), np.nan)
    parts = [(c, k) for c in np.unique(ridges) for k in range(len(folds)) if c in ridges[k]]
    P, alpha, of_ridge = np.empty((0, 0)), np.empty((0, 0)), np.nan
    for ridge, k in counted(parts, verbose, lambda part: f"split {part[1]}, ridge {part[0]:.3g}"):
        if ridge != of_ridge:
            del P  # to make room for the next one
            (P, alpha), of_ridge = _projected(problem, float(ridge)), ridge
        test, mine = folds.test[k], np.flatnonzero(ridges[k] == ridge)
        left = np.array([~np.isin(test, everything[u]) for u in mine], dtype=float)
        sets, Y = [everything[u] for u in mine], problem.Y[test]
        for some, missed in _left_out_twice(P, alpha, folds.removed[k], test, sets):
            kept = left[some].any(axis=1)
            u = (Y - missed)[kept]
            u = rounded_decisions(u) if is_classifier(model) else u
            scores[k, mine[some][kept]] = score(u, Y, left[some][kept])
    untested = np.flatnonzero(np.isnan(scores).all(axis=0))
    if untested.size:
        raise ValueError(
            f"without the unit of row {everything[untested[0]][0]} no split has test rows; use "
            "smaller units or more folds"
        )
    mean = np.nanmean(scores, axis=0)
    value = mean[0] - mean[1:]
    return RowValues(labels, value, np.zeros(value.size), float(mean[0]))


def shapley_values(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    scoring: Any = None,
    units: Any = None,
    n_permutations: int = 100,
    min_rows: int = 0,
    max_rows: int | None = None,
    groups: Any = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> RowValues:
    """Shapley values of training rows or units for the cross-validated score.

    The value is the mean over the splits that train on a row. For values on a given test set, stack
    it below the training rows and pass ``cv=[(training rows, test rows)]``.

    Parameters
    ----------
    estimator, X, y, cv, scoring, units, groups : as of :func:`removal_values`
    n_permutations : int, default=100
        Random orders of each training part.
    min_rows : int, default=0
        Number of rows at the beginning of an order that are not counted.
    max_rows : int, default=None
        Number of rows after which an order ends; later rows add 0. None uses all rows.
    random_state : int, RandomState or None, default=0
    verbose : int, default=0
        1 prints a line after each order of a split.

    Returns
    -------
    RowValues
        NaN for rows that no split trains on.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> X = np.linspace(0, 5, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[20] += 3
    >>> model = KernelRegressor(gamma=1.0, lam=1e-2)
    >>> found = shapley_values(model, X, y, cv=5, n_permutations=50, random_state=0)
    >>> int(found.worst[0])
    20
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations!r}")
    if min_rows < 0 or (max_rows is not None and max_rows <= min_rows):
        raise ValueError(
            f"min_rows={min_rows!r} must be at least 0, and max_rows={max_rows!r} larger than that "
            "or None"
        )
    given, problem = dense_problem(
        estimator, X, y, "shapley_values", 2.0, groups=groups, squared=True
    )
    model, folds = given.model, given.splits(cv, X, y)
    score, random = _scorer(model, scoring), check_random_state(random_state)
    labels, member = _units(units, problem.n)
    found, whole, trained = np.zeros((n_permutations, labels.size)), [], np.zeros(labels.size)
    parts = [(k, one) for k in range(len(folds)) for one in range(n_permutations)]
    for k, one in counted(parts, verbose, lambda part: f"order {part[1] + 1} of split {part[0]}"):
        train, test = folds.train[k], folds.test[k]
        present = np.unique(member[train])
        ridge = problem.ridge(float(model.lam), train)
        if one == 0:
            trained[present] += 1
            whole.append(_prefix_scores(problem, ridge, train, train, test, score)[-1])
        order = np.concatenate([train[member[train] == u] for u in random.permutation(present)])
        order = order[:max_rows]
        gained = np.diff(_prefix_scores(problem, ridge, order, train, test, score)[min_rows:])
        np.add.at(found[one], member[order[min_rows:]], gained)
    found /= np.where(trained > 0, trained, np.nan)
    errors = np.full(labels.size, np.nan)
    if n_permutations > 1:
        errors = found.std(axis=0, ddof=1) / np.sqrt(n_permutations)
    return RowValues(labels, found.mean(axis=0), errors, float(np.mean(whole)))


def _prefix_scores(
    problem: Problem, ridge: float, order: Indices, train: Indices, test: Indices, score: Score
) -> Array:
    """Scores (m + 1,) on test rows, with no row of an order, with the first, with two and so on."""
    K, Y = problem.K.matrix, problem.Y
    M, across = linalg.submatrix(K, order, order), linalg.submatrix(K, test, order)
    prefixes = Prefixes(M, Y[order], ridge, problem.fit_intercept, overwrite=True)
    none = Y[train].mean(axis=0) if problem.fit_intercept else np.zeros(Y.shape[1])
    size = max(1, linalg.CHUNK_ELEMENTS // (order.size * Y.shape[1]))
    parts = np.array_split(np.arange(test.size), -(-test.size // size))
    u = np.concatenate([prefixes.all_predictions(across[some]) for some in parts], axis=1)
    first = np.broadcast_to(none, (1, test.size, Y.shape[1]))
    return score(np.concatenate([first, u]), Y[test], np.ones(test.size))


def _left_out_twice(
    P: Array, alpha: Array, removed: Indices, test: Indices, sets: list[Indices]
) -> Iterator[tuple[slice, Array]]:
    """Residuals (b, t, q) of the test rows where each set leaves the training part too, in chunks.

    The rows ``removed`` from training are eliminated once: Z = P_SS^-1 P_S., z = P_SS^-1 alpha_S.
    """
    right = np.asfortranarray(np.column_stack([P[removed], alpha[removed]]))
    block = np.array(P[np.ix_(removed, removed)], order="F")
    solved = linalg.solve_spd(block, right, overwrite=True)
    Z, z, place = solved[:, : len(P)], solved[:, len(P) :], np.searchsorted(removed, test)
    outside = [np.setdiff1d(rows, removed, assume_unique=True) for rows in sets]
    for some in gen_batches(len(sets), max(1, linalg.CHUNK_ELEMENTS // (test.size * z.shape[1]))):
        found = np.repeat(z[None, place], some.stop - some.start, axis=0)
        sizes = np.array([rows.size for rows in outside[some]])
        alone = np.flatnonzero(sizes == 1)  # the same formula, all rows together
        H = np.concatenate(outside[some])[np.repeat(sizes, sizes) == 1]
        cross = P[np.ix_(H, removed)]
        below = P[H, H] - np.einsum("hs,sh->h", cross, Z[:, H])
        t = (alpha[H] - cross @ z) / below[:, None]
        found[alone] -= Z[np.ix_(place, H)].T[:, :, None] * t[:, None, :]
        for i in np.flatnonzero(sizes > 1):
            H = outside[some][i]
            cross = P[np.ix_(H, removed)]
            t = np.linalg.solve(P[np.ix_(H, H)] - cross @ Z[:, H], alpha[H] - cross @ z)
            found[i] -= Z[np.ix_(place, H)] @ t
        yield some, found


def _projected(problem: Problem, ridge: float) -> tuple[Array, Array]:
    """P and P y at one ridge."""
    M = np.array(problem.K.matrix, dtype=np.float64, order="F")
    M[np.diag_indices(problem.n)] += ridge
    try:
        inverse = DenseInverse(M, np.ones(problem.n), problem.fit_intercept)
    except linalg.LinAlgError as error:
        raise ValueError(
            f"the kernel matrix plus its ridge ({ridge:.1e}) is not positive definite to working "
            "precision; raise lam"
        ) from error
    alpha = inverse.solve(problem.Y)
    P = inverse.matrix
    linalg.rank_one(P, -inverse.border, inverse.border)
    return P, alpha


def _ridges(problem: Problem, lam: float, folds: Folds, sets: list[Indices], model: Any) -> Array:
    """Lambda of every split without every set, (k, U + 1); refuses what cannot be fitted."""
    found = np.empty((len(folds), len(sets)))
    codes = class_codes(problem.Y) if is_classifier(model) else np.zeros(problem.n, dtype=int)
    for k, (train, disjoint) in enumerate(zip(folds.train, folds.disjoint, strict=True)):
        if not disjoint:
            raise ValueError(f"split {k} tests rows that it trains on; use another splitter")
        trained = np.zeros(problem.n, dtype=bool)
        trained[train] = True
        counts = np.bincount(codes[train], minlength=codes.max() + 1)
        for u, rows in enumerate(sets):
            gone = np.bincount(codes[rows[trained[rows]]], minlength=counts.size)
            if (gone == counts).any() or (counts - gone).sum() < 2:
                raise ValueError(
                    f"without the unit of row {rows[0] if rows.size else 0} the training part of "
                    f"split {k} lacks a class or has fewer than two rows; use smaller units or "
                    "more folds"
                )
            left = float((counts - gone).sum())
            found[k, u] = lam if problem.scaling == "total" else lam * left
    return found


def _units(units: Any, n: int) -> tuple[Array, Indices]:
    """Labels of the units, and the number of that of each row."""
    if units is None:
        return np.arange(n), np.arange(n)
    if len(units) != n:
        raise ValueError(f"units has {len(units)} labels, but X has {n} rows")
    labels, member = np.unique(np.asarray(units), return_inverse=True)
    return labels, member


def _scorer(model: Any, scoring: Any) -> Score:
    """The scores of many sets of held-out values of the same rows."""
    if scoring is None:
        return scores_by(SQUARED_ERROR, -1)
    metric, sign = fast_metric(check_scoring(model, scoring), model)
    if metric is None:
        raise ValueError(
            f"scoring={scoring!r} is not a function of means over rows; use None, accuracy, "
            "balanced_accuracy, r2, neg_mean_squared_error, neg_root_mean_squared_error, "
            "neg_mean_absolute_error or a onefit.scoring.Metric"
        )
    return scores_by(metric, sign)
