"""Intervals by refits, their coverage, and nested cross-validation by hand."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression
from sklearn.metrics import brier_score_loss, log_loss, make_scorer, mean_pinball_loss
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from onefit import AutoKernelRegressor, KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.folds import Folds
from onefit.losses import EpsilonQuadratic, Expectile, Huber, Quantile
from onefit.uncertainty import nested_cv, predict_interval
from onefit.uncertainty.ranked import Ranked

random = np.random.default_rng(0)
X = random.uniform(-2, 2, size=(41, 2))
y = np.sin(2 * X[:, 0]) + 0.2 * random.normal(size=41) + 2.0 * (np.arange(41) % 10 == 0)
X_new = random.uniform(-2, 2, size=(7, 2))
MACHINES = [
    KernelRegressor(gamma=0.5, lam=1e-3),
    KernelRegressor(gamma=0.5, lam=1e-2, fit_intercept=False, scaling="total"),
    KernelRegressor(loss=Huber(0.3), gamma=0.5, lam=1e-3),
    KernelRegressor(loss=EpsilonQuadratic(0.2), gamma=0.5, lam=1e-3),
    KernelRegressor(loss="logistic", gamma=0.5, lam=1e-3),
]


def by_refits(machine, cv, alpha, weight=None):
    """The definition of CV+, every model refitted."""
    centre, residual = np.empty((41, 7)), np.empty(41)
    for train, test in cv.split(X):
        of_train = None if weight is None else weight[train]
        fitted = clone(machine).fit(X[train], y[train], sample_weight=of_train)
        centre[test] = fitted.predict(X_new)
        residual[test] = np.abs(y[test] - fitted.predict(X[test]))
    if weight is None:
        low = np.sort(centre - residual[:, None], axis=0)[int(np.floor(alpha * 42)) - 1]
        high = np.sort(centre + residual[:, None], axis=0)[int(np.ceil((1 - alpha) * 42)) - 1]
        return low, high
    ends = [(centre + sign * residual[:, None]) * sign for sign in (-1.0, 1.0)]
    enough = (1 - alpha) * (weight.sum() + 1)
    found = [
        [min(v for v in column if weight[column <= v].sum() >= enough) for column in end.T]
        for end in ends
    ]
    return -np.array(found[0]), np.array(found[1])


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_intervals_are_those_of_refits(machine):
    cv = KFold(4, shuffle=True, random_state=0)  # folds of two sizes
    for method, folds, k in (("cv+", cv, 4), ("jackknife+", LeaveOneOut(), None)):
        found = predict_interval(
            machine, X, y, X_new, alpha=0.13, method=method, cv=k, random_state=0
        )
        low, high = by_refits(machine, folds, 0.13)
        np.testing.assert_allclose(found.lower, low, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.upper, high, rtol=1e-5, atol=1e-6)
        expected = clone(machine).fit(X, y).predict(X_new)
        np.testing.assert_allclose(found.prediction, expected, rtol=1e-7)
    assert not hasattr(machine, "X_fit_")


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_weighted_intervals_are_those_of_refits(machine):
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=41)
    for method, folds, k in (
        ("cv+", KFold(4, shuffle=True, random_state=0), 4),
        ("jackknife+", LeaveOneOut(), None),
    ):
        found = predict_interval(
            machine,
            X,
            y,
            X_new,
            alpha=0.13,
            method=method,
            cv=k,
            random_state=0,
            sample_weight=weight,
        )
        low, high = by_refits(machine, folds, 0.13, weight)
        np.testing.assert_allclose(found.lower, low, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.upper, high, rtol=1e-5, atol=1e-6)
        expected = clone(machine).fit(X, y, sample_weight=weight).predict(X_new)
        np.testing.assert_allclose(found.prediction, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("machine", MACHINES[:3], ids=repr)
def test_a_weight_is_a_number_of_rows(machine):
    """Zero among them: as if the rows were repeated, all copies in one fold."""
    counts = np.arange(41) % 4
    rows = np.repeat(np.arange(41), counts)
    folds = list(KFold(5).split(X))
    repeated = [
        (np.flatnonzero(np.isin(rows, train)), np.flatnonzero(np.isin(rows, test)))
        for train, test in folds
    ]
    found = predict_interval(machine, X, y, X_new, alpha=0.2, cv=folds, sample_weight=counts)
    expected = predict_interval(machine, X[rows], y[rows], X_new, alpha=0.2, cv=repeated)
    np.testing.assert_allclose(found.lower, expected.lower, rtol=1e-5)
    np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-5)
    np.testing.assert_allclose(found.prediction, expected.prediction, rtol=1e-5)
    fewer = predict_interval(
        machine, X, y, X_new, alpha=0.2, method="jackknife+", sample_weight=counts > 0
    )
    kept = counts > 0
    alone = predict_interval(machine, X[kept], y[kept], X_new, alpha=0.2, method="jackknife+")
    np.testing.assert_allclose(fewer.upper, alone.upper, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"loss": Huber(0.3)}])
def test_splits_of_any_size(options):
    """Some keep less than they remove, and some rows are tested by several."""
    machine = KernelRegressor(gamma=0.5, lam=1e-3, **options)
    splits = [(np.arange(5, 15), np.arange(15, 41)), (np.arange(2, 30), np.r_[0, 1, 30:41])]
    found = predict_interval(machine, X, y, X_new, alpha=0.2, cv=splits)
    ends, weight = [], []
    for train, test in splits:
        fitted = clone(machine).fit(X[train], y[train])
        residual = np.abs(y[test] - fitted.predict(X[test]))[:, None]
        ends.append([residual - fitted.predict(X_new), residual + fitted.predict(X_new)])
        weight.append(np.where(test >= 30, 0.5, 1.0))
    weight = np.concatenate(weight)
    for side, expected in zip(zip(*ends, strict=True), (-found.lower, found.upper), strict=True):
        for column, value in zip(np.concatenate(side).T, expected, strict=True):
            order = np.argsort(column)
            rank = np.searchsorted(np.cumsum(weight[order]), 0.8 * (weight.sum() + 1) - 1e-9)
            assert value == pytest.approx(column[order][rank], rel=1e-5)


def test_a_split_whose_training_rows_have_no_weight_is_left_out():
    """As if the first rows, on which a split in the order of time trains, were not there."""
    weight = np.where(np.arange(41) < 11, 0.0, 1.0)
    forward = TimeSeriesSplit(3, test_size=10)
    found = predict_interval(MACHINES[0], X, y, X_new, alpha=0.2, cv=forward, sample_weight=weight)
    rows = TimeSeriesSplit(2, test_size=10)
    expected = predict_interval(MACHINES[0], X[11:], y[11:], X_new, alpha=0.2, cv=rows)
    assert found.units == expected.units == 20
    np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-7)


def test_several_targets_groups_and_precomputed_kernels():
    Y = np.column_stack([y, X[:, 1]])
    machine = KernelRegressor(gamma=0.5)
    both = predict_interval(machine, X, Y, X_new, alpha=0.2)
    for j in range(2):
        one = predict_interval(machine, X, Y[:, j], X_new, alpha=0.2)
        np.testing.assert_allclose(both.lower[:, j], one.lower)
        np.testing.assert_allclose(both.upper[:, j], one.upper)
    one = predict_interval(machine, X, y, X_new, alpha=0.2)
    kernel = predict_interval(
        KernelRegressor(kernel="precomputed"),
        _gaussian(X, X),
        y,
        _gaussian(X_new, X),
        alpha=0.2,
    )
    np.testing.assert_allclose(kernel.lower, one.lower)
    groups = list(GroupKFold(3).split(X, y, np.arange(41) % 3))
    assert (predict_interval(machine, X, y, X_new, cv=groups).lower < one.upper).all()


def _gaussian(A, B):
    return np.exp(-0.5 * np.sum((A[:, None] - B[None]) ** 2, axis=2))


def test_a_search_stands_for_its_winner():
    search = KernelSearchCV(KernelRegressor(), {"gamma": [0.3, 1.0], "lam": [1e-3, 1e-2]}, cv=3)
    with pytest.raises(ValueError, match="fit the search first"):
        predict_interval(search, X, y, X_new)
    search.fit(X, y)
    found = predict_interval(search, X, y, X_new)
    winner = predict_interval(KernelRegressor(**search.best_params_), X, y, X_new, cv=KFold(3))
    np.testing.assert_array_equal(found.lower, winner.lower)


def test_an_interval_that_would_be_empty_is_a_point():
    """With alpha above one half the ranked ends of several models may lie on the wrong sides."""
    for method in ("cv+", "jackknife+"):
        found = predict_interval(
            KernelRegressor(gamma=5.0, lam=1e-6), X, y, X_new, alpha=0.97, method=method
        )
        assert (found.lower <= found.upper).all()
    assert (found.lower == found.upper).any()


def test_the_weights_of_a_search_are_used():
    weight, plain = np.arange(41) % 3 + 0.5, KernelRegressor()
    steps = Pipeline([("same", FunctionTransformer()), ("kernel", plain)])
    for model, lam in ((plain, "lam"), (steps, "kernel__lam")):
        search = KernelSearchCV(model, {lam: [1e-3, 1e-2]}, cv=3)
        search.fit(X, y, sample_weight=weight)
        found = predict_interval(search, X, y, X_new)
        np.testing.assert_allclose(found.prediction, search.predict(X_new), rtol=1e-8)
        given = predict_interval(search, X, y, X_new, sample_weight=weight)
        np.testing.assert_array_equal(found.upper, given.upper)
        assert found.units == pytest.approx(weight.sum())


def coverage(method, alpha, repetitions, n=59, options=None):
    """How often new targets are inside, and the standard error of that; alpha (n + 1) is whole."""
    draw = np.random.default_rng(7)
    means = []
    for _ in range(repetitions):
        Z = draw.uniform(-2, 2, size=(n + 40, 1))
        target = np.sin(2 * Z[:, 0]) + 0.3 * draw.standard_t(4, size=n + 40)
        machine = KernelRegressor(gamma=1.0, lam=1e-2, **(options or {}))
        found = predict_interval(machine, Z[:n], target[:n], Z[n:], alpha=alpha, method=method)
        means.append(np.mean((found.lower <= target[n:]) & (target[n:] <= found.upper)))
    return np.mean(means), np.std(means, ddof=1) / np.sqrt(repetitions)


def test_rank():
    ranked = {n: Ranked.of(Folds.draw(3, np.ones((n, 1))), np.ones(n), None) for n in (9, 10, 99)}
    assert [np.ceil(one.rank(0.1)) for one in ranked.values()] == [9, 10, 90]
    assert np.ceil(ranked[99].rank(0.45)) == 55  # 0.55 * 100 is 55.00000000000001


@pytest.mark.parametrize(("method", "alpha"), [("cv+", 0.3), ("jackknife+", 0.1)])
def test_coverage(method, alpha):
    found, error = coverage(method, alpha, 150)
    assert error < 0.01
    assert abs(found - (1 - alpha)) < 2 * error


@pytest.mark.slow
@pytest.mark.parametrize(("options", "repetitions"), [({}, 1000), ({"loss": Huber(0.3)}, 400)])
def test_coverage_over_many_samples(options, repetitions):
    for method in ("cv+", "jackknife+"):
        found, error = coverage(method, 0.1, repetitions, n=99, options=options)
        assert abs(found - 0.9) < 2 * error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must lie between 0 and 1"),
        ({"alpha": 0.01}, "at least 0.0239, or more rows"),
        ({"method": "cv"}, "did you mean 'cv\\+'"),
        ({"cv": 1}, "cv must be at least 2"),
        ({"sample_weight": np.full(41, 0.1)}, "0.1961, or more rows .with sample_weight"),
        ({"sample_weight": -np.ones(41)}, "must not be negative"),
        ({"cv": [(np.arange(41), np.arange(5))]}, "tests rows it trains on"),
        ({"cv": 4, "method": "jackknife+"}, "cv is for method='cv\\+'"),
        ({"cv": TimeSeriesSplit(4), "method": "full"}, "cv is for method='cv\\+'"),
        ({"estimator": KernelClassifier()}, "predict_interval is for regressors"),
        ({"estimator": LinearRegression()}, "needs a KernelRegressor"),
    ],
)
def test_bad_input(options, message):
    options = {"estimator": MACHINES[0], "X": X, "y": y, "X_new": X_new} | options
    with pytest.raises((ValueError, TypeError), match=message):
        predict_interval(**options)


def test_a_singular_system_says_what_to_do():
    machine = KernelRegressor(kernel="linear", lam=1e-20, scaling="total", fit_intercept=False)
    with pytest.raises(np.linalg.LinAlgError, match="raise lam"):
        predict_interval(machine, X, y, X_new)


def by_hand(model, K, seed, value, stratified=False):
    """One repetition of the authors' algorithm, refits written out."""
    splitter = (StratifiedKFold if stratified else KFold)(K, shuffle=True, random_state=seed)
    target = labels if stratified else y
    rows = Z if stratified else X
    folds = [test for _, test in splitter.split(rows, target)]
    pairs = []
    for k in range(K):
        inner = []
        for j in range(K):
            if j != k:
                train = np.concatenate([folds[i] for i in range(K) if i not in (j, k)])
                train.sort()
                fitted = clone(model).fit(rows[train], target[train])
                inner.append(value(target[folds[j]], fitted.predict(rows[folds[j]])))
        train = np.sort(np.concatenate([folds[i] for i in range(K) if i != k]))
        fitted = clone(model).fit(rows[train], target[train])
        outer = value(target[folds[k]], fitted.predict(rows[folds[k]]))
        pairs.append((np.concatenate(inner), outer))
    return pairs


