"""Two-sided paired tests, and Holm's correction for their number.

Holm's rule rejects the smallest of m p-values if it is below level / m, the next if it is below
level / (m - 1), and so on until the first that is not; the chance of one false rejection or more
among the m is then at most the level, whatever their dependence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[Any]

__all__ = ["LEVEL", "holm", "paired_t", "paired_wilcoxon"]

LEVEL = 0.05


def paired_t(gaps: Array) -> float:
    """The two-sided p-value of Student's test that the mean gap is zero; 1 where all are."""
    if gaps.size < 2 or not np.any(gaps != 0.0):
        return 1.0
    if np.ptp(gaps) == 0.0:
        return 0.0
    return float(stats.ttest_1samp(gaps, 0.0).pvalue)


def paired_wilcoxon(gaps: Array) -> float:
    """The two-sided p-value of Wilcoxon's signed rank test; 1 where all gaps are zero."""
    return float(stats.wilcoxon(gaps).pvalue) if np.any(gaps != 0.0) else 1.0


def holm(p_values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which of the hypotheses are rejected.

    Examples
    --------
    >>> holm([0.04, 0.001, 0.02])
    [True, True, True]
    >>> holm([0.04, 0.001, 0.03])
    [False, True, False]
    """
    rejected = [False] * len(p_values)
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[i] > level / (len(p_values) - rank):
            break
        rejected[i] = True
    return rejected
