"""What descents minimise, its derivative by differences, and the weights of a bank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

from onefit import KernelClassifier, KernelGradientSearchCV, KernelRegressor
from onefit.config import config_context
from onefit.criteria import KernelStability, kernel_stability
from onefit.kernels import Bank, Gaussian, Linear, Lookup
from onefit.losses import Squared
from onefit.search import Interval
from onefit.search.directions import make_direction
from onefit.search.in_memory import RowsInMemory
from onefit.search.objective import Objective
from onefit.search.setup import set_up

RANDOM = np.random.default_rng(1)
N = 48
X = RANDOM.normal(size=(N, 5))
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * RANDOM.normal(size=N)
LABELS = np.where(Y > 0.0, 1, -1)
BANK = [Gaussian(0.05), Gaussian(0.5), Gaussian(5.0), Linear()]
GAMMA, LAM = Interval(1e-3, 1e1, per_feature=True), Interval(1e-5, 1.0, points=4)
PLAIN = {"prior": False, "early_stopping": False}


def search(grid, estimator=None, **options):
    options = {"cv": KFold(4), "scoring": "neg_mean_squared_error"} | options
    return KernelGradientSearchCV(estimator or KernelRegressor(), grid, **options)


def objective(model, y=Y, metric="score", **params):
    """As the search makes it for its first candidate."""
    rows = RowsInMemory(model, X, y, params)
    setup, task = rows.setup, rows.task
    machine = setup.jobs[0].models[0]
    index = machine.indices[0]
    usual = None
    if "gamma" in setup.ranges[index]:
        usual = setup.candidates[index]
    task = replace(task, metric=metric)
    found = Objective(machine, task, setup.ranges[index], model, usual)
    return found, found.begin(setup.candidates[index])


def difference(found, x, step=1e-5):
    ends = [[found.evaluate(x + h * e)[0] for h in (step, -step)] for e in np.eye(x.size)]
    return np.array([(up - down) / (2 * step) for up, down in ends])


CASES = {
    "gammas": ({"gamma": GAMMA, "lam": LAM}, PLAIN),
    "k-KS": ({"gamma": GAMMA, "lam": LAM}, PLAIN | {"criterion": KernelStability(2.0)}),
    "prior": ({"gamma": GAMMA, "lam": LAM}, {"early_stopping": False}),
    "both": ({"gamma": GAMMA, "lam": LAM}, {}),
    "laplacian": (
        {"gamma": GAMMA, "lam": LAM, "kernel": ["laplacian"]},
        {"criterion": "kernel_stability"},
    ),
    "bank, p = 1": ({"kernel": Bank(BANK), "lam": LAM}, {}),
    "bank, p = 2": ({"kernel": Bank(BANK, 2), "lam": LAM}, {"criterion": KernelStability(0.5)}),
    "bank, p = 4": ({"kernel": Bank(BANK, 4), "lam": LAM}, {"scoring": "neg_mean_absolute_error"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    grid, options = CASES[name]
    found, x = objective(search(grid, **options))
    x = x + RANDOM.uniform(0.05, 0.3, size=x.size)
    value, slope, _ = found.evaluate(x)
    assert np.isfinite(value)
    np.testing.assert_allclose(slope, difference(found, x), rtol=1e-4, atol=1e-6 * abs(value))


@pytest.mark.parametrize("loss", ["squared", "smoothed_hinge", "log"])
@pytest.mark.parametrize("own", [None, "zero_one", "hinge"])
def test_derivatives_for_classes(loss, own):
    model = search(
        {"kernel": Bank(BANK), "lam": LAM}, KernelClassifier(loss=loss), scoring="accuracy",
        criterion=KernelStability(1.0, loss=own),
    )  # fmt: skip
    found, x = objective(model, LABELS)
    x = x + RANDOM.uniform(0.05, 0.3, size=x.size)
    value, slope, _ = found.evaluate(x)
    np.testing.assert_allclose(slope, difference(found, x), rtol=1e-3, atol=1e-5 * abs(value))


def test_k_ks_by_its_definition():
    """The mean squared error of refits, and eta / n times a maximum that is a little smoothed."""
    grid = {"gamma": GAMMA, "lam": LAM}
    found, x = objective(search(grid, **PLAIN, criterion=KernelStability(3.0)))
    params = found.params(x)
    machine = KernelRegressor(**params)
    error = -cross_val_score(machine, X, Y, cv=KFold(4), scoring="neg_mean_squared_error").mean()
    bound = 3.0 / N * kernel_stability(found.direction.matrix(x[:-1]))
    value = found.evaluate(x)[0]
    assert error + bound <= value * (1 + 1e-9)
    assert value <= error + N ** (1 / 64) * bound + 1e-9


TWO = np.column_stack([Y, X[:, 2]])
WEIGHTS = RANDOM.uniform(0.1, 3.0, N)


def weighted_error(model, X, y, sample_weight=None):
    """A scorer that the search knows nothing of."""
    return -mean_squared_error(y, model.predict(X), sample_weight=sample_weight)


@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", weighted_error])
@pytest.mark.parametrize("criterion", ["cv", KernelStability(3.0)])
def test_targets_and_weights_count_as_in_the_score(criterion, scoring):
    model = search({"gamma": GAMMA, "lam": LAM}, **PLAIN, criterion=criterion, scoring=scoring)
    found, x = objective(model, TWO, sample_weight=WEIGHTS)
    params = found.params(x)
    means = [
        np.average(
            (KernelRegressor(**params).fit(X[a], TWO[a], WEIGHTS[a]).predict(X[b]) - TWO[b]) ** 2,
            axis=0,
            weights=WEIGHTS[b],
        )
        for a, b in KFold(4).split(X)
    ]
    value, bound = found.evaluate(x)[0], 0.0
    if criterion != "cv":
        bound = 3.0 / N * kernel_stability(found.direction.matrix(x[:-1]))
    assert np.mean(means) + bound <= value * (1 + 1e-9)
    assert value <= np.mean(means) + N ** (1 / 64) * bound + 1e-9


def test_what_is_watched_is_not_followed():
    stopping = search({"gamma": GAMMA, "lam": LAM}, prior=False, early_stopping=True)
    found, x = objective(stopping)
    value, _, watched = found.evaluate(x)
    held = cross_val_predict(KernelRegressor(**found.params(x)), X, Y, cv=KFold(4))
    means = [np.mean((held[test] - Y[test]) ** 2) for _, test in KFold(4).split(X)]
    np.testing.assert_allclose([value, watched], [np.mean(means[::2]), np.mean(means[1::2])])


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_a_bank_is_learnt(p):
    found = search({"kernel": Bank(BANK, p), "lam": LAM}).fit(X, Y)
    scores = found.cv_results_["mean_test_score"]
    coarse = 5 * 4
    assert found.best_score_ >= scores[:coarse].max()
    kernel = found.best_params_["kernel"]
    bank = Bank(BANK, p).settled(X)
    assert np.linalg.norm(bank.weights_of(kernel), p) == pytest.approx(1.0)
    honest = cross_val_score(
        clone(found.best_estimator_), X, Y, cv=KFold(4), scoring="neg_mean_squared_error"
    )
    assert found.best_score_ == pytest.approx(honest.mean(), rel=1e-7)


def test_stability_chooses_what_it_says():
    """The winner has the least k-KS of all candidates, grid and ends alike."""
    eta = 4.0
    found = search({"kernel": Bank(BANK), "lam": LAM}, criterion=KernelStability(eta)).fit(X, Y)
    table = found.cv_results_
    assert found.best_index_ == np.argmin(table["criterion"])
    kernel = found.best_params_["kernel"]
    bound = eta / N * kernel_stability(kernel(X))
    assert table["criterion"][found.best_index_] == pytest.approx(-found.best_score_ + bound)
    assert all(descent.last <= descent.first for descent in found.descents_)


def test_eta_zero_is_cross_validation():
    grid = {"kernel": Bank(BANK), "lam": LAM}
    plain, zero = search(grid).fit(X, Y), search(grid, criterion=KernelStability(0.0)).fit(X, Y)
    assert plain.best_score_ == pytest.approx(zero.best_score_, rel=1e-10)


def test_a_bank_of_tables():
    rows, tables = np.arange(N)[:, None], Bank([Lookup(kernel(X)) for kernel in BANK])
    one = search({"kernel": Bank(BANK), "lam": LAM}).fit(X, Y)
    other = search({"kernel": tables, "lam": LAM}).fit(rows, Y)
    assert other.best_score_ == pytest.approx(one.best_score_, rel=1e-6)
    assert other.predict(rows).shape == (N,)


def test_identical_kernels_share_a_weight():
    found = search({"kernel": Bank([Gaussian(0.5)] * 3), "lam": LAM}).fit(X, Y)
    single = search({"kernel": Bank([Gaussian(0.5)]), "lam": LAM}).fit(X, Y)
    assert found.best_score_ == pytest.approx(single.best_score_, rel=1e-3)


def test_weights_all_zero_are_no_point():
    found, x = objective(search({"kernel": Bank(BANK), "lam": LAM}))
    value, slope, _ = found.evaluate(np.append(np.zeros(4), x[-1]))
    assert value == np.inf
    assert np.isfinite(slope).all()


def test_a_criterion_that_is_flat():
    """Targets that no kernel tells anything of: it ends at once, with a sound winner."""
    rng = np.random.default_rng(5)
    found = search({"kernel": Bank([Gaussian(1e6), Gaussian(1e7)]), "lam": LAM}).fit(
        X, rng.normal(size=N)
    )
    assert np.isfinite(found.best_score_)
    assert np.isfinite(found.best_params_["kernel"].weights).all()


def test_journalled_descents_are_not_repeated(tmp_path):
    """A descent that began again would be written down again."""
    grid, path = {"kernel": Bank(BANK), "lam": LAM}, tmp_path / "journal"
    first = search(grid, journal=path).fit(X, Y)
    written = {one.name: one.stat().st_mtime_ns for one in path.iterdir()}
    again = search(grid, journal=path).fit(X, Y)
    assert {one.name: one.stat().st_mtime_ns for one in path.iterdir()} == written
    assert again.best_score_ == first.best_score_
    assert [d.last for d in again.descents_] == [d.last for d in first.descents_]


@pytest.mark.parametrize(
    ("grid", "options", "words"),
    [
        ({"kernel": Bank(BANK), "gamma": Interval()}, {}, "'gamma' does nothing with kernel=Bank"),
        ({"kernel": Bank(BANK)}, {"criterion": "gcv"}, "follows the cross-validated score or k-KS"),
        (
            {"kernel": Bank(BANK)},
            {"criterion": KernelStability(1.0, loss=Squared().value)},
            "whose loss is a name or None",
        ),
    ],
)
def test_what_cannot_be(grid, options, words):
    with pytest.raises(ValueError, match=words):
        search(grid, **options).fit(X, Y)


def test_a_bank_too_large_for_the_memory():
    model = search({"kernel": Bank(BANK), "lam": LAM})
    setup = set_up(model, X, Y, None, {})
    words = "4 kernel matrices of the bank"
    with config_context(memory_bytes=1e4), pytest.raises(MemoryError, match=words):
        make_direction(setup.model, setup.sample, setup.ranges[0])
