"""The plan in words: a table of what each method would cost, and why one was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape

from onefit._format import aligned, count, duration, memory
from onefit.heldout.workload import Estimate, Workload
from onefit.linalg.rates import HOST_RATES, Rates
from onefit.plan.choice import candidates, estimate
from onefit.progress import MIN_ANNOUNCED_SECONDS

__all__ = ["Explanation", "announce", "explain", "explain_splits"]

#: methods whose values differ from those of refitting
APPROXIMATE = ("limit", "influence")


class Explanation(str):
    """A plan in words; a notebook shows it as it is printed.

    Attributes
    ----------
    refusal : str
        Why a fit would refuse the plan; empty if it would not.
    """

    refusal: str

    def __new__(cls, text: str, refusal: str = "") -> Explanation:
        """The text, with the refusal before it."""
        warned = f"A fit will refuse this plan: {refusal}.\n\n{text}" if refusal else text
        found = super().__new__(cls, warned)
        found.refusal = refusal
        return found

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


def explain(
    work: Workload,
    chosen: Estimate,
    rates: Rates = HOST_RATES,
    available: float | None = None,
    where: str = "",
) -> str:
    """A plain-text table of the expected costs, the choice marked, and the reason for it.

    ``where`` names a device; the time on the host is then shown too.
    """
    known = candidates(work, rates, available)
    if chosen.method not in (one.method for one in known):
        known = sorted([*known, chosen], key=lambda one: one.seconds)
    rows = [
        [
            f"{'>' if one.method == chosen.method else ' '} {one.method}",
            f"{one.flops:.1e}",
            memory(one.nbytes),
            duration(one.seconds),
            f"{one.seconds / chosen.seconds:.2f}",
            *([duration(estimate(work, one.method).seconds)] if where else []),
        ]
        for one in known
    ]
    head = ["  method", "flops", "memory", "time", "ratio", *(["on the host"] if where else [])]
    lines = [_title(work, where), "", *aligned(head, rows)]
    refit = next(one for one in known if one.method == "refit")
    lines += ["", *_reasons(work, chosen, known, rates), _speed_up(chosen, refit)]
    if not work.quadratic:
        lines.append("The number of Newton steps depends on the data: these are rough estimates.")
    return "\n".join(lines)


def explain_splits(works: Mapping[Workload, Estimate]) -> str:
    """Time and memory of splits with a kernel matrix each, and time of a fit per candidate."""
    seconds = sum(one.seconds for one in works.values())
    nbytes = max(one.nbytes for one in works.values())
    refits = sum(estimate(work, "refit").seconds for work in works)
    return (
        f"expected to take {duration(seconds)} and {memory(nbytes)}; a fit per candidate and "
        f"split, as GridSearchCV does it: {duration(refits)}, without its kernel matrices"
    )


def announce(works: Mapping[Workload, Estimate]) -> str:
    """The expected time and faster alternatives; empty if the time is short."""
    seconds = sum(one.seconds for one in works.values())
    if seconds <= MIN_ANNOUNCED_SECONDS:
        return ""
    (work, chosen), *_ = sorted(works.items(), key=lambda pair: -pair[1].seconds)
    advice = []
    if chosen.method == "iterative":
        advice.append("a looser tolerance (Iterative(tol=1e-4))")
    elif chosen.method in ("exact", "refit") and not work.quadratic:
        limit = seconds * estimate(work, "limit").seconds / chosen.seconds
        advice.append(f"method 'limit' ({duration(limit)})")
    elif chosen.method in ("block", "eigen") and not work.one_row_each:
        one = seconds * estimate(work, "iterative").seconds / chosen.seconds
        advice += [f"method 'iterative' ({duration(one)})"] if one < seconds else []
    if work.features:
        fewer = estimate(replace(work, features=max(1, work.features // 2)), chosen.method)
        advice.append(
            f"half of the features ({duration(seconds * fewer.seconds / chosen.seconds)})"
        )
    half = replace(work, n=work.n // 2, removed=tuple(max(1, m // 2) for m in work.removed))
    part = seconds * estimate(half, chosen.method).seconds / chosen.seconds
    advice.append(f"a random half of the rows ({duration(part)})")
    if work.kernels > 1:
        advice.append(f"fewer kernels ({duration(seconds / work.repeats)} each)")
    faster = ", or ".join(advice)
    return f"expected to take {duration(seconds)} by method {chosen.method!r}; faster: {faster}"


def _title(work: Workload, where: str) -> str:
    small, large = min(work.removed, default=0), max(work.removed, default=0)
    removed = f"{small:,}" if small == large else f"{small:,} to {large:,}"
    models = count(min(work.repeats, work.kernels), "kernel")
    if work.repeats > work.kernels:
        models = f"{work.repeats:,} models on {models}"
    parts = [
        f"{models} x {count(work.lams, 'lambda')} x "
        f"{count(work.folds, 'split')} ({removed} of {work.n:,} rows removed)",
        f"{count(work.targets, 'target')}",
        *([count(work.features, "feature")] if work.features else []),
        f"{work.loss} loss",
        f"float{8 * work.itemsize}",
        f"{count(work.busy, 'worker')} with {count(work.threads, 'BLAS thread')}",
    ]
    return f"Plan{f' on {where}' if where else ''}: " + ", ".join(parts)


def _reasons(work: Workload, chosen: Estimate, known: list[Estimate], rates: Rates) -> list[str]:
    """The reason for a method, and for preferring it to a faster one."""
    factors = work.lams * work.ridges
    ratio = rates.at(work.threads, work.itemsize).factors_per_eigendecomposition(work.n)
    reasons = {
        "eigen": f"one eigendecomposition serves {count(work.lams, 'lambda')}; Cholesky would "
        f"factor {count(factors, 'time')}, and the former costs about {ratio:.1f} of the latter",
        "block": f"{count(factors, 'Cholesky factor')}, each with its inverse, for "
        f"{count(work.lams, 'lambda')}; one eigendecomposition costs about {ratio:.1f} of these",
        "exact": f"one fit per lambda instead of {work.folds}; points that change their piece of "
        "the loss are repaired",
        "limit": f"one fit per lambda instead of {work.folds}; not exact where points change their "
        "piece of the loss",
        "influence": f"one fit per lambda instead of {work.folds}, and a truncated series",
        "iterative": f"one iteration for {count(work.columns, 'problem')}, each step a product "
        f"with {'tiles of the kernel matrix' if chosen.tiled else 'the kernel matrix'}",
        "gram": f"sums of products of {count(work.features, 'feature')} in one pass, then "
        f"{count(work.folds, 'small matrix', 'small matrices')} for {count(work.lams, 'lambda')}",
        "refit": "the honest definition: a fit per lambda and split",
    }
    lines = [f"Why {chosen.method}: {reasons[chosen.method]}."]
    equals = [one for one in known if one.method not in APPROXIMATE]
    faster = [one for one in equals if one.seconds < chosen.seconds]
    if faster:
        names = ", ".join(f"{one.method} ({memory(one.nbytes)})" for one in faster)
        lines.append(f"Expected to be faster, but not chosen: {names}.")
    return lines


def _speed_up(chosen: Estimate, refit: Estimate) -> str:
    ratio = refit.seconds / chosen.seconds
    return (
        f"Refitting every split, as GridSearchCV does: {refit.flops:.1e} flops, "
        f"{duration(refit.seconds)}; expected speed-up {ratio:.1f}x, without the kernel matrices "
        "that GridSearchCV computes again for every fit."
    )
