"""Folds, and order of the influence series, for a wanted accuracy: Liu and Liao 2016.

Their Theorem 2 states a bound on the difference between t-fold cross-validation of the SVM and that
of its rounded hinge by the influence series of order r (onefit.criteria.discrepancy),

    |t-CV - BIFCV| <= delta/2 + kappa / (lam (r + 1) (t - 1)),

and their equation 6 makes the right-hand side at most ``accuracy``, with equal factors for folds
and order:

    t - 1 = r + 1 = ceil(sqrt(kappa / (lam (accuracy - delta/2)))).

(Their equation 5 asks for the smallest t + r, which unequal factors sometimes reduce by one; their
Table 1 follows equation 6, and so does this function.)

**The lambdas of a search.** The right-hand side grows as lam falls, so that the smallest lam of the
search decides for all: :func:`granularity_for`. The paper takes the folds of lam = 1 for lams down
to 1/8. For the small lams of practice equation 6 soon asks for more folds than there are rows. Then
leave-one-out, t = n, the finest granularity possible, is used, with r = t - 2 as in equation 6, and
the result states that the limit was reached, and the accuracy that Theorem 2 gives there.

**What this does not guarantee.** The proof treats the 0/1 loss as Lipschitz with constant 1, which
it is not: two predictions as close as one likes may lie on two sides of zero. For error rates, and
for small lam for any loss, the bound is a rule of thumb. ``method="limit"`` has a proven error
bound for every fold, and ``method="exact"`` needs none.

**No row in the corner.** The series needs rows with curvature, for the rounded hinge those with
|1 - y u| <= delta. Without any, and with an intercept (the paper has none), the intercept has no
influence function. This may happen for one candidate of a search and not for others: two classes of
equal size and a large lam. That candidate then has a reason instead of a value, and the search
continues.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from onefit._validation import check_positive
from onefit.criteria.discrepancy import bifcv_discrepancy, check_sizes

__all__ = ["Granularity", "granularity", "granularity_for"]


def granularity(
    accuracy: float, lam: float, delta: float = 0.01, kappa: float = 1.0
) -> tuple[int, int]:
    """Folds t and order r for the wanted accuracy of approximate cross-validation.

    Parameters
    ----------
    accuracy : float
        Greater than delta / 2.
    lam : float
    delta : float, default=0.01
        Half width of the rounded corner of the hinge.
    kappa : float, default=1.0
        Bound on K(x, x).

    Returns
    -------
    folds, order : int
        At least 3 and 1.

    Examples
    --------
    The paper's Table 1:

    >>> [granularity(accuracy, lam=1.0) for accuracy in (0.2, 0.1, 0.05, 0.01)]
    [(4, 2), (5, 3), (6, 4), (16, 14)]
    """
    accuracy = check_positive("accuracy", accuracy, "try 0.1")
    lam, delta, kappa = check_sizes(lam, delta, kappa)
    if accuracy <= delta / 2:
        raise ValueError(
            f"accuracy={accuracy:g} is not above delta/2={delta / 2:g}, which rounding the hinge "
            f"costs already; use a larger accuracy, or delta below {2 * accuracy:g}"
        )
    root = math.sqrt(kappa / (lam * (accuracy - delta / 2)))
    steps = max(2, math.ceil(root * (1.0 - 1e-12)))  # a whole root stays whole
    return steps + 1, steps - 1


@dataclass(frozen=True)
class Granularity:
    """Folds and order for all lambdas of a search.

    Attributes
    ----------
    folds, order : int
        t and r = t - 2.
    lam : float
        The smallest lam, which decides; in mean scaling.
    accuracy : float
        What Theorem 2 gives for these folds, this order and that lam.
    capped : bool
        Whether there are too few rows for the folds that equation 6 asks for: ``folds`` is n then,
        and ``accuracy`` is not what was wanted.
    """

    folds: int
    order: int
    lam: float
    accuracy: float
    capped: bool


def granularity_for(
    accuracy: float, lams: Any, n: int, delta: float = 0.01, kappa: float = 1.0
) -> Granularity:
    """Folds and order that serve every one of the lambdas on n rows.

    A warning is given, and ``capped`` is True, where the n rows allow fewer folds than wanted.

    Parameters
    ----------
    accuracy : float
        Greater than delta / 2.
    lams : sequence of float
        In mean scaling (those of total scaling over n).
    n : int
        Rows, at least 3: the most folds that there can be.
    delta, kappa : float
        As in :func:`granularity`.

    Examples
    --------
    >>> granularity_for(0.1, [0.125, 1.0, 8.0], n=200)
    Granularity(folds=11, order=9, lam=0.125, accuracy=0.085, capped=False)
    """
    lam = _smallest(lams)
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 3:
        raise ValueError(
            f"n must be a whole number of at least 3, got {n!r}: with two rows there is no third "
            "fold, and equation 6 needs at least three"
        )
    wanted, _ = granularity(accuracy, lam, delta, kappa)
    folds = min(wanted, int(n))
    reached = bifcv_discrepancy(folds, folds - 2, lam, delta, kappa)
    if folds < wanted:
        warnings.warn(
            f"accuracy={accuracy:g} at lam={lam:.3g} asks for {wanted:,} folds, and there are "
            f"{n:,} rows: leave-one-out is taken, for which Theorem 2 gives {reached:.3g}; raise "
            "the smallest lam, or use method='exact', which needs no such choice",
            stacklevel=2,
        )
    return Granularity(folds, folds - 2, lam, reached, folds < wanted)


def _smallest(lams: Any) -> float:
    values = np.ravel(np.asarray(lams, dtype=object))
    if values.size == 0:
        raise ValueError("lams is empty; give the lambdas that are searched")
    return min(
        check_positive(f"lams[{i}]", lam, "it is a weight of the penalty")
        for i, lam in enumerate(values)
    )
