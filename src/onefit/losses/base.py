"""The interface of losses: a convex function of one prediction, and its derivatives.

A loss ``V(y, u)`` is independent of kernel and lambda. Solvers and held-out methods use only the
five pointwise functions of :class:`Loss`, and check by :func:`require` beforehand that those they
need exist.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = [
    "MAX_BISECTIONS",
    "Array",
    "Loss",
    "MissingDerivativeError",
    "PerTargetLoss",
    "PiecewiseQuadratic",
    "SmoothLoss",
    "check_level",
    "in_type_of",
    "loss_of",
    "per_target",
    "require",
    "resolved",
]

#: halvings of a bracket, more than a number has binary digits
MAX_BISECTIONS = 60


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
    """The loss with widths in units of the targets, if it computes them from their spread ("mad").

    Each column of targets and weights is one training set with a width of its own. Rows of weight
    zero, such as held-out rows, are ignored.

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


def in_type_of(r: Array, parameter: Any) -> Any:
    """A parameter that does not change the precision of the residuals."""
    return np.asarray(parameter, dtype=r.dtype) if isinstance(parameter, tuple) else parameter


def per_target(value: Any, check: Callable[[Any], float]) -> float | tuple[float, ...]:
    """A checked number, or a tuple of one for each target."""
    if np.ndim(value) == 1 and np.size(value) > 0:
        checked = tuple(check(one) for one in value)
        return checked if len(checked) > 1 else checked[0]
    return check(value)


def check_level(level: Any) -> float:
    """A level between 0 and 1."""
    ok = isinstance(level, numbers.Real) and not isinstance(level, (bool, np.bool_))
    if not ok or not 0.0 < float(level) < 1.0:
        raise ValueError(
            f"level must be a number between 0 and 1, or a list of such, got {level!r}; "
            "0.5 is the median, 0.9 is exceeded by one target in ten"
        )
    return float(level)


class PiecewiseQuadratic:
    """Base of the losses made of quadratic and linear pieces."""

    quadratic = False
    piecewise_quadratic = True


class PerTargetLoss(PiecewiseQuadratic):
    """Base of losses of residuals with parameters that may have a number for each target.

    Attributes
    ----------
    by_target : tuple of str
        Names of these parameters: a number, or a tuple of numbers.
    """

    by_target: ClassVar[tuple[str, ...]]
    of_residual = True
    task = "regression"

    def take(self, columns: Any) -> Self:
        """The loss of some of the targets; a number alone serves them all."""
        several = (name for name in self.by_target if isinstance(getattr(self, name), tuple))
        taken = {
            name: per_target(np.asarray(getattr(self, name))[columns], float) for name in several
        }
        return replace(self, **taken) if taken else self  # type: ignore[type-var]


class SmoothLoss:
    """Base of the losses with three derivatives: one piece, curvature that varies along it."""

    quadratic = False
    piecewise_quadratic = False

    def piece(self, y: Array, u: Array) -> Array:
        """The only piece, for every point."""
        return np.zeros(np.broadcast_shapes(np.shape(y), np.shape(u)), dtype=np.int8)
