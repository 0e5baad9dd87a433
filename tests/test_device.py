"""Arrays of other libraries: the same numbers as NumPy's, and refusals that name what is missing.

array-api-strict runs everywhere and knows no operation beyond the standard; PyTorch's tensors on
the CPU are tested where PyTorch is installed (pip install 'onefit[gpu]').
"""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, heldout_predict, plan
from onefit.config import config_context, set_config
from onefit.folds import Folds
from onefit.heldout import Block, Eigen, Exact, Iterative
from onefit.kernels import (
    CallableKernel,
    Gaussian,
    Laplace,
    Linear,
    Lookup,
    Matern12,
    Matern32,
    Matern52,
    Normalized,
    OnColumns,
    PerFeature,
    Polynomial,
    PowerExponential,
    WeightedSum,
)
from onefit.linalg import HOST, arrays_of
from onefit.linalg.rates import CUDA_RATES
from onefit.losses import Squared, SquaredHinge
from onefit.problem import Problem

KERNELS = [
    Gaussian(0.3),
    Laplace(0.2),
    Matern12(0.4),
    Matern32(0.5),
    Matern52(0.5),
    Linear(),
    Polynomial(0.1, 1.0, 3),
    WeightedSum([Gaussian(0.1), Linear()], [1.0, 0.5]),
    Normalized(Polynomial(0.2, 1.0, 2)),
    PerFeature(Gaussian, [0.1, 0.2, 0.0]),
    PowerExponential(0.3, 2, 1.5),
    OnColumns(Gaussian(0.3), [2, 0]),
]
LAMS = np.logspace(-4, -1, 2)
N = 90


@pytest.fixture(params=["array_api_strict", "torch"])
def there(request):
    """From NumPy's arrays to those of a library."""
    library = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return library.tensor if request.param == "torch" else library.asarray


def home(x):
    return arrays_of(x).host(x)


def sample(n=N, dtype=np.float64):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3)) + 2.0
    X[7], X[9] = X[3], X[3] + 1e-7
    Y = np.stack([np.sin(X.sum(axis=1)) + 0.1 * random.normal(size=n), X[:, 0] ** 2], axis=1)
    return X.astype(dtype), Y.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: type(one).__name__)
def test_kernel_matrices_are_those_of_numpy(there, kernel, dtype):
    X, _ = sample(dtype=dtype)
    Z = X[:20] + dtype(0.3)
    Z[4] = X[11]
    K, own = kernel(X), home(kernel(there(X)))
    tol = 100.0 * np.finfo(dtype).eps * np.abs(K).max()
    assert own.dtype == dtype
    assert np.abs(own - K).max() <= tol
    assert np.abs(home(kernel(there(Z), there(X))) - kernel(Z, X)).max() <= tol
    assert np.abs(home(kernel.diag(there(X))) - kernel.diag(X)).max() <= tol
    if kernel.metrics != ("dot",):
        assert np.array_equal(own, own.T)


def test_tables_are_those_of_numpy(there):
    rows, table = np.array([[3.0], [0.0], [2.0]]), Gaussian(0.3)(sample()[0][:5])
    for kernel in (Lookup(table), WeightedSum([Lookup(table), Linear()], [1.0, 0.5])):
        assert np.array_equal(home(kernel(there(rows))), kernel(rows))
        assert np.array_equal(home(kernel(there(rows[:2]), there(rows))), kernel(rows[:2], rows))
        assert np.array_equal(home(kernel.diag(there(rows))), kernel.diag(rows))


def test_close_points_have_accurate_distances(there):
    X, _ = sample()
    X += 1e4
    for kernel in (Matern12(1e4), Matern12(1.0)):
        assert np.abs(home(kernel(there(X))) - kernel(X)).max() < 1e-10
    assert home(Matern12(1e4)(there(X)))[3, 7] == 1.0


