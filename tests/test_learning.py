import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit
from sklearn.model_selection import learning_curve as refitted
from watched import Refused

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.config import config_context
from onefit.learning import expanding_window, heldout_windows, learning_curve
from onefit.losses import EpsilonInsensitive, Huber, Quantile

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
U = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=60)


@pytest.mark.parametrize("scaling", ["mean", "total"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scoring", ["r2", "neg_median_absolute_error"])
def test_regression_equals_refits(scaling, fit_intercept, scoring):
    model = KernelRegressor(gamma=0.7, lam=0.05, scaling=scaling, fit_intercept=fit_intercept)
    sizes, train, test = refitted(
        model, X, U + 3.0, cv=KFold(4), train_sizes=np.linspace(0.2, 1, 5), scoring=scoring,
        shuffle=True, random_state=3,
    )  # fmt: skip
    curve = learning_curve(
        model, X, U + 3.0, cv=KFold(4), train_sizes=np.linspace(0.2, 1, 5), scoring=scoring,
        random_state=3,
    )  # fmt: skip
    np.testing.assert_array_equal(curve.train_sizes, sizes)
    np.testing.assert_allclose(curve.test_scores, test, atol=1e-8)
    np.testing.assert_allclose(curve.train_scores, train, atol=1e-8)


def decision_error(model, X, y):
    """Of the decision values themselves, which accuracy hardly depends on."""
    signs = np.where(np.asarray(y)[:, None] == model.classes_, 1.0, -1.0)
    u = model.decision_function(X)
    return -np.square(u - (signs if u.ndim > 1 else signs[:, 1])).mean()


@pytest.mark.parametrize("cuts", [[0.45], [0.4, 0.7]])
@pytest.mark.parametrize("scaling", ["mean", "total"])
@pytest.mark.parametrize("scoring", [decision_error, None])
def test_classification_equals_refits(cuts, scaling, scoring):
    y = np.digitize(U, np.quantile(U, cuts))
    model = KernelClassifier(loss="squared", gamma=0.7, lam=0.05, scaling=scaling)
    options = {"cv": 4, "train_sizes": [20, 45], "scoring": scoring, "random_state": 1}
    _, train, test = refitted(model, X, y, shuffle=True, **options)
    curve = learning_curve(model, X, y, **options)
    np.testing.assert_allclose(curve.test_scores, test, atol=1e-10)
    np.testing.assert_allclose(curve.train_scores, train, atol=1e-10)


@pytest.mark.parametrize("lam", [10.0, 1e-3, 1e-7, 1e-9])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_small_and_large_ridges_equal_refits(lam, fit_intercept):
    """A factor in single precision serves the large ones, and is of no use at the smallest."""
    Y = np.column_stack([U, 1e6 * X[:, 1] ** 2, np.zeros(60)])
    model = KernelRegressor(gamma=0.3, lam=lam, scaling="total", fit_intercept=fit_intercept)
    options = {"cv": KFold(3), "train_sizes": [5, 17, 40]}
    _, train, test = refitted(model, X, Y, shuffle=True, random_state=0, **options)
    curve = learning_curve(model, X, Y, random_state=0, **options)
    np.testing.assert_allclose(curve.test_scores, test, rtol=1e-6)
    np.testing.assert_allclose(curve.train_scores, train, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"lam": 1e-7}])
def test_many_rows_equal_refits(options):
    """Where iterations for all large parts pay, and at a small ridge, where they do not."""
    random = np.random.default_rng(1)
    rows = random.normal(size=(600, 3))
    Y = np.column_stack([rows[:, 0] ** 2 + random.normal(size=600), 1e3 * rows[:, 1] + 5.0])
    model = KernelRegressor(**{"gamma": 3.0, "lam": 0.1, **options})
    orders = {"cv": KFold(5), "train_sizes": [100, 300, 400, 450, 480]}
    _, train, test = refitted(model, rows, Y, shuffle=True, random_state=0, **orders)
    curve = learning_curve(model, rows, Y, random_state=0, **orders)
    np.testing.assert_allclose(curve.test_scores, test, atol=1e-8)
    np.testing.assert_allclose(curve.train_scores, train, atol=1e-8)


