"""Intervals for lam against dense grids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification, make_friedman1
from sklearn.model_selection import LeaveOneOut
from watched import Counted

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.heldout import Eigen, Prepared
from onefit.losses import Huber
from onefit.scoring import one_standard_error
from onefit.search import Interval
from onefit.search.continuous import brackets

X, y = make_friedman1(60, noise=1.0, random_state=0)
SPAN = Interval(1e-8, 1e2)
MSE = "neg_mean_squared_error"


def make(lam=SPAN, gamma=(0.1, 1.0), loss="squared", **options):
    return KernelSearchCV(KernelRegressor(loss=loss), {"gamma": list(gamma), "lam": lam}, **options)


def exact_but_for_rounding(table):
    """All candidates are exact but those whose tiny lam makes their bound a wide one."""
    lams = np.array([one["lam"] for one in table["params"]])
    return bool(table["exact"][lams > 2e-8].all())


def two_minima(seed=5, n=60):
    """A strong signal, noise, and a weak signal: the first and the last can be fitted."""
    random = np.random.default_rng(seed)
    strong, weak = 10.0 * random.normal(size=(n, 1)), 0.01 * random.normal(size=(n, 1))
    Z = np.hstack([strong, random.normal(size=(n, 25)), weak])
    return Z, Z[:, 0] / 10.0 + 150.0 * Z[:, -1] + 0.1 * random.normal(size=n)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "eigen"},
        {"method": "block"},
        {"method": "eigen", "cv": LeaveOneOut(), "scoring": MSE},
        {"scoring": MSE, "aggregate": "pooled"},
        {"scoring": ["r2", MSE], "refit": MSE},
        {"n_jobs": 2},
    ],
    ids=str,
)
def test_finds_the_best_of_a_dense_grid(options):
    found = make(gamma=[0.1], **options).fit(X, y)
    dense = make(np.geomspace(1e-8, 1e2, 500).tolist(), gamma=[0.1], **options).fit(X, y)
    coarse = make(SPAN.coarse(), gamma=[0.1], **options).fit(X, y)
    assert found.best_score_ > coarse.best_score_
    assert found.best_score_ >= dense.best_score_ - 1e-5 * abs(dense.best_score_)
    assert found.best_params_["lam"] == pytest.approx(dense.best_params_["lam"], rel=0.05)


@pytest.mark.parametrize("method", ["exact", "limit"])
def test_other_losses(method):
    machine = KernelRegressor(loss=Huber(1.0), gamma=0.1)
    found, dense = (
        KernelSearchCV(machine, {"lam": lam}, method=method).fit(X, y)
        for lam in (Interval(1e-5, 1e-1, points=5), np.geomspace(1e-5, 1e-1, 40))
    )
    assert found.best_score_ >= dense.best_score_ - 1e-4


def test_every_minimum_is_refined():
    Z, t = two_minima()
    machine = KernelRegressor(kernel="linear")
    lams = np.geomspace(1e-8, 1e2, 300)
    dense = KernelSearchCV(machine, {"lam": lams}, scoring=MSE).fit(Z, t)
    curve = dense.cv_results_["mean_test_score"]
    inner = np.flatnonzero((curve[1:-1] > curve[:-2]) & (curve[1:-1] > curve[2:])) + 1
    assert inner.size == 2
    found = KernelSearchCV(machine, {"lam": "continuous"}, scoring=MSE).fit(Z, t)
    scores = found.cv_results_["mean_test_score"]
    tried = np.array([one["lam"] for one in found.cv_results_["params"]])
    for i in inner:
        near = np.abs(np.log(tried / lams[i])) < 1.0
        assert scores[near].max() >= curve[i] * (1 + 1e-6)
        assert near[24:].sum() >= 3
    assert found.best_score_ >= curve.max()


def test_refined_candidates_are_ordinary_candidates():
    found = make().fit(X, y)
    table, size = found.cv_results_, 2 * 24
    assert len(table["params"]) > size
    assert found.best_index_ >= size
    assert table["rank_test_score"][found.best_index_] == 1
    assert exact_but_for_rounding(table)
    assert found.heldout(len(table["params"]) - 1).predictions.shape == y.shape
    first = make(SPAN.coarse()).fit(X, y).cv_results_
    assert table["params"][:size] == first["params"]
    np.testing.assert_allclose(table["mean_test_score"][:size], first["mean_test_score"], rtol=1e-7)
    new = [{name: [value] for name, value in one.items()} for one in table["params"][size:]]
    again = KernelSearchCV(KernelRegressor(), new, method="refit").fit(X, y)
    np.testing.assert_allclose(
        table["mean_test_score"][size:], again.cv_results_["mean_test_score"], rtol=1e-6
    )
    assert found.best_estimator_.lam == found.best_params_["lam"]
    np.testing.assert_allclose(found.heldout_.values, again.heldout_.values, rtol=1e-5)


@dataclass
class Watched(Eigen):
    """Counts decompositions and notes the lams asked for; can stop after a number of the latter."""

    prepared: ClassVar[int] = 0
    lams: ClassVar[list[float]] = []
    room: ClassVar[float] = np.inf

    @classmethod
    def clear(cls, room=np.inf):
        cls.prepared, cls.room = 0, room
        cls.lams.clear()

    def prepare(self, problem, folds):
        Watched.prepared += 1
        return WatchedPath(super().prepare(problem, folds))


@dataclass
class WatchedPath(Prepared):
    inner: Prepared

    def predict(self, lams):
        Watched.lams.extend(np.ravel(lams).tolist())
        if len(Watched.lams) > Watched.room:
            raise ZeroDivisionError
        return self.inner.predict(lams)


def test_one_decomposition_for_all_evaluations():
    Watched.clear()
    Counted.matrices.clear()
    grid = {"kernel": [Counted(0.1), Counted(1.0)], "lam": SPAN}
    found = KernelSearchCV(KernelRegressor(), grid, method=Watched()).fit(X, y)
    assert len(found.cv_results_["params"]) > 2 * 24 + 10
    assert Watched.prepared == 2  # one per kernel
    assert len(Counted.matrices) == 2 + 1  # and the winner's fit


def test_leave_one_out_is_decomposed_once():
    Watched.clear()
    options = {"cv": LeaveOneOut(), "scoring": MSE}
    found = make(Interval(1e-6, 1.0, 5), method=Watched(), **options).fit(X, y)
    table = found.cv_results_
    assert len(table["params"]) > 2 * 5 + 10
    assert Watched.prepared == 2
    assert table["exact"].all()
    some = [0, 9, found.best_index_]
    grid = [{name: [value] for name, value in table["params"][i].items()} for i in some]
    again = KernelSearchCV(KernelRegressor(), grid, method="refit", **options).fit(X, y)
    np.testing.assert_allclose(
        table["mean_test_score"][some], again.cv_results_["mean_test_score"], rtol=1e-6
    )


@pytest.mark.parametrize("scaling", ["mean", "total"])
@pytest.mark.parametrize("zeros", [0, 3])
def test_weights_of_leave_one_out(scaling, zeros):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=60)
    weight[:zeros] = 0.0
    machine = KernelRegressor(gamma=0.1, scaling=scaling)
    splits = [(np.delete(np.arange(60), i), [i]) for i in range(zeros, 60)]
    options = {"cv": splits, "scoring": MSE}
    lam = Interval(1e-5, 1.0, 4)
    found, plain = (
        KernelSearchCV(machine, {"lam": lam}, method=method, **options).fit(
            X, y, sample_weight=weight
        )
        for method in ("eigen", "block")
    )
    assert found.best_score_ == pytest.approx(plain.best_score_, rel=1e-8)


@pytest.mark.parametrize("criterion", ["gcv", "cv_hat", "loo", "bayes_loo", "influence_loo"])
def test_criteria_share_a_kernel_matrix(criterion):
    Counted.matrices.clear()
    grid = {"kernel": [Counted(0.1), Counted(1.0)], "lam": Interval(1e-6, 1.0, 5)}
    found = KernelSearchCV(KernelRegressor(), grid, criterion=criterion).fit(X, y)
    assert len(found.cv_results_["params"]) > 2 * 5 + 4
    assert len(Counted.matrices) == 2 + 1  # and the winner's fit
    assert found.cv_results_["criterion"][found.best_index_] == np.min(
        found.cv_results_["criterion"]
    )


@dataclass
class Three:
    """Minima at log10 lam = -6, -3.2 and 0; the middle one is deepest, and narrow."""

    name = "three"

    def evaluate(self, evidence):
        x = np.log10(evidence.lams)
        wells = ((-6.0, 1.0, 1.0), (-3.2, 1.3, 0.2), (0.0, 1.1, 1.0))
        curve = sum(-depth * np.exp(-(((x - at) / width) ** 2)) for at, depth, width in wells)
        return curve, [""] * x.size


def test_the_global_minimum_may_be_behind_a_worse_point_of_the_grid():
    lam = Interval(1e-8, 1e2, points=11)  # 10^-8, 10^-7, ..., 10^2
    found = make(lam, gamma=[0.1], criterion=Three()).fit(X, y)
    table = found.cv_results_
    tried = np.array([one["lam"] for one in table["params"]])
    coarse = table["criterion"][:11]
    assert tried[np.argmin(coarse)] == pytest.approx(1.0)  # the best of the grid is elsewhere
    assert found.best_params_["lam"] == pytest.approx(10**-3.2, rel=0.02)
    for at in (-6.0, -3.2, 0.0):
        assert np.abs(np.log10(tried) - at).min() < 0.02


def test_splits_with_one_row_of_positive_weight():
    weight = np.ones(60)
    weight[40:] = 0.0
    pairs = [(np.setdiff1d(np.arange(60), [i, i + 40]), [i, i + 40]) for i in range(20)]
    options = {"gamma": [0.1], "cv": pairs, "scoring": MSE}
    scores = [
        make(Interval(1e-4, 1.0, 5), method=method, **options)
        .fit(X, y, sample_weight=weight)
        .best_score_
        for method in ("eigen", "block")
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)


def test_criterion_is_what_is_refined():
    found = make(Interval(1e-6, 1.0, 6), gamma=[0.1], criterion="loo").fit(X, y)
    dense = make(np.geomspace(1e-6, 1.0, 400).tolist(), gamma=[0.1], criterion="loo").fit(X, y)
    best = found.cv_results_["criterion"].min()
    assert best < found.cv_results_["criterion"][:6].min()
    assert best <= dense.cv_results_["criterion"].min() * (1 + 1e-5)
    assert found.cv_results_["criterion"][found.best_index_] == best


def test_one_standard_error_sees_the_refined_lams():
    found = make(refit=one_standard_error).fit(X, y)
    table = found.cv_results_
    top = int(np.argmax(table["mean_test_score"]))
    near = table["mean_test_score"] >= (table["mean_test_score"] - table["se_test_score"])[top]
    assert found.best_params_["lam"] == max(np.asarray(table["param_lam"])[near])


def test_mixes_with_lists_and_classifiers():
    Z, labels = make_classification(60, random_state=0)
    grid = [
        {"kernel": ["linear"], "lam": [0.1, 1.0]},
        {"gamma": [0.1], "lam": Interval(1e-3, 1.0, 4)},
    ]
    found = KernelSearchCV(KernelClassifier(), grid, scoring="roc_auc").fit(Z, labels)
    params = found.cv_results_["params"]
    assert [one["lam"] for one in params[:2]] == [0.1, 1.0]
    assert len(params) > 6
    assert all("kernel" not in one for one in params[2:])


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_journal_keeps_the_coarse_grid(tmp_path, n_jobs):
    plain = make(method=Watched()).fit(X, y)
    first = make(journal=tmp_path / "j", n_jobs=n_jobs, method=Watched()).fit(X, y)
    Watched.clear()
    second = make(journal=tmp_path / "j", method=Watched()).fit(X, y)
    for found in (first, second):
        assert found.best_params_ == plain.best_params_
        assert found.best_score_ == pytest.approx(plain.best_score_, rel=1e-12)
    assert not set(Watched.lams) & set(SPAN.coarse())


def test_a_journal_that_was_cut_short(tmp_path):
    Watched.clear()
    plain = make(method=Watched()).fit(X, y)
    Watched.clear(room=len(Watched.lams) - 5)
    with pytest.raises(ZeroDivisionError):
        make(journal=tmp_path / "j", method=Watched()).fit(X, y)
    Watched.clear()
    again = make(journal=tmp_path / "j", method=Watched()).fit(X, y)
    assert again.best_params_ == plain.best_params_


def test_machines_on_one_kernel_are_refined_each():
    grid = {"gamma": [0.1], "fit_intercept": [True, False], "lam": Interval(1e-6, 1.0, 5)}
    found = KernelSearchCV(KernelRegressor(), grid, scoring=MSE).fit(X, y).cv_results_
    for intercept in (True, False):
        alone = make(Interval(1e-6, 1.0, 5), gamma=[0.1], scoring=MSE)
        alone.estimator.set_params(fit_intercept=intercept)
        expected = alone.fit(X, y).best_score_
        of_it = [one["fit_intercept"] is intercept for one in found["params"]]
        assert found["mean_test_score"][of_it].max() == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, np.inf, np.nan]), min_size=1, max_size=12))
def test_brackets_hold_the_minima_and_nothing_else(values):
    lams = np.arange(1.0, len(values) + 1)
    clean = [v if np.isfinite(v) else np.inf for v in values]
    expected = []
    for i, v in enumerate(clean):
        left = next((j for j in range(i, -1, -1) if clean[j] != v), None)
        right = next((j for j in range(i, len(clean)) if clean[j] != v), None)
        lower = all(j is None or clean[j] > v for j in (left, right))
        if lower and v < np.inf:
            low, high = 0 if left is None else left, len(clean) - 1 if right is None else right
            expected.append((lams[low], lams[high]))
    order = np.random.default_rng(0).permutation(len(values))
    assert brackets(lams[order], np.array(values)[order]) == list(dict.fromkeys(expected))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1.0, 0.1), "low=1 is not below high=0.1"),
        ((0.0, 1.0), "low must be a positive"),
        ((1.0, np.inf), "high must be a positive"),
        ((0.1, 1.0, 2), "points must be a whole number of at least 3"),
    ],
)
def test_bad_intervals(arguments, words):
    with pytest.raises(ValueError, match=words):
        Interval(*arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "race"}, "use method='exact'"),
        ({"scoring": ["r2", MSE], "refit": False}, "name the metric in refit"),
        ({"scoring": ["r2", MSE], "refit": lambda table: 0}, "name the metric in refit"),
    ],
)
def test_what_does_not_go_with_an_interval(options, words):
    with pytest.raises(ValueError, match=words):
        make(**options).fit(X, y)


def test_only_lam_is_continuous():
    with pytest.raises(ValueError, match="Interval for 'gamma'"):
        KernelSearchCV(KernelRegressor(), {"gamma": SPAN}).fit(X, y)
