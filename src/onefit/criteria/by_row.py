"""Criteria that are means over rows of what hat matrices say of each row.

With features instead of the kernel matrix a hat matrix is known from sums over all rows
(onefit.stream.leave_one). Each row is then judged by itself, in memory or as it is streamed
(onefit.criteria.streamed).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from onefit.criteria.base import Criterion
from onefit.criteria.pointwise import Pointwise
from onefit.criteria.spectrum import HatSpectrum
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["ByRow"]


@dataclass(frozen=True, kw_only=True)
class ByRow(Criterion):
    """A criterion that judges rows one by one, for the squared loss at least."""

    features = "squared"

    @abstractmethod
    def predictions(self, spectrum: HatSpectrum, lam: float) -> Array:
        """The (n, q) leave-one-out predictions as the criterion has them; for the squared loss."""

    @abstractmethod
    def measure(self, problem: Problem) -> Pointwise:
        """What these are judged by."""
