"""Searches on devices: gradients, several of them, the plan's rates, and input that is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from registries import sample
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.config import config_context
from onefit.estimators.device import HostData
from onefit.folds import Folds
from onefit.gradient import cv_gradient
from onefit.kernels import (
    Bank,
    Gaussian,
    Laplace,
    Linear,
    Matern12,
    Matern52,
    Normalized,
    PerFeature,
    Polynomial,
    WeightedSum,
)
from onefit.linalg import arrays_of
from onefit.linalg.device import DeviceMemoryError
from onefit.losses import Huber, SmoothedHinge, Squared
from onefit.problem import Problem
from onefit.search import Interval
from onefit.search.workers import WorkerPlan
from onefit.search_gradient import KernelGradientSearchCV

torch = pytest.importorskip("torch", reason="torch is not installed")

N = 60
GRID = {"gamma": [0.1, 0.5], "lam": [1e-3, 1e-1]}


def data(task="regression"):
    return sample(task, N, d=3)


PULLED = [
    Gaussian(0.3),
    Laplace(0.2),
    Matern12(0.4),
    Matern52(0.5),
    Linear(),
    Polynomial(0.1, 1.0, 3),
    WeightedSum([Gaussian(0.1), Laplace(0.3)], [1.0, 0.5]),
    Normalized(Polynomial(0.2, 1.0, 2)),
    PerFeature(Gaussian, [0.1, 0.2, 0.0]),
    PerFeature(Laplace, [0.1, 0.2, 0.3]),
    PerFeature(Matern52, [0.1, 0.2, 0.3]),
]


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("kernel", PULLED, ids=lambda one: type(one).__name__)
def test_pullbacks_are_those_of_numpy(kernel, library):
    lib = pytest.importorskip(library)
    X, _ = data()
    left, right = np.random.default_rng(0).normal(size=(2, N, 3))
    wanted = kernel.pullback(X, left, right)
    found = kernel.pullback(lib.asarray(X), left, right)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.4), SmoothedHinge(0.3)], ids=repr)
def test_gradients_of_cross_validation(loss):
    X, y = data("classification" if isinstance(loss, SmoothedHinge) else "regression")
    y, s, kernel = y.astype(float)[:, None], np.ones(N), Gaussian(0.4)
    folds = Folds.draw(KFold(4), X)
    wanted = cv_gradient(Problem(kernel(X), y, s, loss, definite=True), 0.03, folds)
    K = kernel.tiles(torch.tensor(X)).hold()
    found = cv_gradient(Problem(K, y, s, loss, definite=True), 0.03, folds)
    assert found.value == pytest.approx(wanted.value, rel=1e-10)
    assert found.lam == pytest.approx(wanted.lam, rel=1e-7)
    own = found.kernel(kernel, torch.tensor(X))["gamma"]
    assert own == pytest.approx(float(wanted.kernel(kernel, X)["gamma"]), rel=1e-7)


@pytest.mark.parametrize(
    "grid",
    [
        {"gamma": Interval(1e-2, 1e1, per_feature=True), "lam": Interval(1e-4, 1e0)},
        {"kernel": Bank([Gaussian(0.1), Gaussian(1.0)]), "lam": Interval(1e-4, 1e0)},
        {"gamma": [0.3], "lam": Interval(1e-4, 1e0)},
    ],
    ids=["gamma per column", "bank", "lam alone"],
)
def test_searches_by_gradient_and_over_intervals(grid):
    X, y = data()
    kind = partial(KernelGradientSearchCV, starts=1, steps=3)
    if isinstance(grid.get("gamma"), list):
        kind = KernelSearchCV
    wanted = kind(KernelRegressor(), grid, cv=4).fit(X, y)
    found = kind(KernelRegressor(), grid, cv=4).fit(torch.tensor(X), y)
    assert found.best_score_ == pytest.approx(wanted.best_score_, rel=1e-5)
    assert isinstance(found.best_estimator_.dual_coef_, torch.Tensor)


@pytest.mark.parametrize("method", ["auto", "limit", "race", "refit", "iterative"])
def test_searches_of_a_support_vector_machine(method):
    X, y = data("classification")
    machine = KernelClassifier(loss=SmoothedHinge(0.1))
    wanted = KernelSearchCV(machine, GRID, cv=4, method=method).fit(X, y)
    with config_context(device="torch:cpu"):
        found = KernelSearchCV(machine, GRID, cv=4, method=method).fit(X, y)
    assert found.best_params_ == wanted.best_params_
    scores = "mean_test_score"
    np.testing.assert_allclose(found.cv_results_[scores], wanted.cv_results_[scores], atol=1e-12)
    assert isinstance(found.best_estimator_.dual_coef_, np.ndarray)
    assert (found.predict(X) == wanted.predict(X)).all()


@pytest.mark.parametrize(
    "backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)]
)  # processes take their time to start
def test_several_devices_share_the_kernels(backend):
    X, y = data()
    search = KernelSearchCV(KernelRegressor(loss="huber"), GRID, cv=4)
    scores = search.fit(X, y).cv_results_["mean_test_score"]
    with config_context(device="torch:cpu, torch:cpu"), parallel_config(backend):
        found = search.fit(X, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], scores, atol=1e-10)
    assert isinstance(found.best_estimator_.X_fit_, np.ndarray)
    # a list names them as well, and there are no more processes than kernels
    worker_plans = [
        HostData.of(one, X, y, {}).names for one in ("torch:cpu,torch:cpu", ["torch:cpu"] * 3)
    ]
    assert [WorkerPlan.on_devices(names, 2).workers for names in worker_plans] == [2, 2]


def test_several_devices_that_are_refused():
    X, y = data()
    search = KernelSearchCV(KernelRegressor(), GRID)
    with (
        config_context(device="cpu,torch:cpu"),
        pytest.raises(ValueError, match="combined with others"),
    ):
        search.fit(X, y)
    several = "names several devices, but X is on one"
    with config_context(device=["torch:cpu"] * 2), pytest.raises(ValueError, match=several):
        search.fit(torch.tensor(X), y)
    search = KernelGradientSearchCV(KernelRegressor(), {"gamma": Interval(1e-3, 1.0)})
    with config_context(device=["torch:cpu"] * 2), pytest.raises(ValueError, match="not descents"):
        search.fit(X, y)


def test_several_devices_search_intervals():
    X, y = data()
    grid = {"gamma": [0.1, 0.5], "lam": Interval(1e-3, 1e-1, points=4)}
    search = KernelSearchCV(KernelRegressor(), grid, cv=4)
    expected = search.fit(X, y).best_score_
    with config_context(device=["torch:cpu"] * 2), parallel_config("threading"):
        assert search.fit(X, y).best_score_ == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_explain_shows_device_and_host(loss, capsys):
    X, y = data()
    with config_context(device="torch:cpu"):
        text = KernelSearchCV(KernelRegressor(loss=loss), GRID).explain(X, y)
    assert "Plan on device cpu" in text
    assert "on the host" in text
    rows = [line for line in text.splitlines() if "iB  " in line]
    assert sum(line.startswith(">") for line in rows) == 1
    assert all(line.rstrip().endswith("s") and line.count("s  ") >= 1 for line in rows)
    assert any(line[2:].startswith("block" if loss == "squared" else "exact") for line in rows)


def test_too_little_memory_is_refused_with_the_numbers():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    search, words = (
        KernelSearchCV(KernelClassifier(loss="log"), GRID),
        r"needs .* GiB on device cpu",
    )
    with (
        config_context(device="torch:cpu"),
        pytest.raises(MemoryError, match=words + r", where 2 GiB are free"),
    ):
        search.fit(X, np.sign(X[:, 0]))


class OutOfMemory(Gaussian):
    """A kernel whose matrix the device has no room for."""

    def matrix(self, geometry, out=None):
        raise torch.OutOfMemoryError("CUDA out of memory")


def test_memory_that_runs_out_on_the_way_is_reported():
    X, y = data()
    with pytest.raises(DeviceMemoryError, match=r"does not fit .* GiB are free; free other arrays"):
        KernelRegressor("huber", OutOfMemory(0.3)).fit(torch.tensor(X), y)


def test_input_that_is_refused():
    X, y = data()
    A = torch.tensor(X)
    search, sparse = (
        KernelSearchCV(KernelRegressor(), GRID),
        "sparse X is not supported on device cpu",
    )
    with config_context(device="torch:cpu"), pytest.raises(ValueError, match=sparse):
        search.fit(sp.csr_array(X), y)
    with pytest.raises(TypeError, match="to_dense"):
        KernelRegressor().fit(A.to_sparse(), y)
    with pytest.raises(TypeError, match="int64 on a device, expected float32 or float64"):
        KernelRegressor().fit(torch.tensor(X.astype(int)), y)
    with pytest.raises(TypeError, match="float16"):
        KernelRegressor().fit(A.half(), y)
    for name in ("X", "y", "sample_weight"):
        values = {"X": A, "y": torch.tensor(y), "sample_weight": torch.ones(N)}
        values[name] = values[name].clone().requires_grad_()
        for model in (KernelRegressor(), KernelSearchCV(KernelRegressor(), GRID)):
            with pytest.raises(ValueError, match=f"{name} requires grad.*{name}.detach"):
                model.fit(**values)
    neither = "device='cuda:9', but neither"
    with config_context(device="cuda:9"), pytest.raises(ValueError, match=neither):
        search.fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelRegressor().fit(A, y[:-1])


def test_conventions_of_the_array_api():
    """Computed where X is, with scikit-learn's dispatch switched on or off, as the tags say."""
    X, y = data()
    A = torch.tensor(X)
    assert KernelRegressor().__sklearn_tags__().array_api_support
    assert KernelSearchCV(KernelClassifier(), GRID).__sklearn_tags__().array_api_support
    assert not KernelRegressor(kernel="precomputed").__sklearn_tags__().array_api_support
    machine = KernelRegressor(loss="huber").fit(A, torch.tensor(y))
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).fit(A, torch.tensor(y))
    for one in (machine, search):
        u = one.predict(A)
        assert isinstance(u, torch.Tensor)
        assert (u.dtype, u.device) == (torch.float64, A.device)
        assert one.score(A, torch.tensor(y)) == pytest.approx(r2_score(y, arrays_of(u).host(u)))
    labels = np.where(y > np.median(y), 1, 0)
    classifier = KernelClassifier(loss="log").fit(A, torch.tensor(labels))
    for answer in (classifier.predict(A), classifier.predict_proba(A), classifier.support_):
        assert isinstance(answer, torch.Tensor)
    assert classifier.score(A, torch.tensor(labels)) > 0.5
    words = KernelClassifier().fit(A, np.where(labels, "yes", "no"))
    assert set(words.predict(A)) == {"yes", "no"}


CHECKS = """
from sklearn.utils.estimator_checks import check_array_api_input_and_values
from onefit import KernelClassifier, KernelRegressor
for library in ("torch", "array_api_strict"):
    for one in (KernelRegressor(), KernelRegressor(loss="huber"), KernelClassifier(loss="log")):
        check_array_api_input_and_values(type(one).__name__, one, library)
"""


def test_the_checks_of_scikit_learn_with_dispatch():
    """In a separate process: the switch must be set before SciPy is imported."""
    pytest.importorskip("array_api_strict")
    done = subprocess.run(
        [sys.executable, "-c", CHECKS],
        env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
