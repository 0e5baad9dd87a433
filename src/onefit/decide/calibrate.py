"""Probabilities from held-out decision values.

Platt's sigmoid and isotonic regression map a decision value to a probability. They have to be
fitted to values of held-out rows, since values of training rows are too extreme. For these values
scikit-learn's ``CalibratedClassifierCV(ensemble=False)`` refits every split; here they come from
one fit (:func:`onefit.heldout_predict`), and a search has those of its winner. The calibrators are
scikit-learn's own, and so are the probabilities of several classes: one against the rest, scaled to
sum to one. Models of pairs of classes have a value per class too: their votes.

**How reliable they are.** The map is fitted to decision values of models without a fold, and
applied to the model of all rows, whose values are slightly more extreme. The held-out values of a
model that was chosen by its score on the same rows are slightly optimistic, and the probabilities
slightly overconfident. Both effects are small with many rows.
``heldout_proba_`` has, for every row, the probabilities from a map fitted without it: the
calibration does not use the row, but the choice of the model does. The map may have used rows of
the same group.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from onefit._indexing import last_step
from onefit._types import Array
from onefit._validation import check_choice
from onefit.decide.values import DecisionValues, copy_feature_names
from onefit.estimators.accepted import check_accepted
from onefit.heldout import HeldOut
from onefit.predict import heldout_predict

__all__ = [
    "CALIBRATIONS",
    "CalibratedKernelClassifier",
    "calibration_map",
    "heldout_probabilities",
]

CALIBRATIONS = ("sigmoid", "isotonic")
#: parts of the rows, each with probabilities from a map fitted to the others
CALIBRATION_FOLDS = 10


def calibration_map(method: str, values: Array, y: Array, sample_weight: Any = None) -> Any:
    """Fit a map from decision values to probabilities, by scikit-learn's calibrators.

    Parameters
    ----------
    method : {"sigmoid", "isotonic"}
    values : (m, q) array
        Held-out decision values.
    y : (m,) array
        Their labels.
    sample_weight : (m,) array, default=None

    Returns
    -------
    CalibratedClassifierCV
        Its X is an array of decision values.
    """
    check_choice("method", method, CALIBRATIONS)
    rows = np.arange(len(values))
    whole = [(rows, rows)]  # every value is a held-out one already
    found = CalibratedClassifierCV(DecisionValues(), method=method, cv=whole, ensemble=False)
    with config_context(enable_metadata_routing=False):
        found.fit(values.astype(np.float64), y, sample_weight=sample_weight)
    return found.set_params(cv=None)  # drops the row numbers


def _known(held: HeldOut) -> tuple[Array, Array, Any]:
    """Decision values, labels and weights of the rows that were held out."""
    rows = held.tested
    values = held.decision.reshape(held.folds.n, -1)[rows]
    weight = None if held.sample_weight is None else np.asarray(held.sample_weight)[rows]
    return values, np.ravel(np.asarray(held.targets))[rows], weight


def heldout_probabilities(held: HeldOut, method: str = "sigmoid") -> Array:
    """Calibrated probabilities of the rows, each by a map fitted to values of other rows.

    Parameters
    ----------
    held : HeldOut
        Of a classifier.
    method : {"sigmoid", "isotonic"}, default="sigmoid"

    Returns
    -------
    (n, n_classes) array
        NaN for rows that no split tests.
    """
    values, y, weight = _known(held)
    classes, counts = np.unique(y, return_counts=True)
    parts = min(CALIBRATION_FOLDS, int(counts.min()))
    if parts < 2:
        raise ValueError(
            f"class {classes[counts.argmin()]!r} has one held-out row, and no map can be fitted "
            "without it; calibrated probabilities of held-out rows need two of each class"
        )
    found = np.full((held.folds.n, len(classes)), np.nan)
    for others, mine in StratifiedKFold(parts).split(values, y):
        own = None if weight is None else weight[others]
        fitted = calibration_map(method, values[others], y[others], own)
        found[held.tested[mine]] = fitted.predict_proba(values[mine])
    return found


class CalibratedKernelClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A kernel model of any loss, with probabilities.

    Equal to scikit-learn's ``CalibratedClassifierCV(estimator, method=..., cv=...,
    ensemble=False)``, without refits of the splits. :meth:`onefit.KernelSearchCV.calibrate`
    calibrates the winner of a search, without another fit.

    Probabilities are calibrated on held-out decision values. If the model was chosen on the same
    rows, they are slightly overconfident: see :mod:`onefit.decide.calibrate`.

    Parameters
    ----------
    estimator : KernelClassifier
    method : {"sigmoid", "isotonic"}, default="sigmoid"
        "sigmoid" has two parameters per class and suits few rows; "isotonic" is any increasing map
        and needs about a thousand rows.
    cv : int, splitter, or iterable of splits, default=5

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    estimator_ : KernelClassifier
        Fitted to all rows.
    heldout_ : HeldOut
        Held-out decision values of the calibration.
    map_ : CalibratedClassifierCV
        Map from decision values to probabilities.
    heldout_proba_ : array of shape (n, n_classes)
        Probabilities of the rows, each by a map fitted to decision values of other rows; NaN for
        rows that no split tests.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from onefit import KernelClassifier
    >>> from onefit.decide import CalibratedKernelClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier(loss="squared_hinge", kernel="linear", lam=100.0)
    >>> found = CalibratedKernelClassifier(model).fit(X, y)
    >>> found.predict_proba(X[:3]).round(1)
    array([[1., 0.],
           [1., 0.],
           [1., 0.]])
    """

    def __init__(self, estimator: Any, method: str = "sigmoid", cv: Any = 5) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    @classmethod
    def from_heldout(
        cls, model: Any, held: HeldOut, method: str = "sigmoid"
    ) -> CalibratedKernelClassifier:
        """Calibrate a fitted model on known held-out values."""
        return cls(clone(model), method, list(held.folds))._calibrate(model, held)

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> CalibratedKernelClassifier:
        """Fit the model to all rows, and the calibration to its held-out decision values.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or (n, n) when precomputed
        y : array of shape (n,)
        sample_weight : array of shape (n,), default=None
            For model and calibration.
        groups : array of shape (n,), default=None
            For the splitter.

        Returns
        -------
        self
        """
        check_accepted(self.estimator, type(self).__name__)
        if not is_classifier(self.estimator):
            raise TypeError(
                f"{type(self).__name__} needs a KernelClassifier, got a "
                f"{type(self.estimator).__name__}; predict_interval is for regressors"
            )
        check_choice("method", self.method, CALIBRATIONS)
        model = clone(self.estimator).fit(X, y, sample_weight=sample_weight)
        held = heldout_predict(model, X, y, self.cv, groups, sample_weight)
        return self._calibrate(model, held)

    def _calibrate(self, model: Any, held: HeldOut) -> CalibratedKernelClassifier:
        self.__dict__.pop("heldout_proba_", None)
        self.estimator_, self.heldout_, self.classes_ = model, held, model.classes_
        copy_feature_names(self, model)
        self.map_ = calibration_map(self.method, *_known(held))
        return self

    @cached_property
    def heldout_proba_(self) -> Array:
        """Probabilities of held-out rows, by maps fitted without them."""
        check_is_fitted(self, "map_")
        return heldout_probabilities(self.heldout_, self.method)

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, (m, n_classes)."""
        check_is_fitted(self, "map_")
        model, X = last_step(self.estimator_, X)
        values = model.spec().coding.by_class(model._decision(X))
        return np.asarray(self.map_.predict_proba(values))

    def predict(self, X: Any) -> Array:
        """The most probable class; it may differ from that of the model itself."""
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])
