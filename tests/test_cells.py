"""Models in cells of a partition: equal to honest refits, cell by cell and fold by fold."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    cross_val_score,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.cells import CellSearchCV, Partition
from onefit.losses import Quantile
from onefit.quantiles import pinball_loss

GRID = {"gamma": [0.5, 2.0], "lam": [1e-4, 1e-2]}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(420, 3))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=420)


def drawn(X, size=100, seed=0):
    return Partition.draw(X, size, np.random.RandomState(seed))


def test_a_partition_assigns_every_row_to_one_cell(data):
    X, _ = data
    cells = drawn(X).cells(X)
    assert max(map(len, cells)) <= 100
    np.testing.assert_array_equal(np.sort(np.concatenate(cells)), np.arange(len(X)))
    for dense, sparse in zip(cells, drawn(csr_matrix(X)).cells(csr_matrix(X)), strict=True):
        np.testing.assert_array_equal(dense, sparse)


def test_copies_of_a_row_share_a_cell(data):
    X = np.repeat(data[0][:7], 60, axis=0)
    for rows in drawn(X, 50).cells(X):
        assert not np.isin(X[rows], np.delete(X, rows, axis=0)).all(axis=1).any()
    assert len(drawn(X, 50).cells(X)) == 7
    # three of four rows are at the largest projection
    X = np.repeat([[0.0], [1.0]], [75, 225], axis=0)
    for seed in range(6):
        assert sorted(map(len, drawn(X, seed=seed).cells(X))) == [75, 225]
    constant = np.ones((300, 2))
    (only,) = drawn(constant).cells(constant)
    assert only.size == 300


def test_cells_are_those_of_the_halves_that_were_drawn():
    """Of 101 rows 51 are below or at the median: they are halved again, the other 50 are not."""
    X = np.random.default_rng(0).normal(size=(101, 2))
    assert sorted(map(len, drawn(X, 50).cells(X))) == [25, 26, 50]


def refitted(search, X, Y, splits, weight=None):
    """Held-out values by a fit to the training rows of every cell, fold and partition."""
    total = np.zeros(Y.shape)
    for partition in search.partitions_:
        for rows in partition.cells(X):
            for train, test in splits:
                a, b = np.intersect1d(rows, train), np.intersect1d(rows, test)
                if b.size:
                    model = KernelRegressor(**search.best_params_)
                    if isinstance(search.estimator, KernelRegressor):
                        model = clone(search.estimator).set_params(**search.best_params_)
                    s = None if weight is None else weight[a]
                    total[b] += model.fit(X[a], Y[a], sample_weight=s).predict(X[b])
    return total / len(search.partitions_)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_values_are_those_of_refits(data, loss, weighted):
    X, y = data
    weight = np.random.default_rng(1).uniform(0.5, 2, y.size) if weighted else None
    cv = KFold(4, shuffle=True, random_state=0)
    search = CellSearchCV(
        KernelRegressor(loss=loss), GRID, cell_size=150, n_partitions=2, cv=cv
    ).fit(X, y, sample_weight=weight)
    expected = refitted(search, X, y, list(cv.split(X)), weight)
    np.testing.assert_allclose(search.heldout_predictions_, expected, atol=1e-5)
    if loss == "squared":
        np.testing.assert_allclose(search.heldout_predictions_, expected, atol=1e-9)
    assert search.cv_results_["exact"].all()


def test_groups_stay_together(data):
    X, y = data
    groups = np.arange(y.size) // 7
    search = CellSearchCV(
        KernelRegressor(), GRID, cell_size=150, n_partitions=1, cv=GroupKFold(3)
    ).fit(X, y, groups=groups)
    expected = refitted(search, X, y, list(GroupKFold(3).split(X, y, groups)))
    np.testing.assert_allclose(search.heldout_predictions_, expected, atol=1e-9)


def test_rows_that_no_split_tests_do_not_count(data):
    X, y = data
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))[:3]
    search = CellSearchCV(KernelRegressor(), GRID, cell_size=150, n_partitions=2, cv=splits)
    search.fit(X, y)
    tested = np.concatenate([test for _, test in splits])
    held = search.heldout_predictions_
    np.testing.assert_allclose(held[tested], refitted(search, X, y, splits)[tested], atol=1e-9)
    assert np.isnan(np.delete(held, tested)).all()
    assert search.best_score_ == pytest.approx(r2_score(y[tested], held[tested]))


def test_a_candidate_is_exact_if_it_is_in_every_cell(data):
    """Small penalties are beyond what can be certified; in some cells first."""
    X, y = data
    grid = {"gamma": [0.5], "lam": np.logspace(-14, -8, 40)}
    search = CellSearchCV(KernelRegressor(), grid, cell_size=150, n_partitions=1).fit(X, y)
    exact = np.array(
        [
            KernelSearchCV(KernelRegressor(), grid, cv=own, refit=False)
            .fit(X[rows], y[rows])
            .cv_results_["exact"]
            for rows in search.partitions_[0].cells(X)
            for own in [_splits_of(rows, KFold(5).split(X))]
        ]
    )
    assert (exact.any(axis=0) & ~exact.all(axis=0)).any()
    np.testing.assert_array_equal(search.cv_results_["exact"], exact.all(axis=0))


def _splits_of(rows, splits):
    place = {row: i for i, row in enumerate(rows)}
    return [[[place[i] for i in part if i in place] for part in one] for one in splits]


def test_one_cell_is_an_ordinary_search(data):
    X, y = data
    ours = CellSearchCV(KernelRegressor(), GRID, cell_size=1000, n_partitions=3).fit(X, y)
    whole = KernelSearchCV(KernelRegressor(), GRID, aggregate="pooled").fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], whole.cv_results_["pooled_test_score"], rtol=1e-9
    )
    assert ours.best_params_ == whole.best_params_
    np.testing.assert_allclose(ours.predict(X[:9]), whole.predict(X[:9]), rtol=1e-9)


def test_scores_are_weighted(data):
    """As those of an ordinary search are, so that the same candidate is chosen."""
    X, y = data
    weight = np.random.default_rng(5).exponential(size=y.size) ** 4
    ours = CellSearchCV(KernelRegressor(), GRID, n_partitions=1).fit(X, y, weight)
    whole = KernelSearchCV(KernelRegressor(), GRID, aggregate="pooled")
    whole.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], whole.cv_results_["pooled_test_score"], rtol=1e-9
    )
    assert ours.best_score_ == pytest.approx(
        r2_score(y, ours.heldout_predictions_, sample_weight=weight)
    )
    assert ours.score(X, y, weight) == pytest.approx(
        r2_score(y, ours.predict(X), sample_weight=weight)
    )


def test_rows_of_weight_zero_change_nothing(data):
    """They lie together, so that cells of all rows would have none of positive weight."""
    X, y = data
    weight = (X[:, 0] > np.median(X[:, 0])).astype(float)
    kept = np.flatnonzero(weight)
    cv = [(np.setdiff1d(np.arange(y.size), np.arange(k, y.size, 3)), np.arange(k, y.size, 3))
          for k in range(3)]  # fmt: skip
    place = np.full(y.size, -1)
    place[kept] = np.arange(kept.size)
    own = [(a[a >= 0], b[b >= 0]) for a, b in ((place[a], place[b]) for a, b in cv)]
    make = CellSearchCV(KernelRegressor(), GRID, cell_size=60, n_partitions=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = clone(make).set_params(cv=cv).fit(X, y, weight)
    part = clone(make).set_params(cv=own).fit(X[kept], y[kept])
    assert whole.best_params_ == part.best_params_
    np.testing.assert_allclose(
        whole.heldout_predictions_[kept], part.heldout_predictions_, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(whole.predict(X), part.predict(X), rtol=1e-9, atol=1e-12)
    assert whole.best_score_ == pytest.approx(part.best_score_)


def test_several_levels_have_a_column_each(data):
    X, y = data
    search = CellSearchCV(
        KernelRegressor(Quantile([0.2, 0.8], 0.1)), GRID, cell_size=150, n_partitions=1
    ).fit(X, y)
    assert search.predict(X[:9]).shape == (9, 2)
    held = search.heldout_predictions_
    assert search.best_score_ == pytest.approx(-pinball_loss(y, held, [0.2, 0.8]))


def test_several_partitions_predict_better_than_one(data):
    X, y = data
    X_test = np.random.default_rng(2).uniform(size=(500, 3))
    truth = np.sin(5 * X_test[:, 0]) + X_test[:, 1] ** 2
    one, many = (
        CellSearchCV(KernelRegressor(), GRID, cell_size=60, n_partitions=count).fit(X, y)
        for count in (1, 8)
    )
    error = [np.mean((search.predict(X_test) - truth) ** 2) for search in (one, many)]
    assert error[1] < error[0]
    assert many.best_score_ > one.best_score_


@pytest.mark.parametrize("classes", [2, 3])
def test_cells_of_one_class(classes):
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(400, 1))
    labels = np.array(["low", "mid", "top"])
    y = labels[np.minimum((X[:, 0] * classes).astype(int), classes - 1)]
    search = CellSearchCV(KernelClassifier(), GRID, cell_size=60).fit(X, y)
    assert search.best_score_ > 0.97
    assert search.score(X, y) > 0.97
    assert set(search.predict(X)) == set(labels[:classes])
    shape = (400,) if classes == 2 else (400, 3)
    assert search.decision_function(X).shape == search.heldout_predictions_.shape == shape


def test_scoring_by_decision_values():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=300) > 0).astype(int)
    search = CellSearchCV(KernelClassifier(), GRID, cell_size=100, scoring="roc_auc").fit(X, y)
    assert 0.8 < search.best_score_ < 1.0


def test_the_choice_is_cross_validated(data):
    X, y = data
    search = CellSearchCV(KernelRegressor(), GRID, cell_size=200, n_partitions=2)
    assert cross_val_score(search, X, y, cv=3).min() > 0.8


def test_side_by_side(data):
    X, y = data
    one, two = (
        CellSearchCV(KernelRegressor(), GRID, cell_size=250, n_partitions=1, n_jobs=jobs).fit(X, y)
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.heldout_predictions_, two.heldout_predictions_)


def test_resumes_from_its_journal(data, tmp_path):
    X, y = data
    make = CellSearchCV(
        KernelRegressor(), GRID, cell_size=150, n_partitions=2, journal=tmp_path / "journal"
    )

    def written():
        files = (path for path in tmp_path.rglob("*") if path.is_file())
        return {path: path.stat().st_mtime_ns for path in files}

    first = clone(make).fit(X, y)
    entries = written()
    again = clone(make).fit(X, y)
    np.testing.assert_array_equal(first.heldout_predictions_, again.heldout_predictions_)
    assert entries == written()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": "svm"}, "KernelRegressor or a KernelClassifier"),
        ({"estimator": KernelClassifier(loss="squared_hinge")}, "loss='squared'"),
        ({"estimator": KernelClassifier(loss="squared", multi_class="ovo")}, "column per class"),
        ({"cv": PredefinedSplit(np.repeat([0, 1, -1], [3, 3, 414])), "cell_size": 60}, "no split"),
        ({"cell_size": 3}, "cell_size must be an integer of at least 50"),
        ({"n_partitions": 0}, "n_partitions must be an integer of at least 1"),
        ({"cv": RepeatedKFold(n_splits=3, n_repeats=2)}, "test part of 2 splits"),
    ],
)
def test_what_is_refused(data, change, message):
    X, y = data
    options = {"estimator": KernelRegressor(), "param_grid": GRID} | change
    labels = (y > 0).astype(int)
    with pytest.raises((ValueError, TypeError), match=message):
        CellSearchCV(**options).fit(
            X, labels if hasattr(options["estimator"], "class_weight") else y
        )


SMALL = {"gamma": [0.5], "lam": [1e-3, 1e-1]}


@parametrize_with_checks(
    [
        CellSearchCV(KernelRegressor(), SMALL, cv=2, n_partitions=2),
        CellSearchCV(KernelClassifier(), SMALL, cv=2, n_partitions=1),
    ]
)
def test_sklearn_compatible(estimator, check):
    check(estimator)
