"""The split problem (onefit.features.split_problem) of rows in memory, and the model of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit import linalg
from onefit.features.feature_gram import FeatureGram, run
from onefit.features.fold_models import FeatureFit, newton, squared
from onefit.features.moments import Moments, MomentSums
from onefit.features.parts import RowParts
from onefit.features.split_problem import SplitProblem
from onefit.folds import Folds
from onefit.losses.base import Loss, loss_of, resolved
from onefit.problem import Problem
from onefit.rows.accumulate import Accumulator

__all__ = ["all_rows", "fit_features", "moments", "split_problem"]


def moments(problem: Problem, part: RowParts) -> Moments:
    """The sums of every part of the rows."""
    rows: FeatureGram = problem.K
    gram = MomentSums(rows.kept[1], rows.centre(problem.Y, problem.s, problem.fit_intercept))
    # one chunk, which the accumulator divides
    return run(gram, rows.chunks(problem.Y, problem.s, part.label, problem.n))


def all_rows(problem: Problem) -> SplitProblem:
    """All rows, and no split."""
    return split_problem(problem, Folds(problem.n, [], []), RowParts.whole(problem.n))


def split_problem(problem: Problem, folds: Folds, part: RowParts) -> SplitProblem:
    """The splits of a group, and all rows."""
    rows: FeatureGram = problem.K
    train = [folds.train[k] for k in part.splits]
    removed = [*(folds.removed[k] for k in part.splits), np.empty(0, dtype=np.intp)]
    predicted = [*(rows.lengths[folds.test[k]] for k in part.splits), rows.lengths]
    weights = [*(float(problem.s[own].sum(dtype=np.float64)) for own in train), problem.weight]

    def one_pass(accumulator: Accumulator[Any, Any]) -> Any:
        return run(accumulator, rows.chunks(problem.Y, problem.s, part.label))

    def own_loss(target: int) -> Loss | None:
        """The losses of the splits if the width of the loss depends on the training targets."""
        loss = loss_of(problem.loss, [target])
        if not getattr(loss, "relative", False):
            return None
        weights = np.zeros((problem.n, len(train)))
        for column, own in enumerate(train):
            weights[own, column] = problem.s[own]
        return resolved(loss, problem.Y[:, [target]], weights)

    return SplitProblem(
        features=rows.kept[1],
        loss=problem.resolved.loss,
        fit_intercept=problem.fit_intercept,
        scaling=problem.scaling,
        scale=problem.scale,
        weights=np.array(weights),
        train=part.train,
        lost=lambda split: rows.lost(removed[split]),
        longest=np.array([lengths.max(initial=0.0) for lengths in predicted]),
        run=one_pass,
        own_loss=own_loss,
    )


@linalg.overflowing
def fit_features(problem: Problem, lam: float) -> tuple[FeatureFit, Problem]:
    """The minimiser, and the problem with the loss that it was found for."""
    lams = np.array([lam])
    if problem.quadratic:
        sums = moments(problem, RowParts.whole(problem.n))
        return squared(all_rows(problem), sums, lams).fit(0), problem
    problem = problem.resolved
    return newton(all_rows(problem), lams, refined=False).fit(0), problem
