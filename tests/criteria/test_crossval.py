"""Cross-validation and leave-one-out against refits."""

from __future__ import annotations

import numpy as np
import pytest

from onefit import KernelClassifier, KernelSearchCV
from onefit.criteria import CrossValidation, LeaveOneOut
from onefit.folds import Folds, leave_one_out
from onefit.heldout import Refit
from onefit.losses import Huber, SmoothedHinge, Squared

LOSSES = [Squared(), Huber(0.4), SmoothedHinge(0.3)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_cross_validation(make_problem, loss):
    problem = make_problem(loss, weighted=True)
    folds = Folds.draw(5, problem.K.matrix)  # 24 rows: folds of two sizes
    held = Refit().prepare(problem, folds).predict([0.02])[0]
    means = []
    for test, u in zip(folds.test, held.by_fold, strict=True):
        w = problem.s[test] / problem.s[test].sum()
        means.append(w @ loss.value(problem.Y[test, 0], u))
    assert CrossValidation().at(problem, 0.02, folds) == pytest.approx(np.mean(means), rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("judge", [None, "squared", "absolute", lambda y, u: (y - u) ** 4])
def test_loo(make_problem, loss, judge):
    problem = make_problem(loss)
    held = Refit().prepare(problem, leave_one_out(24)).predict([0.02])[0].predictions
    y = problem.Y[:, 0]
    value = {None: loss.value, "squared": lambda y, u: (y - u) ** 2}.get(judge)
    value = value or (judge if callable(judge) else lambda y, u: np.abs(y - u))
    assert LeaveOneOut(loss=judge).at(problem, 0.02) == pytest.approx(
        np.mean(value(y, held)), rel=1e-7
    )


def test_leave_one_out_splits():
    folds = leave_one_out(4)
    assert folds.is_partition
    np.testing.assert_array_equal(folds.train[2], [0, 1, 3])
    assert [rows.tolist() for rows in folds.removed] == [[0], [1], [2], [3]]
    assert len(list(folds)) == 4


def test_judging_labels(make_problem):
    problem = make_problem(SmoothedHinge(0.3))
    assert 0 < LeaveOneOut(loss="zero_one").at(problem, 0.02) < 0.5
    with pytest.raises(ValueError, match="labels -1 and"):
        LeaveOneOut(loss="hinge").at(make_problem(), 0.02)
    with pytest.raises(ValueError, match="did you mean 'absolute'"):
        LeaveOneOut(loss="absolut").at(make_problem(), 0.02)


def test_a_decision_of_zero_is_the_first_class(make_problem):
    """As in predict: with a kernel that has died away everything is, and half of that is wrong."""
    problem = make_problem(SmoothedHinge(0.3), intercept=False, gamma=1e6)
    wrong = np.mean(problem.Y > 0)
    assert 0.2 < wrong < 0.8
    assert LeaveOneOut(loss="zero_one").at(problem, 0.02) == wrong
    folds = Folds.draw(4, problem.K.matrix)
    parts = [np.mean(problem.Y[rows] > 0) for rows in folds.test]
    assert CrossValidation(loss="zero_one").at(problem, 0.02, folds) == pytest.approx(
        np.mean(parts)
    )


def test_zero_one_agrees_with_predict_and_with_the_scores():
    random = np.random.default_rng(0)
    X = 100.0 * random.normal(size=(40, 2))
    X[30:] = X[:10] + 0.01 * random.normal(size=(10, 2))  # ten pairs, twenty rows alone
    y = np.where(random.uniform(size=40) > 0.4, "b", "a")
    machine = KernelClassifier(loss="smoothed_hinge", gamma=1.0, fit_intercept=False)
    criterion = CrossValidation(loss="zero_one", guard=False)
    search = KernelSearchCV(machine, {"lam": [1e-2]}, cv=4, criterion=criterion).fit(X, y)
    zeros = search.heldout_.values == 0.0
    assert 0 < zeros.sum() < 40
    labels = [
        machine.fit(X[train], y[train]).predict(X[test]) for train, test in search.heldout_.folds
    ]
    wrong = np.mean(
        [np.mean(a != y[b]) for a, (_, b) in zip(labels, search.heldout_.folds, strict=True)]
    )
    assert search.cv_results_["criterion"][0] == pytest.approx(wrong)
    assert search.best_score_ == pytest.approx(1.0 - wrong)


def paper_errors(y, u):
    """I(y u) of the 2016 paper, equation 1: one where y u < 0, otherwise zero."""
    return np.array([1.0 if yi * ui < 0 else 0.0 for yi, ui in zip(y, u, strict=True)])


def test_a_decision_of_zero_is_right_in_the_paper():
    """Narrow kernels, no intercept: rows without a neighbour get exactly zero."""
    random = np.random.default_rng(0)
    X = 1e4 * random.normal(size=(40, 2))
    X[30:] = X[:10] + 0.3 * random.normal(size=(10, 2))
    y = np.where(random.uniform(size=40) > 0.4, 1.0, -1.0)
    machine = KernelClassifier(loss="smoothed_hinge", gamma=1.0, fit_intercept=False)
    problem, folds = machine._prepare(X, y, None), Folds.draw(4, X)
    held = Refit().prepare(problem, folds).predict([0.02])[0]
    assert 0 < np.count_nonzero(held.values == 0.0) < 40
    means = [paper_errors(y[b], u).mean() for (_, b), u in zip(folds, held.by_fold, strict=True)]
    found = CrossValidation(loss="negative_margin").at(problem, 0.02, folds)
    assert found == pytest.approx(np.mean(means))
    assert 0 < found < CrossValidation(loss="zero_one").at(problem, 0.02, folds)
    alone = Refit().prepare(problem, leave_one_out(40)).predict([0.02])[0].predictions
    assert LeaveOneOut(loss="negative_margin").at(problem, 0.02) == pytest.approx(
        paper_errors(y, alone).mean()
    )
    # in a search
    criterion = CrossValidation(loss="negative_margin", guard=False)
    search = KernelSearchCV(machine, {"lam": [0.02]}, cv=folds, criterion=criterion).fit(X, y)
    assert search.cv_results_["criterion"][0] == pytest.approx(found)


def test_the_two_error_rates_agree_where_no_decision_is_zero(make_problem, folds):
    problem = make_problem(SmoothedHinge(0.3))
    rates = [
        CrossValidation(loss=loss).at(problem, 0.02, folds)
        for loss in ("negative_margin", "zero_one")
    ]
    assert rates[0] == rates[1] > 0


def test_a_kernel_that_predicts_nothing_makes_no_error_in_the_paper(make_problem):
    problem = make_problem(SmoothedHinge(0.3), intercept=False, gamma=1e6)
    assert LeaveOneOut(loss="negative_margin").at(problem, 0.02) == 0.0
    with pytest.raises(ValueError, match=r"'negative_margin' is for labels -1 and \+1"):
        LeaveOneOut(loss="negative_margin").at(make_problem(), 0.02)
