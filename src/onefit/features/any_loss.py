"""Held-out values of any loss in feature space: the limit of every split, and exact ones.

One model of all rows at a lambda, by Newton's method (onefit.features.newton); its last pass leaves
gradient and curvature part by part, from which every split takes its first step. The limit ends
there, with a bound from one more pass. The exact method goes on, all splits side by side, until the
bound is below what counts as exact. Lambdas are taken from the largest down, each model starting
the next; targets one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from onefit._types import Array, Indices
from onefit.features.bound import Certificate, certify
from onefit.features.feature_gram import FeatureGram, run
from onefit.features.hessian import PrimalColumns
from onefit.features.newton import Minimum, minimise_one
from onefit.features.passes import Form, Pieces, Second
from onefit.features.side_by_side import solve_splits
from onefit.features.squared import MAX_MOMENT_ELEMENTS, Partition, partitions
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.linalg import LinAlgError
from onefit.losses.base import Loss, loss_of, resolved
from onefit.problem import Problem
from onefit.rows.accumulate import Accumulator

__all__ = ["PrimalExact", "PrimalLimit", "fit_primal", "primal_error"]

#: splits at most
MAX_SPLITS = 1000


class _Primal(HeldOutMethod):
    refined: ClassVar[bool]
    products_only = True

    def prepare(self, problem: Problem, folds: Folds) -> PrimalPrepared:
        self.check(problem)
        if len(folds) > MAX_SPLITS:
            raise ValueError(
                f"method {self.name!r} with an approximation carries a model for each of the "
                f"{len(folds)} splits through every pass over the rows; use at most "
                f"{MAX_SPLITS} splits, or for leave-one-out loss='squared', which has a closed form"
            )
        return PrimalPrepared(problem, folds, self.name, self.refined)


class PrimalLimit(_Primal):
    """One Newton step of every split from the model of all rows, with a bound."""

    name = "limit"
    refined = False


class PrimalExact(_Primal):
    """Newton steps of all splits until they are exact."""

    name = "exact"
    refined = True


def fit_primal(
    problem: Problem, lam: float, target: int, label: Indices, start: Array | None = None
) -> Minimum:
    """The model of all rows for one target, and its sums part by part."""
    rows: FeatureGram = problem.K
    scale, kappa = float(problem.scale[target]), float(rows.lengths.max(initial=0.0))
    form, columns = make_form(problem, target), _whole(problem, lam, target, label)
    return minimise_one(form, columns, _runner(problem, label), start, scale, kappa)


def primal_error(problem: Problem, lam: float, target: int, theta: Array) -> float:
    """A bound on how far the model of all rows is from its minimiser in any of their values."""
    rows, label = problem.K, np.zeros(problem.n, dtype=np.intp)
    form, columns = make_form(problem, target), _whole(problem, lam, target, label)
    one_pass, scale = _runner(problem, label), float(problem.scale[target])
    found = certify(form, theta[:, None], columns, [None], one_pass, scale)
    return float(found.at(rows.lengths.max(initial=0.0))[0])


def _whole(problem: Problem, lam: float, target: int, label: Indices) -> PrimalColumns:
    """The column of all rows."""
    nothing = [np.empty((make_form(problem, target).size, 0))]
    train = np.ones((int(label.max()) + 1, 1), dtype=bool)
    return PrimalColumns(train, np.array([problem.ridge(lam)]), nothing)


def make_form(problem: Problem, target: int) -> Form:
    """What the columns of a target share; the loss is that of all rows."""
    loss = loss_of(problem.resolved.loss, [target])
    return Form(problem.K.kept[1], loss, target, problem.fit_intercept)


def _runner(problem: Problem, label: Indices) -> Any:
    def one_pass(accumulator: Accumulator[Any, Any]) -> Any:
        return run(accumulator, problem.K.chunks(problem.Y, problem.s, label))

    return one_pass


@dataclass
class PrimalPrepared(Prepared):
    """Splits as sums of parts."""

    problem: Problem = field(repr=False)
    folds: Folds
    name: str
    refined: bool

    @cached_property
    def groups(self) -> list[Partition]:
        """Splits that share parts."""
        most = max(2, MAX_MOMENT_ELEMENTS // (2 * (self.problem.K.features.size + 1) ** 2))
        return partitions(self.folds, most)

    def predict(self, lams: Array) -> HeldOutPath:
        path = HeldOutPath.empty(self.problem, self.folds, self.name, lams)
        starts: list[Array | None] = [None] * self.problem.Y.shape[1]
        for i in np.argsort(-path.lams, kind="stable"):
            try:
                self._at(path, int(i), starts)
            except (LinAlgError, FloatingPointError) as error:
                path.fail(int(i), f"lam={path.lams[i]:g}: {error}; raise lam")
        return path.judged(self.problem)

    def _at(self, path: HeldOutPath, i: int, starts: list[Array | None]) -> None:
        lam, problem = float(path.lams[i]), self.problem
        for j in range(problem.Y.shape[1]):
            full = fit_primal(problem, lam, j, self.groups[0].label, starts[j])
            starts[j] = full.theta
            for turn, part in enumerate(self.groups):
                pieces = full.pieces
                if turn > 0:
                    second = Second(make_form(problem, j), full.theta)
                    pieces = _runner(problem, part.label)(second)
                theta, found, steps = self._group(problem, lam, j, part, full.theta, pieces)
                self._put(path, i, j, part, theta, found)
                path.steps[i, part.splits] = np.maximum(path.steps[i, part.splits], steps)

    def models(self, lam: float) -> tuple[Array, Array]:
        """Weights (m, splits, q) and intercepts (splits, q) of all splits at one lambda."""
        problem = self.problem
        m, q = problem.K.features.size, problem.Y.shape[1]
        W, b = np.zeros((m, len(self.folds), q)), np.zeros((len(self.folds), q))
        for j in range(q):
            for part in self.groups:
                full = fit_primal(problem, lam, j, part.label)
                theta, _, _ = self._group(problem, lam, j, part, full.theta, full.pieces)
                W[:, part.splits, j] = theta[:m]
                b[part.splits, j] = theta[-1] if problem.fit_intercept else 0.0
        return W, b

    def _group(
        self,
        problem: Problem,
        lam: float,
        j: int,
        part: Partition,
        theta: Array,
        pieces: dict[int, Pieces],
    ) -> tuple[Array, Certificate, Array]:
        """The models of the splits of a group, and how far they are from their minimisers."""
        columns, scale = self._columns(problem, lam, part), float(problem.scale[j])
        longest = np.array([self._longest(split) for split in part.splits])
        one_pass = _runner(problem, part.label)
        full = theta, pieces
        form = make_form(problem, j)
        own = self._losses(j, part)
        if own is not None:
            form = replace(form, loss=own)
        far, refined = longest, self.refined
        return solve_splits(form, full, columns, one_pass, scale, far, refined, own is not None)

    def _losses(self, j: int, part: Partition) -> Loss | None:
        """The loss of each split of a group, if it takes its width from the targets trained on."""
        problem, mask = self.problem, np.zeros((self.problem.n, len(part.splits)))
        loss = loss_of(problem.loss, [j])
        if not getattr(loss, "relative", False):
            return None
        for c, split in enumerate(part.splits):
            mask[self.folds.train[split], c] = problem.s[self.folds.train[split]]
        return resolved(loss, problem.Y[:, [j]], mask)

    def _longest(self, split: int) -> float:
        return float(self.problem.K.lengths[self.folds.test[split]].max(initial=0.0))

    def _columns(self, problem: Problem, lam: float, part: Partition) -> PrimalColumns:
        train = np.ones((part.parts, len(part.splits)), dtype=bool)
        for c, removed in enumerate(part.removed):
            train[removed, c] = False
        ridge = np.array([problem.ridge(lam, self.folds.train[k]) for k in part.splits])
        lost = []
        for k in part.splits:
            own = problem.K.lost(self.folds.removed[k])
            lost.append(np.pad(own, ((0, int(problem.fit_intercept)), (0, 0))))
        return PrimalColumns(train, ridge, lost)

    def _put(
        self, path: HeldOutPath, i: int, j: int, part: Partition, theta: Array, found: Certificate
    ) -> None:
        rows: FeatureGram = self.problem.K
        m = rows.features.size
        for c, split in enumerate(part.splits):
            tested = self.folds.test[split]
            values = rows.values(tested, theta[:m, [c]])[:, 0]
            values = values + theta[-1, c] if self.problem.fit_intercept else values
            error = found.at(np.full(found.function.size, self._longest(split)))[c]
            path.fill(i, split, j, values, error)
