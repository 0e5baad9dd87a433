"""Scales by the evidence, against the density of a Gaussian process."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize_scalar
from scipy.stats import multivariate_normal
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit.evidence_scales import EvidenceScales, negative_evidence


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(70, 4))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * random.normal(size=70)


def density(p, X, y):
    """Minus the logarithm, with the best variance of the process."""
    t, v = np.exp(p[:-1]), np.exp(p[-1])
    r = np.sqrt(3 * np.sum(t * (X[:, None] - X) ** 2, axis=2))
    C = (1 + r) * np.exp(-r) + v * np.eye(len(y))
    s = y @ np.linalg.solve(C, y) / len(y)
    return -multivariate_normal(cov=s * C).logpdf(y)


def test_value_and_gradient(data):
    X, y = data
    Y = np.column_stack([y, y**2])
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    points = np.array([[-1.0, -2.0, -0.5, -3.0, -2.0], [0.3, -1.0, -2.5, -0.2, -4.0]])
    found = [negative_evidence(p, X, Y)[0] for p in points]
    prior = [0.25 * np.sum((p[:-1] - p[:-1].mean()) ** 2) for p in points]
    wanted = [density(p, X, Y[:, 0]) + density(p, X, Y[:, 1]) for p in points]
    assert found[1] - found[0] == pytest.approx(np.diff(wanted)[0] + np.diff(prior)[0])
    for p in points:
        slope = negative_evidence(p, X, Y)[1]
        error = check_grad(
            lambda q: negative_evidence(q, X, Y)[0], lambda q: negative_evidence(q, X, Y)[1], p
        )
        assert error < 1e-4 * np.abs(slope).max()


def objective(p, X, y):
    """Minus the logarithm of density and prior."""
    return density(p, X, y) + 0.25 * np.sum((p[:-1] - p[:-1].mean()) ** 2)


@pytest.mark.parametrize("n", [70, 600])
def test_no_other_scales_have_a_larger_density(n):
    """Of many rows the scales are those of 500, drawn at random."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * random.normal(size=n)
    rows = np.sort(np.random.default_rng(0).permutation(n)[:500])
    own, targets = X[rows], (y - y.mean())[rows] / y.std()
    scales = EvidenceScales().fit(X, y).scales_
    logs = 2 * np.log(scales)
    noise = minimize_scalar(
        lambda v: objective(np.r_[logs, v], own, targets),
        bounds=(-14, 3), method="bounded", options={"xatol": 0.3},
    )  # fmt: skip
    for column in range(3):
        for step in (-0.7, 0.7):
            other = logs + step * (np.arange(3) == column)
            assert objective(np.r_[other, noise.x], own, targets) > noise.fun
    both = EvidenceScales().fit(X, np.column_stack([y, np.ones(n), -y])).scales_
    assert both[0] > 2 * both[2]


def test_columns_that_matter_have_the_larger_scales(data):
    X, y = data
    scales = EvidenceScales().fit(X, y).scales_
    assert scales[0] > scales[1] > 2 * scales[2:].max()
    labels = EvidenceScales().fit(X, np.where(y > 0, "a", "b")).scales_
    assert labels[0] > 2 * labels[2:].max()


def test_nothing_to_learn():
    assert (EvidenceScales().fit(np.ones((9, 2)), np.arange(9.0)).scales_ == 1.0).all()
    assert np.isfinite(EvidenceScales().fit(np.eye(9), np.ones(9)).scales_).all()


@parametrize_with_checks([EvidenceScales()])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_second_start_finds_few_columns_among_many():
    """With a common scale the target is pure noise, and the first descent stays there."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 32))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.05 * random.normal(size=300)
    scales = EvidenceScales().fit(X, y).scales_
    assert set(np.argsort(scales)[-2:]) == {0, 1}
    assert np.sort(scales)[-2] > 5.0 * np.sort(scales)[-3]


def test_the_origin_of_the_columns_changes_nothing():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1] + 0.3 * random.normal(size=90)
    near, far = EvidenceScales().fit(X, y), EvidenceScales().fit(X + 1e8, y)
    np.testing.assert_allclose(far.scales_, near.scales_, rtol=1e-4)
