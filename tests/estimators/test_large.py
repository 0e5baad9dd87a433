"""Fits by iteration: every loss, against Newton's method with factors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from registries import CLASSIFIERS, REGRESSORS
from sklearn.base import clone

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, heldout_predict
from onefit.config import config_context
from onefit.heldout import Iterative
from onefit.kernels import Gaussian

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(160, 3))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RANDOM.normal(size=160)
MACHINES = [KernelRegressor(**options) for options in REGRESSORS]
MACHINES += [KernelClassifier(**options) for options in CLASSIFIERS]


def target(machine):
    return Y if isinstance(machine, KernelRegressor) else Y > 0.0


def decision(machine, points):
    return getattr(machine, "decision_function", machine.predict)(points)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_an_iteration_fits_as_factors_do(machine, fit_intercept, weighted):
    machine = clone(machine).set_params(fit_intercept=fit_intercept, lam=1e-2)
    s = RANDOM.uniform(0.0, 2.0, 160) if weighted else None
    expected = clone(machine).fit(X, target(machine), s)
    found = machine.set_params(solver="iterative").fit(X, target(machine), s)
    np.testing.assert_allclose(decision(found, X), decision(expected, X), atol=2e-6)
    if hasattr(expected, "threshold_"):
        assert found.threshold_ == pytest.approx(expected.threshold_, rel=1e-6)


@pytest.mark.parametrize("machine", [MACHINES[0], MACHINES[1], MACHINES[5]], ids=repr)
def test_a_fit_without_its_matrix(machine):
    """So little memory that tiles are all there is room for."""
    machine = clone(machine).set_params(lam=1e-2)
    expected = decision(clone(machine).fit(X, target(machine)), X)
    with config_context(memory_bytes=8.0 * 0.95 * 160**2):
        found = clone(machine).fit(X, target(machine))
    np.testing.assert_allclose(decision(found, X[:40]), expected[:40], atol=2e-6)


@pytest.mark.parametrize("grid", [{"lam": [1e-3, 1e-1]}, {"lam": "continuous"}])
def test_a_search_by_iteration(grid):
    """Candidates, and lams between them, as the closed form has them."""
    grid = {"gamma": [0.1, 1.0], **grid}
    mine, other = (
        KernelSearchCV(KernelRegressor(), grid, cv=4, method=method).fit(X, Y)
        for method in (Iterative(tol=1e-8), "eigen")
    )
    assert mine.best_params_ == pytest.approx(other.best_params_, rel=1e-3)
    assert mine.best_score_ == pytest.approx(other.best_score_, abs=1e-6)
    assert mine.cv_results_["exact"].all()
    assert set(mine.cv_results_["method"]) == {"iterative"}


def test_a_precomputed_matrix():
    K = Gaussian(0.5)(X)
    mine, other = (
        KernelSearchCV(KernelRegressor(kernel="precomputed"), {"lam": [1e-3, 1e-1]}, cv=4, method=m)
        for m in ("iterative", "eigen")
    )
    scores = [search.fit(K, Y).cv_results_["mean_test_score"] for search in (mine, other)]
    np.testing.assert_allclose(*scores, atol=1e-6)


def test_progress_of_an_iteration_is_told():
    class Watcher:
        def __init__(self):
            self.seen = []

        def setup(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context, **_): ...

        def on_fit_task_end(self, estimator, context, **_): ...

        def teardown(self, estimator, context): ...

        def on_iteration(self, above):
            self.seen.append(float(above.max()))

    watcher = Watcher()
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-3]}, cv=4, method="iterative")
    search.set_callbacks(watcher).fit(X, Y)
    assert watcher.seen[0] > 1.0 >= watcher.seen[-1]


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_none_is_named(convert, value):
    bad = X.copy()
    bad[130, 2] = value
    for action in (
        lambda: KernelRegressor().fit(convert(bad), Y),
        lambda: heldout_predict(KernelRegressor(), convert(bad), Y),
        lambda: KernelSearchCV(KernelRegressor(), {"lam": [1.0]}).fit(convert(bad), Y),
    ):
        with pytest.raises(ValueError, match=r"(NaN|infinity)[\s\S]*row 130, column 2"):
            action()


def test_duplicate_rows():
    twice = np.concatenate([X, X])
    held = heldout_predict(KernelRegressor(lam=1e-3), twice, np.tile(Y, 2), method="iterative")
    other = heldout_predict(KernelRegressor(lam=1e-3), twice, np.tile(Y, 2), method="refit")
    assert held.exact.all()
    np.testing.assert_allclose(held.values, other.values, atol=2e-6)
