"""Features instead of the kernel matrix where the rows are: the numbers of NumPy, for every loss.

The registries are those of the host (tests/registries.py), sampled: every loss meets a kind of
features, an intercept, a scaling, weights and a library, not all of them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from registries import CLASSIFIERS, LOSS_IDS, LOSSES, REGRESSORS, sample
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, heldout_predict, linalg
from onefit.config import config_context
from onefit.features.approximation import Fourier, Nystrom, get_approximation
from onefit.features.held_out import FEATURE_METHODS
from onefit.folds import Folds
from onefit.kernels import Gaussian, Laplace, Polynomial
from onefit.linalg import arrays_of
from onefit.linalg.rates import CUDA_RATES
from onefit.losses import Squared
from onefit.plan import Workload, check_memory, choose
from onefit.problem import Problem

N, SIZE = 54, 18
LIBRARIES = ["torch", "array_api_strict"]
LAMS = np.array([1e-3, 1e-1])


def bring(name):
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    return library.tensor if name == "torch" else library.asarray


@pytest.fixture(params=LIBRARIES)
def there(request):
    """From NumPy's arrays to those of a library."""
    return bring(request.param)


FORMS = [
    # features, kernel, intercept, scaling, weights, splitter
    (Nystrom(SIZE), Gaussian(0.5), True, "mean", "ones", KFold(4, shuffle=True, random_state=0)),
    (Fourier(SIZE), Laplace(0.4), False, "total", "random", KFold(3)),
    (Nystrom(SIZE, "pivoted"), Polynomial(0.3, 1.0, 2), True, "total", "some zero", KFold(4)),
    (
        Nystrom(SIZE, keep_landmarks=True), Gaussian(0.2), False, "mean", "random",
        ShuffleSplit(3, test_size=0.4, random_state=0),
    ),
]  # fmt: skip


def make(loss, task, form, bring=None):
    kind, kernel, fit_intercept, scaling, weights, cv = form
    X, y = sample(task, N)
    X[5] = X[6]  # a landmark that another one explains, perhaps
    s = np.ones(N) if weights == "ones" else np.random.default_rng(1).uniform(0.5, 2.0, size=N)
    if weights == "some zero":
        s[[4, 30]] = 0.0
    rows = X if bring is None else bring(X)
    K = get_approximation(kind).expand(kernel, rows, s)
    folds = Folds.draw(cv, X, None, None, classifier=False)
    y = y.astype(np.float64)[:, None]
    return Problem(K, y, s, loss, fit_intercept, scaling, definite=True), folds


def both(case, form, method, library, lams=LAMS):
    """Held-out values of the host and of a library's arrays."""
    for one in (None, bring(library)):
        problem, folds = make(*case, form, one)
        scaled = lams * (N if problem.scaling == "total" else 1.0)
        yield method().prepare(problem, folds).predict(scaled)


CASES = list(zip(LOSSES, cycle(FORMS), cycle(LIBRARIES[:1] * 2 + LIBRARIES[1:]), strict=False))


@pytest.mark.parametrize(("case", "form", "library"), CASES, ids=LOSS_IDS)
def test_heldout_values_of_every_loss_are_those_of_numpy(case, form, library):
    name = "gram" if case[0] == Squared() else "exact"
    wanted, found = both(case, form, FEATURE_METHODS[name], library)
    gap = np.abs(found.values - wanted.values)
    assert isinstance(found.values, np.ndarray)
    # steps end at different places within the bound of what counts as exact
    assert gap.max() <= 1e-8 + (0.0 if name == "gram" else 1e-7)
    bounds = np.repeat(found.bounds + wanted.bounds, np.diff(found.folds.offsets), axis=1)
    assert (gap <= bounds).all()
    assert np.array_equal(found.exact, wanted.exact)


@pytest.mark.parametrize("library", LIBRARIES)
def test_limits_are_those_of_numpy(library):
    wanted, found = both(LOSSES[1], FORMS[0], FEATURE_METHODS["limit"], library)
    assert np.abs(found.values - wanted.values).max() <= 1e-8
    assert np.array_equal(found.exact, wanted.exact)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("form", FORMS[:3], ids=["nystrom", "fourier", "pivoted"])
