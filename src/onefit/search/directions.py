"""The variables of a descent: bandwidths, or the weights of a bank of kernels.

A direction turns the variables of an optimiser into a kernel and lam, and the derivative by the
kernel matrix, sum_k left_k' dK right_k, into one by the variables. The last variable is log lam.

**Bandwidths.** The logarithms of one gamma, or of one per column.

**A bank.** mu = v / ||v||_p with v >= 0, which leaves the optimiser with bounds alone. With g the
derivative by mu, that by v is (g - (g'mu) mu^(p-1)) / ||v||_p: the length of v does not matter, and
a descent that begins at length one stays near it. Kernel matrices are computed once and kept.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from onefit import plan
from onefit._types import Array
from onefit.gram import Gram, as_gram
from onefit.kernels import Bank, Gaussian, Kernel, named_kernel
from onefit.linalg import arrays_of
from onefit.search.continuous import Interval
from onefit.search.rows import FoldedSample
from onefit.spec import Spec

__all__ = ["Bandwidths", "Direction", "Mixture", "make_direction"]


class Bandwidths:
    """One gamma, or one per column, by their logarithms.

    Parameters
    ----------
    estimator : KernelEstimator
        Whose kernel takes a gamma.
    sample : FoldedSample
    interval : Interval
    """

    def __init__(self, estimator: Any, sample: FoldedSample, interval: Interval) -> None:
        self.estimator, self.sample = estimator, sample
        self.each = interval.per_feature
        self.columns = int(sample.X.shape[1]) if self.each else 1
        ends = float(np.log(interval.low)), float(np.log(interval.high))
        self.bounds = [ends] * self.columns

    def begin(self, candidate: dict[str, Any]) -> Array:
        """The variables of a candidate."""
        return np.asarray(np.log(np.broadcast_to(candidate["gamma"], self.columns)))

    def params(self, x: Array) -> dict[str, Any]:
        """Parameters of an estimator from variables."""
        return {"gamma": np.exp(x) if self.each else float(np.exp(x[0]))}

    def matrix(self, x: Array) -> Gram:
        """The kernel matrix."""
        return as_gram(self._kernel(x)(self.sample.X))

    def pull(self, x: Array, left: Array, right: Array) -> Array:
        """The derivative of sum_k left_k' K right_k by the variables."""
        return np.ravel(self._kernel(x).pullback(self.sample.X, left, right)["gamma"])

    def squares(self, x: Array) -> Array:
        """The squared gammas, as if columns had standard deviation one."""
        return np.asarray(np.exp(2.0 * x) * self._units())

    def _kernel(self, x: Array) -> Kernel:
        estimator = copy(self.estimator)
        estimator.gamma = self.params(x)["gamma"]
        sample = self.sample
        spec: Spec = estimator.spec()
        return spec.resolve_kernel(sample.X, spec.coding.weights(sample.Y, sample.s))

    def _units(self) -> Array:
        """Squares of the factors of gamma that standardised columns would have."""
        X = self.sample.X
        dense = X.toarray() if hasattr(X, "toarray") else arrays_of(X).host(X)
        variance = np.var(dense, axis=0, dtype=np.float64) if self.each else np.var(dense)
        power = 2.0 if isinstance(named_kernel(self.estimator.kernel), Gaussian) else 1.0
        return np.asarray(np.maximum(np.atleast_1d(variance), np.finfo(float).tiny) ** power)


class Mixture:
    """The weights of a bank.

    Parameters
    ----------
    bank : Bank
        With kernels resolved on the rows (:meth:`Bank.settled`).
    sample : FoldedSample
    """

    def __init__(self, bank: Bank, sample: FoldedSample) -> None:
        self.bank = bank
        n, m = sample.folds.n, len(bank.kernels)
        _check_room(n, m)
        kernels = [bank.mixed(one) for one in np.eye(m)]
        self.matrices = [as_gram(one(sample.X)).astype(np.float64) for one in kernels]
        self.bounds = [(0.0, np.inf)] * m

    def begin(self, candidate: dict[str, Any]) -> Array:
        return self._mu(self.bank.weights_of(candidate["kernel"]))

    def params(self, x: Array) -> dict[str, Any]:
        return {"kernel": self.bank.mixed(self._mu(x))}

    def matrix(self, x: Array) -> Gram:
        pairs = [(w, K) for w, K in zip(self._mu(x), self.matrices, strict=True) if w]
        return as_gram(sum(w * K.matrix for w, K in pairs))

    def pull(self, x: Array, left: Array, right: Array) -> Array:
        p, mu = self.bank.p, self._mu(x)
        g = np.array(
            [float(np.vdot(left, K.matmul(np.asfortranarray(right)))) for K in self.matrices]
        )
        return np.asarray((g - (g @ mu) * mu ** (p - 1.0)) / self._length(x))

    def _length(self, v: Array) -> float:
        largest = float(v.max())
        if not largest > 0.0:
            raise FloatingPointError("every weight of the bank is zero")
        return float(largest * np.sum((v / largest) ** self.bank.p) ** (1.0 / self.bank.p))

    def _mu(self, v: Array) -> Array:
        return np.asarray(v / self._length(v))


#: the parameters of a kernel as variables
Direction = Bandwidths | Mixture


def make_direction(estimator: Any, sample: FoldedSample, ranges: dict[str, Any]) -> Direction:
    """The variables of an interval for gamma, or of a bank."""
    if "kernel" in ranges:
        return Mixture(ranges["kernel"], sample)
    return Bandwidths(estimator, sample, ranges["gamma"])


def _check_room(n: int, kernels: int) -> None:
    nbytes, room = 8.0 * n * n * (kernels + 4), plan.available_memory()
    if nbytes > room:
        raise MemoryError(
            f"the {kernels} kernel matrices of the bank, with {n} rows, take {nbytes / 2**30:.3g} "
            f"GiB, and {room / 2**30:.3g} GiB are available; use fewer kernels or rows"
        )
