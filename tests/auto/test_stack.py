"""``stack=True`` of the automatic estimators, against refits of everything in every split."""

import numpy as np
import pandas as pd
import pytest
from command_line import onefit
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_friedman1
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from onefit import (
    AutoKernelClassifier,
    AutoKernelRegressor,
    KernelClassifier,
    KernelRegressor,
    KernelSearchCV,
    select,
)
from onefit.cli.model import load_model, save_model
from onefit.estimators.stacked import StackedClassifier, StackedRegressor
from onefit.evidence_scales import EvidenceScales
from onefit.gradient_metric import GradientMetric
from onefit.stack_weights import stack_weights
from onefit.stacking import stack
from onefit.uncertainty import predict_interval

PIPELINE = Pipeline([("rows", GradientMetric()), ("model", KernelRegressor(kernel="matern12"))])
METRICS = {
    "rows": [GradientMetric(1), EvidenceScales()],
    "model__gamma": [0.3, 1.0],
    "model__lam": [1e-4, 1e-2],
}
GRID = {"gamma": [0.03, 0.1], "lam": [1e-4, 1e-2]}


@pytest.fixture(scope="module")
def data():
    return make_friedman1(90, n_features=6, noise=0.5, random_state=0)


def refits(search, X, y, response="predict"):
    """Held-out values of all candidates, everything fitted in every training part."""
    params, folds = search.cv_results_["params"], search.heldout_.folds
    F = [np.full(len(y), np.nan) for _ in params]
    if response == "decision_function" and np.unique(y).size > 2:
        F = [np.full((len(y), np.unique(y).size), np.nan) for _ in params]
    for train, test in folds:
        for values, one in zip(F, params, strict=True):
            model = clone(search.estimator).set_params(**one).fit(X[train], y[train])
            values[test] = getattr(model, response)(X[test])
    return np.stack(F, axis=-1)


def test_metrics_are_learned_in_every_training_part(data):
    X, y = data
    cv = KFold(4, shuffle=True, random_state=0)
    first = KernelSearchCV(KernelRegressor(), GRID, cv=cv, aggregate="pooled").fit(X, y)
    second = KernelSearchCV(PIPELINE, METRICS, cv=cv, aggregate="pooled").fit(X, y)
    found = stack(first, X, y, further=[second])
    F = np.hstack([refits(first, X, y), refits(second, X, y)])
    kernels = np.arange(12)  # two of each: all enter
    weights = stack_weights(F - y[:, None], np.ones(len(y)), kernels=kernels)
    assert np.concatenate(found.stack_.weights) == pytest.approx(weights, abs=1e-12)
    assert found.stack_.weights[1].sum() > 0.4
    crossfit = np.empty_like(y)
    for _, test in cv.split(X):
        rest = np.setdiff1d(np.arange(len(y)), test)
        own = stack_weights(F[rest] - y[rest, None], np.ones(len(rest)), kernels=kernels)
        crossfit[test] = F[test] @ own
    assert found.heldout_.predictions == pytest.approx(crossfit, abs=1e-7)
    residual = np.sum((crossfit - y) ** 2) / np.sum((y - y.mean()) ** 2)
    assert found.best_score_ == pytest.approx(1 - residual)
    assert found.headline_.score == pytest.approx(found.best_score_)
    assert first.best_score_ != found.best_score_
    models = [(KernelRegressor(), first), (PIPELINE, second)]
    X_new = make_friedman1(9, n_features=6, random_state=1)[0]
    wanted = sum(
        w * clone(model).set_params(**p).fit(X, y).predict(X_new)
        for (model, search), own in zip(models, found.stack_.weights, strict=True)
        for w, p in zip(own, search.cv_results_["params"], strict=True)
        if w
    )
    assert found.predict(X_new) == pytest.approx(wanted, abs=1e-7)
    again = stack(first, X, y, further=[second], nested=True).stack_
    assert again.nested_error > 0.9 * again.crossfit_error


