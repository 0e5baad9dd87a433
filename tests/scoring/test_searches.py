"""Searches by every metric of the registry score as scikit-learn does, in memory and streamed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import cross_val_predict, cross_val_score

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.features import Fourier
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.rows import HashKFold, open_rows
from onefit.scoring import ROW_METRICS, Metric

CV = HashKFold(4, random_state=1)
GRID = {"lam": [1e-3, 1e-1]}
FEATURES = {"approximation": Fourier(20), "gamma": 0.3, "random_state": 0}
rng = np.random.default_rng(0)
X = rng.normal(size=(150, 2))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 100.0 + 0.3 * rng.normal(size=(150, 2))
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y[:, 0], [99.7, 100.9])]

every_metric = pytest.mark.parametrize("metric", ROW_METRICS.values(), ids=lambda one: one.name)
everywhere = pytest.mark.parametrize("streamed", [False, True], ids=["memory", "streamed"])


def given(metric):
    if metric.task == "classification":
        return KernelClassifier(**FEATURES), LABELS
    return KernelRegressor(**FEATURES), Y


def searched(machine, y, streamed, **options):
    search = KernelSearchCV(machine, GRID, cv=CV, **options)
    return search.fit(open_rows(X, y)) if streamed else search.fit(X, y)


@every_metric
@everywhere
def test_scores_are_scikit_learns(metric, streamed):
    machine, y = given(metric)
    scorer = make_scorer(metric.sklearn, greater_is_better=metric.greater_is_better)
    found = searched(machine, y, streamed, scoring=scorer).cv_results_
    pooled = searched(machine, y, streamed, scoring=metric, aggregate="pooled").cv_results_
    for i, lam in enumerate(GRID["lam"]):
        machine.set_params(lam=lam)
        expected = cross_val_score(machine, X, y, cv=CV, scoring=scorer)
        scores = [found[f"split{k}_test_score"][i] for k in range(4)]
        np.testing.assert_allclose(scores, expected, rtol=1e-7)
        assert found["mean_test_score"][i] == pytest.approx(expected.mean(), rel=1e-7)
        assert found["low_test_score"][i] <= expected.mean() <= found["high_test_score"][i]
        all_rows = metric.sign * metric.sklearn(y, cross_val_predict(machine, X, y, cv=CV))
        assert pooled["pooled_test_score"][i] == pytest.approx(all_rows, rel=1e-7)


def worst_side(y, u):
    return np.maximum(y - u, 3.0 * (u - y))


def root_mean(means, variance):
    return np.sqrt(means)


MINE = Metric("lopsided_error", "regression", worst_side, root_mean)


@everywhere
def test_a_metric_of_the_callers(streamed):
    """Without ``ends`` there are no intervals; all else follows."""
    machine, y = KernelRegressor(**FEATURES), Y[:, 0]
    search = searched(machine, y, streamed, scoring=MINE)
    assert "low_test_score" not in search.cv_results_
    for i, lam in enumerate(GRID["lam"]):
        machine.set_params(lam=lam)
        expected = cross_val_score(machine, X, y, cv=CV, scoring=MINE)
        scores = [search.cv_results_[f"split{k}_test_score"][i] for k in range(4)]
        np.testing.assert_allclose(scores, expected, rtol=1e-7)
    assert search.headline_.scoring == "neg_lopsided_error"
    held = search.heldout_.predictions[:, None]
    assert search.headline_.score == pytest.approx(-np.sqrt(worst_side(Y[:, :1], held).mean()))
    assert search.headline_.interval[0] < search.headline_.score < search.headline_.interval[1] < 0
    assert search.headline_.baseline < search.headline_.score


def confident(y, u):
    return np.maximum(0.0, 1.0 - np.where(y == 1, u, -u))


HINGE = Metric("hinge", "classification", confident)


@everywhere
def test_a_metric_of_decision_values(streamed):
    machine, y = KernelClassifier(**FEATURES), np.where(LABELS == "low", "no", "yes")
    search = searched(machine, y, streamed, scoring=HINGE)
    machine.set_params(lam=search.best_params_["lam"])
    assert search.best_score_ == pytest.approx(
        cross_val_score(machine, X, y, cv=CV, scoring=HINGE).mean(), rel=1e-7
    )
    assert np.isfinite(search.headline_.baseline)
    with pytest.raises(ValueError, match="is for classification, but KernelRegressor"):
        searched(KernelRegressor(**FEATURES), Y, streamed, scoring=HINGE)


def counts(y, u):
    positive, said = y == 1, u > 0
    return np.concatenate([positive & said, positive != said], axis=-1).astype(float)


def harmonic(means, variance):
    hits, misses = means[..., :1], means[..., 1:]
    return 2.0 * hits / (2.0 * hits + misses)


F1 = Metric("f1", "classification", counts, harmonic, greater_is_better=True, range=(0.0, 1.0))


@everywhere
def test_a_metric_of_several_means(streamed):
    machine, y = KernelClassifier(**FEATURES), (LABELS != "low").astype(int)
    mine = searched(machine, y, streamed, scoring=F1, aggregate="pooled")
    for i, lam in enumerate(GRID["lam"]):
        machine.set_params(lam=lam)
        expected = cross_val_score(machine, X, y, cv=CV, scoring="f1")
        scores = [mine.cv_results_[f"split{k}_test_score"][i] for k in range(4)]
        np.testing.assert_allclose(scores, expected, rtol=1e-12)
        all_rows = f1_score(y, cross_val_predict(machine, X, y, cv=CV))
        assert mine.cv_results_["pooled_test_score"][i] == pytest.approx(all_rows)
    held, rows = mine.heldout_.labels, np.arange(len(y))
    left = [f1_score(y[rows != i], held[rows != i]) for i in rows]
    error = np.sqrt((len(y) - 1) * np.var(left))
    assert mine.headline_.standard_error == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("aggregate", ["mean", "pooled"])
def test_r2_of_a_streamed_fold_of_one_row(aggregate):
    (_, first), *_ = CV.split(X)
    kept = np.delete(np.arange(60), first[1 : np.searchsorted(first, 60)])
    search = KernelSearchCV(KernelRegressor(**FEATURES), GRID, cv=CV, aggregate=aggregate)
    rows = open_rows(X[kept], Y[kept, 0], groups=kept)
    if aggregate == "mean":
        with pytest.raises(ValueError, match="undefined on a test set of one row"):
            search.fit(rows)
    else:
        found = search.fit(rows).cv_results_
        assert np.isnan(found["split0_test_score"]).all()
        assert np.isfinite(found["pooled_test_score"]).all()


class NearlyUndecided(HeldOutMethod):
    """Decision values of 8e-7 with a bound of zero: the other side is within the tolerance."""

    name = "nearly undecided"

    def prepare(self, problem, folds):
        return PreparedConstant(problem, folds)


class PreparedConstant(Prepared):
    def __init__(self, problem, folds):
        self.problem, self.folds = problem, folds

    def predict(self, lams):
        found = HeldOutPath.empty(self.problem, self.folds, NearlyUndecided.name, lams)
        found.values[:], found.bounds[:] = 8e-7, 0.0
        return found.judged(self.problem)


def test_intervals_allow_for_the_tolerance_of_labels_however_rare_a_class_is():
    y = np.arange(150) % 25 == 0
    search = KernelSearchCV(KernelClassifier(), GRID, method=NearlyUndecided(), cv=CV).fit(X, y)
    results = search.cv_results_
    assert (results["low_test_score"] == 0.0).all()
    assert (results["high_test_score"] == 1.0).all()
