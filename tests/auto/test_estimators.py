"""AutoKernelRegressor and AutoKernelClassifier as members of scikit-learn."""

from __future__ import annotations

import html
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_score

from onefit import (
    AutoKernelClassifier,
    AutoKernelRegressor,
    KernelClassifier,
    KernelRegressor,
    KernelSearchCV,
    predict_interval,
    select,
)
from onefit._validation import DataError
from onefit.config import config_context as onefit_context
from onefit.prepare import TablePreparer

random = np.random.default_rng(0)
n = 60
SIZE, FLAG = random.normal(size=n), random.integers(0, 2, size=n)
TABLE = pd.DataFrame(
    {
        "size": SIZE,
        "colour": np.where(FLAG == 1, "red", "blue"),
        "cost": [f"${1000 * i + 5:,}" for i in random.integers(1, 90, size=n)],
        "day": [f"{1 + i % 28}-Mar-20{10 + i % 9}" for i in range(n)],
    }
)
TABLE.loc[3, "size"] = np.nan
Y = np.sin(SIZE) + FLAG + 0.1 * random.normal(size=n)
LABELS = np.where(Y > 0.5, "high", "low")
SMALL = {"param_grid": {"kernel": ["rbf"], "gamma": [0.1], "lam": [1e-3, 1e-1]}, "cv": 3}

pytestmark = pytest.mark.filterwarnings("ignore:column:UserWarning")


@pytest.fixture(scope="module")
def fitted():
    return AutoKernelRegressor(**SMALL).fit(TABLE, Y)


def test_a_table_with_text_is_cross_validated():
    found = cross_val_score(AutoKernelRegressor(**SMALL), TABLE, Y, cv=3)
    held = []
    for part in np.array_split(np.arange(n), 3):
        rest = np.setdiff1d(np.arange(n), part)
        one = AutoKernelRegressor(**SMALL).fit(TABLE.iloc[rest], Y[rest])
        left = Y[part] - one.predict(TABLE.iloc[part])
        held.append(1.0 - (left**2).sum() / ((Y[part] - Y[part].mean()) ** 2).sum())
    np.testing.assert_allclose(found, held, rtol=1e-10)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_output_type_of_transformers_changes_no_number(library):
    """Text columns are scaled by a variance, which is another one for data frames."""
    pytest.importorskip(library)
    table = TABLE.assign(name=[f"name {i} of {'abc'[i % 3] * 4}" for i in range(n)])
    plain = AutoKernelRegressor(**SMALL).fit(table, Y)
    with config_context(transform_output=library), warnings.catch_warnings():
        warnings.filterwarnings("error", "X has feature names")
        other = AutoKernelRegressor(**SMALL).fit(table, Y)
        found = other.predict(table[:9]), plain.predict(table[:9])
        intervals, notes = other.predict_interval(table[:9]), other.unfamiliar(table[:9])
    for one in found:
        np.testing.assert_allclose(one, plain.predict(table[:9]), rtol=1e-12)
    np.testing.assert_allclose(intervals.lower, plain.predict_interval(table[:9]).lower)
    np.testing.assert_allclose(notes.novelty, plain.unfamiliar(table[:9]).novelty)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cv": None}, "cv=None must be a number of splits, a splitter, or a list"),
        ({"cv": 5.0}, r"cv=5\.0 must be a number of splits"),
        ({"cv": "5"}, "cv='5' must be a number of splits"),
        ({"scoring": ["r2", "neg_mean_absolute_error"]}, "must be the name of one score"),
    ],
)
def test_options_that_make_no_sense(options, words):
    with pytest.raises(ValueError, match=words):
        AutoKernelRegressor(**options).fit(TABLE, Y)


