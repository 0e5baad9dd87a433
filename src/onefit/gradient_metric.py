r"""A metric of the rows, learned from the gradients of a kernel model: a supervised transformer.

**The metric.** Where the target depends on a few directions of x only, a kernel of ||x - x'||
spends most of its resolution on the others. The mean outer product of the gradients of the
regression function,

    M = 1/n sum_i grad f(x_i) grad f(x_i)',

has large eigenvalues in the directions along which f varies (Trivedi, Wang, Kpotufe and
Shakhnarovich 2014, "A consistent estimator of the expected gradient outerproduct"; in alternation
with fits, Radhakrishnan, Beaglehole, Pandit and Belkin 2024, "Mechanism for feature learning in
neural networks and backpropagation-free machine learning models"). A kernel of the distances

    ||x - x'||_M^2 = (x - x')' M (x - x') = ||R x - R x'||^2,        R = M^(1/2),

is a kernel of transformed rows R x. So the metric is a transformer, and a kernel estimator after it
is a pipeline.

**One step.** With rows z = R x and the model f(x) = sum_j a_j exp(-gamma ||z - z_j||) + b,

    grad f(x) = -gamma R sum_j a_j exp(-gamma ||z - z_j||) (z - z_j) / ||z - z_j||,

where equal rows add nothing: their gradients have no direction. The sums over j of all rows z_i are
(sum_j W_ij) z_i - (W Z)_i with W_ij = -gamma a_j exp(-gamma D_ij) / D_ij: two products of
matrices. M is the mean of the outer products (over all columns of several targets), and the next R
is its square root, divided by the root mean squared distance of the transformed rows, so that one
gamma has the same meaning at every step. The first R is the identity, divided likewise.

**Many rows.** M is a mean over the rows, and a sample gives it as well, while the model that
follows may use all rows: the metric is that of at most ``max_rows`` rows, drawn at random
(benchmarks/metric_rows.py).

**What each step chooses.** lam and, in the first step, gamma are those with the smallest
leave-one-out error, which one eigendecomposition gives for all lams. Nothing but the rows and
targets of the fit enters, so that held-out values of a pipeline are honest: a search fits the
transformer in every training part.

A metric that is learned from all rows, and then used in a cross-validation, has seen the targets of
the test rows; such scores are far too good.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from onefit._indexing import draw_rows
from onefit._types import Array
from onefit._validation import check_positive
from onefit.estimators import KernelRegressor
from onefit.folds import leave_one_out
from onefit.heldout import Eigen
from onefit.spec.coding import encode_labels

__all__ = ["GradientMetric", "standard_columns"]

#: inverse widths of the first step, in units of the root mean squared distance of the rows
GAMMAS = (0.2, 0.5, 1.4)
LAMS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
#: distances below this part of the root mean squared one have no direction
MIN_DISTANCE = 1e-9


class GradientMetric(TransformerMixin, BaseEstimator):
    """Linear map of the rows under which a kernel follows the gradients of the target.

    Parameters
    ----------
    steps : int, default=3
        How often a model is fitted and the metric replaced.
    max_rows : int, default=2000
        Rows that the metric is learned from; of more rows, a random sample.
    random_state : int, default=0
        For the sample.

    Attributes
    ----------
    metric_ : array of shape (d, d)
        R, symmetric; rows are multiplied by it.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from onefit.gradient_metric import GradientMetric
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> found = GradientMetric().fit(X, np.sin(X[:, 0] + X[:, 1]))
    >>> u, v = found.metric_[:2, 0], found.metric_[2:, 0]
    >>> bool(np.abs(u).min() > 10 * np.abs(v).max())
    True
    """

    def __init__(self, steps: int = 3, max_rows: int = 2000, random_state: int = 0) -> None:
        self.steps = steps
        self.max_rows = max_rows
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> GradientMetric:
        """Learn the metric.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,) or (n, q)
            Numbers of a regression, or labels.

        Returns
        -------
        self
        """
        check_positive("steps", self.steps, "the number of fits")
        X, y = validate_data(
            self, X, y, dtype=np.float64, ensure_min_samples=3, multi_output=True, y_numeric=False
        )
        check_positive("max_rows", self.max_rows, "the rows that the metric is learned from")
        Y = standard_columns(y)
        rows = draw_rows(None, len(X), int(self.max_rows), self.random_state)
        X, Y = X[rows], Y[rows]
        R = _normalised(np.eye(X.shape[1]), X)
        gammas: tuple[float, ...] = GAMMAS
        for _ in range(int(self.steps)):
            Z = X @ R
            model = _best_model(Z, Y, gammas)
            gammas = (model.gamma,)
            G = _gradients(Z, model) @ R
            R = _normalised(_root(G.T @ G), X)
        self.metric_ = R
        return self

    def transform(self, X: Any) -> Array:
        """The rows times ``metric_``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.metric_)


def standard_columns(y: Array) -> Array:
    """Targets with mean zero and variance one; labels as -1 and +1, a column per class."""
    if type_of_target(y) in ("binary", "multiclass") and y.ndim == 1 and y.dtype.kind != "f":
        Y = encode_labels(np.unique(y), y)
    else:
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    deviation = Y.std(axis=0)
    return np.asarray((Y - Y.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))


def _best_model(Z: Array, Y: Array, gammas: tuple[float, ...]) -> KernelRegressor:
    """The fitted model with the smallest leave-one-out error."""
    folds, smallest, best = leave_one_out(len(Z)), np.inf, None
    for gamma in gammas:
        model = KernelRegressor(kernel="matern12", gamma=gamma)
        path = Eigen().prepare(model._prepare(Z, Y, None), folds).predict(np.array(LAMS))
        errors = np.mean((path.values - Y[folds.rows]) ** 2, axis=(1, 2))
        place = int(np.argmin(np.where(np.isfinite(errors), errors, np.inf)))
        if errors[place] < smallest:
            smallest, best = errors[place], model.set_params(lam=LAMS[place])
    if best is None:
        raise FloatingPointError("no model of the rows has a finite leave-one-out error")
    return best.fit(Z, Y)


def _gradients(Z: Array, model: KernelRegressor) -> Array:
    """Gradients of all columns with respect to the rows Z, one column after the other."""
    D, found = cdist(Z, Z), []
    same = MIN_DISTANCE > D
    D[same] = 1.0
    slopes = -model.gamma * np.exp(-model.gamma * D) / D
    slopes[same] = 0.0
    for a in model.dual_coef_.reshape(len(Z), -1).T:
        W = slopes * a
        found.append(W.sum(axis=1)[:, None] * Z - W @ Z)
    return np.concatenate(found)


def _root(M: Array) -> Array:
    """The square root of a matrix without negative eigenvalues; the identity for zero."""
    e, V = np.linalg.eigh(M)
    if not e[-1] > 0.0:
        return np.eye(len(M))
    return np.asarray((V * np.sqrt(np.maximum(e / e[-1], 0.0))) @ V.T)


def _normalised(R: Array, X: Array) -> Array:
    """R divided by the root mean squared distance of the transformed rows."""
    distance = np.sqrt(2.0 * (X @ R).var(axis=0).sum())
    return np.asarray(R / distance) if distance > 0.0 else R
