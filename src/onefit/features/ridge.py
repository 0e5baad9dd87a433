"""Least squares in feature space: a split's models at all lambdas from one reduction.

With the sums of the rows that a split trains on (onefit.features.moments), Lambda = lam sum(s)
under mean scaling and lam under total scaling,

    A = G - g g' / sum(s),   r = B_y - g ybar',   (A + Lambda) w = r,   b = ybar - gbar'w,

g = sum s phi, a bar for a weighted mean; without an intercept A = G, r = B_y. If landmarks are
dropped, A and r are taken in the coordinates of the functions that remain. One reduction of A, to
tridiagonal form or on a device to its eigenvectors, serves all lambdas (onefit.linalg.reduced). A
is where the rows are; what has a column per lambda and target is NumPy's.

**Certificate.** Let rho = r - (A + Lambda) w be the residual of the computed w, and let dA and dr
bound the rounding of A and r. Then

    ||w - w*|| <= (||rho|| + ||dA w|| + ||dr||) / Lambda,
    |u(x) - u*(x)| <= ||phi(x) - gbar|| ||w - w*||,

since A + Lambda has no eigenvalue below Lambda. Sums over n rows are rounded by no more than
summation(n) times the sums of the sizes (onefit.proof.precise), and sum s |phi_a phi_b| <= d_a d_b
with d^2 the diagonal of G: ||dA w|| <= summation(n) ||d|| d'|w|, ||dr|| <= summation(n) ||d||
sqrt(sum s y^2). Features of late pivots are small, and it is these that have large weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.features.moments import Moments
from onefit.proof.precise import EPSILON, summation

__all__ = ["Ridge", "RidgeModels"]


@dataclass(frozen=True)
class RidgeModels:
    """u = phi'w + b at L lambdas for q targets.

    Attributes
    ----------
    W : (m, L, q) array
    b : (L, q) array
    off : (L, q) array
        Bounds on ||w - w*||, infinite where no bound is known.
    far : float
        A bound on the length of the mean of the features, from which b is computed.
    reasons : list of str
        For each lambda why the model failed; empty if it did not.
    """

    W: Array = field(repr=False)
    b: Array
    off: Array
    far: float
    reasons: list[str]

    def errors(self, longest: float, drift: Array) -> Array:
        """Bounds (L, q) on the errors of predictions at rows with |phi| of at most ``longest``."""
        error = (longest + self.far) * self.off + longest * drift.reshape(self.b.shape)
        return np.asarray(error + 4.0 * EPSILON * np.abs(self.b))


class Ridge:
    """Quantities shared by the models of one training part at all lambdas.

    Parameters
    ----------
    moments : Moments
    removed : iterable of int
        The parts of the rows that are not trained on.
    fit_intercept : bool
    scaling : {"mean", "total"}
    lost : (m, d) array
        Columns that span the functions that may not be used.
    """

    def __init__(
        self,
        moments: Moments,
        removed: Iterable[int],
        fit_intercept: bool,
        scaling: str,
        lost: Array,
    ) -> None:
        self.centre, self.fit_intercept = moments.centre, fit_intercept
        sums = moments.without(removed)
        self.complement: Any = sums.arrays.complement(lost) if lost.shape[1] else None
        self.weight = sums.weight if scaling == "mean" else 1.0
        self.means, self.arrays = sums.means, sums.arrays
        self.roots = np.sqrt(np.maximum(self.arrays.diagonal(sums.G), 0.0))
        self.fine = summation(max(1, sums.rows), sums.terms) * float(np.linalg.norm(self.roots))
        self.spread = np.sqrt(np.diag(sums.T)[:-1])
        A, r = sums.centred(fit_intercept)
        A = self.arrays.mirrored(A)
        if self.complement is not None:
            A = self.complement.congruent(A)
            r = self.complement.coordinates(r)
        self.A, self.r = A, r
        # nothing to reduce where every landmark is dropped
        self.reduced = self.arrays.reduced(self.arrays.fortran_copy(A)) if A.shape[0] else None

    def models(self, lams: Array) -> RidgeModels:
        """The models at every lambda."""
        m, q, L = self.centre.phi.size, self.r.shape[1], lams.size
        ridges = lams * self.weight
        V, found = self.arrays.zeros((0, L * q), np.float64), np.ones(L, dtype=bool)
        if self.reduced is not None:
            V, found = self.reduced.solve(ridges, self.r)
        reasons = ["" if ok else _below(lam) for lam, ok in zip(lams, found, strict=True)]
        W = V if self.complement is None else self.complement.vectors(V)
        W = self.arrays.host(W).reshape(m, L, q)
        off = self._distances(V, W, ridges)
        phi, y = self.means
        b = np.zeros((L, q))
        if self.fit_intercept:
            b = self.centre.y + y - np.tensordot(self.centre.phi + phi, W, axes=1)
        far = float(np.linalg.norm(self.centre.phi + phi)) if self.fit_intercept else 0.0
        return RidgeModels(W, b, off, far, reasons)

    def _distances(self, flat: Any, W: Array, ridges: Array) -> Array:
        """Bounds on ||w - w*||, (L, q), for V (k, L q)."""
        xp, shape = self.arrays, (flat.shape[0], *W.shape[1:])
        V, r, ridges = xp.host(flat).reshape(shape), xp.host(self.r), ridges[:, None]
        left = r[:, None] - xp.host(xp.matmul(self.A, flat)).reshape(shape) - ridges * V
        absolute = xp.matmul(xp.lib.abs(self.A), xp.lib.abs(flat))
        sizes = xp.host(absolute).reshape(shape) + ridges * np.abs(V) + np.abs(r)[:, None]
        rounding = summation(shape[0], xp.terms)
        total = np.linalg.norm(left, axis=0) + rounding * np.linalg.norm(sizes, axis=0)
        total += self.fine * (np.tensordot(self.roots, np.abs(W), axes=1) + self.spread)
        return np.asarray(total / ridges)


def _below(lam: float) -> str:
    """The reason why there is no model."""
    return f"lam={lam:g} is below the rounding of the sums over the rows; raise lam"
