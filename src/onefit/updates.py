r"""Add rows to a fitted model, and remove rows from it, without fitting it again.

The updated model is the minimiser for the rows it then has: not an approximation of a refit but the
refit itself, found from where the model stands and certified like any fit
(onefit.proof.certificate). Its ``error_`` bounds how far a prediction for a training row is from
that of the minimiser. Where the update has no such certificate, Newton steps follow from there;
where these fail, a fit from zero.

**Squared loss.** The model solves M a + b 1 = y, 1'a = 0 (without an intercept M a = y) with

    M = K + diag(c),         c_i = Lambda / s_i,         Lambda = lam sum(s)  or  lam.

Let P be the inverse of M for the present rows. With m further rows, kernel values B = K(old, new),
C = K(new, new) + diag(c_new) and S = C - B'P B, bordering gives

    P' = [ P + P B S^-1 B'P    -P B S^-1 ]
         [    -S^-1 B'P           S^-1   ],

and without m rows, the rows R kept and the rows D removed,

    P' = P_RR - P_RD P_DD^-1 P_DR.

Both cost n^2 m operations. Under mean scaling Lambda changes as well, which changes all of M and
has no such formula. But P is then still a preconditioner of conjugate gradients: with P = (K +
diag(c0))^-1 the eigenvalues of P M lie between 1 and c / c0, that is within the ratio of the
numbers of rows. After a change of the share e of the rows an iteration leaves about e / 4 of the
error, and each costs n^2. The same iterations remove what rounding has done to P over many updates.
When they become too many, P is computed anew at the present Lambda: the first update does that too,
since a fit keeps no inverse.

**The certificate** needs to know how indefinite rounding has made K. A fit measures that by a
factor of K; for a kernel that is positive semidefinite an update takes what rounding can do at most
(:attr:`onefit.proof.norms.Norms.rounding`), and measures it only where that is too much.

**Other losses.** Newton's method starts from the coefficients of the model, multiplied by the ratio
of the old and the new Lambda (stationarity is 2 Lambda a = -s g), with zero for new rows. Few rows
change their curvature then, and a few steps do, each with a factor of the rows with curvature.

**What stays as it was at the first fit**: all that a fit takes from the data. That is
gamma="scale", the widths that a loss takes from the targets (``threshold_``, ``delta_``), and
balanced class weights (``class_weight_``). Retraining with these values gives the updated model;
fitting the same parameters anew gives other values for them.

**scikit-learn's partial_fit** is not offered. Its callers pass mini-batches to models of constant
size, single rows and batches without some of the classes included; a kernel model grows with its
rows, and cannot be fitted to one class.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from onefit import linalg, plan
from onefit._types import Array, Indices
from onefit._validation import check_weights
from onefit.columns.fit import FitError, certified_fit, solve
from onefit.columns.solve import from_coefficients
from onefit.kernels import Geometry
from onefit.losses.base import Loss, resolved
from onefit.problem import Problem, Solution
from onefit.spec.coding import class_codes, encode_labels

__all__ = ["UpdatesRows", "add_rows", "remove_rows"]

#: iterations of conjugate gradients beyond which the inverse is computed anew
MAX_ITERATIONS = 20
#: residual of the linear system, relative to its right-hand side, at which they stop
RELATIVE_RESIDUAL = 1e-14


class UpdatesRows:
    """The methods of an estimator that change its rows."""

    def add_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add training rows to the fitted model; see :func:`onefit.updates.add_rows`."""
        add_rows(self, X, y, sample_weight)
        return self

    def remove_rows(self, indices: Any) -> Self:
        """Remove training rows by their numbers; see :func:`onefit.updates.remove_rows`."""
        remove_rows(self, indices)
        return self


@dataclass
class _State:
    """What an update needs of a model, kept from one update to the next.

    Attributes
    ----------
    K : (n, n) array
    loss : Loss
        With the widths of the first fit.
    inverse : (n, n) array or None
        (K + diag(c))^-1 for the c of some update.
    coef : array
        ``dual_coef_`` of the model that this belongs to; another one means another fit.
    """

    K: Array = field(repr=False)
    loss: Loss
    inverse: Array | None = field(repr=False)
    coef: Array = field(repr=False)


#: kept beside the models, so that these are not pickled with two matrices
_STATES: WeakKeyDictionary[Any, _State] = WeakKeyDictionary()