Z, labels = make_classification(45, random_state=0)
SEARCHES = [
    (KernelSearchCV(KernelRegressor(), {"lam": [1e-3, 1e-1]}, cv=3), None, False),
    (KernelRegressor(gamma=0.5), "absolute", False),
    (KernelSearchCV(KernelClassifier(), {"lam": [1e-3, 1e-1]}, cv=3), None, True),
]


@pytest.mark.parametrize(("model", "loss", "stratified"), SEARCHES)
def test_nested_cv_by_hand(model, loss, stratified):
    data = (Z, labels) if stratified else (X, y)
    found = nested_cv(model, *data, cv=4, n_repeats=2, alpha=0.2, loss=loss, random_state=5)
    value = (
        (lambda a, b: (a != b).astype(float))
        if stratified
        else (lambda a, b: np.abs(a - b) if loss else (a - b) ** 2)
    )
    seeds = np.random.RandomState(5).randint(2**31 - 1, size=2)
    rounds = [by_hand(model, 4, int(seed), value, stratified) for seed in seeds]
    pairs = [pair for one in rounds for pair in one]
    mse = np.mean([(i.mean() - o.mean()) ** 2 - o.var(ddof=1) / o.size for i, o in pairs])
    inside = np.mean([i.mean() for i, _ in pairs])
    outside = np.mean([np.concatenate([o for _, o in one]).mean() for one in rounds])
    assert found.inside_error == pytest.approx(inside)
    assert found.outside_error == pytest.approx(outside)
    assert found.error == pytest.approx(inside - 1.5 * (inside - outside))
    whole = [np.concatenate([o for _, o in one]) for one in rounds]
    naive = np.mean([one.std(ddof=1) / np.sqrt(one.size) for one in whole])
    width = np.clip(np.sqrt(0.75 * max(mse, 0.0)), naive, 2 * naive)
    assert found.naive_standard_error == pytest.approx(naive)
    assert found.standard_error == pytest.approx(width)
    reach = 1.2815515655446004 * width
    np.testing.assert_allclose(found.interval, [found.error - reach, found.error + reach])
    np.testing.assert_allclose(found.outside[1], [o.mean() for _, o in rounds[1]])


