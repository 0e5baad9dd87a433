"""Parameters that do nothing: told when they are set, refused when they are searched.

``gamma`` means nothing to a linear kernel, ``threshold`` nothing to the squared loss. Whoever sets
or searches one of them has something else in mind than what will be computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from inspect import signature
from typing import Any

import numpy as np

from onefit.kernels import kernel_parameters
from onefit.losses import LOSSES, loss_parameters

__all__ = ["UnusedParameterWarning", "useless", "warn_of_unused"]

#: parameters of kernels, and of losses
OF_KERNEL = ("gamma", "degree", "coef0")
OF_LOSS = tuple(dict.fromkeys(name for _, names in LOSSES.values() for name in names))


class UnusedParameterWarning(UserWarning):
    """A parameter was set that has no effect beside the others."""


def useless(name: str, kernels: Iterable[Any], losses: Iterable[Any]) -> str:
    """Why a parameter does nothing with any of some kernels and losses; empty if it does."""
    if name in OF_KERNEL:
        return _why("kernel", kernels, [kernel_parameters(kernel) for kernel in kernels], name)
    if name in OF_LOSS:
        return _why("loss", losses, [loss_parameters(loss) for loss in losses], name)
    return ""


def _why(what: str, values: Iterable[Any], used: list[tuple[str, ...]], name: str) -> str:
    if any(name in one for one in used):
        return ""
    words = [f"{what}={v!r}" if isinstance(v, str) else f"a {what} that is no name" for v in values]
    return f"{name!r} does nothing with {' and '.join(dict.fromkeys(words))}"


def warn_of_unused(
    machine: Any, kernels: Sequence[Any] = (), losses: Sequence[Any] = (), level: int = 5
) -> None:
    """Warn of every parameter that is not at its default and has no effect.

    Parameters
    ----------
    machine : KernelMachine
    kernels, losses : sequences
        What it may come to have; its own by default.
    level : int, default=5
        How far up the caller is who is to be told.
    """
    for name, value in _changed(machine):
        why = useless(name, kernels or [machine.kernel], losses or [machine.loss])
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
        if value is parameter.default or name not in OF_KERNEL + OF_LOSS:
            continue
        if np.ndim(value) > 0 or value != parameter.default:
            yield name, value
