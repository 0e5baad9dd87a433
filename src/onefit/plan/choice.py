"""The choice of a method: the fastest of those that fit the loss and the memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from onefit._validation import check_choice
from onefit.features.held_out import FEATURE_METHODS, feature_method, refit_cost
from onefit.heldout import METHODS
from onefit.heldout.train_test import TrainTest
from onefit.heldout.workload import Estimate, Workload
from onefit.linalg.rates import HOST_RATES, Cost, Rates
from onefit.plan.matrices import device_bytes, peak_bytes
from onefit.plan.memory import available_memory

__all__ = ["candidates", "choose", "estimate", "fit_estimate", "split_estimate"]

#: what "auto" chooses from, for the squared loss and for any other
AUTO_METHODS = {True: ("block", "eigen", "iterative"), False: ("exact",)}
#: where Newton steps of a device do not share factors, an iteration may be faster for any loss
AUTO_ON_DEVICE = {True: AUTO_METHODS[True], False: ("exact", "iterative")}
#: rows from which an iteration is considered: below, it gains up to three times on smooth kernels
#: and loses up to twelve times at small lams, which the plan does not see
#: (benchmarks/plan_choice.py)
MIN_ITERATED_ROWS = 4000
#: methods shown with the choice
SHOWN_METHODS = {
    True: ("block", "eigen", "iterative", "refit"),
    False: ("exact", "limit", "influence", "iterative", "refit"),
}
#: the same with features instead of the kernel matrix
SHOWN_WITH_FEATURES = {True: ("gram", "refit"), False: ("exact", "limit", "refit")}


def estimate(work: Workload, method: str, rates: Rates = HOST_RATES) -> Estimate:
    """Expected cost of a workload by one method.

    Parameters
    ----------
    work : Workload
    method : {"block", "eigen", "refit", "exact", "limit", "influence", "iterative"}
        The first two are for the squared loss only.
    rates : Rates, default=HOST_RATES
        Speeds of the backend with one thread, those of its `Arrays`.
    """
    known = _costs(work)
    check_choice("method", method, known)
    if not work.features and METHODS[method].quadratic_only and not work.quadratic:
        raise ValueError(
            f"method={method!r} works for the squared loss only, not for {work.loss!r}; "
            "use 'exact', 'limit' or 'refit'"
        )
    cost = known[method](work, rates.at(work.threads, 8 if work.features else work.itemsize))
    nbytes = device_bytes(work, method) if rates.on_device else peak_bytes(work, method)
    return Estimate(
        method=method,
        flops=work.repeats * cost.flops,
        nbytes=nbytes if rates.on_device else work.busy * nbytes,
        seconds=work.rounds * cost.seconds,
        tiled=work.tiled and not work.features,
    )


def _costs(work: Workload) -> Mapping[str, Callable[[Workload, Rates], Cost]]:
    """The costs of every method, by name."""
    if work.features:
        return {one.name: one.cost for one in FEATURE_METHODS.values()} | {"refit": refit_cost}
    return {name: method.cost for name, method in METHODS.items()}


def split_estimate(work: Workload, rates: Rates = HOST_RATES) -> Estimate:
    """Expected cost of splits with a kernel matrix each, counted as kernels of the workload.

    Their ``n`` rows are those that a split trains on and those that it tests, ``removed``.
    """
    if work.features or work.given:
        one = fit_estimate(work, rates)
        seconds, nbytes = work.rounds * work.lams * one.seconds, peak_bytes(work, "fit")
        flops = work.repeats * work.lams * one.flops
        return replace(one, flops=flops, seconds=seconds, nbytes=work.busy * nbytes)
    cost = TrainTest.cost(work, rates.at(work.threads, work.itemsize))
    if work.quadratic and work.n >= MIN_ITERATED_ROWS:
        cost = METHODS["iterative"].cost(work, rates.at(work.threads, work.itemsize))
    nbytes = work.busy * peak_bytes(work, "train_test")
    return Estimate("train_test", work.repeats * cost.flops, nbytes, work.rounds * cost.seconds)


def fit_estimate(work: Workload, rates: Rates = HOST_RATES) -> Estimate:
    """Expected cost of one fit to all rows, with the kernel and the loss of a workload."""
    alone = replace(work, lams=1, removed=(), kernels=1, models=0, ridges=1, tiled=False)
    if work.features:
        return estimate(alone, "refit", rates)
    names = ("block", "iterative") if work.quadratic else ("limit", "iterative")
    return min((estimate(alone, one, rates) for one in names), key=lambda one: one.seconds)


def candidates(
    work: Workload, rates: Rates = HOST_RATES, available: float | None = None
) -> list[Estimate]:
    """The estimates of every method that fits the loss, the fastest first."""
    available = available_memory(work.busy) if available is None else available
    names = (SHOWN_WITH_FEATURES if work.features else SHOWN_METHODS)[work.quadratic]
    shown = [_fitting(work, method, rates, available) for method in names]
    return sorted(shown, key=lambda one: one.seconds)


def choose(
    work: Workload,
    method: str = "auto",
    rates: Rates = HOST_RATES,
    available: float | None = None,
    products: bool = True,
) -> Estimate:
    """The estimate of the method to use.

    "auto" is the fastest exact method that fits into the memory available (that of the system when
    None), or the smallest if none fits, which :func:`check_memory` then refuses. ``products`` is
    whether nothing but products with K is needed.
    """
    if work.features:
        return estimate(work, feature_method(method, work.quadratic), rates)
    check_choice("method", method, ("auto", *METHODS))
    available = available_memory(work.busy) if available is None else available
    if method != "auto":
        return _fitting(work, method, rates, available, products)
    known = AUTO_ON_DEVICE if rates.on_device else AUTO_METHODS
    names = [
        name
        for name in known[work.quadratic]
        if name != "iterative" or (products and _iterated(work))
    ]
    options = [_fitting(work, name, rates, available) for name in names]
    fitting = [one for one in options if one.nbytes <= available]
    if not fitting:
        return min(options, key=lambda one: one.nbytes)
    return min(fitting, key=lambda one: one.seconds)


def _iterated(work: Workload) -> bool:
    """Whether an iteration may be chosen."""
    return work.n >= MIN_ITERATED_ROWS and not work.one_row_each


def _fitting(
    work: Workload, method: str, rates: Rates, available: float, products: bool = True
) -> Estimate:
    """The estimate, with tiles instead of a matrix that does not fit, where there is a choice."""
    found = estimate(work, method, rates)
    may_tile = method == "iterative" and products and not work.given and not work.features
    if may_tile and found.nbytes > available:
        return estimate(replace(work, tiled=True), method, rates)
    return found