def test_nested_cv_sees_through_selection():
    """Pure noise, many candidates: the winner's own score flatters, the nested error does not."""
    draw = np.random.default_rng(3)
    noise, target = draw.normal(size=(40, 3)), draw.normal(size=40)
    grid = {"gamma": 10.0 ** np.arange(-2.0, 2.0), "lam": 10.0 ** np.arange(-4.0, 2.0)}
    search = KernelSearchCV(KernelRegressor(), grid, cv=4, scoring="neg_mean_squared_error")
    best = -search.fit(noise, target).best_score_
    found = nested_cv(search, noise, target, cv=4, n_repeats=2)
    assert found.error > best
    assert found.standard_error >= found.naive_standard_error


@pytest.mark.slow
def test_nested_interval_holds_the_error():
    """Ridge in many dimensions, where the usual interval is too short (the authors' section 5)."""
    inside, usual, total = 0, 0, 150
    for seed in range(total):
        draw = np.random.default_rng(seed)
        weights = draw.normal(size=20) / 3
        A, B = draw.normal(size=(60, 20)), draw.normal(size=(4000, 20))
        target, truth = A @ weights + draw.normal(size=60), B @ weights + draw.normal(size=4000)
        machine = KernelRegressor(kernel="linear", lam=1e-2)
        error = np.mean((clone(machine).fit(A, target).predict(B) - truth) ** 2)
        found = nested_cv(machine, A, target, cv=5, n_repeats=5)
        inside += found.interval[0] <= error <= found.interval[1]
        reach = 1.645 * found.naive_standard_error
        usual += abs(found.outside_error - error) <= reach
    assert inside / total > 0.9 - 2 * np.sqrt(0.09 / total)
    assert inside > usual


