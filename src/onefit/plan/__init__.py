"""Expected time and memory of each held-out method, and the choice among them.

Every method counts its operations, as calls of a few primitives, and its memory
(`onefit.heldout.base.HeldOutMethod`). Primitives have fixed speeds (``onefit.linalg.rates``), and
the memory of a workload (``matrices.py``) is compared with the memory available (``memory.py``),
and the whole is printed as a table (``text.py``). Nothing is measured at run time and nothing is
kept on disk: equal workloads lead to the same choice on every computer. A limit of time is kept by
the clock (``deadline.py``).
"""

from __future__ import annotations

from onefit._format import duration
from onefit.heldout.workload import Estimate, Workload
from onefit.plan.choice import candidates, choose, estimate, fit_estimate, split_estimate
from onefit.plan.deadline import Deadline, OutOfTime, spread
from onefit.plan.matrices import peak_bytes
from onefit.plan.memory import (
    available_memory,
    check_bytes,
    check_memory,
    check_method,
    choose_fit,
)
from onefit.plan.text import Explanation, announce, explain, explain_splits

__all__ = [
    "Deadline",
    "Estimate",
    "Explanation",
    "OutOfTime",
    "Workload",
    "announce",
    "available_memory",
    "candidates",
    "check_bytes",
    "check_memory",
    "check_method",
    "choose",
    "choose_fit",
    "duration",
    "estimate",
    "explain",
    "explain_splits",
    "fit_estimate",
    "peak_bytes",
    "split_estimate",
    "spread",
]
