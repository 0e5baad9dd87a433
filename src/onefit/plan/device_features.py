"""What each method costs on a device with features in place of a kernel matrix, for one kernel.

As onefit.plan.features counts it for the host. Small matrices have whole decompositions, and what
has a column per split is the host's: losses, line searches and bounds.
"""

from __future__ import annotations

from collections.abc import Callable

from onefit.plan.device_rates import DeviceRates
from onefit.plan.features import CHECKS, NEWTON, STEPS
from onefit.plan.workload import Workload
from onefit.stream.expansion import CHUNK

__all__ = ["FEATURE_SECONDS", "feature_numbers"]

#: seconds of the host for a row of a column in one pass: losses, their slopes, and the way there
PER_ROW = 1e-8


def feature_numbers(work: Workload) -> float:
    """Numbers that are held at least; features of all rows are kept only where there is room."""
    n, m, k = work.n, work.features, max(1, work.folds)
    return 4.0 * min(CHUNK, n * m) + (k + 6.0) * m * m


def _features(work: Workload, rates: DeviceRates) -> float:
    n, m = float(work.n), float(work.features)
    return n * m * rates.entry + n * m * m / rates.inverse


def _small(work: Workload, rates: DeviceRates) -> float:
    """A decomposition of m x m, and the way there without some landmarks."""
    m = float(work.features)
    return rates.eigh * m**3 + rates.start + 8.0 * m**3 / rates.gemm + 20.0 * rates.call


def _factor(work: Workload, rates: DeviceRates) -> float:
    m = float(work.features)
    return m**3 / 3.0 / rates.cholesky + 8.0 * m**3 / rates.gemm + 20.0 * rates.call


def _sums(work: Workload, rates: DeviceRates) -> float:
    n, m = float(work.n), float(work.features)
    return 2.0 * n * m * m / rates.gemm + n * m * rates.read


def _gram(work: Workload, rates: DeviceRates) -> float:
    n, m, columns = float(work.n), float(work.features), work.lams * work.targets
    values = n * m * rates.read + 2.0 * n * m * columns / rates.gemm
    values += n * columns * rates.call / 1e5
    splits = max(1, work.folds) * _small(work, rates)
    return _features(work, rates) + _sums(work, rates) + splits + values


def _from_one_fit(work: Workload, rates: DeviceRates, passes: int) -> float:
    n, m, k = float(work.n), float(work.features), max(1, work.folds)
    step = _sums(work, rates) + _factor(work, rates) + n * PER_ROW
    column = n * m * rates.read + n * k * PER_ROW
    each = NEWTON * step + k * _factor(work, rates) + passes * column
    return _features(work, rates) + work.lams * work.targets * each


def _refit(work: Workload, rates: DeviceRates) -> float:
    each = _sums(work, rates) + _factor(work, rates)
    if not work.quadratic:
        each = work.targets * NEWTON * (each + work.n * PER_ROW)
    return max(1, work.folds) * work.lams * (_features(work, rates) + each)


#: method -> seconds of one kernel
FEATURE_SECONDS: dict[str, Callable[[Workload, DeviceRates], float]] = {
    "gram": _gram,
    "limit": lambda work, rates: _from_one_fit(work, rates, CHECKS),
    "exact": lambda work, rates: _from_one_fit(work, rates, STEPS),
    "refit": _refit,
}