def test_nested_learns_metrics_without_both_folds(data):
    X, y = data
    cv = KFold(3, shuffle=True, random_state=0)
    first = KernelSearchCV(KernelRegressor(), GRID, cv=cv, aggregate="pooled").fit(X, y)
    search = KernelSearchCV(PIPELINE, METRICS, cv=cv, aggregate="pooled").fit(X, y)
    found, wanted = stack(first, X, y, further=[search], nested=True).stack_, np.empty_like(y)
    folds, params = [test for _, test in cv.split(X)], search.cv_results_["params"]
    all_models = [KernelRegressor(**p) for p in first.cv_results_["params"]]
    all_models += [clone(PIPELINE).set_params(**p) for p in params]

    def predictions(train, test):
        return np.column_stack([m.fit(X[train], y[train]).predict(X[test]) for m in all_models])

    for k, fold in enumerate(folds):
        rest = np.setdiff1d(np.arange(len(y)), fold)
        inner = np.full((len(y), len(all_models)), np.nan)
        for other in folds[:k] + folds[k + 1 :]:
            inner[other] = predictions(np.setdiff1d(rest, other), other)
        kernels = np.arange(12)  # two of each: all enter
        w = stack_weights(inner[rest] - y[rest, None], np.ones(len(rest)), kernels=kernels)
        wanted[fold] = predictions(rest, fold) @ w
    assert found.nested_predictions == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_classes(classes, class_weight):
    weights = [0.6, 0.4] if classes == 2 else [0.5, 0.3, 0.2]
    X, y = make_classification(
        120, 5, n_informative=4, n_redundant=0, n_classes=classes, weights=weights, flip_y=0.1,
        random_state=0,
    )  # fmt: skip
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    grid = {"gamma": [0.05, 0.2, 1.0], "lam": [1e-3, 1e-1]}
    model = KernelClassifier(class_weight=None)
    s = np.ones(len(y))
    if class_weight is not None:
        s = (len(y) / (classes * np.bincount(y)))[y]
        model = KernelClassifier(class_weight=dict(enumerate(len(y) / (classes * np.bincount(y)))))
    search = KernelSearchCV(model, grid, cv=cv, scoring="accuracy", aggregate="pooled").fit(X, y)
    found = stack(search, X, y)
    F = refits(search, X, y, "decision_function").reshape(len(y), -1, 6)
    signs = np.where(y[:, None] == np.arange(classes), 1.0, -1.0)[:, -F.shape[1] :]
    weights = stack_weights(F - signs[:, :, None], s, kernels=np.repeat(np.arange(3), 2))
    assert found.stack_.weights[0] == pytest.approx(weights, abs=1e-10)
    assert np.count_nonzero(weights) > 1
    assert isinstance(found.best_estimator_, StackedClassifier)
    labels = found.heldout_.labels
    assert found.best_score_ == pytest.approx(np.mean(labels == y))
    wanted = sum(
        w * clone(model).set_params(**p).fit(X, y).decision_function(X)
        for w, p in zip(weights, search.cv_results_["params"], strict=True)
        if w
    )
    assert found.decision_function(X) == pytest.approx(wanted, abs=1e-8)
    proba = found.calibrate().predict_proba(X)
    assert proba.shape == (len(y), classes)
    assert proba.sum(axis=1) == pytest.approx(1.0)


def test_log_loss_is_smaller_than_that_of_the_best_candidate():
    X, y = make_classification(150, 6, n_informative=3, flip_y=0.2, random_state=0)
    grid = {"gamma": [0.03, 0.1, 0.3], "lam": [1e-4, 1e-3, 1e-2]}
    search = KernelSearchCV(KernelClassifier(loss="log"), grid, cv=5, scoring="neg_log_loss")
    found = stack(search.fit(X, y), X, y)

    def log_loss(f):
        return np.mean(np.logaddexp(0.0, -np.where(y == 1, 1.0, -1.0) * f))

    best = min(log_loss(search.heldout(i).predictions) for i in range(9))
    assert log_loss(found.stack_.heldout_predictions) < best
    assert found.predict_proba(X[:4]).shape == (4, 2)


def test_regressor_says_what_it_averages(data, tmp_path):
    X, y = data
    auto = AutoKernelRegressor(journal=tmp_path / "j").fit(X, y)
    single = AutoKernelRegressor(stack=False).fit(X, y)
    assert str(single.best_params_) == str(auto.searches_[0].best_params_)
    assert isinstance(auto.best_estimator_, StackedRegressor)
    text = auto.summary()
    assert "stack: average of" in text
    assert "with a learned metric" in text
    assert "Chosen: average of" in text
    assert auto.heldout_.method == "stack"
    again = clone(auto).fit(X, y)
    assert np.array_equal(again.predict(X), auto.predict(X))
    auto.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "tack: average of" in page
    assert "chosen</dt><dd>average of" in page
    found = auto.predict_interval(X, alpha=0.2)
    residuals = np.sort(np.abs(auto.heldout_.predictions - y))
    half = residuals[int(np.ceil(0.8 * 91)) - 1]
    assert found.method == "cv"
    assert found.upper - auto.predict(X) == pytest.approx(np.full(90, half))
    assert auto.predict(X) - found.lower == pytest.approx(np.full(90, half))


#: what the plan says of a stack
STACKED = "average of the candidates"


@pytest.mark.parametrize("options", [{}, {"kernels": ("rbf", "linear")}])
def test_a_regression_left_to_the_rules_is_stacked(data, options):
    auto = AutoKernelRegressor(cv=3, **options)
    assert (STACKED in auto.explain(*data)) == (options == {})
    assert hasattr(auto.fit(*data).search_, "stack_") == (options == {})


def test_several_targets_and_classes_are_not_stacked_by_default(data):
    X, y = data
    assert STACKED not in AutoKernelClassifier().explain(X, np.where(y > y.mean(), "a", "b"))
    assert STACKED not in AutoKernelRegressor().explain(X, np.column_stack([y, -y]))


