"""Pointwise losses. How to add one: docs/extending.md."""

from __future__ import annotations

from typing import Any

from onefit._validation import suggest
from onefit.losses.base import Loss, MissingDerivativeError, require
from onefit.losses.classification import Log, SmoothedHinge, SquaredHinge
from onefit.losses.pairs import InPairs
from onefit.losses.regression import EpsilonQuadratic, Expectile, Huber, Logistic, Squared
from onefit.losses.rounded import EpsilonInsensitive, Quantile

__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "EpsilonQuadratic",
    "Expectile",
    "Huber",
    "InPairs",
    "Log",
    "Logistic",
    "Loss",
    "MissingDerivativeError",
    "Quantile",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "get_loss",
    "loss_parameters",
    "require",
]

#: name -> (class, the parameters it takes from the estimator)
LOSSES: dict[str, tuple[type, tuple[str, ...]]] = {
    "squared": (Squared, ()),
    "huber": (Huber, ("threshold",)),
    "epsilon_insensitive": (EpsilonInsensitive, ("epsilon", "delta")),
    "epsilon_quadratic": (EpsilonQuadratic, ("epsilon",)),
    "quantile": (Quantile, ("level", "delta")),
    "expectile": (Expectile, ("level",)),
    "logistic": (Logistic, ()),
    "smoothed_hinge": (SmoothedHinge, ("delta",)),
    "squared_hinge": (SquaredHinge, ()),
    "log": (Log, ()),
}


def loss_parameters(loss: Any) -> tuple[str, ...]:
    """Which of an estimator's parameters a loss, by its name or itself, is made of."""
    return LOSSES[loss][1] if isinstance(loss, str) and loss in LOSSES else ()


def get_loss(loss: str | Loss, task: str, **parameters: Any) -> Loss:
    """Turn an estimator's ``loss`` (a name or an object) into a loss for ``task``.

    Examples
    --------
    >>> get_loss("huber", "regression", threshold=0.5)
    Huber(threshold=0.5)
    >>> get_loss("hubber", "regression")
    Traceback (most recent call last):
        ...
    ValueError: loss='hubber' is not known; did you mean 'huber'? Known for regression: 'squared', \
'huber', 'epsilon_insensitive', 'epsilon_quadratic', 'quantile', 'expectile', 'logistic'
    """
    if not isinstance(loss, str):
        return _check_object(loss, task)
    fitting = [n for n, (cls, _) in LOSSES.items() if cls.task in (task, "any")]  # type: ignore[attr-defined]
    if loss not in fitting:
        known = ", ".join(repr(name) for name in fitting)
        raise ValueError(
            f"loss={loss!r} is not known{suggest(loss, fitting)} Known for {task}: {known}"
        )
    cls, names = LOSSES[loss]
    made: Loss = cls(*(parameters[name] for name in names))
    return made


def _check_object(loss: Loss, task: str) -> Loss:
    if isinstance(loss, type):
        raise TypeError(f"loss must be an object, got the class {loss.__name__}: call it")
    members = ("name", "task", "piecewise_quadratic", "value", "gradient", "curvature", "piece")
    require(loss, "fit", *members)
    if loss.task == "classification" and task == "regression":
        raise ValueError(
            f"loss={loss!r} is for labels -1 and +1, but the task is regression; "
            "use a loss of the residual, such as 'huber', or a classifier"
        )
    return loss
