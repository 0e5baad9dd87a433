"""Predictions of the models of all splits: what an interval needs of an estimator.

A sample holds the rows that an estimator is fitted to, and predicts with the model of all rows and
with those of the splits. Of a kernel estimator they come from one fit: for the squared loss as
products with the inverse of the full sample (onefit.heldout.squared), for other losses as the ends
of Newton steps from the full solution (onefit.heldout.leave_out). A pipeline is refitted
(:mod:`onefit.uncertainty.refitted`), and a stack has held-out predictions only
(:mod:`onefit.uncertainty.of_stacks`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from onefit import linalg, plan
from onefit._types import Array
from onefit.columns.fit import fit
from onefit.features.feature_gram import FeatureGram
from onefit.features.fit import fit_features
from onefit.features.held_out import GramFolds, PrimalExact
from onefit.folds import Folds
from onefit.heldout import Block, Eigen, Exact
from onefit.kernels import Geometry
from onefit.problem import Problem, Solution
from onefit.uncertainty.conformal import LocalWidths, local_widths

__all__ = ["FoldPredictions", "KernelSample", "Sample", "check_memory", "leave_out"]

#: number of inverses that cost about as much as an eigendecomposition
INVERSES_PER_EIGENDECOMPOSITION = 8
#: matrices of n rows beside K, and columns of n rows per split and target and per new row, that
#: intervals hold at once; measured allocations of the squared loss stay below
INTERVAL_MATRICES, COLUMNS_PER_SPLIT, COLUMNS_PER_NEW_ROW = 3.5, 3, 6


def check_memory(problem: Problem, work: plan.Workload, splits: int, new: int) -> None:
    """Refuse intervals that do not fit into memory beside the kernel matrix, before any work.

    Parameters
    ----------
    problem : Problem
    work : Workload
        Of one fit.
    splits, new : int
        Numbers of models of splits, and of new rows.
    """
    nbytes = INTERVAL_MATRICES * work.itemsize * work.n**2
    if splits and not problem.quadratic:
        parts = replace(work, removed=(-(-work.n // splits),) * splits)
        nbytes = max(nbytes, plan.peak_bytes(parts, "exact"))
    columns = COLUMNS_PER_SPLIT * splits * problem.Y.shape[1] + COLUMNS_PER_NEW_ROW * new
    nbytes += work.itemsize * work.n * columns
    plan.check_bytes(work, nbytes, f"predict_interval for {new:,} new rows")


def leave_out(problem: Problem, folds: Folds, lam: float) -> list[Solution]:
    """The models trained without the rows that each split removes, as columns, per target.

    Weights must be positive. Uneven ones under mean scaling give every split a penalty of its own;
    where there are many, one eigendecomposition replaces their inverses.
    """
    if not problem.quadratic:
        return Exact().prepare(problem, folds).models(lam)
    many = (
        len({problem.ridge(lam, train) for train in folds.train}) > INVERSES_PER_EIGENDECOMPOSITION
    )
    return (Eigen() if many else Block()).prepare(problem, folds).models(lam)


class FoldPredictions(NamedTuple):
    """Values of the models of all splits and of that of all rows.

    Attributes
    ----------
    full : (m, q) array
        Of new rows, by the model of all rows.
    parts : list of ((n, k) array, (m, k) array)
        Per target those of all splits, of the training rows and of new rows. Of training rows that
        a split does not test they are not used.
    widths : LocalWidths or None
    """

    full: Array
    parts: list[tuple[Array, Array]]
    widths: LocalWidths | None = None


class Sample(Protocol):
    """The rows that an estimator is fitted to.

    Attributes
    ----------
    leaf : KernelRegressor
        Knows the targets.
    Y : (n, q) array
    s : (n,) array
        Weights.
    """

    @property
    def leaf(self) -> Any: ...
    @property
    def Y(self) -> Array: ...
    @property
    def s(self) -> Array: ...

    def predict(
        self, rows: Array, folds: Folds, X_new: Any, local: bool, verbose: int
    ) -> FoldPredictions:
        """Predict with the models of splits of some rows; with local widths if asked for."""


class KernelSample(NamedTuple):
    """The rows of a kernel estimator."""

    leaf: Any
    problem: Problem

    @property
    def Y(self) -> Array:
        """Targets, by column."""
        return self.problem.Y

    @property
    def s(self) -> Array:
        """Weights."""
        return self.problem.s

    def new_rows(self, rows: Array, splits: int, X_new: Any) -> tuple[Problem, Array, Any]:
        """The problem of some rows, kernel values (m, n) of new ones, and these, checked."""
        X_new = self.leaf._validate_X(X_new, reset=False)
        check_memory(self.problem, self.leaf._workload(self.Y, self.s), splits, X_new.shape[0])
        K_new = np.ascontiguousarray(self.leaf.kernel_.matrix(Geometry(X_new, self.leaf.X_fit_)))
        if rows.size == self.problem.n:
            return self.problem, K_new, X_new
        return self.problem.take(rows), K_new[:, rows], X_new

    def predict(
        self, rows: Array, folds: Folds, X_new: Any, local: bool, verbose: int
    ) -> FoldPredictions:
        """See :class:`Sample`."""
        if self.leaf.approximation is not None:
            return self._by_features(rows, folds, X_new)
        problem, K_new, X_new = self.new_rows(rows, len(folds), X_new)
        lam, widths = float(self.leaf.lam), None
        if local:
            widths = local_widths(problem, folds, lam, K_new, self.leaf.kernel_.diag(X_new))
        left = leave_out(problem, folds, lam)
        parts = [(one.u, linalg.matmul(K_new, one.a.astype(K_new.dtype)) + one.b) for one in left]
        full = fit(problem, lam)
        return FoldPredictions(linalg.matmul(K_new, full.a) + full.b, parts, widths)

    def _by_features(self, rows: Array, folds: Folds, X_new: Any) -> FoldPredictions:
        """With features, which replace the kernel matrix."""
        if len(folds) == rows.size:
            raise ValueError(
                "leaving out one row at a time, as method='jackknife+' does, makes a model for "
                f"every row, too many with approximation={self.leaf.approximation!r}; use "
                "method='cv+' with a few folds"
            )
        X_new, problem, lam = self.leaf._validate_X(X_new, reset=False), self.problem, self.leaf.lam
        problem = problem.take(rows) if rows.size < problem.n else problem
        method = GramFolds() if problem.quadratic else PrimalExact()
        W, b = method.prepare(problem, folds).models(float(lam))
        new, every = FeatureGram(X_new, problem.K.features), np.arange(X_new.shape[0])
        parts = []
        for j in range(problem.Y.shape[1]):
            own = np.full((problem.n, len(folds)), np.nan)
            for k, test in enumerate(folds.test):
                own[test, k] = problem.K.values(test, W[:, [k], j])[:, 0] + b[k, j]
            parts.append((own, new.values(every, W[:, :, j]) + b[:, j]))
        full, _ = fit_features(problem, float(lam))
        return FoldPredictions(new.values(every, full.W) + full.b, parts)
