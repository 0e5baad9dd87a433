"""The data that a criterion may use: one model, its lambdas, and its held-out values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onefit.columns.fit import fit
from onefit.criteria.spectrum import HatSpectrum
from onefit.features.leave_one import make_hat
from onefit.heldout import HeldOut
from onefit.kernels import Kernel
from onefit.problem import Problem, Solution

__all__ = ["Evidence", "positive"]


@dataclass(frozen=True)
class Evidence:
    """The data that a criterion may use; rows are in one order, not always the caller's.

    Attributes
    ----------
    problem : Problem
    kernel : Kernel or None
        None if only the kernel matrix is known.
    lams : tuple of float
    heldouts : list of HeldOut or None
        One per lambda, None where its computation failed.
    kept : dict
        Decomposition and last solution of this problem, shared with the evidence of its other
        lambdas.
    """

    problem: Problem = field(repr=False)
    kernel: Kernel | None
    lams: tuple[float, ...]
    heldouts: list[HeldOut | None] = field(repr=False)
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def positive(self) -> Problem:
        """The problem on its rows of positive weight."""
        found: Problem = self._once("positive", lambda: positive(self.problem))
        return found

    @property
    def spectrum(self) -> HatSpectrum:
        """Hat matrices of the rows of positive weight (squared loss); decomposed once."""
        make = HatSpectrum if self.problem.K.features is None else make_hat
        found: HatSpectrum = self._once("spectrum", lambda: make(self.positive))
        return found

    def solution(self, i: int) -> Solution:
        """The solution on the rows of positive weight at the i-th lambda; it starts the next."""
        found = fit(self.positive, self.lams[i], start=self.kept.get("solution"))
        self.kept["solution"] = found
        return found

    def _once(self, name: str, make: Any) -> Any:
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]


def positive(problem: Problem) -> Problem:
    """The problem on its rows of positive weight."""
    kept = problem.positive
    return problem if kept.size == problem.n else problem.take(kept)