def test_leave_one_out_drops_the_landmark_that_a_row_is(form, library):
    form = (*form[:-1], LeaveOneOut())
    wanted, found = both(LOSSES[0], form, FEATURE_METHODS["gram"], library)
    gap = np.abs(found.values - wanted.values)
    assert gap.max() <= 1e-8 * np.abs(wanted.values).max()
    assert (gap <= found.bounds + wanted.bounds).all()


@pytest.mark.parametrize("case", [LOSSES[0], LOSSES[1]], ids=["squared", "huber"])
def test_features_that_are_not_kept_are_made_again_in_every_pass(case):
    method = FEATURE_METHODS["gram" if case[0] == Squared() else "exact"]
    problem, folds = make(*case, FORMS[0], bring("torch"))
    kept = method().prepare(problem, folds).predict(LAMS)
    assert linalg.is_elsewhere(problem.K.kept[0])
    assert problem.K.kept[0].shape == (N, problem.K.features.size)
    problem = replace(problem, K=replace(problem.K, keep_features=False))
    again = method().prepare(problem, folds).predict(LAMS)
    assert problem.K.kept[0] is problem.K.X
    assert np.abs(again.values - kept.values).max() <= 1e-9


def test_a_lam_below_rounding_has_a_reason(there):
    library = "torch" if "torch" in there.__module__ else "array_api_strict"
    lams = np.array([1e-30, 1e-2])
    wanted, found = both(LOSSES[0], FORMS[2], FEATURE_METHODS["gram"], library, lams)
    assert bool(found.reasons[0]) or not found.exact[0].all()
    assert not found.reasons[1]
    assert np.abs(found.values[1] - wanted.values[1]).max() <= 1e-8


ESTIMATORS = [(KernelRegressor, one) for one in REGRESSORS] + [
    (KernelClassifier, one) for one in CLASSIFIERS
]


@pytest.mark.parametrize(
    ("kind", "params", "name", "library"),
    [
        (*pair, *more)
        for pair, *more in zip(
            ESTIMATORS, cycle(["nystrom", "fourier"]), cycle(LIBRARIES), strict=False
        )
    ],
    ids=lambda one: str(one)[-40:],
)
def test_estimators_stay_where_the_data_are(kind, params, name, library):
    X, y = sample("regression" if kind is KernelRegressor else "classification", N)
    kinds = {"nystrom": Nystrom, "fourier": Fourier}
    machine = kind(gamma=0.5, lam=1e-2, approximation=kinds[name](SIZE), **params)
    answer = "predict" if kind is KernelRegressor else "decision_function"
    wanted = getattr(machine.fit(X, y), answer)(X)
    weights, there = machine.coef_, bring(library)
    found = machine.fit(there(X), there(y))
    assert all(linalg.is_elsewhere(one) for one in (found.coef_, getattr(found, answer)(there(X))))
    own = linalg.to_host(getattr(found, answer)(there(X)))
    assert np.abs(own - wanted).max() <= 1e-8
    assert np.abs(linalg.to_host(found.coef_) - weights).max() <= 1e-7
    assert machine.__sklearn_tags__().array_api_support


def test_single_precision_has_features_in_double(there):
    X, y = (one.astype(np.float32) for one in sample("regression", N))
    machine = KernelRegressor(approximation=Nystrom(SIZE), lam=1e-2)
    wanted = machine.fit(X, y).predict(X)
    found = machine.fit(there(X), there(y)).predict(there(X))
    assert linalg.to_host(found).dtype == np.float32
    assert np.abs(linalg.to_host(found) - wanted).max() <= 1e-5


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_a_search_on_a_named_device_comes_home(loss):
    pytest.importorskip("torch")
    kind, task = (KernelRegressor, "regression") if loss == "squared" else (
        KernelClassifier, "classification"
    )  # fmt: skip
    X, y = sample(task, N)
    grid = {"gamma": [0.2, 0.6], "lam": [1e-3, 1e-1]}
    machine = kind(loss=loss, approximation=Nystrom(SIZE))
    scoring = "neg_mean_squared_error" if loss == "squared" else None
    wanted = KernelSearchCV(machine, grid, cv=3, scoring=scoring).fit(X, y)
    search = KernelSearchCV(machine, grid, cv=3, scoring=scoring)
    with config_context(device="torch:cpu"):
        text = search.explain(X, y)
    assert "Plan on device cpu" in text
    shown = [line for line in text.splitlines() if "iB  " in line]
    names = {"gram", "refit"} if loss == "squared" else {"exact", "limit", "refit"}
    assert {line[2:].split()[0] for line in shown} == names
    (chosen,) = [line.split()[1] for line in shown if line.startswith(">")]
    assert chosen == ("gram" if loss == "squared" else "exact")
    found = search.fit(X, y)
    for name in ("mean_test_score", "exact"):
        np.testing.assert_allclose(found.cv_results_[name], wanted.cv_results_[name], atol=1e-8)
    assert found.best_params_ == wanted.best_params_
    assert isinstance(found.best_estimator_.coef_, np.ndarray)
    assert not found.best_estimator_.feature_map_._sent
    held = (heldout_predict(machine, one, y, cv=3) for one in (X, bring("torch")(X)))
    one, two = (found.predictions for found in held)
    assert np.abs(one - two).max() <= 1e-8


