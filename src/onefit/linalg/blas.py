"""Every heavy linear-algebra call of the package; reflections.py has the orthogonal factors.

All of them go to SciPy's BLAS and LAPACK and none to NumPy's: the two wheels carry separate thread
pools, and a loop that alternates between them makes the pools fight. Arrays are column-major, as
LAPACK wants them; a C-ordered symmetric matrix is passed by its transpose, which is itself.

Another array library replaces only these two modules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, blas, lapack

from onefit._types import Array, Indices

__all__ = [
    "Array",
    "LinAlgError",
    "accumulate",
    "add_gram",
    "cholesky",
    "dots",
    "eigh",
    "eigh_tridiagonal",
    "fortran",
    "gram",
    "inverse_from_factor",
    "inverse_spd",
    "matmul",
    "mirrored",
    "overflowing",
    "pivoted_cholesky",
    "rank_one",
    "row_product",
    "smallest_tridiagonal",
    "solve_cholesky",
    "solve_lower",
    "solve_rows",
    "solve_spd",
    "solve_symmetric",
    "solve_tridiagonal",
    "submatrix",
    "triangular_inverse",
    "unit_ridge",
    "without_rounding",
]


_Function = TypeVar("_Function", bound=Callable[..., Any])


def overflowing(function: _Function) -> _Function:
    """Silence overflow in a function whose result is checked, by a certificate or for NaN."""
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
    return quiet(function)


@cache
def _routine(module: Any, name: str, char: str) -> Callable[..., Any]:
    prefix = {"f": "s", "d": "d"}[char]
    routine: Callable[..., Any] = getattr(module, prefix + name)
    return routine


def lapack_routine(name: str, a: Array) -> Callable[..., Any]:
    return _routine(lapack, name, a.dtype.char)


def _blas(name: str, a: Array) -> Callable[..., Any]:
    return _routine(blas, name, a.dtype.char)


def fortran(a: Array) -> Array:
    """A column-major copy of a symmetric matrix: a copy of memory, its transpose is itself."""
    return (a.copy(order="C").T) if a.flags.c_contiguous else a.copy(order="F")


#: rows gathered, and rows mirrored, at a time, few enough to stay in the cache
_GATHER_ROWS, _MIRRORED_ROWS = 64, 128
#: the part of the rows beyond which reading all of them costs less than gathering those, for
#: several columns and for one (benchmarks/row_product.py)
_MAX_GATHERED_SHARE, _MAX_GATHERED_SHARE_OF_ONE = 0.7, 0.25


def submatrix(a: Array, rows: Indices, columns: Indices) -> Array:
    """``a[np.ix_(rows, columns)]``, two to three times as fast: rows first, some at a time.

    Rows are gathered from where they lie in a row: ``take`` copies a column-major matrix whole.
    """
    if not a.flags.c_contiguous and a.flags.f_contiguous:
        return submatrix(a.T, columns, rows).T
    out = np.empty((rows.size, columns.size), dtype=a.dtype)
    for first in range(0, rows.size, _GATHER_ROWS):
        piece = slice(first, first + _GATHER_ROWS)
        # out is written in place only if indices are not checked
        a.take(rows[piece], axis=0).take(columns, axis=1, out=out[piece], mode="clip")
    return out


def unit_ridge(a: Array, root: Array) -> Array:
    """I + R a R for a symmetric C-ordered matrix, R = diag(root), column-major."""
    out = np.empty(a.shape, dtype=a.dtype)
    for first in range(0, a.shape[0], _GATHER_ROWS):
        piece = slice(first, first + _GATHER_ROWS)
        np.multiply(a[piece], root, out=out[piece])
        out[piece] *= root[piece, None]
    out[np.diag_indices_from(out)] += 1.0
    return out.T


def dots(a: Array, b: Array) -> Array:
    """The inner product of every column of ``a`` with that of ``b``."""
    return np.asarray(np.einsum("ij,ij->j", a, b))


def row_product(a: Array, b: Array) -> Array:
    """a b for a symmetric a, reading only the rows of a that some column of b needs."""
    rows = np.flatnonzero(b.any(axis=1))
    most = _MAX_GATHERED_SHARE if b.shape[1] > 1 else _MAX_GATHERED_SHARE_OF_ONE
    if rows.size > most * a.shape[0]:
        return matmul(a, b[:, 0])[:, None] if b.shape[1] == 1 else matmul(a, b)
    a = a.T if a.flags.f_contiguous else a  # rows that lie in a row, as in submatrix
    out = np.zeros(b.shape, dtype=a.dtype, order="F")
    some, gathered = b[rows], np.empty((_GATHER_ROWS, a.shape[0]), dtype=a.dtype)
    for first in range(0, rows.size, _GATHER_ROWS):
        piece = slice(first, first + _GATHER_ROWS)
        a_piece = gathered[: rows[piece].size]
        a.take(rows[piece], axis=0, out=a_piece, mode="clip")
        accumulate(out, a_piece.T, some[piece])
    return out


def column_major(a: Array) -> Array:
    """``a`` itself if LAPACK can read it in place, else a column-major copy."""
    return a if a.flags.f_contiguous else np.asfortranarray(a)


def cholesky(a: Array, overwrite: bool = False) -> Array:
    """Lower L with L L' = a (its lower triangle is read; zeros are written above)."""
    factor, info = lapack_routine("potrf", a)(
        column_major(a), lower=1, clean=1, overwrite_a=overwrite
    )
    if info > 0:
        raise LinAlgError(f"the leading minor of order {info} is not positive definite")
    return np.asarray(factor)


