"""Conjugate gradients for many columns at once, which need only products with K.

With R = diag(c)^(-1/2) on the rows A of a column and zero elsewhere, its system reads

    (I + R K R) x + db R 1 = R e,            a = R x,         1'R x = -total,

and with q = R 1 / ||R 1|| projected out, P = I - q q', what is left without its border is

    P (I + R K R) P x = P R e,               db from the part along q.

Every fold, lambda and target is a column of one iteration whose steps take one product K V for all
of them; columns that have converged leave. **Preconditioner**: with F F' below K
(onefit.inverse.low_rank),

    (I + P R F F'R P)^-1 = I - P R F (I + F'R P R F)^-1 F'R P,

and for columns whose R differ by a factor only, as those of one fold at several lambdas do, one
decomposition of the small matrix serves all. F'R^2 F of a fold is that of all rows less that of the
rows left out.

**Rounding along q.** Rounding leaves a part of a residual along q, which the matrix without P
multiplies in every step; for large R the iteration diverges. So every residual is projected again,
as for any quadratic with an equality constraint [1]_.

The recursion for the residual drifts from the true residual. For an error bound, the residual is
computed from the solution (onefit.heldout.iterative).

References
----------
.. [1] N. I. M. Gould, M. E. Hribar and J. Nocedal, "On the solution of equality constrained
   quadratic programming problems arising in optimization", SIAM Journal on Scientific Computing
   23, 2001.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.gram import Gram
from onefit.linalg import Arrays, arrays_of

__all__ = ["CG_RESIDUAL", "KrylovSolution", "Ridged", "Watch", "bordered", "conjugate_gradients"]

#: steps after which a column is stopped
MAX_CG_STEPS = 1000
#: relative residual that is left where a further step or round corrects it
#: (benchmarks/constants.py)
CG_RESIDUAL = 1e-4
#: residual that is due to rounding, in units of rounding (benchmarks/constants.py)
RESIDUAL_FLOOR_IN_ROUNDINGS = 64.0

#: called after every step with the residuals, relative to their targets
Watch = Callable[[Array], None]


@dataclass(frozen=True)
class Decomposed:
    """size^2 (I + size^2 G)^-1 of a small matrix G by its eigenvectors, for any sizes."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, G: Array) -> Decomposed:
        """Negative eigenvalues are mere rounding."""
        xp = arrays_of(G)
        values, vectors = xp.eigh(G)
        return cls(xp.lib.where(values < 0.0, 0.0 * values, values), vectors)

    def solve(self, H: Array, size: Array) -> Array:
        """Times the columns of H, each with a size of its own."""
        squares = arrays_of(H).asarray(size * size)
        inside = (self.vectors.T @ H) * (squares / (1.0 + squares * self.values[:, None]))
        return self.vectors @ inside  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Inverted:
    """The same matrix for one size."""

    matrix: Array

    @classmethod
    def of(cls, G: Array, size: float) -> Inverted | Decomposed:
        """Invert by a Cholesky factor; decompose where rounding makes that impossible."""
        xp = arrays_of(G)
        M = xp.add_diagonal(xp.fortran(size * size * G), 1.0)
        try:
            return cls(size * size * xp.inverse_spd(M))
        except linalg.LinAlgError:
            return Decomposed.of(xp.fortran(G))

    def solve(self, H: Array, size: Array) -> Array:
        """Times the columns of H."""
        return self.matrix @ H


