"""The base class of kernels, and the kernel made of a user's function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from onefit.gram import DeviceGram, TiledGram
from onefit.kernels.distances import Array, Geometry, Points, as_points, row_blocks
from onefit.kernels.rows import number_type
from onefit.linalg import Arrays, arrays_of
from onefit.linalg.device import Device


class Kernel(ABC):
    """A positive semi-definite function of two points.

    Subclasses are frozen dataclasses of their parameters: two kernels are equal when they are of
    one class and their parameters are equal.

    Attributes
    ----------
    metric : the pair quantity that the kernel maps, see `onefit.kernels.distances`; empty if none
    definite : whether it is proven to be positive semi-definite, not only declared so
    vectors : whether its points must be vectors of numbers
    """

    metric: ClassVar[str] = ""
    definite: ClassVar[bool] = True
    vectors: ClassVar[bool] = True

    @property
    def metrics(self) -> tuple[str, ...]:
        """The pair quantities used, each once."""
        return (self.metric,) if self.metric else ()

    @abstractmethod
    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        """The kernel matrix of the points of `geometry`.

        Parameters
        ----------
        geometry : Geometry
        out : array of shape (n, m), default=None
            Where to write; a new array by default.

        Returns
        -------
        array of shape (n, m)
            `out` if it was given. Otherwise it must not be written to: it may be the user's.
        """

    @abstractmethod
    def diag(self, X: Points) -> Array:
        """``K(x, x)`` of each row of `X`, without the matrix."""

    def separation(self, X: Points, Y: Points) -> Array:
        """Distances of the rows of `X` and of `Y` in feature space, (n, m).

        They are ``sqrt(K(x, x) - 2 K(x, y) + K(y, y))``, zero if that is rounding, or another
        distance that orders pairs in the same way.
        """
        left, right = self.diag(X)[:, None], self.diag(Y)[None, :]
        squared = left + right - 2.0 * self(X, Y)
        lost = 16.0 * np.finfo(squared.dtype).eps * (left + right)
        return np.asarray(np.sqrt(np.where(squared > lost, squared, 0.0)))

    def __call__(self, X: Points, Y: Points | None = None) -> Array:
        """The kernel matrix of the rows of `X` and of `Y` (default: `X`)."""
        return self.matrix(Geometry(X, Y, keep=False))

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        """The gradient of sum_k left_k' K right_k in the logarithms of the kernel's parameters.

        All derivatives of a model or of its cross-validation are such sums, with few columns
        (onefit.gradient); a kernel only adds the derivatives of its own matrix.

        Parameters
        ----------
        X : array of shape (n, d)
        left, right : arrays of shape (n, k)

        Returns
        -------
        dict
            A number, as an array of no dimension, or an array, for each parameter's name.
        """
        raise NotImplementedError(
            f"kernel {self!r} gives no gradient: it has no method 'pullback'; search it by a grid"
        )

    def tiles(self, X: Points) -> TiledGram:
        """The kernel matrix of the rows of `X`, formed tile by tile when needed."""
        points = as_points(X, "X")
        arrays = arrays_of(points)

        def block(rows: Any, columns: Any) -> Array:
            right = None if columns is None else arrays.rows(points, columns)
            return self(arrays.rows(points, rows), right)

        if not isinstance(arrays, Device):
            return TiledGram(block, self.diag(points))
        self.require_device(arrays)
        return DeviceGram(block, arrays.host(self.diag(points)), arrays)

    def require_device(self, arrays: Arrays) -> None:  # noqa: B027
        """Refuse a device that the kernel cannot be computed on."""


class Composite(Kernel):
    """Base of kernels made of other kernels."""

    @property
    @abstractmethod
    def parts(self) -> Sequence[Kernel]:
        """These kernels."""

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.metrics))

    @property
    def definite(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(part.definite for part in self.parts)

    @property
    def vectors(self) -> bool:  # type: ignore[override]
        """Whether any part needs them."""
        return any(part.vectors for part in self.parts)

    def require_device(self, arrays: Arrays) -> None:
        for part in self.parts:
            part.require_device(arrays)


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's function of two matrices, or of two arrays of any objects, or of two rows.

    Parameters
    ----------
    func : callable
        ``func(X, Y, **params)`` returns the (n, m) matrix of K(x_i, y_j), for X of shape (n, d) and
        Y of shape (m, d); for X of shape (n,) and Y of shape (m,) where rows are not vectors. Or,
        as in scikit-learn's KernelRidge, ``func(x, y, **params)`` returns the number K(x, y) for
        two rows; that takes n m calls.
    params : mapping, default={}
        Keyword arguments for `func`.
    """

    definite = False
    vectors = False

    func: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        values = self._evaluate(geometry.X, geometry.Y, geometry.shape, geometry.symmetric)
        if geometry.symmetric:
            values = symmetric(values, f"kernel {self._name}")
        if out is None:
            return values.astype(geometry.dtype, copy=False)
        geometry.output(out)[...] = values
        return out

    def diag(self, X: Points) -> Array:
        points = as_points(X, "X")
        rows = (points[[i]] for i in range(points.shape[0]))
        values = [self._evaluate(row, row, (1, 1))[0, 0] for row in rows]
        return np.array(values, dtype=number_type(points))

    def require_device(self, arrays: Arrays) -> None:
        raise TypeError(
            f"kernel {self._name} is a function of NumPy arrays, which {arrays!r} cannot compute: "
            "use a named kernel, or leave the device out."
        )

    @property
    def _name(self) -> str:
        return str(getattr(self.func, "__name__", repr(self.func)))

    def _evaluate(self, X: Points, Y: Points, shape: tuple[int, int], same: bool = False) -> Array:
        values = self._of_matrices(X, Y, shape)
        if isinstance(values, Exception) or self._by_chance(X, Y, shape):
            if self._is_of_rows(X, Y):
                values = self._of_rows(X, Y, same)
            elif isinstance(values, Exception):
                raise values
        require_finite(values, f"kernel {self._name}", "Check the function at the points given.")
        return values

    def _of_matrices(self, X: Points, Y: Points, shape: tuple[int, int]) -> Array | Exception:
        """The matrix, if the function takes two matrices; otherwise the error."""
        try:
            values: Array = np.asarray(self.func(X, Y, **self.params))
        except Exception as error:
            return error
        if values.shape == shape:
            return values
        return ValueError(
            f"kernel {self._name} returned an array of shape {values.shape} for {shape[0]} and "
            f"{shape[1]} points, expected {shape}: it must take two matrices of rows and return "
            "the whole kernel matrix, or two rows and return a number."
        )

    def _by_chance(self, X: Points, Y: Points, shape: tuple[int, int]) -> bool:
        """Whether the shape is right only for this number of columns, as that of x @ y may be."""
        width = X.shape[1] if len(X.shape) == 2 else 0
        if width < 2 or width not in shape or min(shape) < 2:
            return False
        n, m = (k - 1 if k == width else k for k in (2, min(3, shape[1])))
        return isinstance(self._of_matrices(X[:n], Y[:m], (n, m)), Exception)

    def _is_of_rows(self, X: Points, Y: Points) -> bool:
        """Whether the function gives a number for two rows."""
        try:
            return np.ndim(self.func(X[0], Y[0], **self.params)) == 0
        except Exception:
            return False

    def _of_rows(self, X: Points, Y: Points, same: bool) -> Array:
        """The matrix from a function of two rows."""
        left, right = ([A[i] for i in range(A.shape[0])] for A in (X, Y))
        values = np.empty((len(left), len(right)))
        for i, x in enumerate(left):
            for j in range(i if same else 0, len(right)):
                values[i, j] = self.func(x, right[j], **self.params)
        return np.triu(values) + np.triu(values, 1).T if same else values


