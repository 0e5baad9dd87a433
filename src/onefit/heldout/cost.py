"""Terms of the costs of held-out methods, for one kernel, in primitives of a backend.

Every method counts its own operations (`HeldOutMethod.cost`) and its memory beside its code; what
several methods do is counted here. The counts are those of every backend: host and device differ
in rates (onefit.linalg.rates), and where Newton steps of several columns share a factor on the
host only.

Squared loss: the counts follow the code and assume that no eigenvalue can be dropped and that
lambdas share no sums (onefit.linalg.shift_interpolation), so that "eigen" may cost less. Other
losses: the number of Newton steps depends on the data, and each factors the points with
curvature only; ten steps and a fixed share of points are assumed, so that their costs are estimates
of the order of magnitude.
"""

from __future__ import annotations

from collections import Counter

from onefit.heldout.workload import Workload
from onefit.linalg.rates import Cost, Rates

#: overhead of Python and NumPy, in calls of a tiny solve: most of the time of
#: 100 rows (benchmarks/plan_choice.py)
CALLS_PER_KERNEL, CALLS_PER_LAYOUT, CALLS_PER_LAMBDA = 120.0, 3.0, 40.0
CALLS_PER_FOLD, CALLS_PER_ROW, CALLS_PER_NEWTON_STEP = 16.0, 0.3, 350.0

#: steps assumed of Newton's method (benchmarks/plan_times.py)
NEWTON_STEPS = 10
#: assumed share of points with curvature, for losses that have straight pieces
ACTIVE_SHARES = {
    "smoothed_hinge": 0.3,
    "squared_hinge": 0.3,
    "huber": 0.6,
    "epsilon_quadratic": 0.6,
    "epsilon_insensitive": 0.2,
    "quantile": 0.2,
}


def active_share(work: Workload) -> float:
    """The share of points that are assumed to have curvature."""
    return ACTIVE_SHARES.get(work.loss, 1.0)


def kernel(work: Workload, rates: Rates) -> Cost:
    """The kernel matrix from distances that are there, and the layout of its folds."""
    return rates.entries(work.n**2) + rates.calls(CALLS_PER_KERNEL + CALLS_PER_LAYOUT * work.folds)


def small_solves(work: Workload, rates: Rates) -> Cost:
    """The systems of the folds that a formula serves."""
    total = Cost()
    for m, count in work.by_formula.items():
        total += count * (
            rates.solve(m, work.targets) + rates.passes(m * m, 4) + rates.calls(CALLS_PER_FOLD)
        )
    return total


def refits(work: Workload, splits: Counter[int], rates: Rates) -> Cost:
    """Fits without each of some splits at one lambda, and their predictions."""
    total = Cost()
    for m, count in splits.items():
        rest = work.n - m
        predicted = rates.gathers(m * rest) + rates.product(m, rest, work.targets)
        copied = rates.gathers(rest * rest)
        total += count * (copied + fit(rest, work, rates) + predicted)
    return total


def fit(n: int, work: Workload, rates: Rates) -> Cost:
    """One model at one lambda: a direct solution, or Newton steps on the active points."""
    if work.quadratic:
        solved = 2 * rates.triangular_solves(n, work.targets + 1)
        checked = rates.product(n, n, work.targets)
        return (
            rates.passes(n * n, 2) + rates.cholesky(n) + solved + checked
            + rates.calls(CALLS_PER_LAMBDA)
        )  # fmt: skip
    return work.targets * NEWTON_STEPS * newton_step(n, work, rates)


def newton_step(n: int, work: Workload, rates: Rates) -> Cost:
    """Points with curvature gathered, their factor, three solves and two products with K."""
    active = active_share(work) * n
    return (
        rates.gathers(active**2)
        + rates.passes(active**2, 4)
        + rates.cholesky(active)
        + 3 * rates.triangular_solves(active, 1)
        + 2 * rates.product(n, n, 1)
        + rates.calls(CALLS_PER_NEWTON_STEP)
    )


def one_fit(work: Workload, rates: Rates, products: int, inverted: bool = False) -> Cost:
    """A fit per lambda, one factor per target, and products of 2 n^2 with a column per fold.

    On a device the steps of a fold are Newton steps with a factor of their own.
    """
    if rates.on_device and inverted:
        steps = (NEWTON_STEPS + work.folds * products) * newton_step(work.n, work, rates)
        return kernel(work, rates) + work.lams * work.targets * steps
    n, active = work.n, active_share(work) * work.n
    factor = rates.gathers(active**2) + rates.cholesky(active)
    folds = work.folds * rates.calls(products * CALLS_PER_FOLD)
    if inverted:
        factor += rates.triangular_inverse(active)
        for m, count in work.by_formula.items():
            side = active_share(work) * m
            folds += count * (rates.rank_update(side, active) + rates.solve(side, 1))
    folds += products * rates.product(n, n, work.folds)
    each = fit(n, work, rates) + work.targets * (work.ridges * factor + folds)
    return kernel(work, rates) + work.lams * (each + refits(work, work.by_refit, rates))


# memory, in matrices of n rows and columns


def fit_matrices(work: Workload) -> float:
    """A matrix and its factor; a Newton step keeps both, and K on the points with curvature.

    All points may have curvature on the way, whatever their share in the end.
    """
    if work.quadratic:
        return 2.0
    return 3.0 if active_share(work) == 1.0 else 4.0


def one_fit_matrices(work: Workload, arrays: float) -> float:
    """The fit, or a factor with some arrays of a column per fold."""
    return max(0.1 + fit_matrices(work), 2.1 + arrays * work.folds / work.n)
