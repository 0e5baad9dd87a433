"""The linear system of a Newton step for many columns, and the protocol of what solves it.

At predictions u with gradients g and curvatures d, Newton's model of a column
(onefit.columns.newton) fixes the coefficients of rows without curvature. On the others, A, it
leaves the bordered system

    [ K_AA + diag(c)   1 ] [ da ]   [    e   ]                c_i = 2 Lambda / (s_i d_i),
    [      1'          0 ] [ db ] = [ -total ],

without its border if there is no intercept. A way of solving it is a class with the members of
:class:`System`, in a module of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from onefit._types import Array, Indices, Mask

__all__ = ["NewtonModel", "System", "by_column"]


@dataclass(frozen=True)
class NewtonModel:
    """Newton's models of several columns, as changes from where each of them stands.

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

    def take(self, columns: Any) -> NewtonModel:
        """A subset of the models."""
        return NewtonModel(
            self.d[:, columns],
            self.missing[:, columns],
            self.fixed[:, columns],
            self.total[columns],
        )


class System(Protocol):
    """A solver for the systems of several columns."""

    @property
    def curvature(self) -> Array | None:
        """Curvatures (n, 1) that smooth losses have to keep to; None where any will do."""

    @property
    def tolerance(self) -> float:
        """The part of a residual that a solution leaves; zero where nothing but rounding is."""

    def take(self, columns: Any) -> System:
        """The system of some of the columns."""

    def solve(self, model: NewtonModel) -> tuple[Array, Array, Mask]:
        """Changes da (n, k), zero off A, and db (k,), and which intercepts are determined.

        A model without any curvature says nothing of the intercept.
        """


def by_column(mask: Mask) -> list[Indices]:
    """The rows where each column is true."""
    rows = np.nonzero(mask.T)[1]
    return [rows[first:last] for first, last in pairwise([0, *mask.sum(axis=0).cumsum()])]