def test_all_orders_of_a_split_end_with_the_same_model():
    model = KernelRegressor(gamma=0.7, lam=0.05)
    curve = learning_curve(model, X, U, cv=KFold(3), n_permutations=2, random_state=0)
    np.testing.assert_allclose(curve.test_scores[-1, :3], curve.test_scores[-1, 3:], rtol=1e-12)
    expected = [clone(model).fit(X[a], U[a]).score(X[b], U[b]) for a, b in KFold(3).split(X)]
    np.testing.assert_allclose(curve.test_scores[-1, :3], expected, rtol=1e-9)


def test_single_precision_data_equal_refits():
    rows, targets = X.astype(np.float32), U.astype(np.float32)
    model = KernelRegressor(gamma=0.7, lam=0.3, scaling="total")
    options = {"cv": 4, "train_sizes": [10, 30]}
    _, _, test = refitted(model, rows, targets, shuffle=True, random_state=0, **options)
    curve = learning_curve(model, rows, targets, random_state=0, **options)
    np.testing.assert_allclose(curve.test_scores, test, atol=1e-3)


@pytest.mark.parametrize("scaling", ["mean", "total"])
@pytest.mark.parametrize(
    "loss", [Huber(0.3), Huber("mad"), EpsilonInsensitive(0.1, delta=0.05), Quantile([0.2, 0.8])]
)
def test_other_losses_of_a_regression_equal_refits(loss, scaling):
    model = KernelRegressor(loss, gamma=0.7, lam=0.05, scaling=scaling)
    options = {"cv": KFold(3), "train_sizes": [10, 25, 40]}
    _, train, test = refitted(model, X, U + 3.0, shuffle=True, random_state=0, **options)
    curve = learning_curve(model, X, U + 3.0, random_state=0, **options)
    np.testing.assert_allclose(curve.test_scores, test, atol=1e-5)
    np.testing.assert_allclose(curve.train_scores, train, atol=1e-5)
    assert curve.error <= 1e-6


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("loss", ["log", "smoothed_hinge"])
def test_other_losses_of_a_classification_equal_refits(loss, multi_class):
    y = np.digitize(U, np.quantile(U, [0.4, 0.7]))
    model = KernelClassifier(loss, gamma=0.7, lam=0.05, multi_class=multi_class)
    options = {"cv": 3, "train_sizes": [20, 38]}
    _, train, test = refitted(model, X, y, shuffle=True, random_state=1, **options)
    curve = learning_curve(model, X, y, random_state=1, **options)
    np.testing.assert_allclose(curve.test_scores, test, atol=1e-10)
    np.testing.assert_allclose(curve.train_scores, train, atol=1e-10)
    assert curve.error <= 1e-6


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("targets", [U + 3.0, np.column_stack([U, X[:, 1] ** 2])])
def test_one_step_ahead_residuals_are_those_of_refits(fit_intercept, targets):
    model = KernelRegressor(gamma=0.7, lam=0.3, scaling="total", fit_intercept=fit_intercept)
    found = expanding_window(model, X, targets).residuals
    for m in (2, 3, 20, 59):  # a fit needs two rows
        fitted = clone(model).fit(X[:m], targets[:m])
        expected = targets[m] - fitted.predict(X[m : m + 1])[0]
        np.testing.assert_allclose(found[m - 1], expected, atol=1e-10)


def log_density(K, y, fit_intercept):
    """Of y under a normal law with covariance s^2 K, the best s^2, and a flat prior on the mean.

    The flat prior is that on the coordinate along the constants; what is left are contrasts.
    """
    m = y.size
    if fit_intercept:
        basis = np.linalg.qr(np.column_stack([np.ones(m), np.eye(m)[:, 1:]]))[0][:, 1:]
        K, y = basis.T @ K @ basis, basis.T @ y
    scale = y @ np.linalg.solve(K, y) / y.size
    # the determinant of the contrasts is that of K times 1'K^-1 1 / m
    constant = 0.5 * np.log(m) if fit_intercept else 0.0
    return multivariate_normal(cov=scale * K).logpdf(y) - constant


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_evidence_is_the_density_of_the_targets(fit_intercept):
    model = KernelRegressor(gamma=0.7, lam=0.3, scaling="total", fit_intercept=fit_intercept)
    found = expanding_window(model, X, U + 3.0).log_evidence
    K = rbf_kernel(X, gamma=0.7) + 0.3 * np.eye(60)
    for m in (2, 15, 60):
        expected = log_density(K[:m, :m], U[:m] + 3.0, fit_intercept)
        np.testing.assert_allclose(found[m - 2], expected, rtol=1e-9)


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_a_constant_in_the_targets_changes_nothing(offset):
    model = KernelRegressor(gamma=0.7, lam=0.3, scaling="total")
    found, expected = (expanding_window(model, X, U + one) for one in (offset, 0.0))
    np.testing.assert_allclose(found.log_evidence, expected.log_evidence, atol=1e-13 * offset)
    np.testing.assert_allclose(found.residuals, expected.residuals, atol=1e-14 * offset)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("first", [3.1, 0.0])