def triangular_inverse(lower: Array, overwrite: bool = False) -> Array:
    """The inverse of a lower triangular matrix."""
    inverse, info = lapack_routine("trtri", lower)(lower, lower=1, overwrite_c=overwrite)
    if info > 0:
        raise LinAlgError(f"diagonal element {info} of a triangular factor is zero")
    return np.asarray(inverse)


def inverse_spd(a: Array) -> Array:
    """The inverse of a positive definite matrix, both triangles; overwrites ``a``."""
    return inverse_from_factor(cholesky(a, overwrite=True))


def inverse_from_factor(lower: Array) -> Array:
    """(L L')^-1, both triangles; overwrites ``lower``."""
    inverse, _ = lapack_routine("potri", lower)(lower, lower=1, overwrite_c=True)
    return mirrored(np.asarray(inverse))


def mirrored(a: Array) -> Array:
    """Copy the lower triangle of ``a`` to the upper one, in place, a block at a time."""
    for first in range(0, a.shape[0], _MIRRORED_ROWS):
        last = min(first + _MIRRORED_ROWS, a.shape[0])
        a[:first, first:last] = a[first:last, :first].T
        corner = np.tril(a[first:last, first:last])
        a[first:last, first:last] = corner + np.tril(corner, -1).T
    return a


def solve_cholesky(lower: Array, b: Array) -> Array:
    """Solve L L' x = b."""
    x, _ = lapack_routine("potrs", lower)(lower, b, lower=1)
    return np.asarray(x)


def solve_spd(a: Array, b: Array, overwrite: bool = False) -> Array:
    """Solve a x = b for a small positive definite a (lower triangle)."""
    _, x, info = lapack_routine("posv", a)(a, b, lower=1, overwrite_a=overwrite)
    if info > 0:
        raise LinAlgError(f"the leading minor of order {info} is not positive definite")
    return np.asarray(x)


def solve_symmetric(a: Array, b: Array) -> Array:
    """Solve a x = b for a small symmetric indefinite a (lower triangle); overwrites both."""
    # enough for LAPACK to work in blocks
    size = 64 * a.shape[0]
    _, _, x, info = lapack_routine("sysv", a)(
        a, b, lower=1, lwork=size, overwrite_a=1, overwrite_b=1
    )
    if info > 0:
        raise LinAlgError(f"pivot {info} of a symmetric system is zero")
    return np.asarray(x)


def solve_lower(lower: Array, b: Array, transposed: bool = False) -> Array:
    """Solve L x = b, or L' x = b, for a lower triangular L; overwrites ``b``."""
    x, info = lapack_routine("trtrs", lower)(
        lower, b, lower=1, trans=int(transposed), overwrite_b=1
    )
    if info > 0:
        raise LinAlgError(f"diagonal element {info} of a triangular factor is zero")
    return np.asarray(x)


def solve_rows(lower: Array, a: Array) -> Array:
    """X with X L' = a, row by row, for a lower triangular L and a C-ordered a, overwritten."""
    x = _blas("trsm", lower)(1.0, lower, a.T, lower=1, overwrite_b=1)
    return np.asarray(x.T)


def solve_tridiagonal(diagonal: Array, beside: Array, b: Array) -> Array:
    """Solve T x = b for a positive definite tridiagonal T."""
    _, _, x, info = lapack_routine("ptsv", diagonal)(diagonal, _padded(beside), b)
    if info > 0:
        raise LinAlgError(f"the leading minor of order {info} is not positive definite")
    return np.asarray(x)


def _padded(beside: Array) -> Array:
    """The elements beside a diagonal; SciPy asks for one even of a 1 x 1 matrix."""
    return beside if beside.size else np.zeros(1, dtype=beside.dtype)


def pivoted_cholesky(a: Array, tolerance: float = -1.0) -> tuple[Array, Indices]:
    """L (n, r) and an order of the rows with a[order, order] = L L', and r the numerical rank.

    Each pivot is the largest diagonal entry of the remainder, until none exceeds the tolerance. A
    negative tolerance means n times the unit roundoff times the largest entry.
    """
    factor, pivots, rank, _ = lapack_routine("pstrf", a)(column_major(a), lower=1, tol=tolerance)
    return np.tril(factor[:, :rank]), np.asarray(pivots - 1, dtype=np.intp)


