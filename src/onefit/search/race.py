"""A race: the limit of the influence series for all, exact values for those that can win.

A first lap on a sample of the rows leaves out whoever loses there (onefit.search.first_lap). On all
rows the limit costs little more than the full-sample fit, and its score differs from the exact one
only where points change their piece of the loss. Limits that are not exact go without a bound,
which takes a sixth of the time and leaves nearly every score open (benchmarks/results/
svm_analysis.md). The leaders are repaired, twice the largest difference seen between a repaired
score and its limit is taken for the error of all other limits, and whoever is within that of the
best exact score is repaired, until nobody is. That is an estimate, no bound: a candidate whose
limit is further off than twice the worst one seen among the leaders can be missed. Method "exact"
misses none.

A repair begins with the full-sample solution that the limit was taken around.
``cv_results_["exact"]`` and ``["method"]`` tell whose scores are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.heldout import Exact
from onefit.search.grid import Job
from onefit.search.outcome import Outcome

Array = NDArray[Any]

__all__ = ["race", "racing"]

#: leaders that are repaired before anything is known about the error of the limit
REPAIRED_LEADERS = 5


def racing(method: Any) -> bool:
    """Whether a search's method asks for a race."""
    return isinstance(method, str) and method == "race"


def race(
    jobs: list[Job],
    outcomes: list[Outcome],
    totals: Callable[[list[Outcome]], Array],
    run: Callable[[list[Job]], list[Outcome]],
) -> list[Outcome]:
    """Repair the outcomes that can win, by an estimate of the limit's error.

    Parameters
    ----------
    jobs : list of Job
        Those of the limit.
    outcomes : list of Outcome
    totals : callable
        The score of every candidate, larger is better.
    run : callable
        Runs jobs.
    """
    first = totals(outcomes)
    exact = _exact(outcomes, first.size)
    scored = np.isfinite(first)
    contenders = np.argsort(-np.where(scored, first, -np.inf))[:REPAIRED_LEADERS]
    while True:
        contenders = contenders[~exact[contenders] & scored[contenders]]
        if contenders.size == 0:
            return outcomes
        outcomes = _repaired(jobs, outcomes, contenders, run)
        now = totals(outcomes)
        exact[contenders] = True
        error = 2.0 * float(np.nanmax(np.abs(now - first)[exact & scored], initial=0.0))
        best = float(np.nanmax(now[exact & scored]))
        contenders = np.flatnonzero(now >= best - error)


def _repaired(
    jobs: list[Job],
    outcomes: list[Outcome],
    some: Array,
    run: Callable[[list[Job]], list[Outcome]],
) -> list[Outcome]:
    """The outcomes, exact for some of the candidates."""
    full = {
        index: one.full[place]
        for one in outcomes
        if one.full is not None
        for place, index in enumerate(one.indices)
    }
    new = run(_only(jobs, set(some.tolist()), full))
    return [*_without(outcomes, new), *new]


def _exact(outcomes: list[Outcome], size: int) -> NDArray[np.bool_]:
    exact = np.zeros(size, dtype=bool)
    for outcome in outcomes:
        exact[list(outcome.indices)] = outcome.exact.all(axis=1)
    return exact


def _only(jobs: list[Job], wanted: set[int], full: dict[int, Array]) -> list[Job]:
    """The jobs of some candidates, by exact cross-validation from their full-sample solutions."""
    found = []
    for job in jobs:
        models = []
        for model in job.models:
            kept = [i for i, index in enumerate(model.indices) if index in wanted]
            if kept:
                lams = tuple(model.lams[i] for i in kept)
                indices = tuple(model.indices[i] for i in kept)
                pairs = zip(lams, indices, strict=True)
                how = Exact({lam: full[index] for lam, index in pairs if index in full})
                models.append(replace(model, lams=lams, indices=indices, method=how))
        if models:
            found.append(Job(job.kernel, tuple(models)))
    return found


def _without(outcomes: list[Outcome], repaired: list[Outcome]) -> list[Outcome]:
    """Outcomes less the candidates that were repaired."""
    gone = {index for outcome in repaired for index in outcome.indices}
    left = [
        outcome.take([i for i, index in enumerate(outcome.indices) if index not in gone])
        for outcome in outcomes
    ]
    return [outcome for outcome in left if outcome.indices]
