"""The interface of criteria other than the cross-validated score.

A criterion sees one model (a problem on one kernel matrix), its lambdas and their held-out
values, and returns one number per lambda, the smaller the better, with a reason wherever it refused
(+inf). A search then chooses by it, and reports it beside the scores as
``cv_results_["criterion"]``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onefit._validation import check_choice
from onefit.criteria import CRITERIA
from onefit.criteria.base import Criterion as Own
from onefit.criteria.evidence import Evidence
from onefit.linalg import LinAlgError
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["CRITERIA", "CriterionLike", "get_criterion"]


@runtime_checkable
class CriterionLike(Protocol):
    """What ``KernelSearchCV(criterion=...)`` takes; it must survive pickling.

    It may have a method ``check(problem)`` that refuses a problem which it does not fit, before
    any work (the kernel matrix is still empty).
    """

    @property
    def name(self) -> str:
        """Name in messages."""
        ...

    def evaluate(self, evidence: Evidence) -> tuple[Array, list[str]]:
        """One value per lambda, the smaller the better, and one reason, empty where all is well."""
        ...


def get_criterion(criterion: str | CriterionLike) -> CriterionLike | None:
    """The criterion behind a name or an object; None stands for the cross-validated score."""
    if isinstance(criterion, CriterionLike):
        return criterion if isinstance(criterion, Own) else _Guarded(criterion)
    check_choice("criterion", criterion, CRITERIA)
    return CRITERIA[criterion]


@dataclass(frozen=True)
class _Guarded:
    """A criterion of the caller's: where its numerics fail, the candidates get +inf and a reason.

    A kernel matrix on a device is copied to the host for it.

    The package's own criteria see to that themselves, lambda by lambda.
    """

    criterion: CriterionLike

    @property
    def name(self) -> str:
        return self.criterion.name

    def check(self, problem: Problem) -> None:
        if hasattr(self.criterion, "check"):
            self.criterion.check(problem)

    def evaluate(self, evidence: Evidence) -> tuple[Array, list[str]]:
        size, problem = len(evidence.lams), evidence.problem
        if not problem.K.arrays.on_host:
            # whoever wrote it knows NumPy's arrays
            problem = replace(problem, K=np.asarray(problem.K))
            evidence = replace(evidence, problem=problem)
        try:
            return self.criterion.evaluate(evidence)
        except (LinAlgError, FloatingPointError) as error:
            return np.full(size, np.inf), [str(error)] * size
