"""How far the influence series is from t-fold cross-validation of the SVM: 2016, Theorem 2.

Liu and Liao (Information Sciences 2016) round the corner of the hinge over a half width delta, take
r terms of the influence series for every fold, and state, for the error rate, K(x, x) <= kappa, no
intercept, mean scaling and t folds of equal size,

    |t-CV - BIFCV| <= delta/2 + kappa / (lam (r + 1) (t - 1)).                    (as printed)

**Where it holds.** If lam > kappa / (2 (1 - delta)), as lam = 1 of their Table 1, then |u| <= kappa
/ (2 lam) < 1 - delta: every row of every fit lies on the straight part of the loss, f is linear in
the weights, one term of the series is the whole of it, and both sides of the difference are equal,
for any loss, the error rate included.

**Where it does not.** Three steps of the proof fail below that. The error rate is not Lipschitz;
Theorem 1 compares objectives, not predictions, so that delta/2 does not follow from it; and the
recursion for the terms gives kappa / (lam (t - 1)), without the order. The first is repaired by a
loss that *is* Lipschitz, such as the hinge; the other two are not, and the printed bound is wrong
for the hinge, too: the tests have a Gaussian kernel where refits break it.

**What does hold**, for every loss with |ell(y, u) - ell(y, v)| <= |u - v| and every single row.
Both objectives are strongly convex with modulus 2 lam in f, and the losses differ by delta/4 at
most, so that the two models differ by

    |u_svm - u_delta| <= sqrt(kappa delta / (8 lam)).

Leaving out one fold of t changes the gradient at f by 2 sqrt(kappa) / t at most, hence every
prediction by kappa / (lam t), and that bounds the first term T_1 of the series, too. With A the
operator (1/n) sum d_i K_i K_i' and A_S the fold's part of it, the terms follow T_{j+1} = -(2 lam +
A)^-1 (A_{not S} / (t - 1) - A_S) T_j, whose norm (in the metric of 2 lam + A) is at most

    q = a / (2 lam + a) = kappa / (kappa + 4 lam delta t),      a = kappa / (2 delta t),

as A_S <= a and A_{not S} <= (t - 1) a. If no row moves to another piece of the loss, the series
sums to the truth, and what is missing is at most the rest of the geometric series; if rows do move,
nothing better is known than truth and series each being near the full fit:

    |u_delta^(-S) - series| <= kappa / (lam t) q^r / (1 - q)                    no row moves
    |u_delta^(-S) - series| <= kappa / (lam t) (1 + (1 - q^r) / (1 - q))        in any case.

For 2 lam delta t >= kappa, which is q <= 1/3, the first is within the second term of what is
printed. Like all bounds made before the fit they are wide. ``method="limit"`` bounds the error of
each fold's own values, rows that move included; ``method="exact"`` needs no bound.

**Folds and order for an accuracy.** Equation 6 makes the right-hand side of the printed bound at
most ``accuracy``, with equal factors for folds and order:

    t - 1 = r + 1 = ceil(sqrt(kappa / (lam (accuracy - delta/2)))).

(Equation 5 asks for the smallest t + r, which unequal factors sometimes reduce by one; Table 1
follows equation 6, and so does :func:`granularity`.) For error rates, and for small lam for any
loss, this is a rule of thumb. The smallest lam of a search decides for all: the paper takes the
folds of lam = 1 for lams down to 1/8, and for the small lams of practice equation 6 soon asks for
more folds than there are rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onefit._validation import check_positive

__all__ = ["bifcv_discrepancy", "bifcv_lipschitz_bound", "granularity"]


def bifcv_discrepancy(
    folds: int, order: int, lam: float, delta: float = 0.01, kappa: float = 1.0
) -> float:
    """Theorem 2 as printed: delta/2 + kappa / (lam (r + 1) (t - 1)).

    A fact for lam > kappa / (2 (1 - delta)), a rule of thumb below: see the module.

    Parameters
    ----------
    folds : int
        t, at least 2.
    order : int
        r, at least 1.
    lam : float
        In mean scaling.
    delta : float, default=0.01
        Half width of the rounded corner of the hinge.
    kappa : float, default=1.0
        Bound on K(x, x).

    Examples
    --------
    >>> round(bifcv_discrepancy(folds=5, order=3, lam=1.0), 4)
    0.0675
    """
    t, r, lam, delta, kappa = _checked(folds, order, lam, delta, kappa)
    return delta / 2.0 + kappa / (lam * (r + 1) * (t - 1))


def bifcv_lipschitz_bound(
    folds: int,
    order: int,
    lam: float,
    delta: float = 0.01,
    kappa: float = 1.0,
    rows_move: bool = True,
) -> float:
    """A bound that holds, for losses that are Lipschitz with constant 1 in the prediction.

    It bounds the difference of any single held-out value, and so that of the mean of a loss such as
    the hinge or the absolute value. It does not hold for the error rate. Without an intercept.

    Parameters
    ----------
    folds, order, lam, delta, kappa
        As in :func:`bifcv_discrepancy`; if n is no multiple of t, take n divided by the size of the
        largest fold, rounded down.
    rows_move : bool, default=True
        False where it is known that no row changes its piece of the loss when a fold is left out.

    Examples
    --------
    >>> round(bifcv_lipschitz_bound(folds=5, order=3, lam=1.0, delta=0.1), 3)
    0.601
    """
    t, r, lam, delta, kappa = _checked(folds, order, lam, delta, kappa)
    rounded = math.sqrt(kappa * delta / (8.0 * lam))
    stretch = 4.0 * lam * delta * t
    q, rest = kappa / (kappa + stretch), (kappa + stretch) / stretch  # rest is 1 / (1 - q)
    # (1 - q^r) / (1 - q), without cancellation where q is near one
    begun = -math.expm1(-r * math.log1p(stretch / kappa)) * rest
    return rounded + kappa / (lam * t) * (1.0 + begun if rows_move else q**r * rest)


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
    lam, delta, kappa = _sizes(lam, delta, kappa)
    if accuracy <= delta / 2:
        raise ValueError(
            f"accuracy={accuracy:g} is not above delta/2={delta / 2:g}, which rounding the hinge "
            f"costs already; use a larger accuracy, or delta below {2 * accuracy:g}"
        )
    root = math.sqrt(kappa / (lam * (accuracy - delta / 2)))
    steps = max(2, math.ceil(root * (1.0 - 1e-12)))  # a whole root stays whole
    return steps + 1, steps - 1


def _checked(
    folds: Any, order: Any, lam: Any, delta: Any, kappa: Any
) -> tuple[int, int, float, float, float]:
    for name, value, least in (("folds", folds, 2), ("order", order, 1)):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(folds), int(order), *_sizes(lam, delta, kappa)


def _sizes(lam: Any, delta: Any, kappa: Any) -> tuple[float, float, float]:
    """The numbers as floats; an error explains each that is not positive."""
    return (
        check_positive("lam", lam, "it is the weight of the penalty"),
        check_positive("delta", delta, "it is the half width of the hinge's corner"),
        check_positive("kappa", kappa, "it is the largest K(x, x), 1 for a Gaussian kernel"),
    )
