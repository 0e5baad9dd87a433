"""Exact values only for the candidates that can win: ``method="race"``.

The limit costs little more than the full-sample fit, and its score differs from the exact one
only where points change their piece of the loss. The difference is estimated or bounded:

**Estimated** (``method="race"``). Limits that are not exact go without a bound, which takes a tenth
of the time and leaves nearly every score open (benchmarks/results/svm_analysis.md). The leaders are
repaired, twice the largest difference seen between a repaired score and its limit is taken for the
error of all other limits, and whoever is within that of the best exact score is repaired, until
nobody is. That is an estimate, no bound: a candidate whose limit is further off than twice the
worst one seen among the leaders can be missed.

**Proven** (``method=Race(proven=True)``). Every limit has a bound, hence every candidate's score is
an interval (onefit.search.intervals). Whoever's upper end reaches the best lower end is repaired,
those with the best upper ends first, until nobody is left who could win: the winner is then that
of the search by method "exact", ties going to the first in the grid as there. For the
one-standard-error rule the candidates whose intervals contain its threshold are repaired, too,
once the winner's score and standard error are exact.

A repair begins with the full-sample solution that the limit was taken around.
Either way ``cv_results_["exact"]`` and ``["method"]`` tell whose scores are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.heldout import Exact
from onefit.scoring.aggregate import standard_error
from onefit.search.grid import Job
from onefit.search.intervals import score_interval
from onefit.search.outcome import Outcome, Task

Array = NDArray[Any]

__all__ = ["Race", "prove", "race", "racing"]

#: leaders that are repaired before anything is known about the error of the limit, and candidates
#: that are repaired at a time where a proof is wanted
REPAIRED_LEADERS = 5


@dataclass(frozen=True)
class Race:
    """``KernelSearchCV(method=Race(...))``: exact values only for candidates that can win.

    Parameters
    ----------
    proven : bool, default=False
        Whether candidates are excluded only if bounds prove that they cannot win. Otherwise an
        estimate of the error decides, which needs exact values for fewer candidates.
    """

    proven: bool = False


def racing(method: Any) -> Race | None:
    """The race that a search's method asks for, if any."""
    if isinstance(method, Race):
        return method
    return Race() if isinstance(method, str) and method == "race" else None


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


def prove(
    jobs: list[Job],
    outcomes: list[Outcome],
    totals: Callable[[list[Outcome]], Array],
    run: Callable[[list[Job]], list[Outcome]],
    task: Task,
    metric: str,
    one_se: bool,
) -> list[Outcome]:
    """Repair the outcomes that bounds do not exclude.

    Parameters
    ----------
    jobs, outcomes, totals, run
        As in :func:`race`.
    task : Task
    metric : str
        The score.
    one_se : bool
        Whether the winner is that of :func:`onefit.scoring.one_standard_error`.
    """
    done = np.zeros(totals(outcomes).size, dtype=bool)
    while True:
        now = totals(outcomes)
        low, high = _ends(task, outcomes, metric, now, done)
        contenders = np.flatnonzero(~done & (high >= np.nanmax(low)))
        if contenders.size == 0 and one_se:
            contenders = _near(outcomes, metric, now, low, high, done)
        if contenders.size == 0:
            return outcomes
        contenders = contenders[np.argsort(-high[contenders], kind="stable")][:REPAIRED_LEADERS]
        outcomes = _repaired(jobs, outcomes, contenders, run)
        done[contenders] = True


def _ends(task: Task, outcomes: list[Outcome], metric: str, now: Array, done: Array) -> Any:
    """Intervals of all candidates; a score that is repaired is its own."""
    low, high = now.copy(), now.copy()
    for outcome in outcomes:
        rows = np.array(outcome.indices)
        rough = ~done[rows]
        ends = score_interval(task, outcome, metric)
        low[rows[rough]], high[rows[rough]] = (end[rough] for end in ends)
    return low, high


def _near(
    outcomes: list[Outcome], metric: str, now: Array, low: Array, high: Array, done: Array
) -> Array:
    """Candidates of which it is open whether they are within one standard error of the best."""
    best = int(np.nanargmax(np.where(done, now, -np.inf)))
    outcome = next(one for one in outcomes if best in one.indices)
    scores = outcome.scores[metric][outcome.indices.index(best)]
    threshold = now[best] - float(standard_error(scores))
    return np.flatnonzero(~done & (low < threshold) & (high >= threshold))


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
