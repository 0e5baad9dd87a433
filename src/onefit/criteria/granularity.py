"""Folds, and order of the influence series, for a wanted accuracy: Liu and Liao 2016.

Their Theorem 2 bounds the difference between t-fold cross-validation of the SVM and that of its
rounded hinge by the influence series of order r,

    |t-CV - BIFCV| <= delta/2 + kappa / (lam (r + 1) (t - 1)),

and their equation 6 makes the right-hand side at most ``accuracy``, folds and order sharing the
burden:

    t - 1 = r + 1 = ceil(sqrt(kappa / (lam (accuracy - delta/2)))).

(Their equation 5 asks for the smallest t + r, which unequal factors reach with one less at times;
equation 6 is what their Table 1 has, and what is done here.)

**What this does not guarantee.** The proof treats the 0/1 loss as Lipschitz with constant 1, which
it is not: two predictions as close as one likes may lie on two sides of zero. The bound holds for
losses that are Lipschitz (the hinge); for error rates it is a rule of thumb. A fact, for every
fold, is the error bound of ``method="limit"``, and ``method="exact"`` needs none.

**No row in the corner.** The series needs rows with curvature, for the rounded hinge those with
|1 - y u| <= delta. Without any, and with an intercept (the paper has none), the intercept has no
influence function. One candidate of a search may come to that where others do not: two classes of
one size and a large lam. That candidate has no value then, with the reason, and the search goes on.
"""

from __future__ import annotations

import math

from onefit._validation import check_positive

__all__ = ["granularity"]


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
    lam = check_positive("lam", lam, "it is the weight of the penalty")
    delta = check_positive("delta", delta, "it is the half width of the hinge's corner")
    kappa = check_positive("kappa", kappa, "it is the largest K(x, x), 1 for a Gaussian kernel")
    if accuracy <= delta / 2:
        raise ValueError(
            f"accuracy={accuracy:g} is not above delta/2={delta / 2:g}, which rounding the hinge "
            f"costs already; use a larger accuracy, or delta below {2 * accuracy:g}"
        )
    root = math.sqrt(kappa / (lam * (accuracy - delta / 2)))
    steps = max(2, math.ceil(root * (1.0 - 1e-12)))  # a whole root stays whole
    return steps + 1, steps - 1
