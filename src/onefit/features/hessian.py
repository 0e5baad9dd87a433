"""Models side by side in feature space, and the Hessian of each, factored.

A model minimises F = sum s V(y, psi'theta) + Lambda |w|^2 over theta = (w, b). Its Hessian H =
sum s d psi psi' + 2 Lambda (not for b) and its gradient are sums over rows, part by part
(onefit.features.passes), so that one pass gives every split its own. A split that drops landmarks
has H in the functions that remain, Q'H Q.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.features.passes import Form, Pieces

__all__ = ["HessianFactor", "PrimalColumns", "penalty", "total"]

#: the part of the largest curvature below which that of the intercept is negligible
MAX_FLAT_CURVATURE_SHARE = 1e-6


@dataclass(frozen=True)
class PrimalColumns:
    """Models side by side, each with its parts, its Lambda and its functions.

    Attributes
    ----------
    train : (parts, c) bool array
    ridge : (c,) array
    lost : list of (size, d) arrays
        What each may not use.
    """

    train: Array = field(repr=False)
    ridge: Array
    lost: list[Array] = field(repr=False)

    def take(self, some: Indices) -> PrimalColumns:
        """Some of the columns."""
        return PrimalColumns(self.train[:, some], self.ridge[some], [self.lost[i] for i in some])


def penalty(form: Form, ridge: Array) -> Array:
    """2 Lambda for w and zero for b, (size, c)."""
    out = np.repeat(2.0 * np.atleast_1d(ridge)[None], form.size, axis=0)
    if form.intercept:
        out[-1] = 0.0
    return out


class HessianFactor:
    """The Hessian of a split in the functions that it may use, factored where the rows are."""

    def __init__(self, form: Form, piece: Pieces, ridge: float, lost: Array) -> None:
        self.arrays = xp = linalg.arrays_of(piece.H)
        H = xp.mirrored(xp.fortran_copy(piece.H))
        steep = piece.weight * float(form.loss.max_curvature)
        self.flat = form.intercept and piece.curved < MAX_FLAT_CURVATURE_SHARE * steep
        if self.flat:
            # nowhere does the slope rise faster
            H[-1, -1] = steep
        self.floor = MAX_FLAT_CURVATURE_SHARE * steep
        self.H = xp.add_diagonal(H, penalty(form, np.array([ridge]))[:, 0])
        self.complement: Any = xp.complement(lost) if lost.shape[1] else None
        inner = xp.fortran_copy(H) if self.complement is None else self.complement.congruent(H)
        try:
            self.lower = xp.cholesky(inner)
        except linalg.LinAlgError as error:
            raise linalg.LinAlgError(
                f"the Hessian of the features is singular to working precision ({error}): next to "
                f"its largest entries, the penalty of {2.0 * ridge:.3g} is lost; raise lam or "
                "the loss's delta, or lower n_components"
            ) from error

    def times(self, v: Array) -> Array:
        """H v for some columns."""
        return self.arrays.host(self.arrays.matmul(self.H, self.arrays.asarray(v)))

    def solve(self, r: Array) -> Array:
        """Q (Q'H Q)^-1 Q'r for some columns."""
        found = self.arrays.solve_cholesky(self.lower, self._inside(r))
        return self.arrays.host(
            found if self.complement is None else self.complement.vectors(found)
        )

    def project(self, r: Array) -> Array:
        """Q'r."""
        return r if self.complement is None else self.arrays.host(self._inside(r))

    def _inside(self, r: Array) -> Any:
        """Q'r, where H is."""
        vectors = self.arrays.fortran(self.arrays.asarray(r))
        return vectors if self.complement is None else self.complement.coordinates(vectors)


def total(pieces: dict[int, Pieces], kept: Array | None = None) -> Pieces:
    """Sum of the parts that are kept."""
    found: Pieces | None = None
    for name in sorted(pieces):
        if kept is None or kept[name]:
            found = pieces[name] if found is None else found.plus(pieces[name])
    assert found is not None
    return found
