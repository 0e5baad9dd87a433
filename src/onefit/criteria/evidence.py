"""The data that a criterion may use: one model, its lambdas, and its held-out values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onefit.columns.fit import fit
from onefit.criteria.spectrum import HatSpectrum, hat_spectrum
from onefit.heldout import HeldOut
from onefit.kernels import Kernel
from onefit.problem import Problem, Solution

__all__ = ["Evidence", "SolutionPath", "positive"]


@dataclass(frozen=True)
class Evidence:
    """The data that a criterion may use; rows are in one order, not always the caller's.

    Attributes
    ----------
    problem : Problem
    kernel : Kernel or None
        None where it is not known: the kernel matrix was given.
    lams : tuple of float
    heldouts : list of HeldOut or None
        One per lambda, None where its computation failed.
    kept : dict
        What was decomposed or solved for other lambdas of this problem already.
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
        found: HatSpectrum = self._once("spectrum", lambda: hat_spectrum(self.positive))
        return found

    @property
    def solutions(self) -> SolutionPath:
        """Solutions on the rows of positive weight, each starting the next."""
        found: SolutionPath = self._once("solutions", lambda: SolutionPath(self.positive))
        return found

    def _once(self, name: str, make: Any) -> Any:
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]


def positive(problem: Problem) -> Problem:
    """The problem on its rows of positive weight."""
    kept = problem.positive
    return problem if kept.size == problem.n else problem.take(kept)


class SolutionPath:
    """Solutions along lambdas, each starting the next."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.last: Solution | None = None

    def at(self, lam: float) -> Solution:
        """The solution at ``lam``."""
        self.last = fit(self.problem, lam, start=self.last)
        return self.last
