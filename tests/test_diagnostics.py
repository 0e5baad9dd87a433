"""Influence functions against finite differences of fits with sample weights."""

from __future__ import annotations

import numpy as np
import pytest
from registries import CLASSIFIERS, REGRESSORS, sample
from sklearn.base import clone

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, heldout_predict
from onefit.diagnostics import asymptotic_variance, cv_loo_stability, influence
from onefit.folds import leave_one_out
from onefit.heldout import Influence
from onefit.losses import EpsilonInsensitive, Huber, MissingDerivativeError, get_loss

N = 16
LAM = 0.05


def machine(task, parameters, **options):
    cls = KernelRegressor if task == "regression" else KernelClassifier
    return cls(**parameters, gamma=0.5, lam=LAM, **options)


def decision(model, X):
    return model.predict(X) if isinstance(model, KernelRegressor) else model.decision_function(X)


def mixed(weight, i, eps):
    """Weights of (1 - eps) P + eps Delta_i; the mass stays what it was."""
    out = (1.0 - eps) * weight
    out[i] += eps * weight.sum()
    return out


def differences(model, X, y, i, at, weight=None, precomputed=None):
    """The first derivatives in eps of predictions by a polynomial through several fits, by order.

    None where training points change their piece.
    """
    weight = np.ones(len(y)) if weight is None else weight
    K_train, K_at = (X, at) if precomputed is None else precomputed
    for radius in (0.004, 0.002, 0.001, 0.0004):
        nodes = radius * np.cos(np.pi * (np.arange(8) + 0.5) / 8)
        fits = [clone(model).fit(K_train, y, sample_weight=mixed(weight, i, eps)) for eps in nodes]
        if same_pieces(fits, K_train, y):
            break
    else:
        return None
    values = np.array([decision(fit, K_at) for fit in fits])
    powers = np.vander(nodes / radius, increasing=True)
    flat = np.linalg.solve(powers, values.reshape(8, -1))
    shape = values.shape[1:]
    return {k: k * flat[k].reshape(shape) / radius**k for k in (1, 2)}


def same_pieces(fits, X, y):
    """Whether no training point changes its piece from one fit to another."""
    loss = fits[0]._make_loss()
    labels = y if isinstance(fits[0], KernelRegressor) else np.where(y == y.max(), 1.0, -1.0)
    u = np.array([decision(fit, X) for fit in fits])
    pieces = loss.piece(np.broadcast_to(labels, u.shape), u)
    return (pieces == pieces[0]).all()


EVERY = [("regression", p) for p in REGRESSORS] + [("classification", p) for p in CLASSIFIERS]


@pytest.mark.parametrize(("task", "parameters"), EVERY, ids=[f"{t}-{p['loss']}" for t, p in EVERY])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False, "scaling": "total"}])
def test_against_finite_differences(task, parameters, options):
    X, y = sample(task, n=N, seed=1)
    at = sample(task, n=5, seed=2)[0]
    model = machine(task, parameters, **options)
    if options.get("scaling") == "total":
        model.set_params(lam=LAM * N)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N)
    rows = {i: differences(model, X, y, i, np.vstack([X, at]), weight) for i in (0, 3, 9, 15)}
    rows = {i: expected for i, expected in rows.items() if expected is not None}
    assert len(rows) >= 2
    for order in (1, 2):
        here = influence(model, X, y, order=order, sample_weight=weight)
        there = influence(model, X, y, order=order, at=at, sample_weight=weight)
        assert here.shape == (N, N)
        assert there.shape == (N, 5)
        scale = np.abs(here).max()
        for i, expected in rows.items():
            np.testing.assert_allclose(here[i], expected[order][:N], atol=1e-5 * scale)
            np.testing.assert_allclose(there[i], expected[order][N:], atol=1e-5 * scale)


