"""Splits of a cross-validation.

A split is a training set and a test set. Fast methods work with a third set, the rows *removed*
from the full sample, i.e. the complement of the training set: the leave-out formulas give the
predictions on all removed rows, so any test set inside them is served, be it the whole complement
(k-fold, groups, stratified, repeated, leave-p-out) or a part of it (time-ordered and shuffled
splits). A split that tests rows it was trained on can only be refitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from onefit._types import Array, Indices

__all__ = ["Folds", "leave_one_out"]


@dataclass(frozen=True)
class Folds:
    """Training and test rows of every split of one cross-validation.

    Parameters
    ----------
    n : int
        Number of rows of the full sample.
    train, test : sequences of index arrays
        One pair a split.

    Examples
    --------
    >>> import numpy as np
    >>> folds = Folds.draw(3, np.zeros((6, 1)))
    >>> len(folds), folds.test[0], folds.is_partition
    (3, array([0, 1]), True)
    """

    n: int
    train: Sequence[Indices] = field(repr=False)
    test: Sequence[Indices] = field(repr=False)

    @classmethod
    def draw(
        cls, cv: Any, X: Any, y: Any = None, groups: Any = None, classifier: bool = False
    ) -> Folds:
        """Draw the splits of ``cv`` (an int, a splitter, an iterable of splits, or Folds)."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if isinstance(cv, Folds):
            if cv.n != n:
                raise ValueError(f"cv was drawn for {cv.n} rows, but X has {n} rows; draw it again")
            return cv
        splitter = check_cv(cv, y, classifier=classifier)
        wanted = splitter.get_n_splits(X, y, groups) if isinstance(cv, (int, np.integer)) else 0
        if wanted > n:
            raise ValueError(
                f"cv={wanted} asks for more folds than there are rows ({n}); use at most cv={n}"
            )
        pairs = [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, y, groups)]
        return cls.from_pairs(n, pairs)

    @classmethod
    def from_pairs(cls, n: int, pairs: Sequence[tuple[Any, Any]]) -> Folds:
        """Folds from (train, test) pairs of index or boolean arrays, checked."""
        if not pairs:
            raise ValueError("cv gave no split at all; pass an int >= 2 or a scikit-learn splitter")
        train = [_as_indices(a, n, k, "training") for k, (a, _) in enumerate(pairs)]
        test = [_as_indices(b, n, k, "test") for k, (_, b) in enumerate(pairs)]
        return cls(n, train, test)

    @classmethod
    def from_removed(
        cls, n: int, removed: list[Indices], test: list[Indices], disjoint: list[bool]
    ) -> Folds:
        """Folds whose training sets are kept as the rows that they leave out."""
        folds = cls(n, _Complements(n, removed), test)
        vars(folds).update(removed=removed, disjoint=disjoint)  # cached properties, known already
        return folds

    def __len__(self) -> int:
        return len(self.test)

    def __iter__(self) -> Iterator[tuple[Indices, Indices]]:
        return iter(zip(self.train, self.test, strict=True))

    @cached_property
    def rows(self) -> Indices:
        """The test rows of all splits, one split after the other."""
        return np.concatenate(self.test)

    @cached_property
    def offsets(self) -> Indices:
        """Offsets in ``rows`` at which the splits begin, and the end of the last one."""
        return np.cumsum([0, *(rows.size for rows in self.test)])

    def place(self, k: int) -> slice:
        """The part of :attr:`rows` that belongs to split ``k``."""
        return slice(int(self.offsets[k]), int(self.offsets[k + 1]))

    def largest(self, values: Array) -> Array:
        """The largest absolute value of each split and target, (n_splits, q).

        Values are in the order of :attr:`rows`, (N, q).
        """
        return np.asarray(np.maximum.reduceat(np.abs(values), self.offsets[:-1], axis=0))

    @cached_property
    def is_partition(self) -> bool:
        """Whether every row is tested exactly once."""
        return self.rows.size == self.n and np.unique(self.rows).size == self.n

    @cached_property
    def is_forward(self) -> bool:
        """Whether every split trains only on rows that come before all rows it tests."""
        return all(int(train.max()) < int(test.min()) for train, test in self)

    @cached_property
    def removed(self) -> list[Indices]:
        """The complement of each training set."""
        return [_complement(self.n, rows) for rows in self.train]

    @cached_property
    def disjoint(self) -> list[bool]:
        """Per split, whether no row is both trained on and tested."""
        return [
            bool(np.isin(test, removed).all())
            for test, removed in zip(self.test, self.removed, strict=True)
        ]

    def among(self, rows: Indices) -> Folds:
        """The splits of ``rows`` alone, renumbered, without those that test or train on none."""
        place = np.full(self.n, -1, dtype=np.intp)
        place[rows] = np.arange(rows.size)
        both = [(place[a], place[b]) for a, b in self]
        kept = [(a[a >= 0], b[b >= 0]) for a, b in both if (a >= 0).any() and (b >= 0).any()]
        return Folds.from_pairs(rows.size, kept)

    def without(self, rows: Indices) -> Folds:
        """The same splits with ``rows`` (of weight zero, say) taken out of every training set."""
        if rows.size == 0:
            return self
        return Folds(self.n, [a[~np.isin(a, rows)] for a in self.train], self.test)


def _as_indices(rows: Any, n: int, split: int, kind: str) -> Indices:
    rows = np.asarray(rows)
    name = f"the {kind} set of split {split}"
    if rows.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {rows.shape}")
    if rows.dtype == bool:
        if rows.size != n:
            raise ValueError(f"{name} is a mask of {rows.size} rows, but there are {n} rows")
        rows = np.flatnonzero(rows)
    if rows.size == 0:
        raise ValueError(f"{name} is empty; use fewer folds or another splitter")
    if not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"{name} must hold integer row numbers, got values of type {rows.dtype}")
    outside = (rows < -n) | (rows >= n)
    if outside.any():
        raise ValueError(f"{name} names row {rows[outside][0]}, but there are {n} rows")
    found: Indices = np.where(rows < 0, rows + n, rows).astype(np.intp)
    seen = np.zeros(n, dtype=bool)
    seen[found] = True
    if np.count_nonzero(seen) < found.size:
        raise ValueError(f"{name} names a row twice; rows must be unique")
    return found


def _complement(n: int, rows: Indices) -> Indices:
    """The other rows, ascending."""
    mask = np.ones(n, dtype=bool)
    mask[rows] = False
    return np.flatnonzero(mask)


@dataclass(frozen=True)
class _Complements(Sequence[Indices]):
    """Training sets that are kept as the rows they leave out, and made when they are read.

    Training sets of leave-one-out would otherwise hold n^2 indices, as much as a kernel matrix.
    """

    n: int
    removed: list[Indices]

    def __len__(self) -> int:
        return len(self.removed)

    def __getitem__(self, k: Any) -> Any:
        return _complement(self.n, self.removed[k])


def leave_one_out(n: int) -> Folds:
    """The splits of LeaveOneOut, without drawing n training sets of n - 1 rows."""
    rows = list(np.arange(n)[:, None])
    return Folds.from_removed(n, rows, rows, [True] * n)
