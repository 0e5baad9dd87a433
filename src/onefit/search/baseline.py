"""What a machine has to beat: a constant, learnt from each training part.

For amounts it is the weighted mean of the training targets; for classes the shares of the training
rows, and the most frequent class where a label is asked for. These are scikit-learn's
``DummyRegressor`` and ``DummyClassifier(strategy="prior")`` fitted to every training part, in
closed form: totals of all rows, less those of the rows that a split removes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier

from onefit._indexing import n_rows
from onefit.estimators import inside
from onefit.folds import Folds
from onefit.search.scoring import look_up

Array = NDArray[Any]

__all__ = ["Shares", "baseline_of", "baseline_values", "training_means"]


class Shares(ClassifierMixin, BaseEstimator):
    """A classifier that knows nothing but the shares of the classes, row by row.

    Parameters
    ----------
    classes : (K,) array
    shares : (N, K) array
    """

    def __init__(self, classes: Array, shares: Array) -> None:
        self.classes = classes
        self.shares = shares
        self.classes_ = classes

    def predict_proba(self, X: Any) -> Array:
        """The shares."""
        if n_rows(X) != len(self.shares):
            raise ValueError(
                f"the baseline knows {len(self.shares)} rows, not the {n_rows(X)} asked for"
            )
        return self.shares

    def predict(self, X: Any) -> Array:
        """The most frequent class; of equally frequent ones the first."""
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])


def training_means(values: Array, s: Array, folds: Folds) -> Array:
    """The weighted mean of the rows that each split trains on, (k, columns)."""
    weighted = np.column_stack([s[:, None] * values, s])
    removed = np.concatenate(folds.removed)
    split = np.repeat(np.arange(len(folds)), [rows.size for rows in folds.removed])
    gone = np.zeros((len(folds), weighted.shape[1]))
    np.add.at(gone, split, weighted[removed])
    left = weighted.sum(axis=0) - gone
    return np.asarray(left[:, :-1] / left[:, -1:])


def baseline_values(machine: Any, y: Any, s: Array, folds: Folds) -> Array:
    """Decision values whose predictions are the baseline's, (N, q): means, or shares of classes."""
    found = baseline_of(machine, y, s, folds)
    if not is_classifier(machine):
        return np.asarray(found._decision(folds.rows))
    shares = found.shares
    return np.asarray(shares[:, 1:] - shares[:, :1] if shares.shape[1] == 2 else shares)


def baseline_of(machine: Any, y: Any, s: Array, folds: Folds) -> Any:
    """The baseline as an estimator that predicts all test rows, one split after the other.

    Parameters
    ----------
    machine : KernelMachine
        That knows targets and classes.
    y : targets, as the caller gave them
    s : (n,) array
        Weights of the rows.
    folds : Folds
    """
    sizes = np.diff(folds.offsets)
    if is_classifier(machine):
        codes = np.searchsorted(machine.classes_, np.ravel(np.asarray(y)))
        member = np.eye(len(machine.classes_))[codes]
        means = training_means(member, np.asarray(s, dtype=float), folds)
        return Shares(machine.classes_, np.repeat(means, sizes, axis=0))
    Y = inside.check_targets(machine, y, np.float64)
    means = training_means(Y, np.asarray(s, dtype=float), folds)
    return look_up(machine, np.repeat(means, sizes, axis=0))
