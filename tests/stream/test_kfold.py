"""Cross-validation by passes, however the rows come, against the same in memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from onefit import KernelRegressor, KernelSearchCV
from onefit.kernels import Gaussian
from onefit.stream import Fourier, Nystrom
from onefit.stream.accumulate import Chunk
from onefit.stream.kfold import cross_validate

N, LAMS = 300, np.array([1e-1, 1e-3, 1e-5])


def data():
    random = np.random.default_rng(0)
    X, fold = random.normal(size=(N, 3)), random.integers(0, 4, N)
    y = 20.0 + np.sin(X[:, 0]) + 0.2 * random.normal(size=N)
    s = random.uniform(0.5, 2.0, N)
    s[::7] = 0.0
    return X, y, s, fold


def passes(seed):
    """Rows in any order and any chunks, merged as they come."""
    X, y, s, fold = data()

    def run(accumulator):
        random = np.random.default_rng(seed)
        parts = np.split(random.permutation(N), np.sort(random.integers(1, N, 6)))
        states = [
            accumulator.update(
                accumulator.init(), Chunk(X[rows], y[rows, None], s[rows], fold[rows], rows)
            )
            for rows in parts
        ]
        while len(states) > 1:
            i = int(random.integers(0, len(states) - 1))
            states[i : i + 2] = [accumulator.merge(states[i], states[i + 1])]
        return accumulator.finish(states[0])

    return run


@pytest.mark.parametrize("approximation", [Nystrom(), Fourier(), Nystrom("pivoted")], ids=repr)
@pytest.mark.parametrize(
    ("fit_intercept", "scaling", "keep"), [(True, "mean", False), (False, "total", True)]
)
def test_a_stream_gives_what_a_search_gives(approximation, fit_intercept, scaling, keep):
    X, y, s, fold = data()
    found = [
        cross_validate(
            passes(seed), Gaussian(0.3), LAMS, approximation, 40, 0, keep, fit_intercept, scaling
        )
        for seed in (1, 2)
    ]
    for name in ("squared", "absolute", "wrong"):
        one, other = (run.errors.mean(name) for run in found)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    machine = KernelRegressor(
        gamma=0.3, approximation=approximation, n_components=40, keep_landmarks=keep,
        fit_intercept=fit_intercept, scaling=scaling,
    )  # fmt: skip
    search = KernelSearchCV(
        machine, {"lam": LAMS}, cv=PredefinedSplit(fold), scoring="neg_mean_squared_error",
        keep_heldout="all",
    ).fit(X, y, sample_weight=s)  # fmt: skip
    errors = found[0].errors
    for i in range(LAMS.size):
        u = search.heldouts_[i].predictions
        for k in range(4):
            rows = fold == k
            expected = np.average(np.square(y - u)[rows], weights=s[rows])
            assert errors.mean("squared")[i, k, 0] == pytest.approx(expected, rel=1e-9)
            spread = np.average(
                np.square(y[rows] - np.average(y[rows], weights=s[rows])), weights=s[rows]
            )
            assert errors.r2()[i, k, 0] == pytest.approx(1.0 - expected / spread, abs=1e-8)
    best = search.best_index_
    whole = found[0].whole
    u = found[0].features.product(X, whole.W[:, best]) + whole.b[best]
    np.testing.assert_allclose(u[:, 0], search.predict(X), atol=1e-9)
    assert errors.rows == np.count_nonzero(s)