def add_rows(model: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
    """Add training rows to a fitted model, with the result of retraining.

    Parameters
    ----------
    model : fitted KernelRegressor or KernelClassifier
        Changed in place. Settings that a fit takes from the data stay as they are, see the head of
        this module.
    X : array or sparse matrix of shape (m, d)
    y : array of shape (m,) or (m, q)
        A classifier takes labels that it knows.
    sample_weight : array of shape (m,), default=None

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.sin(X).ravel()
    >>> model = KernelRegressor(gamma=1.0).fit(X[:30], y[:30]).add_rows(X[30:], y[30:])
    >>> retrained = KernelRegressor(gamma=1.0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - retrained.predict(X)).max() < 1e-6)
    True
    """
    state = _state(model)
    X = model._validate_X(X, reset=False)
    Y = _columns(model, y, state.K.dtype)
    check_consistent_length(np.empty((X.shape[0], 1)), Y)
    s = _weights(sample_weight, X.shape[0], state.K.dtype)
    if hasattr(model, "classes_"):
        s = s * model.class_weight_[_codes(model, y)].astype(s.dtype)
    B = model.kernel_.matrix(Geometry(model.X_fit_, X))
    C = model.kernel_.matrix(Geometry(X, keep=False))
    K = _grown(state.K, B, C)
    old, m = model._s_fit, X.shape[0]
    problem = _problem(model, K, np.vstack([model._Y_fit, Y]), np.concatenate([old, s]), state.loss)
    inverse = state.inverse
    if inverse is not None and (s > 0).all():
        inverse = _bordered(inverse, B, C + np.diag(problem.ridge(float(model.lam)) / s))
    a, b = _coefficients(model)
    start = np.vstack([a * _ratio(model, problem, old), np.zeros((m, a.shape[1]), a.dtype)])
    _update(model, _stacked(model.X_fit_, X), problem, inverse, start, b)


def remove_rows(model: Any, indices: Any) -> None:
    """Remove training rows from a fitted model, with the result of retraining.

    Parameters
    ----------
    model : fitted KernelRegressor or KernelClassifier
        Changed in place, as by :func:`add_rows`.
    indices : array of int
        Numbers of rows of ``model.X_fit_``: in the order in which they were fitted and added, less
        those that were removed. Negative numbers count from the end.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> model = KernelRegressor().fit(X, np.sin(X).ravel()).remove_rows([0, 5, -1])
    >>> model.X_fit_.shape
    (37, 1)
    """
    state = _state(model)
    n = state.K.shape[0]
    gone = np.asarray(indices)
    if gone.ndim != 1 or gone.size == 0 or gone.dtype.kind not in "iu":
        raise ValueError(f"indices must be a list of row numbers, got {indices!r}")
    if gone.min() < -n or gone.max() >= n:
        raise ValueError(f"indices must lie between {-n} and {n - 1}: the model has {n} rows")
    gone = np.unique(gone % n)
    keep = np.setdiff1d(np.arange(n), gone)
    Y, s = model._Y_fit[keep], model._s_fit[keep]
    _check_left(model, Y, s)
    problem = _problem(model, linalg.submatrix(state.K, keep, keep), Y, s, state.loss)
    inverse = None if state.inverse is None else _without(state.inverse, keep, gone)
    a, b = _coefficients(model)
    start = a[keep] * _ratio(model, problem, model._s_fit)
    _update(model, model.X_fit_[keep], problem, inverse, start, b)


def _update(
    model: Any, X: Any, problem: Problem, inverse: Array | None, a: Array, b: Array
) -> None:
    """Solve from a start, certify, and set the fitted attributes."""
    lam = float(model.lam)
    found = None
    if problem.quadratic and problem.K.dtype == np.float64 and (problem.s > 0).all():
        found, inverse = _least_squares(problem, lam, inverse)
    else:
        inverse = None
    try:
        if found is None:
            found = solve(problem, lam, start=from_coefficients(problem, lam, a, b))
        solution, error = certified_fit(problem, lam, found)
    except FitError:
        problem = replace(problem)  # which measures all sizes of K
        solution, error = certified_fit(problem, lam, solve(problem, lam))
    model.X_fit_, model._Y_fit, model._s_fit = X, problem.Y, problem.s
    model._remember(solution, error)
    if hasattr(model, "classes_"):
        model._codes = class_codes(_by_class(model, problem.Y))
        counts = np.bincount(model._codes[model.support_], minlength=len(model.classes_))
        model.n_support_ = counts.astype(np.int32)
    else:
        model._finish(problem.loss)
    _STATES[model] = _State(problem.K.matrix, problem.loss, inverse, model.dual_coef_)


def _least_squares(
    problem: Problem, lam: float, inverse: Array | None
) -> tuple[Solution | None, Array | None]:
    """The solution of the squared loss and the inverse it came from, renewed if need be."""
    K, c = problem.K.matrix, problem.ridge(lam) / problem.s
    ones = np.ones((problem.n, int(problem.fit_intercept)))
    right = np.hstack([problem.Y, ones])
    solved = None if inverse is None else _conjugate_gradients(K, c, inverse, right)
    if solved is None:
        try:
            inverse = linalg.inverse_spd(np.array(K + np.diag(c), order="F"))
        except linalg.LinAlgError:  # K is singular beyond rounding: a case for the general solver
            return None, None
        solved = _conjugate_gradients(K, c, inverse, right)
        if solved is None:
            return None, None
    a, b = solved, np.zeros(problem.Y.shape[1])
    if problem.fit_intercept:
        a, one = solved[:, :-1], solved[:, -1]
        b = a.sum(axis=0) / one.sum()
        a = a - np.outer(one, b)
    return from_coefficients(problem, lam, a, b, steps=1), inverse


def _conjugate_gradients(K: Array, c: Array, P: Array, right: Array) -> Array | None:
    """Solve (K + diag(c)) x = right with the preconditioner P; None after MAX_ITERATIONS."""
    x = linalg.matmul(P, right)
    residual = right - linalg.matmul(K, x) - c[:, None] * x
    z = linalg.matmul(P, residual)
    direction, old = z, linalg.dots(residual, z)
    small = RELATIVE_RESIDUAL * np.linalg.norm(right, axis=0)
    # below this rounding of the product makes up the residual
    floor = 4.0 * np.finfo(float).eps * (np.abs(c[:, None] * x).max(axis=0) + np.abs(right).max())
    for _ in range(MAX_ITERATIONS):
        size = np.linalg.norm(residual, axis=0)
        if (size <= np.maximum(small, floor * np.sqrt(len(c)))).all():
            return x
        product = linalg.matmul(K, direction) + c[:, None] * direction
        curved = linalg.dots(direction, product)
        if not (np.isfinite(curved).all() and (old >= 0.0).all() and (curved >= 0.0).all()):
            return None  # P has lost its definiteness
        step = np.where(curved > 0.0, old / np.where(curved > 0.0, curved, 1.0), 0.0)
        x, residual = x + step * direction, residual - step * product
        z = linalg.matmul(P, residual)
        new = linalg.dots(residual, z)
        direction = z + np.where(old > 0.0, new / np.where(old > 0.0, old, 1.0), 0.0) * direction
        old = new
    return None


def _bordered(P: Array, B: Array, C: Array) -> Array | None:
    """The inverse with m more rows; None where rounding has spoilt it."""
    PB = linalg.matmul(P, np.asfortranarray(B))
    try:
        corner = linalg.inverse_spd(np.array(C - B.T @ PB, order="F"))
    except linalg.LinAlgError:
        return None
    side = -PB @ corner
    whole = _grown(P, side, corner)
    whole[: len(P), : len(P)] -= side @ PB.T
    return whole


def _without(P: Array, keep: Indices, gone: Indices) -> Array | None:
    """The inverse without some rows; None where rounding has spoilt it."""
    side = P[np.ix_(gone, keep)]
    try:
        solved = linalg.solve_spd(
            np.array(P[np.ix_(gone, gone)], order="F"), np.asfortranarray(side)
        )
    except linalg.LinAlgError:
        return None
    rest = linalg.submatrix(P, keep, keep)
    rest -= side.T @ solved
    return rest


def _grown(A: Array, B: Array, C: Array) -> Array:
    """The symmetric matrix [[A, B], [B', C]] in the order of LAPACK."""
    n, m = B.shape
    whole = np.empty((n + m, n + m), A.dtype, order="F")
    whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:] = A, B, B.T, C
    return whole


