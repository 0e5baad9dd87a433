"""One sample, many kernels and lambdas: criteria on the grid, and the winner's error.

The papers' experiments are all of this form. A criterion is evaluated at every kernel and lambda,
the first smallest value wins, and the machine with those parameters is tested on rows kept apart.
Times are processor time of the criterion on a given kernel matrix: fits, held-out predictions and
their judgement. With one thread that is what a clock on the wall shows on an idle machine, and
other work on the machine hardly changes it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import linalg
from onefit.columns.fit import fit
from onefit.criteria import Criterion
from onefit.criteria.evidence import Evidence
from onefit.folds import Folds
from onefit.heldout import HeldOut, HeldOutMethod
from onefit.kernels import Geometry, Kernel
from onefit.losses import Loss
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = [
    "Family",
    "Judged",
    "Sweep",
    "Unseen",
    "draw_folds",
    "error_rate",
    "mean_square",
    "misses",
    "seed_of",
]


def seed_of(*parts: Any) -> int:
    """A seed that depends on everything given and on nothing else."""
    return zlib.crc32("/".join(map(str, parts)).encode())


def draw_folds(n: int, k: int, rng: np.random.Generator) -> Folds:
    """A random partition into k folds of nearly equal size."""
    parts = np.array_split(rng.permutation(n), k)
    everyone = np.arange(n)
    return Folds.from_pairs(n, [(np.setdiff1d(everyone, part), np.sort(part)) for part in parts])


def misses(y: Array, u: Array) -> Array:
    """The 0/1 loss; a prediction of zero, which a kernel near the identity gives, is a miss."""
    return (y * u <= 0.0).astype(float)


def error_rate(y: Array, u: Array) -> float:
    """Percentage of labels that the sign of u misses."""
    return float(100.0 * misses(y, u).mean())


def mean_square(y: Array, u: Array) -> float:
    """Mean squared error."""
    return float(np.mean((y - u) ** 2))


@dataclass(frozen=True)
class Unseen:
    """Rows kept apart, and how predictions on them are judged."""

    X: Array = field(repr=False)
    y: Array = field(repr=False)
    labelled: bool

    def error(self, u: Array) -> float:
        """Error rate in percent, or mean squared error."""
        return error_rate(self.y, u) if self.labelled else mean_square(self.y, u)


@dataclass
class Sweep:
    """Values of one criterion on the grid, and the time they took."""

    values: Array
    seconds: float

    @property
    def winner(self) -> tuple[int, int]:
        """Kernel and lambda of the first smallest value."""
        found = np.unravel_index(int(np.argmin(self.values)), self.values.shape)
        return int(found[0]), int(found[1])

    def among(self, kernels: Array) -> Sweep:
        """The same, with kernels left out where ``kernels`` is False."""
        if not kernels.any():
            raise ValueError("no kernel is left to choose from: lower the bound on their means")
        return Sweep(np.where(kernels[:, None], self.values, np.inf), self.seconds)


@dataclass
class Family:
    """Machines on one sample that differ in kernel and lambda only.

    Parameters
    ----------
    X, y : training rows and targets
    kernels : sequence of Kernel
    lams : sequence of float
    loss : Loss
    fit_intercept : bool
    """

    X: Array = field(repr=False)
    y: Array = field(repr=False)
    kernels: Sequence[Kernel]
    lams: Sequence[float]
    loss: Loss
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        self._geometry = Geometry(self.X)

    def problem(self, kernel: int) -> Problem:
        """The problem on one of the kernels."""
        K = self.kernels[kernel].matrix(self._geometry)
        return Problem(
            K, self.y[:, None].astype(float), np.ones(len(self.y)), self.loss, self.fit_intercept
        )

    def off_diagonals(self) -> Array:
        """The mean entry beside the diagonal of each matrix; near zero, it is near the identity."""
        n = len(self.y)
        matrices = (self.problem(i).K.matrix for i in range(len(self.kernels)))
        return np.array([(K.sum() - np.trace(K)) / (n * (n - 1)) for K in matrices])

    def held_out(
        self, kernel: int, method: HeldOutMethod, folds: Folds, lams: Sequence[float]
    ) -> list[HeldOut | None]:
        """Held-out predictions on one kernel, one per lambda; None where a factorisation failed."""
        return _held_out(self.problem(kernel), method, folds, lams)

    def sweep(
        self,
        criteria: Mapping[str, Criterion],
        method: HeldOutMethod | None = None,
        folds: Folds | None = None,
    ) -> dict[str, Sweep]:
        """Evaluate criteria at every kernel and lambda, on shared held-out predictions if any."""
        shape = (len(self.kernels), len(self.lams))
        found = {name: Sweep(np.empty(shape), 0.0) for name in criteria}
        for i, kernel in enumerate(self.kernels):
            problem = self.problem(i)
            start = process_time()
            heldouts: list[HeldOut | None] = [None] * len(self.lams)
            if method is not None and folds is not None:
                heldouts = _held_out(problem, method, folds, self.lams)
            shared = process_time() - start
            evidence = Evidence(problem, kernel, tuple(map(float, self.lams)), heldouts)
            for name, criterion in criteria.items():
                start = process_time()
                found[name].values[i] = criterion.evaluate(evidence)[0]
                found[name].seconds += shared + process_time() - start
        return found

    def sweep_together(
        self, criterion: Criterion, method: HeldOutMethod, folds: Sequence[Folds]
    ) -> list[Sweep]:
        """The criterion under several partitions, as of `sweep` with each; factors are shared.

        There are no times: a partition by itself would take more than its part.
        """
        shape = (len(self.kernels), len(self.lams))
        found = [Sweep(np.empty(shape), float("nan")) for _ in folds]
        pairs = [pair for part in folds for pair in part]
        for i, kernel in enumerate(self.kernels):
            problem = self.problem(i)
            joint = _held_out(problem, method, Folds.from_pairs(problem.n, pairs), self.lams)
            parts = [[None] * len(folds) if h is None else _apart(h, folds) for h in joint]
            for sweep, heldouts in zip(found, zip(*parts, strict=True), strict=True):
                evidence = Evidence(problem, kernel, tuple(map(float, self.lams)), [*heldouts])
                sweep.values[i] = criterion.evaluate(evidence)[0]
        return found

    def predict(self, winner: tuple[int, int], X: Array) -> Array:
        """Decision values of other rows by the machine with the winner's parameters."""
        kernel, lam = winner
        solution = fit(self.problem(kernel), float(self.lams[lam]))
        K = self.kernels[kernel].matrix(Geometry(X, self.X, keep=False))
        return np.asarray(linalg.matmul(K, solution.a)[:, 0] + solution.b[0])


