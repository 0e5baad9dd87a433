"""Criteria and a lam for each target on a device, and kernel matrices that go when their turn ends.

Every criterion of the registry, with the losses that it fits; libraries take turns.
"""

from __future__ import annotations

import gc
import warnings
import weakref
from itertools import cycle

import numpy as np
import pytest
from registries import sample
from sklearn.base import clone

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.criteria import CRITERIA, InfluenceLoo, KernelStability, kernel_stability
from onefit.criteria.stability import smoothed_stability
from onefit.features import Fourier, Nystrom
from onefit.gram import DeviceGram
from onefit.kernels import Gaussian
from onefit.linalg import is_elsewhere, to_host
from onefit.losses import Huber
from onefit.search import Interval
from onefit.search_gradient import KernelGradientSearchCV

N = 32
GRID = {"gamma": [0.2, 0.6], "lam": [1e-3, 1e-1]}
LIBRARIES = ["torch", "array_api_strict"]
#: losses beside the squared one, or in its place
ANY, HINGES = ("squared", "huber", "log"), ("smoothed_hinge", "squared_hinge")
FITTING = {
    "loo": ANY, "influence_loo": ANY, "kernel_stability": ANY, "gacv": HINGES[:1],
    "span": HINGES, "sv_count": HINGES, "radius_margin": HINGES[1:],
}  # fmt: skip
CASES = [(name, loss) for name in CRITERIA for loss in FITTING.get(name, ANY[:1])]


def bring(name):
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    return library.tensor if name == "torch" else library.asarray


def searched(name, loss, fit_intercept=True, **settings):
    kind = KernelRegressor if loss in ("squared", "huber") else KernelClassifier
    criterion = InfluenceLoo(order=2) if (name, loss) == ("influence_loo", "log") else name
    own = Huber(0.5) if loss == "huber" else loss  # the influence series needs a number
    machine = kind(loss=own, fit_intercept=fit_intercept)
    scoring = "neg_mean_squared_error" if kind is KernelRegressor else None
    return KernelSearchCV(
        machine, GRID, cv=3, scoring=scoring, criterion=criterion, refit=False, **settings
    )


def data(loss="squared"):
    X, y = sample("regression" if loss in ("squared", "huber") else "classification", N)
    s = np.random.default_rng(1).uniform(0.5, 2.0, size=N)
    s[[4, 30]] = 0.0
    return X, y, s


@pytest.mark.parametrize(
    ("case", "library", "fit_intercept"),
    list(zip(CASES, cycle(LIBRARIES), cycle([True, True, False]), strict=False)),
    ids=lambda one: "-".join(one) if isinstance(one, tuple) else str(one),
)
def test_every_criterion_is_that_of_numpy(case, library, fit_intercept):
    X, y, s = data(case[1])
    search, there = searched(*case, fit_intercept), bring(library)
    wanted = search.fit(X, y, sample_weight=s).cv_results_
    found = search.fit(there(X), there(y), sample_weight=there(s)).cv_results_
    name = "mean_test_score" if case[0] == "cv" else "criterion"
    np.testing.assert_allclose(found[name], wanted[name], rtol=1e-8)
    assert (found["reason"] == wanted["reason"]).all()


@pytest.mark.parametrize("name", [one for one in CRITERIA if one not in HINGES])
@pytest.mark.parametrize("approximation", [Nystrom(14), Fourier(14)])
def test_criteria_of_features(name, approximation):
    X, y, s = data()
    machine = KernelRegressor(approximation=approximation)
    search = clone(searched(name, "squared")).set_params(estimator=machine)
    there = bring("torch")
    if name not in ("cv", "loo", "cv_hat", "gcv", "influence_loo"):
        with pytest.raises(ValueError, match=f"criterion '{name}'"):
            search.fit(there(X), y)
        return
    wanted = search.fit(X, y, sample_weight=s).cv_results_
    found = search.fit(there(X), y, sample_weight=s).cv_results_
    name = "mean_test_score" if name == "cv" else "criterion"
    np.testing.assert_allclose(found[name], wanted[name], rtol=1e-8)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_lam_for_each_target(library):
    X, y, s = data()
    Y, there = np.stack([y, 50.0 * X[:, 0] + 9.0 * y], axis=1), bring(library)
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3)
    wanted = search.fit(X, Y, sample_weight=s).fit_per_target(X, Y, s)
    search.fit(there(X), there(Y), sample_weight=there(s))
    found = search.fit_per_target(there(X), there(Y), there(s))
    assert (found.lams == wanted.lams).all()
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-8)
    assert is_elsewhere(found.estimator.dual_coef_)
    values = to_host(found.estimator.predict(there(X)))
    np.testing.assert_allclose(values, wanted.estimator.predict(X), atol=1e-7)


