"""What a loss is: a convex function of one prediction, and its derivatives.

A loss ``V(y, u)`` knows neither kernel nor lambda. Solvers and held-out methods see it only
through the five pointwise functions of :class:`Loss`, and ask :func:`require` beforehand for the
ones they need.
"""

from __future__ import annotations

import numbers
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = [
    "Array",
    "Loss",
    "MissingDerivativeError",
    "PiecewiseQuadratic",
    "SmoothLoss",
    "check_level",
    "in_type_of",
    "loss_of",
    "of_columns",
    "require",
    "resolved",
]


@runtime_checkable
class Loss(Protocol):
    """Members that every loss has; any object with these members is a loss.

    ``quadratic`` means that the loss is (y - u)^2, so one linear system solves it (False if the
    member is missing). ``piecewise_quadratic`` means that the third derivative is zero wherever it
    exists; then ``piece(y, u)`` must distinguish the quadratic pieces, because a Newton step is not
    exact if a row changes its piece. Other losses are smooth and have one piece.

    ``max_curvature`` is the largest value of ``curvature``. Without it, fits have no error bound;
    held-out methods need it.
    """

    name: str
    task: str
    quadratic: bool
    piecewise_quadratic: bool

    @property
    def max_curvature(self) -> float:
        """The largest curvature anywhere."""
        ...

    def value(self, y: Array, u: Array) -> Array:
        """V(y, u)."""
        ...

    def gradient(self, y: Array, u: Array) -> Array:
        """dV/du."""
        ...

    def curvature(self, y: Array, u: Array) -> Array:
        """d2V/du2; on a kink, that of the piece whose label ``piece`` gives there."""
        ...

    def piece(self, y: Array, u: Array) -> Array:
        """Label of the smooth piece on which u lies."""
        ...


class MissingDerivativeError(TypeError):
    """A method needs a derivative that the loss does not have."""


def require(loss: object, method: str, *members: str) -> None:
    """Check that ``loss`` has the members a method declares to need, once, before any work.

    Examples
    --------
    >>> from onefit.losses import Huber
    >>> require(Huber(1.0), "influence", "gradient", "curvature")
    >>> require(Huber(1.0), "influence of order 2", "third")
    Traceback (most recent call last):
        ...
    onefit.losses.base.MissingDerivativeError: method 'influence of order 2' needs 'third' of \
the loss, which Huber(threshold=1.0) does not have; add it to the loss or choose another method
    """
    missing = [name for name in members if not hasattr(loss, name)]
    if missing:
        names = ", ".join(repr(name) for name in missing)
        raise MissingDerivativeError(
            f"method {method!r} needs {names} of the loss, which {loss!r} does not have; "
            "add it to the loss or choose another method"
        )


def loss_of(loss: Loss, columns: Any) -> Loss:
    """The loss of some of the targets, which may have thresholds of their own."""
    take = getattr(loss, "take", None)
    found: Loss = loss if take is None else take(columns)
    return found


def resolved(loss: Loss, y: Array, s: Array) -> Loss:
    """The loss with widths in units of the targets, where it takes them from their spread ("mad").

    Each column of targets and weights is one training set, and has a width of its own: rows of
    weight zero, those held out among them, have no part in it.

    Parameters
    ----------
    loss : Loss
    y : (n, k) array, or (n, 1) if all have one target
    s : (n, k) array, or (n, 1) if all have the same weights
    """
    if not getattr(loss, "relative", False):
        return loss
    found: Loss = loss.resolve(y, s)  # type: ignore[attr-defined]
    return found


def of_columns(parameter: tuple[float, ...], columns: Any) -> float | tuple[float, ...]:
    """A parameter of some of the targets, of a tuple that has one for each."""
    some = np.asarray(parameter)[columns]
    return tuple(some.tolist()) if some.size > 1 else float(some[0])


def in_type_of(r: Array, parameter: Any) -> Any:
    """A parameter that does not change the precision of what it meets."""
    return np.asarray(parameter, dtype=r.dtype) if isinstance(parameter, tuple) else parameter


def check_level(level: Any) -> float | tuple[float, ...]:
    """A level between 0 and 1, or several."""
    if np.ndim(level) == 1 and np.size(level) > 0:
        return tuple(_one_level(one) for one in level) if len(level) > 1 else _one_level(level[0])
    return _one_level(level)


def _one_level(level: Any) -> float:
    ok = isinstance(level, numbers.Real) and not isinstance(level, (bool, np.bool_))
    if not ok or not 0.0 < float(level) < 1.0:
        raise ValueError(
            f"level must be a number between 0 and 1, or a list of such, got {level!r}; "
            "0.5 is the median, 0.9 is exceeded by one target in ten"
        )
    return float(level)


class PiecewiseQuadratic:
    """Base of the losses made of quadratic and straight pieces."""

    quadratic = False
    piecewise_quadratic = True


class SmoothLoss:
    """Base of the losses with three derivatives: one piece, curvature that varies along it."""

    quadratic = False
    piecewise_quadratic = False

    def piece(self, y: Array, u: Array) -> Array:
        """Every point lies on the one piece there is."""
        return np.zeros(np.broadcast_shapes(np.shape(y), np.shape(u)), dtype=np.int8)
