"""Tables with so many rows that no method could hold its arrays, or that would take days."""

from __future__ import annotations

import numpy as np

from onefit import plan
from onefit.grids import LAMS_JMLR

__all__ = ["check_rows"]

#: rows up to which the time is not estimated beforehand, and kernels of a usual grid
MAX_QUICK_ROWS, USUAL_KERNELS = 50_000, 12
ADVICE = "nothing was run: set minutes or approximation, or use fewer rows"


def check_rows(n: int, removed: tuple[int, ...] = (), squared: bool = True) -> None:
    """Refuse tables whose kernel matrices would exceed the memory, or take more than a day.

    Parameters
    ----------
    n : int
        Number of rows.
    removed : tuple of int, default=()
        Rows that each split leaves out, which need some more memory.
    squared : bool, default=True
        Whether the loss is the squared one, which has a method that holds no matrix.
    """
    work = plan.Workload(n=max(n, 1), lams=len(LAMS_JMLR), removed=removed, tiled=True)
    methods = ("block", "iterative") if squared else ("block",)
    needed, available = min(plan.peak_bytes(work, one) for one in methods), plan.available_memory()
    if needed > available:
        rows = int(0.9 * n * np.sqrt(available / needed))
        raise MemoryError(
            f"{n:,} rows need {needed / 1024**3:,.0f} GiB for kernel matrices, and "
            f"{available / 1024**3:,.1f} GiB are available; {ADVICE} (at most about {rows:,})"
        )
    if n <= MAX_QUICK_ROWS:
        return
    days = USUAL_KERNELS * plan.estimate(work, "iterative").seconds / 86400.0
    if days > 1.0:
        raise MemoryError(
            f"{n:,} rows are too many for a kernel matrix: a selection would take {days:,.0f} "
            f"days; {ADVICE} (about {int(n / np.sqrt(days)):,} take a day)"
        )
