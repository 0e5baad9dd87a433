"""Limit, exact and refit: three policies of the leave-out driver (onefit.heldout.driver).

**Limit.** The influence series of a fold (onefit.heldout.series) sums to one Newton step of the
leave-fold-out problem from the full solution, at the cost of its first term. For the squared loss
it is exact; for a piecewise quadratic loss it is exact if no training point changed its piece; and
a bound says how wrong it can be otherwise (onefit.proof.certificate).

**Exact.** Where the limit is not exact, further Newton steps follow, all folds side by side, each
step a small change of the full solution's factor (onefit.systems.update). For the smooth losses the
curvature is kept at the full solution and the steps converge linearly; a fold that is too far for
that is refitted from its present values.

**Refit.** Fit again on every training set, from zero. Slow, for any loss and any split; every other
method is tested against this one.
"""

from __future__ import annotations

from collections.abc import Mapping

from onefit._types import Array
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod
from onefit.heldout.driver import LeaveOutDriver, Policy
from onefit.heldout.splits import Splits
from onefit.problem import Problem

__all__ = ["Exact", "Limit", "Refit"]


class Limit(HeldOutMethod):
    """Order infinity of the influence series, with its error bound: one Newton step per fold.

    Parameters
    ----------
    keep_full : bool, default=False
        Whether the full-sample solutions are kept (:attr:`HeldOutPath.full`), for others to start
        from.
    estimate : bool, default=False
        Whether splits that the step does not solve go without a bound, which takes a tenth of the
        time.
    """

    name = "limit"
    requires = ("value", "gradient", "curvature", "max_curvature", "piece")
    on_device = True

    def __init__(self, keep_full: bool = False, estimate: bool = False) -> None:
        self._keep_full, self._estimate = keep_full, estimate

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOutDriver:
        self.check(problem)
        policy = Policy(self.name, one_step=True, estimate=self._estimate)
        return LeaveOutDriver(Splits.sort(problem, folds), policy, self._keep_full)


class Exact(HeldOutMethod):
    """The limit, taken on by Newton steps until it is the leave-out solution.

    Parameters
    ----------
    starts : dict, default=None
        The full-sample solutions of some lambdas, as in :attr:`HeldOutPath.full`.
    """

    name = "exact"
    requires = Limit.requires
    on_device = True

    def __init__(self, starts: Mapping[float, Array] | None = None) -> None:
        self._starts = starts or {}

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOutDriver:
        self.check(problem)
        return LeaveOutDriver(Splits.sort(problem, folds), Policy(self.name), starts=self._starts)


class Refit(HeldOutMethod):
    """Fit again on every training set."""

    name = "refit"
    on_device = True

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOutDriver:
        self.check(problem)
        return LeaveOutDriver(Splits.refitted(problem, folds), Policy(self.name))
