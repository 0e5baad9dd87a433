"""The estimators that functions of the package accept."""

from __future__ import annotations

from typing import Any

from onefit.estimators._base import KernelEstimator

__all__ = [
    "accepted_model",
    "best_estimator_of",
    "check_accepted",
    "check_exact_kernel",
    "unwrap",
]


def unwrap(estimator: Any) -> Any:
    """The fitted kernel estimator in a calibrated classifier; any other estimator itself."""
    found = getattr(estimator, "estimator_", None)
    return found if isinstance(found, KernelEstimator) else estimator


def best_estimator_of(estimator: Any, caller: str) -> Any:
    """The winner of a fitted search; any other estimator itself."""
    if hasattr(estimator, "param_grid") and not hasattr(estimator, "best_estimator_"):
        raise ValueError(f"{caller} needs a fitted search: fit the search first, with refit=True")
    return unwrap(getattr(estimator, "best_estimator_", estimator))


def accepted_model(estimator: Any, caller: str) -> Any:
    """The kernel estimator that is given, or the winner of a given search; refuses any other."""
    model = best_estimator_of(estimator, caller)
    check_accepted(model, caller)
    return model


def check_accepted(estimator: Any, caller: str) -> None:
    """Refuse anything but an estimator of the package, with advice."""
    if isinstance(estimator, KernelEstimator):
        return
    name = type(estimator).__name__
    if hasattr(estimator, "steps") and not isinstance(estimator.steps[-1][1], KernelEstimator):
        raise TypeError(
            f"{caller} does not take a {name} that ends in "
            f"{type(estimator.steps[-1][1]).__name__}; it must end in a KernelRegressor or "
            "KernelClassifier"
        )
    if hasattr(estimator, "steps"):
        raise TypeError(
            f"{caller} does not take a {name}: held-out predictions come from one fit to all rows, "
            "so that its steps would see the test rows. Transform X first if that does no harm (a "
            "scaler without targets, say), or use GridSearchCV on the pipeline"
        )
    if hasattr(estimator, "best_estimator_"):
        raise TypeError(f"{caller} needs an estimator, not a search; pass its best_estimator_")
    raise TypeError(f"{caller} needs a KernelRegressor or KernelClassifier, got {name}")


def check_exact_kernel(estimator: KernelEstimator, caller: str, advice: str) -> None:
    """Refuse an approximation where the whole kernel matrix is needed."""
    if estimator.approximation is not None:
        raise ValueError(
            f"{caller} needs the whole kernel matrix, which approximation="
            f"{estimator.approximation!r} replaces; {advice}"
        )
