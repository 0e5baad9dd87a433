"""Peak memory of each held-out method, for one kernel, as ``onefit.heldout`` computes it.

In units of n^2 numbers, K among them.
"""

from __future__ import annotations

from collections.abc import Callable

from onefit.features.feature_gram import MAX_HELD_ELEMENTS
from onefit.features.moments import MAX_FEATURE_ELEMENTS
from onefit.heldout.iterative import MAX_COLUMN_ELEMENTS
from onefit.inverse.low_rank import most_landmarks
from onefit.inverse.spectrum import MAX_BLOCK_ELEMENTS_PER_N2, MAX_CACHED_SUMS
from onefit.linalg.partial_eigh import MAX_BLOCKS, PERMUTED_ROWS
from onefit.plan.cost import active_share
from onefit.plan.workload import Workload

__all__ = ["device_bytes", "peak_bytes"]

#: arrays of a column per fold that the leave-out formulas of any loss hold at once
MATRICES_PER_FOLD_COLUMN = {"limit": 18.0, "exact": 24.0, "influence": 18.0}
#: bytes of a split's own objects, without the indices of its training rows
BYTES_PER_SPLIT = 1000
#: on a device: matrices of n rows that block and eigen hold, and those of a Newton step without K
DEVICE_BLOCK_MATRICES, DEVICE_EIGEN_MATRICES, DEVICE_NEWTON_MATRICES = 5.0, 6.0, 4.0
#: arrays of n rows of an iteration, elements of one of them, and bytes of its tiles
DEVICE_CG_ARRAYS, DEVICE_MAX_COLUMN_ELEMENTS, DEVICE_TILE_BYTES = 30, 2**28, 2 * 2**30


def peak_bytes(work: Workload, method: str) -> int:
    """Most bytes that one worker holds beyond the data.

    ``method`` is one of the cost model's, or "fit" for one fit, to all rows or to those that are
    not removed; of any other, no more is known than that it needs K.
    """
    if work.features:
        return _feature_bytes(work)
    # a single worker keeps the distances that its kernels share
    shared = work.kernels > 1 and work.busy == 1 and method != "iterative"
    distances = 1.0 if shared else 0.0
    own = _MATRICES.get(method, _kernel)(work) - float(work.given)
    matrices = (own + distances) * work.n**2
    indices = sum(8 * (work.n - m) + BYTES_PER_SPLIT for m in work.removed)
    return int(matrices * work.itemsize) + indices


def device_bytes(work: Workload, method: str) -> int:
    """Most bytes that a device holds beyond the data."""
    n, m = float(work.n), float(work.features)
    if work.features:
        # features of all rows are kept only where there is room
        return int(
            8 * (4.0 * min(MAX_FEATURE_ELEMENTS, n * m) + (max(1, work.folds) + 6.0) * m * m)
        )
    if method == "iterative":
        m = float(most_landmarks(work.n))
        k = float(work.columns) if work.quadratic else work.columns / work.lams
        columns = min(n * k, max(DEVICE_MAX_COLUMN_ELEMENTS, n * work.lams * work.targets))
        numbers = DEVICE_CG_ARRAYS * columns + 2.0 * n * m + work.folds * m * m
        held = DEVICE_TILE_BYTES if work.tiled else work.itemsize * n * n
        return int(held + work.itemsize * numbers)
    newton = 1.0 + DEVICE_NEWTON_MATRICES * active_share(work) ** 2
    own = {"block": DEVICE_BLOCK_MATRICES, "eigen": DEVICE_EIGEN_MATRICES}
    return int(own.get(method, newton) * work.itemsize * n * n)


def _feature_bytes(work: Workload) -> int:
    """Features that are held, chunks of them, a matrix per fold, and held-out values."""
    n, m = work.n, work.features
    kept = n * m if n * m <= MAX_HELD_ELEMENTS else 0
    matrices = (max(1, work.folds) + 5) * m * m
    values = (work.lams + 1) * max(n, sum(work.removed)) * work.targets
    return 8 * (kept + 3 * min(MAX_FEATURE_ELEMENTS, n * m) + matrices + values)


