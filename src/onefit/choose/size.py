"""What is refused before any work: settings that make no sense, and rows that do not fit."""

from __future__ import annotations

import numpy as np

from onefit import plan
from onefit.choose.options import Options
from onefit.choose.splits import is_count
from onefit.grids import LAMS_JMLR

__all__ = ["check_rows", "check_size"]

#: rows beyond which the time is looked at before anything is read, and kernels of a usual grid
MANY_ROWS, USUAL = 50_000, 12


def check_size(n: int, options: Options) -> None:
    """Refuse folds and jobs that make no sense, and what no method could hold."""
    if options.jobs == 0:
        raise ValueError(
            f"{options.said('jobs', 0)} would do nothing; use 1 or more, or -1 for every core"
        )
    _check_folds(n, options)
    if options.tol is not None and options.method not in ("auto", "iterative"):
        raise ValueError(
            f"--tol is for --method iterative, not for {options.method!r}, which has no tolerance"
        )
    _check_minutes(options)
    # a search says itself what does not fit; commands say it before anything is encoded
    if options.whole and is_count(options.folds) and not options.python:
        check_rows(n, (n // options.folds,) * options.folds, options.loss in (None, "squared"))


def _check_folds(n: int, options: Options) -> None:
    k, said = options.folds, options.said("folds", options.folds)
    if not is_count(k):
        return
    if k < 2:
        raise ValueError(f"{said} is too few; use 2 at least")
    if k > n:
        raise ValueError(f"{said} is more than the {n} rows; use at most {n}")


def _check_minutes(options: Options) -> None:
    """Refuse a limit of time where features cannot be fallen back to, or are there already."""
    if options.minutes is None:
        return
    for name, value in (("--approximation", options.approximation), ("--device", options.device)):
        if value is not None:
            raise ValueError(
                f"--minutes turns from the whole kernel to features on the processor where that "
                f"takes too long, which {name} {value} decides already; leave one of them out"
            )


def check_rows(n: int, removed: tuple[int, ...] = (), squared: bool = True) -> None:
    """Refuse so many rows that no method could hold its arrays; splits take some more.

    The squared loss has a method that holds no matrix.
    """
    work = plan.Workload(n=max(n, 1), lams=len(LAMS_JMLR), removed=removed, tiled=True)
    ways = ("block", "iterative") if squared else ("block",)
    needed, available = min(plan.peak_bytes(work, way) for way in ways), plan.available_memory()
    if needed <= available:
        _check_time(work, n)
        return
    rows = int(0.9 * n * np.sqrt(available / needed))
    raise MemoryError(
        f"{n:,} rows need {needed / 1024**3:,.0f} GiB for the matrices of a kernel machine, and "
        f"{available / 1024**3:,.1f} GiB are available; nothing was run: use --approximation "
        "nystrom for features in place of the matrices, or --rows N to select on a random sample "
        f"of N rows (at most about {rows:,} here; {min(rows, 3000):,} takes minutes)"
    )


def _check_time(work: plan.Workload, n: int) -> None:
    """Refuse what takes longer than anybody waits for, whatever the memory."""
    if n <= MANY_ROWS:
        return
    days = USUAL * plan.estimate(work, "iterative").seconds / 86400.0
    if days > 1.0:
        rows = int(n / np.sqrt(days))
        raise MemoryError(
            f"{n:,} rows are too many for one machine: a selection would take {days:,.0f} days; "
            "nothing was run: use --minutes M or --approximation nystrom for features in place of "
            "the kernel matrix, or --rows N to select on a random sample of N rows (about "
            f"{rows:,} take a day, 20,000 take minutes)"
        )
