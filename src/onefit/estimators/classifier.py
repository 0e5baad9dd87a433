"""Kernel classification with any of the margin losses, one model a class or a pair of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sklearn
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from onefit._types import Array
from onefit._validation import check_choice
from onefit.estimators._base import KernelEstimator
from onefit.estimators.device import predicting_on_host, to_host
from onefit.linalg import arrays_of
from onefit.losses import InPairs, Loss, get_loss
from onefit.spec import LabelCoding
from onefit.spec.coding import class_codes, encode_labels

__all__ = ["KernelClassifier"]

#: whether scikit-learn wants labels to be NumPy's whatever the library of X
HOST_LABELS = tuple(int(one) for one in sklearn.__version__.split(".")[:2]) >= (1, 9)


def _gives_probabilities(estimator: KernelClassifier) -> bool:
    if estimator._coding().gives_probabilities:
        return True
    raise AttributeError(
        f"loss={estimator.loss!r} gives no probabilities; use CalibratedKernelClassifier, "
        "calibrate of a search, or loss='log'"
    )


class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Kernel classification: LS-SVM, smoothed SVM, L2-SVM, kernel logistic regression.

    Minimises ``sum_i w_i V(y_i (f(x_i) + b)) + lam ||f||^2`` with y in {-1, +1}; several classes
    are separated one against the rest, on one kernel matrix and, for the squared loss, one
    factorisation, or one against one.

    Parameters
    ----------
    loss : {"squared", "smoothed_hinge", "squared_hinge", "log"} or loss object, default="squared"
        "squared" is the LS-SVM; "smoothed_hinge" rounds the corner of the SVM's hinge over half a
        width delta and tends to the SVM with ``C = 1 / (2 n lam)`` as delta falls;
        ``SmoothedHinge(delta=0.1)`` of :mod:`onefit.losses` has another width (``loss__delta`` in
        grids); "squared_hinge" is the L2-SVM; "log" is kernel logistic regression, which gives
        probabilities.
    kernel, gamma : as in :class:`KernelRegressor`
    lam : float, default=1e-3
        Weight of the penalty ``||f||^2``.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights; "balanced" is n / (classes times
        rows of the class), where rows count by their weights. They are computed from all rows, like
        ``gamma="scale"``, not from each training part of a cross-validation.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Several classes: one model per class against the rest, or one per pair of classes, which
        vote, as in SVC. All pairs have one penalty, ``C = 1 / (2 n lam)`` with n all training rows.
        The decision values of the pairs are ``kernel_(X, X_fit_) @ dual_coef_ + intercept_``.
    scaling, approximation, solver, random_state : as in :class:`KernelRegressor`

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    class_weight_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n, n_classes), or (n, 1) for two classes
        A column for each pair, 0 against 1, 0 against 2, ..., with ``multi_class="ovo"``.
    intercept_ : array of shape (n_classes,) or (1,), or one for each pair
    support_ : array of shape (n_support,)
        The rows with a nonzero coefficient in some column; with a hinge, not all rows.
    n_support_ : array of shape (n_classes,)
        Their number in each class.
    X_fit_ : the training rows (the kernel matrix when precomputed; none with an approximation)
    coef_, landmarks_, landmark_indices_, kernel_, feature_map_ : as in :class:`KernelRegressor`
    n_iter_ : int
    error_ : float
        Bound on the difference of a decision value of a training row from that of the minimiser;
        infinite if none is known. With the rounding of such values,
        as it is seen on these rows.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onefit import KernelClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=False)
    >>> KernelClassifier(loss="log", lam=1e-4).fit(X, y).score(X, y) > 0.97
    True
    """

    def __init__(
        self,
        loss: str | Loss = "squared",
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        lam: float = 1e-3,
        fit_intercept: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        multi_class: str = "ovr",
        scaling: str = "mean",
        approximation: Any = None,
        solver: str = "auto",
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.scaling = scaling
        self.approximation = approximation
        self.solver = solver
        self.random_state = random_state

    def _finish(self, loss: Loss) -> None:
        if self.approximation is None:
            counts = np.bincount(self._codes[self.support_], minlength=len(self.classes_))
            self.n_support_ = counts.astype(np.int32)

    def _coding(self) -> LabelCoding:
        return LabelCoding(
            get_loss(self.loss, "classification"),
            getattr(self, "classes_", np.empty(0)),
            self.multi_class,
            self.class_weight,
        )

    def decision_function(self, X: Any) -> Array:
        """f(x) + b: one value per row for two classes (positive: the second), else one per class.

        With ``multi_class="ovo"`` these are votes of the pairs and their confidences, as in SVC.
        """
        values, coding = self._decision(X), self._coding()
        if len(self.classes_) == 2:
            return values[:, 0]
        if coding.in_pairs:
            values = arrays_of(values).host(values)
            return self._like(coding.by_class(values), X)  # type: ignore[no-any-return]
        return values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy."""
        y, sample_weight = to_host(y, None, "y"), to_host(sample_weight, None, "sample_weight")
        return float(ClassifierMixin.score(predicting_on_host(self, X), X, y, sample_weight))

    def predict(self, X: Any) -> Array:
        """The class with the largest decision value, or with most votes of the pairs.

        Between classes with the same number of votes, the confidences of the pairs decide.
        """
        return self._like(self._coding().labels(self._decision(X)), X)  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = tags.array_api_support and HOST_LABELS
        return tags

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probability of every class.

        One-against-rest probabilities are scaled to sum to one, those of pairs are coupled
        (:mod:`onefit.spec.coupling`).
        """
        decision = self._decision(X)
        found = self._coding().probabilities(arrays_of(decision).host(decision))
        return self._like(found, X)  # type: ignore[no-any-return]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("multi_class", self.multi_class, ("ovr", "ovo"))
        if isinstance(self.class_weight, str):
            check_choice("class_weight", self.class_weight, ("balanced",))

    def _check_weighted(self, Y: Array, s: Array) -> None:
        weighted = Y[s > 0]
        if not all(np.isin((-1.0, 1.0), column).all() for column in weighted.T):
            raise ValueError(
                "sample_weight is zero on every row of some class, or on all but one class; "
                "give each class a row of positive weight"
            )

    def _make_loss(self) -> Loss:
        coding = self._coding()
        return InPairs(coding.margin_loss) if coding.in_pairs else coding.margin_loss  # type: ignore[return-value]

    def _code_targets(self, y: Any, dtype: Any) -> Array:
        self._check_given(y)
        y = column_or_1d(y, warn=True)
        _check_labels(y)
        self.classes_, self._codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only, {self.classes_[0]!r}; "
                "a classifier needs rows of at least two classes"
            )
        return encode_labels(self.classes_, y).astype(dtype, copy=False)

    def _weights(self, Y: Array, s: Array) -> Array:
        self.class_weight_ = self._coding().class_weights(class_codes(Y), s)
        return super()._weights(Y, s)


def _check_labels(y: Array) -> None:
    """Refuse numbers that cannot be labels."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        if "continuous" not in str(error):
            raise
        raise ValueError(
            f"{error} A KernelClassifier needs a class for each row, and y holds numbers that "
            "are not whole; use KernelRegressor, or turn y into classes first"
        ) from error
