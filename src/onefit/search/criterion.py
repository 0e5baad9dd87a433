"""The interface of criteria other than the cross-validated score.

A criterion sees one model (a problem on one kernel matrix), its lambdas and their held-out
values, and returns one number per lambda, the smaller the better, with a reason wherever it refused
(+inf). A search then chooses by it, and reports it beside the scores as
``cv_results_["criterion"]``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onefit._validation import check_choice
from onefit.criteria import CRITERIA
from onefit.criteria.base import Criterion as Own
from onefit.criteria.evidence import Evidence
from onefit.linalg import LinAlgError

Array = NDArray[Any]

__all__ = ["CRITERIA", "CriterionLike", "evaluate", "get_criterion"]


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
        return criterion
    check_choice("criterion", criterion, CRITERIA)
    return CRITERIA[criterion]


def evaluate(criterion: CriterionLike, evidence: Evidence) -> tuple[Array, list[str]]:
    """Values and reasons of a criterion; +inf and a reason where the numerics of others fail.

    The package's own criteria handle such errors themselves, lambda by lambda. Others expect NumPy
    arrays, so a kernel matrix on a device is copied to the host for them.
    """
    if isinstance(criterion, Own):
        return criterion.evaluate(evidence)
    problem = evidence.problem
    if not problem.K.arrays.on_host:
        evidence = replace(evidence, problem=replace(problem, K=np.asarray(problem.K)))
    try:
        return criterion.evaluate(evidence)
    except (LinAlgError, FloatingPointError) as error:
        size = len(evidence.lams)
        return np.full(size, np.inf), [str(error)] * size
