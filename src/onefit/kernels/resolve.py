"""From the parameters of an estimator to a kernel object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from math import sqrt
from typing import Any

import numpy as np

from onefit._validation import check_choice
from onefit.kernels.base import CallableKernel, Kernel, require_number
from onefit.kernels.distances import Array, Points, as_points, is_sparse
from onefit.kernels.dot import Linear, Polynomial
from onefit.kernels.per_feature import PerFeature
from onefit.kernels.precomputed import Precomputed
from onefit.kernels.stationary import (
    Gaussian,
    Laplace,
    Matern12,
    Matern32,
    Matern52,
    Stationary,
)
from onefit.linalg import arrays_of, is_elsewhere

KERNELS: dict[str, type[Kernel]] = {
    "rbf": Gaussian,
    "gaussian": Gaussian,
    "laplacian": Laplace,
    "laplace": Laplace,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "linear": Linear,
    "precomputed": Precomputed,
}
"""The names of kernels, aliases included, with their classes."""


def resolve_kernel(
    kernel: str | Kernel | Callable[..., Any],
    X: Points,
    gamma: Any = "scale",
    sample_weight: Array | None = None,
) -> Kernel:
    """The kernel object of an estimator's parameters.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name in `KERNELS`, which is the object with its defaults; a kernel object, returned as it
        is unless its gamma is None; or a function of two matrices of rows that returns the kernel
        matrix, or of two rows that returns a number.
    X : array or sparse matrix of shape (n, d)
        The training points, which only gamma="scale" and "auto" use.
    gamma : float, "scale", "auto" or array of shape (d,), default="scale"
        For a kernel whose own gamma is None. An array has a value for each column (stationary
        kernels only). "auto" is 1/d; "scale" depends on the variance of all entries of X, and on d
        (docs, "Kernels and grids").
    sample_weight : array of shape (n,), default=None
        How often each row counts in the variance.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from onefit.kernels import Polynomial
    >>> resolve_kernel(Polynomial(degree=2), [[0.0], [1.0]], gamma=0.5)
    Polynomial(gamma=0.5, coef0=1.0, degree=2)
    """
    found = _get_kernel(kernel)
    if not takes_gamma(found):
        return found
    value = _resolve_gamma(gamma, found, X, sample_weight)
    if not isinstance(value, tuple):
        return replace(found, gamma=value)  # type: ignore[type-var]
    if not takes_gammas(found):
        raise ValueError(
            f"kernel {kernel!r} takes a single gamma; one per column is for rbf, laplacian and "
            "the Matern kernels."
        )
    return PerFeature(type(found), value)  # type: ignore[arg-type]


def named_kernel(kernel: Any) -> Any:
    """The object of a known name; anything else is returned as is."""
    return KERNELS[kernel]() if isinstance(kernel, str) and kernel in KERNELS else kernel


def takes_gamma(kernel: Any) -> bool:
    """Whether a kernel, or its name, uses the gamma of the estimator: its own is None."""
    found = named_kernel(kernel)
    return isinstance(found, Kernel) and getattr(found, "gamma", 0.0) is None


def takes_gammas(kernel: Any) -> bool:
    """Whether that gamma may have a value for each column."""
    found = named_kernel(kernel)
    return takes_gamma(found) and isinstance(found, Stationary) and len(fields(found)) == 1


def _get_kernel(kernel: Any) -> Kernel:
    """The kernel of a name, an object or a function."""
    if isinstance(kernel, str):
        check_choice("kernel", kernel, KERNELS)
        return KERNELS[kernel]()
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(f"kernel must be an object, got the class {kernel.__name__}: call it.")
    if callable(kernel):
        return CallableKernel(kernel)
    raise TypeError(f"kernel must be a name, a Kernel object or a callable, got {kernel!r}.")


def is_precomputed(kernel: Any) -> bool:
    """Whether rows of X are rows of the kernel matrix."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def needs_vectors(kernel: Any) -> bool:
    """Whether rows must be vectors of numbers; a user's function may compare anything."""
    return kernel.vectors if isinstance(kernel, Kernel) else not callable(kernel)


def _resolve_gamma(
    gamma: Any, kernel: Any, X: Points, sample_weight: Array | None
) -> float | tuple[float, ...]:
    if np.ndim(gamma) == 1:
        found = tuple(np.asarray(gamma, dtype=np.float64).tolist())
        if len(found) != X.shape[1]:
            raise ValueError(
                f"gamma has {len(found)} values, one for each column, but X has {X.shape[1]} "
                "columns."
            )
        return found
    if not isinstance(gamma, str):
        return require_number(gamma, "gamma", positive=True)
    if gamma not in ("scale", "auto"):
        raise ValueError(f"gamma must be a positive number, 'scale' or 'auto', got {gamma!r}.")
    points = as_points(X, "X")
    if gamma == "auto":
        return 1.0 / int(points.shape[1])
    return scale_gamma(kernel, int(points.shape[1]), _variance(points, sample_weight))


def scale_gamma(kernel: Kernel, n_features: int, variance: float) -> float:
    """gamma="scale": one over the typical size of what gamma multiplies; 1 if the variance is 0.

    That is 1/(d v) for kernels of squared distances and inner products (as in scikit-learn's SVC),
    1/(d sqrt(v)) for the city-block distance, and 1/sqrt(d v) for the Euclidean one.
    """
    typical = {
        "sqeuclidean": n_features * variance,
        "dot": n_features * variance,
        "manhattan": n_features * sqrt(variance),
        "euclidean": sqrt(n_features * variance),
    }
    if kernel.metric not in typical:
        raise ValueError(f"{kernel!r} has no distance that gamma='scale' could be taken from.")
    return 1.0 / typical[kernel.metric] if variance > 0 else 1.0


def _variance(X: Points, sample_weight: Array | None) -> float:
    """The variance of all entries, the zeros of a sparse matrix included."""
    if sample_weight is None:
        weights = np.full(X.shape[0], 1.0 / (X.shape[0] * X.shape[1]))
    else:
        weights = sample_weight / (float(sample_weight.sum()) * X.shape[1])
    if is_elsewhere(X):
        xp = arrays_of(X)
        w, rows = xp.asarray(weights[:, None]), xp.astype(X, np.float64)
        centre = float(xp.lib.sum(w * rows))
        return float(xp.lib.sum(w * (rows - centre) ** 2))
    if is_sparse(X):
        filled = np.diff(X.indptr)
        rows, data = np.repeat(weights, filled), X.data.astype(np.float64)
        mean = float(rows @ data)
        return float(rows @ (data - mean) ** 2 + (weights @ (X.shape[1] - filled)) * mean**2)
    mean = float(weights @ X.sum(axis=1, dtype=np.float64))
    return float(weights @ np.square(X.astype(np.float64) - mean).sum(axis=1))