def test_tiles_products_and_columns(there):
    X, Y = sample()
    K, whole = Gaussian(0.3).tiles(there(X)), Gaussian(0.3)(X)
    K.tile_rows = 32
    rows = np.array([5, 80, 2])
    for matrix in (K, Gaussian(0.3).tiles(there(X)).hold()):
        for precise in (False, True):
            assert np.allclose(home(matrix.matmul(there(Y), precise)), whole @ Y, rtol=1e-13)
        assert np.allclose(home(matrix.columns(rows)), whole[:, rows], atol=1e-14)
    assert np.allclose(home(K.hold().matrix), whole, atol=1e-14)
    assert K.row_sums().max() == pytest.approx(np.abs(whole).sum(axis=1).max())


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Polynomial(0.3, 1.0, 3)], ids=repr)
def test_precise_products_are_rounded_once(there, kernel):
    """Against rational numbers, with terms of very different sizes that cancel."""
    random = np.random.default_rng(0)
    X, _ = sample()
    V = random.normal(size=(N, 2)) * 10.0 ** random.uniform(-6, 6, size=(N, 1))
    K = kernel.tiles(there(X)).hold()
    K.tile_rows, held = 40, home(K.matrix)
    found = home(K.matmul(there(V), precise=True))
    for i, j in ((0, 0), (41, 1), (89, 0)):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(held[i], V[:, j], strict=True))
        size = np.abs(held[i]) @ np.abs(V[:, j])
        assert abs(found[i, j] - float(exact)) <= 2e-16 * abs(float(exact)) + 1e-19 * size


def problem(K, Y, s, fit_intercept=True, scaling="mean"):
    return Problem(K, Y, s, Squared(), fit_intercept, scaling, definite=True)


def draw(cv, X):
    return Folds.draw(cv, X, None, None, classifier=False)


CASES = [
    # kernel, intercept, scaling, weights, splitter
    (Gaussian(0.3), True, "mean", "ones", KFold(4, shuffle=True, random_state=0)),
    (Laplace(0.2), False, "total", "some zero", KFold(6)),
    (Matern32(0.4), True, "total", "random", ShuffleSplit(3, test_size=0.2, random_state=0)),
    (Polynomial(0.1, 1.0, 2), False, "mean", "random", KFold(3)),
    (WeightedSum([Gaussian(0.1), Linear()], [1.0, 0.1]), True, "mean", "some zero", KFold(5)),
]


METHODS = [Block(), Eigen(), Iterative(tol=1e-9)]
by_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: type(case[0]).__name__)


@by_method
@by_case
def test_heldout_values_are_those_of_numpy(there, case, method):
    """K is held, or formed tile by tile for a method that can do with that, in turn."""
    place = CASES.index(case) + ("torch" in there.__module__)
    check_heldout_values(there, case, method, place % 2 == 0 or not method.products_only)


@pytest.mark.slow
@by_case
@pytest.mark.parametrize("held", [True, False])
def test_iterations_are_those_of_numpy_held_or_not(there, case, held):
    check_heldout_values(there, case, METHODS[-1], held)


def check_heldout_values(there, case, method, held):
    """Values are those of the host, with bounds that hold."""
    kernel, fit_intercept, scaling, weights, cv = case
    X, Y = sample()
    s = np.ones(N) if weights == "ones" else np.random.default_rng(1).uniform(0.5, 2.0, size=N)
    if weights == "some zero":
        s[[4, 50]] = 0.0
    folds = draw(cv, X)
    lams = LAMS * (N if scaling == "total" else 1.0)
    wanted = Block().prepare(problem(kernel(X), Y, s, fit_intercept, scaling), folds).predict(lams)
    K = kernel.tiles(there(X))
    K.tile_rows = 40
    K = K.hold() if held else K
    found = method.prepare(problem(K, Y, s, fit_intercept, scaling), folds).predict(lams)
    gap = np.abs(found.values - wanted.values)
    assert isinstance(found.values, np.ndarray)
    assert gap.max() <= 1e-8 * np.abs(Y).max()
    # each bound holds against values with bounds of their own
    sizes = np.diff(folds.offsets)
    both = np.repeat(found.bounds + wanted.bounds, sizes, axis=1)
    assert (gap <= both).all()
    assert found.exact.all()


@pytest.mark.parametrize("method", [Block(), Eigen()], ids=lambda m: m.name)
def test_leave_one_out(there, method):
    X, Y = sample()
    folds = draw(LeaveOneOut(), X)
    wanted = method.prepare(problem(Gaussian(0.3)(X), Y, np.ones(N)), folds).predict(LAMS)
    K = Gaussian(0.3).tiles(there(X))
    found = method.prepare(problem(K, Y, np.ones(N)), folds).predict(LAMS)
    assert np.abs(found.values - wanted.values).max() < 1e-8


