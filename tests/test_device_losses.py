"""Every loss on a device: Newton's method by factors and products there, against NumPy and refits.

The registries are those of the host (tests/registries.py), sampled: every loss meets a method, an
intercept, a scaling, weights and a precision, not all of them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from registries import CLASSIFIERS, LOSS_IDS, LOSSES, REGRESSORS, sample
from sklearn.model_selection import KFold, ShuffleSplit

from onefit import KernelClassifier, KernelRegressor, heldout_predict
from onefit.columns.fit import SOLVERS, fit
from onefit.folds import Folds
from onefit.gram import DeviceGram
from onefit.heldout import METHODS, Refit
from onefit.kernels import Gaussian, Matern32
from onefit.linalg import arrays_of
from onefit.losses import SmoothedHinge
from onefit.problem import Problem

N = 48
LAMS = np.array([1e-3, 1e-1])
LIBRARIES = ["torch", "array_api_strict"]


def bring(name):
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    return library.tensor if name == "torch" else library.asarray


def home(x):
    return arrays_of(x).host(x)


#: what each loss meets in turn
FORMS = [
    # intercept, scaling, weights, splitter, kernel
    (True, "mean", "ones", KFold(4, shuffle=True, random_state=0), Gaussian(0.5)),
    (False, "total", "random", KFold(3), Matern32(0.7)),
    (True, "total", "some zero", KFold(5), Gaussian(0.5)),
    (True, "mean", "random", ShuffleSplit(3, test_size=0.6, random_state=0), Gaussian(0.2)),
]


def make(loss, task, form, there=None, dtype=np.float64):
    fit_intercept, scaling, weights, cv, kernel = form
    X, y = sample(task, N)
    s = np.ones(N) if weights == "ones" else np.random.default_rng(1).uniform(0.5, 2.0, size=N)
    if weights == "some zero":
        s[[4, 30]] = 0.0
    X, y, s = (one.astype(dtype) for one in (X, y, s))
    K = kernel(X) if there is None else kernel.tiles(there(X)).hold()
    folds = Folds.draw(cv, X, None, None, classifier=False)
    return Problem(K, y[:, None], s, loss, fit_intercept, scaling, definite=True), folds


def lams_of(problem):
    return LAMS * (N if problem.scaling == "total" else 1.0)


CASES = list(zip(LOSSES, cycle(FORMS), cycle(LIBRARIES[:1] * 4 + LIBRARIES[1:]), strict=False))


@pytest.mark.parametrize(("case", "form", "library"), CASES, ids=LOSS_IDS)
def test_exact_is_the_refit_of_numpy(case, form, library):
    check_refits(case, form, library, "exact", 1e-8)


@pytest.mark.parametrize(("case", "form", "library"), CASES[1::3], ids=LOSS_IDS[1::3])
def test_iterative_is_the_refit_of_numpy(case, form, library):
    """Every third loss; all of them with the slow tests."""
    check_refits(case, form, library, "iterative", 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("case", "form"), [one[:2] for one in CASES], ids=LOSS_IDS)
def test_iterative_is_the_refit_of_numpy_for_every_loss(case, form, library):
    check_refits(case, form, library, "iterative", 1e-6)


def check_refits(case, form, library, name, tolerance):
    """Values of a method on a device are those of honest refits on the host."""
    problem, folds = make(*case, form)
    there, _ = make(*case, form, bring(library))
    lams = lams_of(problem)
    wanted = Refit().prepare(problem, folds).predict(lams)
    found = METHODS[name]().prepare(there, folds).predict(lams)
    assert np.abs(found.values - wanted.values).max() <= tolerance * problem.scale.max()
    assert found.exact.all()
    assert isinstance(found.values, np.ndarray)


@pytest.mark.parametrize("name", ["limit", "refit", "influence"])
@pytest.mark.parametrize(("case", "form"), [(LOSSES[1], FORMS[0]), (LOSSES[-1], FORMS[2])])
def test_other_methods_are_those_of_numpy(name, case, form):
    there = bring("torch")
    (problem, folds), (other, _) = make(*case, form), make(*case, form, there)
    method = METHODS[name](2) if name == "influence" else METHODS[name]()
    lams = lams_of(problem)
    wanted, found = (method.prepare(one, folds).predict(lams) for one in (problem, other))
    assert np.abs(found.values - wanted.values).max() < 1e-9
    assert np.array_equal(found.exact, wanted.exact)


@pytest.mark.parametrize("place", [1, 7, 13, 17])
def test_single_precision_has_bounds_that_hold(place):
    case, form = LOSSES[place], FORMS[place % 3]
    problem, folds = make(*case, form, bring("torch"), np.float32)
    K, Y, s = (x.astype(np.float64) for x in (home(problem.K.matrix), problem.Y, problem.s))
    lams = lams_of(problem)
    honest = Refit().prepare(replace(problem, K=K, Y=Y, s=s), folds).predict(lams)
    found = METHODS["exact"]().prepare(problem, folds).predict(lams)
    assert found.values.dtype == np.float32
    gap = np.abs(found.values - honest.values).max(axis=(1, 2))
    assert (gap <= (found.bounds + honest.bounds).max(axis=(1, 2))).all()


def test_many_digits_are_those_of_the_host():
    """Tiny lam, where a bound needs predictions in nearly twice the digits."""
    problem, folds = make(*LOSSES[1], FORMS[0])
    # the very same matrix: at such a lam the last bit of an entry matters
    other = replace(problem, K=DeviceGram.keeping(bring("torch")(problem.K.matrix)))
    lams = np.array([1e-9])
    one, two = (METHODS["exact"]().prepare(p, folds).predict(lams) for p in (problem, other))
    assert np.abs(one.values - two.values).max() <= (one.bounds + two.bounds).max()
    assert two.bounds.max() <= 2.0 * one.bounds.max()


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers(solver):
    (problem, _), (other, _) = (make(*LOSSES[1], FORMS[0], one) for one in (None, bring("torch")))
    wanted = fit(problem, 1e-2)
    assert np.abs(fit(other, 1e-2, solver).u - wanted.u).max() < 1e-7


ESTIMATORS = [(KernelRegressor, one) for one in REGRESSORS] + [
    (KernelClassifier, one) for one in CLASSIFIERS
]


@pytest.mark.parametrize(("kind", "params"), ESTIMATORS, ids=lambda one: str(one)[-40:])
def test_estimators_stay_where_the_data_are(kind, params):
    torch = pytest.importorskip("torch")
    X, y = sample("regression" if kind is KernelRegressor else "classification", N)
    wanted = kind(gamma=0.5, lam=1e-2, **params).fit(X, y)
    found = kind(gamma=0.5, lam=1e-2, **params).fit(torch.tensor(X), torch.tensor(y))
    assert isinstance(found.dual_coef_, torch.Tensor)
    assert np.abs(home(found.dual_coef_) - wanted.dual_coef_).max() < 1e-6
    assert np.array_equal(found.support_, wanted.support_)
    name = "predict" if kind is KernelRegressor else "decision_function"
    mine, theirs = getattr(found, name)(torch.tensor(X)), getattr(wanted, name)(X)
    assert np.abs(home(mine) - theirs).max() < 1e-7


def test_heldout_predict_of_a_support_vector_machine():
    torch = pytest.importorskip("torch")
    X, y = sample("classification", N, classes=3)
    machine = KernelClassifier(loss="smoothed_hinge", gamma=0.5, lam=1e-2)
    wanted = heldout_predict(machine, X, y, cv=4)
    found = heldout_predict(machine, torch.tensor(X), torch.tensor(y), cv=4)
    assert found.method == wanted.method == "exact"
    assert np.abs(found.predictions - wanted.predictions).max() < 1e-8
    assert (found.labels == wanted.labels).all()


def test_folds_start_at_the_last_lambda():
    """On a device every step takes a factor: fewer steps than lambda by lambda, same values."""
    case = (SmoothedHinge(0.05), "classification")
    problem, folds = make(*case, FORMS[0], bring("torch"))
    lams = np.geomspace(1e-1, 1e-4, 7)
    found = METHODS["exact"]().prepare(problem, folds).predict(lams)
    alone = [METHODS["exact"]().prepare(problem, folds).predict(lams[[i]]) for i in range(7)]
    assert found.exact.all()
    expected = np.concatenate([one.values for one in alone])
    np.testing.assert_allclose(found.values, expected, atol=1e-6)
    assert found.steps[1:].sum() < sum(one.steps.sum() for one in alone[1:])
