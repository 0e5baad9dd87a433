"""The gradient of exact cross-validation: one rank-one term per split, for any kernel parameter.

Let J be a sum of a smooth function of the held-out values, and q its derivative by those of a
split, zero on other rows. The split's model has coefficients a and intercept b with 2 Lambda a =
-s g, u = K a + b and 1'a = 0. Let A be its training rows with curvature d, c = 2 Lambda / (s d)
there, and let z solve the same bordered system that a Newton step does,

    [ K_AA + diag(c)   1 ] [  z   ]   [ K_A. q ]
    [      1'          0 ] [ zeta ] = [  1'q   ].

Differentiating stationarity gives, with w = q - z,

    dJ = sum over splits of   w' dK a,                                                         (1)

a sum of one rank-one term per split, for all parameters of the kernel at once (a kernel turns it
into derivatives by its own parameters, :meth:`onefit.kernels.Kernel.pullback`), and

    dJ / d log Lambda = sum over splits of   zeta 1'a_0 - w'K a_0 - z'(c o a),                  (2)

a_0 being the coefficients of training rows without curvature, which Lambda alone divides. Without
an intercept zeta is zero.

For the squared loss every row has curvature, the inverse P of the full sample is known, and
w = -P_.S (P_SS)^-1 q_S needs no further factor (onefit.heldout.squared).

A piecewise quadratic loss has a curvature that jumps: (1) and (2) hold wherever no row is on a
kink, which is almost everywhere. A width that is taken from the targets trained on ("mad") changes
with the split, and with neither kernel nor lambda.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.folds import Folds
from onefit.heldout import Block, Exact
from onefit.heldout.splits import Splits
from onefit.kernels import Kernel
from onefit.losses import InPairs, Log, Squared
from onefit.losses.base import loss_of
from onefit.problem import Problem
from onefit.systems import Cholesky, NewtonModel

__all__ = ["Gradient", "SmoothCriterion", "SmoothedError", "cv_gradient"]


class SmoothCriterion(Protocol):
    """A function of a target and a held-out value, with its slope; every loss is one."""

    def value(self, y: Array, u: Array) -> Array:
        """Value of the pointwise function for every row."""

    def gradient(self, y: Array, u: Array) -> Array:
        """Its derivative by u."""


@dataclass(frozen=True)
class SmoothedError:
    """The error rate with a soft step, 1 / (1 + exp(y u / width)), for labels -1 and +1."""

    width: float = 0.1

    def value(self, y: Array, u: Array) -> Array:
        return np.asarray(0.5 * (1.0 - np.tanh(0.5 * y * u / self.width)))

    def gradient(self, y: Array, u: Array) -> Array:
        p = self.value(y, u)
        return np.asarray(-y / self.width * p * (1.0 - p))


@dataclass(frozen=True)
class Gradient:
    """Value and gradient of a cross-validation criterion.

    Attributes
    ----------
    value : float
        The mean over splits of ``parts``.
    parts : (k,) array
        The mean over targets and test rows of each split.
    lam : float
        The derivative by log lam.
    left, right : (n, m) arrays
        w and a: the derivative by K is sum_k w_k' dK a_k.
    """

    value: float
    parts: Array
    lam: float
    left: Array
    right: Array

    def kernel(self, kernel: Kernel, X: Array) -> dict[str, Array]:
        """Derivatives by the logarithms of the kernel's parameters."""
        return kernel.pullback(X, self.left, self.right)


@linalg.overflowing
def cv_gradient(
    problem: Problem,
    lam: float,
    folds: Folds,
    criterion: SmoothCriterion | None = None,
    shares: Array | None = None,
    weights: Array | None = None,
) -> Gradient:
    """Exact cross-validation and its gradient in the kernel matrix and lam.

    Parameters
    ----------
    problem : Problem
    lam : float
    folds : Folds
    criterion : SmoothCriterion, default=None
        Of targets and held-out values; the squared error, or the log loss for labels, by default.
    shares : (k,) array, default=None
        Weights of the splits in the mean over splits, which sum to one; equal by default.
    weights : (N,) array, default=None
        Of the test rows, one split after the other, in the mean over a split; equal by default.
    """
    problem = problem.double
    k = len(folds)
    shares = np.full(k, 1.0 / k) if shares is None else shares
    weights = np.ones(folds.rows.size) if weights is None else weights
    found = _Criterion(problem, folds, criterion or _usual(problem), shares, weights, np.zeros(k))
    splits = Splits.sort(problem, folds)
    if problem.quadratic and not splits.by_refit.size:
        parts = _by_inverse(problem, lam, splits, found)
    else:
        parts = _by_systems(problem, lam, folds, found)
    w, a, slopes = zip(*parts, strict=True)
    left, right = (np.concatenate(one, axis=1) for one in (w, a))
    return Gradient(float(shares @ found.parts), found.parts, sum(slopes), left, right)


