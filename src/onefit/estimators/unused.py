"""Parameters that do nothing: told when they are set, refused when they are searched.

``gamma`` means nothing to a linear kernel, ``threshold`` nothing to the squared loss,
``n_components`` nothing without an approximation. Whoever sets or searches one of them has
something else in mind than what will be computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from onefit.kernels import kernel_parameters
from onefit.losses import LOSSES, loss_parameters

__all__ = ["DECIDING", "UnusedParameterWarning", "decisions_of", "useless", "warn_of_unused"]

#: what decides whether others do anything
DECIDING = ("kernel", "loss", "approximation", "multi_class")
#: parameter -> what decides about it, and the value with which it does nothing
NEEDS: dict[str, tuple[str, Any]] = {
    "n_components": ("approximation", None),
    "keep_landmarks": ("approximation", None),
    "decision_function_shape": ("multi_class", "ovr"),
}

#: parameters of kernels, and of losses
OF_KERNEL = ("gamma", "degree", "coef0")
OF_LOSS = tuple(dict.fromkeys(name for _, names in LOSSES.values() for name in names))


class UnusedParameterWarning(UserWarning):
    """A parameter was set that has no effect beside the others."""


def decisions_of(machine: Any) -> dict[str, Sequence[Any]]:
    """The values of a machine that decide what its other parameters do."""
    return {name: [getattr(machine, name)] for name in DECIDING if hasattr(machine, name)}


def useless(name: str, choices: Mapping[str, Sequence[Any]]) -> str:
    """Why a parameter does nothing with any of some kernels, losses, ...; empty if it does."""
    if name in OF_KERNEL:
        return _why("kernel", choices["kernel"], kernel_parameters, name)
    if name in OF_LOSS:
        return _why("loss", choices["loss"], loss_parameters, name)
    what, without = NEEDS.get(name, ("", None))
    if what and all(isinstance(v, (str, type(None))) and v == without for v in choices[what]):
        return f"{name!r} does nothing with {what}={without!r}"
    return ""


def _why(what: str, values: Sequence[Any], used_by: Any, name: str) -> str:
    if any(name in used_by(value) for value in values):
        return ""
    words = [f"{what}={v!r}" if isinstance(v, str) else f"a {what} that is no name" for v in values]
    return f"{name!r} does nothing with {' and '.join(dict.fromkeys(words))}"


def warn_of_unused(
    machine: Any, choices: Mapping[str, Sequence[Any]] | None = None, level: int = 5
) -> None:
    """Warn of every parameter that is not at its default and has no effect.

    Parameters
    ----------
    machine : KernelEstimator
    choices : mapping
        Kernels, losses, ... that it may come to have; its own by default.
    level : int, default=5
        How far up the caller is who is to be told.
    """
    for name, value in _changed(machine):
        why = useless(name, choices or decisions_of(machine))
        if why:
            warnings.warn(
                f"{name}={value!r} was set, but {why}; leave it at its default",
                UnusedParameterWarning,
                stacklevel=level,
            )


def _changed(machine: Any) -> Iterator[tuple[str, Any]]:
    """Parameters with another value than their default."""
    for name, parameter in signature(type(machine)).parameters.items():
        value = getattr(machine, name, parameter.default)
        if value is parameter.default or name not in (*OF_KERNEL, *OF_LOSS, *NEEDS):
            continue
        if np.ndim(value) > 0 or value != parameter.default:
            yield name, value
