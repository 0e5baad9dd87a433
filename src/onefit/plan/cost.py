"""Operations of each held-out method, for one kernel, in primitives of a backend.

The counts are those of every backend: host and device differ in rates (``rates.py``), and where
Newton steps of several columns share a factor on the host only.

Squared loss: the counts follow the code of ``onefit.heldout`` and assume that no eigenvalue can be
dropped and that lambdas share no sums (onefit.heldout.shares), so that "eigen" may cost less. Other
losses: Newton's method takes as many steps as the data ask for, and factors the points with
curvature only; ten steps and a fixed share of points are assumed, so that their costs are estimates
of the order of magnitude.

Features (:mod:`onefit.features`): with m features, n rows and k splits, a pass that makes them is
n m^2 operations, and so are the sums of their products; a split is a few m^3, and predictions are
n m per lambda.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from onefit.features.feature_gram import MAX_HELD_ELEMENTS
from onefit.inverse.low_rank import iteration_cost, most_landmarks
from onefit.linalg.rates import Cost, Rates
from onefit.plan.workload import Workload

__all__ = [
    "COSTS",
    "FEATURE_COSTS",
    "active_share",
    "factorisation_ratio",
    "train_test",
]

#: overhead of Python and NumPy, in calls of a tiny solve: most of the time of
#: 100 rows (benchmarks/plan_choice.py)
CALLS_PER_KERNEL, CALLS_PER_LAYOUT, CALLS_PER_LAMBDA = 120.0, 3.0, 40.0
CALLS_PER_FOLD, CALLS_PER_ROW, CALLS_PER_NEWTON_STEP = 16.0, 0.3, 350.0
CALLS_PER_CG_STEP, CALLS_PER_PRECONDITIONER = 16.0, 5.0

#: steps assumed of Newton's method and of the repair of a leave-out (benchmarks/plan_times.py)
NEWTON_STEPS, REPAIR_STEPS = 10, 3
#: steps assumed of an iteration and columns of its low-rank factor (benchmarks/plan_choice.py)
CG_STEPS, ASSUMED_LANDMARKS = 25, 400
#: with features: Newton steps at a lambda that starts from the one before, and passes with a column
#: per split for the steps of an exact method (benchmarks/plan_times.py)
WARM_NEWTON_STEPS, EXACT_PASSES = 5, 40
#: assumed share of points with curvature, for losses that have straight pieces
ACTIVE_SHARES = {
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
        + rates.calls(CALLS_PER_LAMBDA)
    )
    if work.one_row_each:
        folds = rates.passes(n * n, 2) + rates.calls(CALLS_PER_ROW * n)
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
        each = rates.calls(CALLS_PER_LAMBDA + CALLS_PER_ROW * n)
        return _kernel(work, rates) + shared + table + work.lams * each
    folds = _small_solves(work, rates)
    for m, count in work.by_formula.items():
        scaled = rates.passes(m * n) + rates.product(m, n, columns)
        copied = Cost() if work.tested <= n else 2 * rates.gathers(m * n)
        folds += count * (rates.rank_update(m, n) + scaled + copied)
    each = work.ridges * rates.calls(CALLS_PER_LAMBDA) + folds + _refits(work, work.by_refit, rates)
    return _kernel(work, rates) + shared + work.lams * each


def refit(work: Workload, rates: Rates) -> Cost:
    """A fit per split and lambda."""
    each = _refits(work, work.by_formula + work.by_refit, rates) + rates.calls(CALLS_PER_LAMBDA)
    return _kernel(work, rates) + work.lams * each


def train_test(work: Workload, rates: Rates) -> Cost:
    """Predictions of one test set at all lambdas: a tridiagonal form, or a fit per lambda."""
    m = max(work.removed, default=0)
    rest = work.n - m
    shared = rates.gathers(rest * rest) + rates.passes(rest * rest, 2)
    predicted = rates.product(m, rest, work.lams * work.targets) + rates.calls(CALLS_PER_LAMBDA)
    if not work.quadratic:
        fits = work.lams * _fit(rest, work, rates)
    else:
        fits = rates.tridiagonal(rest)
        fits += rates.product(rest, rest, work.lams * work.targets)
    return _kernel(work, rates) + shared + fits + predicted


def influence(work: Workload, rates: Rates) -> Cost:
    """A fit, its factor, and products with all folds' columns."""
    return _from_one_fit(work, rates, 1)


def limit(work: Workload, rates: Rates) -> Cost:
    """A fit, its factor inverted, the folds' blocks, and one product with all folds' columns."""
    return _from_one_fit(work, rates, 1, inverted=True)


