"""Prediction intervals by jackknife+ and CV+ (Barber, Candes, Ramdas and Tibshirani 2021).

Let u^(-k) be the machine without the k-th fold, k(i) the fold of row i, and R_i = |y_i -
u^(-k(i))(x_i)| its held-out residual. At a new point x the interval of CV+ is

    from the floor(alpha (n + 1))-th smallest of u^(-k(i))(x) - R_i,           i = 1..n,
    to the ceil((1 - alpha) (n + 1))-th smallest of u^(-k(i))(x) + R_i.

Jackknife+ is CV+ with n folds. Whatever the distribution, if rows are exchangeable the new target
is inside with probability at least 1 - 2 alpha (jackknife+), and at least 1 - 2 alpha less a term
of order 1/sqrt(n) (CV+); in practice it is close to 1 - alpha. The coverage is on average over x,
not at each x.

The refits that make the method dear elsewhere are not needed: all k machines come from one fit
(onefit.uncertainty.machines), exact for the squared loss and, by Newton steps, for the others.
Parameters chosen on the same rows are not exchangeable with the new one; with many candidates the
intervals are somewhat too short. gamma="scale" looks at X alone.

**Weights.** A row of weight s_i stands for s_i equal rows that share a fold, in the fits and in the
ranks, and the new row weighs 1: the interval ends at the smallest u^(-k(i))(x) + R_i with

    sum of s_j over all j whose u^(-k(j))(x) + R_j is no larger  >=  (1 - alpha) (sum(s) + 1),

and begins at the mirror image. With s = 1 that is the rank above. Weights of at most 1 that say how
much a row is like the new one (recent rows 1, old ones less), fixed before y is seen, give the
interval of Barber, Candes, Ramdas and Tibshirani (2023, "Conformal prediction beyond
exchangeability"), which loses no more coverage than weighted distances between distributions. The
size of the weights matters: twice the weights claim twice the rows. Weights that are precisions
(one over the variance of a row's noise) make R_i of unequal sizes comparable in neither way: the
intervals are then right on average at most, not for rows of one precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold
from sklearn.utils import indexable

from onefit import linalg
from onefit._validation import check_choice
from onefit.estimators import inside
from onefit.fit import fit
from onefit.folds import Folds, leave_one_out
from onefit.kernels import Geometry
from onefit.problem import Problem
from onefit.stream.expansion import FeatureGram
from onefit.stream.fit import fit_features
from onefit.uncertainty.machines import leave_out, leave_out_features

Array = NDArray[Any]

__all__ = ["PredictionInterval", "predict_interval"]


#: values that a repr shows
SHOWN = 10


@dataclass(frozen=True)
class PredictionInterval:
    """Predictions and the intervals around them; (m,) arrays, or (m, q) for several targets."""

    prediction: Array
    lower: Array
    upper: Array
    alpha: float
    method: str

    def __repr__(self) -> str:
        """The first rows as a table."""
        arrays = (self.prediction, self.lower, self.upper)
        columns = [[f"{value:.6g}" for value in np.ravel(one)[:SHOWN]] for one in arrays]
        head = f"PredictionInterval(alpha={self.alpha}, method={self.method!r}): {self._size()}"
        lines = [("prediction", "lower", "upper"), *zip(*columns, strict=True)]
        more = ["..."] if np.size(self.prediction) > SHOWN else []
        return "\n".join([head, *("".join(f"{c:>14}" for c in line) for line in lines), *more])

    def _size(self) -> str:
        shape = np.shape(self.prediction)
        targets = f" x {shape[1]} targets, listed row by row" if len(shape) > 1 else ""
        return f"{shape[0]} {'row' if shape[0] == 1 else 'rows'}{targets}"


def predict_interval(
    estimator: Any,
    X_train: Any,
    y_train: Any,
    X_new: Any,
    alpha: float = 0.1,
    method: str = "cv+",
    cv: Any = 10,
    random_state: Any = 0,
    sample_weight: Any = None,
) -> PredictionInterval:
    """Intervals that hold new targets with probability about 1 - alpha, without refits.

    Parameters
    ----------
    estimator : KernelRegressor, or a fitted search over it
        Its parameters are used; it is not changed.
    X_train, y_train : training rows and targets
    X_new : array or sparse matrix of shape (m, d)
        Where to predict (kernel values against X_train when the kernel is precomputed).
    alpha : float, default=0.1
        At least 1 / (n + 1), n the sum of the weights.
    method : {"cv+", "jackknife+"}, default="cv+"
    cv : int, splitter or iterable of splits, default=10
        Of "cv+": disjoint folds that cover all rows; an int draws shuffled ones.
    random_state : int, RandomState or None, default=0
        For the shuffle.
    sample_weight : array of shape (n,), default=None
        How many rows each row stands for, in the fits and in the ranks of the held-out residuals;
        see the head of this module. Rows of weight zero count for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> from onefit.uncertainty import predict_interval
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(0, 6, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * random.normal(size=200)
    >>> found = predict_interval(KernelRegressor(lam=1e-4), X, y, [[1.0], [4.0]])
    >>> bool(((found.lower < np.sin([1.0, 4.0])) & (np.sin([1.0, 4.0]) < found.upper)).all())
    True
    """
    check_choice("method", method, ("cv+", "jackknife+"))
    machine = _machine(estimator)
    X_train, y_train = indexable(X_train, y_train)
    problem = inside.prepare(machine, X_train, y_train, sample_weight)
    alpha = _check_alpha(alpha, float(problem.s.sum()))
    fold_of = _fold_of(method, cv, X_train, y_train, problem.n, random_state)
    X_new = inside.check_rows(machine, X_new, reset=False)
    if inside.is_approximate(machine):
        return _in_features(machine, problem, fold_of, X_new, alpha, method)
    K_new = np.ascontiguousarray(inside.kernel_of(machine).matrix(Geometry(X_new, machine.X_fit_)))
    if not problem.s.all():
        rows = np.flatnonzero(problem.s)
        problem, K_new, fold_of = problem.take(rows), K_new[:, rows], fold_of[rows]
    left = leave_out(problem, _splits(fold_of), float(machine.lam))
    place = np.unique(fold_of, return_inverse=True)[1]
    own = [one.u[np.arange(problem.n), place] for one in left]
    outside = [linalg.matmul(K_new, one.a.astype(K_new.dtype)) + one.b for one in left]
    bounds = [
        _bounds(u, np.abs(y - mine), place, problem.s, alpha)
        for u, mine, y in zip(outside, own, problem.Y.T, strict=True)
    ]
    lower, upper = (np.stack(side, axis=1) for side in zip(*bounds, strict=True))
    full = fit(problem, float(machine.lam))
    prediction = linalg.matmul(K_new, full.a) + full.b
    if inside.has_one_target(machine):
        prediction, lower, upper = prediction[:, 0], lower[:, 0], upper[:, 0]
    return PredictionInterval(prediction, lower, upper, alpha, method)


def _in_features(
    machine: Any, problem: Problem, fold_of: Array, X_new: Any, alpha: float, method: str
) -> PredictionInterval:
    """The same for a machine with features in place of its kernel matrix."""
    if method == "jackknife+":
        raise ValueError(
            "method='jackknife+' makes a machine for every row, which is too many for an "
            "approximation; use method='cv+'"
        )
    if not problem.s.all():
        rows = np.flatnonzero(problem.s)
        problem, fold_of = problem.take(rows), fold_of[rows]
    lam, q = float(machine.lam), problem.Y.shape[1]
    W, b = leave_out_features(problem, _splits(fold_of), lam)
    place = np.unique(fold_of, return_inverse=True)[1]
    new = FeatureGram(X_new, problem.K.features)
    every = np.arange(X_new.shape[0])
    bounds = []
    for j in range(q):
        own = np.empty(problem.n)
        for k in range(W.shape[1]):
            rows = np.flatnonzero(place == k)
            own[rows] = problem.K.values(rows, W[:, [k], j])[:, 0] + b[k, j]
        outside = new.values(every, W[:, :, j]) + b[:, j]
        residual = np.abs(problem.Y[:, j] - own)
        bounds.append(_bounds(outside, residual, place, problem.s, alpha))
    lower, upper = (np.stack(side, axis=1) for side in zip(*bounds, strict=True))
    full, _ = fit_features(problem, lam)
    prediction = new.values(every, full.W) + full.b
    if inside.has_one_target(machine):
        prediction, lower, upper = prediction[:, 0], lower[:, 0], upper[:, 0]
    return PredictionInterval(prediction, lower, upper, alpha, method)


def _machine(estimator: Any) -> Any:
    """A fresh regressor with the parameters of ``estimator``, or of a search's winner."""
    if hasattr(estimator, "param_grid") or hasattr(estimator, "best_estimator_"):
        if not hasattr(estimator, "best_estimator_"):
            raise ValueError(
                "predict_interval needs the winner of a search: fit the search first, with "
                "refit=True"
            )
        estimator = estimator.best_estimator_
    inside.check_machine(estimator, "predict_interval")
    if is_classifier(estimator):
        raise ValueError(
            "predict_interval is for regressors: classes have no intervals; use loss='log' and "
            "predict_proba"
        )
    return clone(estimator)


def _check_alpha(alpha: Any, rows: float) -> float:
    if not isinstance(alpha, (float, int)) or not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}; 0.1 asks for 90 %")
    if _rank(alpha, rows) > rows:
        raise ValueError(
            f"alpha={alpha:g} asks for more than {rows:g} rows can say: use alpha of at least "
            f"{1.0 / (rows + 1.0):.3g}, or more rows (with sample_weight, its sum counts)"
        )
    return float(alpha)


