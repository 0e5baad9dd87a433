r"""Add training rows to a fitted model, and remove training rows from it.

The updated model is the minimiser for the rows it then has, computed from the present model and
certified like any fit (onefit.proof.certificate): ``error_`` bounds the difference of a prediction
for a training row from that of the minimiser. An update without a certificate is followed by
Newton steps, and where these fail, by a fit from zero. ``heldout_predict(model)`` gives held-out
values of the present rows.

**Squared loss.** The model solves M a + b 1 = y, 1'a = 0 (without an intercept M a = y) with

    M = K + diag(c),         c_i = Lambda / s_i,         Lambda = lam sum(s)  or  lam.

Let P be the inverse of M for the present rows. With m further rows, kernel values B = K(old, new),
C = K(new, new) + diag(c_new) and S = C - B'P B, bordering gives

    P' = [ P + P B S^-1 B'P    -P B S^-1 ]
         [    -S^-1 B'P           S^-1   ],

and without m rows, the rows R kept and the rows D removed,

    P' = P_RR - P_RD P_DD^-1 P_DR.

Both cost n^2 m operations. Under mean scaling Lambda changes as well, which changes all of M and
has no such formula. But P then still corrects a solution: x + P (y - M x) has the error of x
multiplied by I - P M, whose eigenvalues lie between 0 and 1 - c / c0 for P = (K + diag(c0))^-1: the
share of the rows that changed since P was computed. Each correction costs n^2. Corrections also
remove the rounding errors of P after many updates. Where they shrink too slowly, or where there is
no P yet, a Cholesky factor at the present Lambda solves the system, as in a fit; the next update,
if there is one, makes the inverse of it, which takes twice the operations of the factor.

**The certificate** depends on the smallest eigenvalue of K, which rounding may have made negative.
A fit measures it by a factor of K. An update with a positive semidefinite kernel uses the bound
``onefit.proof.norms.Norms.rounding``, and measures the eigenvalue only where the bound is too
large.

**Other losses.** Newton's method starts from the coefficients of the model, multiplied by the ratio
of the old and the new Lambda (stationarity is 2 Lambda a = -s g), and at zero for new rows. Few
rows then change their curvature, so that a few steps suffice, each with a factor of the rows with
curvature.

**Settings that a fit takes from the data** keep their values: gamma="scale", the widths that a loss
takes from the targets (``threshold_``, ``delta_``), and balanced class weights (``class_weight_``).
Retraining with these values gives the updated model; a new fit computes them again.

**scikit-learn's partial_fit** is not implemented. Its callers pass mini-batches to models of
constant size, including single rows and batches without some of the classes; a kernel model grows
with its rows, and cannot be fitted to one class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from onefit import linalg, plan
from onefit._types import Array, Indices
from onefit._validation import check_weights
from onefit.columns.fit import FitError, certified_fit, solve
from onefit.columns.solve import from_coefficients
from onefit.kernels import Geometry
from onefit.problem import Problem, Solution
from onefit.spec.coding import encode_labels
from onefit.spec.needs import require_of_model

__all__ = ["UpdatesRows", "held_rows"]

#: kernel matrix, inverse, and work space of an update of the squared loss
UPDATE_MATRICES = 3
#: residual of the linear system, relative to its right-hand side, at which corrections end
RELATIVE_RESIDUAL = 1e-12
#: share of a residual that a correction may leave; with more, a new factor takes less time
MAX_RESIDUAL_RATIO = 0.1


class UpdatesRows:
    """The methods of an estimator that change its rows."""

    def add_rows(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Add training rows to the fitted model, with the result of retraining.

        Settings that the fit took from the data stay as they are, see :mod:`onefit.updates`.
        Interrupted, or refused, it leaves the model unchanged.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d)
        y : array of shape (m,) or (m, q)
            Labels must be those of the fit.
        sample_weight : array of shape (m,), default=None

        Returns
        -------
        self

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
        state = _State.of(self)
        old, X = state.problem, self._validate_X(X, reset=False)
        Y, codes = _targets(self, y, old.Y.dtype)
        check_consistent_length(np.empty((X.shape[0], 1)), Y)
        s = check_weights(sample_weight, X, least=0).astype(old.s.dtype, copy=False)
        if codes is not None:
            s = s * self.class_weight_[codes].astype(s.dtype)
        Y, s = np.vstack([old.Y, Y]), np.concatenate([old.s, s])
        _check_memory(self, Y, s)
        B = self.kernel_.matrix(Geometry(self.X_fit_, X))
        C = self.kernel_.matrix(Geometry(X, keep=False))
        problem = _changed(old, _grown(old.K.matrix, B, C), Y, s)
        inverse, start = state.inverse(), np.zeros_like(Y)
        start[: old.n] = state.a
        if inverse is not None and (s > 0).all():
            c = problem.ridge(float(self.lam)) / s[old.n :]
            inverse = _bordered(inverse, B, C + np.diag(c))
        codes = None if codes is None else np.concatenate([self._codes, codes])
        _update(self, _stacked(self.X_fit_, X), codes, problem, inverse, start, old)
        return self

    def remove_rows(self: Any, indices: Any) -> Any:
        """Remove training rows from the fitted model, with the result of retraining.

        Settings that the fit took from the data stay as they are, see :mod:`onefit.updates`.
        Interrupted, or refused, it leaves the model unchanged.

        Parameters
        ----------
        indices : array of int
            Numbers of rows of ``X_fit_``, which has the rows in the order in which they were fitted
            and added, without those removed. Negative numbers count from the end.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from onefit import KernelRegressor
        >>> X = np.linspace(0, 3, 40)[:, None]
        >>> model = KernelRegressor().fit(X, np.sin(X).ravel()).remove_rows([0, 5, -1])
        >>> model.X_fit_.shape
        (37, 1)
        """
        state = _State.of(self)
        old, gone = state.problem, np.asarray(indices)
        n = old.n
        if gone.ndim != 1 or gone.size == 0 or gone.dtype.kind not in "iu":
            raise ValueError(f"indices must be a list of row numbers, got {indices!r}")
        if gone.min() < -n or gone.max() >= n:
            raise ValueError(f"indices must lie between {-n} and {n - 1}: the model has {n} rows")
        gone = np.unique(gone % n)
        keep = np.setdiff1d(np.arange(n), gone)
        codes = self._codes[keep] if hasattr(self, "classes_") else None
        _check_left(self, codes, old.s[keep])
        _check_memory(self, old.Y[keep], old.s[keep])
        K = linalg.submatrix(old.K.matrix, keep, keep)
        problem = _changed(old, K, old.Y[keep], old.s[keep])
        inverse = state.inverse()
        if inverse is not None:
            inverse = _without(inverse, keep, gone)
        _update(self, self.X_fit_[keep], codes, problem, inverse, state.a[keep], old)
        return self


@dataclass
class _State:
    """What an update needs of a model, kept from one update to the next.

    Attributes
    ----------
    problem : Problem
        Of the present rows, with the widths of the loss of the first fit.
    known : (n, n) array or None
        (K + diag(c))^-1 for the c of some update, or its Cholesky factor.
    factored : bool
        Whether it is the factor.
    coef : array
        ``dual_coef_`` of the model that this belongs to; another one means another fit.
    """

    problem: Problem
    known: Array | None = field(repr=False)
    factored: bool
    coef: Array = field(repr=False)

    def inverse(self) -> Array | None:
        """(K + diag(c))^-1; None if it is not known."""
        if self.factored and self.known is not None:
            lower, self.known, self.factored = self.known, None, False
            self.known = linalg.inverse_from_factor(lower)
        return self.known

    @property
    def a(self) -> Array:
        """Coefficients with a column per target."""
        return self.coef.reshape(self.problem.n, -1)

    @classmethod
    def of(cls, model: Any) -> _State:
        """The state of a model, made from its rows where there is none."""
        check_is_fitted(model)
        name = type(model).__name__
        require_of_model(model, "a model whose rows are changed", "kernel matrix", "rows")
        if linalg.is_elsewhere(model.X_fit_):
            raise ValueError("the training rows are on a device; fit the model to NumPy arrays")
        if len(getattr(model, "_s_fit", ())) != model.X_fit_.shape[0]:
            raise ValueError(
                f"this {name} does not hold its training targets; call fit first (a model of "
                "fit_per_target has a lam for each target, and cannot be updated)"
            )
        state = _STATES.get(model)
        if state is None or state.coef is not model.dual_coef_:
            Y, s = model._Y_fit, model._s_fit
            _check_memory(model, Y, s)
            K = model.kernel_.matrix(Geometry(model.X_fit_, keep=False))
            problem = model.spec().coded_problem(K, Y, s, definite=model.kernel_.definite)
            problem = problem.with_loss(model._loss_fit)
            state = _STATES[model] = cls(problem.resolved, None, False, model.dual_coef_)
        return state


#: kept beside the models, so that pickles of these do not contain two matrices
_STATES: WeakKeyDictionary[Any, _State] = WeakKeyDictionary()


def held_rows(model: Any) -> tuple[Problem, Array, Array]:
    """The problem of a fitted model's training rows, their targets or labels, and their weights."""
    state = _State.of(model)
    s, coding = state.problem.s, model.spec().coding
    if hasattr(model, "classes_"):
        return state.problem, model.classes_[model._codes], s / model.class_weight_[model._codes]
    return state.problem, coding.targets(state.problem.Y), s


