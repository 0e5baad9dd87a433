"""A weighted sum of kernel models as one estimator: what :mod:`onefit.stacking` returns."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from onefit._indexing import last_step
from onefit._types import Array
from onefit.estimators._base import KernelEstimator
from onefit.estimators.classifier import KernelClassifier
from onefit.estimators.regressor import KernelRegressor
from onefit.folds import Folds

__all__ = ["Stacked", "StackedClassifier", "StackedRegressor"]


class Stacked(KernelEstimator):
    """The best candidate of a search, whose decision values are those of an average.

    Parameters, rows and kernel are those of the best candidate.

    Attributes
    ----------
    members_ : list of estimators, or of pipelines that end in one
        One for each kernel, fitted to all rows; their decision values add up to those of the stack.
        Their parameter ``lam`` is not used.
    heldout_predictions_ : array of shape (n,) or (n, q)
        Of the training rows, cross-fitted.
    heldout_splits_ : array of shape (n,)
        Number of the split that tests each row.
    """

    members_: list[Any]
    heldout_predictions_: Array
    heldout_splits_: Array

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Refused: only a search has the candidates that are averaged."""
        raise TypeError(
            f"a {type(self).__name__} is made from a fitted search, by onefit.stacking.stack or by "
            "stack=True of AutoKernelRegressor and AutoKernelClassifier; fit one of these, or take "
            "stack=False where a function needs a single model"
        )

    def add_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Refused: the weights and members are those of the rows of a search."""
        raise TypeError(
            f"a {type(self).__name__} averages models whose weights were learned from the rows of "
            "a search, and has no updates; use stack=False, or fit the search to the other rows"
        )

    def remove_rows(self, indices: Any) -> Self:
        """Refused, like ``add_rows``."""
        return self.add_rows(None, None)

    @classmethod
    def of(cls, best: Any, members: list[Any], heldout: Array, folds: Folds) -> Self:
        """A stack of the fitted best candidate, its members and held-out predictions."""
        found = cls(**best.get_params(deep=False))
        for name, value in vars(best).items():
            setattr(found, name, value)
        found.members_, found.heldout_predictions_ = members, heldout
        found.heldout_splits_ = np.empty(folds.n, dtype=np.intp)
        found.heldout_splits_[folds.rows] = np.repeat(np.arange(len(folds)), np.diff(folds.offsets))
        return found

    def heldout_folds(self) -> Folds:
        """The splits of the held-out predictions."""
        tests = [np.flatnonzero(self.heldout_splits_ == k) for k in np.unique(self.heldout_splits_)]
        return Folds.from_removed(self.heldout_splits_.size, tests, tests, [True] * len(tests))

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Any:
        return self.fit(X, y, sample_weight)

    def _decision(self, X: Any) -> Array:
        check_is_fitted(self, "members_")
        X = self._validate_X(X, reset=False)
        pairs = (last_step(one, X) for one in self.members_)
        return np.asarray(sum(np.asarray(one._decision(rows)) for one, rows in pairs))

    def _with_support(self) -> Self:
        small = copy.copy(super()._with_support())
        small.members_ = [
            one if isinstance(one, Pipeline) else one._with_support() for one in self.members_
        ]
        return small


class StackedRegressor(Stacked, KernelRegressor):
    """An average of regressions; see :class:`Stacked`."""


class StackedClassifier(Stacked, KernelClassifier):
    """An average of classifiers; see :class:`Stacked`."""
