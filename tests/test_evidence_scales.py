"""Scales by the evidence, against the density of a Gaussian process."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit.evidence_scales import PRIOR, EvidenceScales, negative_evidence


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
    prior = [PRIOR / 2 * np.sum((p[:-1] - p[:-1].mean()) ** 2) for p in points]
    wanted = [density(p, X, Y[:, 0]) + density(p, X, Y[:, 1]) for p in points]
    assert found[1] - found[0] == pytest.approx(np.diff(wanted)[0] + np.diff(prior)[0])
    for p in points:
        slope = negative_evidence(p, X, Y)[1]
        error = check_grad(
            lambda q: negative_evidence(q, X, Y)[0], lambda q: negative_evidence(q, X, Y)[1], p
        )
        assert error < 1e-4 * np.abs(slope).max()


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
