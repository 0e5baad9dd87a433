"""Peak memory of a workload: that of its method, distances, and indices of splits."""

from __future__ import annotations

from onefit.features.held_out import FEATURE_METHODS, feature_bytes
from onefit.heldout import METHODS
from onefit.heldout.cost import active_share
from onefit.heldout.train_test import TrainTest
from onefit.heldout.workload import Workload

__all__ = ["device_bytes", "peak_bytes"]

#: bytes of a split's own objects, without the indices of its training rows
BYTES_PER_SPLIT = 1000


def peak_bytes(work: Workload, method: str) -> int:
    """Most bytes that one worker holds beyond the data.

    ``method`` is a held-out method, "train_test", or "fit" for one fit, to all rows or to those
    that are not removed; of any other, no more is known than that it needs K.
    """
    if work.features:
        return feature_bytes(work)
    # a single worker keeps the distances that its kernels share
    shared = work.kernels > 1 and work.busy == 1 and method != "iterative"
    distances = 1.0 if shared else 0.0
    matrices = (_matrices(work, method) - float(work.given) + distances) * work.n**2
    indices = sum(8 * (work.n - m) + BYTES_PER_SPLIT for m in work.removed)
    return int(matrices * work.itemsize) + indices


def device_bytes(work: Workload, method: str) -> int:
    """Most bytes that a device holds beyond the data."""
    known = FEATURE_METHODS["gram"] if work.features else METHODS.get(method, METHODS["exact"])
    return int(known.device_bytes(work))


def _matrices(work: Workload, method: str) -> float:
    """Matrices of n rows and columns, K among them."""
    if method in METHODS:
        return METHODS[method].matrices(work)
    known = {"fit": _fit_alone, "train_test": TrainTest.matrices}
    return known[method](work) if method in known else 1.0


def _fit_alone(work: Workload) -> float:
    """K and a matrix that its factor overwrites; with straight pieces, K on the other points too.

    Less than `onefit.heldout.cost.fit_matrices`, which includes the eigenvalues that are computed
    where rounding spoils a factor: a fit that will probably succeed is not refused. Where rows are
    removed, the rest of K is copied. The certificate of a fit in single precision has a copy of K
    in double precision.
    """
    each = 2.0 if active_share(work) == 1.0 else 3.0
    if not work.removed:
        return each if work.itemsize == 8 else 3.0
    return 1.0 + each * ((work.n - min(work.removed)) / work.n) ** 2