def test_preconditioner_saves_the_same_steps(there):
    X, Y = sample(330)
    folds, lams = draw(KFold(3), X), np.array([1e-5, 1e-3])
    found = []
    for K in (Gaussian(0.3).tiles(X), Gaussian(0.3).tiles(there(X)).hold()):
        method = Iterative(tol=1e-8).prepare(problem(K, Y, np.ones(330)), folds)
        assert method.low_rank.factor(np.array([1e-3]), np.array([0])).shape[1] > 0
        found.append(method.predict(lams))
    assert np.abs(found[0].values - found[1].values).max() < 1e-8
    assert np.abs(found[0].steps - found[1].steps).max() <= 3
    assert found[1].steps.max() < 40


def test_single_precision_is_iterated_in_it_and_certified_in_double(there):
    X, Y = sample(dtype=np.float32)
    folds, s = draw(KFold(4), X), np.ones(N, np.float32)
    lams = np.array([1e-3, 1e-1])
    K = Gaussian(0.3)(X)
    exact = Block().prepare(problem(K.astype(float), Y.astype(float), s.astype(float)), folds)
    found = Iterative().prepare(problem(Gaussian(0.3).tiles(there(X)), Y, s), folds).predict(lams)
    assert found.values.dtype == np.float32
    # another rounding of the entries of K is all that differs
    assert np.abs(found.values - exact.predict(lams).values).max() < 1e-3
    assert (found.error < 1e-4).all()


def test_single_precision_without_a_factor_is_solved_by_eigenvectors(there):
    X, _ = sample(n=12)
    K = np.ones((12, 12), np.float32)
    y, s = np.where(np.arange(12)[:, None] % 2, 1.0, -1.0), np.ones(12)
    folds, columns = draw(KFold(3), X), (y.astype(np.float32), s.astype(np.float32))
    for loss in (SquaredHinge(), Squared()):
        found = [
            Exact().prepare(Problem(one, *columns, loss), folds).predict(np.array([1e-9]))[0]
            for one in (K, there(K))
        ]
        gap = np.abs(found[0].values - found[1].values).max()
        assert gap <= found[0].error.max() + found[1].error.max()


@pytest.mark.parametrize("method", [Block(), Eigen()], ids=lambda m: m.name)
def test_splits_that_the_formula_does_not_serve_are_refitted(there, method):
    X, Y = sample()
    folds = draw(ShuffleSplit(2, test_size=0.7, random_state=0), X)
    K, one = Gaussian(0.3).tiles(there(X)), np.ones(N)
    found = method.prepare(problem(K, Y, one), folds).predict(LAMS)
    wanted = method.prepare(problem(Gaussian(0.3)(X), Y, one), folds).predict(LAMS)
    assert np.abs(found.values - wanted.values).max() < 1e-9
    assert found.exact.all()


@pytest.mark.parametrize("n", [50, 1100], ids=["whole", "halves"])
def test_triangular_inverse_and_other_matrices(there, n):
    random = np.random.default_rng(0)
    A = random.normal(size=(n, n))
    A = A @ A.T + n * np.eye(n)
    xp, b = arrays_of(there(A)), random.normal(size=(n, 2))
    L = np.linalg.cholesky(A)
    assert np.allclose(home(xp.triangular_inverse(there(L))), np.linalg.inv(L), atol=1e-13)
    assert np.allclose(home(xp.inverse_spd(there(A))), np.linalg.inv(A), atol=1e-13)
    assert np.allclose(home(xp.solve_spd(there(A), there(b))), np.linalg.solve(A, b), atol=1e-13)
    largest = np.linalg.eigvalsh(A)[-1]
    assert largest <= xp.norm_of_gram(there(L.T.copy())) <= 2.01 * largest
    with pytest.raises(np.linalg.LinAlgError):
        xp.cholesky(there(A - 4.0 * n * np.eye(n)))


def test_no_rows_have_a_factor_of_no_rows(there):
    """No point has curvature, for instance."""
    xp = arrays_of(there(np.eye(2)))
    assert xp.cholesky(there(np.empty((0, 0)))).shape == (0, 0)


