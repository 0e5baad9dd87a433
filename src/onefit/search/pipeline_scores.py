"""Scores of the candidates of a search over pipelines, from the values of all units."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.heldout.train_test import TestValues
from onefit.search.grid import CandidateModel
from onefit.search.pipeline import Setting
from onefit.search.pipeline_units import Found
from onefit.search.workers import Outcome, Task

Array = NDArray[Any]

__all__ = ["outcomes_of"]


def outcomes_of(
    task: Task, group: list[Setting], found: dict[tuple[int, int], Found], error_score: Any
) -> list[Outcome]:
    """Scores of all candidates, from the values of all units."""
    folds, outcomes = task.sample.folds, []
    for i, setting in enumerate(group):
        units = [found[i, k] for k in range(len(folds))]
        seconds = sum(unit.seconds for unit in units)
        lams = sum(len(candidate.lams) for candidate in setting.models)
        for place, candidate in enumerate(setting.models):
            outcomes.append(_outcome(task, candidate, units, place, seconds / lams, error_score))
    return sorted(outcomes, key=lambda one: min(one.indices))


def _outcome(
    task: Task,
    candidate: CandidateModel,
    units: list[Found],
    place: int,
    seconds: float,
    error_score: Any,
) -> Outcome:
    start = perf_counter()
    parts = [unit.values[place] for unit in units]
    values = _side_by_side(parts, units)
    lost = np.stack([np.isnan(one.values).any(axis=(1, 2)) for one in parts], axis=1)
    failed = np.array([bool(unit.failed) for unit in units])
    reasons = [_reason(i, parts, units) for i in range(len(candidate.lams))]
    done = np.array([not reason for reason in reasons])
    scores: dict[str, Array] = {}
    pooled: dict[str, Array] = {}
    if failed.all():
        scores = {name: np.full(lost.shape, error_score) for name in task.scoring.names}
    elif failed.any() or done.any():
        # the splits that failed are scored too, and get error_score afterwards
        some = np.ones_like(done) if failed.any() else done
        shown = np.where(np.isnan(values), 0.0, values)[some]
        for name, one in task.scoring.score(candidate.estimator, shown).items():
            scores[name] = np.full((some.size, one.shape[1]), np.nan)
            scores[name][some] = one
            scores[name][lost] = np.nan
            if failed.any():
                scores[name][:, failed] = error_score
    if task.pooled is not None and done.any():
        for name, one in task.pooled.score(candidate.estimator, values[done]).items():
            pooled[name] = np.full(done.size, np.nan)
            pooled[name][done] = one[:, 0]
    steps = np.stack([one.steps for one in parts], axis=1)
    return Outcome(
        indices=candidate.indices,
        method="train_test",
        scores=scores,
        pooled=pooled,
        values=values,
        exact=np.stack([one.exact for one in parts], axis=1),
        error=np.stack([one.error for one in parts], axis=1),
        moved=np.zeros_like(steps),
        steps=steps,
        order=None,
        reasons=reasons,
        criterion=None,
        fit_seconds=seconds,
        score_seconds=(perf_counter() - start) / len(candidate.lams),
    )


def _side_by_side(parts: list[TestValues], units: list[Found]) -> Array:
    """Values of all splits, (L, N, q); NaN on a split whose preprocessing failed."""
    known = (part for part, unit in zip(parts, units, strict=True) if not unit.failed)
    q = max((part.values.shape[2] for part in known), default=1)
    shaped = [
        np.full((*part.values.shape[:2], q), np.nan) if unit.failed else part.values
        for part, unit in zip(parts, units, strict=True)
    ]
    return np.concatenate(shaped, axis=1)


def _reason(i: int, parts: list[TestValues], units: list[Found]) -> str:
    """Why lam ``i`` has no values on some split; empty if it has."""
    for k, (part, unit) in enumerate(zip(parts, units, strict=True)):
        if unit.failed or np.isnan(part.values[i]).any():
            return unit.failed or f"split {k}: {part.reasons[i]}"
    return ""
