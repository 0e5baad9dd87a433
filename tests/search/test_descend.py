"""Kernel parameters found by gradient."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from onefit import KernelClassifier, KernelGradientSearchCV, KernelRegressor, KernelSearchCV
from onefit.plan import Deadline
from onefit.scoring import one_standard_error
from onefit.search import Interval

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 4))
#: the last two columns say nothing
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RANDOM.normal(size=90)
GAMMA, LAM = Interval(1e-4, 1e2), Interval(1e-7, 1e1, points=8)
EACH = Interval(1e-4, 1e2, per_feature=True)
MSE = "neg_mean_squared_error"


def search(grid, estimator=None, **options):
    options = {"cv": 5, "scoring": MSE} | options
    return KernelGradientSearchCV(estimator or KernelRegressor(), grid, **options)


@pytest.fixture(scope="module")
def one():
    return search({"gamma": GAMMA, "lam": LAM}).fit(X, Y)


def test_no_worse_than_a_fine_grid(one):
    fine = {"gamma": np.geomspace(1e-4, 1e2, 15), "lam": np.geomspace(1e-7, 1e1, 20)}
    grid = KernelSearchCV(KernelRegressor(), fine, cv=5, scoring=MSE).fit(X, Y)
    assert one.best_score_ >= grid.best_score_ - 1e-12
    assert one.cv_results_["exact"].all()


def test_the_ends_are_candidates_beside_the_grid(one):
    grid = 5 * 8
    assert len(one.cv_results_["params"]) == grid + len(one.descents_)
    scores = one.cv_results_["mean_test_score"]
    assert one.best_index_ >= grid
    assert one.best_score_ == scores.max() > scores[:grid].max()
    for place, descent in enumerate(one.descents_):
        assert one.cv_results_["params"][grid + place] == descent.end
        assert descent.start in one.cv_results_["params"]
        assert descent.last == pytest.approx(-scores[grid + place], rel=1e-8)
        assert descent.first >= descent.last
        assert descent.converged
        assert descent.message
    gammas = [descent.start["gamma"] for descent in one.descents_]
    assert len(set(gammas)) == len(gammas)


def test_the_winner_scores_as_a_refit_does(one):
    honest = clone(one.best_estimator_)
    scores = cross_val_score(honest, X, Y, cv=5, scoring=MSE)
    np.testing.assert_allclose(one.best_score_, scores.mean(), rtol=1e-7)


def test_a_minimum_has_no_slope(one):
    """Scores a little to every side are not better."""
    best = one.best_params_
    for name in ("gamma", "lam"):
        for factor in (0.97, 1.03):
            moved = best | {name: best[name] * factor}
            near = clone(one.best_estimator_).set_params(**moved)
            score = cross_val_score(near, X, Y, cv=5, scoring=MSE).mean()
            assert score <= one.best_score_ + 1e-3 * abs(one.best_score_)


def test_one_gamma_per_column(one):
    each = search({"gamma": EACH, "lam": LAM}).fit(X, Y)
    gamma = each.best_params_["gamma"]
    assert gamma.shape == (4,)
    assert each.best_score_ > one.best_score_
    assert gamma[0] > 10.0 * gamma[2:].max()
    assert each.best_estimator_.predict(X).shape == (90,)
    scores = cross_val_score(clone(each.best_estimator_), X, Y, cv=5, scoring=MSE)
    np.testing.assert_allclose(each.best_score_, scores.mean(), rtol=1e-7)


def test_the_unit_of_the_targets_does_not_matter():
    grid, units = {"gamma": EACH, "lam": LAM}, (1.0, 2.0**20)
    one, other = (search(grid, starts=1).fit(X, unit * Y).best_params_ for unit in units)
    np.testing.assert_allclose(one["gamma"], other["gamma"], rtol=1e-3)


@pytest.mark.parametrize("loss", ["squared", "smoothed_hinge", "log"])
def test_classes(loss):
    labels = np.where(Y > 0.0, "yes", "no")
    found = search(
        {"gamma": EACH, "lam": Interval(1e-5, 1.0, points=5)}, KernelClassifier(loss=loss),
        scoring="accuracy", starts=1, steps=6,
    ).fit(X, labels)  # fmt: skip
    assert found.best_score_ >= found.cv_results_["mean_test_score"][:25].max()
    assert all(descent.last <= descent.first for descent in found.descents_)


def test_a_given_lam_stays():
    found = search({"gamma": GAMMA, "lam": [1e-3, 1e-2]}).fit(X, Y)
    assert {descent.end["lam"] for descent in found.descents_} <= {1e-3, 1e-2}


def test_each_kind_of_machine_has_its_own_descents():
    found = search({"gamma": GAMMA, "lam": LAM, "kernel": ["rbf", "laplacian"]}).fit(X, Y)
    kernels = [params["kernel"] for params in found.cv_results_["params"][-len(found.descents_) :]]
    assert {kernels.count(name) for name in ("rbf", "laplacian")} == {1}


def test_a_journal_goes_on(tmp_path, one):
    path = tmp_path / "journal"
    first, again = (search({"gamma": GAMMA, "lam": LAM}, journal=path).fit(X, Y) for _ in range(2))
    assert first.best_params_ == again.best_params_ == one.best_params_


@pytest.mark.parametrize(
    ("grid", "options", "words"),
    [
        ({"gamma": [1.0]}, {}, "needs an Interval for gamma"),
        ({"gamma": GAMMA}, {"criterion": "gcv"}, "needs criterion='cv'"),
        ({"gamma": GAMMA}, {"starts": 0}, "starts must be a whole number of at least 1"),
        ({"gamma": GAMMA}, {"steps": 2.5}, "steps must be a whole number of at least 1"),
        ({"gamma": GAMMA}, {"steps": None}, "steps must be a whole number of at least 1"),
        ({"lam": EACH}, {}, "one lam for all features"),
        ({"kernel__degree": GAMMA}, {}, "has an Interval for 'kernel__degree'"),
        ({"gamma": GAMMA, "kernel": ["linear"]}, {}, "does nothing with kernel='linear'"),
        ({"gamma": EACH, "kernel": ["poly"]}, {}, "takes a single gamma"),
        (
            {"gamma": GAMMA},
            {"scoring": ["r2", "neg_max_error"], "refit": lambda results: 0},
            "needs one score to refine",
        ),
    ],
)
def test_what_cannot_be(grid, options, words):
    with pytest.raises(ValueError, match=words):
        search(grid, **options).fit(X, Y)


def test_a_grid_search_has_no_intervals_for_gamma():
    with pytest.raises(ValueError, match="needs a KernelGradientSearchCV"):
        KernelSearchCV(KernelRegressor(), {"gamma": GAMMA}).fit(X, Y)


@pytest.mark.parametrize("make", ["constant", "duplicate", "wide"])
def test_columns_that_say_nothing(make):
    """Constant, twice the same, and more than there are rows: no NaN, and a sound winner."""
    if make == "wide":
        Z = np.column_stack([X[:30], RANDOM.normal(size=(30, 40))])
    else:
        extra = np.ones(30) if make == "constant" else X[:30, 0]
        Z = np.column_stack([X[:30], extra])
    found = search({"gamma": EACH, "lam": LAM}, cv=KFold(3)).fit(Z, Y[:30])
    assert np.isfinite(found.best_params_["gamma"]).all()
    assert found.best_score_ >= found.cv_results_["mean_test_score"][:40].max()


def test_the_winner_by_one_standard_error_and_its_report(tmp_path):
    found = search({"gamma": EACH, "lam": LAM}, refit=one_standard_error).fit(X, Y)
    path = tmp_path / "report.html"
    found.report(path)
    assert path.stat().st_size > 1000
    assert found.plot() is not None


def test_rows_of_no_weight_are_refused():
    with pytest.raises(ValueError, match="needs positive sample weights"):
        search({"gamma": GAMMA, "lam": LAM}).fit(X, Y, sample_weight=np.arange(90.0))


def test_sparse_rows():
    dense, sparse = (
        search({"gamma": EACH, "lam": LAM}).fit(Z, Y).best_score_ for Z in (X, csr_array(X))
    )
    assert sparse == pytest.approx(dense, rel=1e-3)


def test_a_journal_knows_the_metric_that_was_followed(tmp_path):
    """Descents of one metric do not continue a search that chooses by the other."""
    grid, noisy = {"gamma": GAMMA, "lam": [1e-3]}, Y + RANDOM.standard_t(1.5, size=90)
    options = {"scoring": ["r2", "neg_mean_absolute_error"], "journal": tmp_path / "journal"}
    search(grid, refit="r2", **options).fit(X, noisy)
    again = search(grid, refit="neg_mean_absolute_error", **options).fit(X, noisy)
    fresh = search(grid, refit="neg_mean_absolute_error", **options | {"journal": None})
    assert again.best_params_ == fresh.fit(X, noisy).best_params_


def test_a_descent_starts_from_what_a_deadline_left():
    """The interval that it starts from is that of the candidate, whatever was not tried."""
    grid = [{"gamma": [0.1, 0.2]}, {"gamma": Interval(0.5, 2.0)}]
    search = KernelGradientSearchCV(KernelRegressor(), grid, cv=3, steps=3)
    with Deadline(1e-9).over(search):
        search.fit(X, Y)
    (descent,) = search.descents_
    assert len(search.cv_results_["params"]) == 2
    assert descent.start["gamma"] == search.cv_results_["params"][0]["gamma"]
