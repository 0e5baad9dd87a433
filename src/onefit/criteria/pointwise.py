"""Pointwise losses to judge held-out values by; free to differ from the loss of the fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._validation import check_choice
from onefit.problem import Problem

Array = NDArray[Any]
Pointwise = Callable[[Array, Array], Array]

__all__ = ["POINTWISE", "Pointwise", "pointwise"]


def _squared(y: Array, u: Array) -> Array:
    return np.asarray((y - u) ** 2)


def _absolute(y: Array, u: Array) -> Array:
    return np.asarray(np.abs(y - u))


def _zero_one(y: Array, u: Array) -> Array:
    return (y * u < 0.0).astype(np.float64)


def _hinge(y: Array, u: Array) -> Array:
    return np.asarray(np.maximum(1.0 - y * u, 0.0))


#: name -> function of targets and predictions, elementwise
POINTWISE: dict[str, Pointwise] = {
    "squared": _squared,
    "absolute": _absolute,
    "zero_one": _zero_one,
    "hinge": _hinge,
}


def pointwise(loss: str | Pointwise | None, problem: Problem) -> Pointwise:
    """The function behind a name; None is the machine's own loss.

    Parameters
    ----------
    loss : {"squared", "absolute", "zero_one", "hinge"}, callable or None
    problem : Problem
    """
    if loss is None:
        return problem.loss.value
    if not isinstance(loss, str):
        return loss
    check_choice("loss", loss, POINTWISE)
    if loss in ("zero_one", "hinge") and not np.isin(problem.Y, (-1.0, 1.0)).all():
        raise ValueError(
            f"loss={loss!r} is for labels -1 and +1, but the targets have other values; "
            "use 'squared' or 'absolute'"
        )
    return POINTWISE[loss]