def test_nested_cv_in_processes():
    one = nested_cv(KernelRegressor(gamma=0.5), X, y, cv=3, n_repeats=1)
    two = nested_cv(KernelRegressor(gamma=0.5), X, y, cv=3, n_repeats=1, n_jobs=2)
    assert one.interval == two.interval


def test_nested_cv_says_what_it_does(capsys, monkeypatch):
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-3]}, cv=3)
    found = nested_cv(search, X, y, cv=3, n_repeats=2, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" about")[0] for line in lines[:2]] == [
        "[1/12] repetition 1, without fold 0,",
        "[2/12] repetition 1, without fold 1,",
    ]
    assert len(lines) == 12
    monkeypatch.setattr("onefit.progress.MIN_ANNOUNCED_SECONDS", 0.0)
    assert nested_cv(search, X, y, cv=3, n_repeats=2).interval == found.interval
    said = capsys.readouterr()
    assert said.out == ""
    assert "12 parts are expected to take" in said.err


def test_nested_cv_of_an_automatic_choice():
    """Short names of scorers, and groups for the choice within a part."""
    groups = np.arange(41) % 20
    seen = []

    class Seeing(AutoKernelRegressor):
        def fit(self, X, y, groups=None, sample_weight=None):
            seen.append(groups)
            return super().fit(X, y, groups, sample_weight)

    auto = Seeing(kernels="rbf", scoring="mae", stack=False).fit(X, y)
    seen.clear()
    with warnings.catch_warnings(action="ignore"):
        found = nested_cv(auto, X, y, cv=3, n_repeats=1, groups=groups)
    assert found.loss == "absolute"
    assert len(seen) == 6
    assert all(one is not None for one in seen)


