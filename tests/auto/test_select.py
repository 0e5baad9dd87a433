"""onefit.select: every rule of its docstring."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command_line import onefit
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import LeaveOneGroupOut

from onefit import (
    AutoKernelClassifier,
    AutoKernelRegressor,
    KernelClassifier,
    KernelRegressor,
    default_grid,
    select,
)
from onefit.auto.rules import choose_kernels
from onefit.prepare import TablePreparer

random = np.random.default_rng(0)
n = 60
X = random.normal(size=(n, 2))
curve = np.sin(2.0 * X[:, 0])
y = curve + 0.1 * random.normal(size=n)
labels = np.where(X[:, 0] + 0.3 * random.normal(size=n) > 0, "yes", "no")


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (y, KernelRegressor),
        (np.column_stack([y, -y]), KernelRegressor),
        (np.arange(n), KernelRegressor),
        (np.column_stack([np.arange(n), np.arange(n)[::-1]]), KernelRegressor),
        (labels, KernelClassifier),
        (labels == "yes", KernelClassifier),
        (np.where(labels == "yes", 1.0, -1.0), KernelClassifier),
        (np.digitize(X[:, 0], [-0.5, 0.5]), KernelClassifier),
        (labels.tolist(), KernelClassifier),
    ],
    ids=["float", "floats", "many", "manys", "text", "bool", "signs", "three", "list"],
)
def test_task(target, kind):
    search = select(X, target, random_state=0, stack=False)
    assert isinstance(search.best_estimator_, kind)
    assert search.best_estimator_.loss == "squared"
    assert search.n_splits_ == 5
    kernels = {"rbf", "laplacian", "matern32", "linear"}
    plain = next(one for one in search.searches_ if "param_kernel" in one.cv_results_)
    assert {one["kernel"] for one in plain.cv_results_["params"]} == kernels
    assert search.scoring_ == ("r2" if kind is KernelRegressor else "accuracy")
    assert search.search_.scoring == search.scoring_
    assert search.predict(X).shape == np.shape(target)


def test_a_scale_of_whole_numbers_is_a_quantity_by_default():
    grades = 3 + np.digitize(X[:, 0], [-0.5, 0.5])
    for target in (grades, grades - 2, np.where(grades == 5, 9, grades)):
        found = select(X, target, kernels="linear")
        codes = np.array_equal(np.unique(target), [1, 2, 3])
        assert isinstance(found.best_estimator_, KernelClassifier if codes else KernelRegressor)
        assert isinstance(found, AutoKernelClassifier if codes else AutoKernelRegressor)
    found = select(X, grades, kernels="linear", task="classification")
    assert isinstance(found.best_estimator_, KernelClassifier)


def test_the_grid_grows_where_the_winner_is_at_its_end():
    line = X[:, 0] - 2.0 * X[:, 1]  # without noise: the smaller lam, the better
    found = select(X, line, kernels="rbf", loss="squared")
    assert any("was extended" in one for one in found.reasons_)
    assert found.best_params_["lam"] < 1e-8 or found.best_params_["gamma"] < 0.01
    given = select(X, line, param_grid={"gamma": [0.1, 1.0], "lam": [1e-2, 1e-1]})
    assert len(given.cv_results_["params"]) == 4


def test_probabilities_of_labels():
    search = select(X, labels, random_state=0, calibrate="sigmoid")
    p = search.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(search.classes_[p.argmax(axis=1)], search.predict(X))


def test_good_on_easy_data():
    assert select(X, y, kernels="rbf", random_state=0).best_score_ > 0.8
    assert select(*load_iris(return_X_y=True), random_state=0).best_score_ > 0.95


@pytest.mark.parametrize(
    ("groups", "stack"), [(None, True), (np.arange(n) % 12, False)], ids=["rows", "groups"]
)
def test_reproducible(groups, stack):
    given = {"groups": groups, "stack": stack, "kernels": "rbf", "cv": 3}
    first, second, other = (select(X, y, **given, random_state=seed) for seed in (0, 0, 1))
    assert first.best_params_ == second.best_params_
    assert first.best_score_ == second.best_score_
    assert first.best_score_ != other.best_score_


GROUPS, SPOILT = np.arange(n) % 10, y + 15.0 * (np.arange(n) % 12 == 0)


@pytest.fixture(scope="module")
def robust():
    """Of rows with outliers, in groups."""
    return select(X, SPOILT, groups=GROUPS, cv=3, stack=False, random_state=0)


def test_outliers_bring_hubers_loss(robust):
    search = robust
    assert search.best_params_["loss"] == "huber"
    assert search.scoring_ == search.search_.scoring == "r2"
    residuals = SPOILT - search.heldout_.predictions
    r2 = 1.0 - np.mean(residuals**2) / SPOILT.var()
    assert search.best_score_ == pytest.approx(r2, abs=1e-6)
    assert search.headline_.score == pytest.approx(r2, abs=1e-6)
    errors = [np.abs(residuals[test]).mean() for test in search.heldout_.folds.test]
    least = search.cv_results_["criterion"].min()
    assert least == search.cv_results_["criterion"][search.search_.best_index_]
    assert least == pytest.approx(np.mean(errors), rel=1e-5)
    assert "by the mean absolute error" in search.reasons_[-1]
    assert "the score is the same as without outliers" in search.reasons_[-1]
    assert search.reasons_[-1] in search.summary()
    assert {one["loss"] for one in search.cv_results_["params"]} == {"squared", "huber"}
    params = search.cv_results_["params"]
    ratio = np.unique([one["loss__threshold"] for one in params if "loss__threshold" in one])
    np.testing.assert_allclose(ratio / ratio[0], [1.0, 2.0, 3.0])
    assert search.best_params_["kernel"] != "linear"
    assert np.abs(search.predict(X) - curve).mean() < 0.3
    squared = KernelRegressor().fit(X, SPOILT)
    assert np.abs(squared.predict(X) - curve).mean() > 1.0


def test_gross_outliers_do_not_set_the_scale_of_the_loss():
    """They draw all predictions of the squared loss, whose residuals are then too large a scale."""
    gross = np.where(np.arange(n) % 20 == 7, 1e4, y)
    found = select(X, gross, kernels="rbf", cv=3, stack=False)
    assert found.best_params_["loss"] == "huber"
    rest = np.abs(found.heldout_.predictions - y)[gross < 1e3]
    assert np.median(rest) < 0.5 * np.abs(y - np.median(y)).mean()


def test_outliers_are_answered_near_the_bandwidth_of_the_squared_loss(robust):
    """Of the grid's bandwidths, at most two on either side of its winner by the same score."""
    tried = robust.cv_results_["params"]
    gammas = np.unique([one["gamma"] for one in tried])
    (grid,) = default_grid(robust.pipeline_[0].transform(X), kernel=robust.best_params_["kernel"])
    known = sorted(grid["gamma"])
    squared = clone(robust.search_).set_params(
        param_grid=[grid | {"loss": ["squared"]}], method="auto", cv=robust.heldout_.folds
    )
    place = known.index(squared.fit(robust.pipeline_[0].transform(X), SPOILT).best_params_["gamma"])
    np.testing.assert_array_equal(gammas, known[max(0, place - 2) : place + 3])