def test_weights_with_metadata_routing():
    """Inside, weights reach every fit and score; outside, they follow the requests."""
    weights = np.random.default_rng(0).uniform(0.0, 2.0, n)
    plain = AutoKernelRegressor(**SMALL).fit(TABLE, Y, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        found = AutoKernelRegressor(**SMALL).fit(TABLE, Y, sample_weight=weights)
        assert found.best_score_ == plain.best_score_
        assert found.score(TABLE, Y, weights) == plain.score(TABLE, Y, weights)
        np.testing.assert_array_equal(found.relevance().values, plain.relevance().values)
        auto = AutoKernelRegressor(**SMALL).set_fit_request(sample_weight=True)
        auto.set_score_request(sample_weight=False)
        splits = list(KFold(2).split(Y))
        scores = cross_val_score(auto, TABLE, Y, cv=splits, params={"sample_weight": weights})
    for score, (train, test) in zip(scores, splits, strict=True):
        model = AutoKernelRegressor(**SMALL).fit(TABLE.iloc[train], Y[train], None, weights[train])
        assert score == pytest.approx(model.score(TABLE.iloc[test], Y[test]))


@pytest.mark.parametrize("y", [np.ones(n), np.ones((n, 2))])
def test_a_constant_target_is_refused(y):
    with pytest.raises(DataError, match=r"y has the value 1\.0 only; there is nothing to learn"):
        AutoKernelRegressor().fit(TABLE, y)


@pytest.mark.parametrize("kernels", [(), []])
def test_no_kernels_are_not_the_default_ones(kernels):
    with pytest.raises(ValueError, match="kernels names none; give at least one"):
        AutoKernelRegressor(kernels=kernels).fit(TABLE, Y)


def test_clones_and_pickles(fitted):
    again = clone(fitted)
    assert not hasattr(again, "pipeline_")
    assert again.get_params()["cv"] == 3
    other = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(other.predict(TABLE), fitted.predict(TABLE))
    np.testing.assert_array_equal(other.pipeline_.predict(TABLE), fitted.predict(TABLE))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_tables(fitted, library):
    module = pytest.importorskip(library)
    kind = module.from_pandas if library == "polars" else module.Table.from_pandas
    other = AutoKernelRegressor(**SMALL).fit(kind(TABLE), Y)
    np.testing.assert_allclose(other.predict(kind(TABLE)), fitted.predict(TABLE), rtol=1e-10)


def test_probabilities_need_calibration_or_a_loss():
    assert not hasattr(AutoKernelClassifier(), "predict_proba")
    assert hasattr(AutoKernelClassifier(loss="log"), "predict_proba")
    auto = AutoKernelClassifier(**SMALL, calibrate="sigmoid").fit(TABLE, LABELS)
    found = auto.predict_proba(TABLE)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(auto.classes_[found.argmax(axis=1)], auto.predict(TABLE))
    assert not hasattr(auto, "decision_function")


def test_decision_values_are_those_of_the_model():
    auto = AutoKernelClassifier(**SMALL).fit(TABLE, LABELS)
    Z = TablePreparer().fit_transform(TABLE)
    model = KernelClassifier(loss="squared", **auto.best_params_).fit(Z, LABELS)
    np.testing.assert_allclose(auto.decision_function(TABLE), model.decision_function(Z))


def test_intervals_are_those_of_the_search(fitted):
    Z = fitted.pipeline_.named_steps["prepare"].transform(TABLE)
    found, plain = fitted.predict_interval(TABLE[:5]), predict_interval(fitted.search_, Z, Y, Z[:5])
    np.testing.assert_allclose(found.lower, plain.lower)
    with pytest.raises(TypeError, match="use its own methods"):
        predict_interval(fitted, Z, Y, Z[:5])


def test_what_it_says(fitted, tmp_path):
    assert fitted.summary().startswith("Predictions of target are typically off by")
    assert "Chosen: gamma=0.1, kernel=rbf" in fitted.summary()
    assert all(reason in fitted.summary() for reason in fitted.reasons_)
    assert any("column 'cost' is read as numbers" in note for note in fitted.notes_)
    shown = html.unescape(fitted._repr_html_())
    assert all(line in shown for line in fitted.summary().splitlines())
    assert "AutoKernelRegressor" in AutoKernelRegressor()._repr_html_()
    page = fitted.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "standardised" in page
    assert "is read as numbers" in page


def test_explain_fits_nothing(tmp_path):
    auto = AutoKernelRegressor(**SMALL)
    text = auto.explain(TABLE, Y)
    assert "All stages: " in text
    assert "grid, as given" in text
    assert not hasattr(auto, "pipeline_")
    grouped = auto.explain(TABLE, Y, groups=np.arange(n) % 7)
    assert "3 splits that keep each of the 7 groups on one side" in grouped
    with pytest.raises(ValueError, match=r"sample_weight has shape \(5,\), expected \(60,\)"):
        auto.explain(TABLE, Y, sample_weight=np.ones(5))


def test_time_splits_test_later_rows():
    auto = AutoKernelRegressor(**SMALL | {"cv": TimeSeriesSplit(4)}).fit(TABLE, Y)
    assert all(train.max() < test.min() for train, test in auto.heldout_.folds)
    assert any("in order of time" in reason for reason in auto.reasons_)


def test_splits_may_come_once(fitted):
    pairs = list(fitted.heldout_.folds)
    auto = AutoKernelRegressor(**SMALL | {"cv": iter(pairs)}).fit(TABLE, Y)
    assert auto.best_score_ == pytest.approx(fitted.best_score_)


def test_a_journal_is_resumed(tmp_path, fitted):
    auto = AutoKernelRegressor(**SMALL, journal=tmp_path / "journal")
    first, second = auto.fit(TABLE, Y).best_score_, auto.fit(TABLE, Y).best_score_
    assert first == second == fitted.best_score_


def test_another_preparation():
    X = np.column_stack([SIZE, FLAG])
    X[3, 0] = 0.0
    plain = AutoKernelRegressor(**SMALL, prepare="passthrough").fit(X, Y)
    np.testing.assert_array_equal(plain.best_estimator_.X_fit_, X)
    assert "outliers" not in plain.summary()


def test_no_reaction_to_outliers_where_the_loss_is_given():
    X = np.column_stack([SIZE, FLAG])
    X[3, 0] = 0.0
    wild = Y + 15.0 * (np.arange(n) % 12 == 0)
    asked = AutoKernelRegressor(kernels="rbf", cv=3).fit(X, wild)
    assert asked.best_params_["loss"] == "huber"
    left = AutoKernelRegressor(kernels="rbf", loss="squared", cv=3).fit(X, wild)
    assert "loss" not in left.best_params_


def test_rows_unlike_the_training_rows(fitted):
    odd = TABLE[:2].copy()
    odd.loc[0, "colour"] = "green"
    notes = fitted.unfamiliar(odd)
    assert "unseen colour 'green'" in notes.notes[0]
    assert notes.notes[1] == ""


def test_criteria_are_compared(fitted):
    auto = clone(fitted).fit(TABLE, Y)
    found = {one.name: one for one in auto.compare_criteria("gcv", "loo")}
    assert list(found) == ["cv", "gcv", "loo"]
    lost = auto.best_score_ - auto.cv_results_["pooled_test_score"][found["gcv"].pick]
    assert found["gcv"].regret == pytest.approx(lost)
    values = auto.cv_results_["criterion_gcv"]
    assert found["gcv"].pick == values.argmin()
    best = auto.search_.cv_results_["params"][found["gcv"].pick]
    Z = auto.pipeline_.named_steps["prepare"].transform(TABLE)
    again = KernelSearchCV(KernelRegressor(), auto.param_grid, criterion="gcv").fit(Z, Y)
    assert again.best_params_ == best


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("shop", r"a name of a column.*groups=X\['shop'\]"),
        (np.zeros(len(Y)), "value per row"),
        (np.append(np.arange(len(Y) - 1.0), np.nan), "rows without a group; give each row one"),
    ],
    ids=["a name", "one group", "a gap"],
)
def test_groups_are_a_value_per_row(groups, words):
    with pytest.raises(ValueError, match=words):
        AutoKernelRegressor().fit(TABLE, Y, groups=groups)


