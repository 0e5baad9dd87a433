"""A criterion of one's own takes the place of the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold

from onefit import KernelRegressor, KernelSearchCV

X, y = make_friedman1(30, random_state=0)
GRID = {"gamma": [0.2, 1.0], "lam": [1e-3, 1e-1, 10.0]}


@dataclass
class Absolute:
    """Mean absolute held-out error, with lambdas below a bound refused."""

    smallest: float = 0.0
    name = "absolute"

    def evaluate(self, evidence):
        rows = evidence.heldouts[0].folds.rows
        errors = np.array(
            [np.abs(evidence.problem.Y[rows] - held.values).mean() for held in evidence.heldouts]
        )
        refused = np.array(evidence.lams) < self.smallest
        assert evidence.kernel.gamma in GRID["gamma"]
        return np.where(refused, np.inf, errors), ["lam is too small" if r else "" for r in refused]


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("smallest", [0.0, 1.0])
def test_the_smallest_value_wins(smallest, n_jobs):
    search = KernelSearchCV(
        KernelRegressor(),
        GRID,
        cv=KFold(3, shuffle=True, random_state=0),
        criterion=Absolute(smallest),
        n_jobs=n_jobs,
    ).fit(X, y)
    lams = np.array([params["lam"] for params in search.cv_results_["params"]])
    values = [search.heldout(i).predictions for i in range(lams.size)]
    expected = np.abs(y - np.array(values)).mean(axis=1)
    expected[lams < smallest] = np.inf
    np.testing.assert_allclose(search.cv_results_["criterion"], expected)
    assert search.best_index_ == expected.argmin()
    assert search.cv_results_["rank_criterion"][search.best_index_] == 1
    assert search.best_score_ == search.cv_results_["mean_test_score"][search.best_index_]
    said = np.where(lams < smallest, "lam is too small", "")
    np.testing.assert_array_equal(search.cv_results_["reason"], said)


def test_a_criterion_that_refuses_everything():
    search = KernelSearchCV(KernelRegressor(), GRID, criterion=Absolute(1e3))
    with pytest.raises(ValueError, match=r"refused every candidate: lam is too small"):
        search.fit(X, y)


@dataclass
class Failing:
    """Numerics that fail for one kernel, or an error of the caller's."""

    error: Exception
    name = "failing"

    def check(self, problem):
        assert problem.n == 30

    def evaluate(self, evidence):
        if evidence.kernel.gamma == 1.0:
            raise self.error
        return np.array(evidence.lams), [""] * len(evidence.lams)


@pytest.mark.parametrize(
    "error", [np.linalg.LinAlgError("singular here"), FloatingPointError("overflow here")], ids=repr
)
def test_numerics_that_fail_are_a_reason(error):
    search = KernelSearchCV(KernelRegressor(), GRID, criterion=Failing(error)).fit(X, y)
    failed = np.array([one["gamma"] == 1.0 for one in search.cv_results_["params"]])
    assert np.isinf(search.cv_results_["criterion"][failed]).all()
    assert set(search.cv_results_["reason"][failed]) == {str(error)}
    assert np.isfinite(search.cv_results_["criterion"][~failed]).all()
    assert search.best_params_ == {"gamma": 0.2, "lam": 1e-3}


def test_errors_of_the_caller_are_not():
    with pytest.raises(ValueError, match="a bad argument"):
        KernelSearchCV(
            KernelRegressor(), GRID, criterion=Failing(ValueError("a bad argument"))
        ).fit(X, y)
