"""Kernel regression with any of the residual losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array

from onefit._types import Array
from onefit.estimators._base import KernelEstimator
from onefit.estimators.device import predicting_on_host, to_host
from onefit.losses import Loss, Quantile, get_loss
from onefit.quantiles import levels_of, pinball_loss
from onefit.spec import TargetCoding

__all__ = ["KernelRegressor"]


def no_standard_deviation() -> TypeError:
    """The error for ``return_std=True``."""
    return TypeError(
        "a kernel model has no standard deviation of its predictions; onefit.predict_interval "
        "gives intervals that hold with a probability you choose"
    )


class KernelRegressor(MultiOutputMixin, RegressorMixin, KernelEstimator):
    """Kernel regression: ridge, LS-SVM, Huber, SVR, quantiles, expectiles.

    Minimises ``sum_i w_i V(y_i - f(x_i) - b) + lam ||f||^2``.

    Parameters
    ----------
    loss : {"squared", "huber", "epsilon_insensitive", "epsilon_quadratic", "quantile", \
"expectile", "logistic"} or loss object, default="squared"
        "squared" is kernel ridge regression (LS-SVM regression with the intercept). "huber" is
        linear beyond a threshold; "epsilon_insensitive", the SVR, is zero within epsilon, linear
        beyond, its corners rounded over a width delta; "epsilon_quadratic" is the square of what
        exceeds epsilon; "quantile" fits the quantile of a level, its corner rounded over a width
        delta, and "expectile" the expectile of a level; "logistic" is the smooth robust loss of
        Debruyne et al. (2008). A name is the object with its defaults. Objects have parameters:
        ``Huber(threshold="mad")``, ``EpsilonInsensitive(epsilon=0.1, delta="mad")``,
        ``EpsilonQuadratic(epsilon=0.1)``, ``Quantile(level=0.5, delta="mad")``,
        ``Expectile(level=0.5)`` of :mod:`onefit.losses`, or your own (:class:`onefit.losses.Loss`).
        Grids and ``set_params`` name them ``loss__threshold``, ``loss__level`` and so on.

        Widths "mad" come from the spread of the targets trained on: cross-validation takes them
        from each training part. Several levels are fitted side by side to one target, and
        predictions have a column for each (see :mod:`onefit.quantiles`).
    kernel : str, Kernel or callable, default="rbf"
        "rbf", "laplacian", "matern12", "matern32", "matern52", "poly", "linear", "precomputed"; a
        kernel object such as ``Polynomial(degree=2)`` or :class:`onefit.kernels.WeightedSum`, with
        nested parameters such as ``kernel__degree``; or a function ``k(X, Y)`` that
        returns the kernel matrix, or, as for KernelRidge, ``k(x, y)`` of two rows that returns a
        number (slower). Rows may be any objects, such as strings or graphs: the function then
        receives arrays of objects.
    gamma : float, "scale", "auto" or array of shape (d,), default="scale"
        Inverse scale of the kernel; ``exp(-gamma ||x - y||^2)`` for "rbf". An array has one for
        each column of X, for "rbf", "laplacian" and the Matern kernels. A kernel object that
        has a gamma does not use it.
    lam : float, default=1e-3
        Weight of the penalty ``||f||^2``.
    fit_intercept : bool, default=True
        Whether to add the unpenalised constant b.
    scaling : {"mean", "total"}, default="mean"
        "mean" is ``w_i = 1/n``, as in the papers; "total" is ``w_i = 1``: with the squared loss and
        no intercept, ``lam`` then is the ``alpha`` of scikit-learn's KernelRidge. Sample weights
        multiply w.
    approximation : None, "nystrom", "fourier" or object, default=None
        Features that replace the kernel matrix, for many rows: of landmarks, or of random
        frequencies (rbf, laplacian and Matern kernels). A name has 2,000 features;
        ``Nystrom(n_components=...)`` and ``Fourier(n_components=...)`` of :mod:`onefit.features`
        have another number. The nested parameter is ``approximation__n_components``.
    solver : {"auto", "newton", "reweight", "iterative"}, default="auto"
        "auto" factors once for the squared loss and takes Newton steps otherwise; "reweight" is the
        iteration of Debruyne et al. (2008), section 4.3.
    random_state : int, RandomState or None, default=0
        For landmarks and frequencies.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, q)
        Coefficients a of f; those of the landmarks with approximation="nystrom".
    support_ : array of shape (n_support,)
        The rows with a nonzero coefficient; not all rows if the loss is flat near the target.
    n_support_ : array of shape (1,)
        Their number, as in scikit-learn's SVR.
    intercept_ : float or array of shape (q,)
    X_fit_ : the training rows (the kernel matrix when precomputed; none with an approximation)
    kernel_ : Kernel
        The kernel with its numeric gamma.
    coef_ : array of shape (m,) or (m, q)
        With an approximation, the weights of the features.
    feature_map_ : FeatureMap
        With an approximation, the map from rows to features.
    landmarks_, landmark_indices_ : arrays of shape (m, d) and (m,)
        With approximation="nystrom", the landmarks and the rows that they are (None for centres of
        k-means). Landmarks that add nothing to the others are left out.
    threshold_ : float or array of shape (q,)
        The threshold of "huber", in units of y.
    delta_ : float or array of shape (q,)
        The width of the rounded corners, in units of y.
    n_iter_ : int
        Steps of the solver.
    error_ : float
        Bound on the difference of a prediction for a training row from that of the minimiser, in
        units of y; infinite if none is known. With the rounding of such predictions,
        as it is seen on these rows.
    n_features_in_, feature_names_in_ : as in scikit-learn

    See Also
    --------
    KernelSearchCV : chooses kernel, loss and lam by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> model = KernelRegressor(lam=1e-6).fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 1e-3)
    True
    """

    def __init__(
        self,
        loss: str | Loss = "squared",
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        lam: float = 1e-3,
        fit_intercept: bool = True,
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
        self.scaling = scaling
        self.approximation = approximation
        self.solver = solver
        self.random_state = random_state

    def _finish(self, loss: Loss) -> None:
        self._remember_width("threshold", loss)
        self._remember_width("delta", loss)
        if self.approximation is None:
            self.n_support_ = np.array([self.support_.size], dtype=np.int32)
        if self._coding().one_column:
            for name in ("dual_coef_", "coef_"):
                if name in vars(self):
                    setattr(self, name, getattr(self, name)[:, 0])
            self.intercept_ = float(self.intercept_[0])

    def _remember_width(self, name: str, loss: Loss) -> None:
        """The width of the fitted loss, as a fitted attribute."""
        self.__dict__.pop(f"{name}_", None)
        if not hasattr(loss, name):
            return
        width = np.asarray(getattr(loss, name))
        one = self._coding().one_column or width.ndim == 0
        setattr(self, f"{name}_", float(width.ravel()[0]) if one else width)

    def _coding(self) -> TargetCoding:
        return TargetCoding(getattr(self, "_y_ndim", 1) == 1, levels_of(self))

    def predict(self, X: Any, return_std: bool = False) -> Array:
        """Predictions f(x) + b for the rows of X; a column for each of several levels."""
        if return_std:
            raise no_standard_deviation()
        values = self._decision(X)
        return values[:, 0] if self._coding().one_column else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2; for several levels, minus the mean pinball loss, or the mean loss of expectiles."""
        levels, model = levels_of(self), predicting_on_host(self, X)
        y, sample_weight = to_host(y, None, "y"), to_host(sample_weight, None, "sample_weight")
        if len(levels) <= 1:
            return float(RegressorMixin.score(model, X, y, sample_weight))
        u = model.predict(X)
        loss = self._make_loss()
        if isinstance(loss, Quantile):
            return -pinball_loss(y, u, levels, sample_weight)
        value = loss.value(np.asarray(y, dtype=float).reshape(-1, 1), u)
        return -float(np.average(value.mean(axis=1), weights=sample_weight))

    def _make_loss(self) -> Loss:
        return get_loss(self.loss, "regression")

    def _code_targets(self, y: Any, dtype: Any) -> Array:
        self._check_given(y)
        y = check_array(
            y, dtype=None, accept_sparse="csr", ensure_2d=False, input_name="y", estimator=self
        )
        self._y_ndim = y.ndim
        Y = check_array(y.reshape(y.shape[0], -1), dtype=dtype, input_name="y")
        return np.asfortranarray(Y)