def exact(work: Workload, rates: Rates) -> Cost:
    """The limit, and a few steps of repair for the points that changed their piece."""
    return _from_one_fit(work, rates, 1 + REPAIR_STEPS, inverted=True)


def iterative(work: Workload, rates: Rates) -> Cost:
    """Landmarks, a small decomposition per split, and products with all columns at once."""
    n, m = work.n, min(ASSUMED_LANDMARKS, most_landmarks(work.n))
    if not work.quadratic:
        # lambdas one after the other, and a set-up for every Newton step
        one = replace(work, lams=1, quadratic=True)
        return work.lams * NEWTON_STEPS * iterative(one, rates)
    folds = max(1, work.folds)
    cg = iteration_cost(n, m, work.columns, folds, CG_STEPS, rates, tiled=work.tiled)
    formed = Cost() if work.given else rates.entries(n * n)
    calls = CG_STEPS * (CALLS_PER_CG_STEP + CALLS_PER_PRECONDITIONER * folds)
    return formed + cg + rates.calls(CALLS_PER_KERNEL + calls)


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
    return ACTIVE_SHARES.get(work.loss, 1.0)


def factorisation_ratio(n: int, rates: Rates) -> float:
    """Number of Cholesky factors with inverse that cost as much as one eigendecomposition."""
    cholesky = rates.cholesky(n) + rates.triangular_inverse(n)
    return rates.eigendecomposition(n).seconds / cholesky.seconds


def _kernel(work: Workload, rates: Rates) -> Cost:
    """The kernel matrix from distances that are there, and the layout of its folds."""
    return rates.entries(work.n**2) + rates.calls(CALLS_PER_KERNEL + CALLS_PER_LAYOUT * work.folds)


def _small_solves(work: Workload, rates: Rates) -> Cost:
    total = Cost()
    for m, count in work.by_formula.items():
        total += count * (
            rates.solve(m, work.targets) + rates.passes(m * m, 4) + rates.calls(CALLS_PER_FOLD)
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
    """One model at one lambda: a direct solution, or Newton steps on the active points."""
    if work.quadratic:
        solved = 2 * rates.triangular_solves(n, work.targets + 1)
        checked = rates.product(n, n, work.targets)
        return (
            rates.passes(n * n, 2) + rates.cholesky(n) + solved + checked
            + rates.calls(CALLS_PER_LAMBDA)
        )  # fmt: skip
    return work.targets * NEWTON_STEPS * _newton_step(n, work, rates)


def _newton_step(n: int, work: Workload, rates: Rates) -> Cost:
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


def _from_one_fit(work: Workload, rates: Rates, products: int, inverted: bool = False) -> Cost:
    """A fit per lambda, one factor per target, and products of 2 n^2 with a column per fold.

    On a device the steps of a fold are Newton steps with a factor of their own.
    """
    if rates.on_device and inverted:
        steps = (NEWTON_STEPS + work.folds * products) * _newton_step(work.n, work, rates)
        return _kernel(work, rates) + work.lams * work.targets * steps
    n, active = work.n, active_share(work) * work.n
    factor = rates.gathers(active**2) + rates.cholesky(active)
    folds = work.folds * rates.calls(products * CALLS_PER_FOLD)
    if inverted:
        factor += rates.triangular_inverse(active)
        for m, count in work.by_formula.items():
            side = active_share(work) * m
            folds += count * (rates.rank_update(side, active) + rates.solve(side, 1))
    folds += products * rates.product(n, n, work.folds)
    each = _fit(n, work, rates) + work.targets * (work.ridges * factor + folds)
    return _kernel(work, rates) + work.lams * (each + _refits(work, work.by_refit, rates))


def gram_of_features(work: Workload, rates: Rates) -> Cost:
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
    return sums + k * split + values + k * work.lams * rates.calls(CALLS_PER_LAMBDA)


def refit_of_features(work: Workload, rates: Rates) -> Cost:
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
    each += k * rates.calls(CALLS_PER_LAMBDA)
    return _features(work, rates) + work.lams * work.targets * each


#: method -> cost of one kernel, with features instead of the kernel matrix
FEATURE_COSTS: dict[str, Callable[[Workload, Rates], Cost]] = {
    "gram": gram_of_features,
    "limit": lambda work, rates: _newton_by_passes(work, rates, 1),
    "exact": lambda work, rates: _newton_by_passes(work, rates, EXACT_PASSES),
    "refit": refit_of_features,
}
