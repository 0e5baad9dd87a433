"""The interface of all forms of a kernel matrix: products, blocks, diagonal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from onefit._types import Array, Indices
from onefit.linalg.arrays import HOST, Arrays

__all__ = ["Gram"]


class Gram(ABC):
    """A symmetric matrix of inner products, K_ij = <phi(x_i), phi(x_j)>.

    Attributes
    ----------
    arrays : Arrays
        The array library and device on which blocks are computed.
    terms : int
        Number of terms that a precise product sums up before it adds these sums.
    sliced : bool
        Whether a precise product is computed from slices (onefit.linalg.slices).
    features : FeatureMap or None
        The feature map of a matrix of low rank.
    """

    arrays: Arrays = HOST
    terms: int = HOST.terms
    sliced: bool = False
    features: Any = None
    __array_ufunc__ = None  # K @ V is an error, not a product of copies

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """The diagonal, (n,), as a NumPy array."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        n = int(self.diagonal.shape[0])
        return n, n

    @property
    def dtype(self) -> Any:
        """The type of the entries."""
        return self.diagonal.dtype

    @property
    @abstractmethod
    def held(self) -> bool:
        """Whether all entries are in memory."""

    @property
    @abstractmethod
    def matrix(self) -> Any:
        """The entries of a matrix that is held; must not be written to."""

    @abstractmethod
    def hold(self) -> Gram:
        """The same matrix, with all entries in memory."""

    @abstractmethod
    def matmul(self, V: Any, precise: bool = False) -> Any:
        """K V for an (n, k) array, in the wider of both precisions.

        A precise product loses fewer digits: it sums up blocks of ``terms`` terms first, or is
        computed from slices.
        """

    @abstractmethod
    def block(self, rows: Indices, columns: Indices | None = None) -> Any:
        """K[rows, columns], or K[rows, rows] without columns; must not be written to."""

    def columns(self, rows: Indices) -> Any:
        """K[:, rows]."""
        return self.block(np.arange(self.shape[0]), rows)

    def row_sums(self, squared: bool = False) -> Array:
        """The sum of absolute values, or of squares, of each row."""
        return self.hold().row_sums(squared)

    @abstractmethod
    def astype(self, dtype: Any) -> Gram:
        """The same matrix in another precision."""

    @abstractmethod
    def take(self, rows: Indices) -> Gram:
        """The matrix of some of the rows."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The entries as a NumPy array."""
        return np.asarray(self.arrays.host(self.hold().matrix), dtype=dtype)