def test_memory_that_pytorch_keeps_for_later_is_free(monkeypatch):
    torch = pytest.importorskip("torch")
    from onefit.linalg.torch_arrays import Torch

    own = Torch(torch, torch.device("cuda:0"))
    for name, value in {
        "mem_get_info": (50.0, 140.0), "memory_reserved": 88.0, "memory_allocated": 3.0,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, lambda _, value=value: value)
    assert own.room() == 50.0 + 88.0 - 3.0


def test_sums_of_columns_lose_nothing(there):
    random = np.random.default_rng(0)
    a = random.normal(size=(1001, 2)) * 10.0 ** random.integers(-12, 6, size=(1001, 2))
    a = random.permutation(np.concatenate([a, -a + 1e-9]))
    xp = arrays_of(there(a))
    wanted = HOST.column_sums(a)
    assert np.allclose(xp.column_sums(there(a)), wanted, rtol=1e-12, atol=0.0)


GRID = {"gamma": [0.1, 0.4], "lam": [1e-4, 1e-2]}


@pytest.mark.parametrize("method", ["auto", "iterative", "eigen"])
def test_search_and_winner_stay_where_the_data_are(there, method):
    X, Y = sample()
    s = np.random.default_rng(1).uniform(0.5, 2.0, size=N)
    search = KernelSearchCV(KernelRegressor(), GRID, cv=4, method=method)
    wanted = search.fit(X, Y[:, 0], sample_weight=s)
    scores, predicted = wanted.cv_results_["mean_test_score"], wanted.predict(X)
    found = search.fit(there(X), there(Y[:, 0]), sample_weight=there(s))
    assert np.abs(found.cv_results_["mean_test_score"] - scores).max() < 1e-8
    assert found.cv_results_["exact"].all()
    own = found.predict(there(X))
    assert type(own) is type(there(X)) is type(found.best_estimator_.dual_coef_)
    assert np.abs(home(own) - predicted).max() < 1e-8
    assert "Plan on device" in found.explain(there(X), there(Y[:, 0]))


@pytest.mark.parametrize("weights", ["ones", "some zero"])
def test_fits(there, weights):
    X, Y = sample()
    s = np.ones(N)
    if weights == "some zero":
        s[:3] = 0.0
    model = KernelRegressor(kernel="matern52", lam=1e-3)
    wanted = model.fit(X, Y, sample_weight=s).predict(X)
    found = model.fit(there(X), there(Y), sample_weight=there(s)).predict(there(X))
    assert np.abs(home(found) - wanted).max() < 1e-7


def test_one_column_is_enough_and_one_row_is_not(there):
    X, Y = sample()
    model, one = KernelRegressor(lam=1e-3), X[:, :1]
    wanted = model.fit(one, Y).predict(one)
    assert np.abs(home(model.fit(there(one), there(Y)).predict(there(one))) - wanted).max() < 1e-7
    with pytest.raises(ValueError, match="a minimum of 2 is required"):
        model.fit(there(X[:1]), there(Y[:1]))


def test_classifier_and_heldout_predictions(there):
    X, Y = sample()
    labels = np.where(Y[:, 0] > 0, "yes", "no")
    wanted = KernelClassifier().fit(X, labels)
    found = KernelClassifier().fit(there(X), labels)
    assert (
        np.abs(home(found.decision_function(there(X))) - wanted.decision_function(X)).max() < 1e-8
    )
    assert (found.predict(there(X)) == wanted.predict(X)).all()
    weights = np.linspace(0.5, 2.0, len(X))
    held = heldout_predict(KernelRegressor(), there(X), there(Y), sample_weight=there(weights))
    assert isinstance(held.sample_weight, np.ndarray)
    first = heldout_predict(KernelRegressor(), X, Y, sample_weight=weights).predictions
    other = held.predictions
    assert np.abs(first - other).max() < 1e-8


def test_smaller_tiles_where_memory_is_short_and_then_a_refusal(there):
    X = np.random.default_rng(0).normal(size=(2100, 2))
    v = np.cos(X[:, :1])
    K = Gaussian(0.3).tiles(there(X))
    tile, most = K.tile, 1500

    def small(rows, columns):
        found = tile(rows, columns)
        if max(found.shape) > most:
            raise MemoryError
        return found

    K.tile = small
    assert K.tile_rows > most
    assert np.allclose(home(K.matmul(there(v))), Gaussian(0.3)(X) @ v)
    assert K.tile_rows <= most
    most = 4
    with pytest.raises(MemoryError, match=r"kernel matrix of 2100 rows, .* GiB are free"):
        K.hold()


