"""Pointwise losses of held-out values; they may differ from the loss of the fit.

**A decision value of exactly zero.** It occurs: a model without intercept is zero wherever a narrow
kernel has decayed. KernelClassifier.predict gives the second class (y = +1) for u > 0 and
the first for u <= 0, and scores follow it. So does "zero_one": an error is a row whose *predicted*
label is not y. The papers count y u < 0 (Liu and Liao 2016, equation 1, I(c) = 1 if c < 0; likewise
the span rule): that is "negative_margin", with which u = 0 is right for either label, and a model
that is zero everywhere makes no error. Where no u is zero the two agree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onefit._types import Array
from onefit._validation import check_choice
from onefit.problem import Problem
from onefit.scoring.metrics import absolute, squared

Pointwise = Callable[[Array, Array], Array]

__all__ = ["POINTWISE", "Pointwise", "pointwise"]


def _zero_one(y: Array, u: Array) -> Array:
    return np.asarray((u > 0.0) != (y > 0.0), dtype=np.float64)


def _negative_margin(y: Array, u: Array) -> Array:
    return np.asarray(y * u < 0.0, dtype=np.float64)


def _hinge(y: Array, u: Array) -> Array:
    return np.asarray(np.maximum(1.0 - y * u, 0.0))


#: name -> function of targets and predictions, elementwise
POINTWISE: dict[str, Pointwise] = {
    "squared": squared,
    "absolute": absolute,
    "zero_one": _zero_one,
    "negative_margin": _negative_margin,
    "hinge": _hinge,
}
#: those of labels -1 and +1
MARGINS = ("zero_one", "negative_margin", "hinge")


def pointwise(loss: str | Pointwise | None, problem: Problem) -> Pointwise:
    """The function behind a name; None is the model's own loss.

    A Huber loss whose threshold is estimated from the training targets is replaced by absolute
    errors, and a loss whose corners are rounded over such a width by the loss that it rounds.

    Parameters
    ----------
    loss : str, callable or None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
    problem : Problem
    """
    if loss is None:
        # widths that differ between splits do not give comparable losses
        if not getattr(problem.loss, "relative", False):
            return problem.loss.value
        return getattr(problem.loss, "unrounded", absolute)
    if not isinstance(loss, str):
        return loss
    check_choice("loss", loss, POINTWISE)
    if loss in MARGINS and not np.isin(problem.Y, (-1.0, 1.0)).all():
        raise ValueError(
            f"loss={loss!r} is for labels -1 and +1, but the targets have other values; "
            "use 'squared' or 'absolute'"
        )
    return POINTWISE[loss]