def test_a_long_search_with_hubers_loss_needs_a_longer_limit(monkeypatch):
    monkeypatch.setattr("onefit.auto.outliers.MAX_HUBER_SECONDS", 0.0)
    given = {"cv": 3, "kernels": "rbf", "random_state": 0}
    left_out = select(X, SPOILT, **given)
    assert left_out.best_estimator_.loss == "squared"
    (why,) = [one for one in left_out.reasons_ if "Huber's loss was not tried" in one]
    assert "minutes sets another limit" in why
    assert select(X, SPOILT, minutes=10.0, **given).best_params_["loss"] == "huber"


def test_one_outlier_in_a_hundred_does_not():
    draw = np.random.default_rng(0)
    Z = draw.normal(size=(100, 8))
    t = Z.sum(axis=1) + 0.5 * draw.normal(size=100)
    t[0] += 20.0
    given = {"kernels": "linear", "cv": 3, "random_state": 0}
    search = select(Z, t, **given)
    assert search.best_estimator_.loss == "squared"
    assert "criterion" not in search.cv_results_
    t[1:3] -= 20.0
    assert "criterion" in select(Z, t, **given).cv_results_
    # rows of weight zero do not count
    weight = np.ones(100)
    weight[:3] = 0.0
    assert "criterion" not in select(Z, t, **given, sample_weight=weight).cv_results_


def test_the_metric_is_that_of_the_task_whatever_the_sample():
    """Of 8 subsamples of heavy-tailed rows some have outliers by the rule, and some do not."""
    draw = np.random.default_rng(3)
    Z = draw.normal(size=(400, 3))
    t = Z @ [1.0, 2.0, 3.0] + draw.standard_t(2.5, size=400)
    tried = []
    for i in range(8):
        tried.append(select(Z[i::8], t[i::8], kernels="linear", cv=3, random_state=0))
        tried[-1].given = t[i::8]
    assert 0 < sum("criterion" in one.cv_results_ for one in tried) < 8
    for one in tried:
        assert one.scoring_ == one.search_.scoring == "r2"
        r2 = 1.0 - np.mean((one.given - one.heldout_.predictions) ** 2) / one.given.var()
        assert [one.best_score_, one.headline_.score] == pytest.approx([r2, r2], abs=1e-6)