@pytest.mark.parametrize(
    ("n", "options", "stacked"),
    [
        (1500, {}, True),
        (4000, {}, True),
        (99, {"stack": False}, False),
        (99, {"scoring": "mae"}, False),
        (99, {"minutes": 5.0}, True),
    ],
)
def test_the_plan_shows_the_time_of_the_average(n, options, stacked):
    """By default if all is left to the rules."""
    text = AutoKernelRegressor(**options).explain(*make_friedman1(n, random_state=0))
    assert (STACKED in text) == stacked


def test_a_stack_has_no_updates(data):
    X, y = data
    grid = {"gamma": [0.03, 0.1], "lam": [1e-4, 1e-2]}
    model = stack(KernelSearchCV(KernelRegressor(), grid, cv=3).fit(X, y), X, y).best_estimator_
    for change in (lambda: model.add_rows(X[:2], y[:2]), lambda: model.remove_rows([0])):
        with pytest.raises(TypeError, match="has no updates; use stack=False"):
            change()


def test_outliers_bring_the_candidates_of_both_searches(data):
    X, y = data
    y = y + np.where(np.arange(y.size) % 12, 0.0, 60.0)
    auto = AutoKernelRegressor(stack=True, kernels="rbf").fit(X, y)
    assert any("outliers" in one for one in auto.reasons_)
    assert len(auto.search_.stack_.weights) == 2  # robust, plain
    clean = make_friedman1(300, n_features=6, random_state=2)
    assert auto.score(*clean) > 0.5


def test_groups_and_weights(data):
    X, y = data
    groups, s = np.arange(y.size) // 3, np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    auto = AutoKernelRegressor(stack="nested", kernels="rbf", cv=3)
    auto.fit(X, y, groups=groups, sample_weight=s)
    for test in auto.search_.folds_.test:
        assert not np.isin(groups[test], np.delete(groups, test)).any()
    found = auto.search_.stack_
    squares = (found.crossfit_predictions - y) ** 2
    assert found.crossfit_error == pytest.approx(np.sqrt(np.average(squares, weights=s)))
    assert any("nested cross-validation of the stack" in one for one in auto.reasons_)
    assert auto.predict_interval(X[:2]).unit == "groups"


def test_intervals_are_those_of_rows_with_weight(data):
    X, y = data
    s = np.ones(y.size)
    s[:30] = 0.0
    search = KernelSearchCV(KernelRegressor(), GRID, cv=KFold(3, shuffle=True, random_state=0))
    found = stack(search.fit(X, y, sample_weight=s), X, y, sample_weight=s)
    held = found.heldout_.predictions
    band = predict_interval(found, X, y, X, alpha=0.2, sample_weight=s)
    residuals = np.sort(np.abs(held - y)[30:])
    half = residuals[int(np.ceil(0.8 * 61)) - 1]
    assert band.upper - found.predict(X) == pytest.approx(np.full(90, half))
    with pytest.raises(ValueError, match="the stack was fitted to 90 rows, but X has 60"):
        predict_interval(found.best_estimator_, X[30:], y[30:], X, alpha=0.2)
    with pytest.raises(ValueError, match="held-out residuals alone, got width='local'"):
        predict_interval(found, X, y, X, alpha=0.2, width="local")


def test_classifier_with_probabilities():
    X, y = load_iris(return_X_y=True)
    auto = select(X, y, stack=True, kernels="rbf", cv=3, calibrate="sigmoid")
    assert auto.score(X, y) > 0.95
    assert auto.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "auto",
    [AutoKernelRegressor(), AutoKernelClassifier(), AutoKernelClassifier(calibrate="sigmoid")],
    ids=["regression", "labels", "probabilities"],
)
def test_models_in_files(data, tmp_path, auto):
    X, y = data
    y = y if isinstance(auto, AutoKernelRegressor) else np.where(y > y.mean(), "high", "low")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    auto.set_params(stack=True, kernels="rbf", cv=3).fit(frame, y)
    save_model(auto, tmp_path / "model.skops", "y")
    model = load_model(tmp_path / "model.skops")
    assert np.array_equal(model.pipeline.predict(frame), auto.predict(frame))


def test_command_line(data, tmp_path):
    X, y = data
    pd.DataFrame(X, columns=list("abcdef")).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    rows, model = str(tmp_path / "rows.csv"), str(tmp_path / "model.skops")
    given = ["select", rows, "--target", "y", "--stack", "--kernels", "rbf", "--model", model]
    found = onefit(*given)
    assert found.exit_code == 0, found.output
    assert "average of" in found.output
    found = onefit("predict", model, rows)
    assert found.exit_code == 0, found.output
    assert "lower" in found.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stack": "yes"}, "stack must be None, True, False or 'nested'"),
        ({"stack": True, "approximation": "nystrom"}, "leave one of them out"),
        ({"stack": True, "prepare": SelectKBest()}, "use stack=False"),
    ],
)
def test_refusals(data, options, message):
    with pytest.raises(ValueError, match=message):
        AutoKernelRegressor(**options).fit(*data)
    with pytest.raises(TypeError, match="and this one in further"):
        stack(KernelSearchCV(PIPELINE, METRICS).fit(*data), *data)
    with pytest.raises(ValueError, match="several columns"):
        AutoKernelRegressor(stack=True).fit(data[0], data[0][:, :2])
