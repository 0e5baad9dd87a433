"""Operations of each held-out method, for one kernel.

Squared loss: the counts follow the code of ``onefit.heldout`` and assume that no eigenvalue can be
dropped and that lambdas share no sums (onefit.heldout.shares), so that "eigen" may cost less. Other
losses: Newton's method takes as many steps as the data ask for, and factors the points with
curvature only; ten steps and a fixed share of points are assumed, so that their costs are estimates
of the order of magnitude.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from onefit.inverse.low_rank import ROOM
from onefit.plan.rates import Cost, Rates
from onefit.plan.workload import Workload

__all__ = ["COSTS", "active_share", "factorisation_ratio", "landmarks"]

#: what Python and NumPy take beside the primitives, in calls of a tiny solve: per kernel, per split
#: of a kernel, per lambda, per split of a lambda, and per row of a leave-one-out
PER_KERNEL, PER_LAYOUT, PER_LAMBDA, PER_FOLD, PER_ROW = 120.0, 3.0, 40.0, 16.0, 0.3

#: steps assumed of Newton's method and of the repair of a leave-out, orders of an influence series
NEWTON_STEPS, REPAIRS, ORDERS = 10, 3, 3
#: steps of an iteration (the mean over columns and kernels), columns of its low-rank factor, and
#: passes over a tile to compute it
STEPS, LANDMARKS, ENTRY = 15, 1000, 8.0
#: assumed share of points with curvature, for losses that have straight pieces
SHARES = {
    "smoothed_hinge": 0.3,
    "squared_hinge": 0.3,
    "huber": 0.6,
    "epsilon_quadratic": 0.6,
    "epsilon_insensitive": 0.2,
    "quantile": 0.2,
}


def block(work: Workload, rates: Rates) -> Cost:
    """A factor and its inverse per value of c; a rank update and a small solve per fold."""
    n, columns = work.n, work.targets + 1
    factor = (
        rates.gathers(n * n)
        + rates.cholesky(n)
        + rates.triangular_inverse(n)
        + 2 * rates.product(n, n, columns)
        + rates.calls(PER_LAMBDA)
    )
    if work.one_row_each:
        folds = rates.passes(n * n, 2) + rates.calls(PER_ROW * n)
    else:
        # the column of a fold begins at its first row, where the folds do not overlap
        adjacent = work.tested <= n
        rows = n - work.tested / 2 if adjacent else n
        folds = _small_solves(work, rates)
        for m, count in work.by_formula.items():
            copied = Cost() if adjacent else rates.gathers(m * n)
            folds += count * (rates.rank_update(m, rows) + copied)
    bound = rates.gathers(n * n) + rates.passes(n * n, 3)
    each = work.ridges * factor + folds + _refits(work, work.by_refit, rates)
    return _kernel(work, rates) + bound + work.lams * each


def eigen(work: Workload, rates: Rates) -> Cost:
    """One eigendecomposition; per lambda a rank update and a small solve per fold."""
    n, columns = work.n, work.targets + 1
    shared = (
        rates.gathers(n * n)
        + rates.eigendecomposition(n)
        + rates.product(n, n, columns)
        + rates.passes(n * n)
    )
    if work.one_row_each:
        values = work.lams * work.ridges
        table = rates.passes(n * n) + rates.product(n, n, values * (columns + 1))
        each = rates.calls(PER_LAMBDA + PER_ROW * n)
        return _kernel(work, rates) + shared + table + work.lams * each
    folds = _small_solves(work, rates)
    for m, count in work.by_formula.items():
        scaled = rates.passes(m * n) + rates.product(m, n, columns)
        copied = Cost() if work.tested <= n else 2 * rates.gathers(m * n)
        folds += count * (rates.rank_update(m, n) + scaled + copied)
    each = work.ridges * rates.calls(PER_LAMBDA) + folds + _refits(work, work.by_refit, rates)
    return _kernel(work, rates) + shared + work.lams * each


def refit(work: Workload, rates: Rates) -> Cost:
    """A fit per split and lambda."""
    each = _refits(work, work.by_formula + work.by_refit, rates) + rates.calls(PER_LAMBDA)
    return _kernel(work, rates) + work.lams * each


def influence(work: Workload, rates: Rates) -> Cost:
    """A fit, its factor, and a product with all folds' columns per order of the series."""
    return _from_one_fit(work, rates, ORDERS)


def limit(work: Workload, rates: Rates) -> Cost:
    """A fit, its factor inverted, the folds' blocks, and one product with all folds' columns."""
    return _from_one_fit(work, rates, 1, inverted=True)


