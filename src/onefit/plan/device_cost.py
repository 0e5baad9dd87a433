"""What each method costs on a device, for one kernel: seconds and bytes.

A few things are simpler than on the host (onefit.plan.cost): decompositions are whole, and a Newton
step of a column has a factor of its own. Steps and points with curvature are the same guesses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onefit.plan.cost import NEWTON_STEPS, ORDERS, REPAIRS, active_share
from onefit.plan.device_features import FEATURE_SECONDS, feature_numbers
from onefit.plan.device_rates import DeviceRates
from onefit.plan.workload import Estimate, Workload

__all__ = ["options"]

#: steps assumed of an iteration, and columns of its low-rank factor
STEPS, LANDMARKS = 30, 2000
#: matrices of n rows that are held: K, and those of a factor or a decomposition of all rows
BLOCK, EIGEN, FACTOR = 5.0, 6.0, 4.0
#: arrays of n rows of an iteration, numbers of one of them, and bytes of its tiles
ARRAYS, ROOM, TILES = 30, 2**28, 2 * 2**30


def options(work: Workload, method: str, rates: DeviceRates) -> list[Estimate]:
    """The estimates of a method: of an iteration with K held and by tiles."""
    if work.features:
        double = replace(work, itemsize=8)
        seconds = FEATURE_SECONDS[method](work, rates)
        return [_estimate(double, method, feature_numbers(work), seconds, rates)]
    if method == "iterative":
        return [_iterative(replace(work, tiled=tiled), rates) for tiled in (False, True)]
    seconds = work.n**2 * rates.entry + _SECONDS[method](work, rates)
    return [_estimate(work, method, _matrices(work, method) * work.n**2, seconds, rates)]


def _matrices(work: Workload, method: str) -> float:
    """Numbers that are held, in n^2."""
    if method in ("block", "eigen"):
        return BLOCK if method == "block" else EIGEN
    return 1.0 + FACTOR * active_share(work) ** 2


def _block(work: Workload, rates: DeviceRates) -> float:
    n, factors = float(work.n), work.lams * work.ridges
    factor = n**3 / 3.0 / rates.cholesky + n**3 / 3.0 / rates.inverse + 20.0 * n * n * rates.read
    return factors * factor + _blocks(work, rates)


def _eigen(work: Workload, rates: DeviceRates) -> float:
    return rates.eigh * float(work.n) ** 3 + rates.start + _blocks(work, rates)


def _blocks(work: Workload, rates: DeviceRates) -> float:
    """Those of the folds, at every lambda."""
    n, m = float(work.n), float(max(work.largest, 1))
    if work.one_row_each:
        return work.lams * work.ridges * (2.0 * n * n * rates.read + 10.0 * rates.call)
    one = 2.0 * n * m * m / rates.gemm + m**3 / rates.inverse + 10.0 * rates.call
    return work.lams * work.folds * one


def _step(work: Workload, rates: DeviceRates) -> float:
    """A Newton step of one column: rows gathered, a factor, three solves, two products with K."""
    n, p = float(work.n), active_share(work) * work.n
    passes = 10.0 * p * p + 2.0 * n * n
    return p**3 / 3.0 / rates.cholesky + passes * rates.read + 20.0 * rates.call


def _steps(work: Workload, rates: DeviceRates, full: int, each: int) -> float:
    """So many of the fit to all rows, and of each fold, at every lambda."""
    return work.lams * work.targets * (full + work.folds * each) * _step(work, rates)


def _iterative(work: Workload, rates: DeviceRates) -> Estimate:
    n, m = float(work.n), float(min(LANDMARKS, work.n // 3))
    k, turns = float(work.columns), 1
    if not work.quadratic:
        # lambdas one after the other, and a set-up for every Newton step
        k, turns = k / work.lams, work.lams * NEWTON_STEPS
    entry = n * n / 2.0 * rates.entry if work.tiled else n * n * rates.read
    step = (2.0 * n * n * k + 4.0 * n * m * k) / rates.gemm + entry + 100.0 * rates.call
    small = rates.eigh * m**3 + rates.start / 5.0
    setup = 6.0 * n * m * m / rates.gemm + max(1, work.folds) * small
    columns = min(n * k, max(ROOM, n * work.lams * work.targets))
    held = TILES / work.itemsize if work.tiled else n * n
    numbers = held + ARRAYS * columns + 2.0 * n * m + work.folds * m * m
    seconds = n * n * rates.entry + turns * (setup + STEPS * step)
    return _estimate(work, "iterative", numbers, seconds, rates)


def _estimate(
    work: Workload, method: str, numbers: float, seconds: float, rates: DeviceRates
) -> Estimate:
    seconds *= work.rounds
    return Estimate(method, seconds * rates.gemm, int(numbers * work.itemsize), seconds, work.tiled)


_SECONDS: dict[str, Callable[[Workload, DeviceRates], float]] = {
    "block": _block,
    "eigen": _eigen,
    "exact": lambda work, rates: _steps(work, rates, NEWTON_STEPS, 1 + REPAIRS),
    "limit": lambda work, rates: _steps(work, rates, NEWTON_STEPS, 1),
    "influence": lambda work, rates: _steps(work, rates, NEWTON_STEPS + ORDERS, 0),
    "refit": lambda work, rates: _steps(work, rates, 0, 1 if work.quadratic else NEWTON_STEPS),
}
