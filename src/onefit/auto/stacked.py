"""The average of all candidates instead of the winner (``stack``).

It is the default of a regression where the choice is left to the rules, up to `MAX_DEFAULT_ROWS`
rows: on the sets of ``benchmarks/how_good.py`` its error is significantly smaller than that of the
best candidate, for about three times the time of the search. For classes the gain is not clearly
significant.

With the squared loss, candidates whose rows are transformed by what is learned in each training
part join those of the search: a metric from gradients (:mod:`onefit.gradient_metric`), and a scale
for every column from the evidence (:mod:`onefit.evidence_scales`). With outliers, those of the
robust search join the plain one's, and the weights are learned by Huber's loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from onefit._format import number
from onefit._types import Array
from onefit.auto.prepared import Prepared
from onefit.evidence_scales import EvidenceScales
from onefit.gradient_metric import GradientMetric
from onefit.plan import Deadline
from onefit.report.facts import Facts
from onefit.search_cv import KernelSearchCV
from onefit.stacking import stack

__all__ = ["STACK_SHARE", "chosen_stack", "learned_search", "stack_searches"]

#: rows up to which the average is the default: those of the benchmark, where its gain is known
MAX_DEFAULT_ROWS = 1500
#: time of the average in units of the search's: mostly of learned metrics and scales
STACK_SHARE = 2.0
#: parameters that leave the choice to the rules while they are None
LEFT_TO_RULES = ("kernels", "loss", "scoring", "param_grid", "approximation", "minutes")
#: rows and columns up to which transformations are learned: a step of a metric costs a few
#: eigendecompositions of the rows in every training part
MAX_LEARNED_ROWS, MAX_LEARNED_COLUMNS = 3000, 300
#: gammas in units of the root mean squared distance of rows with a metric
METRIC_STEPS, METRIC_GAMMAS = (1, 3), (0.2, 0.5, 1.4)
#: gammas of scaled columns, whose evidence is that of gamma 1
SCALES_GAMMAS = (0.7, 1.2, 2.0)
LEARNED_LAMS = (1e-6, 1e-5, 1e-4, 5e-4, 3e-3, 3e-2)


def chosen_stack(auto: Any, y: Array, in_folds: bool) -> bool | str:
    """Whether to stack: as asked, else by default; refuses what cannot be stacked."""
    if auto.stack is None:
        few = auto._task == "regression" and y.ndim == 1 and len(y) <= MAX_DEFAULT_ROWS
        return few and not in_folds and all(getattr(auto, name) is None for name in LEFT_TO_RULES)
    if not (isinstance(auto.stack, bool) or auto.stack == "nested"):
        raise ValueError(f"stack must be None, True, False or 'nested', got {auto.stack!r}")
    stack: bool | str = auto.stack
    if not stack:
        return False
    if y.ndim > 1:
        raise ValueError("stack is for one target, and y has several columns; use stack=False")
    if auto.approximation is not None:
        raise ValueError(
            f"stack averages models of the whole kernel, and approximation="
            f"{auto.approximation!r} replaces it; leave one of them out"
        )
    return stack


def stack_searches(
    searches: list[KernelSearchCV],
    data: Prepared,
    nested: bool,
    deadline: Deadline | None,
) -> tuple[KernelSearchCV, list[str]]:
    """A search whose winner is the stack, and reasons.

    Parameters
    ----------
    searches : list of KernelSearchCV
        Fitted: the one whose winner is replaced; with outliers also the search before it.
    data : Prepared
        What the searches were fitted to.
    nested : bool
    deadline : Deadline or None
        Where time is limited, no metrics are learned, and nothing is stacked once it is over.
    """
    first = searches[0]
    if first.best_estimator_.approximation is not None:
        return first, ["the candidates are not averaged, since features replace the kernel matrix"]
    if not first.heldout_.folds.is_partition:
        return first, ["the candidates are not averaged: the splits do not test every row once"]
    spent = float((first.cv_results_["mean_fit_time"] * first.n_splits_).sum())
    late = "" if deadline is None else deadline.refuses(spent * (3.0 if nested else 0.3))
    if late:
        return first, [f"the candidates are not averaged: {late}"]
    further, reasons = list(searches[1:]), []
    why = "time is limited" if deadline is not None else _nothing_learned(first, data.X)
    if why:
        reasons.append(f"no candidates with a learned metric or scales: {why}")
    else:
        further.append(learned_search(first, data))
    found = stack(
        first, data.X, data.y, further=further,
        loss="huber" if len(searches) > 1 else "squared", nested=nested,
        sample_weight=data.sample_weight,
    )  # fmt: skip
    return found, [*reasons, _describe(found, first)]


def _nothing_learned(search: KernelSearchCV, Z: Any) -> str:
    """The reason why there are no candidates with a metric; empty if there are."""
    if not search.best_estimator_.spec().quadratic and search.criterion == "cv":
        return "the loss is not squared"
    if issparse(Z):
        return "the rows are sparse"
    if Z.shape[0] > MAX_LEARNED_ROWS or Z.shape[1] > MAX_LEARNED_COLUMNS:
        return (
            f"there are {Z.shape[0]:,} rows and {Z.shape[1]:,} columns, and metrics are learned up "
            f"to {MAX_LEARNED_ROWS:,} and {MAX_LEARNED_COLUMNS:,}"
        )
    return ""


def learned_search(search: KernelSearchCV, data: Prepared) -> KernelSearchCV:
    """Kernels of transformed rows, on the splits of a search; transformations are learned in each
    training part.
    """
    grid = [
        {
            "rows": [GradientMetric(steps) for steps in METRIC_STEPS],
            "model__kernel": ["matern12"],
            "model__gamma": list(METRIC_GAMMAS),
        },
        {
            "rows": [EvidenceScales()],
            "model__kernel": ["matern32"],
            "model__gamma": list(SCALES_GAMMAS),
        },
    ]
    found = KernelSearchCV(
        Pipeline(
            [
                ("rows", GradientMetric()),
                ("model", clone(search.estimator).set_params(loss="squared")),
            ]
        ),
        [one | {"model__lam": list(LEARNED_LAMS)} for one in grid],
        cv=search.heldout_.folds,
        scoring=search.scoring,
        aggregate=search.aggregate,
        n_jobs=search.n_jobs,
        journal=None if search.journal is None else Path(search.journal) / "learned",
    )
    data.fit(found)
    return found


def _describe(found: Any, first: KernelSearchCV) -> str:
    """The stack beside the best candidate, in a sentence."""
    scale, learned = Facts(found).scale, found.stack_
    score, best = (number(scale(one), 4) for one in (found.best_score_, first.best_score_))
    kernels = len(found.best_estimator_.members_)
    learned_rows = any(isinstance(one, Pipeline) for one in found.best_estimator_.members_)
    text = (
        f"stack: {learned.describe(kernels)}"
        f"{', some with a learned metric or scales' if learned_rows else ''}; {scale.label} "
        f"{score} with weights from the other folds; the best candidate alone has {best}, the best "
        f"of {len(first.cv_results_['params']):,} and therefore optimistic"
    )
    if learned.nested_error is None:
        return text
    ratio = learned.nested_error / learned.crossfit_error
    return (
        f"{text}; nested cross-validation of the stack has {number(ratio, 4)} times the root mean "
        f"squared error of the cross-fitted one, {number(learned.nested_error, 4)} and "
        f"{number(learned.crossfit_error, 4)}"
    )
