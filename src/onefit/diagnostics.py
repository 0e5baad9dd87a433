"""Influence functions of a kernel model: the effect of each training point on each prediction.

The influence function of order k at the point z_i is the k-th derivative, at eps = 0, of the
model trained on (1 - eps) P_n + eps Delta_{z_i} (Debruyne, Hubert and Suykens, JMLR 2008,
definitions 1 and 2; their Proposition 5 for k = 1). Its value at x is the pull, per unit of
mass, of one more copy of z_i on the prediction at x: large values mark leverage points and,
with a loss of unbounded derivative, outliers. The point need not be in the sample: a row of weight
zero does not change the fit, but mass can be moved to it.

Their section 2.2 derives two more quantities from it. The von Mises expansion T(P_n) - T(P) =
(1/n) sum_i IF(z_i; T, P) + ... makes sqrt(n) (T(P_n) - T(P)) asymptotically normal with variance

    ASV(T, P) = integral IF(z; T, P)^2 dP(z),

and a model is CV_loo-stable for a loss L (Poggio et al. 2004; equation 2) if

    sup_i |L(y_i - T(P_n)(x_i)) - L(y_i - T(P_n^-i)(x_i))|

vanishes as n grows. A bounded influence function keeps both small; the mean of a heavy-tailed
sample, whose influence is not bounded, has neither.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.base import clone, is_classifier

from onefit import linalg
from onefit._validation import check_weights
from onefit.columns.fit import fit
from onefit.criteria import InfluenceLoo, LeaveOneOut
from onefit.criteria.evidence import Evidence, positive
from onefit.criteria.pointwise import Pointwise
from onefit.estimators._base import KernelEstimator
from onefit.estimators.accepted import Given, check_accepted
from onefit.heldout.series import Operator, check_order
from onefit.kernels import Geometry
from onefit.problem import Problem
from onefit.spec.needs import require_of_model

Array = NDArray[Any]

__all__ = ["asymptotic_variance", "cv_loo_stability", "influence"]


def influence(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    order: int = 1,
    at: Any = None,
    point: tuple[Any, Any] | None = None,
    sample_weight: Any = None,
) -> Array:
    """The effect of each training point, or of any other point, on each prediction.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier, or a fitted search over one
        Its parameters are used (for a search, those of the winner); it is not changed.
    X, y : training rows and targets
    order : int, default=1
        Order of the derivative; 1 or 2 for the losses "log" and "logistic". A width of "mad" and
        class weights of "balanced" are held at their values in the sample.
    at : array of shape (m, d), default=None
        Where to evaluate (kernel values against X when the kernel is precomputed); the training
        rows by default.
    point : (x, y), default=None
        A point that need not be in the sample: a row, and its target or label. Its influence alone
        is returned, as in Figure 1 of Debruyne et al.
    sample_weight : array of shape (n,), default=None
        None takes that of a search.

    Returns
    -------
    array of shape (n, m), or (n, m, q) for several targets or classes
        Entry [i, j] is the influence of training point i on the prediction at point j. Without the
        first axis for a ``point``.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> from onefit.diagnostics import influence
    >>> X = np.linspace(0, 5, 40)[:, None]
    >>> y = np.sin(X).ravel()
    >>> y[20] += 3
    >>> pull = influence(KernelRegressor(lam=1e-2), X, y)
    >>> int(np.abs(pull).max(axis=1).argmax())
    20
    >>> influence(KernelRegressor(lam=1e-2), X, y, point=([2.5], 10.0)).shape
    (40,)
    """
    model, weight = _fresh(estimator, "influence", X, y, sample_weight)
    require_of_model(model, "influence", "kernel matrix")
    if point is None:
        problem = model._prepare(X, y, weight)
        rows = np.arange(problem.n)
    else:
        problem = _with_point(model, X, y, weight, point)
        rows = np.arange(problem.n - 1)
    problem = problem.resolved
    order = check_order(order, problem.loss)
    if not (problem.s[rows] > 0).all():
        raise ValueError("sample_weight must be positive on every row; leave rows of weight 0 out")
    solution = fit(problem, model.lam)
    K_at = problem.K.matrix[rows]
    if at is not None:
        at = model._validate_X(at, reset=False)
        K_at = model.kernel_.matrix(Geometry(at, model.X_fit_, keep=False))
    k = _relative_class_weights(model, problem)
    values = [
        _of_target(Operator(problem, model.lam, j, u), order, K_at, k, point is not None)
        for j, u in enumerate(solution.u.T)
    ]
    return values[0] if len(values) == 1 else np.stack(values, axis=-1)


def _fresh(
    estimator: Any, caller: str, X: Any, y: Any, sample_weight: Any
) -> tuple[KernelEstimator, Any]:
    """A fresh model with the parameters that are given, and the weights of the rows."""
    given = Given.of(estimator, caller, X, y, sample_weight)
    check_accepted(given.model, caller)
    return clone(given.model), given.sample_weight


def _with_point(model: KernelEstimator, X: Any, y: Any, sample_weight: Any, point: Any) -> Problem:
    """The problem with one more row, of weight zero: it is in K, but does not change the fit."""
    require_of_model(
        model, "point=(x, y)", "rows", advice="add the row to X, y and sample_weight, with weight"
    )
    if not isinstance(point, tuple) or len(point) != 2:
        raise ValueError(f"point must be a pair (x, y) of a row and its target, got {point!r}")
    rows = model._validate_X(X, ensure_min_samples=2)
    row = model._validate_X(_one_row(model, point[0]), reset=False)
    stack = vstack if issparse(rows) else np.concatenate
    targets = np.concatenate([np.asarray(y), np.asarray([point[1]])])
    if is_classifier(model) and point[1] not in np.asarray(y):
        raise ValueError(f"point has the label {point[1]!r}, which no row of y has")
    s = np.append(check_weights(sample_weight, rows), 0.0)
    return model._prepare(stack([rows, row]), targets, s)


def _one_row(model: Any, x: Any) -> Any:
    """The row x as rows of X."""
    if issparse(x):
        return x
    return np.asarray(x, dtype=np.float64).reshape(1, -1) if model.spec().needs_vectors else [x]


def _relative_class_weights(model: KernelEstimator, problem: Problem) -> Array:
    """The class weight of every row, over the mean class weight of the sample."""
    if not is_classifier(model):
        return np.ones(problem.n)
    weights = model.class_weight_[model._codes]
    return np.asarray(weights * (problem.s / weights).sum() / problem.s.sum())


def _of_target(operator: Operator, order: int, K_at: Array, k: Array, added: bool) -> Array:
    """The influence of each row, or of the last one, on one target at the rows of K_at.

    Class weights multiply the losses. With k the weight of the class of z_i over the mean weight,
    the share eps of P that moves to z_i is the share e = k eps / (1 + (k - 1) eps) of the weighted
    losses, whose total mean scaling keeps at one. A term T_j e^j of the series in e therefore adds
    C(r - 1, j - 1) k^j (1 - k)^(r - j) T_j to the term of order r in eps. Under total scaling the
    weights are linear in eps, and k eps is added to that of z_i.
    """
    total, n = float(operator.w.sum()), operator.y.size
    rows = np.array([n - 1]) if added else np.arange(n)
    k = k[rows]
    if added:
        # the added row has no weight, but the mass moves to it
        operator.g[rows] = operator.loss.gradient(operator.y[rows], operator.u[rows])
        operator.d[rows] = operator.loss.curvature(operator.y[rows], operator.u[rows])
    of_total = operator.problem.scaling == "total"
    change = -np.repeat(operator.w[:, None], rows.size, axis=1)
    change[rows, np.arange(rows.size)] += total * k if of_total else total
    if of_total:
        k = np.ones(rows.size)
    terms: list[Array] = []
    found = np.zeros((len(K_at), rows.size))
    for j in range(1, order + 1):
        a, b = operator.coefficients(operator.source(change, terms))
        share = comb(order - 1, j - 1) * k**j * (1.0 - k) ** (order - j)
        if share.any():
            at = linalg.matmul(np.ascontiguousarray(K_at), np.asfortranarray(a)) + b
            found += share * at
        if j < order:
            terms.append(operator.problem.K.matmul(np.asfortranarray(a)) + b)
    return np.asarray(factorial(order) * (found[:, 0] if added else found.T))


def asymptotic_variance(
    estimator: Any, X: Any, y: Any, *, at: Any = None, sample_weight: Any = None
) -> Array:
    """The asymptotic variance of each prediction: the mean square of its influence function.

    sqrt(n) times the difference between the prediction from n rows and that from the whole
    population tends to a normal variable of this variance, hence
    ``np.sqrt(asymptotic_variance(...) / n)`` is a standard error. Both models have the kernel and
    the lam of the estimator (in mean scaling), so that the bias by the penalty is not included. The
    integral is over the sample, P = P_n, with its weights.

    Parameters
    ----------
    estimator, X, y, at, sample_weight
        As in :func:`influence`.

    Returns
    -------
    array of shape (m,), or (m, q) for several targets or classes

    Examples
    --------
    With a very large penalty the model is the mean of y, whose asymptotic variance is the variance
    of y:

    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> from onefit.diagnostics import asymptotic_variance
    >>> y = np.array([1.0, 2.0, 6.0])
    >>> X = np.arange(3.0)[:, None]
    >>> np.round(asymptotic_variance(KernelRegressor(lam=1e9), X, y, at=[[0.5]]), 6)
    array([4.666667])
    """
    weight = Given.of(estimator, "asymptotic_variance", X, y, sample_weight).sample_weight
    squares = influence(estimator, X, y, at=at, sample_weight=weight) ** 2
    s = check_weights(weight, np.empty((len(squares), 1)))
    return np.asarray(np.tensordot(s / s.sum(), squares, axes=1))


def cv_loo_stability(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    loss: str | Pointwise | None = None,
    order: int | None = None,
    sample_weight: Any = None,
) -> float:
    """The largest change of any row's loss when that row is left out: equation 2 at this n.

    A model is CV_loo-stable if it vanishes as n grows with lam fixed (in mean scaling).

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier, or a fitted search over one
        Its parameters are used (for a search, those of the winner); it is not changed.
    X, y : training rows and targets
    loss : str, callable or None, default=None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge". None is the absolute value,
        or the model's own loss if that is one of margins or of a level.
    order : int, default=None
        Number of terms of the influence series (with its tail) that approximates leave-one-out;
        None leaves rows out exactly.
    sample_weight : array of shape (n,), default=None
        Rows of weight zero are ignored. None takes that of a search.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> from onefit.diagnostics import cv_loo_stability
    >>> from onefit.losses import Huber
    >>> X = np.linspace(0, 5, 40)[:, None]
    >>> y = np.sin(X).ravel()
    >>> y[20] += 3
    >>> squared = KernelRegressor(gamma=1.0, lam=1e-2)
    >>> robust = KernelRegressor(loss=Huber(0.1), gamma=1.0, lam=1e-2)
    >>> cv_loo_stability(squared, X, y) > 5 * cv_loo_stability(robust, X, y)
    True
    """
    model, weight = _fresh(estimator, "cv_loo_stability", X, y, sample_weight)
    problem = positive(model._prepare(X, y, weight))
    if problem.n < 3:
        raise ValueError(
            f"cv_loo_stability leaves out one row at a time and needs at least three of positive "
            f"weight, got {problem.n}"
        )
    series = InfluenceLoo(loss=loss)
    if order is not None:
        series = replace(series, order=check_order(order, problem.loss))
    criterion = LeaveOneOut() if order is None else series
    left_out = criterion.left_out(Evidence(problem, None, (model.lam,), []))(0)
    value = series.measure(problem)
    change = value(problem.Y, fit(problem, model.lam).u) - value(problem.Y, left_out)
    return float(np.abs(change).max())