def _state(model: Any) -> _State:
    """The state of a model, made from its rows at the first update."""
    check_is_fitted(model)
    name = type(model).__name__
    if model.approximation is not None or model.spec().precomputed:
        raise ValueError(
            "rows can be added and removed where the model holds them: not with an approximation "
            f"or kernel='precomputed'; fit a {name} with a named kernel, or fit again"
        )
    if linalg.is_elsewhere(model.X_fit_):
        raise ValueError("rows can be added and removed on the host only; fit NumPy arrays")
    if len(getattr(model, "_s_fit", ())) != model.X_fit_.shape[0]:
        raise ValueError(f"this {name} does not hold its targets; call its fit before adding rows")
    state = _STATES.get(model)
    if state is None or state.coef is not model.dual_coef_:
        plan.check_fit(model._workload(model._Y_fit, model._s_fit))
        loss = resolved(model.spec().loss, model._Y_fit, model._s_fit[:, None])
        K = model.kernel_.matrix(Geometry(model.X_fit_, keep=False))
        state = _State(K, loss, None, model.dual_coef_)
    return state


def _problem(model: Any, K: Array, Y: Array, s: Array, loss: Loss) -> Problem:
    """The problem of the changed rows."""
    plan.check_fit(model._workload(Y, s))
    spec, definite, Y = model.spec(), model.kernel_.definite, np.asfortranarray(Y)
    problem = Problem(K, Y, s, loss, spec.fit_intercept, spec.scaling, definite=definite)
    if definite:  # measuring it would cost as much as a fit
        vars(problem.norms).update(negative=problem.norms.rounding)
    return problem


