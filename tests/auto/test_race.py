"""The race of kernels on a sample."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold, StratifiedKFold

from onefit import (
    AutoKernelRegressor,
    KernelClassifier,
    KernelRegressor,
    KernelSearchCV,
    default_grid,
)
from onefit.auto.prepared import PreparedRows
from onefit.auto.race import narrow

random = np.random.default_rng(0)
X = random.uniform(-1, 1, size=(240, 2))
rough = np.round(3.0 * X[:, 0]) + np.abs(X[:, 1])
KERNELS = ["rbf", "laplacian", "linear"]


def search_of(estimator, y, splitter, **options):
    grid = default_grid(X, y, KERNELS)
    return KernelSearchCV(estimator, grid, cv=splitter, aggregate="pooled", **options)


def test_every_kernel_keeps_the_bandwidths_beside_its_best_one():
    search = search_of(KernelRegressor(), rough, KFold(5, shuffle=True, random_state=0))
    grid, reason, _ = narrow(search, PreparedRows(X, rough), afforded_seconds=0.0, sample_rows=80)
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
    grid, _, _ = narrow(search, PreparedRows(X, smooth), afforded_seconds=0.0, sample_rows=80)
    (linear,) = [part for part in grid if part["kernel"] == ["linear"]]
    whole = search.param_grid[-1]["lam"]
    # of a linear kernel of two columns only large lams change anything
    assert linear["lam"][0] > 3.0 * whole[0]


def test_a_kernel_far_behind_is_left_out_and_named():
    wave = np.sin(9.0 * X[:, 0])
    search = search_of(KernelRegressor(), wave, KFold(5, shuffle=True, random_state=0))
    grid, reason, _ = narrow(search, PreparedRows(X, wave), afforded_seconds=0.0, sample_rows=80)
    assert "linear" not in [part["kernel"][0] for part in grid]
    assert "left out: linear" in reason


def test_the_narrowed_grid_has_the_winner_of_all_rows():
    search = search_of(KernelRegressor(), rough, KFold(5, shuffle=True, random_state=0))
    grid, _, _ = narrow(search, PreparedRows(X, rough), afforded_seconds=0.0, sample_rows=120)
    narrowed = search_of(KernelRegressor(), rough, search.cv).set_params(param_grid=grid)
    whole = search.fit(X, rough)
    assert narrowed.fit(X, rough).best_score_ == pytest.approx(whole.best_score_, abs=0.01)


def test_rare_classes_are_in_the_sample():
    y = np.zeros(240, dtype=int)
    y[:12] = 1
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    search = search_of(KernelClassifier(), y, splitter, scoring="balanced_accuracy")
    data = PreparedRows(X, y, {"sample_weight": random.uniform(1.0, 2.0, size=240)})
    assert narrow(search, data, afforded_seconds=0.0, sample_rows=60) is not None


def test_no_race_where_the_plan_is_short_or_rows_are_few():
    search = search_of(KernelRegressor(), rough, KFold(5))
    assert narrow(search, PreparedRows(X, rough)) is None
    assert narrow(search, PreparedRows(X, rough), sample_rows=80) is None
    assert narrow(search, PreparedRows(X, rough), afforded_seconds=0.0, sample_rows=200) is None


def test_a_plan_announces_the_race_and_does_not_run_it():
    X, y = make_friedman1(5000, n_features=5, random_state=0)
    text = AutoKernelRegressor().explain(X, y)
    assert "will be raced on 1,500 of the 5,000 rows" in text
    assert "were raced" not in text