def test_what_is_not_computed_there_is_refused_by_name(there):
    X, Y = sample()
    A, y = there(X), Y[:, 0]

    with pytest.raises(TypeError, match="function of NumPy arrays"):
        KernelRegressor(kernel=lambda a, b: a @ b.T).fit(A, y)
    with pytest.raises(TypeError, match="function of NumPy arrays"):
        Normalized(OnColumns(CallableKernel(np.inner), [0])).tiles(A)
    with pytest.raises(TypeError, match="precomputed"):
        KernelRegressor(kernel="precomputed").fit(there(X @ X.T), y)
    with pytest.raises(TypeError, match="int64 on a device"):
        KernelSearchCV(KernelRegressor(), GRID).fit(there(X.astype(np.int64)), y)
    with pytest.raises(ValueError, match="NaN"):
        KernelRegressor().fit(there(np.where(X > 3.0, np.nan, X)), y)
    with pytest.raises(ValueError, match="fitted with NumPy arrays"):
        KernelRegressor().fit(X, y).predict(A)
    with pytest.raises(ValueError, match="not on that device"):
        KernelRegressor().fit(A, y).predict(X)


def test_devices_that_are_not_there():
    X, Y = sample()
    search = KernelSearchCV(KernelRegressor(), GRID)
    for name, words in (("gpu", "device='gpu' is not known"), ("cuda:77", "CUDA device")):
        with config_context(device=name), pytest.raises(ValueError, match=words):
            search.fit(X, Y)
    with config_context(device="cpu"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert search.fit(sp.csr_array(X), Y).best_score_ > 0.0


def test_the_device_of_a_process_and_of_a_context():
    X, Y = sample()
    search = KernelSearchCV(KernelRegressor(), GRID)
    set_config(device="gpu")
    try:
        with pytest.raises(ValueError, match="device='gpu' is not known"):
            search.fit(X, Y)
        with config_context(device=None):
            search.fit(X, Y)
    finally:
        set_config(device=None)
    assert search.fit(X, Y).best_score_ > 0.0


def test_arrays_of_two_devices_do_not_mix():
    strict = pytest.importorskip("array_api_strict")
    X, Y = sample()
    one, other = (strict.Device(name) for name in ("CPU_DEVICE", "device1"))
    A, y = strict.asarray(X, device=one), strict.asarray(Y[:, 0], device=other)
    with pytest.raises(ValueError, match="move both to one place"):
        KernelSearchCV(KernelRegressor(), GRID).fit(A, y)
    with pytest.raises(ValueError, match="move both to one place"):
        Gaussian(1.0)(A, strict.asarray(X, device=other))


def test_tensors_that_require_grad_are_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, Y = sample()
    with pytest.raises(ValueError, match="detach"):
        KernelRegressor().fit(torch.tensor(X, requires_grad=True), Y)


def work(n, lams=20, **more):
    return plan.Workload(n=n, lams=lams, removed=(n // 10,) * 10, **more)


def test_plan_takes_factors_for_few_rows_and_iterations_for_many():
    def choose(load, method="auto"):
        return plan.choose(load, method, CUDA_RATES, 140 * 2.0**30)

    assert choose(work(1000, 3)).method == "block"
    assert choose(work(20_000)).method == "iterative"
    large = choose(work(200_000))
    assert (large.method, large.tiled) == ("iterative", True)
    assert choose(work(20_000), "block").method == "block"
    with pytest.raises(ValueError, match="'block' works for the squared loss only"):
        choose(work(1000, quadratic=False, loss="huber"), "block")


def test_plan_refuses_what_does_not_fit_a_device():
    load = work(50_000)
    estimate = plan.choose(load, "block", CUDA_RATES, 2.0**30)
    with pytest.raises(MemoryError, match=r"needs 93.1 GiB on device x, where 1 GiB are free"):
        plan.check_memory(load, estimate, 2.0**30, "device x")