def test_time_splits_and_groups_exclude_each_other():
    with pytest.raises(ValueError, match="cannot keep groups together"):
        AutoKernelRegressor(cv=TimeSeriesSplit(3)).fit(TABLE, Y, groups=FLAG)


def test_minutes_and_an_approximation_exclude_each_other():
    auto = AutoKernelRegressor(minutes=1.0, approximation="nystrom")
    with pytest.raises(ValueError, match="leave one of them out"):
        auto.fit(TABLE, Y)


def test_too_many_rows_are_refused_before_any_work():
    refused = r"60 rows need .* nothing was run"
    with onefit_context(memory_bytes=1000.0), pytest.raises(MemoryError, match=refused):
        AutoKernelRegressor(prepare=Refusing()).fit(TABLE, Y)


class Refusing(TablePreparer):
    """Raises if it is fitted."""

    def fit_rows(self, X):
        raise AssertionError("the table was prepared")


def test_names_of_rows_are_noted():
    table = TABLE.assign(row_id=np.arange(n) * 3)
    with pytest.warns(UserWarning, match="column 'row_id' looks like a number of the row"):
        found = AutoKernelRegressor(**SMALL).fit(table, Y)
    assert any("'row_id'" in note for note in found.notes_)


def test_parameters_for_classes_are_refused_for_a_regression():
    with pytest.raises(ValueError, match="calibrate is for classes, and this is a regression"):
        select(TABLE, Y, calibrate="sigmoid")


def test_unfamiliar_rows_without_preparation():
    X = np.column_stack([np.nan_to_num(SIZE), FLAG]).astype(float)
    found = AutoKernelRegressor(prepare="passthrough", kernels="rbf", cv=3).fit(X, Y)
    new = np.vstack([X[:1], 50 + X[:1]])
    novelty = found.unfamiliar(new).novelty
    assert novelty[0] <= 1 < novelty[1]
    assert "; 0.033 would be by chance" in found.unfamiliar(new).summary[0]  # 2 of 61
    grouped = AutoKernelRegressor(prepare="passthrough", kernels="linear", cv=3)
    grouped.fit(X, Y, groups=np.arange(n) % 7)
    assert "; 0.25 would be by chance" in grouped.unfamiliar(new).summary[0]  # 2 of 8
