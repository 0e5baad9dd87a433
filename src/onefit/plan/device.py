"""The same plan on a device: its own speeds, and the memory that is free there."""

from __future__ import annotations

from dataclasses import replace

from onefit._validation import check_choice
from onefit.plan.choice import FEATURES, SHOWN, estimate
from onefit.plan.device_cost import options
from onefit.plan.device_rates import H200, DeviceRates
from onefit.plan.memory import GIB
from onefit.plan.text import aligned
from onefit.plan.workload import Estimate, Workload
from onefit.stream.methods import feature_method

__all__ = ["check_device_memory", "choose_on_device", "explain_on_device"]

#: what "auto" chooses from, for the squared loss and for any other
AUTO = {True: ("iterative", "block", "eigen"), False: ("exact", "iterative")}
#: rows from which "auto" takes an iteration
LARGE = 4000


def choose_on_device(
    work: Workload,
    method: str,
    room: float,
    rates: DeviceRates = H200,
    products: bool = True,
) -> Estimate:
    """The estimate of the method to take: the fastest that fits, or the one that was named.

    ``products`` says whether products with K are all that is needed, so that it need not be held.
    """
    if work.features:
        return options(work, feature_method(method, work.quadratic), rates)[0]
    check_choice("method on a device", method, ("auto", *SHOWN[True], *SHOWN[False]))
    if method in ("block", "eigen") and not work.quadratic:
        raise ValueError(f"method {method!r} works for the squared loss only, not {work.loss!r}")
    names = AUTO[work.quadratic] if method == "auto" else (method,)
    if method == "auto" and (work.n < LARGE or work.one_row_each):
        names = tuple(name for name in names if name != "iterative")
    found = [one for name in names for one in options(work, name, rates)]
    found = [one for one in found if products or not one.tiled]
    fitting = [one for one in found if one.nbytes <= room]
    if fitting:
        return min(fitting, key=lambda one: one.seconds)
    return min(found, key=lambda one: one.nbytes)


def check_device_memory(work: Workload, estimate: Estimate, room: float, where: str) -> None:
    """Raise MemoryError, with the numbers, if an estimate exceeds what is free on a device."""
    if estimate.nbytes <= room:
        return
    advice = "pass X as float32, or use fewer rows"
    if work.features:
        advice = f"use fewer features than {work.features} (n_components)"
    elif estimate.method != "iterative" and not work.one_row_each:
        advice = f"use method='iterative', {advice}"
    raise MemoryError(
        f"method {estimate.method!r} on n={work.n} rows needs {estimate.nbytes / GIB:.3g} GiB on "
        f"{where}, where {room / GIB:.3g} GiB are free; {advice}"
    )


def explain_on_device(
    work: Workload, chosen: Estimate, where: str, rates: DeviceRates = H200
) -> str:
    """A table of what the methods are expected to cost there, and on the host."""
    grid = f"{work.kernels} x {work.lams} x {work.folds} (kernels x lambdas x splits)"
    own, rows = replace(work, workers=1), []
    for name in (FEATURES if work.features else SHOWN)[work.quadratic]:
        for one in options(work, name, rates):
            mark = ">" if (name, one.tiled) == (chosen.method, chosen.tiled) else " "
            label = f"{mark} {name}{', by tiles' if one.tiled else ''}"
            host = estimate(replace(own, tiled=one.tiled), name)
            rows.append([label, *_price(one), *_price(host)])
    title = f"Plan on {where}: {grid}, {work.n} rows, {work.loss} loss, float{8 * work.itemsize}"
    head = ["  method", "memory", "time", "on the host", "time"]
    lines = [title, "", *aligned(head, rows)]
    if not work.quadratic:
        lines += ["", "The number of Newton steps depends on the data: these are rough estimates."]
    return "\n".join(lines)


def _price(one: Estimate) -> list[str]:
    return [f"{one.nbytes / GIB:.2f} GiB", f"{one.seconds:.2f} s"]