@dataclass(frozen=True)
class Ridged:
    """Systems I + R K R side by side, R_j = size_j diag(root[:, group_j]).

    Attributes
    ----------
    K : Gram
    F : (n, m) array
    root : (n, g) array
    group : (k,) int array
    size : (k,) array
    centred : bool
        Whether R 1 is projected out.
    inner : list of Decomposed or Inverted
        size^2 (I + F'R P R F)^-1, one for each column of ``root``; empty without F.
    arrays : Arrays
        Where K, F, root and all columns are.
    """

    K: Gram
    F: Array
    root: Array
    group: Indices
    size: Array
    centred: bool
    inner: list[Decomposed | Inverted]
    arrays: Arrays

    @classmethod
    def prepare(
        cls, K: Gram, F: Array, root: Array, group: Indices, size: Array, centred: bool
    ) -> Ridged:
        """Prepare the systems, with the small matrices decomposed or inverted by cost.

        ``root`` is an array of NumPy's.
        """
        inner: list[Decomposed | Inverted] = []
        xp = arrays_of(K)
        if F.shape[1]:
            for g, G in enumerate(_grams(F, root * root, centred, xp)):
                sizes = np.unique(size[group == g])
                one = sizes.size == 1
                inner.append(Inverted.of(G, float(sizes[0])) if one else Decomposed.of(G))
        return cls(K, F, xp.asarray(root), group, size, centred, inner, xp)

    def take(self, columns: Any) -> Ridged:
        """A subset of the systems."""
        return replace(self, group=self.group[columns], size=self.size[columns])

    def roots(self) -> Array:
        """The diagonals of R, (n, k)."""
        xp = self.arrays
        return xp.columns(self.root, self.group) * xp.asarray(self.size)  # type: ignore[no-any-return]

    def project(self, V: Array, R: Array) -> Array:
        """Make V to P V, and return the coefficients along R 1 that were taken out."""
        if not self.centred:
            return np.zeros(V.shape[1], dtype=self.size.dtype)
        along: Array = self.arrays.dots(R, V) / self.arrays.dots(R, R)
        self.arrays.add_scaled(V, R, -along)
        return along

    def apply(self, V: Array, R: Array) -> tuple[Array, Array]:
        """P (I + R K R) V for V = P V, and the coefficients along R 1 that were taken out."""
        out = R * self.K.matmul(R * V)
        out += V
        return out, self.project(out, R)

    def precondition(self, V: Array, R: Array) -> Array:
        """(I + P R F F'R P)^-1 V for V = P V."""
        if not self.inner:
            return self.arrays.copy(V)  # type: ignore[no-any-return]
        xp = self.arrays
        root = xp.columns(self.root, self.group)
        H = self.F.T @ (root * V)
        for g in np.unique(self.group):
            own = np.flatnonzero(self.group == g)
            xp.put(H, own, self.inner[g].solve(xp.columns(H, own), self.size[own]))
        out = self.F @ H
        out *= root
        self.project(out, R)
        return V - out  # type: ignore[no-any-return]


def _grams(F: Array, weights: Array, centred: bool, xp: Arrays) -> Iterator[Array]:
    """F'W F for the columns of weights, less its part along W 1 if centred.

    That of the largest weights is changed on the rows where others are smaller.
    """
    largest = weights.max(axis=1)
    total = _gram(F, largest, xp)
    for w in weights.T:
        rows = np.flatnonzero(w != largest)
        if 2 * rows.size > w.size:
            kept = np.flatnonzero(w)
            G = _gram(xp.rows(F, kept), w[kept], xp)
        else:
            G = total - _gram(xp.rows(F, rows), (largest - w)[rows], xp)
        if centred:
            sums = F.T @ xp.asarray(w)
            G -= sums[:, None] * (sums / float(w.sum()))[None, :]
        yield xp.fortran(G)


