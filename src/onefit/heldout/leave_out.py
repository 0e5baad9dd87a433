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

from onefit.folds import Folds
from onefit.heldout import cost as costs
from onefit.heldout.base import HeldOutMethod
from onefit.heldout.driver import LeaveOutDriver, Policy
from onefit.heldout.splits import Splits
from onefit.heldout.workload import Workload
from onefit.linalg.rates import Cost, Rates
from onefit.problem import Problem

__all__ = ["Exact", "Limit", "Refit"]

#: steps assumed of the repair of a leave-out (benchmarks/plan_times.py)
REPAIR_STEPS = 3


class Limit(HeldOutMethod):
    """Order infinity of the influence series, with its error bound: one Newton step per fold."""

    name = "limit"
    requires = ("value", "gradient", "curvature", "max_curvature", "piece")
    on_device = True

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOutDriver:
        self.check(problem)
        policy = Policy(self.name, one_step=True)
        return LeaveOutDriver(Splits.sort(problem, folds), policy)

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """A fit, its factor inverted, the folds' blocks, and a product with all folds' columns."""
        return costs.one_fit(work, rates, 1, inverted=True)

    @classmethod
    def matrices(cls, work: Workload) -> float:
        return costs.one_fit_matrices(work, 18.0)


class Exact(HeldOutMethod):
    """The limit, followed by Newton steps until it is the leave-out solution."""

    name = "exact"
    requires = Limit.requires
    on_device = True

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOutDriver:
        self.check(problem)
        return LeaveOutDriver(Splits.sort(problem, folds), Policy(self.name))

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """The limit, and a few steps of repair for the points that changed their piece."""
        return costs.one_fit(work, rates, 1 + REPAIR_STEPS, inverted=True)

    @classmethod
    def matrices(cls, work: Workload) -> float:
        return costs.one_fit_matrices(work, 24.0)


class Refit(HeldOutMethod):
    """Fit again on every training set."""

    name = "refit"
    on_device = True

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOutDriver:
        self.check(problem)
        return LeaveOutDriver(Splits.refitted(problem, folds), Policy(self.name))

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """A fit per split and lambda."""
        each = costs.refits(work, work.by_formula + work.by_refit, rates) + rates.calls(
            costs.CALLS_PER_LAMBDA
        )
        return costs.kernel(work, rates) + work.lams * each

    @classmethod
    def matrices(cls, work: Workload) -> float:
        """K, the memory of a fit to a training part, and columns of predictions on all rows."""
        part = (work.n - min(work.removed, default=0)) / work.n
        return 1.25 + costs.fit_matrices(work) * part**2
