"""What functions need of a model, with one message for all of them.

A function names its needs; the first that a model does not meet is refused, with the parameter that
contradicts it and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["require_of_model"]


class Need(NamedTuple):
    """Something that a function needs of a model.

    Attributes
    ----------
    what : str
    parameter : str
        The one that decides.
    met : callable
        Of a spec: whether it does.
    advice : str
    """

    what: str
    parameter: str
    met: Callable[[Any], bool]
    advice: str


def _levels(spec: Any) -> int:
    return int(np.size(getattr(spec.loss, "level", ())))


def _unweighted(spec: Any) -> bool:
    return getattr(spec.coding, "class_weight", None) is None


def _by_class(spec: Any) -> bool:
    return not getattr(spec.coding, "may_be_in_pairs", False)


#: name -> need, in the order in which they are checked
NEEDS = {
    "kernel matrix": Need(
        "the whole kernel matrix", "approximation", lambda spec: spec.approximation is None,
        "set approximation=None",
    ),
    "rows": Need(
        "the rows themselves", "kernel", lambda spec: not spec.precomputed,
        "use a named kernel, or a function as kernel",
    ),
    "equal weights": Need(
        "all rows to count alike", "class_weight", _unweighted, "set class_weight=None"
    ),
    "column per class": Need(
        "a column per class", "multi_class", _by_class, "use multi_class='ovr'"
    ),
    "squared loss": Need(
        "loss='squared'", "loss", lambda spec: spec.quadratic, "set loss='squared'"
    ),
    "one curve": Need(
        "one curve per target", "loss", lambda spec: _levels(spec) < 2,
        "use a loss with one level at most",
    ),
    "no level": Need(
        "estimates of one value per target, not quantiles or expectiles", "loss",
        lambda spec: not _levels(spec), "use another loss",
    ),
}  # fmt: skip


def require_of_model(model: Any, caller: str, *needs: str, advice: str = "") -> None:
    """Refuse a model that does not meet some needs.

    Parameters
    ----------
    model : KernelEstimator
    caller : str
        Who needs it: the function, with the option that makes it necessary.
    *needs : names of ``NEEDS``
    advice : str, default=""
        What else to do, beside meeting the need.
    """
    spec = model.spec()
    for name, need in NEEDS.items():
        if name in needs and not need.met(spec):
            found = f"{need.parameter}={getattr(model, need.parameter)!r}"
            more = f", or {advice}" if advice else ""
            raise ValueError(f"{caller} needs {need.what}, got {found}; {need.advice}{more}")
