"""Kernels of a search on the workers of a Dask cluster, by joblib's backend for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV


def _searched(machine: Any, X: Any, y: Any, **options: Any) -> KernelSearchCV:
    grid = {"gamma": [0.1, 1.0, 3.0], "lam": [1e-3, 1e-1]}
    with parallel_config(**options):
        return KernelSearchCV(machine, grid, n_jobs=2, cv=4).fit(X, y)


@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        ("ridge", "threading"),
        ("huber", "threading"),
        ("svm", "threading"),
        pytest.param("ridge", "loky", marks=pytest.mark.slow),
    ],
)
def test_workers_of_dask_find_what_others_find(cluster: Any, kind: str, backend: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + np.sin(X[:, 1]) + 0.1 * rng.normal(size=60)
    machine: Any = KernelRegressor(loss="huber" if kind == "huber" else "squared")
    if kind == "svm":
        machine, y = KernelClassifier(loss="squared_hinge"), np.where(y > 0, "yes", "no")
    there = _searched(machine, X, y, backend="dask", client=cluster)
    here = _searched(machine, X, y, backend=backend)
    assert here.best_params_ == there.best_params_
    for column in ("mean_test_score", "split0_test_score", "rank_test_score", "exact"):
        np.testing.assert_allclose(there.cv_results_[column], here.cv_results_[column], rtol=1e-10)
    for i in range(len(here.cv_results_["params"])):
        mine, theirs = there.heldout(i), here.heldout(i)
        np.testing.assert_allclose(mine.values, theirs.values, rtol=0, atol=1e-9)