def test_the_evidence_of_equal_targets_is_infinite(first, dtype):
    """Of targets that equal their mean, which the best scale of zero explains without error."""
    targets = np.where(np.arange(60) < 20, first, U).astype(dtype)
    model = KernelRegressor(gamma=0.7, lam=0.3, scaling="total")
    found = expanding_window(model, X.astype(dtype), targets).log_evidence
    assert (found[:19] == np.inf).all()
    assert np.isfinite(found[19:]).all()


@pytest.mark.parametrize("scaling", ["mean", "total"])
@pytest.mark.parametrize("gap", [0, 3])
def test_windows_of_a_regression_equal_refits(scaling, gap):
    model = KernelRegressor(gamma=0.7, lam=0.05, scaling=scaling)
    cv = TimeSeriesSplit(4, gap=gap)
    found = heldout_windows(model, X, U + 3.0, cv=cv)
    for mine, (train, test) in zip(found.by_fold, cv.split(X), strict=True):
        expected = clone(model).fit(X[train], U[train] + 3.0).predict(X[test])
        np.testing.assert_allclose(mine, expected, atol=1e-10)
    assert found.tested[0] == 12


def test_windows_of_many_rows_and_of_equal_training_parts_equal_refits():
    random = np.random.default_rng(1)
    rows = random.normal(size=(600, 3))
    y = rows[:, 0] ** 2 + random.normal(size=600)
    splits = [
        (np.arange(m), np.arange(first, first + 20))
        for m, first in [(500, 560), (100, 130), (500, 520), *((m, m) for m in range(400, 580, 10))]
    ]
    model = KernelRegressor(gamma=3.0, lam=0.1)
    found = heldout_windows(model, rows, y, cv=splits)
    for mine, (train, test) in zip(found.by_fold, splits, strict=True):
        expected = clone(model).fit(rows[train], y[train]).predict(rows[test])
        np.testing.assert_allclose(mine, expected, atol=1e-8)


def test_windows_of_every_row_are_the_residuals_one_step_ahead():
    """More models than are solved side by side."""
    random = np.random.default_rng(2)
    rows, y = random.normal(size=(150, 2)), random.normal(size=150)
    model = KernelRegressor(gamma=0.7, lam=0.3, scaling="total")
    splits = [(np.arange(m), [m]) for m in range(2, 150)]
    found = heldout_windows(model, rows, y, cv=splits)
    expected = expanding_window(model, rows, y).residuals[1:]
    np.testing.assert_allclose(y[2:] - found.values[:, 0], expected, atol=1e-8)


