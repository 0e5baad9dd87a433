"""Criteria side by side: values are those of searches by them, regret is what is lost."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1
from watched import Counted

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.criteria import Gcv
from onefit.report import compare_criteria
from onefit.report.criteria import verdicts
from onefit.report.facts import Facts

X, y = make_friedman1(40, random_state=0)
Z, classes = load_iris(return_X_y=True)
GRID = [
    {"kernel": ["rbf"], "gamma": [0.1, 1.0], "lam": [1e-4, 1e-2, 1.0]},
    {"kernel": ["linear"], "lam": [1e-2, 1.0]},
]


@pytest.fixture
def search():
    return KernelSearchCV(KernelRegressor(), GRID, cv=4).fit(X, y)


@pytest.mark.parametrize("name", ["loo", "gcv", "cv_hat", "influence_loo", "kernel_stability"])
def test_values_are_those_of_a_search_by_the_criterion(search, name):
    compare_criteria(search, X, y, [name])
    own = KernelSearchCV(KernelRegressor(), GRID, cv=4, criterion=name).fit(X, y)
    expected = own.cv_results_["criterion"]
    np.testing.assert_allclose(search.cv_results_[f"criterion_{name}"], expected, rtol=1e-9)


@pytest.mark.parametrize("loss", ["smoothed_hinge", "log"])
def test_classification_with_weights(loss):
    names = ["kernel_stability", "span"] if loss == "smoothed_hinge" else ["kernel_stability"]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(classes))
    grid = {"gamma": [0.1, 1.0], "lam": [1e-3, 1e-1]}
    machine = KernelClassifier(loss=loss)
    options = {"cv": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = KernelSearchCV(machine, grid, **options).fit(Z, classes, sample_weight=weight)
        compare_criteria(search, Z, classes, names, sample_weight=weight)
        for name in names:
            own = KernelSearchCV(machine, grid, criterion=name, cv=3)
            expected = own.fit(Z, classes, sample_weight=weight).cv_results_["criterion"]
            found = search.cv_results_[f"criterion_{name}"]
            np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_a_precomputed_kernel_and_a_criterion_object():
    K = X @ X.T
    machine, grid = KernelRegressor(kernel="precomputed"), {"lam": [1e-2, 1.0]}
    search = KernelSearchCV(machine, grid, cv=4).fit(K, y)
    compare_criteria(search, K, y, [Gcv(guard=False)])
    own = KernelSearchCV(machine, grid, cv=4, criterion=Gcv(guard=False)).fit(K, y)
    expected = own.cv_results_["criterion"]
    np.testing.assert_allclose(search.cv_results_["criterion_gcv"], expected)


def test_regret_is_what_is_lost_against_the_best_score():
    scoring = "neg_root_mean_squared_error"
    search = KernelSearchCV(KernelRegressor(), GRID, cv=4, scoring=scoring).fit(X, y)
    assert verdicts(Facts(search)) == []
    worst = int(np.argmin(search.cv_results_["mean_test_score"]))
    search.cv_results_["criterion_odd"] = np.arange(8) != worst
    search.cv_results_["criterion_none"] = np.full(8, np.inf)
    cv, odd = verdicts(Facts(search))
    best = search.best_index_
    assert (cv.name, cv.pick, cv.regret, cv.regret_error) == ("cv", best, 0.0, 0.0)
    assert (odd.name, odd.pick) == ("odd", worst)
    splits = np.column_stack([search.cv_results_[f"split{i}_test_score"] for i in range(4)])
    lost = splits[best] - splits[worst]
    assert odd.error == pytest.approx(-splits[worst].mean())
    assert odd.regret == pytest.approx(lost.mean())
    assert odd.regret > 0
    assert odd.regret_error == pytest.approx(lost.std(ddof=1) / 2)
    assert odd.standard_error == pytest.approx(splits[worst].std(ddof=1) / 2)


def test_what_is_there_already_is_not_computed_again(search):
    before = set(search.cv_results_)
    assert compare_criteria(search, X, y, ["cv"]) is search
    assert set(search.cv_results_) == before
    own = KernelSearchCV(KernelRegressor(), GRID, cv=4, criterion="gcv").fit(X, y)
    compare_criteria(own, X, y, ["gcv", "loo"])
    assert "criterion_gcv" not in own.cv_results_
    assert [one.name for one in verdicts(Facts(own))] == ["cv", "gcv", "loo"]


def test_what_does_not_fit_is_refused_before_any_work():
    machine, grid = KernelRegressor(kernel=Counted(1.0)), {"lam": [1e-2, 1.0]}
    search = KernelSearchCV(machine, grid, cv=4).fit(X, y)
    Counted.matrices.clear()
    with pytest.raises(ValueError, match="'span' fits models with loss"):
        compare_criteria(search, X, y, ["gcv", "span"])
    with pytest.raises(ValueError, match="criterion='gvc' is not known"):
        compare_criteria(search, X, y, ["gvc"])
    assert Counted.matrices == []
    compare_criteria(search, X, y, ["gcv"])
    assert Counted.matrices != []


def test_a_kernel_that_does_not_fit_is_left_out_with_a_warning(search):
    with pytest.warns(UserWarning, match="prior on gamma.*left out"):
        compare_criteria(search, X, y, ["bayes_loo"])
    found = search.cv_results_["criterion_bayes_loo"]
    assert np.isfinite(found[:6]).all()
    assert np.isinf(found[6:]).all()
    assert verdicts(Facts(search))[1].pick == found[:6].argmin()
