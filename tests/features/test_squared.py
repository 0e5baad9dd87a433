"""k-fold of least squares in feature space, against honest refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from heldout._twins import FORMS, splits, weights

from features._twins import assert_equal_to_refits, feature_problem, rows_and_landmarks
from onefit.columns.fit import FitError
from onefit.features import held_out
from onefit.features.feature_gram import FeatureGram
from onefit.features.fourier import fourier_map
from onefit.features.held_out import GramFolds, PrimalExact
from onefit.folds import Folds, leave_one_out
from onefit.kernels import Gaussian
from onefit.losses import Huber, Squared

N = 90
SPLITS = {name: folds for name, folds in splits(N).items() if name != "loo"}
LAMS = np.array([1e-1, 1e-3, 1e-5])


def problem_of(form, keep=False, q=2, loss=None):
    fit_intercept, scaling, weight = form
    X, landmarks = rows_and_landmarks(N)
    random = np.random.default_rng(1)
    # far from zero, where an intercept that is not centred loses digits
    y = 50.0 + np.sin(X[:, 0]) + 0.2 * random.normal(size=N)
    Y = np.column_stack([y, X[:, 1] ** 2])[:, :q]
    s = weights(weight, N)
    return feature_problem(X, landmarks, Y, s, loss or Squared(), fit_intercept, scaling, keep=keep)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("keep", [False, True], ids=["no peeking", "kept"])
def test_every_split(split, keep):
    form = FORMS[(sorted(SPLITS).index(split) + 3 * keep) % len(FORMS)]
    problem, folds = problem_of(form, keep), SPLITS[split]
    path = GramFolds().prepare(problem, folds).predict(LAMS)
    assert_equal_to_refits(path, problem, folds)
    assert path.method == "gram"


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("keep", [False, True], ids=["no peeking", "kept"])
def test_every_form(form, keep):
    problem, folds = problem_of(form, keep), SPLITS["kfold"]
    path = GramFolds().prepare(problem, folds).predict(LAMS)
    assert_equal_to_refits(path, problem, folds)
    if form[1] == "mean":
        assert path.exact.all()


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_the_unit_of_weights_does_not_matter(unit):
    """Under mean scaling: weights may add up to one, or to less."""
    problem, folds = problem_of((True, "mean", "random")), SPLITS["kfold"]
    other = replace(problem, s=unit * problem.s)
    for split in (folds, leave_one_out(N)):
        one, same = (GramFolds().prepare(p, split).predict(LAMS) for p in (problem, other))
        np.testing.assert_allclose(same.values, one.values, atol=1e-8)


def test_landmarks_of_a_fold_make_a_difference():
    """What the no-peeking machines give is not what the others give."""
    folds = SPLITS["kfold"]
    both = [
        GramFolds().prepare(problem_of(FORMS[0], keep), folds).predict(LAMS).values
        for keep in (False, True)
    ]
    assert np.abs(both[0] - both[1]).max() > 1e-2


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("keep", [False, True], ids=["no peeking", "kept"])
def test_leave_one_out(form, keep):
    """Few single rows have a system each, many have one together."""
    problem, folds = problem_of(form, keep), leave_one_out(N)
    path = GramFolds().prepare(problem, folds).predict(LAMS)
    some = np.arange(0, N, 5)
    assert some.size <= held_out.MAX_SINGLE_ROW_REDUCTIONS < N
    part = Folds.from_pairs(N, [(folds.train[k], folds.test[k]) for k in some])
    other = GramFolds().prepare(problem, part).predict(LAMS)
    assert_equal_to_refits(other, problem, part)
    np.testing.assert_allclose(path.values[:, some], other.values, atol=1e-8)
    gap = np.abs(path.values[:, some] - other.values)
    assert (gap <= path.bounds[:, some] + other.bounds).all()
    assert (path.bounds > 0.0).all()  # of rows of weight zero, too


def test_a_lambda_below_rounding_fails_with_a_reason_and_the_others_go_on():
    problem = problem_of(FORMS[0])
    problem.K.features.factor[:] *= 1e-9  # features so large that 1e-300 is nothing beside them
    path = GramFolds().prepare(problem, SPLITS["kfold"]).predict(np.array([1e-300, 1e3]))
    assert path.reasons[1] == ""
    assert not path.exact[0].any()


@pytest.mark.parametrize("loss", [Squared(), Huber(1e3)], ids=repr)
def test_models_of_splits_below_rounding_are_refused(loss):
    """Not zeros, from which an interval would be made: more features than rows need a penalty."""
    problem = problem_of(FORMS[0], loss=loss)
    features = FeatureGram(problem.K.X, fourier_map(Gaussian(0.3), 3, 2 * N, 0, True))
    method = GramFolds() if problem.quadratic else PrimalExact()
    with pytest.raises(FitError, match="raise lam"):
        method.prepare(replace(problem, K=features), SPLITS["kfold"]).models(1e-300)


def test_other_losses_are_refused_by_name():
    with pytest.raises(ValueError, match="'gram' works for the squared loss only"):
        GramFolds().prepare(problem_of(FORMS[0], loss=Huber(1.0)), SPLITS["kfold"])