def _kernel(work: Workload) -> float:
    """K alone."""
    return 1.0


def _block(work: Workload) -> float:
    """K, its permuted copy, and a copy of that."""
    return 3.0 + 2.0 * (work.largest / work.n) ** 2


def _eigen(work: Workload) -> float:
    """K, its permuted copy (the vectors take its place), a fold's rows twice, blocks, a table."""
    part, ridges = work.largest / work.n, work.lams * work.ridges
    # a single lambda has nothing to be made together with
    held = min(MAX_CACHED_SUMS, ridges) * part**2
    together = min(ridges * part**2, MAX_BLOCK_ELEMENTS_PER_N2) + held if ridges > 1 else 0.0
    # with the columns of the tears, in Q's coordinates and multiplied by it, and as much for
    # what they are made from and become
    table = 4.0 * ridges * (work.targets + MAX_BLOCKS) / work.n
    return 2.0 + PERMUTED_ROWS / work.n + 2.0 * part + 2.0 * part**2 + together + table


def _refit(work: Workload) -> float:
    """K, the memory of a fit to a training part, and columns of predictions on all rows."""
    part = (work.n - min(work.removed, default=0)) / work.n
    return 1.25 + _fit(work) * part**2


def _fit(work: Workload) -> float:
    """A matrix and its factor; a Newton step keeps both, and K on the points with curvature.

    All points may have curvature on the way, whatever their share in the end.
    """
    if work.quadratic:
        return 2.0
    return 3.0 if active_share(work) == 1.0 else 4.0


def _fit_alone(work: Workload) -> float:
    """K and a matrix that its factor overwrites; with straight pieces, K on the other points too.

    Less than :func:`_fit`, which includes the eigenvalues that are computed where rounding spoils a
    factor: a fit that will probably succeed is not refused. Where rows are removed, the rest of K
    is copied. The certificate of a fit in single precision has a copy of K in double precision.
    """
    each = 2.0 if active_share(work) == 1.0 else 3.0
    if not work.removed:
        return each if work.itemsize == 8 else 3.0
    return 1.0 + each * ((work.n - min(work.removed)) / work.n) ** 2


def _train_test(work: Workload) -> float:
    """K of training and test rows, the training block twice, and a Newton step where it takes one.

    Every worker keeps the distances of its split.
    """
    part = (work.n - min(work.removed, default=0)) / work.n
    kept = 1.0 if work.kernels > 1 and work.busy > 1 else 0.0
    steps = 0.0 if work.quadratic else _fit(work) * part**2
    return kept + 1.0 + 2.0 * part**2 + part * (1.0 - part) + steps


def _iterative(work: Workload) -> float:
    """K where it is held, the landmarks' columns twice, and a dozen arrays of the iteration."""
    columns = min(work.columns, max(MAX_COLUMN_ELEMENTS // work.n, work.lams * work.targets))
    small = max(1, work.folds) * most_landmarks(work.n) ** 2 / work.n**2
    rest = (2.0 * most_landmarks(work.n) + 14.0 * columns) / work.n + small
    return rest + (float(work.given) if work.tiled else 1.0)


def _columns(method: str) -> Callable[[Workload], float]:
    """The fit, or a factor with arrays of a column per fold."""

    def matrices(work: Workload) -> float:
        return max(0.1 + _fit(work), 2.1 + MATRICES_PER_FOLD_COLUMN[method] * work.folds / work.n)

    return matrices


_MATRICES: dict[str, Callable[[Workload], float]] = {
    "fit": _fit_alone,
    "block": _block,
    "eigen": _eigen,
    "refit": _refit,
    "iterative": _iterative,
    "train_test": _train_test,
    **{method: _columns(method) for method in MATRICES_PER_FOLD_COLUMN},
}
