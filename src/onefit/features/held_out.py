"""Held-out values of rows in memory in feature space, whatever the loss.

**Squared loss.** The first pass adds up the moments of every part of the rows
(onefit.features.moments). A split is then a matter of small matrices (onefit.features.ridge): the
sum of the parts it trains on, without the landmarks that it holds out, reduced once for all
lambdas.

**Any loss.** One model of all rows at a lambda, by Newton's method (onefit.features.newton); its
last pass leaves gradient and curvature part by part, from which every split takes its first step.
The limit ends there, with a bound from one more pass. The exact method continues, all splits side
by side, until the bound is below what counts as exact.

A last pass predicts the test rows of every split.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.columns.fit import FitError
from onefit.features.feature_gram import MAX_HELD_ELEMENTS
from onefit.features.fold_models import FoldModels, newton, squared
from onefit.features.in_memory import all_rows, moments, split_problem
from onefit.features.leave_one import FeatureHat, make_hat
from onefit.features.moments import Moments
from onefit.features.parts import MAX_MOMENT_ELEMENTS, RowParts, partitions
from onefit.features.split_problem import SplitProblem
from onefit.folds import Folds
from onefit.heldout import cost as costs
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.heldout.workload import Workload
from onefit.linalg.rates import Cost, Rates
from onefit.problem import Problem

__all__ = [
    "FEATURE_METHODS",
    "FeatureMethod",
    "GramFolds",
    "PrimalExact",
    "PrimalLimit",
    "feature_bytes",
    "feature_method",
    "refit_cost",
]

#: Newton steps assumed at a lambda that starts from the one before, and passes with a column per
#: split for the steps of an exact method (benchmarks/plan_times.py)
WARM_NEWTON_STEPS, EXACT_PASSES = 5, 40
#: splits at most that passes carry a model for
MAX_SPLITS = 1000
#: splits of one row each beyond which a closed form serves them
MAX_SINGLE_ROW_REDUCTIONS = 20


class FeatureMethod(HeldOutMethod):
    """Models of all splits from passes over the features."""

    products_only = True

    def prepare(self, problem: Problem, folds: Folds) -> PreparedFeatures:
        self.check(problem)
        if not problem.quadratic and len(folds) > MAX_SPLITS:
            raise ValueError(
                f"method {self.name!r} with an approximation carries a model for each of the "
                f"{len(folds)} splits through every pass over the rows; use at most "
                f"{MAX_SPLITS} splits, or for leave-one-out loss='squared', which has a closed form"
            )
        return PreparedFeatures(problem, folds, self.name)

    @classmethod
    def device_bytes(cls, work: Workload) -> float:
        """Chunks, and a matrix per fold; features of all rows are kept only where there is room."""
        n, m = float(work.n), float(work.features)
        matrices = (max(1, work.folds) + 6.0) * m * m
        return 8 * (4.0 * min(linalg.CHUNK_ELEMENTS, n * m) + matrices)


class GramFolds(FeatureMethod):
    """Least squares by sums of products of features."""

    name = "gram"
    requires = ()
    quadratic_only = True

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """Sums of products once, a reduction per split, and a pass of predictions."""
        n, m, k = work.n, work.features, max(1, work.folds)
        sums = _features(work, rates) + rates.rank_update(m, n)
        # features that are held: their lengths, and a copy of every fold's
        again = rates.entries(n * m)
        if _holds_features(work):
            sums += rates.gathers(n * m) + rates.passes(n * m, 6)
            again = rates.passes(n * m)
        split = rates.eigendecomposition(m) + rates.product(m, m, work.lams * work.targets)
        values = again + rates.product(n, m, work.lams * work.targets)
        return sums + k * split + values + k * work.lams * rates.calls(costs.CALLS_PER_LAMBDA)


class PrimalLimit(FeatureMethod):
    """One Newton step of every split from the model of all rows, with a bound."""

    name = "limit"

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        return _newton_by_passes(work, rates, 1)


class PrimalExact(FeatureMethod):
    """Newton steps of all splits until they are exact."""

    name = "exact"

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        return _newton_by_passes(work, rates, EXACT_PASSES)


FEATURE_METHODS: dict[str, type[FeatureMethod]] = {
    method.name: method for method in (GramFolds, PrimalLimit, PrimalExact)
}


def feature_method(name: str, quadratic: bool) -> str:
    """The method that a name means: sums of products serve the squared loss under every name."""
    known = ("auto", "gram", "limit", "exact")
    if name not in known:
        raise ValueError(
            f"method {name!r} works on the whole kernel matrix; with an approximation use "
            "'auto', 'exact' or 'limit'"
        )
    if quadratic:
        return "gram"
    if name == "gram":
        raise ValueError("method 'gram' works for the squared loss only; use 'exact' or 'limit'")
    return "exact" if name == "auto" else name


@dataclass
class PreparedFeatures(Prepared):
    """Splits as sums of parts."""

    problem: Problem = field(repr=False)
    folds: Folds
    name: str

    @cached_property
    def groups(self) -> list[tuple[RowParts, SplitProblem, Moments | None]]:
        """Splits that share parts, and for the squared loss the sums of these."""
        problem, folds = self.problem, self.folds
        # of other losses, there is a factor beside each matrix
        each = (1 if problem.quadratic else 2) * (problem.K.features.size + 1) ** 2
        return [
            (
                part,
                split_problem(problem, folds, part),
                moments(problem, part) if problem.quadratic else None,
            )
            for part in partitions(folds, max(2, MAX_MOMENT_ELEMENTS // each))
        ]

    def _models(self, lams: Array) -> Iterator[tuple[list[int], FoldModels]]:
        """The models of the splits of every group."""
        near = None
        for part, rows, sums in self.groups:
            if sums is not None:
                yield part.splits, squared(rows, sums, lams, whole=False)
            else:
                near = newton(rows, lams, self.name == "exact", whole=False, near=near)
                yield part.splits, near

    def predict(self, lams: Array) -> HeldOutPath:
        path = HeldOutPath.empty(self.problem, self.folds, self.name, lams)
        if self.problem.quadratic and self._one_row_each:
            return self._leave_one_out(path)
        for splits, models in self._models(path.lams):
            for i, why in enumerate(models.reasons):
                if why and not path.reasons[i]:
                    path.fail(i, why)
            known = np.flatnonzero(path.done)
            path.steps[np.ix_(known, np.array(splits))] = models.steps[:-1, known].T
            for c, split in enumerate(splits):
                values = self.problem.K.values(self.folds.test[split], models.W[c]) + models.b[c]
                for i in known.tolist():
                    path.fill(i, split, slice(None), values[:, i], models.bounds[c, i])
        return path.judged(self.problem)

    def models(self, lam: float) -> tuple[Array, Array]:
        """Weights (m, splits, q) and intercepts (splits, q) of all splits at one lambda.

        Raises
        ------
        FitError
            If a split has no model.
        """
        m, q = self.problem.K.features.size, self.problem.Y.shape[1]
        W, b = np.zeros((m, len(self.folds), q)), np.zeros((len(self.folds), q))
        for splits, models in self._models(np.array([lam])):
            if models.reasons[0]:
                raise FitError(models.reasons[0])
            W[:, splits], b[splits] = np.moveaxis(models.W[:-1, :, 0], 0, 1), models.b[:-1, 0]
        return W, b

    @cached_property
    def _one_row_each(self) -> bool:
        """Whether every split tests the one row that it removes, and there are many."""
        removed, test = self.folds.removed, self.folds.test
        return len(removed) > MAX_SINGLE_ROW_REDUCTIONS and all(
            a.size == 1 and np.array_equal(a, b) for a, b in zip(removed, test, strict=True)
        )

    @cached_property
    def hat(self) -> FeatureHat:
        """Of the rows of positive weight."""
        return make_hat(self.problem)

    def _leave_one_out(self, path: HeldOutPath) -> HeldOutPath:
        kept = self.problem.positive
        values = np.empty((path.lams.size, *self.problem.Y.shape))
        bounds = np.empty_like(values)
        for i, lam in enumerate(path.lams):
            left, bounds[i, kept] = self.hat.left_out_with_bounds(float(lam))
            values[i, kept] = self.problem.Y[kept] - left
        # rows that no model was trained on
        outside = np.setdiff1d(self.folds.rows, kept)
        if outside.size:
            sums = moments(self.problem, RowParts.whole(self.problem.n))
            full, errors = all_rows(self.problem).squared(sums, path.lams, 0)
            predicted = self.problem.K.values(outside, full.W) + full.b
            values[:, outside] = np.moveaxis(predicted, 0, 1)
            bounds[:, outside] = errors[:, None]
        values, bounds = values[:, self.folds.rows], bounds[:, self.folds.rows]
        path.values[:] = values
        path.bounds[:] = bounds + np.abs(path.values - values)
        return path.judged(self.problem)


# costs: with m features, n rows and k splits, a pass that makes them is n m^2 operations, and so
# are the sums of their products; a split is a few m^3, and predictions are n m per lambda


def refit_cost(work: Workload, rates: Rates) -> Cost:
    """Features and a fit per split and lambda, as a pipeline in a grid search does."""
    n, m, k = work.n, work.features, max(1, work.folds)
    each = rates.rank_update(m, n) + rates.cholesky(m)
    if not work.quadratic:
        each = work.targets * WARM_NEWTON_STEPS * (each + rates.losses(n))
    return k * work.lams * (_features(work, rates) + each)


def _features(work: Workload, rates: Rates) -> Cost:
    n, m = work.n, work.features
    return rates.entries(n * m) + rates.product(n, m, m)


def _holds_features(work: Workload) -> bool:
    """Whether features are kept from pass to pass."""
    return not work.tiled and work.n * work.features <= MAX_HELD_ELEMENTS


def _newton_by_passes(work: Workload, rates: Rates, passes: int) -> Cost:
    """A fit per lambda and target, a factor per split, and passes with a column per split."""
    n, m, k = work.n, work.features, max(1, work.folds)
    made = Cost() if _holds_features(work) else _features(work, rates)
    step = made + rates.rank_update(m, n) + rates.cholesky(m) + rates.losses(n)
    column = made + rates.passes(n * m) + rates.product(n, m, 3 * k) + rates.losses(n * k)
    split = 2 * rates.cholesky(m) + 2 * rates.product(m, m, m)
    each = WARM_NEWTON_STEPS * step + k * split + passes * column
    each += k * rates.calls(costs.CALLS_PER_LAMBDA)
    return _features(work, rates) + work.lams * work.targets * each


def feature_bytes(work: Workload) -> int:
    """Features that are held, chunks of them, a matrix per fold, and held-out values."""
    n, m = work.n, work.features
    kept = n * m if n * m <= MAX_HELD_ELEMENTS else 0
    matrices = (max(1, work.folds) + 5) * m * m
    values = (work.lams + 1) * max(n, sum(work.removed)) * work.targets
    return 8 * (kept + 3 * min(linalg.CHUNK_ELEMENTS, n * m) + matrices + values)
