"""The estimators that functions of the package accept, and the rows that a search knows.

A function is given an estimator, whose parameters it uses, or a fitted search, which stands for its
winner and for the rows it was fitted to: X and y must be those rows, and their sample weights,
groups and splits are used where the caller gives none. The ``best_estimator_`` of a search stands
for the parameters alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from onefit._indexing import n_rows
from onefit._types import Array
from onefit.estimators._base import KernelEstimator
from onefit.estimators.device import to_host
from onefit.estimators.stacked import Stacked
from onefit.folds import Folds

__all__ = ["Given", "accepted_model", "best_estimator_of", "check_accepted", "unwrap"]


@dataclass(frozen=True)
class Given:
    """An estimator as a function is given it, and what a search knows of its rows.

    Attributes
    ----------
    model : estimator
        The one that is given, or the winner of the search.
    sample_weight, groups : (n,) arrays or None
        As the caller gives them, else those of the search.
    folds : Folds or None
        The splits of the search.
    """

    model: Any
    sample_weight: Any = field(default=None, repr=False)
    groups: Any = field(default=None, repr=False)
    folds: Folds | None = None

    @classmethod
    def of(
        cls,
        estimator: Any,
        caller: str,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Given:
        """The winner and the data of a search; of any other estimator itself, with what is given.

        Refuses rows and targets that are not those of the search.
        """
        model, folds = best_estimator_of(estimator, caller), getattr(estimator, "folds_", None)
        if not hasattr(estimator, "best_estimator_"):
            return cls(model, sample_weight, groups)
        held = getattr(estimator, "heldout_", None)
        targets = None if held is None else held.targets
        other = "; pass those of the search, or its best_estimator_, which stands for no rows"
        if folds is not None and folds.n != n_rows(X):
            raise ValueError(
                f"the search was fitted to {folds.n} rows, but {caller} got {n_rows(X)}{other}"
            )
        if targets is not None and not _equal(targets, y):
            raise ValueError(f"y differs from the targets that the search was fitted to{other}")
        if sample_weight is None:
            sample_weight = _weights_of(model) if held is None else held.sample_weight
        groups = getattr(estimator, "groups_", None) if groups is None else groups
        return cls(model, sample_weight, groups, folds)

    def splits(self, cv: Any, X: Any, y: Any) -> Folds:
        """The splits ``cv``; for None those of the search, else five folds."""
        if cv is None:
            cv = 5 if self.folds is None else self.folds
        return Folds.draw(cv, X, y, self.groups, classifier=is_classifier(self.model))


def _equal(targets: Any, y: Any) -> bool:
    return np.array_equal(np.asarray(targets), np.asarray(to_host(y, None, "y")))


def _weights_of(model: Any) -> Array | None:
    """The sample weights of the training rows of a fitted model; None if they are not known."""
    s = getattr(model, "_s_fit", None)
    if s is None or not is_classifier(model):
        return s
    return np.asarray(s / model.class_weight_[model._codes])


def unwrap(estimator: Any) -> Any:
    """The fitted kernel estimator in a calibrated classifier; any other estimator itself."""
    found = getattr(estimator, "estimator_", None)
    return found if isinstance(found, KernelEstimator) else estimator


def best_estimator_of(estimator: Any, caller: str) -> Any:
    """The winner of a fitted search; any other estimator itself."""
    if hasattr(estimator, "pipeline_"):
        raise TypeError(
            f"{caller} takes prepared rows, and {type(estimator).__name__} prepares them itself; "
            "use its own methods, or pass its search_ and the rows "
            "pipeline_['prepare'].transform(X)"
        )
    if hasattr(estimator, "param_grid") and not hasattr(estimator, "best_estimator_"):
        raise ValueError(f"{caller} needs a fitted search: fit the search first, with refit=True")
    return unwrap(getattr(estimator, "best_estimator_", estimator))


def accepted_model(estimator: Any, caller: str, stack: bool = False) -> Any:
    """The kernel estimator that is given, or the winner of a given search; refuses any other."""
    model = best_estimator_of(estimator, caller)
    check_accepted(model, caller, stack)
    return model


def check_accepted(estimator: Any, caller: str, stack: bool = False) -> None:
    """Refuse anything but an estimator of the package, with advice; a stack only on request."""
    name = type(estimator).__name__
    if isinstance(estimator, Stacked) and not stack:
        raise TypeError(
            f"{caller} is for one model, and a {name} averages several; pass the search that was "
            "stacked, or use stack=False"
        )
    if isinstance(estimator, KernelEstimator):
        return
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
