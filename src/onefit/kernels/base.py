"""What a kernel is, and the kernel made of a user's function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from onefit.kernels.distances import Array, Geometry, Points, as_points


class Kernel(ABC):
    """A positive semi-definite function of two points.

    Subclasses are frozen dataclasses of their parameters: two kernels are equal when they are of
    one class and their parameters are equal.

    Attributes
    ----------
    metric : the pair quantity that the kernel maps, see `onefit.kernels.distances`; empty if none
    """

    metric: ClassVar[str] = ""

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
            `out` if it was given. Otherwise not to be written to: it may belong to the user.
        """

    @abstractmethod
    def diag(self, X: Points) -> Array:
        """``K(x, x)`` of each row of `X`, without the matrix."""

    def __call__(self, X: Points, Y: Points | None = None) -> Array:
        """The kernel matrix of the rows of `X` and of `Y` (default: `X`)."""
        return self.matrix(Geometry(X, Y, keep=False))


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's function of two matrices.

    Parameters
    ----------
    func : callable
        ``func(X, Y, **params)`` returns the (n, m) matrix of K(x_i, y_j), for X of shape (n, d) and
        Y of shape (m, d).
    params : mapping, default={}
        Keyword arguments for `func`.
    """

    func: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        values = self._evaluate(geometry.X, geometry.Y, geometry.shape)
        if out is None:
            return values.astype(geometry.dtype, copy=False)
        geometry.output(out)[...] = values
        return out

    def diag(self, X: Points) -> Array:
        points = as_points(X, "X")
        rows = (points[[i]] for i in range(points.shape[0]))
        values = [self._evaluate(row, row, (1, 1))[0, 0] for row in rows]
        return np.array(values, dtype=points.dtype)

    def _evaluate(self, X: Points, Y: Points, shape: tuple[int, int]) -> Array:
        values: Array = np.asarray(self.func(X, Y, **self.params))
        name = getattr(self.func, "__name__", repr(self.func))
        if values.shape != shape:
            raise ValueError(
                f"kernel {name} returned an array of shape {values.shape} for {shape[0]} and "
                f"{shape[1]} points, expected {shape}: it must take two matrices of rows and "
                "return the whole kernel matrix."
            )
        require_finite(values, f"kernel {name}", "Check the function at the points given.")
        return values


def require_finite(K: Array, name: str, advice: str) -> None:
    """Raise if `K` holds NaN or infinity, in one pass over it without a temporary."""
    if K.size and not (np.isfinite(K.min()) and np.isfinite(K.max())):
        raise ValueError(f"{name} gave NaN or infinite values. {advice}")


def require_number(value: Any, name: str, *, positive: bool) -> float:
    """`value` as a float, or an error that names the parameter."""
    needed = "a positive finite number" if positive else "a non-negative finite number"
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be {needed}, got {value!r}.")
    number = float(value)
    if not np.isfinite(number) or number < 0 or (positive and number == 0):
        raise ValueError(f"{name} must be {needed}, got {value!r}.")
    return number
