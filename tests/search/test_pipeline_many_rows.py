"""Searches over pipelines whose training parts are solved by iteration, against fits."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.config import config_context
from onefit.plan.choice import MIN_ITERATED_ROWS

ROWS = 250 + MIN_ITERATED_ROWS
RANDOM = np.random.default_rng(0)
X = 3.0 * RANDOM.normal(size=(ROWS, 3))
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1] * X[:, 2] + 0.1 * RANDOM.normal(size=ROWS)
WEIGHT = RANDOM.integers(3, size=ROWS).astype(float)
LAMS = [1e-5, 1e-3, 1e-1]


def search_of(estimator, cv, **grid):
    name = type(estimator).__name__.lower()
    model = make_pipeline(StandardScaler(), estimator)
    return KernelSearchCV(model, {f"{name}__{key}": value for key, value in grid.items()}, cv=cv)


def check_against_fits(search, X, y, response="predict", **params):
    """All candidates within their bounds of pipelines that are fitted to the training parts."""
    for i, one in enumerate(search.cv_results_["params"]):
        held = search.heldout(i)
        assert held.exact.all()
        for k, (train, test) in enumerate(held.folds):
            model = clone(search.estimator).set_params(**one)
            model.fit(
                X[train], y[train], **{name: values[train] for name, values in params.items()}
            )
            wanted = getattr(model, response)(X[test])
            gap = np.abs(held.values[held.folds.place(k)][:, 0] - wanted).max()
            assert gap <= held.error[k] + model[-1].error_ + 1e-12


def test_values_are_those_of_fits():
    cv = ShuffleSplit(1, test_size=240, random_state=0)
    search = search_of(KernelRegressor(gamma=0.3), cv, lam=LAMS[1:])
    params = {"kernelregressor__sample_weight": WEIGHT}
    search.fit(X, Y, **params)
    check_against_fits(search, X, Y, **params)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern32", "linear"])
def test_kernels(kernel):
    cv = ShuffleSplit(2, test_size=240, random_state=0)
    search = search_of(KernelRegressor(kernel=kernel, gamma=0.3), cv, lam=LAMS[1:])
    check_against_fits(search.fit(X, Y), X, Y)


@pytest.mark.slow
def test_labels():
    cv, labels = ShuffleSplit(1, test_size=240, random_state=0), np.where(Y > 0, "a", "b")
    search = search_of(KernelClassifier(gamma=0.3), cv, lam=LAMS[1:]).fit(X, labels)
    check_against_fits(search, X, labels, "decision_function")


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_on_a_device(loss):
    pytest.importorskip("torch")
    cv = ShuffleSplit(1, test_size=240, random_state=0)
    search = search_of(KernelRegressor(loss=loss, gamma=0.3), cv, lam=LAMS[1:])
    with config_context(device="torch:cpu"):
        search.fit(X, Y)
    check_against_fits(search, X, Y)


@pytest.mark.parametrize("estimator", [KernelRegressor(gamma=0.1), KernelClassifier(gamma=0.1)])
def test_the_winner_of_a_device_is_on_the_host(estimator):
    torch = pytest.importorskip("torch")
    rows, cv = X[:200], KFold(3, shuffle=True, random_state=0)
    y = Y[:200] if isinstance(estimator, KernelRegressor) else Y[:200] > 0.0
    search = search_of(estimator, cv, lam=LAMS, kernel=["rbf", "laplacian"])
    host = clone(search).fit(rows, y)
    with config_context(device="torch:cpu"):
        search.fit(rows, y)
        with pytest.raises(ValueError, match="pass it as a NumPy array"):
            clone(search).fit(torch.tensor(rows), y)
    assert search.best_params_ == host.best_params_
    assert [name for name, _ in search.best_estimator_.steps] == [
        name for name, _ in host.best_estimator_.steps
    ]
    mine, other = (one.best_estimator_[-1].dual_coef_ for one in (search, host))
    assert type(mine) is np.ndarray
    assert mine == pytest.approx(other, rel=1e-6, abs=1e-8 * np.abs(other).max())
    assert search.predict(rows[:5]) == pytest.approx(host.predict(rows[:5]), rel=1e-6)


def test_several_devices_are_refused():
    search = search_of(KernelRegressor(gamma=0.1), 3, lam=LAMS)
    with config_context(device=["torch:cpu"] * 2), pytest.raises(ValueError, match="Pipeline"):
        search.fit(X[:50], Y[:50])
