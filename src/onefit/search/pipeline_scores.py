"""Scores of the candidates of a search over pipelines, from the values of all units."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.heldout import HeldOutPath
from onefit.heldout.train_test import TestValues
from onefit.search.grid import CandidateModel
from onefit.search.outcome import Outcome, Task
from onefit.search.pipeline import Setting
from onefit.search.pipeline_units import Found

__all__ = ["outcomes_of"]


def outcomes_of(
    task: Task, group: list[Setting], found: dict[tuple[int, int], Found], error_score: Any
) -> list[Outcome]:
    """Scores of all candidates, from the values of all units."""
    folds, outcomes = task.sample.folds, []
    for i, setting in enumerate(group):
        units = [found[i, k] for k in range(len(folds))]
        lams = sum(len(candidate.lams) for candidate in setting.models)
        seconds = sum(unit.seconds for unit in units) / lams
        for place, candidate in enumerate(setting.models):
            start = perf_counter()
            outcome = _outcome(task, candidate, units, place, error_score)
            share = (perf_counter() - start) / len(candidate.lams)
            outcomes.append(replace(outcome, fit_seconds=seconds, score_seconds=share))
    return sorted(outcomes, key=lambda one: min(one.indices))


def _outcome(
    task: Task, candidate: CandidateModel, units: list[Found], place: int, error_score: Any
) -> Outcome:
    """The outcome of one model; splits on which a step failed have ``error_score``."""
    parts = [unit.values[place] for unit in units]
    failed = np.array([bool(unit.failed) for unit in units])
    held = _side_by_side(task, candidate, parts, failed)
    outcome = Outcome.of(task, candidate, held, "train_test")
    if not failed.any():
        return outcome
    shape = len(candidate.lams), len(units)
    scores = {name: outcome.scores.get(name, np.full(shape, np.nan)) for name in task.scoring.names}
    for one in scores.values():
        one[:, failed] = error_score
    values, why = outcome.values.copy(), next(unit.failed for unit in units if unit.failed)
    values[:, np.repeat(failed, np.diff(task.sample.folds.offsets))] = np.nan
    reasons = [reason or why for reason in outcome.reasons]
    return replace(outcome, scores=scores, pooled={}, values=values, reasons=reasons)


def _side_by_side(
    task: Task, candidate: CandidateModel, parts: list[TestValues], failed: Array
) -> HeldOutPath:
    """Values of all splits; zero on those where a step failed, which are scored too."""
    folds, lams = task.sample.folds, np.array(candidate.lams)
    q = candidate.spec.coding.columns(task.sample.Y[:1]).shape[1]
    values = [
        np.zeros((lams.size, part.values.shape[1], q)) if lost else part.values
        for part, lost in zip(parts, failed, strict=True)
    ]
    steps = np.stack([one.steps for one in parts], axis=1)
    return HeldOutPath(
        lams,
        folds,
        "train_test",
        np.concatenate(values, axis=1),
        np.stack([one.error for one in parts], axis=1)[..., None],
        np.stack([one.exact for one in parts], axis=1),
        np.zeros_like(steps),
        steps,
        [_reason(i, parts, failed) for i in range(lams.size)],
    )


def _reason(i: int, parts: list[TestValues], failed: Array) -> str:
    """The reason why lam ``i`` has no values on some split; empty if it has."""
    for k, part in enumerate(parts):
        if not failed[k] and np.isnan(part.values[i]).any():
            return f"split {k}: {part.reasons[i]}"
    return ""
