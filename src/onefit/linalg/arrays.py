"""Operations on arrays: NumPy on the host, another array library on a device.

Each method is written once, for both. Its operations on arrays of n rows are those of one object,
which :func:`arrays_of` finds from the kernel matrix: :class:`Arrays` is NumPy with LAPACK by name
(onefit.linalg.blas), onefit.linalg.device has the same operations for PyTorch, CuPy and other
libraries of the array API standard. Arrays with one number per column are NumPy's in both cases,
because they decide at once what is done next.

In place means that the argument is overwritten with the result.
"""

from __future__ import annotations

from math import fsum
from types import ModuleType
from typing import Any

import numpy as np

from onefit._types import Array, Indices
from onefit.linalg import blas, reflections
from onefit.linalg.rates import HOST_RATES, Rates
from onefit.linalg.reduced import Eigenvectors, OrthogonalBasis, Tridiagonal

__all__ = ["CHUNK_ELEMENTS", "HOST", "Arrays", "arrays_of", "is_elsewhere", "to_host"]

#: libraries whose arrays stay on their own device
LIBRARIES = ("torch", "cupy", "array_api_strict")
#: numbers of an array on the host that is made and used a part at a time: 128 MiB
CHUNK_ELEMENTS = 2**24
#: steps of the power method for a norm
POWER_STEPS = 10


