"""cv="granularity": folds and order from the wanted accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, granularity
from onefit.search.journal import JournalError

X, y = make_classification(80, n_features=5, flip_y=0.2, random_state=0)
GRID = {"gamma": [0.1, 1.0], "lam": [0.125, 1.0, 8.0]}


def make(delta=0.01, grid=GRID, loss="smoothed_hinge", **options):
    machine = KernelClassifier(loss=loss, delta=delta, fit_intercept=False)
    return KernelSearchCV(machine, grid, **{"cv": "granularity"} | options)


@pytest.mark.parametrize(
    ("accuracy", "folds", "order"), [(0.2, 4, 2), (0.1, 5, 3), (0.05, 6, 4), (0.01, 16, 14)]
)
def test_is_the_papers_table(accuracy, folds, order):
    found = make(accuracy=accuracy).fit(X, y)
    assert (found.n_splits_, found.heldout_.order) == (folds, order)
    assert set(found.cv_results_["method"]) == {"influence"}
    same = make(cv=folds, method="influence", order=order).fit(X, y)
    for name in ("mean_test_score", "error"):
        np.testing.assert_array_equal(found.cv_results_[name], same.cv_results_[name])
    assert found.best_params_ == same.best_params_


def test_the_machines_own_delta_counts():
    found = make(delta=0.1).fit(X, y)
    assert (found.n_splits_, found.heldout_.order) == granularity(0.1, lam=1.0, delta=0.1) == (6, 4)
    grid = GRID | {"delta": [0.01, 0.1]}
    assert make(grid=grid).fit(X, y).n_splits_ == 6


def test_folds_are_stratified():
    ordered = np.argsort(y, kind="stable")
    folds = make().fit(X[ordered], y[ordered]).heldout_.folds
    parts = [y[ordered][rows].mean() for rows in folds.test]
    assert np.ptp(parts) <= 1.5 / (80 / 5)


def test_explain_knows_it(capsys):
    make().explain(X, y)
    assert "influence" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"accuracy": 0.05, "delta": 0.1}, r"not above delta/2=0.05.*larger accuracy, or delta"),
        ({"accuracy": -1.0}, "accuracy must be a positive"),
        ({"method": "exact"}, "leave both out"),
        ({"method": "influence", "order": 2}, "leave both out"),
        ({"loss": "squared"}, "use loss='smoothed_hinge'"),
        ({"cv": "granular"}, "cv"),
    ],
)
def test_bad_input(options, words):
    with pytest.raises(ValueError, match=words):
        make(**options).fit(X, y)


def test_a_regressor_is_refused():
    with pytest.raises(ValueError, match="is for the rounded hinge"):
        KernelSearchCV(KernelRegressor(), GRID, cv="granularity").fit(X, y)


def test_a_journal_of_exact_values_is_not_taken_for_it(tmp_path):
    make(cv=5, journal=tmp_path / "j").fit(X, y)
    with pytest.raises(JournalError, match="cv was absent"):
        make(journal=tmp_path / "j").fit(X, y)


# two classes of one size: at a large lam every row is on the straight part of the loss
EVEN = np.repeat([0, 1], 30)
Z = np.random.default_rng(0).normal(size=(60, 2)) + EVEN[:, None]


@pytest.mark.parametrize(
    "options", [{"cv": "granularity"}, {"cv": 5, "method": "influence", "order": 3}], ids=str
)
def test_no_row_in_the_corner_is_one_candidates_failure(options):
    machine = KernelClassifier(loss="smoothed_hinge", delta=0.01)
    grid = {"gamma": [0.1, 1.0], "lam": [1e-3, 1.0, 100.0]}
    search = KernelSearchCV(machine, grid, **options)
    with pytest.warns(UserWarning, match="4 of 6 candidates have no score"):
        search.fit(Z, EVEN)
    table = search.cv_results_
    flat = np.array([one["lam"] >= 1.0 for one in table["params"]])
    assert np.isnan(table["mean_test_score"][flat]).all()
    assert (table["rank_test_score"][flat] > 2).all()
    for params, reason in zip(np.array(table["params"])[flat], table["reason"][flat], strict=True):
        assert f"at lam={params['lam']:g} no point has curvature" in reason
    # the others are what they are alone
    alone = KernelSearchCV(machine, grid | {"lam": [1e-3]}, **options).fit(Z, EVEN)
    np.testing.assert_array_equal(
        table["mean_test_score"][~flat], alone.cv_results_["mean_test_score"]
    )
    assert search.best_params_ == alone.best_params_
    assert (table["reason"][~flat] == "").all()


def test_all_candidates_without_curvature_are_an_error():
    machine = KernelClassifier(loss="smoothed_hinge", delta=0.01)
    with pytest.raises(FloatingPointError, match="no point has curvature"):
        KernelSearchCV(machine, {"lam": [1.0, 100.0]}, cv="granularity").fit(Z, EVEN)


@pytest.mark.parametrize("criterion", ["kernel_stability", "influence_loo", "span"])
def test_criteria_refuse_candidates_without_curvature(criterion):
    """With +inf, as the near-identity guard does."""
    machine = KernelClassifier(loss="smoothed_hinge", delta=0.01)
    search = KernelSearchCV(machine, {"lam": [1e-3, 1.0]}, cv="granularity", criterion=criterion)
    with pytest.warns(UserWarning, match="1 of 2"):
        search.fit(Z, EVEN)
    np.testing.assert_array_equal(np.isinf(search.cv_results_["criterion"]), [False, True])
    assert "no point has curvature" in search.cv_results_["reason"][1]
    assert search.best_params_ == {"lam": 1e-3}