def test_windows_of_a_classification_equal_refits():
    y = np.array(["a", "b", "c"])[np.digitize(U, [-0.3, 0.5])]
    model = KernelClassifier("squared", gamma=0.7, lam=0.05)
    cv = TimeSeriesSplit(3)
    found = heldout_windows(model, X, y, cv=cv)
    for mine, (train, test) in zip(found.by_fold, cv.split(X), strict=True):
        fitted = clone(model).fit(X[train], y[train])
        np.testing.assert_allclose(mine, fitted.decision_function(X[test]), atol=1e-10)
        np.testing.assert_array_equal(found.labels[test], fitted.predict(X[test]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expanding_window(KernelRegressor(), X, U), "scaling='total'"),
        (lambda: expanding_window(KernelRegressor(Huber(1.0)), X, U), "loss='squared'"),
        (lambda: heldout_windows(KernelRegressor(Huber(1.0)), X, U, cv=TimeSeriesSplit(3)),
         "heldout_predict"),
        (lambda: heldout_windows(KernelRegressor(), X, U, cv=KFold(3)), "split 0"),
        (lambda: heldout_windows(KernelRegressor(), X, U, cv=TimeSeriesSplit(4, max_train_size=9)),
         "max_train_size"),
        (lambda: heldout_windows(KernelClassifier("squared"), X, np.arange(60) > 30,
                                 cv=TimeSeriesSplit(3)), "lack a class"),
        (lambda: expanding_window(KernelRegressor(kernel="linear", lam=1e-300, scaling="total"),
                                  np.ones((60, 2)), U), "raise lam"),
    ],
)  # fmt: skip
def test_windows_refuse_what_they_cannot_serve(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_search_lends_its_winner_and_permutations_widen_the_band():
    search = KernelSearchCV(KernelRegressor(gamma=0.7), {"lam": [1e-3, 1e-1]}).fit(X, U)
    curve = learning_curve(search, X, U, n_permutations=3, random_state=0)
    assert curve.test_scores.shape == (10, 15)
    for level in (0.8, 0.5):
        tails = [(1 - level) / 2, (1 + level) / 2]
        wanted = np.quantile(curve.test_scores, tails, axis=1)
        np.testing.assert_allclose(curve.band(level), wanted)
    np.testing.assert_array_equal(curve.band(), curve.band(0.8))


def test_groups_are_for_the_splitter():
    groups, model = np.arange(60) // 4, KernelRegressor(gamma=0.7, lam=0.05)
    found = learning_curve(model, X, U, cv=GroupKFold(3), groups=groups, random_state=0)
    splits = list(GroupKFold(3).split(X, U, groups))
    expected = learning_curve(model, X, U, cv=splits, random_state=0)
    np.testing.assert_array_equal(found.test_scores, expected.test_scores)


def test_the_error_is_the_largest_of_all_splits():
    model, splits = KernelRegressor(Huber(0.3), gamma=0.7, lam=1e-4), list(KFold(5).split(X))[::-1]
    errors = [
        learning_curve(model, X, U, cv=splits[:k], train_sizes=[48], random_state=0).error
        for k in range(1, 6)
    ]
    assert errors == sorted(errors)
    assert errors[-1] > errors[0] > 0.0


def test_windows_of_rows_in_any_order_equal_refits():
    model = KernelRegressor(gamma=0.7, lam=0.05)
    splits = [(np.arange(20), np.array([33, 25, 28])), (np.arange(40), np.array([59, 41]))]
    found = heldout_windows(model, X, U, cv=splits)
    for mine, (train, test) in zip(found.by_fold, splits, strict=True):
        expected = clone(model).fit(X[train], U[train]).predict(X[test])
        np.testing.assert_allclose(mine, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (KernelRegressor(), {"n_permutations": 0}, "n_permutations"),
        (KernelRegressor(), {"train_sizes": [1, 5]}, "train_sizes"),
        (KernelRegressor(), {"train_sizes": [0.5, np.nan]}, "train_sizes"),
        (KernelRegressor(), {"train_sizes": ["all"]}, "train_sizes"),
        (KernelRegressor(), {"cv": 60, "scoring": "r2"}, "undefined on a set of one row"),
        (KernelRegressor(approximation="nystrom"), {}, "approximation"),
        (KernelSearchCV(KernelRegressor(), {"lam": [1.0]}), {}, "fit the search first"),
        (
            KernelSearchCV(KernelRegressor(), {"lam": [1.0]}).fit(
                X, U, sample_weight=np.arange(60) % 2 + 1.0
            ),
            {},
            "search was fitted with sample_weight",
        ),
    ],
)
def test_refusals_say_what_to_do(model, options, message):
    with pytest.raises(ValueError, match=message):
        learning_curve(model, X, U, **options)


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_balanced_class_weights_are_refused_where_all_are_one(loss):
    """They are one on all rows, but not on the first rows of an order."""
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match="class_weight='balanced'; set class_weight=None"):
        learning_curve(KernelClassifier(loss, class_weight="balanced"), X, y)


def test_progress_is_a_line_for_each_order_of_a_split(capsys):
    learning_curve(KernelRegressor(), X, U, cv=2, n_permutations=2, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]


@pytest.mark.parametrize(
    "call",
    [
        learning_curve,
        expanding_window,
        lambda *data: heldout_windows(*data, cv=TimeSeriesSplit(3)),
        lambda model, X, y: learning_curve(model.set_params(loss=Huber(1.0)), X, y),
    ],
)
def test_what_does_not_fit_into_memory_is_refused_before_a_kernel_matrix_is_built(call):
    model = KernelRegressor(kernel=Refused(1.0), scaling="total", lam=1.0)
    refused = r"on n=60 rows needs .* a subsample of at most \d+ rows"
    with config_context(memory_bytes=8.0 * 60**2), pytest.raises(MemoryError, match=refused):
        call(model, X, U)
