"""A ``gamma`` that does nothing: a warning when it is set, an error when it is searched.

``gamma`` does nothing with a linear kernel or with one that has a gamma of its own, so setting or
searching it is a mistake. Parameters that a loss, a kernel or an approximation does not have are
refused where they are set
(:mod:`onefit.estimators.components`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np

from onefit.kernels import takes_gamma

__all__ = ["UnusedParameterWarning", "unused_gamma", "warn_of_unused"]


class UnusedParameterWarning(UserWarning):
    """A parameter was set that has no effect together with the others."""


def unused_gamma(kernels: Sequence[Any]) -> str:
    """The reason why gamma has no effect with any of some kernels; empty if it has."""
    if any(takes_gamma(kernel) for kernel in kernels):
        return ""
    words = [f"kernel={kernel!r}" for kernel in kernels]
    return f"'gamma' does nothing with {' and '.join(dict.fromkeys(words))}"


def warn_of_unused(model: Any, kernels: Sequence[Any] | None = None, level: int = 5) -> None:
    """Warn of a gamma that is not at its default and has no effect.

    Parameters
    ----------
    model : KernelEstimator
    kernels : sequence, default=None
        Kernels that the model may have; its own by default.
    level : int, default=5
        Stack level of the warning.
    """
    default = signature(type(model)).parameters["gamma"].default
    value = getattr(model, "gamma", default)
    if value is default or (np.ndim(value) == 0 and value == default):
        return
    why = unused_gamma([model.kernel] if kernels is None else kernels)
    if why:
        warnings.warn(
            f"gamma={value!r} was set, but {why}; leave it at its default",
            UnusedParameterWarning,
            stacklevel=level,
        )
