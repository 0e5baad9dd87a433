"""Searches by the influence series: its order belongs to the method, folds to cv."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from onefit import KernelClassifier, KernelSearchCV, heldout_predict
from onefit.heldout import Influence
from onefit.journal import JournalError
from onefit.losses import SmoothedHinge

X, y = make_classification(80, n_features=5, flip_y=0.2, random_state=0)
GRID = {"gamma": [0.1, 1.0], "lam": [0.125, 1.0, 8.0]}


def make(order=3, **options):
    machine = KernelClassifier(loss=SmoothedHinge(0.01), fit_intercept=False)
    return KernelSearchCV(machine, GRID, method=Influence(order=order), **options)


@pytest.mark.parametrize(("folds", "order"), [(4, 2), (5, 3), (16, 14)])
def test_folds_and_order_of_table_1(folds, order):
    """epsilon-BIF by hand; values are those of the same folds, machine by machine."""
    found = make(order, cv=folds).fit(X, y)
    assert (found.n_splits_, found.heldout_.order) == (folds, order)
    assert set(found.cv_results_["method"]) == {"influence"}
    for i, params in enumerate(found.cv_results_["params"]):
        held = found.heldout(i)
        machine = clone(found.estimator).set_params(**params)
        alone = heldout_predict(machine, X, y, cv=folds, method=Influence(order=order))
        np.testing.assert_allclose(held.predictions, alone.predictions, rtol=1e-9, atol=1e-12)


def test_the_name_alone_is_the_default_order():
    one, two = (make(cv=4).set_params(method=m).fit(X, y) for m in ("influence", Influence()))
    assert one.heldout_.order == two.heldout_.order == Influence().order
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_explain_knows_it():
    assert "influence" in make().explain(X, y)


@pytest.mark.parametrize("name", ["order", "accuracy"])
def test_the_search_itself_takes_no_parameter_of_a_method(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        KernelSearchCV(KernelClassifier(), GRID, **{name: 1})


@pytest.mark.parametrize("name", ["order", "tail"])
def test_nor_does_heldout_predict(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        heldout_predict(KernelClassifier(), X, y, **{name: 1})


@pytest.mark.parametrize(
    ("options", "words"),
    [({"cv": "granularity"}, "cv"), ({"order": 0}, "whole number of at least 1")],
)
def test_bad_input(options, words):
    with pytest.raises(ValueError, match=words):
        make(**options).fit(X, y)


def test_a_journal_of_another_order_is_not_taken(tmp_path):
    make(2, journal=tmp_path / "j").fit(X, y)
    with pytest.raises(JournalError, match=r"method was .*order=2.* is .*order=3"):
        make(3, journal=tmp_path / "j").fit(X, y)


# two classes of one size: at a large lam every row is on the straight part of the loss
EVEN = np.repeat([0, 1], 30)
Z = np.random.default_rng(0).normal(size=(60, 2)) + EVEN[:, None]


def test_no_row_in_the_corner_is_one_candidates_failure():
    machine = KernelClassifier(loss=SmoothedHinge(0.01))
    grid = {"gamma": [0.1, 1.0], "lam": [1e-3, 1.0, 100.0]}
    search = KernelSearchCV(machine, grid, method="influence")
    with pytest.warns(UserWarning, match="4 of 6 candidates have no score"):
        search.fit(Z, EVEN)
    table = search.cv_results_
    flat = np.array([one["lam"] >= 1.0 for one in table["params"]])
    assert np.isnan(table["mean_test_score"][flat]).all()
    assert (table["rank_test_score"][flat] > 2).all()
    for params, reason in zip(np.array(table["params"])[flat], table["reason"][flat], strict=True):
        assert f"at lam={params['lam']:g} no point has curvature" in reason
    # the others are what they are alone
    alone = KernelSearchCV(machine, grid | {"lam": [1e-3]}, method="influence").fit(Z, EVEN)
    np.testing.assert_array_equal(
        table["mean_test_score"][~flat], alone.cv_results_["mean_test_score"]
    )
    assert search.best_params_ == alone.best_params_
    assert (table["reason"][~flat] == "").all()


def test_all_candidates_without_curvature_are_an_error():
    machine = KernelClassifier(loss=SmoothedHinge(0.01))
    with pytest.raises(FloatingPointError, match="no point has curvature"):
        KernelSearchCV(machine, {"lam": [1.0, 100.0]}, method="influence").fit(Z, EVEN)


@pytest.mark.parametrize("criterion", ["kernel_stability", "influence_loo", "span"])
def test_criteria_refuse_candidates_without_curvature(criterion):
    """With +inf, as the near-identity guard does."""
    machine = KernelClassifier(loss=SmoothedHinge(0.01))
    search = KernelSearchCV(machine, {"lam": [1e-3, 1.0]}, method="influence", criterion=criterion)
    with pytest.warns(UserWarning, match="1 of 2"):
        search.fit(Z, EVEN)
    np.testing.assert_array_equal(np.isinf(search.cv_results_["criterion"]), [False, True])
    assert "no point has curvature" in search.cv_results_["reason"][1]
    assert search.best_params_ == {"lam": 1e-3}
