"""The criteria as objects: what a search hands them, and what it gets back."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.criteria import (
    CRITERIA,
    BayesLoo,
    CrossValidation,
    CvHat,
    InfluenceLoo,
    KernelStability,
    LeaveOneOut,
    bayes_loo,
    cross_validation,
    cv_hat,
    gacv,
    gcv,
    influence_loo,
    k_ks,
    loo,
    radius_margin,
    span,
    sv_count,
)
from onefit.criteria.evidence import Evidence
from onefit.folds import Folds
from onefit.heldout import METHODS
from onefit.kernels import Gaussian, Linear
from onefit.losses import Huber, SmoothedHinge, Squared, SquaredHinge
from onefit.search.criterion import CriterionLike

LAMS = (0.1, 0.03, 0.01)
FUNCTIONS = {
    "loo": loo,
    "cv_hat": cv_hat,
    "gcv": gcv,
    "influence_loo": influence_loo,
    "bayes_loo": lambda problem, lam: bayes_loo(problem, lam, 0.5),
    "gacv": gacv,
    "span": span,
    "sv_count": sv_count,
    "radius_margin": radius_margin,
}


def evidence_of(problem, folds, kernel=None):
    held = METHODS["refit"]().prepare(problem, folds).predict(np.array(LAMS))
    return Evidence(problem, kernel or Gaussian(0.5), LAMS, held.each())


def loss_for(criterion):
    """The first of those that it fits, None being the squared loss."""
    hinges = {"smoothed_hinge": SmoothedHinge(0.3), "squared_hinge": SquaredHinge()}
    return hinges.get(criterion.losses[0]) if criterion.losses else None


@pytest.mark.parametrize("name", CRITERIA)
def test_registry(name, make_problem, folds):
    criterion = CRITERIA[name]
    if name == "cv":
        assert criterion is None
        return
    assert isinstance(criterion, CriterionLike)
    assert criterion.name == name
    assert pickle.loads(pickle.dumps(criterion)) == criterion
    problem = make_problem(loss_for(criterion))
    values, reasons = criterion.evaluate(evidence_of(problem, folds))
    assert reasons == ["", "", ""]
    expected = [
        k_ks(problem, lam, folds) if name == "kernel_stability" else FUNCTIONS[name](problem, lam)
        for lam in LAMS
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-7)


def test_options_reach_the_function(make_problem, folds):
    problem = make_problem(Huber(0.4))
    evidence = evidence_of(problem, folds)
    judged = [
        (KernelStability(eta=7.0, loss="absolute"), partial(k_ks, folds=folds, eta=7.0)),
        (InfluenceLoo(order=2, loss="absolute"), partial(influence_loo, order=2)),
        (LeaveOneOut(loss="absolute"), loo),
        (CrossValidation(loss="absolute"), partial(cross_validation, folds=folds)),
    ]
    for criterion, function in judged:
        values, _ = criterion.evaluate(evidence)
        expected = [function(problem, lam, loss="absolute") for lam in LAMS]
        np.testing.assert_allclose(values, expected, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in CRITERIA if name != "cv"])
def test_near_identity_is_infinite_with_its_reason(name, make_problem, folds):
    problem = make_problem(loss_for(CRITERIA[name]), gamma=1e6)
    values, reasons = CRITERIA[name].evaluate(evidence_of(problem, folds))
    assert np.isposinf(values).all()
    assert all("near the identity" in reason for reason in reasons)
    free = type(CRITERIA[name])(guard=False)
    values, reasons = free.evaluate(evidence_of(problem, folds))
    assert not any("identity" in reason for reason in reasons)


@pytest.mark.parametrize("name", [name for name, one in CRITERIA.items() if one and one.losses])
def test_a_loss_that_does_not_fit(name, make_problem, folds):
    problem = make_problem(Huber(0.4))
    with pytest.raises(ValueError, match=f"criterion '{name}' fits models with loss"):
        CRITERIA[name].check(problem)
    with pytest.raises(ValueError, match="use another criterion, such as 'loo'"):
        CRITERIA[name].evaluate(evidence_of(problem, folds))


def test_bad_options(make_problem, folds):
    with pytest.raises(ValueError, match="eta must be"):
        KernelStability(eta=-1.0)
    with pytest.raises(ValueError, match="prior on gamma, which Linear"):
        BayesLoo().evaluate(evidence_of(make_problem(), folds, Linear()))


def test_missing_heldout_values_are_infinite(make_problem, folds):
    evidence = evidence_of(make_problem(), folds)
    evidence.heldouts[1] = None
    values, reasons = KernelStability().evaluate(evidence)
    assert np.isfinite(values[[0, 2]]).all()
    assert np.isposinf(values[1])
    assert reasons[1]


def test_a_failure_at_one_lambda_has_its_reason(make_problem, folds):
    values, reasons = InfluenceLoo().evaluate(
        Evidence(make_problem(Huber(1e-3)), Gaussian(0.5), (1e4, 1e-4), [None, None])
    )
    assert np.isposinf(values[0])
    assert "no point has curvature" in reasons[0]
    assert np.isfinite(values[1])
    assert reasons[1] == ""


@pytest.mark.parametrize("criterion", [CvHat(), InfluenceLoo(), KernelStability(eta=2.0)])
def test_search_chooses_by_it(criterion):
    random = np.random.default_rng(3)
    X = random.uniform(-2, 2, size=(40, 1))
    y = np.sin(3 * X[:, 0]) + 0.2 * random.normal(size=40)
    grid = {"gamma": [0.1, 1.0, 10.0, 1e9], "lam": [1e-4, 1e-2, 1.0]}
    search = KernelSearchCV(KernelRegressor(), grid, cv=4, criterion=criterion).fit(X, y)
    found = search.cv_results_["criterion"]
    assert search.best_index_ == found.argmin()
    for i, params in enumerate(search.cv_results_["params"]):
        problem = KernelRegressor(**params)._prepare(X, y, None)
        if params["gamma"] == 1e9:
            assert np.isposinf(found[i])
            assert "near the identity" in search.cv_results_["reason"][i]
            continue
        folds = Folds.draw(4, X)
        expected = {
            "cv_hat": lambda p, lam: cv_hat(p, lam),
            "influence_loo": lambda p, lam: influence_loo(p, lam),
            "kernel_stability": lambda p, lam, folds=folds: k_ks(p, lam, folds, 2.0),
        }[criterion.name](problem, params["lam"])
        assert found[i] == pytest.approx(expected, rel=1e-6)


def test_search_over_classes(make_problem):
    random = np.random.default_rng(0)
    X = random.normal(size=(45, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    machine = KernelClassifier(loss=SmoothedHinge(0.3))
    search = KernelSearchCV(machine, {"lam": [1e-3, 1e-1]}, cv=3, criterion=CRITERIA["span"])
    found = search.fit(X, y).cv_results_["criterion"]
    problem = machine._prepare(X, y, None)
    assert problem.Y.shape[1] == 3
    np.testing.assert_allclose(found, [span(problem, 1e-3), span(problem, 1e-1)])
    assert isinstance(make_problem().loss, Squared)
