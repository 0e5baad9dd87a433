"""Every metric of the registry: scikit-learn's numbers, in every use that is made of it."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.dummy import DummyClassifier, DummyRegressor

from onefit import KernelClassifier
from onefit.features.scores import Scores, finished
from onefit.rows.accumulate import Chunk
from onefit.rows.survey import Survey
from onefit.scoring import ROW_METRICS, Metric, Truth
from onefit.scoring.row_losses import RowLosses

METRICS = list(ROW_METRICS.values())
every_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda one: one.name)
sizes_of_splits = st.lists(st.integers(2, 7), min_size=1, max_size=5)


def draw(metric, seed, sizes, q, weighted):
    """Truth and four sets of held-out values; a regression's first split is constant."""
    rng = np.random.default_rng(seed)
    N, starts = sum(sizes), np.cumsum([0, *sizes])[:-1]
    weights = rng.uniform(0.1, 2.0, N) if weighted else np.ones(N)
    if metric.task == "classification":
        return Truth(rng.integers(0, max(q, 2), (N, 1)), starts, weights), rng.normal(
            size=(4, N, q)
        )
    y, u = rng.normal(size=(N, q)), rng.normal(size=(4, N, q))
    y[: sizes[0]] = 0.1
    u[0, : sizes[0]] = 0.1  # which is met once
    return Truth(y, starts, weights), u


def theirs(metric, y, u, weights):
    """What scikit-learn gives for (N, q) values."""
    if metric.task == "classification":
        u = u[:, 0] > 0 if u.shape[1] == 1 else u.argmax(axis=1)
    elif metric.name == "r2" and (y == y[0]).all():  # where its own mean of y is rounded
        return float(np.mean([(y[:, j] == u[:, j]).all() for j in range(y.shape[1])]))
    with warnings.catch_warnings(action="ignore"):  # of classes that are predicted alone
        return metric.sklearn(y, u, sample_weight=weights)


def one_split(truth, rows=slice(None), weights=None):
    weights = truth.weights if weights is None else weights
    return Truth(truth.y[rows], np.zeros(1, dtype=int), weights[rows])


@every_metric
@given(st.integers(0, 10**6), sizes_of_splits, st.sampled_from([1, 3]), st.booleans())
def test_by_split_and_pooled(metric, seed, sizes, q, weighted):
    truth, u = draw(metric, seed, sizes, q, weighted)
    found, pooled = metric.values(truth, u), metric.values(one_split(truth), u)
    columns = q if metric.task == "regression" else 1
    assert found.shape == (4, len(sizes), columns)
    parts = [slice(a, a + m) for a, m in zip(truth.starts, sizes, strict=True)]
    for i in range(4):
        for score, rows in [*zip(found[i], parts, strict=True), (pooled[i, 0], slice(None))]:
            expected = theirs(metric, truth.y[rows], u[i, rows], truth.weights[rows])
            assert score.mean() == pytest.approx(expected, rel=1e-11, abs=1e-13)


@every_metric
@given(st.integers(0, 10**6), sizes_of_splits, st.sampled_from([1, 3]), st.booleans())
def test_intervals_enclose(metric, seed, sizes, q, weighted):
    truth, u = draw(metric, seed, sizes, q, weighted)
    rng = np.random.default_rng(seed)
    e = rng.exponential(0.3, size=(4, len(truth.y), 1)) * rng.integers(0, 2, size=(4, 1, 1))
    low, high = metric.interval(truth, u, e)
    for shift in (-1.0, 0.0, 1.0, *rng.uniform(-1.0, 1.0, size=(8, *u.shape))):
        scores = metric.values(truth, u + shift * e)
        assert (low <= scores + 1e-12).all()
        assert (scores <= high + 1e-12).all()
    certain = (e == 0.0).all(axis=(1, 2))
    np.testing.assert_array_equal(low[certain], high[certain])


