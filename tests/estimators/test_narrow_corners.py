"""Final fits with narrow corners: at the minimiser that libsvm finds, or an error."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from registries import LOSS_IDS, LOSSES, sample
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale
from sklearn.svm import SVC, SVR

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.columns.fit import FitError
from onefit.features import Nystrom
from onefit.linalg import LinAlgError
from onefit.losses import EpsilonInsensitive, Huber, Quantile, SmoothedHinge
from onefit.losses.widened import widened_loss

DELTAS = [1e-2, 1e-3, 1e-6]
CS = [1.0, 100.0]
#: what libsvm is solved to; its kernel matrix is in single precision
TOLERANCE = 1e-9


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), scale(y)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:300], 2.0 * y[:300] - 1.0


def fitted(model, X, y):
    """A fit without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(X, y)


def rounded_svr(K, y, C, epsilon, delta):
    """libsvm's machine with corners of width delta: a ridge delta / C in its dual."""
    ridge = delta / C * np.eye(y.size)
    other = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=TOLERANCE).fit(K + ridge, y)
    return K[:, other.support_] @ other.dual_coef_[0] + other.intercept_


@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(
    ("loss", "share"),
    [(EpsilonInsensitive(epsilon=0.05), 1.0), (Quantile(0.5), 0.5), (Huber(), 1.0)],
    ids=["epsilon_insensitive", "quantile", "huber"],
)
def test_regression(diabetes, loss, share, delta, C):
    X, y = diabetes
    huber = isinstance(loss, Huber)
    own = Huber(delta) if huber else replace(loss, delta=delta)
    lam = delta / C if huber else 0.5 / C
    model = KernelRegressor(own, gamma=0.5, lam=lam, scaling="total")
    found = fitted(model, X, y)
    assert found.error_ <= 1e-6
    # half of |r|, rounded over delta, has half of the slope
    wide = delta * share if isinstance(loss, Quantile) else delta
    epsilon = getattr(loss, "epsilon", 0.0)
    expected = rounded_svr(rbf_kernel(X, gamma=0.5), y, share * C, epsilon, wide)
    assert np.abs(found.predict(X) - expected).max() <= found.error_ + 1e-6


@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("delta", DELTAS)
def test_classification(cancer, delta, C):
    """Corners of the hinge end at 1 + delta: the machine with that margin."""
    X, y = cancer
    model = KernelClassifier(SmoothedHinge(delta), gamma=0.1, lam=0.5 / C, scaling="total")
    found, K = fitted(model, X, y), rbf_kernel(X, gamma=0.1)
    margin, ridge = 1.0 + delta, 2.0 * delta / C * np.eye(y.size)
    other = SVC(kernel="precomputed", C=C / margin, tol=TOLERANCE).fit(K + ridge, y)
    expected = margin * (K[:, other.support_] @ other.dual_coef_[0] + other.intercept_)
    assert found.error_ <= 1e-6
    assert np.abs(found.decision_function(X) - expected).max() <= found.error_ + 1e-6


def test_levels_of_quantiles_together(diabetes):
    """Columns with losses of their own, each to its minimiser."""
    X, y = diabetes
    common = {"gamma": 0.5, "lam": 0.05, "scaling": "total"}
    found = fitted(KernelRegressor(Quantile([0.1, 0.5, 0.9], delta=1e-4), **common), X, y)
    assert found.error_ <= 1e-6
    for j, level in enumerate((0.1, 0.5, 0.9)):
        alone = fitted(KernelRegressor(Quantile(level, delta=1e-4), **common), X, y)
        assert np.abs(found.predict(X)[:, j] - alone.predict(X)).max() <= 2e-6
        below = float((y < alone.predict(X) - 1e-4).mean())
        assert below <= level


