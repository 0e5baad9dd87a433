"""Criteria side by side: the candidate that each would choose, and its cost in held-out error.

Values of further criteria are columns ``criterion_<name>`` of a search's table. The
*regret* of a criterion is what its candidate loses against the best cross-validated score.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria.base import Criterion as Own
from onefit.criteria.evidence import Evidence
from onefit.kernels import Geometry
from onefit.report.facts import Facts
from onefit.scoring.aggregate import standard_error
from onefit.search.criterion import CriterionLike, evaluate, get_criterion
from onefit.search.grid import CandidateModel, candidate_models, check_rows, jobs

Array = NDArray[Any]

__all__ = ["Verdict", "compare_criteria", "verdicts"]

#: how the columns of further criteria begin
COLUMN = "criterion_"


def compare_criteria(
    search: Any, X: Any, y: Any, criteria: Sequence[str | CriterionLike], sample_weight: Any = None
) -> Any:
    """Evaluate further criteria on the candidates of a fitted search, as columns of its table.

    Every kernel matrix is built once for all criteria; no split is fitted again.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted.
    X, y, sample_weight
        What it was fitted to.
    criteria : sequence of str or CriterionLike
        As ``criterion`` of the search. "cv" and the search's own are there already.

    Returns
    -------
    search
        With columns ``criterion_<name>`` in ``cv_results_``, the smaller the better, infinite where
        a criterion refuses a candidate.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefit import KernelRegressor, KernelSearchCV
    >>> from onefit.report import compare_criteria
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = KernelSearchCV(KernelRegressor(), {"lam": [1e-5, 1e-3, 0.1]}).fit(X, y)
    >>> table = compare_criteria(search, X, y, ["loo", "gcv"]).cv_results_
    >>> int(table["criterion_loo"].argmin()), int(table["criterion_gcv"].argmin())
    (1, 1)
    """
    wanted = {one.name: one for one in map(get_criterion, criteria) if one is not None}
    wanted.pop(getattr(search.criterion, "name", search.criterion), None)
    if wanted:
        values = _values(search, X, y, list(wanted.values()), sample_weight)
        search.cv_results_ |= {COLUMN + name: one for name, one in zip(wanted, values, strict=True)}
    return search


def _values(
    search: Any, X: Any, y: Any, criteria: list[CriterionLike], sample_weight: Any
) -> Array:
    """Values of criteria for all candidates, a row each; infinite where a criterion refuses."""
    params = search.cv_results_["params"]
    group = candidate_models(search.estimator, params)
    rows, Y, s = check_rows(group, X, y, sample_weight)
    heldouts: list[Any] = [None] * len(params)
    if any(getattr(criterion, "uses_folds", False) for criterion in criteria):
        heldouts = [search.heldout(i) for i in range(len(params))]
    for criterion in criteria:
        _check(criterion, group, Y, s)
    found = np.full((len(criteria), len(params)), np.nan)
    for job in jobs(group, rows, Y, s):
        approximation = job.models[0].spec.approximation
        K: Any = (
            job.kernel.matrix(Geometry(rows, keep=False))
            if approximation is None
            else approximation.expand(job.kernel, rows, s)
        )
        for model in job.models:
            places, problem = list(model.indices), model.spec.problem(K, Y, s)
            kept = [heldouts[i] for i in places]
            evidence = Evidence(problem, job.kernel, model.lams, kept)
            for values, criterion in zip(found, criteria, strict=True):
                values[places] = _evaluate(criterion, evidence)
    return found


def _evaluate(criterion: CriterionLike, evidence: Evidence) -> Array:
    """Values by lam; infinite, with a warning, where the kernel does not fit."""
    try:
        return evaluate(criterion, evidence)[0]
    except ValueError as error:
        warnings.warn(f"{error}; these candidates are left out", stacklevel=4)
        return np.full(len(evidence.lams), np.inf)


def _check(criterion: CriterionLike, group: list[CandidateModel], Y: Array, s: Array) -> None:
    """Refuse what cannot be evaluated, before any work."""
    if hasattr(criterion, "check"):
        empty = np.empty((0, 0), dtype=Y.dtype)
        for model in group:
            problem = model.spec.problem(empty, Y, s)
            criterion.check(problem)
            if model.estimator.approximation is not None and isinstance(criterion, Own):
                criterion.check_features(problem)


@dataclass(frozen=True)
class Verdict:
    """The choice of one criterion.

    Attributes
    ----------
    name : str
    values : (C,) array
        As shown: the score for "cv", else the criterion; NaN where there is none.
    pick : int
        The candidate that it chooses.
    error, standard_error : float
        Cross-validated, of that candidate, as shown.
    regret, regret_error : float
        What it loses against the best cross-validated score, and the standard error of that over
        the splits (paired).
    """

    name: str
    values: Array = field(repr=False)
    pick: int
    error: float
    standard_error: float
    regret: float
    regret_error: float


def verdicts(facts: Facts) -> list[Verdict]:
    """The cross-validated score, the search's own criterion, and those of further columns.

    Empty where the score is the only one. Criteria that refuse every candidate are left out.
    """
    own = getattr(facts.search.criterion, "name", facts.search.criterion)
    columns = {own: facts.table["criterion"]} if "criterion" in facts.table else {}
    columns |= {
        name.removeprefix(COLUMN): values
        for name, values in facts.table.items()
        if name.startswith(COLUMN)
    }
    values = {name: np.where(np.isfinite(one), one, np.nan) for name, one in columns.items()}
    values = {name: one for name, one in values.items() if not np.isnan(one).all()}
    if not values or np.isnan(facts.scores).all():
        return []
    found = [_verdict(facts, "cv", facts.scale(facts.scores), int(np.nanargmax(facts.scores)))]
    found += [_verdict(facts, name, one, int(np.nanargmin(one))) for name, one in values.items()]
    return found


def _verdict(facts: Facts, name: str, values: Array, pick: int) -> Verdict:
    top = int(np.nanargmax(facts.scores))
    lost = (facts.splits[top] - facts.splits[pick])[None]
    return Verdict(
        name,
        values,
        pick,
        error=float(facts.scale(facts.scores[pick])),
        standard_error=float(facts.errors[pick]),
        regret=float(facts.scores[top] - facts.scores[pick]),
        regret_error=float(standard_error(lost)[0]),
    )
