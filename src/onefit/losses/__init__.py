"""Losses for regression and classification. How to add one: docs/extending.md."""

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
    "named_loss",
    "require",
]

#: name -> class; a name is the object with its defaults
LOSSES: dict[str, Any] = {
    "squared": Squared,
    "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive,
    "epsilon_quadratic": EpsilonQuadratic,
    "quantile": Quantile,
    "expectile": Expectile,
    "logistic": Logistic,
    "smoothed_hinge": SmoothedHinge,
    "squared_hinge": SquaredHinge,
    "log": Log,
}


def named_loss(loss: Any) -> Any:
    """The object of a known name; anything else is returned as is."""
    return LOSSES[loss]() if isinstance(loss, str) and loss in LOSSES else loss


def get_loss(loss: str | Loss, task: str) -> Loss:
    """Turn an estimator's ``loss`` (a name or an object) into a loss for ``task``.

    Examples
    --------
    >>> get_loss("huber", "regression")
    Huber(threshold='mad')
    >>> get_loss("hubber", "regression")
    Traceback (most recent call last):
        ...
    ValueError: loss='hubber' is not known; did you mean 'huber'? Known for regression: 'squared', \
'huber', 'epsilon_insensitive', 'epsilon_quadratic', 'quantile', 'expectile', 'logistic'
    """
    if not isinstance(loss, str):
        return _check_object(loss, task)
    fitting = [name for name, kind in LOSSES.items() if kind.task in (task, "any")]
    if loss not in fitting:
        known = ", ".join(repr(name) for name in fitting)
        raise ValueError(
            f"loss={loss!r} is not known{suggest(loss, fitting)} Known for {task}: {known}"
        )
    made: Loss = LOSSES[loss]()
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
