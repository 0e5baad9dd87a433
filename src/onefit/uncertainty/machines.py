"""The machines of all splits, ready to predict anywhere, from one fit.

For the squared loss they are products with the inverse of the full sample (onefit.heldout.squared),
for other losses the ends of Newton steps from the full solution (onefit.heldout.leave_out).
"""

from __future__ import annotations

from onefit.folds import Folds
from onefit.heldout import Block, Eigen, Exact
from onefit.problem import Problem, Solution

__all__ = ["leave_out"]

#: inverses that cost as much as an eigendecomposition, about
INVERSES = 8


def leave_out(problem: Problem, folds: Folds, lam: float) -> list[Solution]:
    """The machines trained without the rows that each split removes, as columns, per target.

    Weights must be positive. Uneven ones under mean scaling give every split a penalty of its own;
    where there are many, one eigendecomposition replaces their inverses.
    """
    if not problem.quadratic:
        return Exact().prepare(problem, folds).machines(lam)
    many = len({problem.ridge(lam, train) for train in folds.train}) > INVERSES
    return (Eigen() if many else Block()).prepare(problem, folds).machines(lam)
