"""Scores of all candidates of a search for many targets of the same rows.

For the squared loss held-out residuals are linear in the targets, y_S - u_S = (P_SS)^-1 (P y)_S
(onefit.heldout.squared), and P depends on rows, kernel and lam alone: B targets are columns of one
problem, and a candidate costs 2 n^2 B operations beside one factorisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.parallel import delayed

from onefit import plan
from onefit._types import Array, Indices
from onefit.folds import Folds
from onefit.heldout import METHODS
from onefit.heldout.squared import factored
from onefit.kernels import Geometry
from onefit.linalg import CHUNK_ELEMENTS, is_elsewhere, matmul
from onefit.problem import Problem
from onefit.progress import in_parallel
from onefit.scoring import Metric, Truth
from onefit.scoring.aggregate import aggregate
from onefit.search.grid import CandidateModel, Job
from onefit.search.in_memory import RowsInMemory
from onefit.search.inputs import choosing_metric
from onefit.spec.coding import class_codes
from onefit.spec.needs import require_of_model

__all__ = ["ScoredCandidates"]

CALLER = "permutation_test"
#: advice for what it does not support
OTHERWISE = "use scikit-learn's permutation_test_score with the search inside"

#: arrays of the size of the held-out values of a block of targets that exist at a time
BLOCK_ARRAYS = 6


@dataclass(frozen=True)
class ScoredCandidates:
    """The candidates of a search on some rows, and how they are scored.

    Attributes
    ----------
    jobs : list of Job
    model : estimator
        Knows columns and classes.
    X : the rows, checked
    folds : Folds
        Of these rows.
    metric, sign, truth : of the score
    how : str
        The aggregate.
    n_jobs : int or None
        Processes that share the kernels.
    verbose : int
        Whether a line is printed after each kernel.
    """

    jobs: list[Job]
    model: Any
    X: Any = field(repr=False)
    folds: Folds = field(repr=False)
    metric: Metric
    sign: int
    truth: Truth = field(repr=False)
    how: str
    n_jobs: int | None
    verbose: int

    @classmethod
    def of(
        cls, search: Any, X: Any, y: Any, groups: Any, n_jobs: int | None, verbose: int
    ) -> ScoredCandidates:
        """The candidates, with all checks of a search and those of the permutation test."""
        params = {} if groups is None else {"groups": groups}
        rows = RowsInMemory(search, X, y, params)
        metric = choosing_metric(search, rows.scorers, rows.names)
        rows.check(metric)
        setup, scoring = rows.setup, rows.task.pooled or rows.task.scoring
        for job in setup.jobs:
            for one in job.models:
                _check_model(one, is_elsewhere(rows.X))
        if metric not in scoring.fast:
            raise ValueError(
                f"permutation_test does not support scoring={search.scoring!r}; use accuracy, "
                "balanced_accuracy, r2, neg_mean_squared_error, neg_root_mean_squared_error or "
                "neg_mean_absolute_error"
            )
        if setup.continuous or setup.ranges:
            raise ValueError("permutation_test needs lists of values in param_grid, not intervals")
        scored, sign, truth = scoring.fast[metric]
        checked = setup.model._validate_X(rows.X, reset=False)
        return cls(
            setup.jobs, setup.model, checked, setup.folds, scored, sign, truth, search.aggregate,
            n_jobs, verbose,
        )  # fmt: skip

    def scores(self, Y: Array, orders: Indices) -> Array:
        """The score of every candidate, (C, B), for the targets Y[orders], (B, n, q).

        Rows of ``orders`` (B, n) are numbers of rows of Y.
        """
        _check_classes(self.model, Y, orders, self.folds.removed)
        size = 1 + max(i for job in self.jobs for one in job.models for i in one.indices)
        found = np.full((size, len(orders)), np.nan)
        calls = (delayed(self._of_kernel)(Y, orders, job) for job in self.jobs)
        named = (self.jobs, self.n_jobs, self.verbose, lambda job: job.kernel)
        for _, scored in in_parallel(calls, *named):
            for indices, scores in scored:
                found[list(indices)] = scores
        lost = np.isnan(found)
        if lost.all(axis=0).any():
            raise ValueError(
                "no candidate has a score for some permutation: kernel matrices are singular to "
                "working precision, or the metric is undefined on a split; raise lam, or choose "
                "another metric"
            )
        return np.where(lost, -np.inf, found)

    def _of_kernel(
        self, Y: Array, orders: Indices, job: Job
    ) -> list[tuple[tuple[int, ...], Array]]:
        """The scores of all candidates of a kernel."""
        K = job.kernel.matrix(Geometry(self.X, keep=False))
        blocks = np.array_split(orders, min(len(orders), self._blocks(len(orders) * Y.shape[1])))
        return [
            (one.indices, np.hstack([self._of_block(K, job, one, Y[some]) for some in blocks]))
            for one in job.models
        ]

    def _blocks(self, columns: int) -> int:
        """Number of blocks into which the columns are divided to bound the memory."""
        size = columns * self.folds.rows.size * BLOCK_ARRAYS
        return max(1, -(-size // CHUNK_ELEMENTS))

    def _of_block(self, K: Any, job: Job, one: CandidateModel, Y: Array) -> Array:
        """Scores of some permutations, (L, b)."""
        problem, lams = _problem(one, K, job, Y), np.array(one.lams)
        removed = tuple(rows.size for rows in self.folds.removed)
        work = plan.Workload(problem.n, lams.size, removed, targets=problem.Y.shape[1])
        estimates = [plan.estimate(work, name) for name in ("block", "eigen")]
        chosen = min(estimates, key=lambda estimate: estimate.seconds)
        plan.check_memory(work, chosen)
        prepared = METHODS[chosen.method]().prepare(problem, self.folds)
        columns = lams.size * problem.Y.shape[1]
        parts = np.array_split(lams, min(lams.size, self._blocks(columns)))
        return np.concatenate([self._score(prepared.predict(part).values, Y) for part in parts])

    def _score(self, values: Array, Y: Array) -> Array:
        """Scores (L, B) of values at some lams, NaN where the numerics fail."""
        tested = Y[:, self.folds.rows].astype(np.float64)
        u = values.reshape(*values.shape[:2], *Y.shape[::2]).transpose(0, 2, 1, 3)
        by_split = self._measure(u, tested, self.truth)
        pooled = by_split[..., 0] if self.how == "pooled" else None
        scores = aggregate(self.how, by_split, np.diff(self.folds.offsets), pooled)
        scores[np.isnan(u).any(axis=(1, 2, 3))] = np.nan
        return scores

    def _measure(self, u: Array, Y: Array, truth: Truth) -> Array:
        """Scores of values (..., B, N, q) of rows with targets Y (B, N, q): (..., B, k)."""
        targets = _codes(Y) if is_classifier(self.model) else Y
        truth = Truth(targets, truth.starts, truth.weights)
        return np.asarray(self.sign * self.metric.values(truth, u).mean(axis=-1))

    def winners_on(
        self, X_new: Any, Y: Array, orders: Indices, train: Indices, test: Indices
    ) -> Array:
        """Scores (B,) on test rows, each of the targets Y[orders] by its own best candidate.

        The candidates are those of the rows ``train``; ``X_new`` has the rows ``test``.
        """
        _check_classes(self.model, Y, orders, [np.setdiff1d(np.arange(len(Y)), train)])
        inside = orders[:, train]
        winners = self.scores(Y, inside).argmax(axis=0)
        u = self._predicted(winners, Y, inside, self.model._validate_X(X_new, reset=False))
        tested = Y[orders[:, test]].astype(np.float64)
        whole = Truth(tested, np.zeros(1, dtype=np.intp), np.ones(test.size))
        return np.asarray(self._measure(u, tested, whole)[:, 0])

    def _predicted(self, winners: Indices, Y: Array, orders: Indices, X_new: Any) -> Array:
        """Values (B, m, q) of new rows, each target by the fit of its own candidate."""
        found = np.empty((len(orders), X_new.shape[0], Y.shape[1]))
        for job in self.jobs:
            if not np.isin(winners, [i for one in job.models for i in one.indices]).any():
                continue
            K = job.kernel.matrix(Geometry(self.X, keep=False))
            K_new = job.kernel.matrix(Geometry(X_new, self.X, keep=False))
            for one in job.models:
                for lam, index in zip(one.lams, one.indices, strict=True):
                    mine = np.flatnonzero(winners == index)
                    if mine.size:
                        problem = _problem(one, K, job, Y[orders[mine]])
                        u = _fitted(problem, lam, K_new)
                        found[mine] = u.reshape(-1, mine.size, Y.shape[1]).transpose(1, 0, 2)
        return found


def _problem(one: CandidateModel, K: Any, job: Job, Y: Array) -> Problem:
    """All targets (B, n, q) as columns of one problem."""
    columns = np.asfortranarray(Y.transpose(1, 0, 2).reshape(Y.shape[1], -1))
    ones = np.ones(Y.shape[1], dtype=Y.dtype)
    return one.spec.coded_problem(K, columns, ones, definite=job.kernel.definite)


def _fitted(problem: Problem, lam: float, K_new: Array) -> Array:
    """Predictions of new rows by a fit to all rows."""
    one = np.ones(problem.n, dtype=problem.Y.dtype)
    inverse = factored(problem, one, problem.ridge(lam))
    values = matmul(K_new, inverse.solve(problem.Y))
    if problem.fit_intercept:
        w = inverse.apply(one)
        values = values + (w @ problem.Y) / w.sum()
    return np.asarray(values)


def _codes(Y: Array) -> Array:
    """Numbers of the classes, (B, N, 1), from targets of -1 and +1."""
    return class_codes(Y.reshape(-1, Y.shape[2])).reshape(*Y.shape[:2], 1)


def _check_classes(model: Any, Y: Array, orders: Indices, removed: Sequence[Indices]) -> None:
    """Refuse splits whose training part lacks a class for some permutation."""
    if not is_classifier(model):
        return
    codes = class_codes(Y)[orders]
    for code, label in enumerate(model.classes_):
        members = codes == code
        for k, rows in enumerate(removed):
            if (members[:, rows].sum(axis=1) == members.sum(axis=1)).any():
                raise ValueError(
                    f"for some permutation the training part of split {k} has no row of class "
                    f"{label.item()!r}; use more folds, or stratified ones"
                )


def _check_model(one: CandidateModel, elsewhere: bool) -> None:
    """Refuse what is not linear in the targets, depends on them, or is not computed here."""
    needs = ("kernel matrix", "column per class", "squared loss", "equal weights")
    require_of_model(one.estimator, CALLER, *needs, advice=OTHERWISE)
    if elsewhere:
        raise ValueError(f"{CALLER} needs X in host memory, got rows on a device; {OTHERWISE}")
