"""Whatever the chunks and their order: the same landmarks, the same sums."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from onefit.features.fourier import fourier_map
from onefit.features.hashed import Lengths
from onefit.features.lines import FlatIntervals
from onefit.features.maps import nystrom_map
from onefit.features.moments import Centre, MomentSums
from onefit.features.passes import Check, Form, Products, Second, Slopes
from onefit.features.ridge import Ridge
from onefit.features.values import Values
from onefit.kernels import Gaussian
from onefit.losses import Log, SmoothedHinge
from onefit.rows.accumulate import Chunk
from onefit.rows.sample import RowSampler, row_hash

N, P, PARTS = 200, 3, 4


def whole(seed=0):
    random = np.random.default_rng(seed)
    X, fold = random.normal(size=(N, P)), random.integers(0, PARTS, N)
    y = np.sign(X[:, 0] + 0.3 * random.normal(size=N))
    s = random.uniform(0.0, 2.0, N)
    s[::9] = 0.0
    return Chunk(X, y[:, None], s, fold, np.arange(N))


def take(chunk, rows):
    return Chunk(*(getattr(chunk, name)[rows] for name in ("X", "Y", "s", "fold", "row")))


@st.composite
def cuts(draw):
    """The rows in any order, in chunks of any size, and a tree in which these are merged."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    order = random.permutation(N)
    ends = np.sort(random.integers(0, N + 1, draw(st.integers(0, 8))))
    return np.split(order, ends), random


def run(accumulator, parts, random=None):
    """Leaves are chunks, or several one after the other; pickled on their way to be merged."""
    states = []
    for rows in parts:
        state = accumulator.update(accumulator.init(), take(whole(), rows))
        if states and random is not None and random.random() < 0.3:
            state = accumulator.update(states.pop(), take(whole(), rows))
        states.append(pickle.loads(pickle.dumps(state)))
    accumulator = pickle.loads(pickle.dumps(accumulator))
    while len(states) > 1:
        i = 0 if random is None else int(random.integers(0, len(states) - 1))
        states[i : i + 2] = [accumulator.merge(states[i], states[i + 1])]
    return accumulator.finish(states[0])


def flat(result):
    """All numbers of a result."""
    if isinstance(result, dict):
        return np.concatenate([flat(result[name]) for name in sorted(result)])
    if hasattr(result, "__dict__"):
        return np.concatenate([flat(value) for value in vars(result).values()])
    if isinstance(result, np.ndarray) and result.ndim == 2 and result.shape[0] == result.shape[1]:
        result = np.tril(result)
    return np.ravel(np.asarray(result, dtype=float))


def accumulators():
    random = np.random.default_rng(3)
    features = nystrom_map(Gaussian(0.5), random.normal(size=(12, P)))
    m = features.size
    theta, step = random.normal(size=(2, m + 1, 3))
    train = random.random((PARTS, 3)) < 0.7
    form = Form(features, SmoothedHinge(0.3), 0, True, train)
    smooth = Form(fourier_map(Gaussian(0.5), P, 10, 0, True), Log(), 0, False, train)
    ts = random.random((4, 3))
    W, b = random.normal(size=(PARTS, m, 1)), random.normal(size=(PARTS, 1))
    return {
        "gram": MomentSums(features, Centre(random.normal(size=m), np.array([0.3]))),
        "second": Second(form, theta[:, 0]),
        "second, smooth": Second(smooth, theta[:10, 0]),
        "products": Products(form, theta, step),
        "slopes": Slopes(form, theta, step, ts),
        "flat intervals": FlatIntervals(form, theta),
        "check": Check(form, theta, np.array([0.1, 1.0])),
        "values": Values(features, W, b),
        "lengths": Lengths(features, PARTS),
    }


@pytest.mark.parametrize("name", accumulators())
@given(cut=cuts())
def test_any_chunking_and_order(name, cut):
    accumulator, (parts, random) = accumulators()[name], cut
    expected = flat(run(accumulator, [np.arange(N)]))
    found = flat(run(accumulator, parts, random))
    np.testing.assert_allclose(found, expected, atol=1e-10 * max(1.0, np.abs(expected).max()))


@given(cut=cuts(), size=st.integers(1, N))
def test_any_chunking_and_order_draws_the_same_rows(cut, size):
    sample, (parts, random) = RowSampler(size, seed=7), cut
    found = run(sample, parts, random)
    chunk = whole()
    positive = np.flatnonzero(chunk.s > 0)
    expected = positive[np.argsort(row_hash(7, positive), kind="stable")][:size]
    assert found.row.tolist() == expected.tolist()
    np.testing.assert_array_equal(found.X, chunk.X[expected])
    np.testing.assert_array_equal(found.fold, chunk.fold[expected])


@given(cut=cuts())
def test_machines_do_not_depend_on_the_chunks(cut):
    gram, (parts, random) = accumulators()["gram"], cut
    machines = []
    for moments in (run(gram, [np.arange(N)]), run(gram, parts, random)):
        ridge = Ridge(moments, [1], True, "mean", np.empty((moments.centre.phi.size, 0)))
        machines.append(ridge.models(np.array([1e-3])))
    np.testing.assert_allclose(machines[0].W, machines[1].W, atol=1e-10)
    np.testing.assert_allclose(machines[0].b, machines[1].b, atol=1e-10)


def test_hashes_are_spread_and_differ_by_seed():
    rows = np.arange(100_000)
    hashes = row_hash(0, rows)
    assert np.unique(hashes).size == rows.size
    share = hashes / 2.0**64
    assert abs(share.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(share, row_hash(1, rows) / 2.0**64)[0, 1]) < 0.02
    assert abs(np.corrcoef(share[1:], share[:-1])[0, 1]) < 0.02


def test_sparse_rows_are_drawn():
    chunk = whole()
    sparse = Chunk(csr_array(chunk.X), chunk.Y, chunk.s, chunk.fold, chunk.row)
    sample = RowSampler(20, 0)
    parts = [take(sparse, np.arange(0, N, 2)), take(sparse, np.arange(1, N, 2))]
    state = sample.init()
    for part in parts:
        state = sample.update(state, part)
    found = sample.finish(state)
    np.testing.assert_array_equal(found.X.toarray(), chunk.X[found.row])


def test_no_row_of_positive_weight():
    with pytest.raises(ValueError, match="no row of positive weight"):
        RowSampler(3, 0).finish(None)