def test_what_needs_the_whole_matrix_is_refused_by_name():
    there = bring("torch")
    X, y = sample("regression", N)
    machine = KernelRegressor(approximation=Nystrom(SIZE))
    with pytest.raises(ValueError, match="method='race' works on the whole kernel matrix"):
        KernelSearchCV(machine, {"lam": [1e-2]}, method="race").fit(there(X), y)
    with pytest.raises(ValueError, match="'eigen' works on the whole kernel matrix"):
        heldout_predict(machine, there(X), y, method="eigen")
    with pytest.raises(ValueError, match="fitted with NumPy arrays"):
        machine.fit(X, y).predict(there(X))
    with pytest.raises(ValueError, match="not on that device"):
        machine.fit(there(X), y).predict(X)


def test_the_plan_knows_features():
    work = Workload(10**6, 20, (10**5,) * 10, features=2000)
    found = choose(work, "auto", CUDA_RATES, 1e11)
    assert found.method == "gram"
    assert 0.1 < found.seconds < 10.0
    other = Workload(10**5, 3, (10**4,) * 10, loss="log", quadratic=False, features=2000)
    assert choose(other, "auto", CUDA_RATES, 1e11).method == "exact"
    with pytest.raises(MemoryError, match="fewer features than 2000"):
        check_memory(work, found, 1e6, "device x")
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    with pytest.raises(MemoryError, match=r"where 2 GiB are free; use fewer features than 20000"):
        heldout_predict(KernelRegressor(approximation=Nystrom(20_000)), bring("torch")(X), X[:, 0])


def test_small_matrices(there):
    """One reduction for many shifts, bases of complements, and what is added to matrices."""
    random = np.random.default_rng(0)
    A, r = random.normal(size=(12, 12)), random.normal(size=(12, 2))
    A = A @ A.T
    shifts, xp = np.array([0.1, 3.0, -1e9]), arrays_of(there(A))
    for own, a, b in ((linalg.HOST, np.asfortranarray(A), r), (xp, there(A), there(r))):
        V, found = own.reduced(own.fortran_copy(a)).solve(shifts, own.fortran(b))
        assert found.tolist() == [True, True, False]
        V = own.host(V).reshape(12, 3, 2)
        for i in (0, 1):
            np.testing.assert_allclose(V[:, i], np.linalg.solve(A + shifts[i] * np.eye(12), r))
        basis = own.complement(r)
        Q = own.host(basis.vectors(own.asarray(np.eye(10))))
        np.testing.assert_allclose(Q.T @ Q, np.eye(10), atol=1e-14)
        np.testing.assert_allclose(Q.T @ r, 0.0, atol=1e-13)
        np.testing.assert_allclose(own.host(basis.congruent(a)), Q.T @ A @ Q, atol=1e-12)
        np.testing.assert_allclose(own.host(basis.coordinates(b)), Q.T @ r, atol=1e-12)
        np.testing.assert_allclose(own.row_norms(b), np.linalg.norm(r, axis=1))
        np.testing.assert_allclose(own.diagonal(a), np.diag(A))
        np.testing.assert_allclose(own.square_sums(a, r), A**2 @ r)
        other = own.fortran_copy(a)
        own.rank_one(other, own.asarray(r[:, 0]), own.asarray(r[:, 1]))
        own.add_diagonal(other, r[:, 0])
        wanted = A + np.outer(r[:, 0], r[:, 1]) + np.diag(r[:, 0])
        np.testing.assert_allclose(own.host(other), wanted)
