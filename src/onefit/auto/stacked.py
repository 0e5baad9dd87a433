"""The average of all candidates instead of the winner (``stack``).

It is the default of a regression where the choice is left to the rules: on the sets of
``benchmarks/how_good.py`` its error is significantly smaller than that of the best candidate. For
classes the gain is not clearly significant.

Candidates whose rows are transformed by what is learned in each training part join those of the
search (:mod:`onefit.auto.learned`). With outliers, those of the robust search join too, and the
weights are learned by Huber's loss.
"""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from onefit._format import number
from onefit._types import Array
from onefit.auto.learned import left_to_rules
from onefit.auto.prepared import PreparedRows, seconds_of
from onefit.plan import Deadline
from onefit.report.facts import Facts
from onefit.search_cv import KernelSearchCV
from onefit.stacking import stack

__all__ = ["STACK_SHARE", "chosen_stack", "stack_searches"]

#: time of the average in units of the search's, with and without nested cross-validation
STACK_SHARE, NESTED_SHARE = 0.3, 3.0


def chosen_stack(auto: Any, y: Array, in_folds: bool) -> bool | str:
    """Whether to stack: as asked, else by default; refuses what cannot be stacked."""
    if auto.stack is None:
        return auto._task == "regression" and left_to_rules(auto, y, in_folds)
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
    loss: str,
    nested: bool,
    deadline: Deadline | None,
) -> tuple[KernelSearchCV | None, str]:
    """A search whose winner is the stack, or None, and the reason.

    Parameters
    ----------
    searches : list of KernelSearchCV
        Fitted; the first one is over the rows as they are, and its winner is replaced.
    data : PreparedRows
        What the searches were fitted to.
    loss : {"squared", "huber"}
        For the weights.
    nested : bool
    deadline : Deadline or None
        Nothing is stacked once it is over.
    """
    first = searches[0]
    if first.best_estimator_.approximation is not None:
        return None, "the candidates are not averaged, since features replace the kernel matrix"
    if not first.heldout_.folds.is_partition:
        return None, "the candidates are not averaged: the splits do not test every row once"
    share = NESTED_SHARE if nested else STACK_SHARE
    late = "" if deadline is None else deadline.lacks(share * seconds_of(first))
    if late:
        return None, f"the candidates are not averaged: {late}"
    found = stack(
        first, data.X, data.y, further=searches[1:], loss=loss, nested=nested,
        sample_weight=data.sample_weight,
    )  # fmt: skip
    return found, _describe(found, searches)


def _describe(found: Any, searches: list[KernelSearchCV]) -> str:
    """The stack beside the best candidate, in a sentence."""
    scale, learned = Facts(found).scale, found.stack_
    single = max(one.best_score_ for one in searches)
    tried = sum(len(one.cv_results_["params"]) for one in searches)
    score, best = (number(scale(one), 4) for one in (found.best_score_, single))
    kernels = len(found.best_estimator_.members_)
    learned_rows = any(isinstance(one, Pipeline) for one in found.best_estimator_.members_)
    text = (
        f"stack: {learned.describe(kernels)}"
        f"{', some with a learned metric or scales' if learned_rows else ''}; {scale.label} "
        f"{score} with weights from the other folds; the best candidate alone has {best}, the best "
        f"of {tried:,} and therefore optimistic"
    )
    if learned.nested_error is None:
        return text
    ratio = learned.nested_error / learned.crossfit_error
    return (
        f"{text}; nested cross-validation of the stack has {number(ratio, 4)} times the root mean "
        f"squared error of the cross-fitted one, {number(learned.nested_error, 4)} and "
        f"{number(learned.crossfit_error, 4)}"
    )
