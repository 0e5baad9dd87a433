"""The method to take: the fastest of those that fit the loss and the memory."""

from __future__ import annotations

from dataclasses import replace

from onefit._validation import check_choice
from onefit.plan.cost import COSTS
from onefit.plan.features import FEATURE_COSTS, feature_bytes
from onefit.plan.matrices import peak_bytes
from onefit.plan.memory import available_memory
from onefit.plan.rates import Rates, calibrate
from onefit.plan.workload import Estimate, Workload
from onefit.stream.methods import feature_method

__all__ = ["candidates", "choose", "estimate"]

#: what "auto" chooses from, for the squared loss and for any other
AUTO = {True: ("block", "eigen", "iterative"), False: ("exact",)}
#: rows from which an iteration is considered (benchmarks/iterative.py)
LARGE = 4000
#: what is shown beside the choice
SHOWN = {
    True: ("block", "eigen", "iterative", "refit"),
    False: ("exact", "limit", "influence", "iterative", "refit"),
}
#: the same with features in place of the kernel matrix
FEATURES = {True: ("gram", "refit"), False: ("exact", "limit", "refit")}


def estimate(work: Workload, method: str, rates: Rates | None = None) -> Estimate:
    """Expected cost of a workload by one method.

    Parameters
    ----------
    work : Workload
    method : {"block", "eigen", "refit", "exact", "limit", "influence", "iterative"}
        The first two are for the squared loss only.
    rates : Rates, default=None
        Speeds of the machine; measured (once) when None.
    """
    if work.features:
        return _in_features(work, method, rates)
    check_choice("method", method, COSTS)
    if method in ("block", "eigen") and not work.quadratic:
        raise ValueError(
            f"method={method!r} works for the squared loss only, not for {work.loss!r}; "
            "use 'exact', 'limit' or 'refit'"
        )
    if rates is None:
        rates = calibrate(work.threads, work.itemsize)
    cost = COSTS[method](work, rates)
    return Estimate(
        method=method,
        flops=work.kernels * cost.flops,
        nbytes=work.busy * peak_bytes(work, method),
        seconds=work.rounds * cost.seconds,
        tiled=work.tiled,
    )


def _in_features(work: Workload, method: str, rates: Rates | None) -> Estimate:
    cost = FEATURE_COSTS[method](work, rates or calibrate(work.threads, 8))
    return Estimate(
        method=method,
        flops=work.kernels * cost.flops,
        nbytes=work.busy * feature_bytes(work),
        seconds=work.rounds * cost.seconds,
    )


def candidates(work: Workload, rates: Rates | None = None) -> list[Estimate]:
    """The estimates of every method that fits the loss, the fastest first."""
    if work.features:
        shown = [estimate(work, one, rates) for one in FEATURES[work.quadratic]]
        return sorted(shown, key=lambda one: one.seconds)
    available = available_memory(work.busy)
    shown = [_fitting(work, method, rates, available) for method in SHOWN[work.quadratic]]
    return sorted(shown, key=lambda one: one.seconds)


def choose(
    work: Workload,
    method: str = "auto",
    rates: Rates | None = None,
    available: float | None = None,
    products: bool = True,
) -> Estimate:
    """The estimate of the method to use.

    A ``method`` that is named is taken. "auto" takes the fastest exact method that fits into the
    memory available (asked of the system when None), or the smallest where none fits: it is
    :func:`check_memory` that refuses. ``products`` says whether products with K are all that is
    needed.
    """
    if work.features:
        return estimate(work, feature_method(method, work.quadratic), rates)
    if available is None:
        available = available_memory(work.busy)
    if method != "auto":
        check_choice("method", method, ("auto", *COSTS))
        return _fitting(work, method, rates, available)
    names = [
        name
        for name in AUTO[work.quadratic]
        if name != "iterative" or (products and _iterated(work))
    ]
    options = [_fitting(work, name, rates, available) for name in names]
    fitting = [one for one in options if one.nbytes <= available]
    if not fitting:
        return min(options, key=lambda one: one.nbytes)
    return min(fitting, key=lambda one: one.seconds)


def _iterated(work: Workload) -> bool:
    """Whether an iteration may be chosen: below some rows it is no faster, only less sure."""
    return work.n >= LARGE and not work.one_row_each


def _fitting(work: Workload, method: str, rates: Rates | None, available: float) -> Estimate:
    """The estimate, with tiles in place of a matrix that does not fit, where there is a choice."""
    found = estimate(work, method, rates)
    if method == "iterative" and found.nbytes > available and not work.given:
        return estimate(replace(work, tiled=True), method, rates)
    return found