@pytest.mark.parametrize("scaling", ["mean", "total"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("loss", ["log", "squared_hinge"])
def test_class_weights_against_finite_differences(loss, order, scaling):
    """Mass that moves to a row brings the weight of its class with it."""
    X, y = sample("classification", n=N, seed=1)
    lam, weight = LAM * (N if scaling == "total" else 1), np.linspace(0.5, 2.0, N)
    first, second = np.unique(y)
    model = KernelClassifier(loss, gamma=0.5, lam=lam, scaling=scaling)
    model.set_params(class_weight={first: 1.0, second: 5.0})
    found = influence(model, X, y, order=order, sample_weight=weight)
    rows = [np.flatnonzero(y == first)[0], np.flatnonzero(y == second)[0]]
    for i in rows:
        expected = differences(model, X, y, i, X, weight)[order]
        np.testing.assert_allclose(found[i], expected, atol=1e-5 * np.abs(expected).max())
        point = (X[i], y[i])
        beside = influence(model, X, y, order=order, sample_weight=weight, point=point)
        np.testing.assert_allclose(beside, found[i], rtol=1e-8, atol=1e-11)
    if order == 1:
        squares = [differences(model, X, y, i, X, weight)[1] ** 2 for i in range(N)]
        variance = asymptotic_variance(model, X, y, sample_weight=weight)
        np.testing.assert_allclose(variance, np.average(squares, axis=0, weights=weight), rtol=1e-4)


def test_jmlr_equation_8():
    """S^-1 ((y_i - f(x_i)) K_i - lam f), without an intercept."""
    X, y = sample("regression", n=N)
    model = KernelRegressor(gamma=0.5, lam=LAM, fit_intercept=False)
    K = model.fit(X, y).kernel_(X)
    f = model.predict(X)
    S = LAM * np.eye(N) + K / N
    expected = np.linalg.solve(S, (y - f)[None, :] * K - LAM * f[:, None]).T
    np.testing.assert_allclose(influence(model, X, y), expected, rtol=1e-9, atol=1e-12)
    # and equation 9 for the second order
    second = 2.0 * (
        np.linalg.solve(S, K / N) @ expected.T
        - np.diagonal(expected)[None, :] * np.linalg.solve(S, K)
    )
    np.testing.assert_allclose(influence(model, X, y, order=2), second.T, rtol=1e-8, atol=1e-11)


def test_precomputed_kernels():
    X, y = sample("regression", n=N)
    at = sample("regression", n=6, seed=5)[0]
    model = KernelRegressor(loss=Huber(0.3), gamma=0.5, lam=LAM)
    kernel = clone(model).fit(X, y).kernel_
    plain = clone(model).set_params(kernel="precomputed", gamma="scale")
    np.testing.assert_allclose(
        influence(plain, kernel(X), y), influence(model, X, y), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(
        influence(plain, kernel(X), y, at=kernel(at, X)),
        influence(model, X, y, at=at), rtol=1e-8, atol=1e-10,
    )  # fmt: skip


def test_several_targets_are_each_their_own():
    X, y = sample("regression", n=N)
    Y = np.column_stack([y, np.roll(y, 4), X[:, 0]])
    model = KernelRegressor(loss=Huber(0.3), gamma=0.5, lam=LAM)
    both = influence(model, X, Y, order=2)
    assert both.shape == (N, N, 3)
    for j in range(3):
        alone = influence(model, X, Y[:, j], order=2)
        np.testing.assert_allclose(both[:, :, j], alone, rtol=1e-8, atol=1e-9)


def test_several_classes():
    X, y = sample("classification", n=24, classes=3)
    pull = influence(KernelClassifier(loss="log", gamma=0.5, lam=LAM), X, y, at=X[:4])
    assert pull.shape == (24, 4, 3)
    assert np.isfinite(pull).all()


def test_one_more_copy_of_a_point():
    """To first order, eps of mass moved to a point moves predictions by eps times its influence."""
    X, y = sample("regression", n=N)
    model = KernelRegressor(loss="logistic", gamma=0.5, lam=LAM)
    pull = influence(model, X, y)
    eps = 1e-4
    before = clone(model).fit(X, y).predict(X)
    after = clone(model).fit(X, y, sample_weight=mixed(np.ones(N), 7, eps)).predict(X)
    np.testing.assert_allclose((after - before) / eps, pull[7], rtol=1e-2, atol=1e-3)


def test_an_outlier_stands_out_and_a_bounded_loss_holds_it_back():
    X = np.linspace(0, 5, 40)[:, None]
    y = np.sin(X).ravel()
    y[20] += 3.0
    squared = np.abs(influence(KernelRegressor(gamma=1.0, lam=1e-2), X, y)).max(axis=1)
    assert squared.argmax() == 20
    assert squared[20] > 3.0 * np.delete(squared, 20).max()
    huber = KernelRegressor(loss=Huber(0.1), gamma=1.0, lam=1e-2)
    held = np.abs(influence(huber, X, y)).max(axis=1)
    y[20] += 1000.0
    further = np.abs(influence(huber, X, y)).max(axis=1)
    np.testing.assert_allclose(further[20], held[20], rtol=1e-6)
    assert held[20] < 0.2 * squared[20]


def test_the_estimator_is_left_alone():
    X, y = sample("regression", n=N)
    model = KernelRegressor(gamma=0.5)
    influence(model, X, y)
    assert not hasattr(model, "X_fit_")


def test_influences_of_a_sample_add_up_to_nothing():
    """The derivative in the direction of the sample itself is zero."""
    X, y = sample("regression", n=N)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N)
    for parameters in REGRESSORS:
        pull = influence(machine("regression", parameters), X, y, sample_weight=weight)
        np.testing.assert_allclose(weight @ pull, 0.0, atol=1e-8 * np.abs(pull).max() * N)


@pytest.mark.parametrize("order", [0, -2, 1.0, None])
def test_orders_that_are_none(order):
    X, y = sample("regression", n=N)
    with pytest.raises(ValueError, match="order must be a whole number of at least 1"):
        influence(KernelRegressor(), X, y, order=order)


def test_bad_input():
    X, y = sample("regression", n=N)
    with pytest.raises(ValueError, match=r"order=3 .*method='limit'"):
        influence(KernelRegressor(loss="logistic"), X, y, order=3)
    weight = np.ones(N)
    weight[3] = 0.0
    with pytest.raises(ValueError, match="sample_weight must be positive on every row"):
        influence(KernelRegressor(), X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="features"):
        influence(KernelRegressor(), X, y, at=np.ones((2, 7)))


def test_a_users_loss_without_a_third_derivative():
    from onefit.losses import Logistic

    members = {k: getattr(Logistic, k) for k in ("value", "gradient", "curvature", "piece")}
    plain = {"name": "mine", "task": "regression", "piecewise_quadratic": False}
    mine = type("Mine", (), {**members, **plain})()
    X, y = sample("regression", n=N)
    theirs = influence(KernelRegressor(loss=mine, gamma=0.5), X, y)
    ours = influence(KernelRegressor(loss="logistic", gamma=0.5), X, y)
    np.testing.assert_allclose(theirs, ours, rtol=1e-9)
    with pytest.raises(MissingDerivativeError, match="'third'"):
        influence(KernelRegressor(loss=mine), X, y, order=2)


SMOOTH = [("regression", {"loss": name}) for name in ("squared", "logistic")]
SMOOTH += [("classification", {"loss": "log"})]


@pytest.mark.parametrize(
    ("task", "parameters", "weighted"),
    [(task, p, p["loss"] != "logistic") for task, p in SMOOTH],
    ids=[p["loss"] for _, p in SMOOTH],
)
def test_asymptotic_variance_by_its_definition(task, parameters, weighted):
    """The integral of the squared derivative, every derivative by differences of refits."""
    X, y = sample(task, n=N, seed=1)
    at = sample(task, n=4, seed=2)[0]
    model = machine(task, parameters)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N) if weighted else np.ones(N)
    squares = [differences(model, X, y, i, at, weight)[1] ** 2 for i in range(N)]
    expected = np.average(squares, axis=0, weights=weight)
    given = {"sample_weight": weight} if weighted else {}
    found = asymptotic_variance(model, X, y, at=at, **given)
    assert found.shape == (4,)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert asymptotic_variance(model, X, y).shape == (N,)


def test_asymptotic_variance_of_a_location():
    """Only the intercept is left: the mean has the variance, M-estimates mean psi^2 / (psi')^2."""
    y = np.random.default_rng(0).standard_t(3, size=80)
    X = np.arange(80.0)[:, None]
    squared = asymptotic_variance(KernelRegressor(lam=1e10), X, y)
    np.testing.assert_allclose(squared, y.var(), rtol=1e-6)
    huber = KernelRegressor(loss=Huber(0.5), lam=1e10)
    psi = np.clip(y - clone(huber).fit(X, y).predict(X), -0.5, 0.5)
    slope = np.mean(np.abs(psi) < 0.5)
    expected = np.mean(psi**2) / slope**2
    np.testing.assert_allclose(asymptotic_variance(huber, X, y), expected, rtol=1e-6)
    assert expected < 0.8 * y.var()  # robust, hence efficient at heavy tails


def spread_over_samples(loss, n, draws):
    """n times the variance over independent samples, in units of what is claimed, at 5 points."""
    random = np.random.default_rng(5)
    model = KernelRegressor(loss=Huber(0.4) if loss == "huber" else loss, gamma=0.5, lam=0.02)
    at = np.linspace(-1.5, 1.5, 5)[:, None]
    values, claimed = [], []
    for i in range(draws):
        X = random.uniform(-2, 2, size=(n, 1))
        y = np.sin(2 * X[:, 0]) + 0.5 * random.normal(size=n)
        values.append(clone(model).fit(X, y).predict(at))
        if i % 10 == 0:
            claimed.append(asymptotic_variance(model, X, y, at=at))
    return n * np.var(values, axis=0) / np.mean(claimed, axis=0)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_asymptotic_variance_is_that_of_many_samples(loss):
    """Loosely: 200 samples tell a variance to a tenth, and 60 rows are not many."""
    ratio = spread_over_samples(loss, 60, 200)
    assert (np.abs(np.log(ratio)) < 0.5).all()
    assert abs(np.log(ratio.mean())) < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_asymptotic_variance_is_that_of_many_large_samples(loss):
    ratio = spread_over_samples(loss, 500, 600)
    assert (np.abs(np.log(ratio)) < 0.2).all()
    assert abs(np.log(ratio.mean())) < 0.1


def test_asymptotic_variance_of_several_targets():
    X, y = sample("regression", n=N)
    model = KernelRegressor(gamma=0.5, lam=LAM)
    both = asymptotic_variance(model, X, np.column_stack([y, X[:, 0]]), at=X[:3])
    assert both.shape == (3, 2)
    np.testing.assert_allclose(both[:, 0], asymptotic_variance(model, X, y, at=X[:3]), rtol=1e-8)
    weight = np.ones(N)
    weight[0] = 0.0
    with pytest.raises(ValueError, match="sample_weight must be positive on every row"):
        asymptotic_variance(model, X, y, sample_weight=weight)


def honest_stability(model, X, y, *losses, weight=None):
    """Equation 2 by n refits, for several losses."""
    rows = np.arange(len(y))
    weight = np.ones(len(y)) if weight is None else weight
    full = decision(clone(model).fit(X, y, sample_weight=weight), X)
    changes = []
    for i in rows[weight > 0]:
        rest = rows != i
        left = clone(model).fit(X[rest], y[rest], sample_weight=weight[rest])
        u = decision(left, X[[i]])[0]
        changes.append([abs(value(y[i], full[i]) - value(y[i], u)) for value in losses])
    return np.max(changes, axis=0)


@pytest.mark.parametrize(("task", "parameters"), EVERY, ids=[f"{t}-{p['loss']}" for t, p in EVERY])
def test_cv_loo_stability_by_refits(task, parameters):
    X, y = sample(task, n=N, seed=1)
    # every option occurs with half of the losses
    loss = get_loss(parameters["loss"], task).name
    plain = loss in ("squared", "epsilon_quadratic", "smoothed_hinge")
    options = {} if plain else {"fit_intercept": False, "scaling": "total"}
    model = machine(task, parameters, **options)
    margins = task == "classification" and loss != "squared"
    level = loss in ("quantile", "expectile")
    own = model._make_loss().value if margins or level else lambda y, u: abs(y - u)
    expected = honest_stability(model, X, y, own, lambda y, u: (y - u) ** 2)
    found = [cv_loo_stability(model, X, y), cv_loo_stability(model, X, y, loss="squared")]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_cv_loo_stability_with_weights():
    X, y = sample("regression", n=N)
    weight = np.where(np.arange(N) % 5 == 0, 0.0, np.linspace(0.5, 2.0, N))
    model = KernelRegressor(gamma=0.5, lam=LAM)
    expected = honest_stability(model, X, y, lambda y, u: abs(y - u), weight=weight)[0]
    assert cv_loo_stability(model, X, y, sample_weight=weight) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("order", [1, 5])
@pytest.mark.parametrize("loss", ["squared", Huber(0.3)])
def test_cv_loo_stability_from_influence_functions(loss, order):
    """The series with its tail, and near the exact value at a large lam."""
    X, y = sample("regression", n=N)
    model = KernelRegressor(loss=loss, gamma=0.5, lam=LAM)
    found = cv_loo_stability(model, X, y, order=order)
    method = Influence(order, tail=True)
    u = heldout_predict(model, X, y, cv=list(leave_one_out(N)), method=method).predictions
    full = np.abs(y - clone(model).fit(X, y).predict(X))
    assert found == pytest.approx(np.abs(full - np.abs(y - u)).max(), rel=1e-6)
    assert found == pytest.approx(cv_loo_stability(model, X, y), rel=0.05)


def test_the_mean_is_stable_if_no_row_is_far_off():
    """The paper's example: |mean - mean without i| = |y_i - mean| / (n - 1)."""
    X, y = sample("regression", n=N)
    for shift in (0.0, 1000.0):
        y[0] += shift
        expected = np.abs(y - y.mean()).max() / (N - 1)
        assert cv_loo_stability(KernelRegressor(lam=1e10), X, y) == pytest.approx(expected)


def test_bad_input_of_cv_loo_stability():
    X, y = sample("regression", n=N)
    with pytest.raises(ValueError, match="at least three of positive weight, got 2"):
        cv_loo_stability(KernelRegressor(), X[:2], y[:2])
    with pytest.raises(ValueError, match="order must be a whole number of at least 1"):
        cv_loo_stability(KernelRegressor(), X, y, order=0)
    with pytest.raises(ValueError, match="order=3"):
        cv_loo_stability(KernelRegressor(loss="logistic"), X, y, order=3)
    with pytest.raises(ValueError, match="did you mean 'absolute'"):
        cv_loo_stability(KernelRegressor(), X, y, loss="absolut")
    with pytest.raises(ValueError, match=r"'hinge' is for labels -1 and \+1"):
        cv_loo_stability(KernelRegressor(), X, y, loss="hinge")


OUTSIDE = np.array([0.4, -0.9])


def contaminated(model, X, y, point, eps):
    """The model of (1 - eps) P_n + eps Delta_z, with a row more."""
    x, target = point
    weight = np.append(np.full(len(y), 1.0 - eps), eps * len(y))
    return clone(model).fit(np.vstack([X, x]), np.append(y, target), sample_weight=weight)


@pytest.mark.parametrize(("task", "parameters"), EVERY, ids=[f"{t}-{p['loss']}" for t, p in EVERY])
def test_a_point_outside_the_sample_against_a_little_mass_on_it(task, parameters):
    X, y = sample(task, n=N, seed=1)
    model = machine(task, parameters)
    point = (OUTSIDE, 1.7 if task == "regression" else 1)
    eps = 1e-6
    fits = [contaminated(model, X, y, point, mass) for mass in (0.0, eps)]
    assert decision(fits[0], X) == pytest.approx(decision(clone(model).fit(X, y), X), abs=1e-9)
    expected = (decision(fits[1], X) - decision(fits[0], X)) / eps
    pull = influence(model, X, y, point=point)
    assert pull.shape == (N,)
    np.testing.assert_allclose(pull, expected, atol=2e-3 * np.abs(pull).max())
    there = influence(model, X, y, at=X[:3], point=point)
    np.testing.assert_allclose(there, pull[:3], rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_a_copy_of_a_training_point_has_its_influence(order):
    X, y = sample("regression", n=N)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N)
    for parameters in REGRESSORS:
        model = machine("regression", parameters)
        every = influence(model, X, y, order=order, sample_weight=weight)
        one = influence(model, X, y, order=order, sample_weight=weight, point=(X[4], y[4]))
        np.testing.assert_allclose(one, every[4], atol=1e-7 * np.abs(every).max())


def test_second_order_of_a_point_outside():
    X, y = sample("regression", n=N)
    model = KernelRegressor("logistic", gamma=0.5, lam=LAM)
    point, eps = (OUTSIDE, 2.5), 1e-3
    fits = [contaminated(model, X, y, point, mass).predict(X) for mass in (0.0, eps, 2 * eps)]
    expected = (fits[2] - 2 * fits[1] + fits[0]) / eps**2
    found = influence(model, X, y, order=2, point=point)
    np.testing.assert_allclose(found, expected, atol=2e-2 * np.abs(found).max())


def test_jmlr_figure_1():
    """Moving the target of a point away: the pull of squares grows with it, Huber's stays."""
    X, y = sample("regression", n=N)
    tube = EpsilonInsensitive(delta=0.3)
    for loss, bounded in (("squared", False), (Huber(0.3), True), (tube, True)):
        model = KernelRegressor(loss, gamma=0.5, lam=LAM)
        near, far = (np.abs(influence(model, X, y, point=(OUTSIDE, t))).max() for t in (10.0, 1e4))
        assert far == pytest.approx(near, rel=1e-9) if bounded else far > 500.0 * near


def test_a_fitted_search_stands_for_its_winner():
    X, y = sample("regression", n=N)
    search = KernelSearchCV(KernelRegressor(gamma=0.5), {"lam": [0.01, 0.1]}, cv=4)
    with pytest.raises(ValueError, match="influence needs a fitted search: fit the search"):
        influence(search, X, y)
    search.fit(X, y)
    np.testing.assert_array_equal(influence(search, X, y), influence(search.best_estimator_, X, y))


def test_bad_points():
    X, y = sample("regression", n=N)
    with pytest.raises(ValueError, match=r"point must be a pair \(x, y\)"):
        influence(KernelRegressor(), X, y, point=[1.0, 2.0])
    with pytest.raises(ValueError, match="features"):
        influence(KernelRegressor(), X, y, point=(np.ones(5), 2.0))
    with pytest.raises(ValueError, match=r"needs the rows themselves, .*or add the row to X"):
        influence(KernelRegressor(kernel="precomputed"), X @ X.T, y, point=(X[0], 2.0))
    X, y = sample("classification", n=N)
    with pytest.raises(ValueError, match="point has the label 7, which no row of y has"):
        influence(KernelClassifier(), X, y, point=(X[0], 7))
    with pytest.raises(TypeError, match="influence needs a KernelRegressor or KernelClassifier"):
        influence(object(), X, y)