def _rank(alpha: float, rows: float) -> float:
    """(1 - alpha)(rows + 1), less rounding, so that a whole product stays whole."""
    return (1.0 - alpha) * (rows + 1.0) * (1.0 - 1e-12)


def _fold_of(method: str, cv: Any, X: Any, y: Any, n: int, random_state: Any) -> Array:
    """The fold of every row."""
    if method == "jackknife+":
        return np.arange(n)
    if isinstance(cv, (int, np.integer)):
        if not 2 <= cv <= n:
            raise ValueError(
                f"cv must be at least 2 and at most the number of rows ({n}), got {cv}"
            )
        cv = KFold(int(cv), shuffle=True, random_state=random_state)
    folds = Folds.draw(cv, X, y)
    whole = all(
        np.array_equal(np.sort(test), removed)
        for test, removed in zip(folds.test, folds.removed, strict=True)
    )
    if not (folds.is_partition and whole):
        raise ValueError(
            "method='cv+' needs folds that test every row once and train on all others; "
            "use an int, KFold or GroupKFold for cv"
        )
    fold_of = np.empty(n, dtype=np.intp)
    fold_of[folds.rows] = np.repeat(np.arange(len(folds)), np.diff(folds.offsets))
    return fold_of


def _splits(fold_of: Array) -> Folds:
    """Leave out one fold after the other."""
    names = np.unique(fold_of)
    if names.size == fold_of.size:
        return leave_one_out(names.size)
    masks = [fold_of == name for name in names]
    if len(masks) < 2:
        raise ValueError("all rows of positive weight are in one fold; use another cv")
    return Folds.from_pairs(fold_of.size, [(~mask, mask) for mask in masks])


def _bounds(u: Array, residual: Array, place: Array, s: Array, alpha: float) -> tuple[Array, Array]:
    """Ends of the intervals from the (m, k) predictions of the machines of the folds."""
    s = s.astype(np.float64)
    rank = _rank(alpha, float(s.sum()))
    centre = u[:, place]
    return -_at_rank(residual - centre, s, rank), _at_rank(residual + centre, s, rank)


def _at_rank(values: Array, s: Array, rank: float) -> Array:
    """In every row, the smallest value up to which the weights add up to the rank."""
    order = np.argsort(values, axis=1)
    reached = np.cumsum(s[order], axis=1) >= rank
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), s.size - 1)
    return np.take_along_axis(values, order, axis=1)[np.arange(len(values)), first]
