"""Scales by the evidence, against the density of a Gaussian process."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.stats import multivariate_normal
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit.evidence_scales import EvidenceScales, negative_evidence, neighbours


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(70, 4))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * random.normal(size=70)


def density(p, blocks, kernel):
    """Minus the logarithm, with the best variance of the process, of independent blocks."""
    t, v = np.exp(p[:-1]), np.exp(p[-1])
    X, y = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    block = np.repeat(np.arange(len(blocks)), [len(rows) for rows, _ in blocks])
    squares = np.sum(t * (X[:, None] - X) ** 2, axis=2)
    r = np.sqrt(3 * squares) if kernel == "matern32" else np.sqrt(squares)
    k = (1 + r) * np.exp(-r) if kernel == "matern32" else np.exp(-r)
    C = np.where(block[:, None] == block, k, 0.0) + v * np.eye(len(y))
    s = y @ np.linalg.solve(C, y) / len(y)
    return -multivariate_normal(cov=s * C).logpdf(y)


@pytest.mark.parametrize("kernel", ["matern12", "matern32"])
@pytest.mark.parametrize("cuts", [[], [30, 50]])
def test_value_and_gradient(data, kernel, cuts):
    X, y = data
    Y = np.column_stack([y, y**2])
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    blocks = list(zip(np.split(X, cuts), np.split(Y, cuts), strict=True))
    one = [[(rows, targets[:, c]) for rows, targets in blocks] for c in (0, 1)]
    points = np.array([[-1.0, -2.0, -0.5, -3.0, -2.0], [0.3, -1.0, -2.5, -0.2, -4.0]])
    found = [negative_evidence(p, blocks, kernel)[0] for p in points]
    prior = [0.25 * np.sum((p[:-1] - p[:-1].mean()) ** 2) for p in points]
    wanted = [density(p, one[0], kernel) + density(p, one[1], kernel) for p in points]
    assert found[1] - found[0] == pytest.approx(np.diff(wanted)[0] + np.diff(prior)[0])
    for p in points:
        slope = negative_evidence(p, blocks, kernel)[1]
        error = check_grad(
            lambda q: negative_evidence(q, blocks, kernel)[0],
            lambda q: negative_evidence(q, blocks, kernel)[1],
            p,
        )
        assert error < 1e-4 * np.abs(slope).max()


def objective(p, blocks):
    """Minus the logarithm of density and prior."""
    return density(p, blocks, "matern32") + 0.25 * np.sum((p[:-1] - p[:-1].mean()) ** 2)


def test_no_other_scales_have_a_larger_density():
    random = np.random.default_rng(0)
    X = random.normal(size=(70, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * random.normal(size=70)
    blocks = [(X, (y - y.mean()) / y.std())]
    scales = EvidenceScales().fit(X, y).scales_

    def largest(scales):
        """Over the common factor of the scales, which is normalised away, and the noise."""
        logs = 2 * np.log(scales)
        return minimize(
            lambda q: objective(np.r_[logs + q[0], q[1]], blocks), [2.0, -5.0], method="Nelder-Mead"
        ).fun

    best = largest(scales)
    for column in range(3):
        for factor in (0.7, 1.4):
            assert largest(scales * np.where(np.arange(3) == column, factor, 1.0)) > best
    both = EvidenceScales().fit(X, np.column_stack([y, np.ones(70), -y])).scales_
    assert both[0] > 2 * both[2]


def test_transformed_rows_have_unit_distance(data):
    X, y = data
    Z = EvidenceScales("matern12").fit_transform(X, y)
    assert np.mean((Z[:, None] - Z) ** 2) * 4 == pytest.approx(1.0)


def test_boxes_hold_every_row_once_and_neighbours_together():
    Z = np.random.default_rng(0).normal(size=(1000, 2)) * [100.0, 1.0]
    boxes = neighbours(Z, 130)
    assert (np.sort(np.concatenate(boxes)) == np.arange(1000)).all()
    assert max(map(len, boxes)) <= 130
    ends = sorted((Z[box, 0].min(), Z[box, 0].max()) for box in boxes)
    assert all(before[1] <= after[0] for before, after in pairwise(ends))


def test_neighbours_show_what_a_sample_does_not():
    """A staircase, whose steps are narrower than the distances of 500 rows."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(2500, 3))
    y = np.sin(4.0 * X[:, 0]) + np.floor(20.0 * X[:, 1]) / 20 + 0.02 * random.normal(size=2500)
    ratios = []
    for max_rows in (500, 2500):
        scales = EvidenceScales(max_rows=max_rows).fit(X, y).scales_
        ratios.append(scales[1] / scales[0])
    assert ratios[1] > 1.5 * ratios[0]


def test_samples_are_the_same_again_and_kernels_are_checked(data):
    X, y = np.tile(data[0], (9, 1)) + np.repeat(np.arange(9), 70)[:, None], np.tile(data[1], 9)
    first, again = (EvidenceScales(max_rows=600).fit(X, y) for _ in range(2))
    assert (first.scales_ == again.scales_).all()
    with pytest.raises(ValueError, match="kernel"):
        EvidenceScales("rbf").fit(X, y)


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
    near, far = EvidenceScales().fit(X, y), EvidenceScales().fit(X + np.array([1e8, -1e7, 0.0]), y)
    np.testing.assert_allclose(far.scales_, near.scales_, rtol=1e-4)
