"""Influence functions of a kernel machine: what each training point does to each prediction.

The influence function of order k at the point z_i is the k-th derivative, at eps = 0, of the
machine trained on (1 - eps) P_n + eps Delta_{z_i} (Debruyne, Hubert and Suykens, JMLR 2008,
definitions 1 and 2; their Proposition 5 for k = 1). Its value at x is the pull, per unit of
mass, of one more copy of z_i on the prediction at x: large values mark leverage points and,
with a loss of unbounded derivative, outliers.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from onefit import linalg
from onefit.estimators import inside
from onefit.fit import fit, resolved
from onefit.heldout.series import Operator, check_order
from onefit.kernels import Geometry

Array = NDArray[Any]

__all__ = ["influence"]


def influence(
    estimator: Any, X: Any, y: Any, order: int = 1, at: Any = None, sample_weight: Any = None
) -> Array:
    """The effect of each training point on each prediction.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier
        Its parameters are used; it is not changed.
    X, y : training rows and targets
    order : int, default=1
        Order of the derivative; 1 or 2 for the losses "log" and "logistic".
    at : array of shape (m, d), default=None
        Where to evaluate (kernel values against X when the kernel is precomputed); the training
        rows by default.
    sample_weight : array of shape (n,), default=None

    Returns
    -------
    array of shape (n, m), or (n, m, q) for several targets or classes
        Entry [i, j] is the influence of training point i on the prediction at point j.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor, influence
    >>> X = np.linspace(0, 5, 40)[:, None]
    >>> y = np.sin(X).ravel()
    >>> y[20] += 3
    >>> pull = influence(KernelRegressor(lam=1e-2), X, y)
    >>> int(np.abs(pull).max(axis=1).argmax())
    20
    """
    model = clone(estimator)
    problem = inside.prepare(model, X, y, sample_weight)
    order = check_order(order, problem.loss)
    if not (problem.s > 0).all():
        raise ValueError("sample_weight must be positive on every row; leave rows of weight 0 out")
    problem = resolved(problem, model.lam)
    solution = fit(problem, model.lam)
    K_at = problem.K
    if at is not None:
        at = inside.check_rows(model, at, reset=False)
        K_at = inside.kernel_of(model).matrix(Geometry(at, model.X_fit_, keep=False))
    values = [
        _of_target(Operator(problem, model.lam, j, u), order, K_at)
        for j, u in enumerate(solution.u.T)
    ]
    return values[0] if len(values) == 1 else np.stack(values, axis=2)


def _of_target(operator: Operator, order: int, K_at: Array) -> Array:
    total = float(operator.w.sum())
    change = -np.repeat(operator.w[:, None], operator.y.size, axis=1)
    change[np.diag_indices_from(change)] += total
    before = operator.terms(change, order - 1)
    a, b = operator.coefficients(operator.source(change, before))
    at = linalg.matmul(np.ascontiguousarray(K_at), np.asfortranarray(a)) + b
    return np.asarray(factorial(order) * at.T)
