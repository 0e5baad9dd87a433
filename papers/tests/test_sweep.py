"""The grid of kernels and lambdas against loops of refits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from onefit.criteria import CrossValidation, LeaveOneOut
from onefit.heldout import Eigen, Exact, Influence
from onefit.kernels.stationary import Gaussian
from onefit.losses import SmoothedHinge, Squared
from onefit_papers.sweep import (
    Family,
    Judged,
    Sweep,
    Unseen,
    draw_folds,
    error_rate,
    misses,
    seed_of,
)

GAMMAS, LAMS = (0.1, 1.0, 10.0), (1e-3, 1e-1)


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(40)


@pytest.fixture
def family(sample):
    return Family(*sample, [Gaussian(g) for g in GAMMAS], LAMS, Squared(), False)


def _refit(X, y, gamma, lam, train, test):
    machine = KernelRidge(alpha=lam * len(train), kernel="rbf", gamma=gamma)
    return machine.fit(X[train], y[train]).predict(X[test])


def test_criteria_on_the_grid(sample, family):
    X, y = sample
    folds = draw_folds(len(y), 4, np.random.default_rng(1))
    found = family.sweep({"cv": CrossValidation(loss="squared", guard=False)}, Eigen(), folds)["cv"]
    expected = [
        [
            np.mean([np.mean((y[b] - _refit(X, y, g, lam, a, b)) ** 2) for a, b in folds])
            for lam in LAMS
        ]
        for g in GAMMAS
    ]
    np.testing.assert_allclose(found.values, expected, rtol=1e-8)
    assert found.seconds > 0
    assert found.values[found.winner] == np.min(expected) or np.isclose(
        found.values[found.winner], np.min(expected)
    )


@pytest.mark.parametrize(
    ("loss", "method"),
    [(Squared(), Eigen()), (Squared(), Influence(order=3)), (SmoothedHinge(0.01), Exact())],
)
def test_partitions_together_are_partitions_by_themselves(sample, loss, method):
    X, y = sample
    kernels = [Gaussian(g) for g in GAMMAS]
    family = Family(X, np.where(y > 0, 1.0, -1.0), kernels, LAMS, loss)
    rng = np.random.default_rng(1)
    folds = [draw_folds(len(y), k, rng) for k in (3, 5, 8)]
    criterion = CrossValidation(loss="squared", guard=False)
    together = family.sweep_together(criterion, method, folds)
    for part, found in zip(folds, together, strict=True):
        alone = family.sweep({"": criterion}, method, part)[""]
        np.testing.assert_allclose(found.values, alone.values, rtol=1e-7)
        assert np.isnan(found.seconds)


def test_a_winner_is_fitted_once(sample, family):
    X, y = sample
    calls = []

    def predict(winner, rows):
        calls.append(winner)
        return family.predict(winner, rows)

    tested = Judged(Unseen(X[:5], y[:5], False), predict)
    errors = [tested.error(winner) for winner in ((0, 0), (2, 1), (0, 0))]
    assert calls == [(0, 0), (2, 1)]
    assert errors[0] == errors[2] != errors[1]


def test_criteria_without_folds(sample, family):
    X, y = sample
    everyone = np.arange(len(y))
    found = family.sweep({"loo": LeaveOneOut(loss="absolute", guard=False)})["loo"].values
    gaps = [abs(y[i] - _refit(X, y, 1.0, 1e-3, np.delete(everyone, i), [i])[0]) for i in everyone]
    assert found[1, 0] == pytest.approx(np.mean(gaps))


def test_the_winner_is_tested(sample, family):
    X, y = sample
    new = np.random.default_rng(5).standard_normal((7, 2))
    found = family.predict((2, 1), new)
    np.testing.assert_allclose(
        found,
        rbf_kernel(new, X, gamma=10.0)
        @ np.linalg.solve(rbf_kernel(X, gamma=10.0) + 4.0 * np.eye(40), y),
    )
    assert Unseen(new, found + 1.0, False).error(found) == pytest.approx(1.0)


def test_the_first_smallest_value_wins():
    assert Sweep(np.array([[3.0, 1.0], [1.0, np.inf]]), 0.0).winner == (0, 1)


def test_a_prediction_of_zero_is_a_miss():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    np.testing.assert_array_equal(misses(y, np.array([0.5, 0.0, 0.0, -2.0])), [0, 1, 1, 0])
    assert error_rate(y, np.array([0.5, -1.0, -1.0, -2.0])) == 25.0


@pytest.mark.parametrize("k", [2, 3, 10])
def test_folds_are_a_partition_of_nearly_equal_parts(k):
    folds = draw_folds(23, k, np.random.default_rng(0))
    assert folds.is_partition
    sizes = [len(t) for t in folds.test]
    assert max(sizes) - min(sizes) <= 1
    assert not np.array_equal(folds.rows, np.arange(23))


def test_seeds_depend_on_every_part():
    seeds = {
        seed_of(1, "heart", 0),
        seed_of(2, "heart", 0),
        seed_of(1, "sonar", 0),
        seed_of(1, "heart", 1),
    }
    assert len(seeds) == 4
    assert seed_of(1, "heart", 0) == seed_of(1, "heart", 0)
