"""The method to take: the fastest of those that fit the loss and the memory."""

from __future__ import annotations

from onefit._validation import check_choice
from onefit.plan.cost import COSTS
from onefit.plan.matrices import peak_bytes
from onefit.plan.memory import available_memory
from onefit.plan.rates import Rates, calibrate
from onefit.plan.workload import Estimate, Workload

__all__ = ["candidates", "choose", "estimate"]

#: what "auto" chooses from, for the squared loss and for any other
AUTO = {True: ("block", "eigen"), False: ("exact",)}
#: what is shown beside the choice
SHOWN = {
    True: ("block", "eigen", "refit"),
    False: ("exact", "limit", "influence", "refit"),
}


def estimate(work: Workload, method: str, rates: Rates | None = None) -> Estimate:
    """Expected cost of a workload by one method.

    Parameters
    ----------
    work : Workload
    method : {"block", "eigen", "refit", "exact", "limit", "influence"}
        The first two are for the squared loss only.
    rates : Rates, default=None
        Speeds of the machine; measured (once) when None.
    """
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
    )


def candidates(work: Workload, rates: Rates | None = None) -> list[Estimate]:
    """The estimates of every method that fits the loss, the fastest first."""
    shown = [estimate(work, method, rates) for method in SHOWN[work.quadratic]]
    return sorted(shown, key=lambda one: one.seconds)


def choose(
    work: Workload,
    method: str = "auto",
    rates: Rates | None = None,
    available: float | None = None,
) -> Estimate:
    """The estimate of the method to use.

    A ``method`` that is named is taken. "auto" takes the fastest exact method that fits into the
    memory available (asked of the system when None), or the smallest where none fits: it is
    :func:`check_memory` that refuses.
    """
    if method != "auto":
        check_choice("method", method, ("auto", *COSTS))
        return estimate(work, method, rates)
    options = [estimate(work, name, rates) for name in AUTO[work.quadratic]]
    if available is None:
        available = available_memory(work.busy)
    fitting = [one for one in options if one.nbytes <= available]
    if not fitting:
        return min(options, key=lambda one: one.nbytes)
    return min(fitting, key=lambda one: one.seconds)
