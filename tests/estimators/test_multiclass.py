"""Pairs of classes and weights of classes, against scikit-learn's and against explicit weights."""

from __future__ import annotations

import numpy as np
import pytest
from registries import CLASSIFIERS, sample
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from onefit import KernelClassifier, KernelSearchCV, heldout_predict
from onefit.diagnostics import influence
from onefit.folds import Folds
from onefit.gradient import cv_gradient
from onefit.losses import SmoothedHinge

each_loss = pytest.mark.parametrize("parameters", CLASSIFIERS, ids=lambda p: str(p["loss"]))
NAMES = np.array(["ash", "birch", "cedar", "oak"])


def data(n=80, seed=0):
    X, y = sample("classification", n=n, seed=seed, classes=4)
    return X, NAMES[y]


def machine(parameters, **options):
    return KernelClassifier(
        **{"gamma": 0.5, "lam": 0.05, "scaling": "total"} | parameters | options
    )


@each_loss
def test_pairs_are_scikit_learns_one_vs_one(parameters):
    X, y = data()
    new, _ = data(seed=1)
    ours = machine(parameters, multi_class="ovo").fit(X, y)
    theirs = OneVsOneClassifier(machine(parameters)).fit(X, y)
    assert ours.dual_coef_.shape == (80, 6)
    assert (ours.predict(new) == theirs.predict(new)).all()
    assert ours.decision_function(new) == pytest.approx(theirs.decision_function(new), abs=1e-6)
    assert ours.decision_function(new).shape == (80, 4)
    pairs = ours.kernel_(new, ours.X_fit_) @ ours.dual_coef_ + ours.intercept_
    assert pairs.shape == (80, 6)
    for column, one in enumerate(theirs.estimators_):
        assert pairs[:, column] == pytest.approx(one.decision_function(new), abs=1e-7)
    first, second = np.triu_indices(4, 1)
    for j in range(6):
        outside = ~np.isin(y, NAMES[[first[j], second[j]]])
        assert not ours.dual_coef_[outside, j].any()


@pytest.mark.parametrize("scaling", ["mean", "total"])
@pytest.mark.parametrize("method", ["exact", "limit", "iterative"])
@each_loss
def test_held_out_values_are_those_of_refits(parameters, method, scaling):
    X, y = data(60)
    s = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    lam = 0.05 if scaling == "total" else 1e-3
    model = machine(parameters, multi_class="ovo", scaling=scaling, lam=lam)
    held = heldout_predict(model, X, y, sample_weight=s, method=method)
    refit = heldout_predict(model, X, y, sample_weight=s, method="refit")
    assert held.values.shape == (60, 6)
    gap = np.abs(held.values - refit.values).max()
    assert gap <= np.max(held.error) + 1e-9
    if method != "limit":
        assert held.exact.all()


def test_mean_scaling_has_one_penalty_for_all_pairs():
    X, y = data()
    mean = machine({"loss": "squared"}, multi_class="ovo", scaling="mean", lam=1e-3).fit(X, y)
    total = machine({"loss": "squared"}, multi_class="ovo", lam=1e-3 * 80).fit(X, y)
    assert mean.dual_coef_ == pytest.approx(total.dual_coef_, abs=1e-9)


def test_shapes_and_signs_are_svcs():
    X, y = load_iris(return_X_y=True)
    C = 2.0
    svc = SVC(C=C, gamma=0.5, tol=1e-8).fit(X, y)
    ours = KernelClassifier(
        SmoothedHinge(1e-4), gamma=0.5, lam=1 / (2 * C), scaling="total", multi_class="ovo"
    ).fit(X, y)
    assert ours.decision_function(X) == pytest.approx(svc.decision_function(X), abs=5e-3)
    pairs = ours.kernel_(X, ours.X_fit_) @ ours.dual_coef_ + ours.intercept_
    expected = svc.set_params(decision_function_shape="ovo").decision_function(X)
    assert -pairs == pytest.approx(expected, abs=5e-3)
    assert (ours.predict(X) == svc.predict(X)).all()
    assert ours.n_support_.dtype == svc.n_support_.dtype
    assert ours.n_support_ == pytest.approx(svc.n_support_, abs=2)
    assert np.isin(svc.support_, ours.support_).mean() > 0.9


def test_searches_over_pairs_and_weights_are_those_of_gridsearchcv():
    """class_weight is fixed on all rows, so the parts get explicit weights to compare with."""
    X, y = data(48)
    grid = {"multi_class": ["ovr", "ovo"], "lam": [0.02, 0.5]}
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    base = machine({"loss": "smoothed_hinge"})
    for scoring in ("accuracy",):
        ours = KernelSearchCV(base, grid, cv=cv, scoring=scoring).fit(X, y)
        theirs = GridSearchCV(base, grid, cv=cv, scoring=scoring).fit(X, y)
        assert ours.cv_results_["mean_test_score"] == pytest.approx(
            theirs.cv_results_["mean_test_score"]
        )
        assert ours.best_params_ == theirs.best_params_
        assert ours.cv_results_["exact"].all()
    weights = {"class_weight": [None, "balanced", {"ash": 3.0, "oak": 0.5}]}
    ours = KernelSearchCV(base, grid | weights, cv=cv).fit(X, y)
    for i, params in enumerate(ours.cv_results_["params"]):
        held = ours.heldout(i)
        plain = base.set_params(**params | {"class_weight": None})
        s = compute_sample_weight(params["class_weight"], y)
        alone = heldout_predict(plain, X, y, cv=cv, sample_weight=s, method="refit")
        assert held.values == pytest.approx(alone.values, abs=1e-7)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@each_loss