def _held_out(
    problem: Problem, method: HeldOutMethod, folds: Folds, lams: Sequence[float]
) -> list[HeldOut | None]:
    try:
        return method.prepare(problem, folds).predict(np.array(lams)).each()
    except (linalg.LinAlgError, FloatingPointError):
        return [None] * len(lams)


def _apart(held: HeldOut, folds: Sequence[Folds]) -> list[HeldOut]:
    """Held-out predictions of several partitions one after the other, each by itself."""
    found, first = [], 0
    for part in folds:
        splits = slice(first, first + len(part))
        rows = slice(held.folds.offsets[splits.start], held.folds.offsets[splits.stop])
        own = {name: getattr(held, name)[splits] for name in ("exact", "error", "moved", "steps")}
        found.append(replace(held, values=held.values[rows], folds=part, **own))
        first = splits.stop
    return found


@dataclass
class Judged:
    """Test errors of winners; a machine that several criteria chose is fitted once.

    Parameters
    ----------
    test : Unseen
    predict : function of a winner and rows
        Decision values of the machine with the winner's parameters.
    """

    test: Unseen
    predict: Callable[[tuple[int, int], Array], Array]
    known: dict[tuple[int, int], float] = field(default_factory=dict)

    def error(self, winner: tuple[int, int]) -> float:
        """The winner's error on the rows kept apart."""
        if winner not in self.known:
            self.known[winner] = self.test.error(self.predict(winner, self.test.X))
        return self.known[winner]
