"""Kernels of rows that are transformed by what each training part shows about the target.

A kernel of ||x - x'|| treats all columns alike. Two transformers learn from the target which
directions matter: a metric from gradients (:mod:`onefit.gradient_metric`), and a scale for every
column from the evidence (:mod:`onefit.evidence_scales`). A search over the pipeline of such a
transformer and the kernel model fits both in every training part, so that its held-out values are
honest, and comparable with those of the search over the rows as they are.

With few rows these candidates are members of an average (:mod:`onefit.auto.stacked`). With more
rows, where there is no average by default, they compete with the winner of the search. Where a
race on a sample narrows the grid (:mod:`onefit.auto.race`), they are raced on the same sample.
Behind the rows as they are, they are left out; else one transformation and one gamma is tried on
all rows. Far ahead, they leave only the best candidate of the sample to compare with.
What they gain with many rows is in ``benchmarks/metric_rows.py`` (metrics) and
``benchmarks/evidence_rows.py`` (scales).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from onefit._format import number
from onefit._types import Array
from onefit.auto.prepared import PreparedRows
from onefit.auto.race import LAM_FACTOR, Raced, scores, splitter_of
from onefit.evidence_scales import EvidenceScales
from onefit.gradient_metric import GradientMetric
from onefit.report.facts import Facts
from onefit.search_cv import KernelSearchCV

__all__ = [
    "LearnedRace", "better_learned", "learned_grid", "learned_search", "left_to_rules",
    "nothing_learned",
]  # fmt: skip

#: parameters that leave the choice to the rules while they are None
LEFT_TO_RULES = ("kernels", "loss", "scoring", "param_grid", "approximation", "minutes")
#: a step of a metric takes products of n x d and decompositions of d x d matrices
MAX_LEARNED_COLUMNS = 300
#: in units of the root mean squared distance of transformed rows
LEARNED_GAMMAS = (0.3, 1.0, 3.0)
LEARNED_LAMS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 5e-4, 3e-3, 3e-2)
#: largest lag of the score on the sample behind that of the rows as they are, and least lead with
#: which these try one candidate only (neither is set by a script)
MAX_SAMPLE_LAG_IN_STANDARD_ERRORS, MIN_SAMPLE_LEAD_IN_STANDARD_ERRORS = 1.0, 2.0


def left_to_rules(auto: Any, y: Array, in_folds: bool) -> bool:
    """Whether learned candidates are tried without being asked for: for a regression with one
    target whose model is left to the rules.
    """
    free = all(getattr(auto, name) is None for name in LEFT_TO_RULES)
    return auto._task == "regression" and y.ndim == 1 and not in_folds and free


def nothing_learned(X: Any) -> str:
    """Why nothing can be learned from prepared rows; empty if something can."""
    if issparse(X):
        return "the rows are sparse"
    if X.shape[1] > MAX_LEARNED_COLUMNS:
        return f"there are {X.shape[1]:,} columns, more than {MAX_LEARNED_COLUMNS}"
    return ""


def learned_grid() -> list[dict[str, Any]]:
    """All learned candidates, of which one is chosen, or which are averaged."""
    kernels = ("matern12", "matern32")
    return [
        {
            "rows": [GradientMetric(1), GradientMetric(3), *map(EvidenceScales, kernels)],
            "model__kernel": list(kernels),
            "model__gamma": list(LEARNED_GAMMAS),
            "model__lam": list(LEARNED_LAMS),
        }
    ]


def learned_search(
    search: KernelSearchCV, data: PreparedRows, grid: list[dict[str, Any]]
) -> KernelSearchCV:
    """Kernels of transformed rows, on the splits of a fitted search.

    Parameters
    ----------
    search : KernelSearchCV
        Over the rows as they are.
    data : PreparedRows
        What it was fitted to.
    grid : list of dict
    """
    found = _over_transformed(search, grid)
    found.set_params(cv=search.heldout_.folds)
    if search.journal is not None:
        found.set_params(journal=Path(search.journal) / "learned")
    data.fit(found)
    return found


@dataclass(frozen=True)
class LearnedRace:
    """The race of the learned candidates on a sample.

    Attributes
    ----------
    grid : list of dict
        The best one, with lams around its own; empty if it is behind the rows as they are.
    ahead : bool
        Whether it is far ahead of them.
    """

    grid: list[dict[str, Any]]
    ahead: bool

    @classmethod
    def of(cls, search: KernelSearchCV, raced: Raced) -> LearnedRace:
        """The race on the sample on which the candidates of a search were raced."""
        found = _over_transformed(search, learned_grid())
        found.set_params(cv=splitter_of(search), refit=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a sample that nobody asked for
            raced.sample.fit(found)
        values, errors = scores(found, "score")
        if not np.isfinite(values).any():
            return cls([], False)
        place = int(np.nanargmax(values))
        lead, error = values[place] - raced.best, errors[place]
        if lead < -MAX_SAMPLE_LAG_IN_STANDARD_ERRORS * error:
            return cls([], False)
        best = dict(found.cv_results_["params"][place])
        grid, lam = {name: [value] for name, value in best.items()}, best["model__lam"]
        low, high = lam / LAM_FACTOR, lam * LAM_FACTOR
        grid["model__lam"] = [one for one in LEARNED_LAMS if low <= one <= high]
        return cls([grid], bool(lead > MIN_SAMPLE_LEAD_IN_STANDARD_ERRORS * error))


def better_learned(
    search: KernelSearchCV, data: PreparedRows, race: LearnedRace | None = None
) -> tuple[KernelSearchCV, str]:
    """The search of learned candidates if its winner is better, else the given one; and why.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted, over the rows as they are.
    data : PreparedRows
        What it was fitted to.
    race : LearnedRace or None
        What a race on a sample left; None tries all.
    """
    what = "a metric of the rows, or scales of the columns,"
    why = nothing_learned(data.X)
    if why:
        return search, f"{what} are not learned: {why}"
    if race is not None and not race.grid:
        return search, f"{what} did not help on the sample"
    grid = learned_grid() if race is None else race.grid
    found, scale = learned_search(search, data, grid), Facts(search).scale
    mine, others = (number(scale(one.best_score_), 4) for one in (found, search))
    if not found.best_score_ > search.best_score_:
        return search, (
            f"{what} learned in each training part did not help: {scale.label} {mine}, "
            f"{others} without"
        )
    scales = isinstance(found.best_params_["rows"], EvidenceScales)
    words = "scales of the columns" if scales else "a metric of the rows"
    return found, (
        f"{words}, learned in each training part: {scale.label} {mine}, {others} without"
    )


def _over_transformed(search: KernelSearchCV, grid: list[dict[str, Any]]) -> KernelSearchCV:
    """A search over transformed rows, with the options of one over the rows as they are."""
    model = clone(search.estimator).set_params(loss="squared")
    return KernelSearchCV(
        Pipeline([("rows", GradientMetric()), ("model", model)]),
        grid,
        scoring=search.scoring,
        aggregate=search.aggregate,
        n_jobs=search.n_jobs,
    )
