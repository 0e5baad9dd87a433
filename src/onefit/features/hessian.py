"""Models side by side in feature space, and the Hessian of each, factored.

A model minimises F = sum s V(y, psi'theta) + Lambda |w|^2 over theta = (w, b). Its Hessian H =
sum s d psi psi' + 2 Lambda (not for b) and its gradient are sums over rows, part by part
(onefit.features.passes), so one pass serves every split. A split that drops landmarks has H in the
functions that remain, Q'H Q.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.features.passes import Form, Run, SecondSums
from onefit.losses.base import Loss

__all__ = ["HessianFactor", "PrimalColumns", "total"]

#: share of the largest curvature below which that of the intercept is negligible
#: (benchmarks/constants.py)
MAX_FLAT_CURVATURE_SHARE = 1e-6


@dataclass(frozen=True)
class PrimalColumns:
    """Problems of models side by side.

    Attributes
    ----------
    form : Form
    ridge : (c,) array
        Lambda of each.
    lost : list of (size, d) arrays
        Functions that each may not use.
    longest : (c,) array
        The largest |phi| of the rows that each predicts.
    scale : float
        The unit of errors.
    run : callable
        Makes a pass over all rows.
    """

    form: Form
    ridge: Array
    lost: list[Array] = field(repr=False)
    longest: Array
    scale: float
    run: Run = field(repr=False)

    def take(self, some: Indices) -> PrimalColumns:
        """Some of the columns."""
        return replace(
            self,
            form=self.form.take(some),
            ridge=self.ridge[some],
            lost=[self.lost[i] for i in some],
            longest=self.longest[some],
        )

    def eased(self, loss: Loss, multiple: float = 1.0) -> PrimalColumns:
        """The same with another loss, and a multiple of Lambda."""
        return replace(self, form=replace(self.form, loss=loss), ridge=multiple * self.ridge)

    @property
    def penalty(self) -> Array:
        """2 Lambda for w and zero for b, (size, c)."""
        out = np.repeat(2.0 * self.ridge[None], self.form.size, axis=0)
        if self.form.intercept:
            out[-1] = 0.0
        return out


class HessianFactor:
    """The Hessian of one column in the functions that it may use, factored where the rows are."""

    def __init__(self, column: PrimalColumns, sums: SecondSums) -> None:
        self.arrays = xp = linalg.arrays_of(sums.H)
        form, (lost,) = column.form, column.lost
        H = xp.mirrored(xp.fortran_copy(sums.H))
        steep = sums.weight * float(form.loss.max_curvature)
        self.floor = MAX_FLAT_CURVATURE_SHARE * steep
        self.flat = form.intercept and sums.curved < self.floor
        if self.flat:
            # the largest curvature that the loss can have
            H[-1, -1] = steep
        self.H = xp.add_diagonal(H, column.penalty[:, 0])
        self.complement: Any = xp.complement(lost) if lost.shape[1] else None
        inner = xp.fortran_copy(H) if self.complement is None else self.complement.congruent(H)
        try:
            # nothing to factor where every landmark is dropped, and there is no intercept
            self.lower = xp.cholesky(inner) if inner.shape[0] else None
        except linalg.LinAlgError as error:
            penalty = 2.0 * float(column.ridge[0])
            raise linalg.LinAlgError(
                f"the Hessian of the features is singular to working precision ({error}): next to "
                f"its largest entries, the penalty of {penalty:.3g} is lost; raise lam or "
                "the loss's delta, or lower n_components"
            ) from error

    def times(self, v: Array) -> Array:
        """H v for some columns."""
        return self.arrays.host(self.arrays.matmul(self.H, self.arrays.asarray(v)))

    def solve(self, r: Array) -> Array:
        """Q (Q'H Q)^-1 Q'r for some columns."""
        found = self._inside(r)
        if self.lower is not None:
            found = self.arrays.solve_cholesky(self.lower, found)
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


def total(parts: dict[int, SecondSums], kept: Array) -> SecondSums:
    """Sum of the parts that are kept."""
    first, *others = (parts[name] for name in sorted(parts) if kept[name])
    return sum(others, start=first)