class Watched(KernelRegressor):
    """Notes how many rows it is fitted to."""

    sizes: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        Watched.sizes.append(len(X))
        return super().fit(X, y, sample_weight)


def test_nested_cv_fits_the_winner_of_each_part_and_nothing_else():
    for loss in ("squared", Huber(0.3)):
        machine = Watched(loss=loss, gamma=0.5)
        search = KernelSearchCV(machine, {"lam": [1e-3, 1e-1]}, cv=3)
        Watched.sizes.clear()
        nested_cv(search, X, y, cv=4, n_repeats=2)
        assert len(Watched.sizes) == 2 * (4 + 6)
        assert max(Watched.sizes) < 41


@pytest.mark.parametrize("weights", [None, np.arange(41) % 4 + 0.5], ids=["even", "weighted"])
@pytest.mark.parametrize("machine", MACHINES[:3], ids=repr)
def test_nested_cv_of_a_machine_is_one_fit(machine, weights):
    class Plain(RegressorMixin, BaseEstimator):
        """The same machine, hidden from nested_cv."""

        def fit(self, X, y, sample_weight=None):
            self.machine_ = clone(machine).fit(X, y, sample_weight=sample_weight)
            return self

        def predict(self, X):
            return self.machine_.predict(X)

    expected = nested_cv(Plain(), X, y, cv=4, n_repeats=2, sample_weight=weights)
    Watched.sizes.clear()
    found = nested_cv(
        Watched(**machine.get_params(deep=False)), X, y, cv=4, n_repeats=2, sample_weight=weights
    )
    assert not Watched.sizes, "held-out values come from the formula"
    np.testing.assert_allclose(found.interval, expected.interval, rtol=1e-5)
    assert found.inside_error == pytest.approx(expected.inside_error, rel=1e-6)