def _gram(F: Array, weights: Array, xp: Arrays) -> Array:
    """F'diag(w) F, by chunks of rows, between which the user can interrupt."""
    out, w = xp.zeros((F.shape[1], F.shape[1]), weights.dtype), xp.asarray(weights)[:, None]
    size = max(1, linalg.CHUNK_ELEMENTS // max(1, F.shape[1]))
    for first in range(0, F.shape[0], size):
        some = slice(first, min(first + size, F.shape[0]))
        out += F[some, :].T @ (w[some, :] * F[some, :])
    return out  # type: ignore[no-any-return]


@dataclass(frozen=True)
class KrylovSolution:
    """Result of an iteration.

    Attributes
    ----------
    x : (n, k) array
    along : (k,) array
        The coefficients of (I + R K R) x along R 1.
    steps : (k,) int array
    """

    x: Array
    along: Array
    steps: Indices


def conjugate_gradients(
    systems: Ridged,
    z: Array,
    target: Array,
    max_steps: int = MAX_CG_STEPS,
    watch: Watch | None = None,
) -> KrylovSolution:
    """x with ||P z - P (I + R K R) x|| <= target in every column, by the residual's recursion.

    Parameters
    ----------
    systems : Ridged
    z : (n, k) array
        Zero where R is; where K is.
    target : (k,) array
        No less than what rounding leaves.
    max_steps : int
    watch : callable, default=None
    """
    xp, k = systems.arrays, target.size
    zero = xp.zeros(z.shape, target.dtype)
    found = KrylovSolution(zero, np.zeros_like(target), np.zeros(k, dtype=np.intp))
    left, R = np.arange(k), systems.roots()
    r = xp.copy(z)
    systems.project(r, R)
    size = np.sqrt(xp.dots(r, r))
    target = np.maximum(
        target, RESIDUAL_FLOOR_IN_ROUNDINGS * float(np.finfo(target.dtype).eps) * size
    )
    p = None
    x, along, rz = xp.copy(zero), found.along.copy(), np.ones_like(size)
    on = size > target
    for step in range(max_steps + 1):
        if not on.all():
            out = left[~on]
            xp.put(found.x, out, xp.columns(x, ~on))
            found.along[out], found.steps[out] = along[~on], step
            left, along, rz, target = (one[on] for one in (left, along, rz, target))
            x, r, R = (xp.columns(one, on) for one in (x, r, R))
            p = None if p is None else xp.columns(p, on)
            systems = systems.take(on)
        if left.size == 0 or step == max_steps:
            break
        q = systems.precondition(r, R)
        before, rz = rz, xp.dots(r, q)
        if p is not None:
            xp.add_scaled(q, p, rz / before)
        p = q
        Ap, part = systems.apply(p, R)
        curvature = xp.dots(p, Ap)
        # an indefinite matrix, or nothing left but rounding
        bad = ~((curvature > 0.0) & (rz > 0.0))
        length = np.where(bad, 0.0, rz / np.where(bad, 1.0, curvature)).astype(rz.dtype)
        xp.add_scaled(x, p, length)
        xp.add_scaled(r, Ap, -length)
        systems.project(r, R)
        along += length * part
        size = np.sqrt(xp.dots(r, r))
        if watch is not None:
            watch(size / target)
        on = (size > target) & ~bad
    xp.put(found.x, left, x)
    found.along[left], found.steps[left] = along, max_steps
    return found


def bordered(
    systems: Ridged, root: Array, missing: Array, total: Array, tolerance: float
) -> tuple[Array, Array]:
    """da and db of the systems of a Newton step, up to a part ``tolerance`` of the residual.

    All columns have rows with curvature. They are iterated in the precision of ``systems``. If
    that is lower than theirs, each is divided by its size, so that it neither under- nor overflows.
    """
    z, start, weight = root * missing, np.zeros_like(root), linalg.dots(root, root)
    precision = systems.size.dtype
    if systems.centred and total.any():
        start = -root * (total / weight)
        z = z - start - root * systems.K.matmul((root * start).astype(precision))
    size = np.sqrt(linalg.dots(z, z))
    unit = np.where((size > 0.0) & (precision != z.dtype), size, np.ones_like(size))
    target = (tolerance * size / unit).astype(precision)
    xp = systems.arrays
    found = conjugate_gradients(systems, xp.asarray((z / unit).astype(precision)), target)
    db = np.zeros_like(weight)
    if systems.centred:
        db = linalg.dots(root, z) / weight - found.along * unit
    return root * (xp.host(found.x) * unit + start), db
