"""The seam for criteria other than the cross-validated score.

A criterion sees one machine (a problem on one kernel matrix), its lambdas and their held-out
values, and returns one number a lambda, the smaller the better, with a reason wherever it refused
(+inf). A search then chooses by it, and reports it beside the scores as
``cv_results_["criterion"]``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from onefit._validation import check_choice
from onefit.criteria import CRITERIA
from onefit.heldout import HeldOut
from onefit.kernels import Kernel
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["CRITERIA", "Criterion", "Evidence", "get_criterion"]


@dataclass(frozen=True)
class Evidence:
    """What a criterion may look at; rows are in one order throughout, not always the caller's.

    Attributes
    ----------
    problem : Problem
    kernel : Kernel
    lams : tuple of float
    heldouts : list of HeldOut or None
        One a lambda, None where its computation failed.
    """

    problem: Problem = field(repr=False)
    kernel: Kernel
    lams: tuple[float, ...]
    heldouts: list[HeldOut | None] = field(repr=False)


@runtime_checkable
class Criterion(Protocol):
    """What ``KernelSearchCV(criterion=...)`` takes; it must survive pickling.

    It may have a method ``check(problem)`` that refuses a problem which it does not fit, before
    any work (the kernel matrix is still empty).
    """

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    def evaluate(self, evidence: Evidence) -> tuple[Array, list[str]]:
        """One value a lambda, the smaller the better, and one reason, empty where all is well."""
        ...


def get_criterion(criterion: str | Criterion) -> Criterion | None:
    """The criterion behind a name or an object; None stands for the cross-validated score."""
    if isinstance(criterion, Criterion):
        return criterion
    check_choice("criterion", criterion, CRITERIA)
    found: Criterion | None = CRITERIA[criterion]
    return found
