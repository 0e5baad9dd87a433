"""Weights at many c from those at a few, and the exact k-fold that is built on them."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import WEIGHTS, gaussian, make_problem, predict, splits
from hypothesis import given
from hypothesis import strategies as st
from registries import SCALINGS
from sklearn.model_selection import KFold

from onefit.folds import Folds
from onefit.heldout import Eigen, Refit, eigen, shares
from onefit.losses import Squared

N = 24
SPLITS = splits(N)


def worst(groups, values, ridges):
    """The largest relative error of a weight; groups must cover all eigenvalues once."""
    weights = 1.0 / (values[:, None] + ridges)
    found = np.full_like(weights, np.nan)
    for share in groups:
        assert np.isnan(found[share.group]).all()
        found[share.group] = weights[share.group][:, share.chosen] @ share.combine
    return float(np.abs(found / weights - 1.0).max())


@given(
    logs=st.lists(st.floats(-18, 4), min_size=1, max_size=60),
    zeros=st.integers(0, 20),
    lams=st.lists(st.floats(-14, 4), min_size=1, max_size=40),
)
def test_every_weight_is_met(logs, zeros, lams):
    values = np.sort(np.append(np.zeros(zeros), 10.0 ** np.array(logs)))
    ridges = 10.0 ** np.array(lams)
    assert worst(shares.cut(values, ridges), values, ridges) < 1e-10


def test_weights_of_single_precision_eigenvalues_are_met_as_well():
    values = np.geomspace(1e-6, 10.0, 500).astype(np.float32)
    ridges = np.logspace(-4, 2, 20)
    assert worst(shares.cut(values, ridges), values.astype(np.float64), ridges) < 1e-10


def test_shares_are_taken_where_they_save_work():
    ridges = np.logspace(-6, 2, 20)
    values = np.geomspace(1e-9, 10.0, 2000)
    groups = shares.shares(values, ridges)
    assert worst(groups, values, ridges) < 1e-10
    sums = sum(share.chosen.size * (share.group.stop - share.group.start) for share in groups)
    assert sums < 0.7 * ridges.size * values.size
    assert shares.shares(values, ridges[:2]) is None
    assert shares.shares(values[::100], ridges) is None


def test_eigenvalues_that_vanish_need_one_sum():
    (share,) = shares.cut(np.zeros(30), np.logspace(-6, 2, 20))
    assert share.chosen.size == 1


@pytest.fixture
def always(monkeypatch):
    """Shares for every path, however little they save; tells how often they were used."""
    used = []

    def cut(values, ridges):
        used.append(ridges.size)
        return shares.cut(values, ridges)

    monkeypatch.setattr(eigen, "shares", cut)
    monkeypatch.setattr(eigen, "ROOM", np.inf)
    return used


@pytest.mark.parametrize("split", ["kfold", "unequal", "repeated", "shuffle", "time", "stratified"])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_exact_folds_from_shares(always, split, weight, fit_intercept, scaling):
    for q, gamma in ((1, 0.05), (2, 5.0)):
        problem = make_problem(
            Squared(), "regression", N, weight=weight, q=q, fit_intercept=fit_intercept,
            scaling=scaling, kernel=lambda X, gamma=gamma: gaussian(X, gamma),
        )  # fmt: skip
        lams = np.logspace(-5, 2, 6) / problem.ridge(1.0)
        prepared = Eigen().prepare(problem, SPLITS[split], lams)
        for lam in lams:
            expected = predict(Refit(), problem, SPLITS[split], lam).values
            np.testing.assert_allclose(prepared.predict(lam).values, expected, rtol=1e-8, atol=1e-8)
    assert always


def test_a_lambda_that_was_not_announced(always):
    problem = make_problem(Squared(), "regression", N)
    prepared = Eigen().prepare(problem, SPLITS["kfold"], np.logspace(-4, 0, 8))
    expected = predict(Refit(), problem, SPLITS["kfold"], 0.0123).values
    np.testing.assert_allclose(prepared.predict(0.0123).values, expected, rtol=1e-8, atol=1e-9)


def test_large_folds_are_not_held_for_every_lambda(always, monkeypatch):
    problem = make_problem(Squared(), "regression", N)
    monkeypatch.setattr(eigen, "ROOM", 1.0)
    lams = np.logspace(-4, 0, 200)
    prepared = Eigen().prepare(problem, SPLITS["kfold"], lams)
    assert sum(always) == lams.size
    assert max(always) * 6**2 <= N**2
    expected = predict(Refit(), problem, SPLITS["kfold"], lams[150]).values
    np.testing.assert_allclose(prepared.predict(lams[150]).values, expected, rtol=1e-8, atol=1e-9)


def test_many_rows_against_refits():
    """As large as it takes for the shares to be used unasked."""
    n = 600
    problem = make_problem(
        Squared(), "regression", n, fit_intercept=False, scaling="total",
        kernel=lambda X: gaussian(X, 0.05),
    )  # fmt: skip
    folds = Folds.draw(KFold(10), np.zeros((n, 1)))
    lams = np.logspace(-5, 2, 20)
    prepared = Eigen().prepare(problem, folds, lams)
    assert len(prepared.residuals) == lams.size
    for lam in lams[::5]:
        expected = predict(Refit(), problem, folds, lam).values
        scale = float(np.abs(expected).max())
        np.testing.assert_allclose(
            prepared.predict(lam).values / scale, expected / scale, atol=1e-8
        )


@pytest.mark.parametrize("split", ["kfold", "unequal", "repeated"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_sum_a_lambda_where_nothing_is_shared(monkeypatch, split, fit_intercept):
    monkeypatch.setattr(eigen, "shares", lambda *_: None)
    problem = make_problem(
        Squared(), "regression", N, weight="random", q=2, fit_intercept=fit_intercept,
        kernel=lambda X: gaussian(X, 5.0),
    )  # fmt: skip
    lams = np.logspace(-4, 0, 5)
    prepared = Eigen().prepare(problem, SPLITS[split], lams)
    assert prepared.residuals
    for lam in lams:
        expected = predict(Refit(), problem, SPLITS[split], lam).values
        np.testing.assert_allclose(prepared.predict(lam).values, expected, rtol=1e-8, atol=1e-9)


def test_a_singular_block_leaves_the_lambdas_to_themselves(always, monkeypatch):
    problem = make_problem(Squared(), "regression", N)
    lams = np.logspace(-4, 0, 8)

    def singular(*args, **kwargs):
        raise eigen.linalg.LinAlgError

    with monkeypatch.context() as patched:
        patched.setattr(eigen.linalg, "solve_spd", singular)
        prepared = Eigen().prepare(problem, SPLITS["kfold"], lams)
    assert always
    assert not prepared.residuals
    expected = predict(Refit(), problem, SPLITS["kfold"], lams[2]).values
    np.testing.assert_allclose(prepared.predict(lams[2]).values, expected, rtol=1e-8, atol=1e-9)
