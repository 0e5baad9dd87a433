r"""A shared spectrum: one decomposition along a path, while the curved points stay the same.

Updates (onefit.systems.update) need the inverse of

    M = I + S K_AA S / (2 Lambda),                 S = diag(sqrt(s_i d_i)), i in A,

with A the points with curvature d. For a piecewise quadratic loss d depends on a point's piece
alone; where neither changes from lambda to lambda, as often happens towards small lambda, Lambda
is a mere shift,

    M^-1 = 2 Lambda (S K_AA S + 2 Lambda)^-1,

and a partial eigendecomposition of S K_AA S (onefit.linalg.partial_eigh) serves every lambda, and
every training size. A few points may differ: to an update they are rows that leave or enter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onefit._types import Array
from onefit.inverse import EigenInverse
from onefit.linalg.partial_eigh import PartialEigh
from onefit.problem import Problem

__all__ = ["SharedSpectrum"]


class SharedSpectrum:
    """The partial eigendecomposition of S K_AA S.

    Parameters
    ----------
    problem : Problem
    d : (n,) array
        Curvature, zero off A.
    """

    def __init__(self, problem: Problem, d: Array) -> None:
        self.d, A = d, np.flatnonzero(d > 0.0)
        self.size = A.size
        root = np.sqrt(problem.s[A] * d[A])
        M = problem.K.take(A).matrix
        M *= root
        M *= root[:, None]
        whole = PartialEigh.decompose(M.T)
        # by rows: blocks of the inverse gather some of them
        vectors = np.ascontiguousarray(whole.vectors)
        self.partial = replace(whole, values=np.maximum(whole.values, 0.0), vectors=vectors)

    def changes(self, d: Array) -> int:
        """Points whose curvature is another."""
        return int(np.count_nonzero(self.d != d))

    def at(self, ridge: float, root: Array) -> EigenInverse:
        """M^-1 at one Lambda, with the diagonal of S / sqrt(2 Lambda)."""
        partial, c = self.partial, self.partial.values.dtype.type(2.0 * ridge)
        correction = partial.correction(2.0 * ridge) * np.sqrt(c)
        return EigenInverse(partial.values / c, partial.vectors, 1.0, root, correction=correction)
