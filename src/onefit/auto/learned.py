"""Kernels of rows that are transformed by what each training part shows about the target.

A kernel of ||x - x'|| treats all columns alike. Two transformers learn from the target which
directions matter: a metric from gradients (:mod:`onefit.gradient_metric`), and a scale for every
column from the evidence (:mod:`onefit.evidence_scales`). A search over the pipeline of such a
transformer and the kernel model fits both in every training part, so that its held-out values are
honest, and comparable with those of the search over the rows as they are.

These candidates are averaged with those of the rows as they are (:mod:`onefit.auto.stacked`), or
compete with them. With many rows a race on a sample chooses among both (:mod:`onefit.auto.race`).
What they gain is in ``benchmarks/metric_rows.py`` (metrics), ``benchmarks/evidence_rows.py``
(scales) and ``benchmarks/how_good.py``.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from onefit._format import number
from onefit._types import Array
from onefit.auto.prepared import PreparedRows
from onefit.evidence_scales import EvidenceScales
from onefit.gradient_metric import GradientMetric
from onefit.plan import Deadline
from onefit.report.facts import Facts
from onefit.search_cv import KernelSearchCV

__all__ = [
    "LEARNED_SHARE", "describe", "learned_grid", "learned_search", "left_to_rules",
    "nothing_learned", "over_transformed",
]  # fmt: skip

#: parameters that leave the choice to the rules while they are None
LEFT_TO_RULES = ("kernels", "loss", "scoring", "param_grid", "approximation")
#: a step of a metric takes products of n x d and decompositions of d x d matrices
MAX_LEARNED_COLUMNS = 300
#: in units of the root mean squared distance of transformed rows
LEARNED_GAMMAS = (0.3, 1.0, 3.0)
LEARNED_LAMS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 5e-4, 3e-3, 3e-2)
#: time of their search in units of that of the rows as they are
LEARNED_SHARE = 3.0


def left_to_rules(auto: Any, y: Array, in_folds: bool) -> bool:
    """Whether the model is left to the rules, for one target."""
    free = all(getattr(auto, name) is None for name in LEFT_TO_RULES)
    return y.ndim == 1 and not in_folds and free


def nothing_learned(X: Any) -> str:
    """Why nothing can be learned from prepared rows; empty if something can."""
    if issparse(X):
        return "the rows are sparse"
    if X.shape[1] > MAX_LEARNED_COLUMNS:
        return f"there are {X.shape[1]:,} columns, more than {MAX_LEARNED_COLUMNS}"
    return ""


def learned_grid() -> list[dict[str, Any]]:
    """All learned candidates."""
    kernels = ("matern12", "matern32")
    return [
        {
            "rows": [GradientMetric(1), GradientMetric(3), *map(EvidenceScales, kernels)],
            "model__kernel": list(kernels),
            "model__gamma": list(LEARNED_GAMMAS),
            "model__lam": list(LEARNED_LAMS),
        }
    ]


def over_transformed(search: KernelSearchCV, grid: list[dict[str, Any]]) -> KernelSearchCV:
    """A search over transformed rows, with the options of one over the rows as they are."""
    model = clone(search.estimator).set_params(loss="squared")
    return KernelSearchCV(
        Pipeline([("rows", GradientMetric()), ("model", model)]),
        grid,
        scoring=search.scoring,
        aggregate=search.aggregate,
        n_jobs=search.n_jobs,
    )


def learned_search(
    search: KernelSearchCV,
    data: PreparedRows,
    grid: list[dict[str, Any]],
    deadline: Deadline | None = None,
) -> KernelSearchCV:
    """Kernels of transformed rows, on the splits of a fitted search.

    Parameters
    ----------
    search : KernelSearchCV
        Over the rows as they are.
    data : PreparedRows
        What it was fitted to.
    grid : list of dict
    deadline : Deadline or None
        OutOfTime is raised where the search does not end in time.
    """
    found = over_transformed(search, grid)
    found.set_params(cv=search.heldout_.folds)
    if search.journal is not None:
        found.set_params(journal=Path(search.journal) / "learned")
    with nullcontext() if deadline is None else deadline.over(found, optional=True, whole=True):
        data.fit(found)
    return found


def describe(learned: KernelSearchCV, plain: KernelSearchCV) -> str:
    """The best scores of both searches, in a sentence."""
    scale = Facts(plain).scale
    mine, others = (number(scale(one.best_score_), 4) for one in (learned, plain))
    if not learned.best_score_ > plain.best_score_:
        words = "a metric of the rows, or scales of the columns,"
        return (
            f"{words} learned in each training part did not give a better model: {scale.label} "
            f"{mine}, {others} without"
        )
    scales = isinstance(learned.best_params_["rows"], EvidenceScales)
    words = "scales of the columns" if scales else "a metric of the rows"
    return f"{words}, learned in each training part: {scale.label} {mine}, {others} without"
