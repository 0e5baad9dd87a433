"""How far new rows are from the training rows, in the geometry of the kernel.

A model f = sum_j a_j K(x_j, .) + b changes between two points by at most

    |f(x) - f(z)| <= ||f|| d(x, z),    d(x, z)^2 = K(x, x) - 2 K(x, z) + K(z, z),

d being the distance of their images in the space of the kernel: near a training row the data
determine f, far from all of them they do not (with a stationary kernel f tends to b, with a linear
one to infinity). Novelty is therefore the distance to the nearest training row. A stationary kernel
is a decreasing function of a distance of its own, which orders pairs as d does and has no largest
value; it replaces d (:meth:`onefit.kernels.Kernel.separation`).

**Which distance is large** follows from the training rows: the *reach* is the largest distance of a
training row to the nearest one that differs from it. Among n + 1 exchangeable rows each is the
furthest from its nearest neighbour with probability at most 1/(n + 1), and without the new row the
distances of the others do not decrease: a new row like the training rows is beyond the reach with
probability at most 1/(n + 1). After a search, each row is compared with the training rows of the
split that tests it, as new groups and later rows will be.

Near rows may be unusual nevertheless: a category that no training row has leaves its indicator
columns at zero, and a missing value is filled with a median. The code that encodes rows has to
check these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit import linalg
from onefit._result import Result
from onefit._types import Array, Indices
from onefit.estimators.accepted import accepted_model
from onefit.folds import Folds
from onefit.kernels import Kernel
from onefit.spec.needs import require_of_model
from onefit.uncertainty.ranked import whole_groups

__all__ = ["Novelty", "TrainingRows", "novelty"]


@dataclass(frozen=True)
class Novelty(Result):
    """Distances of rows to the training rows.

    Attributes
    ----------
    distance : (m,) array
        To the nearest training row, in the geometry of the kernel.
    reach : float
        The largest such distance of a held-out training row.
    units : int
        Number of training rows, or groups of them, behind the reach.
    """

    distance: Array = field(repr=False)
    reach: float
    units: int

    @property
    def ratio(self) -> Array:
        """Distances in units of the reach; above 1: further than any held-out training row."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(self.distance > 0.0, self.distance / self.reach, 0.0)
        return np.asarray(found)

    @property
    def far(self) -> Array:
        """The rows that are further from the training rows than any of these from the others."""
        return np.asarray(self.distance > self.reach)

    @property
    def expected(self) -> float:
        """Bound on the expected number of far rows among rows like the training rows."""
        return self.distance.size / (self.units + 1.0)

    @property
    def sentence(self) -> str:
        """The result in words."""
        return (
            f"{self.far.sum():,} of {self.distance.size:,} rows are further from the training rows "
            f"than any of these from the others; {self.expected:.2g} at most are expected among "
            "rows like them"
        )


def novelty(estimator: Any, X_new: Any) -> Novelty:
    """Find rows that are far from the training rows of an estimator.

    Parameters
    ----------
    estimator : fitted KernelRegressor, KernelClassifier, or search over them
        With ``approximation="nystrom"``, distances are to its landmarks.
    X_new : array or sparse matrix of shape (m, d)

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> from onefit.uncertainty import novelty
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = novelty(KernelRegressor().fit(X, X[:, 0]), [[0.0, 0.0], [30.0, 0.0]])
    >>> found.far
    array([False,  True])
    """
    model = accepted_model(estimator, "novelty", stack=True)
    require_of_model(model, "novelty", "rows")
    folds, groups = getattr(estimator, "folds_", None), getattr(estimator, "groups_", None)
    known = TrainingRows.of(model, folds, groups)
    if known is None:
        raise ValueError(
            f"{type(model).__name__} holds no training row to compare with: fit it first, and "
            "not with approximation='fourier'"
        )
    return known.novelty(model._validate_X(X_new, reset=False))


@dataclass(frozen=True)
class TrainingRows:
    """The training rows of a model, or its landmarks, which new rows are compared with.

    Attributes
    ----------
    model : KernelRegressor or KernelClassifier, fitted
    reach, units : float, int
        See :class:`Novelty`.
    """

    model: Any = field(repr=False)
    reach: float
    units: int

    @classmethod
    def of(
        cls, model: Any, folds: Folds | None = None, groups: Any = None, support: bool = False
    ) -> TrainingRows | None:
        """The training rows, compared by the splits of a search.

        None for Fourier features, and for a single row, which has no other to be compared with.

        With ``support`` new rows are compared only with those that a classifier has coefficients
        for, which are all that a saved one holds.
        """
        known = _known(model)
        if known is None or known.shape[0] < 2:
            return None
        n = int(known.shape[0])
        rows = model.approximation is None  # landmarks are some of them, in another order
        if folds is not None and not (rows and folds.n == n and all(folds.disjoint)):
            folds = None
        reference = np.asarray(model.support_) if support else None
        reach = _reach(model.kernel_, known, folds, reference)
        codes = None if groups is None or folds is None else whole_groups(folds, groups)
        kept = model._with_support() if support else model
        return cls(kept, reach, n if codes is None else int(codes.max()) + 1)

    def novelty(self, X: Any) -> Novelty:
        """Distances of checked rows."""
        distance = _nearest(self.model.kernel_, X, _known(self.model))
        return Novelty(distance, self.reach, self.units)


def _known(model: Any) -> Any:
    return getattr(model, "landmarks_" if model.approximation is not None else "X_fit_", None)


def _reach(
    kernel: Kernel, X: Any, folds: Folds | None = None, reference: Indices | None = None
) -> float:
    """The largest distance of a training row to the nearest one that differs from it.

    Parameters
    ----------
    kernel : Kernel
    X : training rows
    folds : Folds, default=None
        Rows are compared with those that the split which tests them is trained on; None compares
        each with all others.
    reference : array of int, default=None
        The rows that new ones will be compared with, where these are not all.
    """
    n = int(X.shape[0])
    kept = np.ones(n, dtype=bool) if reference is None else np.isin(np.arange(n), reference)
    if folds is None or all(rows.size == 1 for rows in folds.removed):
        return _largest(_nearest(kernel, X, X[kept], differing=True))
    pairs = [(train[kept[train]], test) for train, test in folds]
    found = [
        _largest(_nearest(kernel, X[test], X[train], differing=True))
        for train, test in pairs
        if train.size
    ]
    return max(found, default=np.inf)


def _largest(distances: Array) -> float:
    """Rows that have no other row to be compared with are left out."""
    return float(np.max(distances[np.isfinite(distances)], initial=0.0))


def _nearest(kernel: Kernel, X: Any, known: Any, differing: bool = False) -> Array:
    """The distance of each row of X to the nearest known one, or to the nearest that differs."""
    m, step = int(X.shape[0]), max(1, linalg.CHUNK_ELEMENTS // max(1, int(known.shape[0])))
    found = np.empty(m)
    for first in range(0, m, step):
        rows = slice(first, first + step)
        apart = np.asarray(kernel.separation(X[rows], known), dtype=np.float64)
        if differing:
            apart = np.where(apart > 0.0, apart, np.inf)
        found[rows] = apart.min(axis=1, initial=np.inf)
    return found
