"""One lam for each target."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, heldout_predict
from onefit.losses import Quantile
from onefit.search import Interval

X, y = make_friedman1(50, random_state=0)
rng = np.random.default_rng(0)
Y = np.column_stack([y, y + 8.0 * rng.normal(size=50), rng.normal(size=50)])
LAMS = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0]
GAMMAS = [0.1, 0.5]
CV = KFold(5, shuffle=True, random_state=0)


@pytest.mark.parametrize(
    ("how", "loss"), [("mean", "squared"), ("pooled", "squared"), ("mean", "huber")]
)
def test_each_target_gets_the_lam_of_its_own_search(how, loss):
    options = {"cv": CV, "aggregate": how, "method": "refit" if loss == "huber" else "auto"}
    machine = KernelRegressor(loss=loss)
    weights = rng.uniform(0.5, 2.0, 50)
    weights[3] = 0.0
    grid = {"gamma": GAMMAS, "lam": LAMS}
    search = KernelSearchCV(machine, grid, **options).fit(X, Y, sample_weight=weights)
    joint = search.fit_per_target(X, Y, sample_weight=weights)
    best = {}
    for gamma in GAMMAS:
        single = [
            KernelSearchCV(machine, {"gamma": [gamma], "lam": LAMS}, **options).fit(
                X, Y[:, j], sample_weight=weights
            )
            for j in range(3)
        ]
        best[gamma] = single
    means = {gamma: np.mean([one.best_score_ for one in found]) for gamma, found in best.items()}
    winner = max(means, key=means.get)
    assert joint.params == {"gamma": winner}
    np.testing.assert_array_equal(joint.lams, [s.best_params_["lam"] for s in best[winner]])
    np.testing.assert_allclose(joint.scores, [s.best_score_ for s in best[winner]])
    assert len(set(joint.lams)) > 1
    expected = np.column_stack([one.predict(X) for one in best[winner]])
    np.testing.assert_allclose(joint.estimator.predict(X), expected, rtol=1e-7, atol=1e-9)


def test_weights_of_the_fits_alone_do_not_enter_the_scores():
    weights = np.random.default_rng(1).uniform(0.1, 3.0, 50)
    with config_context(enable_metadata_routing=True):
        machine = KernelRegressor().set_fit_request(sample_weight=True)
        machine.set_score_request(sample_weight=False)
        search = KernelSearchCV(machine, {"lam": LAMS}, cv=CV)
        search.fit(X, Y[:, :1], sample_weight=weights)
        found = search.fit_per_target(X, Y[:, :1], sample_weight=weights)
    assert found.scores[0] == pytest.approx(search.best_score_, rel=1e-12)


def test_one_metric_of_several_and_refined_lams():
    scoring = ["r2", "neg_mean_absolute_error"]
    grid = {"lam": Interval(1e-4, 10.0, 8)}
    several = KernelSearchCV(KernelRegressor(), grid, cv=CV, scoring=scoring, refit="r2")
    found = several.fit(X, Y).fit_per_target(X, Y)
    assert found.scores.mean() >= several.best_score_
    lams = [params["lam"] for params in several.cv_results_["params"]]
    assert set(found.lams) <= set(lams)
    several.set_params(refit=False, param_grid={"lam": LAMS}).fit(X, Y)
    with pytest.raises(ValueError, match="name it in refit"):
        several.fit_per_target(X, Y)


@pytest.mark.parametrize(
    ("machine", "options", "words"),
    [
        (KernelRegressor(), {"scoring": "explained_variance"}, r"a metric .*r2_score"),
        (KernelRegressor(Quantile([0.2, 0.8])), {}, "not several levels"),
        (KernelRegressor(approximation="nystrom"), {}, "needs the whole kernel matrix"),
        (KernelClassifier(), {}, "is for regressors"),
    ],
)
def test_what_has_no_lam_per_target(machine, options, words):
    target = np.where(y > 14, "high", "low") if isinstance(machine, KernelClassifier) else y
    search = KernelSearchCV(machine, {"lam": LAMS}, **options).fit(X, target)
    with pytest.raises(ValueError, match=words):
        search.fit_per_target(X, target)


def test_a_model_with_several_lams_is_not_updated_with_one():
    found = KernelSearchCV(KernelRegressor(), {"lam": LAMS}, cv=CV).fit(X, Y).fit_per_target(X, Y)
    with pytest.raises(ValueError, match="a lam for each target, and cannot be updated"):
        heldout_predict(found.estimator)
    with pytest.raises(ValueError, match="a lam for each target, and cannot be updated"):
        found.estimator.add_rows(X[:2], Y[:2])


def test_one_target_has_the_fitted_attributes_of_a_fit():
    machine, grid = KernelRegressor("huber", gamma=0.1), {"lam": LAMS}
    found = KernelSearchCV(machine, grid, cv=CV).fit(X, y).fit_per_target(X, y)
    fitted = machine.set_params(lam=found.lams[0]).fit(X, y)
    assert found.estimator.intercept_ == pytest.approx(fitted.intercept_)
    assert found.estimator.threshold_ == fitted.threshold_
    np.testing.assert_allclose(found.estimator.dual_coef_, fitted.dual_coef_)


def test_pipelines_are_refused():
    model = make_pipeline(StandardScaler(), KernelRegressor())
    search = KernelSearchCV(model, {"kernelregressor__lam": LAMS}).fit(X, Y)
    with pytest.raises(TypeError, match="does not take a Pipeline"):
        search.fit_per_target(X, Y)


def test_weights_and_targets_are_those_of_the_search():
    random = np.random.default_rng(0)
    X, weight = random.normal(size=(40, 2)), random.integers(1, 5, size=40).astype(float)
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.5 * random.normal(size=(40, 2))
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-3, 1e-1]}, cv=4)
    search.fit(X, Y, sample_weight=weight)
    found, given = search.fit_per_target(X, Y), search.fit_per_target(X, Y, weight)
    np.testing.assert_array_equal(found.estimator.predict(X), given.estimator.predict(X))
    with pytest.raises(ValueError, match="y differs from the targets"):
        search.fit_per_target(X, Y + 1.0)