def _update(
    model: Any, X: Any, codes: Array | None, problem: Problem, inverse: Array | None, a: Array,
    old: Problem,
) -> None:  # fmt: skip
    """Solve from coefficients of the old problem, certify, and set the fitted attributes."""
    lam = float(model.lam)
    found, known, factored = None, None, False
    if problem.quadratic and problem.K.dtype == np.float64 and (problem.s > 0).all():
        found, known, factored = _least_squares(problem, lam, inverse)
    try:
        if found is None:
            a, b = a * (old.ridge(lam) / problem.ridge(lam)), np.atleast_1d(model.intercept_)
            found = solve(problem, lam, start=from_coefficients(problem, lam, a, b))
        solution, error = certified_fit(problem, lam, found)
    except FitError:
        problem = replace(problem)  # which measures the smallest eigenvalue of K
        solution, error = certified_fit(problem, lam, solve(problem, lam))
    model.X_fit_, model._Y_fit, model._s_fit = X, problem.Y, problem.s
    model._loss_fit = problem.loss
    model._remember(solution, error)
    if codes is not None:
        model._codes = codes
    model._finish(problem.loss)
    _STATES[model] = _State(problem, known, factored, model.dual_coef_)


def _least_squares(
    problem: Problem, lam: float, inverse: Array | None
) -> tuple[Solution | None, Array | None, bool]:
    """The solution of the squared loss, the inverse or factor that gave it, and which that is."""
    K, c, known = problem.K.matrix, problem.ridge(lam) / problem.s, inverse
    right = np.hstack([problem.Y, np.ones((problem.n, int(problem.fit_intercept)))])
    solved = None if inverse is None else _corrected(K, c, partial(linalg.matmul, inverse), right)
    factored = solved is None
    if solved is None:
        try:
            known = linalg.cholesky(np.array(K + np.diag(c), order="F"), overwrite=True)
        except linalg.LinAlgError:  # K is singular beyond rounding, as the general solver allows
            return None, None, False
        solved = _corrected(K, c, partial(linalg.solve_cholesky, known), right)
        if solved is None:
            return None, None, False
    a, b = solved, np.zeros(problem.Y.shape[1])
    if problem.fit_intercept:
        a, one = solved[:, :-1], solved[:, -1]
        b = a.sum(axis=0) / one.sum()
        a = a - np.outer(one, b)
    return from_coefficients(problem, lam, a, b, steps=1), known, factored


