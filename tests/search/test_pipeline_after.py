"""What follows a search over pipelines: intervals, probabilities, thresholds, nested CV, report."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, nested_cv, predict_interval
from onefit.losses import Quantile

rng = np.random.default_rng(0)
N = 80
X = rng.normal(size=(N, 4)) * [1, 3, 9, 27]
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=N)
NEW = rng.normal(size=(7, 4)) * [1, 3, 9, 27]
CLASSES = np.where(Y > 0, "yes", "no")
WEIGHTS = rng.integers(0, 3, N).astype(float)
CV = KFold(4, shuffle=True, random_state=0)
LAMS = {"kernelregressor__lam": np.logspace(-4, 0, 7)}


def regressor(**options):
    return make_pipeline(
        StandardScaler(), SelectKBest(f_regression, k=2), KernelRegressor(**options)
    )


def searched(model, grid, cv=CV, y=Y, **fit):
    return KernelSearchCV(model, grid, cv=cv).fit(X, y, **fit)


def cv_plus(model, folds, alpha, weights=None):
    """The definition, with a refit per split."""
    weights = np.ones(N) if weights is None else weights
    given = {} if (weights == 1.0).all() else {"kernelregressor__sample_weight": weights}
    low, high, weight = [], [], []
    for train, test in folds:
        fit = {name: values[train] for name, values in given.items()}
        fitted = clone(model).fit(X[train], Y[train], **fit)
        residual = np.abs(Y[test] - fitted.predict(X[test]))
        low += list(fitted.predict(NEW) - residual[:, None])
        high += list(fitted.predict(NEW) + residual[:, None])
        weight += list(weights[test])
    rank, weight = (1 - alpha) * (np.sum(weight) + 1) * (1 - 1e-12), np.array(weight)

    def end(values):
        order = np.argsort(values, axis=0)
        reached = np.cumsum(weight[order], axis=0) >= rank
        return np.take_along_axis(values, order, 0)[reached.argmax(axis=0), np.arange(7)]

    return -end(-np.array(low)), end(np.array(high))


def test_interval_is_that_of_refits():
    search = searched(regressor(), LAMS | {"selectkbest__k": [2, 3]})
    found = predict_interval(search, X, Y, NEW, alpha=0.2)
    lower, upper = cv_plus(search.best_estimator_, CV.split(X), 0.2)
    np.testing.assert_allclose(found.lower, lower, atol=1e-8)
    np.testing.assert_allclose(found.upper, upper, atol=1e-8)
    np.testing.assert_allclose(found.prediction, search.predict(NEW), atol=1e-8)
    assert (found.unit, found.units, found.method) == ("rows", N, "cv+")


def test_interval_with_weights_leaves_out_rows_of_weight_zero():
    model = regressor(lam=1e-2)
    found = predict_interval(model, X, Y, NEW, alpha=0.2, cv=CV, sample_weight=WEIGHTS)
    kept = np.flatnonzero(WEIGHTS)
    folds = [(np.intersect1d(a, kept), np.intersect1d(b, kept)) for a, b in CV.split(X)]
    lower, upper = cv_plus(model, folds, 0.2, WEIGHTS)
    np.testing.assert_allclose(found.lower, lower, atol=1e-8)
    np.testing.assert_allclose(found.upper, upper, atol=1e-8)


def test_progress_of_intervals_is_a_line_for_each_split(capsys):
    predict_interval(regressor(lam=1e-2), X, Y, NEW, alpha=0.2, cv=3, verbose=1)
    lines = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["[1/3] split 0", "[2/3] split 1", "[3/3] split 2"]
    assert [line[1:] == [] for line in lines] == [False, False, True]
    assert lines[0][1].endswith(" left")


def test_interval_takes_groups_and_time_of_the_search():
    groups = np.arange(N) % 8
    search = searched(regressor(), LAMS, GroupKFold(4), groups=groups)
    found = predict_interval(search, X, Y, NEW, alpha=0.2)
    assert (found.unit, found.units) == ("groups", pytest.approx(8))
    search = searched(regressor(), LAMS, TimeSeriesSplit(4))
    found = predict_interval(search, X, Y, NEW, alpha=0.2)
    assert found.method == "forward"
    np.testing.assert_allclose(found.lower + found.upper, 2 * found.prediction)


def test_interval_of_quantiles_targets_and_transformed_targets():
    levels = regressor(loss=Quantile([0.1, 0.9]), lam=1e-2)
    found = predict_interval(levels, X, Y, NEW, alpha=0.2, cv=3)
    assert found.width == "quantiles"
    assert found.lower.shape == (7,)
    assert (found.lower < found.upper).all()
    several = make_pipeline(StandardScaler(), KernelRegressor())
    found = predict_interval(several, X, np.column_stack([Y, -Y]), NEW, cv=CV)
    np.testing.assert_allclose(found.lower[:, 0], -found.upper[:, 1], atol=1e-8)
    around = TransformedTargetRegressor(regressor(), func=np.exp, inverse_func=np.log)
    search = searched(around, {"regressor__kernelregressor__lam": [1e-3, 1e-1]})
    found = predict_interval(search, X, Y, NEW, alpha=0.2)
    lower, _ = cv_plus(search.best_estimator_, CV.split(X), 0.2)
    np.testing.assert_allclose(found.lower, lower, atol=1e-8)


def test_jackknife():
    found = predict_interval(regressor(), X[:30], Y[:30], NEW, alpha=0.2, method="jackknife+")
    folds = KFold(30).split(X[:30])
    lower, _ = cv_plus(regressor(), folds, 0.2)
    np.testing.assert_allclose(found.lower, lower, atol=1e-8)


@pytest.mark.parametrize("options", [{"method": "full"}, {"width": "local"}])
def test_interval_refused_by_name(options):
    with pytest.raises(ValueError, match=r"one kernel matrix of all rows, and a Pipeline"):
        predict_interval(regressor(), X, Y, NEW, **options)


def test_interval_names_the_split_that_fails():
    def broken(rows):
        if len(rows) == 60 and rows[0, 0] == X[next(CV.split(X))[0][0], 0]:
            raise RuntimeError("no")
        return rows

    model = make_pipeline(FunctionTransformer(broken), KernelRegressor())
    with pytest.raises(ValueError, match=r"training part of split 0: RuntimeError: no"):
        predict_interval(model, X, Y, NEW, cv=CV)


@pytest.fixture(scope="module")
def classifiers():
    model = make_pipeline(StandardScaler(), KernelClassifier())
    grid = {"kernelclassifier__lam": np.logspace(-4, 0, 7)}
    return KernelSearchCV(model, grid, cv=CV, scoring="roc_auc").fit(X, CLASSES)


def test_calibration_is_that_of_scikit_learn(classifiers):
    found = classifiers.calibrate()
    honest = CalibratedClassifierCV(classifiers.best_estimator_, cv=CV, ensemble=False)
    expected = honest.fit(X, CLASSES).predict_proba(NEW)
    np.testing.assert_allclose(found.predict_proba(NEW), expected, atol=1e-6)


def test_threshold_is_that_of_scikit_learn(classifiers):
    found = classifiers.tune_threshold("balanced_accuracy")
    honest = TunedThresholdClassifierCV(classifiers.best_estimator_, cv=CV).fit(X, CLASSES)
    assert found.best_threshold_ == pytest.approx(honest.best_threshold_, abs=1e-6)
    assert set(found.predict(NEW)) <= {"yes", "no"}
    assert classifiers.tune_threshold("neyman_pearson", max_rate=0.4).predict(NEW).shape == (7,)


def test_costs(classifiers):
    found = classifiers.minimise_cost({"yes": {"no": 5.0}, "no": {"yes": 1.0}})
    assert set(found.predict(NEW)) <= {"yes", "no"}
    with pytest.raises(ValueError, match="loss='squared' gives no probabilities"):
        classifiers.minimise_cost({"yes": {"no": 5.0}}, calibration=None)


def test_nested_cross_validation_is_that_of_gridsearch():
    grid = {"kernelregressor__lam": [1e-3, 1e-2], "selectkbest__k": [1, 2]}
    options = {"cv": 3, "scoring": "neg_mean_squared_error"}
    searches = (one(regressor(), grid, **options) for one in (KernelSearchCV, GridSearchCV))
    ours, theirs = (nested_cv(one, X, Y, cv=3, n_repeats=1) for one in searches)
    assert ours.error == pytest.approx(theirs.error)
    assert ours.standard_error == pytest.approx(theirs.standard_error)


@pytest.mark.parametrize("method", ["auto", "all_rows"])
def test_report_of_a_table(tmp_path, method):
    table = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), KernelRegressor())
    grid = LAMS | {"kernelregressor__gamma": [0.1, 1.0]}
    search = KernelSearchCV(model, grid, cv=CV, method=method).fit(table, Y)
    search.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert f"{search.headline_.score:.3g}"[:4] in page
    assert search._repr_html_() is not None
