"""Pointwise losses. How to add one: docs/extending.md."""

from __future__ import annotations

from onefit._validation import suggest
from onefit.losses.base import Loss, MissingDerivativeError, require
from onefit.losses.classification import Log, SmoothedHinge, SquaredHinge
from onefit.losses.regression import EpsilonQuadratic, Huber, Logistic, Squared

__all__ = [
    "LOSSES",
    "EpsilonQuadratic",
    "Huber",
    "Log",
    "Logistic",
    "Loss",
    "MissingDerivativeError",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "get_loss",
    "require",
]

#: name -> (class, the one parameter it takes from the estimator)
LOSSES: dict[str, tuple[type, str | None]] = {
    "squared": (Squared, None),
    "huber": (Huber, "threshold"),
    "epsilon_quadratic": (EpsilonQuadratic, "epsilon"),
    "logistic": (Logistic, None),
    "smoothed_hinge": (SmoothedHinge, "delta"),
    "squared_hinge": (SquaredHinge, None),
    "log": (Log, None),
}


def get_loss(loss: str | Loss, task: str, **parameters: float | str) -> Loss:
    """Turn an estimator's ``loss`` (a name or an object) into a loss for ``task``.

    Examples
    --------
    >>> get_loss("huber", "regression", threshold=0.5)
    Huber(threshold=0.5)
    >>> get_loss("hubber", "regression")
    Traceback (most recent call last):
        ...
    ValueError: loss='hubber' is not known; did you mean 'huber'? Known for regression: 'squared', \
'huber', 'epsilon_quadratic', 'logistic'
    """
    if not isinstance(loss, str):
        return _check_object(loss, task)
    fitting = [n for n, (cls, _) in LOSSES.items() if cls.task in (task, "any")]  # type: ignore[attr-defined]
    if loss not in fitting:
        known = ", ".join(repr(name) for name in fitting)
        raise ValueError(
            f"loss={loss!r} is not known{suggest(loss, fitting)} Known for {task}: {known}"
        )
    cls, parameter = LOSSES[loss]
    made: Loss = cls() if parameter is None else cls(parameters[parameter])
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