class Sum:
    """A criterion of a user's, who knows NumPy alone."""

    name = "sum"

    def evaluate(self, evidence):
        K = evidence.problem.K.matrix
        assert isinstance(K, np.ndarray)
        return np.array([K.sum() * lam for lam in evidence.lams]), [""] * len(evidence.lams)


def test_a_criterion_of_the_users_sees_the_matrix_of_numpy():
    X, y, _ = data()
    search = searched(Sum(), "squared")
    wanted = search.fit(X, y).cv_results_["criterion"]
    found = search.fit(bring("torch")(X), y).cv_results_["criterion"]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_stability_and_its_derivative(library):
    X, _, _ = data()
    K, there = Gaussian(0.4)(X), Gaussian(0.4).tiles(bring(library)(X)).hold()
    assert kernel_stability(there) == pytest.approx(kernel_stability(K), rel=1e-12)
    for one, two in zip(smoothed_stability(there), smoothed_stability(K), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10)


def test_a_kernel_near_the_identity_is_refused_there_too():
    X, y, _ = data()
    grid = {"gamma": [1e6, 0.5], "lam": [1e-2]}
    search = KernelSearchCV(KernelRegressor(), grid, cv=3, criterion="gcv", refit=False)
    found = search.fit(bring("torch")(X), y).cv_results_
    assert "near the identity" in found["reason"][0]
    assert np.isfinite(found["criterion"]).tolist() == [False, True]


CLASSIFIER, REGRESSOR = KernelClassifier(loss="smoothed_hinge"), KernelRegressor()
LAM = {"gamma": [0.2, 0.6], "lam": Interval(1e-3, 1e-1)}
TURNS = [
    *((REGRESSOR, GRID, {"method": one}) for one in ("block", "eigen", "iterative", "refit")),
    *(
        (CLASSIFIER, GRID, {"method": one})
        for one in ("exact", "limit", "influence", "iterative", "refit", "race")
    ),
    (REGRESSOR, GRID, {"criterion": "gcv"}),
    (REGRESSOR, GRID, {"criterion": "kernel_stability"}),
    (KernelClassifier(loss="squared_hinge"), GRID, {"criterion": "radius_margin"}),
    (REGRESSOR, LAM, {}),
    (REGRESSOR, LAM, {"criterion": "gcv"}),
]


@pytest.mark.parametrize(
    ("machine", "grid", "settings"), TURNS, ids=lambda one: str(one)[-40:].replace("\n", "")
)
def test_no_kernel_matrix_outlives_its_turn(machine, grid, settings, monkeypatch):
    """Without the garbage collector: the next matrix may need the memory of the one before."""
    there, made, alive = bring("torch"), [], []
    whole = DeviceGram._whole

    def watched(self):
        alive.append(sum(one() is not None for one in made))
        found = whole(self)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(DeviceGram, "_whole", watched)
    X, y, _ = data("squared" if machine is REGRESSOR else "log")
    gc.disable()
    try:
        with warnings.catch_warnings():
            # where no point has curvature the influence series has no intercept
            warnings.simplefilter("ignore", UserWarning)
            KernelSearchCV(machine, grid, cv=3, **settings).fit(there(X), y)
        assert alive == [0] * len(alive)
        assert len(alive) >= 3
        assert not any(one() is not None for one in made)
    finally:
        gc.enable()


def test_searches_by_gradient_follow_kernel_stability():
    X, y, _ = data()
    grid = {"gamma": Interval(1e-2, 1e1), "lam": Interval(1e-4, 1e0)}
    how = {"starts": 1, "steps": 2, "criterion": KernelStability(0.1), "cv": 3}
    wanted, found = (
        KernelGradientSearchCV(REGRESSOR, grid, **how).fit(rows, y).best_params_
        for rows in (X, bring("torch")(X))
    )
    for name in ("gamma", "lam"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-6)
