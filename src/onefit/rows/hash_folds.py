"""Folds by hash: the fold of a row is a hash of its key, whatever the other rows are.

Splitters that draw need all rows in one place. The hash of a key (:mod:`onefit.rows.hashing`)
needs the key alone, so a row has the same fold in every chunk, on every machine and in every
order. The key is the number of the row, or its value in a column: of ids, so that folds survive a
reordering of the file, or of groups, which are then held out as wholes.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from onefit._indexing import n_rows
from onefit._types import Array, Indices
from onefit.rows.hashing import hash_keys

__all__ = ["HashKFold", "check_splitter"]


class HashKFold(BaseCrossValidator):
    """Split rows into folds by a hash, so that they need not be in one place.

    The number of keys differs a little between folds: n rows with their numbers as keys give folds
    of n/k rows, with a standard deviation of about sqrt(n/k).

    Parameters
    ----------
    n_splits : int, default=5
    random_state : int, default=0
        The seed of the hash; the same one gives the same folds everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> cv = HashKFold(3)
    >>> cv.fold_of(np.arange(12))
    array([0, 1, 1, 2, 2, 2, 1, 2, 0, 2, 1, 0])
    >>> cv.fold_of(["Anna", "Bert", "Anna"])
    array([1, 2, 1])
    >>> [len(test) for _, test in cv.split(np.zeros((3000, 1)))]
    [1018, 988, 994]
    """

    # scikit-learn's metadata routing passes groups to split
    __metadata_request__split = {"groups": True}  # noqa: RUF012

    def __init__(self, n_splits: int = 5, *, random_state: int = 0) -> None:
        if not _is_int(n_splits) or n_splits < 2:
            raise ValueError(f"n_splits must be a whole number of at least 2, got {n_splits!r}")
        if not _is_int(random_state):
            raise ValueError(
                f"random_state must be a whole number, so that every machine finds the same folds, "
                f"got {random_state!r}"
            )
        self.n_splits = int(n_splits)
        self.random_state = int(random_state)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def fold_of(self, keys: Any) -> Indices:
        """The fold in which each row is held out, from row numbers, ids or groups."""
        words = hash_keys(keys, self.random_state) % np.uint64(self.n_splits)
        return words.astype(np.intp)

    def check_counts(self, counts: Array) -> None:
        """Refuse folds without any row."""
        empty = np.flatnonzero(np.asarray(counts) == 0)
        if empty.size:
            raise ValueError(
                f"fold {empty[0]} of HashKFold(n_splits={self.n_splits}) has no row: there are too "
                "few keys for folds by hash; use fewer folds, another random_state, or KFold where "
                "rows fit in memory"
            )

    def _iter_test_indices(
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> Iterator[Indices]:
        n = n_rows(X)
        fold = self.fold_of(np.arange(n) if groups is None else groups)
        self.check_counts(np.bincount(fold, minlength=self.n_splits))
        for k in range(self.n_splits):
            yield np.flatnonzero(fold == k)


def check_splitter(cv: Any) -> HashKFold:
    """The splitter of streamed rows: folds by hash, or a number of them."""
    if isinstance(cv, HashKFold):
        return cv
    if _is_int(cv):
        return HashKFold(int(cv))
    raise ValueError(
        f"cv={cv!r} needs all rows in one place, but they are streamed; use cv=HashKFold(n_splits) "
        "of onefit, whose fold of a row is a hash of its number, or of its value in a column of "
        "ids or groups (groups=...)"
    )


def _is_int(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