def _corrected(K: Array, c: Array, solve: Callable[[Array], Array], right: Array) -> Array | None:
    """Solve (K + diag(c)) x = right by corrections with the inverse of a matrix near it.

    None where corrections shrink too slowly.
    """
    unit = np.abs(right).max(axis=0)
    unit[unit == 0.0] = 1.0
    x, residual, last = np.zeros_like(right), right, 1.0
    while True:
        change = solve(residual)
        x += change
        residual = residual - linalg.matmul(K, change) - c[:, None] * change
        size = float((np.abs(residual) / unit).max())
        if size <= RELATIVE_RESIDUAL:
            return x
        if not size <= MAX_RESIDUAL_RATIO * last:
            return None
        last = size


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
    return np.block([[A, B], [B.T, C]]).T


def _changed(old: Problem, K: Array, Y: Array, s: Array) -> Problem:
    """The problem of the changed rows."""
    problem = replace(old, K=K, Y=np.asfortranarray(Y), s=s)
    if problem.definite:  # measuring the smallest eigenvalue would cost as much as a fit
        vars(problem.norms).update(negative=problem.norms.rounding)
    return problem


def _check_memory(model: Any, Y: Array, s: Array) -> None:
    """Refuse an update that would not fit into memory, before it begins."""
    work = model._workload(Y, s)
    squared = UPDATE_MATRICES * work.itemsize * work.n**2
    plan.check_bytes(work, max(plan.peak_bytes(work, "fit"), work.quadratic * squared), "an update")


def _targets(model: Any, y: Any, dtype: Any) -> tuple[Array, Array | None]:
    """Targets of the columns for new rows, and the numbers of their classes."""
    if hasattr(model, "classes_"):
        labels = np.ravel(np.asarray(y))
        new = np.setdiff1d(labels, model.classes_)
        if new.size:
            raise ValueError(
                f"y has the label {new[0].item()!r}, which is not one of the model's classes "
                f"{model.classes_.tolist()}; call fit with all rows to add a class"
            )
        codes = np.searchsorted(model.classes_, labels)
        Y = encode_labels(model.classes_, labels).astype(dtype, copy=False)
        return np.asarray(model._coding().columns(Y)), codes
    blank = clone(model)
    Y = blank._coding().columns(blank._code_targets(y, dtype))
    if (blank._y_ndim, Y.shape[1]) != (model._y_ndim, model._Y_fit.shape[1]):
        raise ValueError("y must have the same number of columns as the targets of the fit")
    return np.asarray(Y), None


def _check_left(model: Any, codes: Array | None, s: Array) -> None:
    """Refuse to remove what a fit needs."""
    if np.count_nonzero(s) < 2:
        raise ValueError("at least two rows of positive weight must be left for a fit")
    if codes is None:
        return
    lost = np.setdiff1d(np.arange(len(model.classes_)), codes[s > 0])
    if lost.size:
        raise ValueError(
            f"no row of class {model.classes_[lost[0]].item()!r} would be left; call fit without "
            "that class"
        )


def _stacked(first: Any, second: Any) -> Any:
    """All rows, in the form of the first ones."""
    if sparse.issparse(first):
        both: Any = [first, sparse.csr_array(second)]
        return sparse.vstack(both, format="csr")
    second = second.toarray() if hasattr(second, "toarray") else second
    return np.concatenate([first, second.astype(first.dtype, copy=False)])
