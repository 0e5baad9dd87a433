"""Probabilities from held-out values, against CalibratedClassifierCV on the same splits."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GroupKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks
from watched import Counted

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.decide import CalibratedKernelClassifier
from onefit.decide.calibrate import heldout_probabilities

X, y = load_breast_cancer(return_X_y=True)
X, y = scale(X)[:200, :6], np.array(["ill", "well"], dtype=object)[y[:200]]
Z, three = load_iris(return_X_y=True)
Z, three = Z + 0.4 * np.random.default_rng(0).normal(size=Z.shape), np.array(list("abc"))[three]
CV = StratifiedKFold(5, shuffle=True, random_state=0)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, y.size)


@pytest.mark.parametrize(
    ("loss", "method", "rows", "labels", "weight"),
    [
        ("squared", "sigmoid", X, y, None),
        ("smoothed_hinge", "isotonic", X, y, WEIGHT),
        ("squared_hinge", "sigmoid", Z, three, None),
        ("log", "isotonic", X, y, None),
        ("squared", "isotonic", Z, three, None),
        ("smoothed_hinge", "sigmoid", X, y, WEIGHT),
    ],
)
def test_equal_to_scikit_learns_by_refits(loss, method, rows, labels, weight):
    machine = KernelClassifier(loss=loss, gamma=0.1, lam=1e-2)
    weights = {} if weight is None else {"sample_weight": weight}
    theirs = CalibratedClassifierCV(machine, method=method, cv=CV, ensemble=False)
    expected = theirs.fit(rows, labels, **weights).predict_proba(rows)
    ours = CalibratedKernelClassifier(machine, method, CV).fit(rows, labels, **weights)
    np.testing.assert_allclose(ours.predict_proba(rows), expected, atol=1e-6)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert (ours.predict(rows) == ours.classes_[expected.argmax(axis=1)]).mean() > 0.99


@pytest.mark.parametrize("classes", [3, 4])
def test_pairs_of_classes_are_calibrated_by_their_votes(classes):
    labels = three if classes == 3 else np.where(np.arange(three.size) % 7 == 0, "d", three)
    machine = KernelClassifier(loss="squared_hinge", gamma=0.1, multi_class="ovo")
    theirs = CalibratedClassifierCV(machine, cv=CV, ensemble=False).fit(Z, labels)
    ours = CalibratedKernelClassifier(machine, cv=CV).fit(Z, labels)
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-6)
    assert ours.heldout_.decision.shape == (three.size, classes)
    assert log_loss(labels, ours.heldout_proba_) < log_loss(labels, np.full((150, classes), 0.25))


def test_calibration_leaves_the_search_as_it_was(tmp_path):
    machine, grid = KernelClassifier(), {"lam": [1e-3, 1e-2]}
    found = KernelSearchCV(machine, grid, cv=CV).fit(X, y)
    winner, score, labels = found.best_estimator_, found.best_score_, found.predict(X)
    expected = found.calibrate("sigmoid").predict_proba(X)
    assert found.best_estimator_ is winner
    assert found.best_score_ == score
    np.testing.assert_array_equal(found.predict(X), labels)
    assert not np.array_equal(found.calibrate("isotonic").predict_proba(X), expected)
    for _ in range(2):  # computed, and read from the journal
        kept = KernelSearchCV(machine, grid, cv=CV, journal=tmp_path).fit(X, y)
        np.testing.assert_array_equal(kept.calibrate("sigmoid").predict_proba(X), expected)


@pytest.fixture(scope="module")
def search():
    grid = {"kernel": [Counted(0.03), Counted(0.1)], "lam": [1e-3, 1e-2]}
    return KernelSearchCV(KernelClassifier(loss="squared_hinge"), grid, cv=CV).fit(X, y)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_of_a_winner_nothing_is_fitted_again(search, method):
    best = search.best_estimator_
    theirs = CalibratedClassifierCV(clone(best), method=method, cv=CV, ensemble=False).fit(X, y)
    Counted.matrices.clear()
    ours = search.calibrate(method)
    assert not Counted.matrices
    expected = theirs.predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), ours.classes_[expected.argmax(axis=1)])
    again = clone(ours).fit(X, y)
    np.testing.assert_allclose(again.predict_proba(X), expected, atol=1e-6)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).predict(X), ours.predict(X))


def test_groups_are_for_the_splits():
    machine, groups = KernelClassifier(gamma=0.1, lam=1e-2), np.arange(y.size) // 5
    found = CalibratedKernelClassifier(machine, cv=GroupKFold(4)).fit(X, y, groups=groups)
    splits = list(GroupKFold(4).split(X, y, groups))
    theirs = CalibratedClassifierCV(machine, cv=splits, ensemble=False).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_rows_of_weight_zero_do_not_move_held_out_probabilities(search):
    weight = np.where(np.arange(y.size) % 2, WEIGHT, 0.0)
    held = replace(search.heldout_, sample_weight=weight)
    values = np.where(weight[held.folds.rows, None] > 0.0, held.values, -3.0 * held.values)
    found, other = map(heldout_probabilities, (held, replace(held, values=values)))
    np.testing.assert_allclose(other[1::2], found[1::2], atol=1e-6)


def test_held_out_probabilities_have_not_seen_their_rows(search):
    found = search.calibrate("sigmoid")
    assert found.heldout_proba_.shape == (y.size, 2)
    np.testing.assert_allclose(found.heldout_proba_.sum(axis=1), 1.0)
    honest = log_loss(y, found.heldout_proba_)
    values = search.heldout_.predictions[:, None]
    assert honest > log_loss(y, found.map_.predict_proba(values))  # the map knows these rows
    moved = y.copy()
    moved[0] = "ill" if y[0] == "well" else "well"
    other = heldout_probabilities(_with(search.heldout_, moved))
    others = np.ones(y.size, dtype=bool)
    parts = list(StratifiedKFold(10).split(values, moved))
    own = next(test for _, test in parts if 0 in test)
    others[own] = False
    assert (
        np.abs(other - found.heldout_proba_)[own].max()
        < np.abs(other - found.heldout_proba_)[others].max()
    )


def _with(held, targets):
    return replace(held, targets=targets)


@pytest.mark.parametrize(
    "cv", [RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), TimeSeriesSplit(3)]
)
def test_rows_tested_often_or_never(cv):
    found = CalibratedKernelClassifier(KernelClassifier(lam=1e-2), cv=cv).fit(X, y)
    tested = np.isin(np.arange(y.size), np.concatenate([test for _, test in cv.split(X, y)]))
    assert np.isfinite(found.heldout_proba_[tested]).all()
    assert np.isnan(found.heldout_proba_[~tested]).all()
    assert np.isfinite(found.predict_proba(X)).all()


def test_what_is_wrong_is_said(search):
    with pytest.raises(ValueError, match="method='platt' is not known"):
        search.calibrate("platt")
    with pytest.raises(TypeError, match="needs a KernelClassifier"):
        CalibratedKernelClassifier(KernelRegressor()).fit(X, np.arange(200.0))
    regression = KernelSearchCV(KernelRegressor(), {"lam": [1.0]}).fit(X, np.arange(200.0))
    with pytest.raises(ValueError, match="predict_interval"):
        regression.calibrate()
    unfitted = KernelSearchCV(KernelClassifier(), {"lam": [1.0]}, refit=False).fit(X, y)
    with pytest.raises(ValueError, match="refit=True"):
        unfitted.calibrate()


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "roc_auc_ovr"])
def test_scorers_that_need_probabilities_name_calibrate(scoring):
    rows, labels = (Z, three) if scoring == "roc_auc_ovr" else (X, y)
    with pytest.raises(ValueError, match=r"search\.calibrate\('sigmoid'\)"):
        KernelSearchCV(KernelClassifier(), {"lam": [1.0]}, scoring=scoring).fit(rows, labels)
    with pytest.raises(AttributeError) as found:
        KernelClassifier().predict_proba(rows)
    assert "CalibratedKernelClassifier" in str(found.value.__cause__)


def test_roc_needs_decision_values_alone():
    grid = {"lam": [1e-2, 1.0]}
    found = KernelSearchCV(KernelClassifier(), grid, scoring="roc_auc", cv=CV).fit(X, y)
    assert 0.9 < found.best_score_ <= 1.0
    assert found.headline_.baseline == pytest.approx(0.5, abs=0.1)


@parametrize_with_checks(
    [CalibratedKernelClassifier(KernelClassifier(), cv=2)],
    expected_failed_checks=lambda _: {},
)
def test_scikit_learn_compatible(estimator, check):
    check(estimator)