class Arrays:
    """NumPy and LAPACK.

    Attributes
    ----------
    lib : module
        The namespace of the array API standard.
    on_host : bool
        Whether these are NumPy's arrays.
    terms : int
        Number of terms that a product sums up before it adds these sums; 0 if unknown.
    panel_rows : int
        Rows of a matrix that are worked on at a time, where the result of all would need as much
        memory as the matrix.
    rates : Rates
        Speeds of its operations.
    """

    lib: ModuleType = np
    on_host = True
    terms = 256
    panel_rows = 128
    rates: Rates = HOST_RATES

    def __repr__(self) -> str:
        return "the host"

    # from NumPy's arrays and back

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        """A NumPy array, on this device."""
        return np.asarray(x, dtype=dtype)

    def host(self, x: Any) -> Array:
        """An array of this device, as a NumPy array."""
        return np.asarray(x)

    def astype(self, x: Any, dtype: Any) -> Any:
        """The array in another precision, a dtype of NumPy."""
        return x.astype(dtype, copy=False)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of zeros."""
        return np.zeros(shape, dtype=dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An uninitialised array."""
        return np.empty(shape, dtype=dtype)

    def copy(self, x: Any) -> Any:
        """A copy."""
        return x.copy()

    # some rows and columns, by NumPy arrays of indices or masks

    def columns(self, x: Any, which: Any) -> Any:
        """Some columns of a matrix."""
        return x[:, which]

    def rows(self, x: Any, which: Any) -> Any:
        """Some rows of a matrix, or entries of a vector."""
        return x[which]

    def put(self, x: Any, which: Any, values: Any) -> None:
        """Overwrite some columns."""
        x[:, which] = values

    submatrix = staticmethod(blas.submatrix)

    def add_diagonal(self, a: Any, value: float | Array) -> Any:
        """a + diag(value), in place, for a number or a NumPy array of one for each row."""
        a[np.diag_indices_from(a)] += value
        return a

    # one number per row or column, as a NumPy array

    def diagonal(self, a: Any) -> Array:
        """The diagonal of a matrix."""
        return np.array(np.einsum("ii->i", a))

    def row_norms(self, a: Any) -> Array:
        """The Euclidean norm of every row."""
        return np.asarray(np.linalg.norm(a, axis=1))

    def square_sums(self, a: Any, weights: Array) -> Array:
        """sum_j a_ij^2 weights_jl for every row i and every l."""
        return blas.matmul(np.square(a), weights)

    dots = staticmethod(blas.dots)

    def norms(self, a: Any) -> Array:
        """The Euclidean norm of every column."""
        return np.asarray(np.linalg.norm(a, axis=0))

    def largest(self, a: Any) -> Array:
        """The largest absolute value of every column."""
        return np.asarray(np.abs(a).max(axis=0))

    def column_sums(self, a: Any) -> Array:
        """The sum of every column, rounded once."""
        return np.array([fsum(column) for column in a.T])

    def add_scaled(self, x: Any, a: Any, scale: Array) -> None:
        """x += a diag(scale), in place."""
        x += scale * a

    # matrices

    rank_one = staticmethod(blas.rank_one)
    add_gram = staticmethod(blas.add_gram)
    matmul = staticmethod(blas.matmul)
    mirrored = staticmethod(blas.mirrored)
    unit_ridge = staticmethod(blas.unit_ridge)
    inverse_spd = staticmethod(blas.inverse_spd)
    solve_cholesky = staticmethod(blas.solve_cholesky)
    solve_rows = staticmethod(blas.solve_rows)

    def fortran(self, a: Any) -> Any:
        """The array in column-major order, as LAPACK expects it."""
        return np.asfortranarray(a)

    def fortran_copy(self, a: Any) -> Any:
        """A copy in column-major order."""
        return np.array(a, order="F")

    def cholesky(self, a: Any) -> Any:
        """Lower L with L L' = a; overwrites ``a``."""
        return blas.cholesky(a, overwrite=True)

    def triangular_inverse(self, lower: Any) -> Any:
        """The inverse of a lower triangular matrix; overwrites it."""
        return blas.triangular_inverse(lower, overwrite=True)

    def solve_spd(self, a: Any, b: Any) -> Any:
        """Solve a x = b for a small positive definite a."""
        return blas.solve_spd(a, b)

    def eigh(self, a: Any) -> tuple[Any, Any]:
        """Eigenvalues (ascending) and eigenvectors of a symmetric matrix; overwrites ``a``."""
        return blas.eigh(a, overwrite=True)

    def reduced(self, a: Any) -> Tridiagonal | Eigenvectors:
        """A solver of (a + c I) x = r at many c for a symmetric matrix; overwrites ``a``."""
        return Tridiagonal(a)

    def complement(self, columns: Array) -> reflections.Complement | OrthogonalBasis:
        """The orthogonal complement of some columns, a NumPy array; they must be independent."""
        return reflections.Complement.of(columns)

    def gram(self, a: Any) -> Any:
        """a'a, the lower triangle at least."""
        return blas.gram(np.asfortranarray(a))

    def norm_of_gram(self, a: Any) -> float:
        """A bound on the largest eigenvalue of a'a: twice what the power method finds."""
        start = np.random.default_rng(0).normal(size=(a.shape[1], 1))
        x, found = self.asarray(start, dtype_name(a.dtype)), 0.0
        for _ in range(POWER_STEPS):
            x = x / float(self.norms(x)[0])
            x = self.matmul(a.T, self.matmul(a, x))
            found = max(found, float(self.norms(x)[0]))
        return 2.0 * found


#: NumPy and LAPACK
HOST = Arrays()


def is_elsewhere(x: Any) -> bool:
    """Whether ``x`` is an array of PyTorch, CuPy or array-api-strict, on any device."""
    return type(x).__module__.partition(".")[0] in LIBRARIES and hasattr(x, "shape")


def to_host(x: Any) -> Any:
    """The NumPy array of an array on a device; anything else stays as it is."""
    return arrays_of(x).host(x) if is_elsewhere(x) else x


def arrays_of(x: Any) -> Arrays:
    """The operations on an array, or on a Gram operator."""
    own = getattr(x, "arrays", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    if isinstance(x, np.ndarray) or not is_elsewhere(x):
        return HOST
    from onefit.linalg.which import device_of

    return device_of(x)


def dtype_name(dtype: Any) -> str:
    """NumPy's name of a library's float type."""
    return "float32" if "float32" in str(dtype) else "float64"


def index(which: Any) -> Indices:
    """Indices, for a mask too."""
    which = np.asarray(which)
    return np.flatnonzero(which) if which.dtype == bool else which