def symmetric(K: Array, name: str) -> Array:
    """`K` itself if it is symmetric, (K + K') / 2 if it is so up to noise.

    Methods read one triangle or the other, or the whole matrix: they agree only on a symmetric one.

    Parameters
    ----------
    K : array of shape (n, n)
    name : str
        Its name in an error.
    """
    largest, where, size = 0.0, (0, 0), 0.0
    for rows in row_blocks(K.shape):
        gap = np.abs(K[rows] - K[:, rows].T)
        row, column = divmod(int(gap.argmax()), gap.shape[1])
        if gap[row, column] > largest:
            largest, where = float(gap[row, column]), (row + rows.start, column)
        size = max(size, float(np.abs(K[rows]).max()))
    if largest == 0.0:
        return K
    if largest > noise_level(K.dtype) * size:
        i, j = where
        raise ValueError(
            f"{name} is not symmetric: max |K - K'| = {largest:.3g} at [{i}, {j}], "
            f"where K[{i}, {j}] = {K[i, j]:.6g} and K[{j}, {i}] = {K[j, i]:.6g}. If the "
            "difference is noise, pass (K + K.T) / 2."
        )
    half = K.dtype.type(0.5) if K.dtype.kind == "f" else 0.5
    return np.asarray(half * K + half * K.T)


def noise_level(dtype: Any) -> float:
    """Tolerance for rounding in a kernel matrix, relative to its largest entry."""
    return 1e-4 if dtype == np.float32 else 1e-8


def require_finite(K: Array, name: str, advice: str) -> None:
    """Raise if `K` contains NaN or infinity."""
    if 0 in K.shape:
        return
    lib = arrays_of(K).lib
    if not (isfinite(lib.min(K)) and isfinite(lib.max(K))):
        raise ValueError(f"{name} gave NaN or infinite values. {advice}")


def require_gamma(kernel: Any) -> float:
    """The gamma of a kernel; an error if it is None, which stands for that of an estimator."""
    if kernel.gamma is None:
        raise ValueError(
            f"{kernel!r} has no gamma of its own; give it one, such as gamma=1.0 (the gamma of an "
            "estimator is for its kernel itself, not for the parts of a sum)."
        )
    return float(kernel.gamma)


def require_number(value: Any, name: str, *, positive: bool) -> float:
    """`value` as a float, or an error that names the parameter."""
    needed = "a positive finite number" if positive else "a non-negative finite number"
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be {needed}, got {value!r}.")
    number = float(value)
    if not np.isfinite(number) or number < 0 or (positive and number == 0):
        raise ValueError(f"{name} must be {needed}, got {value!r}.")
    return number