def _coefficients(model: Any) -> tuple[Array, Array]:
    """dual_coef_ and intercept_ with a column per target."""
    return model.dual_coef_.reshape(model.X_fit_.shape[0], -1), np.atleast_1d(model.intercept_)


def _ratio(model: Any, problem: Problem, old: Array) -> float:
    """The old Lambda in units of the new one."""
    if problem.scaling == "total":
        return 1.0
    return float(old.sum(dtype=np.float64) / problem.weight)


def _weights(sample_weight: Any, m: int, dtype: Any) -> Array:
    """Checked weights of new rows, which may be zero or belong to one row."""
    s = np.ones(m) if sample_weight is None else np.asarray(sample_weight)
    if s.shape != (m,):
        raise ValueError(f"sample_weight must have shape ({m},), one for each row, got {s.shape}")
    # the two rows of positive weight that a fit needs are there already
    return check_weights(np.append(s, [1.0, 1.0]), np.empty((m + 2, 1), dtype))[:m]


def _codes(model: Any, y: Any) -> Indices:
    """The classes of new labels, all of them known."""
    labels = np.ravel(np.asarray(y))
    new = np.setdiff1d(labels, model.classes_)
    if new.size:
        raise ValueError(
            f"y has the label {new[0].item()!r}, which the model does not know (its classes are "
            f"{model.classes_.tolist()}): a new class changes every column; fit again with all rows"
        )
    return np.searchsorted(model.classes_, labels)


def _columns(model: Any, y: Any, dtype: Any) -> Array:
    """Targets of the columns for new rows."""
    if not hasattr(model, "classes_"):
        ndim = model._y_ndim
        try:
            Y = model._code_targets(y, dtype)
            same = model._y_ndim == ndim
        finally:
            model._y_ndim = ndim
        Y = model._coding().columns(Y)
        if not same or Y.shape[1] != model._Y_fit.shape[1]:
            raise ValueError("y must have the same number of columns as the targets of the fit")
        return np.asarray(Y)
    _codes(model, y)
    Y = encode_labels(model.classes_, np.ravel(np.asarray(y))).astype(dtype, copy=False)
    return np.asarray(model._coding().columns(Y))


def _by_class(model: Any, Y: Array) -> Array:
    """A column per class, or one for two classes, from the columns of a classifier."""
    if not model._coding().in_pairs:
        return Y
    k = len(model.classes_)
    first, second = np.triu_indices(k, 1)
    wins = np.zeros((len(Y), k))
    for column, i, j in zip(Y.T, first, second, strict=True):
        wins[:, i] += column < 0
        wins[:, j] += column > 0
    return np.where(wins == k - 1, 1.0, -1.0)


def _check_left(model: Any, Y: Array, s: Array) -> None:
    """Refuse to remove what a fit needs."""
    if np.count_nonzero(s) < 2:
        raise ValueError("two rows of positive weight must be left, a fit needs them")
    if hasattr(model, "classes_"):
        left = np.unique(class_codes(_by_class(model, Y[s > 0])))
        lost = np.setdiff1d(np.arange(len(model.classes_)), left)
        if lost.size:
            raise ValueError(
                f"no row of class {model.classes_[lost[0]].item()!r} would be left; fit again "
                "without that class"
            )


def _stacked(first: Any, second: Any) -> Any:
    """All rows, in the form of the first ones."""
    if sparse.issparse(first):
        blocks: Any = [first, sparse.csr_array(second)]
        return sparse.vstack(blocks, format="csr")
    second = second.toarray() if hasattr(second, "toarray") else second
    return np.concatenate([first, second.astype(first.dtype, copy=False)])