def test_class_weights_are_sample_weights(parameters, multi_class):
    X, y = data(70)
    y = np.where(np.arange(70) % 5 == 0, "ash", y)
    s = np.random.default_rng(0).uniform(0.5, 2.0, 70)
    for given in ("balanced", {"ash": 2.0, "birch": 1.0, "cedar": 0.25, "oak": 4.0}):
        ours = machine(parameters, multi_class=multi_class, class_weight=given, gamma="scale")
        plain = machine(parameters, multi_class=multi_class, gamma="scale")
        for weight in (None, s):
            names = ours.fit(X, y).classes_
            found = compute_class_weight(given, classes=names, y=y, sample_weight=weight)
            by_class = found[np.searchsorted(names, y)]
            explicit = by_class if weight is None else weight * by_class
            a = ours.fit(X, y, weight).decision_function(X)
            assert a == pytest.approx(plain.fit(X, y, explicit).decision_function(X), abs=1e-9)
        held = heldout_predict(ours, X, y, sample_weight=s)
        other = heldout_predict(plain, X, y, sample_weight=s * by_class, method="refit")
        assert held.values == pytest.approx(other.values, abs=1e-7)
    assert ours.class_weight_ == pytest.approx([given[name] for name in ours.classes_])


def test_rows_of_weight_zero_do_not_count_for_balance():
    X, y = data(70)
    s = (np.arange(70) < 50).astype(float)
    ours = machine({"loss": "log"}, class_weight="balanced").fit(X, y, s)
    fewer = machine({"loss": "log"}, class_weight="balanced").fit(X[:50], y[:50])
    assert ours.class_weight_ == pytest.approx(fewer.class_weight_)
    assert ours.decision_function(X) == pytest.approx(fewer.decision_function(X), abs=1e-8)


def test_probabilities_of_pairs_are_coupled():
    """The minimiser over the simplex, found by a solver that knows nothing of the system."""
    X, y = data()
    model = KernelClassifier("log", multi_class="ovo", gamma=0.5, lam=1e-2).fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    K = len(model.classes_)
    first, second = np.triu_indices(K, 1)
    pairs = expit(model.kernel_(X, model.X_fit_) @ model.dual_coef_ + model.intercept_)
    for row in range(3):

        def apart(p, r=pairs[row]):
            return np.square((1.0 - r) * p[second] - r * p[first]).sum()

        whole = {"type": "eq", "fun": lambda p: p.sum() - 1.0}
        found = minimize(
            apart, np.full(K, 1 / K), bounds=[(0, 1)] * K, constraints=whole, tol=1e-14
        )
        np.testing.assert_allclose(P[row], found.x, atol=1e-5)
    held = heldout_predict(model, X, y)
    assert held.proba.shape == (len(y), K)
    assert (model.classes_[held.proba.argmax(axis=1)] == held.labels).mean() > 0.9


def test_two_classes_are_one_pair():
    X, y = sample("classification")
    one, rest = (machine({"loss": "log"}, multi_class=kind).fit(X, y) for kind in ("ovo", "ovr"))
    assert one.decision_function(X) == pytest.approx(rest.decision_function(X), abs=1e-12)
    assert one.decision_function(X).shape == (30,)


def test_influence_and_criteria_of_pairs():
    X, y = data(40)
    model = machine({"loss": "log"}, multi_class="ovo", scaling="mean", lam=0.05)
    assert influence(model, X, y, at=X[:3]).shape == (40, 3, 6)
    search = KernelSearchCV(model, {"lam": [0.01, 0.1]}, criterion="loo").fit(X, y)
    assert np.isfinite(search.cv_results_["criterion"]).all()


def test_the_gradient_of_pairs_is_a_finite_difference():
    X, y = data(40)
    model = machine({"loss": "log"}, multi_class="ovo", scaling="mean", lam=0.05)
    problem = model._prepare(X, y, None)
    folds = Folds.draw(4, X)
    slope = cv_gradient(problem, 0.05, folds).lam
    high, low = (cv_gradient(problem, 0.05 * np.exp(h), folds).value for h in (1e-4, -1e-4))
    assert slope == pytest.approx((high - low) / 2e-4, rel=1e-4)


def test_refusals():
    X, y = data()
    with pytest.raises(ValueError, match="multi_class='ovx' is not known; did you mean 'ov"):
        KernelClassifier(multi_class="ovx").fit(X, y)
    with pytest.raises(ValueError, match="class_weight='balance' is not known; did you mean"):
        KernelClassifier(class_weight="balance").fit(X, y)
    with pytest.raises(ValueError, match="class_weight must have positive finite values"):
        KernelClassifier(class_weight={"ash": 0.0}).fit(X, y)
    with pytest.raises(ValueError, match="are not in class_weight"):
        KernelClassifier(class_weight={"elm": 1.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"criterion 'span' fits models with loss"):
        KernelSearchCV(
            KernelClassifier("smoothed_hinge", multi_class="ovo"), {"lam": [0.1]}, criterion="span"
        ).fit(X, y)
