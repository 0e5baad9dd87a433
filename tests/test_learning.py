import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.model_selection import learning_curve as refitted

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.learning import learning_curve
from onefit.losses import Huber

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
U = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=60)


@pytest.mark.parametrize("scaling", ["mean", "total"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scoring", ["r2", "neg_median_absolute_error"])
def test_regression_equals_refits(scaling, fit_intercept, scoring):
    model = KernelRegressor(gamma=0.7, lam=0.05, scaling=scaling, fit_intercept=fit_intercept)
    sizes, train, test = refitted(
        model, X, U + 3.0, cv=KFold(4), train_sizes=np.linspace(0.2, 1, 5), scoring=scoring,
        shuffle=True, random_state=3,
    )  # fmt: skip
    curve = learning_curve(
        model, X, U + 3.0, cv=KFold(4), train_sizes=np.linspace(0.2, 1, 5), scoring=scoring,
        random_state=3,
    )  # fmt: skip
    np.testing.assert_array_equal(curve.train_sizes, sizes)
    np.testing.assert_allclose(curve.test_scores, test, atol=1e-8)
    np.testing.assert_allclose(curve.train_scores, train, atol=1e-8)


def test_classification_equals_refits():
    y = np.digitize(U, np.quantile(U, [0.4, 0.7]))
    model = KernelClassifier(loss="squared", gamma=0.7, lam=0.05)
    _, _, test = refitted(model, X, y, cv=4, train_sizes=[20, 45], shuffle=True, random_state=1)
    curve = learning_curve(model, X, y, cv=4, train_sizes=[20, 45], random_state=1)
    np.testing.assert_allclose(curve.test_scores, test, atol=1e-12)


def test_a_search_lends_its_winner_and_permutations_widen_the_band():
    search = KernelSearchCV(KernelRegressor(gamma=0.7), {"lam": [1e-3, 1e-1]}).fit(X, U)
    curve = learning_curve(search, X, U, n_permutations=3, random_state=0)
    assert curve.test_scores.shape == (10, 15)
    low, high = curve.band()
    assert (low <= high).all()


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (KernelRegressor(loss=Huber(1.0)), {}, "squared loss"),
        (KernelRegressor(), {"train_sizes": [1, 5]}, "train_sizes"),
        (KernelRegressor(approximation="nystrom"), {}, "approximation"),
        (KernelSearchCV(KernelRegressor(), {"lam": [1.0]}), {}, "fitted search"),
    ],
)
def test_refusals_say_what_to_do(model, options, message):
    with pytest.raises(ValueError, match=message):
        learning_curve(model, X, U, **options)