@pytest.mark.parametrize("target", [y, labels], ids=["regression", "classification"])
def test_groups_stay_together(target):
    search = select(X, target, groups=GROUPS, kernels="rbf", cv=3, random_state=0)
    for train, test in search.heldout_.folds:
        assert not set(GROUPS[train]) & set(GROUPS[test])
    each = select(X, target, groups=GROUPS, kernels="linear", cv=LeaveOneGroupOut())
    assert each.n_splits_ == 10


@pytest.mark.parametrize("loss", ["huber", "epsilon_insensitive"])
def test_targets_of_different_sizes_have_widths_that_suit_each(loss):
    sizes, one = np.array([1.0, 1e4]), X[:30, :1] + 0.1 * y[:30, None]
    found = select(X[:30], one * sizes, loss=loss, kernels="linear", cv=3)
    errors = np.abs(found.heldout_.predictions / sizes - one).mean(axis=0)
    assert errors.max() < 0.5 * np.abs(one - one.mean()).mean()


def test_groups_stay_together_with_outliers(robust):
    for train, test in robust.heldout_.folds:
        assert not set(GROUPS[train]) & set(GROUPS[test])


def test_weights_reach_the_fits():
    weight = np.where(np.arange(n) < 50, 1.0, 0.0)
    spoilt = np.where(weight > 0, y, 1000.0)
    search = select(X, spoilt, sample_weight=weight, cv=[(np.arange(40), np.arange(40, 50))])
    assert np.abs(search.predict(X[:50]) - y[:50]).mean() < 0.3


def test_folds_are_stratified_and_shuffled():
    order = np.argsort(labels, kind="stable")
    search = select(X[order], labels[order], random_state=0)
    parts = [(labels[order][rows] == "yes").mean() for rows in search.heldout_.folds.test]
    assert np.ptp(parts) < 0.2
    assert any(np.any(np.diff(rows) > 1) for rows in search.heldout_.folds.test)


def test_rare_classes_are_mentioned():
    rare = np.where(np.arange(n) % 8 == 0, 1, 0)
    halves = [(np.arange(30), np.arange(30, n))]
    search = select(X, rare, cv=halves, random_state=0)
    assert search.scoring_ == search.search_.scoring == "accuracy"
    assert any("balanced_accuracy gives classes equal weight" in one for one in search.reasons_)


def test_sparse_rows():
    search = select(sparse.csr_matrix(X), y, random_state=0)
    assert {one["kernel"] for one in search.cv_results_["params"]} == {"rbf", "matern32", "linear"}


def test_columns_are_standardised():
    """So that units do not matter; unless they are to."""
    one, other = (select(X * scale, y, kernels="rbf") for scale in (1.0, [1.0, 1e4]))
    np.testing.assert_allclose(one.predict(X), other.predict(X * [1.0, 1e4]), rtol=1e-6)
    plain = select(X, y, kernels="rbf", prepare=TablePreparer(scale=False))
    np.testing.assert_allclose(plain.pipeline_[:-1].transform(X), X)


@pytest.fixture(scope="module")
def mixed():
    """Numbers with gaps, text, truth values, dates and amounts in a currency, and a target."""
    frame = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
    frame["new"], frame["day"] = X[:, 1] > 0.5, pd.date_range("2020-01-01", periods=n)
    frame["cost"] = [f"${1000 * i:,}" for i in range(1, n + 1)]
    frame.loc[3, "size"] = np.nan
    return frame.assign(price=y + (frame["colour"] == "red"), kind=labels)


@pytest.mark.filterwarnings("ignore:column:UserWarning")
@pytest.mark.parametrize("target", ["price", "kind"])
def test_equals_the_command_line(mixed, tmp_path, target):
    from onefit.cli.model import load_model

    data, model = tmp_path / "data.csv", tmp_path / "m.skops"
    mixed.to_csv(data, index=False)
    other = "kind" if target == "price" else "price"
    words = ["select", data, "--target", target, "--drop", other, "--cv", 3, "--model", model]
    done = onefit(*words, "--format", "json")
    assert done.exit_code == 0, done.stderr
    summary = json.loads(done.stdout)
    X, y = mixed.drop(columns=["price", "kind"]), mixed[target]
    found = select(X, y, cv=3)
    best = found.best_params_ if target == "kind" else found.search_.stack_.best_params
    wanted = {k: pytest.approx(v) if isinstance(v, float) else str(v) for k, v in best.items()}
    assert summary["best"]["params"] == wanted
    assert summary["reasons"] == found.reasons_
    pipeline = load_model(model).pipeline
    np.testing.assert_allclose(pipeline[:-1].transform(X), found.pipeline_[:-1].transform(X))
    if target == "price":
        np.testing.assert_allclose(pipeline.predict(X), found.predict(X), rtol=1e-6)
        assert summary["best"]["score"] == pytest.approx(found.best_score_, abs=1e-9)
    else:
        np.testing.assert_array_equal(pipeline.predict(X), found.predict(X))