@every_metric
def test_no_bound_is_the_whole_range(metric):
    truth, u = draw(metric, 0, [5, 6], 1, True)
    u[:, :5] += 1.0  # the constant of the first split is not met
    truth.weights[1] = 0.0
    low, high = metric.interval(truth, u, np.full((4, 11, 1), np.inf))
    least, largest = metric.range
    np.testing.assert_array_equal(high, np.full_like(high, largest))
    constant = metric.name == "r2"
    np.testing.assert_array_equal(low[:, constant:], np.full_like(low[:, constant:], least))


@every_metric
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("blocks", [None, 7], ids=["rows", "blocks"])
def test_the_jackknife_leaves_rows_out(metric, q, blocks):
    truth, u = draw(metric, 1, [2, 20, 18], q, True)
    N = len(truth.y)
    block = np.random.default_rng(0).permutation(N if blocks is None else np.arange(N) % blocks)
    found = RowLosses.of(metric, 1, truth, [((0, 2), u[[0, 2]]), ((1, 3), u[[1, 3]])], 4)
    left = found.without(block)
    assert left.shape == (block.max() + 1, 4)
    for b, scores in enumerate(left):
        kept = block != b
        for score, one in zip(scores, u, strict=True):
            expected = theirs(metric, truth.y[kept], one[kept], truth.weights[kept])
            assert score == pytest.approx(expected, rel=1e-6)


@every_metric
def test_rows_drawn_twice_count_twice(metric):
    truth, u = draw(metric, 2, [30], 1 if metric.task == "regression" else 3, True)
    counts = np.random.default_rng(0).integers(0, 3, size=(5, 30))
    found = RowLosses.of(metric, 1, truth, [(range(4), u)], 4).scores(counts * truth.weights)
    if metric.name == "r2":  # by the variance of all rows, since drawn ones may have none
        return
    for scores, times in zip(found, counts, strict=True):
        for score, one in zip(scores, u, strict=True):
            expected = theirs(metric, truth.y, one, times * truth.weights)
            if metric.members is not None:
                rows = np.repeat(np.arange(30), times)  # else absent classes count
                expected = theirs(metric, truth.y[rows], one[rows], truth.weights[rows])
            assert score == pytest.approx(expected, rel=1e-5)


@every_metric
def test_what_is_said_of_the_variance_is_so(metric):
    truth = Truth(np.ones((1, 1), dtype=int), np.zeros(1, dtype=int), np.ones(1))
    undefined = np.isnan(metric.values(truth, np.ones((1, 1, 1)))).any()
    assert undefined == metric.needs_variance


@every_metric
def test_as_a_scorer_and_in_another_process(metric):
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(40, 2)), rng.uniform(0.5, 2.0, 40)
    again = pickle.loads(pickle.dumps(metric))
    if metric.task == "regression":
        y, model = X @ rng.normal(size=(2, 2)), DummyRegressor()
        model.fit(X, y)
        expected = metric.sklearn(y, model.predict(X), sample_weight=weights)
    else:
        y, model = np.where(X[:, 0] > 0, "up", "down"), DummyClassifier()
        model.fit(X, y)
        model.decision_function = lambda X: X.sum(axis=1)
        labels = np.where(X.sum(axis=1) > 0, "up", "down")
        expected = metric.sklearn(y, labels, sample_weight=weights)
    sign = 1 if metric.greater_is_better else -1
    assert again(model, X, y, sample_weight=weights) == pytest.approx(sign * expected)


R2 = ROW_METRICS[metrics.r2_score]


def test_r2_of_a_single_row_is_undefined():
    truth = Truth(np.ones((3, 1)), np.array([0, 2]), np.ones(3))
    np.testing.assert_array_equal(R2.values(truth, np.ones((1, 3, 1)))[0, :, 0], [1.0, np.nan])