def test_nested_cv_of_a_classifier_is_one_fit():
    names = np.array(["no", "yes", "maybe"])[np.arange(45) % 3]
    for target in (labels, names):
        machine = KernelClassifier(gamma=0.1)
        refitted = nested_cv(Pipeline([("machine", machine)]), Z, target, cv=3, n_repeats=2)
        found = nested_cv(machine, Z, target, cv=3, n_repeats=2)
        assert found.interval == refitted.interval
        assert 0 < found.error < 1


def test_several_targets_of_a_machine():
    Y = np.column_stack([y, X[:, 1]])
    machine = KernelRegressor(gamma=0.5)
    both = nested_cv(machine, X, Y, cv=3, n_repeats=1)
    each = [nested_cv(machine, X, Y[:, j], cv=3, n_repeats=1) for j in range(2)]
    assert both.error == pytest.approx(np.mean([one.error for one in each]))


class Spy(RegressorMixin, BaseEstimator):
    """Remembers the groups it was trained on, and finds none of them in a prediction."""

    def fit(self, X, y):
        self.groups_ = set(X[:, -1])
        return self

    def predict(self, X):
        assert not self.groups_ & set(X[:, -1])
        return np.zeros(len(X))


def test_groups_stay_on_one_side():
    groups = np.arange(41) % 9
    tagged = np.column_stack([X, groups])
    nested_cv(Spy(), tagged, y, cv=3, n_repeats=2, groups=groups)
    with pytest.raises(AssertionError):
        nested_cv(Spy(), tagged, y, cv=3, n_repeats=2)
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-3, 1e-1]}, cv=LeaveOneGroupOut())
    assert nested_cv(search, X, y, cv=3, n_repeats=1, groups=groups).error > 0
    with pytest.raises(ValueError, match="groups"):
        nested_cv(search, X, y, cv=3, n_repeats=1)


def test_weights_reach_the_searches_of_the_parts():
    weight = np.where(np.arange(41) % 10 == 0, 1e-9, 1.0)  # the rows that are far off
    search = KernelSearchCV(KernelRegressor(gamma=0.5), {"lam": [1e-3, 1e-1]}, cv=3)
    options = {"cv": 3, "n_repeats": 1, "loss": lambda a, b: np.minimum(np.abs(a - b), 1.0)}
    weighted = nested_cv(search, X, y, sample_weight=weight, **options)
    assert weighted.error < nested_cv(search, X, y, **options).error
    plain = KernelRegressor(gamma=0.5, lam=1e-2)
    steps = Pipeline([("same", FunctionTransformer()), ("kernel", plain)])
    one, other = (nested_cv(each, X, y, sample_weight=weight, **options) for each in (plain, steps))
    assert one.error == pytest.approx(other.error)