def _usual(problem: Problem) -> SmoothCriterion:
    if isinstance(problem.loss, InPairs):
        return InPairs(Log())
    return Log() if (np.abs(problem.Y) == 1.0).all() else Squared()


@dataclass
class _Criterion:
    """J, added up split by split."""

    problem: Problem
    folds: Folds
    criterion: SmoothCriterion
    shares: Array
    weights: Array
    parts: Array

    def slopes(self, k: int, j: int, u: Array) -> Array:
        """q of a split's test rows, predicted as u for target j, whose part joins J."""
        y, w = self.problem.Y[self.folds.test[k], j], self.weights[self.folds.place(k)]
        share = w / (w.sum() * self.problem.Y.shape[1])
        criterion: Any = loss_of(self.criterion, [j])  # type: ignore[arg-type]
        self.parts[k] += float(share @ criterion.value(y, u))
        return np.asarray(self.shares[k] * share * criterion.gradient(y, u))


def _by_inverse(
    problem: Problem, lam: float, splits: Splits, criterion: _Criterion
) -> Iterator[tuple[Array, Array, float]]:
    """w and a of all splits and the derivative by log lam, for every target."""
    prepared = Block().prepare(problem, splits.folds)
    root, n, k = prepared.root[:, None], problem.n, len(splits.folds)
    shape = problem.Y.shape[1], n, k
    w, a, slopes = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])
    for i, split in enumerate(splits.by_formula):
        rows, ridge = splits.removed[i], lam * float(splits.weight[i])
        columns, alpha = prepared.columns(ridge, rows)
        test = splits.folds.test[split]
        place = np.searchsorted(rows, test)
        block = np.asfortranarray(columns[rows])
        missed = linalg.solve_spd(block, np.asfortranarray(alpha[rows])) / root[rows]
        q = np.zeros_like(missed)
        for j in range(shape[0]):
            u = problem.Y[test, j] - missed[place, j]
            q[place, j] = criterion.slopes(int(split), j, u)
        pulled = linalg.solve_spd(block, np.asfortranarray(q / root[rows]))
        w[:, :, split] = (root * (columns @ pulled)).T
        a[:, :, split] = (root * (alpha - columns @ (root[rows] * missed))).T
        a[:, rows, split] = 0.0
        slopes += ridge * (w[:, :, split] * a[:, :, split]) @ (1.0 / root[:, 0] ** 2)
    return zip(w, a, slopes.tolist(), strict=True)


def _by_systems(
    problem: Problem, lam: float, folds: Folds, criterion: _Criterion
) -> Iterator[tuple[Array, Array, float]]:
    """The same, with a system per split."""
    n, k = problem.n, len(folds)
    train, q = np.zeros((n, k), dtype=bool), np.zeros((n, k))
    for split, rows in enumerate(folds.train):
        train[rows, split] = True
    ridge = np.array([problem.ridge(lam, rows) for rows in folds.train])
    for j, at in enumerate(Exact().prepare(problem, folds).models(lam)):
        for split, test in enumerate(folds.test):
            q[test, split] = criterion.slopes(split, j, at.u[test, split])
        columns = problem.columns(j, train, ridge)
        d = columns.loss.curvature(columns.y, at.u) * columns.train
        curved = d > 0.0
        missing = problem.K.matmul(np.asfortranarray(q)) * curved
        model = NewtonModel(d, missing, np.zeros_like(d), -q.sum(axis=0))
        z, zeta = Cholesky(problem, ridge).solve(model)
        w, still = q - z, np.where(curved, 0.0, at.a)
        c = 2.0 * ridge / np.where(curved, problem.s[:, None] * d, 1.0)
        slope = zeta * still.sum(axis=0) - (z * c * at.a).sum(axis=0)
        slope -= (w * problem.K.matmul(np.asfortranarray(still))).sum(axis=0)
        yield w, at.a, float(slope.sum())
