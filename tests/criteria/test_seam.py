"""The criteria as objects: what a search hands them, and what it gets back."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.criteria import (
    CRITERIA,
    BayesLoo,
    CrossValidation,
    CvHat,
    Gcv,
    InfluenceLoo,
    KernelStability,
    LeaveOneOut,
    Span,
)
from onefit.criteria.evidence import Evidence
from onefit.folds import Folds
from onefit.heldout import METHODS
from onefit.kernels import Gaussian, Linear
from onefit.losses import Huber, SmoothedHinge, Squared, SquaredHinge
from onefit.search.criterion import CriterionLike

LAMS = (0.1, 0.03, 0.01)


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
    expected = [criterion.at(problem, lam, folds, kernel=Gaussian(0.5)) for lam in LAMS]
    np.testing.assert_allclose(values, expected, rtol=1e-7)


@pytest.mark.parametrize("kind", [KernelStability, InfluenceLoo, LeaveOneOut, CrossValidation])
def test_the_loss_to_judge_by(kind, make_problem, folds):
    problem, lam = make_problem(Huber(0.4)), 0.01
    value = kind(loss="absolute").at(problem, lam, folds)
    assert value == kind(loss=lambda y, u: np.abs(y - u)).at(problem, lam, folds)
    assert abs(value / kind(loss="squared").at(problem, lam, folds) - 1) > 0.1


def test_options_reach_a_search(make_problem, folds):
    problem = make_problem()
    evidence = evidence_of(problem, folds)
    plain, error = (KernelStability(eta).evaluate(evidence)[0] for eta in (1.0, 0.0))
    np.testing.assert_allclose(
        KernelStability(eta=7.0).evaluate(evidence)[0] - error, 7 * (plain - error)
    )
    rough, exact = InfluenceLoo(order=1), InfluenceLoo(order=9)
    far, near = (
        abs(one.evaluate(evidence)[0] - LeaveOneOut(loss="absolute").evaluate(evidence)[0])
        for one in (rough, exact)
    )
    assert (near < far).all()


@pytest.mark.parametrize("name", [name for name in CRITERIA if name != "cv"])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_object_alone_and_in_a_search(name, weighted):
    criterion = CRITERIA[name]
    random = np.random.default_rng(1)
    X = random.normal(size=(40, 2))
    s = random.integers(0, 3, size=40).astype(float) if weighted else None
    loss = loss_for(criterion)
    kind, y = (KernelRegressor, X[:, 0]) if loss is None else (KernelClassifier, X[:, 0] > 0.3)
    model = kind(loss=loss or "squared", gamma=0.7, lam=0.02)
    found = criterion(model, X, y, s, cv=4)
    search = KernelSearchCV(model, {"lam": [0.02]}, cv=4, criterion=criterion)
    search.fit(X, y, sample_weight=s)
    assert found == pytest.approx(search.cv_results_["criterion"][0], rel=1e-9)


def test_alone_it_refuses_what_a_search_refuses():
    X = np.random.default_rng(1).normal(size=(20, 2))
    with pytest.warns(UserWarning, match="'gcv' is infinite: .* near the identity"):
        assert Gcv()(KernelRegressor(gamma=1e9), X, X[:, 0]) == np.inf
    with pytest.raises(ValueError, match="criterion 'span' fits models with loss"):
        Span()(KernelRegressor(), X, X[:, 0])
    with pytest.raises(ValueError, match="'span' needs the whole kernel matrix"):
        Span()(KernelClassifier("squared_hinge", approximation="nystrom"), X, X[:, 0] > 0)
    with pytest.raises(ValueError, match=r"'cv' needs folds; give folds=Folds.draw\(5, X\)"):
        CrossValidation().at(KernelRegressor()._prepare(X, X[:, 0], None), 0.1)


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
        expected = criterion.at(problem, params["lam"], folds)
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
    np.testing.assert_allclose(found, [Span().at(problem, lam) for lam in (1e-3, 1e-1)])
    assert isinstance(make_problem().loss, Squared)
