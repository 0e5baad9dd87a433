"""The linear system of a Newton step for many columns, and the base class of what solves it.

At predictions u with gradients g and curvatures d, Newton's model of a column
(onefit.columns.newton) fixes the coefficients of rows without curvature. On the others, A, it
leaves the bordered system

    [ K_AA + diag(c)   1 ] [ da ]   [    e   ]                c_i = 2 Lambda / (s_i d_i),
    [      1'          0 ] [ db ] = [ -total ],

without its border if there is no intercept. Each way of solving it is a subclass of
:class:`System`, in a module of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from onefit._types import Array, Indices, Mask

__all__ = ["NewtonModel", "System", "by_column"]


@dataclass(frozen=True)
class NewtonModel:
    """Newton's models of several columns, as changes from their current solutions.

    Attributes
    ----------
    d : (n, k) array
        Curvature, zero on rows that the problem leaves out.
    missing : (n, k) array
        e on rows with curvature, zero elsewhere.
    fixed : (n, k) array
        The change of the coefficients of rows without curvature, zero elsewhere.
    total : (k,) array
        The sum of all coefficients after that change.
    """

    d: Array
    missing: Array
    fixed: Array
    total: Array

    @property
    def curved(self) -> Mask:
        """The columns with curvature in some row; the others do not determine an intercept."""
        return np.asarray((self.d > 0.0).any(axis=0))

    def take(self, columns: Any) -> NewtonModel:
        """A subset of the models."""
        return NewtonModel(
            self.d[:, columns],
            self.missing[:, columns],
            self.fixed[:, columns],
            self.total[columns],
        )


class System(ABC):
    """A solver for the systems of several columns.

    Attributes
    ----------
    curvature : (n, 1) array or None
        Curvature that smooth losses must keep; None if any curvature is possible.
    tolerance : float
        Relative residual of a solution; zero if that is rounding only.
    """

    curvature: Array | None = None
    tolerance: float = 0.0

    @abstractmethod
    def take(self, columns: Any) -> System:
        """The system of some of the columns."""

    def solve(self, model: NewtonModel) -> tuple[Array, Array]:
        """Changes da (n, k), zero off A, and db (k,); both zero in columns without curvature."""
        if model.curved.all():
            return self._solve(model)
        a, b = np.zeros_like(model.fixed), np.zeros_like(model.total)
        some = np.flatnonzero(model.curved)
        if some.size:
            a[:, some], b[some] = self.take(some)._solve(model.take(some))
        return a, b

    @abstractmethod
    def _solve(self, model: NewtonModel) -> tuple[Array, Array]:
        """The changes of columns that all have rows with curvature."""


def by_column(mask: Mask) -> list[Indices]:
    """The rows where each column is true."""
    rows = np.nonzero(mask.T)[1]
    return [rows[first:last] for first, last in pairwise([0, *mask.sum(axis=0).cumsum()])]