def test_rows_without_weight_have_no_say_in_what_is_constant():
    """Their mean is rounded, so that a variance of the others would not be zero."""
    y, weights = np.array([[0.1], [0.1], [0.1], [5.0]]), np.array([0.7, 0.3, 0.1, 0.0])
    truth = Truth(y, np.zeros(1, dtype=int), weights)
    u = np.stack([np.full((4, 1), 0.1), np.full((4, 1), 0.2)])
    np.testing.assert_array_equal(R2.values(truth, u)[:, 0, 0], [1.0, 0.0])


def test_constant_targets_without_a_block_of_most_rows():
    """They are far from the median of all, and their mean is rounded."""
    y = np.array([[0.1], [0.1], [0.1], [7.1], [7.2], [7.3], [7.4]])
    blocks, weights = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0.3, 0.2, 0.1, 1, 1, 1, 1])
    truth = Truth(y, np.zeros(1, dtype=int), weights)
    losses = RowLosses.of(R2, 1, truth, [(range(2), np.stack([y, y + 1.0]))], 2)
    np.testing.assert_array_equal(losses.without(blocks)[1], [1.0, 0.0])


def test_pooled_r2_of_constant_targets():
    """One target alone differs: without its row R^2 is that of a constant, not a huge number."""
    y = np.full((6, 1), 0.1)
    truth, u = one_split(Truth(y, None, np.ones(6))), np.stack([y, y + 1.0])
    np.testing.assert_array_equal(RowLosses.of(R2, 1, truth, [(range(2), u)], 2).scores(), [[1, 0]])
    y[3] = 1e10  # which also drowns the others in sums that it is subtracted from
    left = RowLosses.of(R2, 1, one_split(Truth(y, None, np.ones(6))), [(range(2), u)], 2)
    np.testing.assert_array_equal(left.without(np.arange(6))[3], [1.0, 0.0])
    y[4] = 0.3
    left = RowLosses.of(R2, 1, one_split(Truth(y, None, np.ones(6))), [(range(2), u)], 2)
    others = np.arange(6) != 3
    expected = [metrics.r2_score(y[others], one[others]) for one in u]
    np.testing.assert_allclose(left.without(np.arange(6))[3], expected, rtol=1e-5)


class Ones:
    """Features whose values are the coefficients."""

    size = 1

    def coefficients(self, W):
        return W

    def evaluate(self, X, W):
        return np.broadcast_to(W, (len(X), W.shape[1])).copy()


@every_metric
def test_streamed_rows_without_weight_and_without_bound(metric):
    """Nothing is known of the values of one machine; the rows without weight tell nothing."""
    q = 3 if metric.task == "classification" else 1
    Y = np.where(np.arange(q) == np.array([[0], [1], [0]]), 1.0, -1.0)
    row = np.arange(3)
    chunk = Chunk(np.zeros((3, 1)), Y, np.array([1.0, 2.0, 0.0]), np.zeros(3, dtype=int), row)
    W, b = np.ones((1, 1, 2, q)), np.tile([0.0, 0.5, 0.2][:q], (1, 2, 1))
    scores = Scores(Ones(), W, b, np.array([[np.inf, 0.0]]), (metric,))
    (sums,) = scores.update(scores.init(), chunk)
    survey = Survey(1, q).update(Survey(1, q).init(), chunk)
    by_fold, pooled = finished(metric, sums, survey)
    np.testing.assert_array_equal(by_fold[:, 0], pooled)
    np.testing.assert_array_equal(pooled[1:, 0], metric.range)
    np.testing.assert_array_equal(pooled[1:, 1], pooled[0, 1])


def test_a_metric_for_another_task_is_refused():
    with pytest.raises(ValueError, match="task must be"):
        Metric("mine", "ranking", lambda y, u: u)


def test_a_label_that_the_model_does_not_know_is_refused():
    """Its place among the classes is that of another class, which would count as met."""
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    model = KernelClassifier().fit(X, np.where(X[:, 0] > 0, "c", "a"))
    with pytest.raises(ValueError, match=r"y has the label 'b', but the classes .* \['a', 'c'\]"):
        ROW_METRICS[metrics.accuracy_score](model, X, np.where(X[:, 0] > 0, "b", "a"))