def balanced(y, labels):
    share = {name: np.mean(name == BINARY) for name in np.unique(BINARY)}
    return np.array([one != other for one, other in zip(y, labels, strict=True)]) / [
        2 * share[one] for one in y
    ]


BINARY = np.where(y > np.quantile(y, 0.7), "high", "low")


@pytest.mark.parametrize(
    ("scoring", "name", "loss"),
    [
        ("neg_mean_absolute_error", "absolute", "absolute"),
        ("r2", "squared", "squared"),
        ("neg_root_mean_squared_error", "squared", "squared"),
        (["r2", "neg_mean_absolute_error"], "absolute", "absolute"),
        (
            make_scorer(mean_pinball_loss, alpha=0.8, greater_is_better=False),
            "pinball",
            lambda t, u: np.maximum(0.8 * (t - u), 0.2 * (u - t)),
        ),
        ("balanced_accuracy", "balanced", balanced),
        ("accuracy", "zero_one", "zero_one"),
    ],
)
def test_nested_cv_is_of_the_scoring_of_the_search(scoring, name, loss):
    amounts = name in ("absolute", "squared", "pinball")
    search = KernelSearchCV(
        KernelRegressor() if amounts else KernelClassifier(),
        {"lam": [1e-3, 1e-1]},
        cv=3,
        scoring=scoring,
        refit=scoring[-1] if isinstance(scoring, list) else True,
    )
    target = y if amounts else BINARY
    found = nested_cv(search, X, target, cv=3, n_repeats=1)
    expected = nested_cv(search, X, target, cv=3, n_repeats=1, loss=loss)
    assert found.loss == name
    assert found.error == pytest.approx(expected.error)
    assert found.standard_error == pytest.approx(expected.standard_error)


@pytest.mark.parametrize(
    ("scoring", "name", "metric"),
    [("neg_log_loss", "log", log_loss), ("neg_brier_score", "brier", brier_score_loss)],
)
def test_nested_cv_of_probabilities(scoring, name, metric):
    target = (BINARY == "low").astype(int)
    search = KernelSearchCV(KernelClassifier("log"), {"lam": [1e-3]}, cv=3, scoring=scoring)
    found = nested_cv(search, X, target, cv=3, n_repeats=1)
    assert found.loss == name
    folds = StratifiedKFold(
        3, shuffle=True, random_state=np.random.RandomState(0).randint(2**31 - 1)
    )
    errors = []
    for train, test in folds.split(X, target):
        proba = clone(search).fit(X[train], target[train]).predict_proba(X[test])
        errors.append(metric(target[test], proba[:, 1]))
    np.testing.assert_allclose(found.outside[0], errors)


def test_nested_cv_of_levels():
    grid = {"lam": [1e-3]}
    levels = KernelRegressor(Expectile([0.2, 0.8]))
    found = nested_cv(KernelSearchCV(levels, grid, cv=3), X, y, cv=3, n_repeats=1)
    assert found.loss == "expectile"


@pytest.mark.parametrize("loss", [Quantile([0.2, 0.8]), Expectile([0.2, 0.8])])
def test_nested_cv_of_levels_in_a_pipeline(loss):
    plain, grid = KernelRegressor(loss, gamma=0.5), {"lam": [1e-3]}
    steps = Pipeline([("same", FunctionTransformer()), ("kernel", plain)])
    expected = nested_cv(KernelSearchCV(plain, grid, cv=3), X, y, cv=3, n_repeats=1)
    inside = KernelSearchCV(steps, {"kernel__lam": [1e-3]}, cv=3)
    for search in (inside, clone(steps).set_params(kernel__lam=1e-3)):
        found = nested_cv(search, X, y, cv=3, n_repeats=1)
        assert (found.loss, found.error) == (expected.loss, pytest.approx(expected.error))