def test_the_estimator_of_a_search_is_certified(diabetes):
    X, y = diabetes
    model = KernelRegressor(EpsilonInsensitive(epsilon=0.05, delta=1e-3), scaling="total")
    grid = {"gamma": [0.5], "lam": [0.05]}
    best = fitted(KernelSearchCV(model, grid, cv=3), X, y).best_estimator_
    expected = rounded_svr(rbf_kernel(X, gamma=0.5), y, 10.0, 0.05, 1e-3)
    assert best.error_ <= 1e-6
    assert np.abs(best.predict(X) - expected).max() <= 2e-6


class Failing(KernelRegressor):
    """Never reaches its minimum."""

    def fit(self, X, y, sample_weight=None):
        raise FitError("the fit did not reach its minimum")


def test_a_search_whose_last_fit_fails_has_its_scores(diabetes):
    """Candidates are scored by their folds, which have certificates of their own."""
    X, y = diabetes[0][:60], diabetes[1][:60]
    search = KernelSearchCV(Failing(Quantile(delta=0.1)), {"lam": [0.1]}, cv=3)
    with pytest.raises(FitError, match="did not reach its minimum"):
        search.fit(X, y)
    search.set_params(refit=False).fit(X, y)
    expected = KernelSearchCV(KernelRegressor(Quantile(delta=0.1)), {"lam": [0.1]}, cv=3)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], expected.fit(X, y).cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_features_keep_the_promise(diabetes, delta):
    """All rows as landmarks are the kernel matrix."""
    X, y = diabetes[0][:120], diabetes[1][:120]
    loss = EpsilonInsensitive(epsilon=0.05, delta=delta)
    common = {"loss": loss, "gamma": 0.1, "lam": 0.005, "scaling": "total"}
    expected = fitted(KernelRegressor(**common), X, y)
    features = {"approximation": Nystrom(120)}
    found = fitted(KernelRegressor(**common, **features), X, y)
    gap = np.abs(found.predict(X) - expected.predict(X)).max()
    assert gap <= found.error_ + expected.error_ <= 1e-6


def test_reweighting_converges_or_raises():
    X, y = sample("classification", n=30)
    common = {"lam": 1e-3, "gamma": 0.5}
    for delta in (0.5, 1e-3):
        expected = KernelClassifier(SmoothedHinge(delta), **common).fit(X, y)
        other = KernelClassifier(SmoothedHinge(delta), solver="reweight", **common)
        try:
            fitted(other, X, y)
        except FitError:
            assert delta < 0.5
            continue
        gap = np.abs(other.decision_function(X) - expected.decision_function(X)).max()
        assert gap <= other.error_ + expected.error_ <= 2e-6


def test_features_short_of_the_minimum_are_an_error(diabetes):
    """What was measured, and what to do: nearly no penalty, and a loss nearly sharp."""
    X, y = diabetes
    model = KernelRegressor(Quantile(delta=1e-3), lam=1e-14, gamma=10.0, approximation=Nystrom(60))
    with pytest.raises(FitError, match=r"did not reach its minimum .* steps.*; raise lam"):
        model.fit(X, y)


def test_a_singular_hessian_of_features_is_an_error_with_advice(diabetes):
    X, y = diabetes
    model = KernelRegressor(Quantile(delta=1e-9), lam=1e-14, gamma=10.0, approximation=Nystrom(60))
    advice = r"Hessian .* singular .* raise lam or the loss's delta, or lower n_components"
    with pytest.raises(LinAlgError, match=advice):
        model.fit(X, y)


@pytest.mark.parametrize("factor", [10.0, 1e4])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
def test_wider_losses_keep_the_range_of_the_coefficients(loss, task, factor):
    """2 Lambda a = -s g: what slopes are multiplied by, Lambda is too; their way up is longer."""
    if not hasattr(loss, "widened"):
        assert widened_loss(loss, factor) == (loss, factor)
        return
    wide, multiple = widened_loss(loss, factor)
    y = np.ones(2)
    ends = np.array([-1e9, 1e9])
    assert wide.gradient(y, ends) == pytest.approx(multiple * loss.gradient(y, ends))
    assert wide.max_curvature == pytest.approx(loss.max_curvature * multiple / factor)
