"""Full conformal sets, local widths and conformalised quantiles, against refits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, LeaveOneGroupOut, LeaveOneOut, TimeSeriesSplit

from onefit import KernelRegressor, KernelSearchCV, predict_interval
from onefit.config import config_context
from onefit.losses import Expectile, Huber, Quantile

random = np.random.default_rng(0)
n = 24
X = random.uniform(-2, 2, size=(n, 2))
y = np.sin(2 * X[:, 0]) + 0.3 * random.normal(size=n)
s = random.choice([1.0, 2.0, 3.0], size=n)
groups = np.repeat(np.arange(8), 3)
X_new = random.uniform(-2.5, 2.5, size=(4, 2))
GAMMA = 0.5
SETTINGS = [
    {"lam": 1e-2},
    {"lam": 1e-2, "fit_intercept": False},
    {"lam": 0.3, "scaling": "total"},
    {"lam": 1e-5, "scaling": "total", "fit_intercept": False},
]


def fitted(model, rows, targets, weights):
    return clone(model).fit(rows, targets, sample_weight=weights)


def matrices(model, known, weights, where):
    """The ridge, the kernel matrix with it, and the kernel between known rows and others."""
    ridge = model.lam * (weights.sum() if model.scaling == "mean" else 1.0)
    M = rbf_kernel(known, gamma=GAMMA) + np.diag(ridge / weights)
    return ridge, M, rbf_kernel(known, where, gamma=GAMMA)


def refitted(model, known, targets, weights, where):
    """Predictions of a model of the known rows, by the bordered system of its definition."""
    _, M, k = matrices(model, known, weights, where)
    if not model.fit_intercept:
        return k.T @ np.linalg.solve(M, targets)
    ones = np.ones((len(known), 1))
    bordered = np.block([[M, ones], [ones.T, np.zeros((1, 1))]])
    found = np.linalg.solve(bordered, np.append(targets, 0.0))
    return k.T @ found[:-1] + found[-1]


def deviation(model, known, weights, where):
    """The standard deviation of a new target, from the joint covariance of a Gaussian process."""
    ridge, M, k = matrices(model, known, weights, where)
    left = 1.0 + ridge - np.sum(k * np.linalg.solve(M, k), axis=0)
    if model.fit_intercept:
        ones = np.linalg.solve(M, np.ones(len(known)))
        left += np.square(1.0 - ones @ k) / ones.sum()
    return np.sqrt(left)


def in_set(model, x, t, weights, alpha, local):
    """Whether t is in the full conformal set of x: n + 1 refits of the augmented sample."""
    Xa, ya, sa = np.vstack([X, x]), np.append(y, t), np.append(weights, 1.0)
    scores = []
    for i in range(n + 1):
        keep = np.arange(n + 1) != i
        score = abs(ya[i] - refitted(model, Xa[keep], ya[keep], sa[keep], Xa[[i]])[0])
        if local:  # of all n + 1 rows, the ridge of the augmented sample belongs to each
            score /= deviation(model, Xa[keep], sa[keep], Xa[[i]])[0]
        scores.append(score)
    return sa[np.array(scores) >= scores[-1]].sum() > alpha * sa.sum() * (1 + 1e-9)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("weights", [None, s], ids=["plain", "weighted"])
@pytest.mark.parametrize("setting", SETTINGS[2:], ids=repr)
def test_full_sets_against_refits_of_every_candidate(setting, weights, local):
    """With total scaling a refit without a row has the ridge of the augmented sample."""
    model = KernelRegressor(gamma=GAMMA, **setting)
    width = "local" if local else "constant"
    found = predict_interval(
        model, X, y, X_new[:2], alpha=0.2, method="full", sample_weight=weights, width=width
    )
    assert found.method == "full"
    assert found.width == width
    weights = np.ones(n) if weights is None else weights
    for x, ends, low, high in zip(X_new, found.sets, found.lower, found.upper, strict=False):
        assert ends[0, 0] == low
        assert ends[-1, 1] == high
        inside = np.concatenate([ends[:, 0] + 1e-5, ends[:, 1] - 1e-5, ends.mean(axis=1)])
        gaps = 0.5 * (ends[1:, 0] + ends[:-1, 1])
        outside = np.concatenate([ends[:, 0] - 1e-5, ends[:, 1] + 1e-5, gaps, [low - 3, high + 3]])
        grid = np.linspace(low - 1.0, high + 1.0, 5)
        member = ((ends[:, :1] <= grid) & (grid <= ends[:, 1:])).any(axis=0)
        assert all(in_set(model, x, t, weights, 0.2, local) for t in inside)
        assert not any(in_set(model, x, t, weights, 0.2, local) for t in outside)
        assert [in_set(model, x, t, weights, 0.2, local) for t in grid] == member.tolist()


def test_mean_scaling_has_the_ridge_of_the_augmented_sample():
    mean = KernelRegressor(gamma=GAMMA, lam=1e-2)
    total = KernelRegressor(gamma=GAMMA, lam=1e-2 * (n + 1), scaling="total")
    pair = [predict_interval(model, X, y, X_new, method="full") for model in (mean, total)]
    np.testing.assert_allclose(pair[0].lower, pair[1].lower, rtol=1e-9)
    np.testing.assert_allclose(pair[0].prediction, mean.fit(X, y).predict(X_new), rtol=1e-6)


def test_full_sets_of_several_targets_and_of_several_intervals():
    Y = np.column_stack([y, -y])
    model = KernelRegressor(gamma=GAMMA, lam=1e-5, scaling="total", fit_intercept=False)
    found = predict_interval(model, X, Y, X_new, alpha=0.3, method="full")
    np.testing.assert_allclose(found.lower[:, 0], -found.upper[:, 1])
    assert len(found.sets) == 2
    far = random.uniform(-2, 2, size=(200, 2))
    many = predict_interval(model, X, y, far, alpha=0.5, method="full").sets
    assert max(len(one) for one in many) > 1  # otherwise unions go untested above


def by_refits(model, splits, alpha, weights, unit, forward=False):
    """Ends of intervals with local widths, by their definition."""
    low, high, counts = [], [], []
    for train, test in splits:
        one = fitted(model, X[train], y[train], weights[train])
        score = np.abs(y[test] - one.predict(X[test]))
        score /= deviation(model, X[train], weights[train], X[test])
        if forward:
            train = np.arange(n)
            one = fitted(model, X, y, weights)
        centre, v = one.predict(X_new), deviation(model, X[train], weights[train], X_new)
        low += [-(centre - r * v) for r in score]
        high += [centre + r * v for r in score]
        counts += list(unit[test])
    counts = np.array(counts)
    enough = (1 - alpha) * (counts.sum() + 1) - 1e-9

    def end(values):
        order = np.argsort(values)
        return values[order][np.searchsorted(np.cumsum(counts[order]), enough)]

    ends = [np.array([end(column) for column in np.array(side).T]) for side in (low, high)]
    return -ends[0], ends[1]


@pytest.mark.parametrize("weights", [np.ones(n), s], ids=["plain", "weighted"])
@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
@pytest.mark.parametrize("loss", [{}, {"loss": Huber(0.3)}], ids=repr)
def test_local_widths_against_refits(loss, setting, weights):
    model = KernelRegressor(gamma=GAMMA, **setting, **loss)
    cv = KFold(5, shuffle=True, random_state=1)
    for method, splitter in (("cv+", cv), ("jackknife+", LeaveOneOut())):
        found = predict_interval(
            model, X, y, X_new, alpha=0.2, method=method, sample_weight=weights, width="local",
            cv=cv if method == "cv+" else None,
        )  # fmt: skip
        expected = by_refits(model, splitter.split(X), 0.2, weights, weights)
        np.testing.assert_allclose((found.lower, found.upper), expected, atol=1e-5)


def test_local_widths_of_groups_and_of_time():
    model, ones = KernelRegressor(gamma=GAMMA, lam=1e-2), np.ones(n)
    found = predict_interval(
        model, X, y, X_new, alpha=0.2, method="jackknife+", groups=groups, width="local"
    )
    splits = list(LeaveOneGroupOut().split(X, groups=groups))
    expected = by_refits(model, splits, 0.2, ones, ones / 3)
    np.testing.assert_allclose((found.lower, found.upper), expected, atol=1e-8)
    assert found.unit == "groups"
    cv = TimeSeriesSplit(3)
    found = predict_interval(model, X, y, X_new, alpha=0.2, cv=cv, width="local")
    expected = by_refits(model, cv.split(X), 0.2, ones, ones, forward=True)
    np.testing.assert_allclose((found.lower, found.upper), expected, atol=1e-8)
    assert found.method == "forward"


def test_intervals_are_wider_where_rows_are_few():
    far = np.array([[0.0, 0.0], [8.0, 8.0]])
    model = KernelRegressor(gamma=GAMMA, lam=1e-3)
    for method in ("cv+", "jackknife+", "full"):
        found = predict_interval(model, X, y, far, alpha=0.2, method=method, width="local")
        size = found.upper - found.lower
        assert size[1] > 1.5 * size[0]


LEVELS = [0.2, 0.5, 0.8]


@pytest.mark.parametrize("loss", [Quantile(LEVELS, delta=0.05), Expectile(LEVELS)])
def test_conformalised_quantiles_against_refits(loss):
    model = KernelRegressor(loss, gamma=GAMMA, lam=1e-2)
    cv = KFold(4, shuffle=True, random_state=0)
    found = predict_interval(model, X, y, X_new, alpha=0.2, cv=cv)
    low, high = [], []
    for train, test in cv.split(X):
        one = clone(model).fit(X[train], y[train])
        own, new = one.predict(X[test]), one.predict(X_new)
        score = np.maximum(own.min(axis=1) - y[test], y[test] - own.max(axis=1))
        low += [new.min(axis=1) - r for r in score]
        high += [new.max(axis=1) + r for r in score]
    rank = int(np.ceil(0.8 * (n + 1) - 1e-9))
    np.testing.assert_allclose(found.lower, np.sort(low, axis=0)[-rank], atol=1e-5)
    np.testing.assert_allclose(found.upper, np.sort(high, axis=0)[rank - 1], atol=1e-5)
    np.testing.assert_allclose(found.prediction, np.median(model.fit(X, y).predict(X_new), axis=1))


def test_full_sets_cover_new_targets():
    hits = []
    for seed in range(60):
        draw = np.random.default_rng(seed)
        rows = draw.uniform(-2, 2, size=(40, 1))
        targets = np.sin(2 * rows[:, 0]) + 0.3 * draw.normal(size=40)
        model = KernelRegressor(gamma=1.0, lam=1e-2)
        found = predict_interval(
            model, rows[:20], targets[:20], rows[20:], alpha=0.2, method="full"
        )
        hits.append(np.mean((found.lower <= targets[20:]) & (targets[20:] <= found.upper)))
    assert 0.76 < np.mean(hits) < 0.88


@pytest.mark.parametrize(
    ("params", "options", "match"),
    [
        ({"loss": "huber"}, {"method": "full"}, "loss='squared'"),
        ({}, {"method": "full", "groups": groups}, "groups contradict"),
        ({"kernel": "precomputed"}, {"width": "local"}, "precomputed"),
        ({"approximation": "nystrom"}, {"width": "local"}, "got approximation='nystrom'"),
        ({"loss": Quantile([0.1, 0.9])}, {"width": "local"}, "one curve per target"),
        ({}, {"width": "wide"}, "width"),
        ({}, {"method": "full", "alpha": 0.01}, "alpha"),
    ],
)
def test_refused(params, options, match):
    with pytest.raises(ValueError, match=match):
        predict_interval(KernelRegressor(**params), X, y, X_new, **options)


def test_full_sets_of_a_search_over_time_are_refused():
    search = KernelSearchCV(KernelRegressor(), {"lam": [0.1]}, cv=TimeSeriesSplit(3)).fit(X, y)
    with pytest.raises(ValueError, match="time-ordered splits contradict"):
        predict_interval(search, X, y, X_new, method="full")


@pytest.mark.parametrize(
    ("loss", "method", "matrices"),
    [("squared", "full", 4), ("squared", "jackknife+", 6), (Huber(1.0), "jackknife+", 10)],
)
def test_intervals_that_do_not_fit_into_memory_are_refused(loss, method, matrices):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 2)), random.normal(size=50)
    model = KernelRegressor(loss)
    with config_context(memory_bytes=8.0 * matrices * 50**2):
        with pytest.raises(MemoryError, match="predict_interval for 10 new rows on n=50 rows"):
            predict_interval(model, X, y, X[:10], method=method)
        if loss == "squared":  # the same without what its models and new rows need
            assert predict_interval(model, X, y, X[:1], method="cv+", cv=2).lower.shape == (1,)
