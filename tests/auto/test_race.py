"""The race of kernels on a sample."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold, StratifiedKFold

from onefit import (
    AutoKernelRegressor,
    KernelClassifier,
    KernelRegressor,
    KernelSearchCV,
    default_grid,
)
from onefit._indexing import draw_rows
from onefit.auto.learned import learned_grid, over_transformed
from onefit.auto.prepared import PreparedRows
from onefit.auto.race import narrow
from onefit.stacking import stack

random = np.random.default_rng(0)
X = random.uniform(-1, 1, size=(240, 2))
rough = np.round(3.0 * X[:, 0]) + np.abs(X[:, 1])
KERNELS = ["rbf", "laplacian", "linear"]


def search_of(estimator, y, splitter, **options):
    grid = default_grid(X, y, KERNELS)
    return KernelSearchCV(estimator, grid, cv=splitter, aggregate="pooled", **options)


def test_every_kernel_keeps_the_bandwidths_beside_its_best_one():
    search = search_of(KernelRegressor(), rough, KFold(5, shuffle=True, random_state=0))
    found = narrow(search, PreparedRows(X, rough), afforded_seconds=0.0, sample_rows=(40, 80))
    grid, reason = found.grid, found.reason
    assert found.learned == []
    whole = {part["kernel"][0]: part for part in search.param_grid}
    kept = {part["kernel"][0]: part for part in grid}
    assert {"rbf", "laplacian"} <= set(kept) <= set(whole)
    for name, part in kept.items():
        lams = whole[name]["lam"]
        first = lams.index(part["lam"][0])
        assert part["lam"] == lams[first : first + len(part["lam"])]
        assert 2 <= len(part["lam"]) < len(lams)
        assert part["lam"][-1] <= 30.0**2 * part["lam"][0]
        if "gamma" in part:
            gammas = whole[name]["gamma"]
            assert 2 <= len(part["gamma"]) <= 3
            first = gammas.index(part["gamma"][0])
            assert part["gamma"] == gammas[first : first + len(part["gamma"])]
    assert "80 of the 240 rows" in reason


def test_lams_too_small_to_matter_are_left_out():
    """On smooth data without noise the score rises with ever smaller lams, by next to nothing."""
    smooth = X[:, 0] + 0.3 * random.normal(size=240)
    search = search_of(KernelRegressor(), smooth, KFold(5, shuffle=True, random_state=0))
    data = PreparedRows(X, smooth)
    grid = narrow(search, data, afforded_seconds=0.0, sample_rows=(40, 80)).grid
    (linear,) = [part for part in grid if part["kernel"] == ["linear"]]
    whole = search.param_grid[-1]["lam"]
    # of a linear kernel of two columns only large lams change anything
    assert linear["lam"][0] > 3.0 * whole[0]


def test_a_kernel_far_behind_is_left_out_and_named():
    wave = np.sin(9.0 * X[:, 0])
    search = search_of(KernelRegressor(), wave, KFold(5, shuffle=True, random_state=0))
    found = narrow(search, PreparedRows(X, wave), afforded_seconds=0.0, sample_rows=(40, 80))
    assert "linear" not in [part["kernel"][0] for part in found.grid]
    assert "left out: linear" in found.reason


def test_the_narrowed_grid_has_the_winner_of_all_rows():
    search = search_of(KernelRegressor(), rough, KFold(5, shuffle=True, random_state=0))
    data = PreparedRows(X, rough)
    found = narrow(search, data, afforded_seconds=0.0, sample_rows=(40, 120))
    narrowed = search_of(KernelRegressor(), rough, search.cv).set_params(param_grid=found.grid)
    whole = search.fit(X, rough)
    assert narrowed.fit(X, rough).best_score_ == pytest.approx(whole.best_score_, abs=0.01)


def test_rare_classes_are_in_the_sample():
    y = np.zeros(240, dtype=int)
    y[:12] = 1
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    search = search_of(KernelClassifier(), y, splitter, scoring="balanced_accuracy")
    data = PreparedRows(X, y, {"sample_weight": random.uniform(1.0, 2.0, size=240)})
    assert narrow(search, data, afforded_seconds=0.0, sample_rows=(40, 60)) is not None


def test_no_race_where_the_plan_is_short_or_rows_are_few():
    search = search_of(KernelRegressor(), rough, KFold(5))
    assert narrow(search, PreparedRows(X, rough)) is None
    assert narrow(search, PreparedRows(X, rough), sample_rows=(40, 80)) is None
    few = {"afforded_seconds": 0.0, "sample_rows": (200, 300)}
    assert narrow(search, PreparedRows(X, rough), **few) is None


def test_a_plan_announces_the_race_and_does_not_run_it():
    for n, sample in ((5000, "1,500 of the 5,000"), (2400, "1,200 of the 2,400")):
        X, y = make_friedman1(n, n_features=5, random_state=0)
        text = AutoKernelRegressor().explain(X, y)
        assert f"will be raced on {sample} rows" in text
        assert "were raced" not in text


def test_the_average_on_the_sample_says_which_learned_kernels_are_tried():
    """The weights are those of an average of all candidates, refitted on the sample here."""
    n = 160
    Z = np.random.default_rng(1).normal(size=(n, 4))
    y = np.sin(2.0 * (Z[:, 0] - Z[:, 1])) + 0.05 * np.random.default_rng(2).normal(size=n)
    splitter = KFold(4, shuffle=True, random_state=0)
    grid = [{"kernel": ["rbf"], "gamma": [0.02, 0.1], "lam": [1e-4, 1e-2, 1e-1]}]
    grid.append({"kernel": ["linear"], "lam": [1e-2, 1.0]})
    weight = np.where(np.arange(n) % 3, 1.0, 2.0)
    search = KernelSearchCV(KernelRegressor(), grid, cv=splitter, aggregate="pooled")
    data = PreparedRows(Z, y, {"sample_weight": weight})
    found = narrow(search, data, learning=True, afforded_seconds=0.0, sample_rows=(40, 80))
    rows = draw_rows(None, n, 80)
    plain = clone(search).fit(Z[rows], y[rows], sample_weight=weight[rows])
    learned = over_transformed(search, learned_grid()).set_params(cv=splitter)
    learned.fit(Z[rows], y[rows], sample_weight=weight[rows])
    stacked = stack(plain, Z[rows], y[rows], further=[learned]).stack_
    own, others = stacked.weights
    kept = {}
    for one, w in zip(learned.cv_results_["params"], others, strict=True):
        key = str({name: value for name, value in one.items() if name != "model__lam"})
        kept[key] = kept.get(key, 0.0) + w
    heaviest = sorted((key for key in kept if kept[key] >= 0.1), key=lambda key: -kept[key])[:4]
    names = ("model__gamma", "model__kernel", "rows")
    assert [str({name: part[name][0] for name in names}) for part in found.learned] == heaviest
    assert f"{len(heaviest)} kernel" in found.reason
    assert all(2 <= len(part["model__lam"]) <= 6 for part in found.learned)
    assert own.sum() < 0.1  # so the best candidate of the rows as they are is tried alone
    (alone,) = found.grid
    assert alone["gamma"] == [plain.best_params_["gamma"]]
    assert plain.best_params_["lam"] in alone["lam"]
    assert "left out: linear" in found.reason
