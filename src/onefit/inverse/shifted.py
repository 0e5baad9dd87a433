"""Solutions of M x = r at many shifts c, from one tridiagonal form.

For predictions of given test rows the inverse itself is not needed, only its product with the
targets. With R K R = H T H', T tridiagonal and H a product of Householder reflections,

    (R K R + c I)^-1 r = H (T + c I)^-1 H'r,

so a shift costs O(n) beside the product with H, which is shared by all shifts: no eigenvector is
computed. That costs a fraction of an eigendecomposition (4/3 n^3 operations in all), and from five
shifts on less than a Cholesky factor per shift (1/3 n^3).

*Off the constants.* With R K R reflected to [omega, w'; w, A] (onefit.inverse.off_constants) and x
= [x_0, x_1], rounding is relative to the largest eigenvalue of A. With an intercept x = P r, where
x_0 = 0 and x_1 = (A + c)^-1 r_1. Without, block elimination gives

    z = (A + c)^-1 w,     x_0 = (r_0 - z'r_1) / (omega + c - w'z),     x_1 = (A + c)^-1 r_1 - x_0 z.
"""

from __future__ import annotations

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.inverse.off_constants import OffConstants
from onefit.linalg.reduced import Tridiagonal

__all__ = ["solve_shifted"]


def solve_shifted(
    M: Array, root: Array, targets: Array, fit_intercept: bool, ridges: Array
) -> tuple[Array, float, float, Array]:
    """P r with an intercept, (M + c I)^-1 r without, at every c.

    Parameters
    ----------
    M : (n, n) array
        R K R, column-major, n at least 2; overwritten.
    root : (n,) array
        The diagonal of R.
    targets : (n, q) array
        r.
    fit_intercept : bool
    ridges : (L,) array
        c.

    Returns
    -------
    x : (L, n, q) array
    rounded : float
        Norm of what was rounded: the tridiagonal matrix, and the entries of M before.
    changed : float
        Norm of the change that keeps the matrix positive definite.
    norm : (L,) array
        A bound on the norm of M^-1.
    """
    entry = float(np.abs(np.diagonal(M)).max())
    v = root / np.linalg.norm(root)
    off = OffConstants.of(M, v)
    form = Tridiagonal(M)
    ends = _ends(form.diagonal[1:], form.beside[1:], off.omega)
    # with the sign that v has on the first axis
    r = np.asfortranarray(off.reflected(np.column_stack([targets, -off.sign * off.w])))
    first, r[0] = r[0].copy(), 0.0
    L, (n, q) = ridges.size, targets.shape
    solved, found = form.solve(ridges, r)
    solved = solved.reshape(n, L, q + 1)
    solved[:, ~found] = np.nan
    x, lacking = solved[:, :, :q], 0.0
    if not fit_intercept:
        z = solved[:, :, q]
        tau = off.omega + ridges - r[:, q] @ z
        lacking = float((ridges - tau).max(initial=0.0))
        x[0] = (first[:q] - z.T @ r[:, :q]) / np.maximum(tau, ridges)[:, None]
        x[1:] -= z[1:, :, None] * x[:1]
    x = off.reflected(x.reshape(n, L * q)).reshape(n, L, q)
    changed = max(0.0, -ends[0], lacking)
    left = ridges - changed
    with np.errstate(divide="ignore"):
        norm = np.where(left > 0.0, 1.0 / left, np.inf)
    along = 0.0 if fit_intercept else abs(off.omega)
    rounded = ends[1] + 4.0 * np.sqrt(n) * entry + along
    return x.transpose(1, 0, 2), rounded, changed, norm


def _ends(diagonal: Array, beside: Array, omega: float) -> tuple[float, float]:
    """The smallest eigenvalue of T, and a bound on the largest; an indefinite T is refused."""
    smallest = linalg.smallest_tridiagonal(diagonal, beside)
    sides = np.zeros_like(diagonal)
    sides[1:] += np.abs(beside)
    sides[:-1] += np.abs(beside)
    largest = float((diagonal + sides).max())
    linalg.without_rounding(np.array([smallest, largest], dtype=diagonal.dtype), omega)
    return smallest, largest
