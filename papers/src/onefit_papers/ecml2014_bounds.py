"""Bounds on the variance of cross-validation: ECML PKDD 2014, Theorems 1 to 3.

With beta the kernel stability, K(x, x) <= kappa, |y| <= M and m = (k-1) n / k training rows
(printed as (k-1) k / n), the proofs bound the loss stability gamma of the model, and var(CV) <=
gamma (their Lemma 2):

    1, squared loss without intercept:  C_1 beta^2
       C_1 = 16 (kappa^2 / (lam^3 m) + kappa / (lam^2 m))^2 M^4
    2, squared loss with intercept:     C_2 beta^2
       C_2 = 16 ((kappa+1)^2 / (lam^3 m) + (kappa+1) / (lam^2 m))^2 M^4
    3, hinge:                           C_3 beta^(1/2) (1 + C_4 beta^(1/4))^2
       C_3 = 8 C_0^2 kappa^(3/2),   C_0 = 1 / (2 lam),   C_4 = (4 kappa)^(-1/4)

The constants are those that the proofs give, not those printed. A replaced point is a removed and
an added one, which doubles the difference of losses before it is squared: 16 where Theorem 1
prints 8, and 16 (4 times the printed square) in Theorem 2, where M = 1 is tacit. Theorem 3 has lam
where the weight C_0 of the losses in (1/2) ||f||^2 + C_0 mean(loss) must stand, which is
1 / (2 lam) in the paper's objective: as printed the bound would vanish with lam, just where the
model is least stable, and the tests show it violated.

**How to use them.** They are diagnostics: the first two grow like lam^-6, vacuous at the
lambdas one uses. Theorem 2 moreover bounds the inverse of the bordered (indefinite) matrix by 1 /
(m lam), which holds for its part P but not for its corner, so it is no more than a rule of thumb.
beta is estimated on the sample, where the definition asks for all samples.
"""

from __future__ import annotations

import numpy as np

from onefit.criteria.base import check_loss
from onefit.criteria.evidence import positive
from onefit.criteria.stability import kernel_stability
from onefit.problem import Problem

__all__ = ["cv_variance_bound"]


def cv_variance_bound(
    problem: Problem, lam: float, folds: int, stability: float | None = None
) -> float:
    """The bound of the theorem for the model.

    Parameters
    ----------
    problem : Problem
        With the squared loss (Theorem 1 without, Theorem 2 with an intercept) or a smoothed hinge
        (Theorem 3).
    lam : float
    folds : int
        k >= 2.
    stability : float, default=None
        beta; :func:`kernel_stability` of the sample by default.
    """
    check_loss(problem, "cv_variance_bound", ("squared", "smoothed_hinge"))
    if not isinstance(folds, (int, np.integer)) or folds < 2:
        raise ValueError(f"folds must be a whole number of at least 2, got {folds!r}")
    kept = positive(problem)
    beta = kernel_stability(kept.K) if stability is None else float(stability)
    mean_lam = kept.ridge(lam) / float(kept.s.sum())
    kappa = float(kept.K.diagonal.max())
    if problem.loss.name == "smoothed_hinge":
        c3, c4 = 2.0 * kappa**1.5 / mean_lam**2, (4.0 * kappa) ** -0.25
        return float(c3 * beta**0.5 * (1.0 + c4 * beta**0.25) ** 2)
    size = kappa + 1.0 if problem.fit_intercept else kappa
    rows = (folds - 1) * kept.n / folds
    largest = float(np.abs(kept.Y).max())
    inside = (size**2 / mean_lam**3 + size / mean_lam**2) * largest**2 / rows
    return float(16.0 * inside**2 * beta**2)
