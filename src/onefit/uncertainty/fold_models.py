"""The models of all splits, ready to predict anywhere, from one fit.

For the squared loss they are products with the inverse of the full sample (onefit.heldout.squared),
for other losses the ends of Newton steps from the full solution (onefit.heldout.leave_out).
"""

from __future__ import annotations

from dataclasses import replace

from onefit import plan
from onefit._types import Array
from onefit.features.any_loss import PrimalExact
from onefit.features.squared import GramFolds
from onefit.folds import Folds
from onefit.heldout import Block, Eigen, Exact
from onefit.problem import Problem, Solution

__all__ = ["check_memory", "leave_out", "leave_out_features"]

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


def leave_out_features(problem: Problem, folds: Folds, lam: float) -> tuple[Array, Array]:
    """The same in feature space: weights (m, splits, q) and intercepts (splits, q)."""
    method = GramFolds() if problem.quadratic else PrimalExact()
    return method.prepare(problem, folds).models(lam)
