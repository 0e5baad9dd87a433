"""Features and target of a file, and the columns that are neither."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from onefit.tables.reader import ColumnReader

Array = NDArray[Any]

__all__ = ["Roles", "Table", "is_sparse"]


@dataclass(frozen=True)
class Roles:
    """Columns that are neither features nor the target.

    Attributes
    ----------
    groups, weights, time, id : str or None
        Rows of one group stay on one side of a split; weights count in fits and scores; time puts
        rows in order; an id goes with the predictions.
    """

    groups: str | None = None
    weights: str | None = None
    time: str | None = None
    id: str | None = None

    @property
    def names(self) -> dict[str, str]:
        """The columns that have a role, by the option that gave it."""
        return {f"--{role}": name for role, name in vars(self).items() if name is not None}


@dataclass(frozen=True)
class Table:
    """Features and target of a file.

    Attributes
    ----------
    X : DataFrame of floats and text, or sparse matrix for LIBSVM, or array
        The index of a table from a CSV file is called "line", and has the lines of the file.
    y : (n,) array
    target : str
        Name of the target.
    groups, weights, ids : (n,) arrays or None
    id : str or None
        Name of the ids.
    ordered : bool
        Whether the rows are in the order of time, and splits have to keep it.
    reader : ColumnReader or None
        What made the columns of a DataFrame what they are, fitted.
    notes : tuple of str
        What a user should know of the data, a sentence each.
    """

    X: Any = field(repr=False)
    y: Array = field(repr=False)
    target: str
    groups: Array | None = field(default=None, repr=False)
    weights: Array | None = field(default=None, repr=False)
    ids: Array | None = field(default=None, repr=False)
    id: str | None = None
    ordered: bool = False
    reader: ColumnReader | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    def sample(self, rows: int, seed: int) -> Table:
        """A random sample of so many rows, in their order; the table itself if it has no more."""
        n = self.X.shape[0]
        if rows >= n:
            return self
        return self.take(np.sort(np.random.default_rng(seed).choice(n, rows, replace=False)))

    def take(self, rows: Array) -> Table:
        """Some of the rows."""
        framed = hasattr(self.X, "iloc")
        X = self.X.iloc[rows] if framed else self.X[rows]
        others = {name: getattr(self, name) for name in ("groups", "weights", "ids")}
        kept: Any = {name: one[rows] for name, one in others.items() if one is not None}
        return replace(self, X=X, y=self.y[rows], **kept)


def is_sparse(X: Any) -> bool:
    """Whether the features are a sparse matrix."""
    return bool(issparse(X))
