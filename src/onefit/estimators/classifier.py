"""Kernel classification with any of the margin losses, one machine a class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from onefit.estimators._base import KernelMachine
from onefit.losses import Loss, get_loss

Array = NDArray[Any]

__all__ = ["KernelClassifier"]


def _gives_probabilities(estimator: KernelClassifier) -> bool:
    if hasattr(estimator._make_loss(), "probability"):
        return True
    raise AttributeError(
        f"loss={estimator.loss!r} gives no probabilities; use loss='log', or "
        "sklearn.calibration.CalibratedClassifierCV"
    )


class KernelClassifier(ClassifierMixin, KernelMachine):
    """Classification in the space of a kernel: LS-SVM, smoothed SVM, L2-SVM, kernel logistic.

    Minimises ``sum_i w_i V(y_i (f(x_i) + b)) + lam ||f||^2`` with y in {-1, +1}; several classes
    are separated one against the rest, on one kernel matrix and, for the squared loss, one
    factorisation.

    Parameters
    ----------
    loss : {"squared", "smoothed_hinge", "squared_hinge", "log"} or loss object, default="squared"
        "squared" is the LS-SVM; "smoothed_hinge" rounds the corner of the SVM's hinge over a width
        ``delta`` and tends to the SVM with ``C = 1 / (2 n lam)`` as delta falls; "squared_hinge" is
        the L2-SVM; "log" is kernel logistic regression, which gives probabilities.
    kernel, gamma, degree, coef0 : as in :class:`KernelRegressor`
    lam : float, default=1e-3
        Weight of the penalty ``||f||^2``.
    delta : float, default=0.1
        Half width of the rounded corner of "smoothed_hinge".
    fit_intercept : bool, default=True
    scaling : {"mean", "total"}, default="mean"
    solver : {"auto", "newton", "reweight", "iterative"}, default="auto"
    approximation, n_components, keep_landmarks, random_state : as in :class:`KernelRegressor`

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n, n_classes), or (n, 1) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    X_fit_ : the training rows (the kernel matrix when precomputed; none with an approximation)
    coef_, landmarks_, landmark_indices_ : as in :class:`KernelRegressor`
    n_iter_ : int
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

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
        degree: int = 3,
        coef0: float = 1,
        lam: float = 1e-3,
        delta: float = 0.1,
        fit_intercept: bool = True,
        scaling: str = "mean",
        solver: str = "auto",
        approximation: Any = None,
        n_components: int | str = 2000,
        keep_landmarks: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.lam = lam
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.scaling = scaling
        self.solver = solver
        self.approximation = approximation
        self.n_components = n_components
        self.keep_landmarks = keep_landmarks
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelClassifier:
        """Fit on rows X with labels y of any type.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or (n, n) when precomputed
        y : array of shape (n,)
        sample_weight : array of shape (n,), default=None

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight)
        return self

    def decision_function(self, X: Any) -> Array:
        """f(x) + b: one value a row for two classes (positive for the second), else one a class."""
        values = self._decision(X)
        return values.ravel() if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> Array:
        """The class with the largest decision value."""
        return self._labels(self._decision(X))

    def _labels(self, decision: Array) -> Array:
        """Labels for an (m, q) array of decision values."""
        if len(self.classes_) == 2:
            return np.asarray(self.classes_[(decision[:, 0] > 0).astype(int)])
        return np.asarray(self.classes_[decision.argmax(axis=1)])

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probability of every class; one-against-rest probabilities are scaled to sum to one."""
        return self._probabilities(self._decision(X))

    def _probabilities(self, decision: Array) -> Array:
        p: Array = self._make_loss().probability(decision)  # type: ignore[attr-defined]
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - p[:, 0], p[:, 0]])
        # far from every class all of them may have underflown; then the nearest one has it all
        nearest = decision == decision.max(axis=1, keepdims=True)
        p = np.where(p.any(axis=1, keepdims=True), p, nearest.astype(p.dtype))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _check_weighted(self, Y: Array, s: Array) -> None:
        weighted = Y[s > 0]
        if (weighted == weighted[:1]).all(axis=0).any():
            raise ValueError(
                "sample_weight is zero on every row of some class, or on all but one class; "
                "give each class a row of positive weight"
            )

    def _make_loss(self) -> Loss:
        return get_loss(self.loss, "classification", delta=self.delta)

    def _targets(self, y: Any, dtype: Any) -> Array:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, "
                "but the target y is None."
            )
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only, {self.classes_[0]!r}; "
                "a classifier needs rows of at least two classes"
            )
        if len(self.classes_) == 2:
            return np.where(index == 1, 1.0, -1.0).astype(dtype)[:, None]
        return np.where(index[:, None] == np.arange(len(self.classes_)), 1.0, -1.0).astype(dtype)