#: rows up to which divide and conquer may have its workspace of 2 n^2 numbers
MAX_DIVIDE_AND_CONQUER_ROWS = 1200


def eigh(a: Array, overwrite: bool = False) -> tuple[Array, Array]:
    """Eigenvalues (ascending) and eigenvectors of a symmetric matrix (lower triangle).

    Divide and conquer (syevd) is the faster up to about a thousand rows; beyond, relatively robust
    representations (syevr) are as fast and need n^2 numbers beside the matrix instead of 2 n^2.
    """
    if a.shape[0] <= MAX_DIVIDE_AND_CONQUER_ROWS:
        values, vectors, info = lapack_routine("syevd", a)(
            column_major(a), lower=1, overwrite_a=overwrite
        )
    else:
        values, vectors, _, _, info = lapack_routine("syevr", a)(
            column_major(a), lower=1, overwrite_a=overwrite
        )
    if info > 0:
        raise LinAlgError("the symmetric eigenvalue iteration did not converge")
    return np.asarray(values), np.asarray(vectors)


def without_rounding(values: Array, size: float = 0.0) -> Array:
    """Eigenvalues of a kernel matrix (ascending); negative ones that are rounding become zero.

    ``size`` is the norm of the matrix, if that is larger than its largest eigenvalue here.
    """
    if values[0] < -(np.finfo(values.dtype).eps ** 0.5) * max(abs(values[-1]), size):
        raise LinAlgError(
            f"the kernel matrix is indefinite: its smallest eigenvalue is {values[0]:.3g}, its "
            f"largest {values[-1]:.3g}; a kernel must be positive semi-definite: correct the "
            "kernel, or raise lam if its entries are rounded"
        )
    return np.asarray(np.maximum(values, 0.0))


def eigh_tridiagonal(diagonal: Array, beside: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending) and eigenvectors of a symmetric tridiagonal matrix."""
    values, vectors, info = lapack_routine("stevd", diagonal)(diagonal, beside)
    if info > 0:
        raise LinAlgError("the symmetric eigenvalue iteration did not converge")
    return np.asarray(values), np.asarray(vectors)


def smallest_tridiagonal(diagonal: Array, beside: Array) -> float:
    """The smallest eigenvalue of a symmetric tridiagonal matrix, by bisection."""
    _, values, _, _, info = lapack_routine("stebz", diagonal)(
        diagonal, _padded(beside), 2, 0.0, 0.0, 1, 1, 0.0, "E"
    )
    if info > 0:
        raise LinAlgError("the bisection for an eigenvalue did not converge")
    return float(values[0])


def gram(a: Array, rows: bool = False, out: Array | None = None) -> Array:
    """The lower triangle of a'a, or of a a' with ``rows``; the upper one is zero, or out's."""
    flip = a.flags.c_contiguous and not a.flags.f_contiguous
    place = {} if out is None else {"c": out, "overwrite_c": 1}
    return np.asarray(
        _blas("syrk", a)(1.0, a.T if flip else a, trans=int(rows == flip), lower=1, **place)
    )


def rank_one(a: Array, x: Array, y: Array) -> None:
    """a += x y' in place, for a column-major ``a``."""
    _blas("ger", a)(1.0, x, y, a=a, overwrite_a=1)


def add_gram(total: Array, a: Array) -> None:
    """total += a a' in place (lower triangle), for a column-major ``total``."""
    flip = _flip(a)
    if a.size:
        _blas("syrk", a)(
            1.0, a.T if flip else a, trans=flip, beta=1.0, c=total, lower=1, overwrite_c=1
        )


def accumulate(total: Array, a: Array, b: Array, fresh: bool = False) -> None:
    """total += a b in place, or total = a b if it is fresh; total and a column-major."""
    flip = _flip(b)
    _blas("gemm", a)(
        1.0, a, b.T if flip else b, trans_b=flip, beta=float(not fresh), c=total, overwrite_c=1
    )


def matmul(a: Array, b: Array) -> Array:
    """a @ b, reading C-ordered operands through their transposes (no copies)."""
    a_flip, b_flip = _flip(a), _flip(b)
    if b.ndim == 1:
        return np.asarray(_blas("gemv", a)(1.0, a.T if a_flip else a, b, trans=a_flip))
    return np.asarray(
        _blas("gemm", a)(
            1.0, a.T if a_flip else a, b.T if b_flip else b, trans_a=a_flip, trans_b=b_flip
        )
    )


def _flip(a: Array) -> int:
    return int(a.flags.c_contiguous and not a.flags.f_contiguous)