def test_nested_cv_refuses_what_is_no_mean_over_rows():
    search = KernelSearchCV(KernelClassifier(), {"lam": [1e-3]}, cv=3, scoring="roc_auc")
    with pytest.raises(ValueError, match=r"scoring='roc_auc'.*not known to be a mean over rows"):
        nested_cv(search, X, BINARY, cv=3, n_repeats=1)
    assert nested_cv(search, X, BINARY, cv=3, n_repeats=1, loss="zero_one").loss == "zero_one"


def test_what_nested_cv_does_not_take():
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        nested_cv(KernelRegressor(), X, y, weights=y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        nested_cv(KernelRegressor(), X, y, sample_weight=y[:-1])
    with pytest.raises(ValueError, match="fold of a single row"):
        nested_cv(KernelRegressor(), X[:5], y[:5], cv=4)
    search = KernelSearchCV(KernelRegressor(), {}, cv=list(KFold(3).split(X)))
    with pytest.raises(ValueError, match="an int or a splitter"):
        nested_cv(search, X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 2}, "at least 3"),
        ({"n_repeats": 0}, "at least 1"),
        ({"alpha": 1.0}, "between 0 and 1"),
        ({"loss": "square"}, "did you mean 'squared'"),
    ],
)
def test_bad_input_of_nested_cv(options, message):
    with pytest.raises(ValueError, match=message):
        nested_cv(KernelRegressor(), X, y, **options)


def test_an_interval_shows_its_arrays():
    found = predict_interval(KernelRegressor(), X, y, X[:3])
    lines = repr(found).splitlines()
    assert lines[0] == "PredictionInterval(alpha=0.1, method='cv+', from 41 rows): 3 rows"
    assert lines[1].split() == ["prediction", "lower", "upper"]
    assert lines[2].split() == [
        f"{one[0]:.6g}" for one in (found.prediction, found.lower, found.upper)
    ]
    assert len(lines) == 5
    assert repr(predict_interval(KernelRegressor(), X, y, X)).endswith("\n...")


class Linear(RegressorMixin, BaseEstimator):
    """Least squares without a kernel, which nested_cv fits in each part."""

    def fit(self, X, y):
        self.coef_ = np.linalg.lstsq(X, y, rcond=None)[0]
        return self

    def predict(self, X):
        return X @ self.coef_


@pytest.mark.parametrize("model", [KernelRegressor(gamma=0.5), Linear()])
def test_nested_cv_counts_copies_of_rows_in_a_group_once(model):
    fields = [
        nested_cv(model, X[rows], y[rows], cv=4, n_repeats=3, groups=rows)
        for rows in (np.arange(len(X)), np.repeat(np.arange(len(X)), 3))
    ]
    for name in ("error", "standard_error", "naive_standard_error", "interval"):
        one, many = (getattr(found, name) for found in fields)
        np.testing.assert_allclose(many, one, rtol=1e-6, err_msg=name)


class Grouped(Linear):
    """A regressor whose fit takes groups, as that of AutoKernelRegressor does."""

    given: ClassVar[list] = []

    def fit(self, X, y, groups=None):
        self.given.append((X, groups))
        return super().fit(X, y)


def test_nested_cv_passes_groups_to_every_fit_that_takes_them():
    Grouped.given.clear()
    groups = np.arange(len(X)) // 3
    tagged = np.column_stack([X, groups])
    nested_cv(Grouped(), tagged, y, cv=3, n_repeats=1, groups=groups)
    assert len(Grouped.given) == 6
    for rows, own in Grouped.given:
        np.testing.assert_array_equal(own, rows[:, -1])


def test_progress_of_nested_cv_is_a_line_for_each_training_part(capsys):
    nested_cv(Linear(), X, y, cv=3, n_repeats=1, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[1/6] repetition 1, without fold 0, about ")
    assert lines[-1] == "[6/6] repetition 1, without fold 1 and 2"
