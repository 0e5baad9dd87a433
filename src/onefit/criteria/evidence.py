"""What a criterion may look at: one model, its lambdas, and its held-out values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onefit.criteria.solutions import SolutionPath, positive
from onefit.criteria.spectrum import HatSpectrum, hat_spectrum
from onefit.heldout import HeldOut
from onefit.kernels import Kernel
from onefit.problem import Problem

__all__ = ["Evidence"]


@dataclass(frozen=True)
class Evidence:
    """What a criterion may look at; rows are in one order throughout, not always the caller's.

    Attributes
    ----------
    problem : Problem
    kernel : Kernel
    lams : tuple of float
    heldouts : list of HeldOut or None
        One per lambda, None where its computation failed.
    kept : dict
        What was decomposed or solved for other lambdas of this problem already.
    """

    problem: Problem = field(repr=False)
    kernel: Kernel
    lams: tuple[float, ...]
    heldouts: list[HeldOut | None] = field(repr=False)
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def spectrum(self) -> HatSpectrum:
        """Hat matrices of the rows of positive weight (squared loss); decomposed once."""
        if "spectrum" not in self.kept:
            self.kept["spectrum"] = hat_spectrum(positive(self.problem))
        found: HatSpectrum = self.kept["spectrum"]
        return found

    @property
    def solutions(self) -> SolutionPath:
        """Solutions on the rows of positive weight, each starting the next."""
        if "solutions" not in self.kept:
            self.kept["solutions"] = SolutionPath(positive(self.problem))
        found: SolutionPath = self.kept["solutions"]
        return found