def test_the_result_reads_and_predicts():
    found = select(X, labels, kernels="linear", scoring="roc_auc", class_weight="balanced")
    assert found.scoring_ == "roc_auc"
    assert found.score(X, labels) > 0.8
    assert "Chosen: kernel=linear" in found.summary()
    assert "KernelClassifier" in found._repr_html_()
    np.testing.assert_array_equal(found.predict(X), found.pipeline_.predict(X))
    assert not hasattr(found, "predict_proba")
    few = select(X, y, param_grid={"kernel": ["rbf"], "gamma": [0.5], "lam": [1e-3, 1e-2]})
    assert len(few.cv_results_["params"]) == 2


def test_amounts_that_are_written_as_text():
    written = pd.Series([f"${1000 * one:,.2f}" for one in y - y.min()], name="price")
    with pytest.warns(UserWarning, match="the target 'price' is read as numbers"):
        found = select(X, written, kernels="linear")
    expected = select(X, np.round(1000 * (y - y.min()), 2), kernels="linear")
    assert found.best_score_ == pytest.approx(expected.best_score_, rel=1e-12)
    again = AutoKernelRegressor(kernels="linear").fit(X, written.to_numpy())
    assert again.best_score_ == found.best_score_
    assert found.score(X, written) == expected.score(X, np.round(1000 * (y - y.min()), 2))
    with pytest.warns(UserWarning, match="the target 'price' is read as numbers"):
        assert select(X, written.to_frame(), kernels="linear").best_score_ == found.best_score_


@pytest.mark.parametrize(
    ("target", "scoring", "metric"),
    [(y, "mae", lambda a, b: -np.abs(a - b).mean()), (labels, "balanced_accuracy", None)],
)
def test_the_score_of_new_rows_is_that_of_the_choice(target, scoring, metric):
    found = select(X, target, kernels="linear", cv=3, scoring=scoring)
    metric = metric or balanced_accuracy_score
    assert found.score(X, target) == pytest.approx(metric(target, found.predict(X)))


def test_unknown_parameters_are_named():
    with pytest.raises(
        TypeError, match=r"'kernel' is not a parameter of \w+; did you mean 'kernels'"
    ):
        select(X, y, kernel="rbf")


def test_codes_of_classes_that_are_written_as_text_stay_text():
    codes = np.where(labels == "yes", "1", "0")
    assert select(X, codes, kernels="linear").classes_.tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("rows", "target", "options", "words"),
    [
        (X, "price", {}, "pass the column itself"),
        (pd.DataFrame(X, columns=["a", "a"]), y, {}, "X has several columns named 'a'"),
        (X, np.ones(n), {}, "y has the value 1.0 only"),
        (X, y[:-1], {}, "X has 60 rows and y has 59"),
        (X, np.where(np.arange(n) == 7, np.nan, y), {}, "y holds nan in row 7"),
        (X, np.array(["a"] * 59 + ["b"]), {}, "class 'b' .* has one row only"),
        (X, np.where(np.arange(n) == 7, None, labels), {}, "y holds None in row 7"),
        (X, pd.date_range("2020-01-01", periods=n), {}, "dates or times"),
        (X, y, {"groups": np.arange(5)}, r"groups has shape \(5,\), expected \(60,\)"),
        (X, y, {"groups": [None, *range(n - 1)]}, "rows without a group"),
        (X, y, {"sample_weight": 2.0}, r"sample_weight has shape \(\), expected \(60,\)"),
        (X, np.eye(n, 3, dtype=int), {}, "call select for each column"),
        (X, np.empty((n, 0)), {}, "y must have shape"),
        (X[:3], y[:3], {}, "3"),
        (np.where(X > 2, np.inf, X), y, {}, "infinity"),
        (X, y, {"scoring": "maee"}, "did you mean 'mae'"),
        (X, y, {"scoring": "accuracy"}, "scores classes"),
        (X, y, {"kernels": "rfb"}, "did you mean 'rbf'"),
        (X, labels, {"task": "regression"}, "use task='classification'"),
        (X, np.where(labels == "yes", 0.5, 2.0), {"task": "classification"}, "continuous"),
        (["a word"] * n, y, {}, "use KernelSearchCV with a function as kernel"),
    ],
)
def test_bad_input(rows, target, options, words):
    with pytest.raises(ValueError, match=words):
        select(rows, target, **options)


def test_fourier_features_leave_out_the_linear_kernel():
    """It is no function of x - y, so that the rule would choose what cannot be fitted."""
    Z = np.zeros((3, 2))
    assert choose_kernels(None, Z, "fourier")[0] == ("rbf", "laplacian", "matern32")
    assert "linear" in choose_kernels(None, Z, "nystrom")[0]
