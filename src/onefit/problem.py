"""One problem, many problems side by side, and their solutions.

Every model of the package minimises, over f in the space of the kernel and b,

    sum_i w_i V(y_i, u_i) + lam ||f||^2,     u_i = f(x_i) + b,   f = sum_j a_j K(x_j, .)

and everything about scaling, folds and sample weights s is in w: with "mean" scaling
w_i = s_i / sum(s over the training part), the papers' choice; with "total" scaling w_i = s_i,
scikit-learn's KernelRidge and libsvm's. Multiplying the objective by sum(s) turns both into the
normal form used from here on,

    sum_i s_i V(y_i, u_i) + Lambda ||f||^2,   Lambda = lam sum(s over the training part)   (mean)
                                              Lambda = lam                                 (total)

with stationarity   2 Lambda a_i = -s_i g_i   and, with an intercept,   sum_i a_i = 0.
Leaving rows out only sets their s to zero and, under mean scaling, shrinks Lambda with them. So a
fit, a fold and a refit are the same thing: a *column*, one target with a mask of rows and a Lambda.
Many of them are solved side by side (onefit.columns.newton).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.gram import Gram, as_gram
from onefit.losses.base import Loss, loss_of, resolved
from onefit.losses.pairs import InPairs
from onefit.proof.norms import Norms, target_scale

__all__ = ["SCALINGS", "Columns", "Problem", "Solution"]

#: what the weights of the rows are divided by: their sum over the training part, or nothing
SCALINGS = ("mean", "total")


@dataclass(frozen=True)
class Problem:
    """A kernel matrix, targets, weights and a loss; everything but lambda.

    Parameters
    ----------
    K : Gram, or an (n, n) array
        Kernel matrix; one that is not held serves the methods that need its products only.
    Y : (n, q) array
        One column per target (regression) or a one-vs-rest coding in {-1, +1} (classification);
        for pairs of classes also 0, see :mod:`onefit.losses.pairs`.
    s : (n,) array
        Sample weights; all ones by default.
    loss : Loss
    fit_intercept : bool
    scaling : {"mean", "total"}
    may_overwrite : bool
        Whether a method may overwrite K.
    definite : bool
        Whether K is the matrix of a positive semidefinite function, but for rounding.
    """

    K: Any = field(repr=False)
    Y: Array = field(repr=False)
    s: Array = field(repr=False)
    loss: Loss
    fit_intercept: bool = True
    scaling: str = "mean"
    may_overwrite: bool = False
    definite: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", as_gram(self.K))

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.Y.shape[0])

    @property
    def quadratic(self) -> bool:
        """Whether the loss is (y - u)^2: one linear system solves it."""
        return bool(getattr(self.loss, "quadratic", False)) and self.loss.max_curvature == 2.0

    def with_loss(self, loss: Loss) -> Problem:
        """The same with another loss."""
        return self._changed(loss=loss)

    @property
    def resolved(self) -> Problem:
        """The same with the widths that its loss takes from the targets of all rows, if any."""
        loss = resolved(self.loss, self.Y, self.s[:, None])
        return self if loss is self.loss else self.with_loss(loss)

    def _changed(self, **changes: Any) -> Problem:
        """The same numbers in another form, of the same sizes."""
        other = replace(self, **changes)
        vars(other).update(norms=self.norms, scale=self.scale)  # cached properties
        return other

    @property
    def positive(self) -> Indices:
        """The rows of positive weight."""
        return np.flatnonzero(self.s > 0)

    @cached_property
    def weight(self) -> float:
        """The sum of all weights."""
        return float(self.s.sum(dtype=np.float64))

    def part_of(self, weight: float) -> Problem:
        """The same rows as a part of a sample that has this weight, and its Lambda."""
        other = replace(self)
        vars(other).update(weight=weight)
        return other

    def ridge(self, lam: float, train: Indices | None = None) -> float:
        """Lambda of the normal form for the training rows (all of them by default)."""
        if self.scaling == "total":
            return lam
        weight = self.weight if train is None else float(self.s[train].sum(dtype=np.float64))
        return lam * weight

    def ridges_without_each(self, lam: float) -> Array:
        """Lambda for all rows but one, for each of them, (n,)."""
        s = self.s.astype(np.float64)
        return np.full(s.size, lam) if self.scaling == "total" else lam * (self.weight - s)

    @cached_property
    def norms(self) -> Norms:
        """Sizes of the kernel matrix."""
        return Norms.of(self.K, self.definite)

    @cached_property
    def scale(self) -> Array:
        """The unit in which an error is judged, one number per target."""
        if isinstance(self.loss, InPairs):
            return np.ones(self.Y.shape[1])
        return target_scale(self.Y, self.s)

    @property
    def double(self) -> Problem:
        """The problem in double precision: itself, if it is.

        A problem in double precision is not cached in itself: the cycle would keep K in memory.
        """
        return self if self.K.dtype == np.float64 else self._doubled

    @cached_property
    def _doubled(self) -> Problem:
        K, Y, s = (x.astype(np.float64) for x in (self.K, self.Y, self.s))
        return self._changed(K=K, Y=Y, s=s, may_overwrite=False)

    def take(self, rows: Indices) -> Problem:
        """The problem on some of the rows."""
        return replace(
            self, K=self.K.take(rows), Y=self.Y[rows], s=self.s[rows], may_overwrite=False
        )

    def columns(self, j: int, train: Array, ridge: Array) -> Columns:
        """Target ``j`` on the rows of several masks, (n, k), each with a Lambda of its own."""
        weights, scale = self.s[:, None] * train, np.full(ridge.size, self.scale[j])
        y = self.Y[:, [j]]
        loss = resolved(loss_of(self.loss, [j]), y, weights)
        return Columns(self, loss, y, weights > 0, weights, ridge, scale)

    def targets(self, rows: Indices, ridge: float) -> Columns:
        """All targets on some of the rows, a column each."""
        weights = np.zeros((self.n, 1), dtype=self.s.dtype)
        weights[rows, 0] = self.s[rows]
        weights = np.repeat(weights, self.Y.shape[1], axis=1)
        ridges = np.full(self.Y.shape[1], ridge)
        loss = resolved(self.loss, self.Y, weights)
        return Columns(self, loss, self.Y, weights > 0, weights, ridges, self.scale)


@dataclass(frozen=True)
class Columns:
    """Problems that share a kernel matrix, side by side.

    Attributes
    ----------
    problem : Problem
    loss : Loss
    y : (n, k) array, or (n, 1) if all have one target
    train : (n, k) bool array
        The rows of positive weight that each problem is trained on.
    weights : (n, k) array
        s on these rows, zero elsewhere.
    ridge : (k,) array
        Lambda, in double precision whatever the data are in.
    scale : (k,) array
        The unit of errors.
    """

    problem: Problem
    loss: Loss
    y: Array
    train: Array
    weights: Array
    ridge: Array
    scale: Array

    @property
    def K(self) -> Gram:
        """The kernel matrix they share."""
        K: Gram = self.problem.K
        return K

    @property
    def penalty(self) -> Array:
        """Lambda in the precision of the data."""
        return self.ridge.astype(self.K.dtype)

    @property
    def epsilon(self) -> float:
        """Rounding of one operation on the data."""
        return float(np.finfo(self.K.dtype).eps)

    def take(self, columns: Any) -> Columns:
        """A subset of the problems."""
        names = ("train", "weights", "ridge", "scale")
        taken = {name: getattr(self, name)[..., columns] for name in names}
        return replace(self, loss=loss_of(self.loss, columns), y=self.y_of(columns), **taken)

    @property
    def double(self) -> Columns:
        """The same in double precision."""
        if self.K.dtype == np.float64:
            return self
        y, weights = self.y.astype(np.float64), self.weights.astype(np.float64)
        return replace(self, problem=self.problem.double, y=y, weights=weights)

    def y_of(self, columns: Any) -> Array:
        """The targets of some of the problems."""
        return self.y if self.y.shape[1] == 1 else self.y[:, columns]

    def objective(self, at: Solution) -> Array:
        """The normal form at a point for each column, or at one for all."""
        fit = linalg.dots(self.weights, self.loss.value(self.y, at.u))
        return np.asarray(fit + self.penalty * linalg.dots(at.a, at.u - at.b))


#: the arrays of a solution, each with a column or a number per model
_ARRAYS = ("a", "b", "u", "drift")


@dataclass(frozen=True)
class Solution:
    """Several models as columns, f = sum_j a_j K(x_j, .) + b, and what they predict.

    Attributes
    ----------
    a : (n, k) array
        Coefficients.
    b : (k,) array
        Intercepts.
    u : (n, k) array
        Predictions on the sample, K a + b.
    drift : (k,) array
        How far rounding may have taken u from K a + b, in units of the root of K_ii.
    steps : int
        Newton or reweighting steps taken, the most of any column.
    converged : bool
        Whether all columns are at their minimisers.
    """

    a: Array = field(repr=False)
    b: Array
    u: Array = field(repr=False)
    drift: Array = field(repr=False)
    steps: int = 1
    converged: bool = True

    @classmethod
    def zero(cls, n: int, k: int, dtype: Any) -> Solution:
        """Models that predict zero."""
        a, b = np.zeros((n, k), dtype=dtype, order="F"), np.zeros(k, dtype=dtype)
        return cls(a, b, a.copy(order="F"), np.zeros(k))

    @classmethod
    def stack(cls, parts: Sequence[Solution]) -> Solution:
        """The columns of several, one after the other."""
        a, b, u, drift = (
            np.concatenate([getattr(x, name) for x in parts], axis=-1) for name in _ARRAYS
        )
        steps, converged = max(x.steps for x in parts), all(x.converged for x in parts)
        return cls(a, b, u, drift, steps, converged)

    def _map(self, change: Callable[[Array], Array], names: Sequence[str]) -> Solution:
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in names}
        return replace(self, **changed)

    def astype(self, dtype: Any) -> Solution:
        """The models in another precision."""
        return self._map(lambda x: x.astype(dtype, copy=False), _ARRAYS[:3])

    def copy(self) -> Solution:
        """One whose arrays may be written to."""
        return self._map(np.copy, _ARRAYS)

    def take(self, columns: Any) -> Solution:
        """A subset of the models."""
        return self._map(lambda x: x[..., columns], _ARRAYS)

    def put(self, columns: Any, part: Solution) -> None:
        """Write back what :meth:`take` gave."""
        for name in _ARRAYS:
            getattr(self, name)[..., columns] = getattr(part, name)

    def scaled(self, ratio: Array) -> Solution:
        """The models with their functions, not their intercepts, each multiplied by a ratio."""
        u = ratio * (self.u - self.b) + self.b
        return Solution(ratio * self.a, self.b.copy(), u, np.abs(ratio) * self.drift)
