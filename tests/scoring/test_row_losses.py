"""Pooled metrics of all candidates, their standard errors and the optimism of the best."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as theirs

from onefit.scoring import ROW_METRICS, Truth, row_losses
from onefit.scoring.row_losses import RowLosses, jackknife_error, optimism_of_splits

random = np.random.default_rng(0)
N, C = 60, 4
Y = 100.0 + random.normal(size=(N, 2))
U = Y + random.normal(size=(C, N, 2))
LABELS = random.integers(3, size=(N, 1)).astype(float)
DECISIONS = random.normal(size=(C, N, 3))
WEIGHTS = random.uniform(0.5, 2.0, N)


def losses(metric, sign=1, y=Y, values=U, weights=WEIGHTS):
    truth = Truth(y, np.zeros(1, dtype=int), weights)
    parts = [((0, 2), values[[0, 2]]), ((1, 3), values[[1, 3]])]
    return RowLosses.of(metric, sign, truth, parts, C)


CASES = [
    theirs.mean_squared_error,
    theirs.root_mean_squared_error,
    theirs.mean_absolute_error,
    theirs.r2_score,
]
ACCURACY = ROW_METRICS[theirs.accuracy_score]


@pytest.mark.parametrize("reference", CASES)
def test_scores_are_those_of_all_rows(reference):
    found = losses(ROW_METRICS[reference], sign=-1).scores()[0]
    expected = [-reference(Y, u, sample_weight=WEIGHTS) for u in U]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("reference", [theirs.accuracy_score, theirs.balanced_accuracy_score])
def test_accuracies_are_those_of_all_rows(reference):
    found = losses(ROW_METRICS[reference], y=LABELS, values=DECISIONS).scores()[0]
    labels = DECISIONS.argmax(axis=2)
    expected = [reference(LABELS[:, 0], one, sample_weight=WEIGHTS) for one in labels]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_optimism_of_a_few_rows_is_no_matter_of_their_variance():
    """With five rows one alone is often spared, whose targets have no variance."""
    few = slice(5)
    truth = Truth(Y[few], np.zeros(1, dtype=int), np.ones(5))
    found = RowLosses.of(ROW_METRICS[theirs.r2_score], 1, truth, [(range(C), U[:, few])], C)
    assert found.optimism(np.arange(5), np.random.default_rng(0)) < 10.0


@pytest.mark.parametrize("reference", CASES[1::2])
@pytest.mark.parametrize("blocks", [np.arange(N), np.arange(N) % 7], ids=["rows", "blocks"])
def test_standard_errors_are_the_jackknifes(reference, blocks):
    found = losses(ROW_METRICS[reference]).errors(blocks)
    for u, error in zip(U, found, strict=True):
        left = [
            reference(Y[kept], u[kept], sample_weight=WEIGHTS[kept])
            for kept in (blocks != b for b in range(blocks.max() + 1))
        ]
        B = len(left)
        assert error == pytest.approx(np.sqrt((B - 1) * np.var(left)), rel=1e-4)


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = random.normal(size=50)
    left = (values.sum() - values) / 49
    assert jackknife_error(left) == pytest.approx(values.std(ddof=1) / np.sqrt(50))
    assert np.isnan(jackknife_error(left[:1]))


def coins(candidates: int, draw) -> tuple[np.ndarray, np.ndarray]:
    y = draw.integers(2, size=(100, 1)).astype(float)
    return y, draw.normal(size=(candidates, 100, 1))


def test_the_optimism_of_the_best_of_many_coins():
    found, real = [], []
    for seed in range(30):
        draw = np.random.default_rng(seed)
        y, values = coins(40, draw)
        truth = Truth(y, np.zeros(1, dtype=int), np.ones(100))
        one = RowLosses.of(ACCURACY, 1, truth, [(range(40), values)], 40)
        found.append(one.optimism(np.arange(100), draw))
        real.append(one.scores()[0].max() - 0.5)  # a coin is right in half of the cases
    assert np.mean(found) == pytest.approx(np.mean(real), rel=0.15)


def test_draws_of_many_rows_are_those_of_few_on_average():
    few = row_losses._draws(500, 400, np.random.default_rng(0))
    many = row_losses._draws(row_losses.MIN_POISSON_ROWS + 1, 4, np.random.default_rng(0))
    assert many.shape == (4, row_losses.MIN_POISSON_ROWS + 1)
    for counts in (few, many):
        assert abs(counts.mean() - 1.0) < 0.01
        assert abs(counts.var() - 1.0) < 0.02
        assert abs((counts == 0).mean() - np.exp(-1.0)) < 0.005


def test_no_choice_no_optimism():
    y, values = coins(1, random)
    truth = Truth(y, np.zeros(1, dtype=int), np.ones(100))
    one = RowLosses.of(ACCURACY, 1, truth, [([0], values)], 1)
    assert one.optimism(np.arange(100), random) == 0.0
    assert optimism_of_splits(np.ones((1, 10)), random) == 0.0
    both = np.array([[0.9] * 10, [0.1] * 10])  # no draw would take the other
    assert optimism_of_splits(both, random) == pytest.approx(0.0, abs=1e-12)


def test_a_row_tested_twice_is_drawn_as_a_whole():
    """Losses that are noise of the rows: what two splits say of a row must not be drawn apart."""
    rows = np.tile(np.arange(50), 2)
    noise = np.random.default_rng(1).normal(size=(30, 50, 1))
    twice = np.concatenate([noise, noise], axis=1)
    results = []
    for values, names in ((noise, np.arange(50)), (twice, rows)):
        truth = Truth(np.zeros((names.size, 1)), np.zeros(1, dtype=int), np.ones(names.size))
        one = RowLosses.of(
            ROW_METRICS[theirs.mean_squared_error], -1, truth, [(range(30), values)], 30
        )
        results.append(one.optimism(names, np.random.default_rng(0)))
    assert results[1] == pytest.approx(results[0], rel=1e-6)


def test_the_optimism_of_splits_is_near_that_of_rows():
    found = []
    for seed in range(30):
        draw = np.random.default_rng(seed)
        y, values = coins(40, draw)
        right = ((values > 0) == y)[..., 0].astype(float)
        found.append(optimism_of_splits(right.reshape(40, 10, 10).mean(axis=2), draw))
    assert 0.08 < np.mean(found) < 0.15
