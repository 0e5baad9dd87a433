"""A race: the limit of the influence series for all, exact values for those that can win.

The limit costs little more than the full-sample fit, and its score differs from the exact one
only where points change their piece of the loss. How much, the race finds out as it goes. It
repairs the leaders, takes twice the largest difference seen between a repaired score and its
limit as the error of all other limits, and repairs whoever is within that of the best exact
score, until nobody is. The winner and everybody near it end with exact scores;
``cv_results_["exact"]`` and ``["method"]`` tell who.

The error is an estimate, not a bound: a candidate whose limit is further off than twice the
worst one seen among the leaders can be missed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.heldout import Exact
from onefit.search.grid import Job
from onefit.search.workers import Outcome

Array = NDArray[Any]

__all__ = ["race"]

#: leaders that are repaired before anything is known about the error of the limit
LEADERS = 5


def race(
    jobs: list[Job],
    outcomes: list[Outcome],
    totals: Callable[[list[Outcome]], Array],
    run: Callable[[list[Job]], list[Outcome]],
) -> list[Outcome]:
    """Repair the outcomes that can win.

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
    contenders = np.argsort(-np.where(scored, first, -np.inf))[:LEADERS]
    while True:
        contenders = contenders[~exact[contenders] & scored[contenders]]
        if contenders.size == 0:
            return outcomes
        repaired = run(_only(jobs, set(contenders.tolist())))
        outcomes = [*_without(outcomes, repaired), *repaired]
        now = totals(outcomes)
        exact[contenders] = True
        error = 2.0 * float(np.nanmax(np.abs(now - first)[exact & scored], initial=0.0))
        best = float(np.nanmax(now[exact & scored]))
        contenders = np.flatnonzero(now >= best - error)


def _exact(outcomes: list[Outcome], size: int) -> NDArray[np.bool_]:
    exact = np.zeros(size, dtype=bool)
    for outcome in outcomes:
        exact[list(outcome.indices)] = outcome.exact.all(axis=1)
    return exact


def _only(jobs: list[Job], wanted: set[int]) -> list[Job]:
    """The jobs of some candidates, by exact cross-validation."""
    found = []
    for job in jobs:
        machines = []
        for machine in job.machines:
            kept = [i for i, index in enumerate(machine.indices) if index in wanted]
            if kept:
                lams = tuple(machine.lams[i] for i in kept)
                indices = tuple(machine.indices[i] for i in kept)
                machines.append(replace(machine, lams=lams, indices=indices, method=Exact()))
        if machines:
            found.append(Job(job.kernel, tuple(machines)))
    return found


def _without(outcomes: list[Outcome], repaired: list[Outcome]) -> list[Outcome]:
    """Outcomes less the candidates that were repaired."""
    gone = {index for outcome in repaired for index in outcome.indices}
    left = [
        outcome.take([i for i, index in enumerate(outcome.indices) if index not in gone])
        for outcome in outcomes
    ]
    return [outcome for outcome in left if outcome.indices]