def exact(work: Workload, rates: Rates) -> Cost:
    """The limit, and a few steps of repair for the points that changed their piece."""
    return _from_one_fit(work, rates, 1 + REPAIRS, inverted=True)


def iterative(work: Workload, rates: Rates) -> Cost:
    """Landmarks, a small decomposition per split, and products with all columns at once."""
    n, k, m = work.n, work.columns, landmarks(work.n)
    if not work.quadratic:
        # lambdas one after the other, and a set-up for every Newton step
        one = replace(work, lams=1, quadratic=True)
        return work.lams * NEWTON_STEPS * iterative(one, rates)
    setup = 3 * rates.product(n, m, m)
    # a whole eigendecomposition takes about three times as long as a partial one
    setup += 3 * max(1, work.folds) * rates.eigendecomposition(m)
    step = rates.product(n, n, k) + 2 * rates.product(n, m, k) + rates.passes(n * k, 16)
    if work.tiled:
        step += rates.passes(n * n, ENTRY)
    formed = Cost() if work.given else rates.passes(n * n, ENTRY)
    calls = rates.calls(PER_KERNEL + STEPS * PER_FOLD * max(1, work.folds))
    return formed + setup + STEPS * step + calls


def landmarks(n: int) -> int:
    """Landmarks that are assumed."""
    return min(LANDMARKS, n // 3, ROOM // n)


#: method -> cost of one kernel
COSTS: dict[str, Callable[[Workload, Rates], Cost]] = {
    "block": block,
    "eigen": eigen,
    "refit": refit,
    "exact": exact,
    "limit": limit,
    "influence": influence,
    "iterative": iterative,
}


def active_share(work: Workload) -> float:
    """The share of points that are assumed to have curvature."""
    return SHARES.get(work.loss, 1.0)


def factorisation_ratio(n: int, rates: Rates) -> float:
    """How many Cholesky factors, each with its inverse, one eigendecomposition is worth."""
    cholesky = rates.cholesky(n) + rates.triangular_inverse(n)
    return rates.eigendecomposition(n).seconds / cholesky.seconds


def _kernel(work: Workload, rates: Rates) -> Cost:
    """The kernel matrix from distances that are there, and the layout of its folds."""
    return rates.passes(work.n**2, 4) + rates.calls(PER_KERNEL + PER_LAYOUT * work.folds)


def _small_solves(work: Workload, rates: Rates) -> Cost:
    total = Cost()
    for m, count in work.by_formula.items():
        total += count * (
            rates.solve(m, work.targets) + rates.passes(m * m, 4) + rates.calls(PER_FOLD)
        )
    return total


def _refits(work: Workload, splits: Counter[int], rates: Rates) -> Cost:
    """Fits without each of some splits at one lambda, and their predictions."""
    total = Cost()
    for m, count in splits.items():
        rest = work.n - m
        predicted = rates.gathers(m * rest) + rates.product(m, rest, work.targets)
        copied = rates.gathers(rest * rest)
        total += count * (copied + _fit(rest, work, rates) + predicted)
    return total


def _fit(n: int, work: Workload, rates: Rates) -> Cost:
    """One machine at one lambda: a direct solution, or Newton steps on the active points."""
    if work.quadratic:
        solved = 2 * rates.triangular_solves(n, work.targets + 1)
        checked = rates.product(n, n, work.targets)
        return (
            rates.passes(n * n, 2) + rates.cholesky(n) + solved + checked
            + rates.calls(PER_LAMBDA)
        )  # fmt: skip
    active = active_share(work) * n
    factor = rates.passes(active**2, 4) + rates.cholesky(active)
    step = (
        rates.gathers(active**2)
        + factor
        + 3 * rates.triangular_solves(active, 1)
        + 2 * rates.product(n, n, 1)
        + rates.calls(2 * PER_LAMBDA)
    )
    return work.targets * (NEWTON_STEPS * step)


def _from_one_fit(work: Workload, rates: Rates, products: int, inverted: bool = False) -> Cost:
    """A fit per lambda, one factor per target, and products of 2 n^2 with a column per fold."""
    n, active = work.n, active_share(work) * work.n
    factor = rates.gathers(active**2) + rates.cholesky(active)
    folds = work.folds * rates.calls(products * PER_FOLD)
    if inverted:
        factor += rates.triangular_inverse(active)
        for m, count in work.by_formula.items():
            side = active_share(work) * m
            folds += count * (rates.rank_update(side, active) + rates.solve(side, 1))
    folds += products * rates.product(n, n, work.folds)
    each = _fit(n, work, rates) + work.targets * (work.ridges * factor + folds)
    return _kernel(work, rates) + work.lams * (each + _refits(work, work.by_refit, rates))
