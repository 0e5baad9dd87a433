"""Cost and memory of machines in feature space (onefit.stream), for one kernel.

With m features, n rows and k splits: a pass that makes the features is n m^2 operations, and so are
the sums of their products; a split is a few m^3, and predictions are n m a lambda.
"""

from __future__ import annotations

from collections.abc import Callable

from onefit.plan.rates import Cost, Rates
from onefit.plan.workload import Workload
from onefit.stream.expansion import CHUNK, ROOM

__all__ = ["FEATURE_COSTS", "feature_bytes"]

#: passes over an array that an entry of a kernel matrix costs: 16 to 18 with a Gaussian kernel and
#: 5 to 20 columns, by processor time of one thread
ENTRY = 17.0
#: and features that are held: their lengths, and a copy of every fold's
HELD = 6.0
#: steps of Newton's method at a lambda that starts from the one before
NEWTON = 5
#: passes with a column per split: for the bound of a limit, and for the steps of an exact method
CHECKS, STEPS = 2, 30
#: what Python and NumPy take beside the primitives, in calls of a tiny solve, per split and lambda
PER_SPLIT = 40.0


def gram(work: Workload, rates: Rates) -> Cost:
    """Sums of products once, a reduction per split, and a pass of predictions."""
    n, m, k = work.n, work.features, max(1, work.folds)
    sums = _features(work, rates) + rates.rank_update(m, n)
    if _held(work):
        sums += rates.gathers(n * m) + rates.passes(n * m, HELD)
    split = rates.eigendecomposition(m) + rates.product(m, m, work.lams * work.targets)
    again = rates.passes(n * m) if _held(work) else rates.passes(n * m, ENTRY)
    values = again + rates.product(n, m, work.lams * work.targets)
    return sums + k * split + values + k * work.lams * rates.calls(PER_SPLIT)


def limit(work: Workload, rates: Rates) -> Cost:
    """A fit per lambda and target, a factor per split, and a pass for its bound."""
    return _from_one_fit(work, rates, CHECKS)


def exact(work: Workload, rates: Rates) -> Cost:
    """The limit, and further passes with a column per split."""
    return _from_one_fit(work, rates, STEPS)


def refit(work: Workload, rates: Rates) -> Cost:
    """Features and a fit per split and lambda, as a pipeline in a grid search does."""
    n, m, k = work.n, work.features, max(1, work.folds)
    each = rates.rank_update(m, n) + rates.cholesky(m)
    if not work.quadratic:
        each = work.targets * NEWTON * each
    return k * work.lams * (_features(work, rates) + each)


FEATURE_COSTS: dict[str, Callable[[Workload, Rates], Cost]] = {
    "gram": gram,
    "limit": limit,
    "exact": exact,
    "refit": refit,
}


def feature_bytes(work: Workload) -> int:
    """Most bytes that one worker holds beyond the data."""
    n, m = work.n, work.features
    kept = n * m if _held(work) else 0
    matrices = (max(1, work.folds) + 5) * m * m
    values = (work.lams + 1) * max(n, sum(work.removed)) * work.targets
    return 8 * (kept + 3 * min(CHUNK, n * m) + matrices + values)


def _held(work: Workload) -> bool:
    """Whether the features are kept from pass to pass."""
    return work.n * work.features <= ROOM


def _features(work: Workload, rates: Rates) -> Cost:
    n, m = work.n, work.features
    return rates.passes(n * m, ENTRY) + rates.product(n, m, m)


def _from_one_fit(work: Workload, rates: Rates, passes: int) -> Cost:
    n, m, k = work.n, work.features, max(1, work.folds)
    made = Cost() if _held(work) else _features(work, rates)
    step = made + rates.rank_update(m, n) + rates.cholesky(m)
    column = made + rates.passes(n * m) + rates.product(n, m, 3 * k) + rates.passes(n * k, 20)
    split = 2 * rates.cholesky(m) + 2 * rates.product(m, m, m)
    each = NEWTON * step + k * split + passes * column + k * rates.calls(PER_SPLIT)
    return _features(work, rates) + work.lams * work.targets * each
