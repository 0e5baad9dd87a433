"""Held-out values of any loss in feature space, against honest refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from heldout._twins import FORMS, splits, weights
from registries import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, sample
from sklearn.base import clone
from sklearn.model_selection import KFold

from features._twins import assert_equal_to_refits, feature_problem, honest, rows_and_landmarks
from onefit import KernelClassifier, KernelRegressor, heldout_predict
from onefit.features import Nystrom
from onefit.features.held_out import GramFolds, PrimalExact, PrimalLimit
from onefit.folds import Folds, leave_one_out
from onefit.gram import DenseGram
from onefit.heldout import Refit
from onefit.losses import EpsilonInsensitive, Huber, Log, Quantile, SmoothedHinge, Squared

N = 90
SPLITS = splits(N)
NAMES = ["kfold", "repeated", "time", "shuffle", "trained rows", "predefined"]
CASES = [(loss, "regression") for loss in REGRESSION_LOSSES[1:]] + [
    (loss, "classification") for loss in CLASSIFICATION_LOSSES[1:]
]


def problem_of(loss, task, form, keep=False, q=1):
    fit_intercept, scaling, weight = form
    X, landmarks = rows_and_landmarks(N)
    _, y = sample(task, n=N, d=3, seed=0)
    y = np.sign(X[:, 0] + 0.5 * np.roll(X[:, 1], 1)) if task == "classification" else y
    Y = np.column_stack([np.roll(y, 3 * j) for j in range(q)]).astype(float)
    return feature_problem(
        X, landmarks, Y, weights(weight, N), loss, fit_intercept, scaling, keep=keep
    )


def lams_of(problem):
    lams = np.array([1e-1, 1e-3])
    return lams * (N if problem.scaling == "total" else 1.0)


@pytest.mark.parametrize("keep", [False, True], ids=["no peeking", "kept"])
@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda i: repr(CASES[i][0]))
def test_every_loss(case, keep):
    loss, task = CASES[case]
    form, folds = FORMS[(case + keep) % len(FORMS)], SPLITS[NAMES[case % len(NAMES)]]
    problem = problem_of(loss, task, form, keep)
    path = PrimalExact().prepare(problem, folds).predict(lams_of(problem))
    # an exact value is one within 1e-6, and as near as that the iteration goes
    assert_equal_to_refits(path, problem, folds, tolerance=1e-6)
    assert path.exact.all()


@pytest.mark.parametrize("loss", [Huber(0.3), Log(), SmoothedHinge(0.5)], ids=repr)
def test_the_limit_is_one_step_and_its_bound_holds(loss):
    task, folds = loss.task, SPLITS["kfold"]
    problem = problem_of(loss, task, FORMS[0], q=2)
    limit = PrimalLimit().prepare(problem, folds).predict(np.array([1e-1, 1e-3]))
    values, bounds = honest(problem, folds, limit.lams)
    gap = np.abs(limit.values - values).max(axis=2)
    for k in range(len(folds)):
        assert (gap[:, folds.place(k)].max(axis=1) <= limit.error[:, k] + bounds[:, k]).all()
    assert limit.method == "limit"
    assert (limit.steps == 1).all()
    exact = PrimalExact().prepare(problem, folds).predict(limit.lams)
    assert (exact.error <= limit.error).all()
    # near enough to be useful
    assert gap[0].mean() < 0.2 * np.abs(values[0]).mean()


@pytest.mark.parametrize(
    "loss", [Huber(), Quantile((0.2, 0.7)), EpsilonInsensitive(0.05)], ids=repr
)
def test_every_split_has_a_width_of_its_own(loss):
    """Outliers in one fold widen the loss of the splits that train on them, not of the other."""
    q = 2 if isinstance(loss, Quantile) else 1
    problem, folds, lams = problem_of(loss, "regression", FORMS[0]), SPLITS["kfold"], [1e-3, 1e-1]
    Y = np.repeat(problem.Y, q, axis=1)
    Y[folds.test[0]] *= 30.0
    weights = np.random.default_rng(0).choice([0.2, 5.0], size=problem.n)
    problem = replace(problem, Y=Y, s=weights)
    path = PrimalExact().prepare(problem, folds).predict(np.array(lams))
    assert path.exact.all()
    limit = PrimalLimit().prepare(problem, folds).predict(np.array(lams))
    for k, (train, test) in enumerate(zip(folds.train, folds.test, strict=True)):
        s = np.zeros(problem.n)
        s[train] = problem.s[train]
        own = problem.with_loss(replace(problem, s=s).resolved.loss)
        alone = Folds.from_pairs(problem.n, [(train, test)])
        known = PrimalExact().prepare(own, alone).predict(np.array(lams))
        place, scale = folds.place(k), problem.scale
        np.testing.assert_allclose(path.values[:, place], known.values, atol=2e-6 * scale.max())
        gap = np.abs(limit.values[:, place] - known.values).max(axis=(1, 2))
        assert (gap <= limit.error[:, k] + known.error[:, 0]).all()


def test_too_many_splits_are_refused():
    problem = problem_of(Huber(0.3), "regression", FORMS[0])
    with pytest.raises(ValueError, match="1001 splits"):
        PrimalExact().prepare(problem, leave_one_out(1001))


def balanced(s):
    """A negligible function, and as many rows of each class: any intercept between is as good."""
    problem = problem_of(SmoothedHinge(1e-3), "classification", FORMS[0])
    Y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)[:, None]
    pairs = [(np.delete(np.arange(N), np.arange(i, i + 10)), np.arange(i, i + 10)) for i in (0, 30)]
    return replace(problem, Y=Y, s=s), Folds.from_pairs(N, pairs)


PAIRS = np.repeat(np.random.default_rng(0).uniform(0.1, 1.0, N // 2), 2)


@pytest.mark.parametrize("s", [np.ones(N), np.full(N, 0.3), PAIRS], ids=["1", "0.3", "pairs"])
def test_a_flat_intercept_is_in_the_middle(s):
    problem, folds = balanced(s)
    path = PrimalExact().prepare(problem, folds).predict(np.array([1e6, 10.0]))
    assert path.exact.all()
    assert_equal_to_refits(path, problem, folds, tolerance=1e-6)
    limit = PrimalLimit().prepare(problem, folds).predict(np.array([1e6]))
    assert limit.exact.all()


def test_slopes_that_cancel_up_to_rounding_have_no_bound():
    """The value is that of the middle, as of refits."""
    problem, folds = balanced(1.0 + 1e-15 * (np.arange(N) % 2))
    values, _ = honest(problem, folds, np.array([1e6]))
    for method in (PrimalLimit(), PrimalExact()):
        path = method.prepare(problem, folds).predict(np.array([1e6]))
        assert not path.exact.any()
        np.testing.assert_allclose(path.values, values, atol=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.25, 0.3])
def test_flat_quantiles_are_those_of_the_whole_kernel_matrix(level):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 2)), random.normal(size=40)
    model = KernelRegressor(Quantile(level, 1e-4), gamma=0.5, lam=10.0)
    whole = clone(model).fit(X, y)
    found = clone(model).set_params(approximation=Nystrom(40)).fit(X, y)
    assert found.intercept_ == pytest.approx(whole.intercept_, abs=1e-10)
    assert (found.error_ < 1e-9) == (whole.error_ < 1e-9) == (level != 0.3)


@pytest.mark.parametrize("seed", [2, 8, 23])
def test_steps_that_end_at_an_end_of_a_flat_interval(seed):
    """All rows are landmarks, so that the values are those of the whole kernel matrix."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(40, 2)), random.permutation(np.arange(40) % 3)
    model = KernelClassifier(SmoothedHinge(1e-3), gamma=0.5, lam=0.2, multi_class="ovo")
    cv = KFold(4, shuffle=True, random_state=0)
    whole = heldout_predict(model, X, y, cv=cv, method="exact")
    features = clone(model).set_params(approximation=Nystrom(40))
    found = heldout_predict(features, X, y, cv=cv, method="exact")
    assert found.exact.all()
    np.testing.assert_allclose(found.values, whole.values, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", [Squared(), Huber(0.3)], ids=repr)
def test_a_split_that_holds_out_every_landmark_has_the_intercept_alone(loss, fit_intercept):
    X, _ = rows_and_landmarks(N)
    _, y = sample("regression", n=N, d=3, seed=0)
    s, lams = weights("random", N), np.array([1e-2])
    problem = feature_problem(X, np.arange(3), y[:, None], s, loss, fit_intercept, "mean")
    folds = Folds(N, [np.arange(30, N)], [np.arange(30)])
    method = GramFolds() if problem.quadratic else PrimalExact()
    path = method.prepare(problem, folds).predict(lams)
    nothing = replace(problem, K=DenseGram(np.zeros((N, N))))
    honest = Refit().prepare(nothing, folds).predict(lams)
    np.testing.assert_allclose(path.values, honest.values, atol=1e-8)
    assert path.exact.all()
