"""Features and target of a file, and the columns that are neither."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray
from scipy.sparse import issparse

Array = NDArray[Any]

__all__ = ["Roles", "Table", "is_sparse"]


@dataclass(frozen=True)
class Roles:
    """Columns that are neither features nor the target.

    Attributes
    ----------
    groups, sample_weight, time : str or None
        Rows of one group stay on one side of a split; weights are for fits and scores; time puts
        rows in order.
    """

    groups: str | None = None
    sample_weight: str | None = None
    time: str | None = None

    @property
    def names(self) -> dict[str, str]:
        """The columns that have a role, by the option that gave it."""
        found = {f"--{role.replace('_', '-')}": name for role, name in vars(self).items()}
        return {option: name for option, name in found.items() if name is not None}


@dataclass(frozen=True)
class Table:
    """Features and target of a file.

    Attributes
    ----------
    X : DataFrame as it is in the file, or sparse matrix for LIBSVM
        The index of a table from a CSV file is called "line", and has the lines of the file.
    y : (n,) array
    target : str
        Name of the target.
    groups, sample_weight : (n,) arrays or None
    ordered : bool
        Whether the rows are in order of time, which the splits have to keep.
    notes : tuple of str
        What a user should know of the data, a sentence each.
    """

    X: Any = field(repr=False)
    y: Array = field(repr=False)
    target: str
    groups: Array | None = field(default=None, repr=False)
    sample_weight: Array | None = field(default=None, repr=False)
    ordered: bool = False
    notes: tuple[str, ...] = ()


def is_sparse(X: Any) -> bool:
    """Whether the features are a sparse matrix."""
    return bool(issparse(X))
