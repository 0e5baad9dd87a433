"""What functions need of a model, with one message for all of them.

A function names its needs; the first that a model does not meet is refused, with what was found and
what to do about it.
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
    found : callable
        Of estimator and spec: what contradicts the need, empty where nothing does.
    advice : str
    """

    what: str
    found: Callable[[Any, Any], str]
    advice: str


def _levels(spec: Any) -> int:
    return int(np.size(getattr(spec.loss, "level", ())))


#: name -> need; in the order in which they are checked
NEEDS = {
    "kernel matrix": Need(
        "the whole kernel matrix",
        lambda model, spec: (
            "" if model.approximation is None else f"approximation={model.approximation!r}"
        ),
        "set approximation=None",
    ),
    "rows": Need(
        "the rows themselves",
        lambda model, spec: "kernel='precomputed'" if spec.precomputed else "",
        "use a named kernel, or a function as kernel",
    ),
    "equal weights": Need(
        "all rows to count alike",
        lambda model, spec: (
            f"class_weight={spec.coding.class_weight!r}"
            if getattr(spec.coding, "class_weight", None) is not None
            else ""
        ),
        "set class_weight=None",
    ),
    "column per class": Need(
        "a column per class",
        lambda model, spec: (
            "multi_class='ovo'" if getattr(spec.coding, "may_be_in_pairs", False) else ""
        ),
        "use multi_class='ovr'",
    ),
    "squared loss": Need(
        "loss='squared'",
        lambda model, spec: "" if spec.quadratic else f"loss={model.loss!r}",
        "set loss='squared'",
    ),
    "one curve": Need(
        "one curve per target",
        lambda model, spec: f"loss={model.loss!r}" if _levels(spec) > 1 else "",
        "use a loss with one level at most",
    ),
    "no level": Need(
        "estimates of one value per target, not quantiles or expectiles",
        lambda model, spec: f"loss={model.loss!r}" if _levels(spec) else "",
        "use another loss",
    ),
}


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
        found = need.found(model, spec) if name in needs else ""
        if found:
            more = f", or {advice}" if advice else ""
            raise ValueError(f"{caller} needs {need.what}, got {found}; {need.advice}{more}")
