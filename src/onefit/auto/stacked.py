"""The average of all candidates instead of the winner (``stack``).

It is the default of a regression where the choice is left to the rules, up to `MAX_DEFAULT_ROWS`
rows: on the sets of ``benchmarks/how_good.py`` its error is significantly smaller than that of the
best candidate, for two to five times the time of the search. For classes the gain is not clearly
significant.

With the squared loss, candidates whose rows are transformed by what is learned in each training
part join those of the search (:mod:`onefit.auto.learned`). With outliers, those of the robust
search join the plain one's, and the weights are learned by Huber's loss.
"""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from onefit._format import number
from onefit._types import Array
from onefit.auto.learned import (
    learned_grid,
    learned_search,
    left_to_rules,
    nothing_learned,
)
from onefit.auto.prepared import PreparedRows
from onefit.plan import Deadline
from onefit.report.facts import Facts
from onefit.search_cv import KernelSearchCV
from onefit.stacking import stack

__all__ = ["STACK_SHARE", "chosen_stack", "stack_searches"]

#: rows up to which the average is the default: those of the benchmark, where its gain is known
MAX_DEFAULT_ROWS = 1500
#: time of the average in units of the search's: mostly of learned metrics and scales
STACK_SHARE = 3.0
#: rows up to which learned candidates join the average, which tries all of them
MAX_LEARNED_ROWS = 3000


def chosen_stack(auto: Any, y: Array, in_folds: bool) -> bool | str:
    """Whether to stack: as asked, else by default; refuses what cannot be stacked."""
    if auto.stack is None:
        return left_to_rules(auto, y, in_folds) and len(y) <= MAX_DEFAULT_ROWS
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
    data: PreparedRows,
    nested: bool,
    deadline: Deadline | None,
) -> tuple[KernelSearchCV, list[str]]:
    """A search whose winner is the stack, and reasons.

    Parameters
    ----------
    searches : list of KernelSearchCV
        Fitted: the one whose winner is replaced; with outliers also the search before it.
    data : PreparedRows
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
    why = "time is limited" if deadline is not None else nothing_learned(data.X)
    if not first.best_estimator_.spec().quadratic and first.criterion == "cv":
        why = "the loss is not squared"
    if not why and data.n > MAX_LEARNED_ROWS:
        why = f"there are {data.n:,} rows, more than {MAX_LEARNED_ROWS:,}"
    if why:
        reasons.append(f"no candidates with a learned metric or scales: {why}")
    else:
        further.append(learned_search(first, data, learned_grid()))
    found = stack(
        first, data.X, data.y, further=further,
        loss="huber" if len(searches) > 1 else "squared", nested=nested,
        sample_weight=data.sample_weight,
    )  # fmt: skip
    return found, [*reasons, _describe(found, first)]


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
