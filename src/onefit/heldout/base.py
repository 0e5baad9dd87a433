"""What a held-out method is, and what it gives back.

A method predicts every test row of every split by the machine trained without the rows that the
split removes, for a whole list of lambdas. It declares what it needs of the loss, and works in
two phases: ``prepare(problem, folds, lams)`` does what the lambdas share, ``predict(lam)`` the
rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onefit.certificate import EXACT
from onefit.folds import Folds
from onefit.losses.base import require
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["HeldOut", "HeldOutMethod", "Prepared"]


@dataclass(frozen=True)
class HeldOut:
    """Held-out decision values of every split, and how far they can be trusted.

    Attributes
    ----------
    values : (N, q) array
        Decision values of the test rows, one split after the other (``folds.rows`` names the rows).
    folds : Folds
    method : str
        The method that made them ("auto" has been resolved).
    exact : (n_splits,) bool array
        Whether the fold's values are proven to be those of the machine trained without it, up to
        1e-6 of the targets' scale: their weighted standard deviation, 1 for labels.
    error : (n_splits,) array
        Bound on the largest absolute error of the fold's values; NaN where none is known.
    moved : (n_splits,) int array
        Training points that changed their piece of the loss when the fold was left out.
    steps : (n_splits,) int array
        Newton steps of the leave-out problem.
    order : int or None
        Order of the influence series, where one was cut.
    seconds : float
        Wall time; in a search, the candidate's share of its kernel's time.
    """

    values: Array = field(repr=False)
    folds: Folds
    method: str
    exact: NDArray[np.bool_]
    error: Array = field(repr=False)
    moved: NDArray[np.intp] = field(repr=False)
    steps: NDArray[np.intp] = field(repr=False)
    order: int | None = None
    seconds: float = 0.0

    @classmethod
    def judged(
        cls,
        problem: Problem,
        values: Array,
        folds: Folds,
        method: str,
        error: Array,
        moved: NDArray[np.intp] | None = None,
        steps: NDArray[np.intp] | None = None,
        order: int | None = None,
    ) -> HeldOut:
        """Values with the bounds of every split and target, (n_splits, q), and what these mean."""
        bad = np.flatnonzero(~np.isfinite(folds.largest(values)).all(axis=1))
        if bad.size:
            raise FloatingPointError(
                f"method {method!r} gave values of split {bad[0]} that are not finite: numbers "
                f"overflow in {values.dtype}; raise lam, scale the data"
                + (", or use float64" if values.dtype == np.float32 else "")
            )
        none = np.zeros(len(folds), dtype=np.intp)
        return cls(
            values,
            folds,
            method,
            np.asarray((error <= EXACT * problem.scale).all(axis=1)),
            error.max(axis=1),
            none if moved is None else moved,
            none if steps is None else steps,
            order,
        )

    @property
    def by_fold(self) -> list[Array]:
        """The values of each split, in the order of its test rows."""
        return np.split(self.values, self.folds.offsets[1:-1])

    @property
    def predictions(self) -> Array:
        """Decision values in the order of the rows, (n,) or (n, q).

        A row tested by several splits gets their mean; a row tested by none is NaN.
        """
        n, q = self.folds.n, self.values.shape[1]
        rows = self.folds.rows
        total = np.zeros((n, q), dtype=self.values.dtype)
        np.add.at(total, rows, self.values)
        count = np.bincount(rows, minlength=n)
        total /= np.maximum(count, 1)[:, None]
        total[count == 0] = np.nan
        return total[:, 0] if q == 1 else total


class HeldOutMethod(ABC):
    """A way to held-out predictions.

    Attributes
    ----------
    name : str
    requires : tuple of str
        Members the loss must have.
    losses : tuple of str, or None
        Names of the only losses it works for.
    """

    name: ClassVar[str]
    requires: ClassVar[tuple[str, ...]] = ("gradient", "curvature", "max_curvature")
    losses: ClassVar[tuple[str, ...] | None] = None

    def check(self, problem: Problem) -> None:
        """Refuse a loss that the method cannot serve, naming both."""
        if self.losses is not None and problem.loss.name not in self.losses:
            raise ValueError(
                f"method {self.name!r} works for the {' and '.join(self.losses)} loss only, not "
                f"for {problem.loss!r}; use 'limit', 'exact' or 'refit'"
            )
        require(problem.loss, self.name, *self.requires)

    @abstractmethod
    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        """Do everything that the lambdas share."""


class Prepared(ABC):
    """A method after its first phase."""

    @abstractmethod
    def predict(self, lam: float) -> HeldOut:
        """Held-out predictions at one of the prepared lambdas."""
