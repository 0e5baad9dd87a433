"""A preparation that needs the target is fitted in every training part."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.feature_selection import SelectKBest, f_classif, f_regression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import AutoKernelClassifier, AutoKernelRegressor, KernelRegressor
from onefit.prepare import TablePreparer

X, Y = make_regression(80, 20, n_informative=4, noise=20.0, random_state=0)
CV = KFold(4, shuffle=True, random_state=1)
GRID = {"kernel": ["rbf"], "gamma": [0.003, 0.03], "lam": [1e-3, 1e-1]}
SELECT = make_pipeline(StandardScaler(), SelectKBest(f_regression, k=4))


def auto(prepare=SELECT, **options):
    return AutoKernelRegressor(prepare=prepare, cv=CV, param_grid=GRID, **options)


def test_as_grid_search():
    found = auto(scoring="neg_mean_squared_error").fit(X, Y)
    grid = {f"model__{name}": values for name, values in GRID.items()}
    pipeline = Pipeline([("prepare", SELECT), ("model", KernelRegressor())])
    expected = GridSearchCV(pipeline, grid, cv=CV, scoring="neg_mean_squared_error").fit(X, Y)
    # folds are of one size, so that the mean of their scores is the score of all rows
    np.testing.assert_allclose(
        found.cv_results_["pooled_test_score"],
        expected.cv_results_["mean_test_score"],
        rtol=1e-8,
    )
    assert found.best_params_ == expected.best_params_
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-8)


def test_noise_is_not_explained():
    random = np.random.default_rng(0)
    noise, y = random.normal(size=(60, 500)), random.normal(size=60)
    with pytest.warns(UserWarning, match="the baseline"):
        found = AutoKernelRegressor(prepare=SelectKBest(f_regression, k=10)).fit(noise, y)
    assert found.best_score_ < 0.2
    assert any("every training part" in one for one in found.reasons_)


def test_after_the_fit(tmp_path):
    found = auto(journal=tmp_path / "journal").fit(X, Y)
    assert found.pipeline_.named_steps["model"] is found.best_estimator_
    assert found.headline_.interval[0] < found.best_score_ < found.headline_.interval[1]
    interval = found.predict_interval(X[:5])
    assert (interval.lower < interval.upper).all()
    found.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").exists()
    assert "settings of the preprocessing" in auto().explain(X, Y)
    assert found.unfamiliar(X[:3]).notes.shape == (3,)
    assert found.summary()
    with pytest.raises(ValueError, match="relevance needs prepared rows"):
        found.relevance()
    with pytest.raises(ValueError, match="compare_criteria needs prepared rows"):
        found.compare_criteria("loo")


def test_calibrated_labels():
    found = AutoKernelClassifier(
        prepare=SelectKBest(f_classif, k=4), calibrate="sigmoid", cv=4, param_grid=GRID
    ).fit(X, Y > 0)
    np.testing.assert_allclose(found.predict_proba(X[:5]).sum(axis=1), 1.0)
    assert found.best_estimator_ is found.pipeline_
    assert found.unfamiliar(X[:3]).notes.shape == (3,)


def test_time_limits_are_refused():
    with pytest.raises(ValueError, match="leave minutes out"):
        auto(minutes=1.0).fit(X, Y)


def test_tables_groups_and_weights():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X[:, :5]).add_prefix("x").assign(kind=np.where(X[:, 5] > 0, "a", "b"))
    table.loc[3, "x0"] = np.nan
    weights, groups = np.linspace(0.5, 1.5, 80), np.arange(80) // 4
    prepare = make_pipeline(TablePreparer(), SelectKBest(f_regression, k="all"))
    found = AutoKernelRegressor(prepare=prepare, cv=4, param_grid=GRID)
    found.fit(table, Y, groups=groups, sample_weight=weights)
    pipeline = clone(found.pipeline_)
    expected = pipeline.fit(table, Y, model__sample_weight=weights).predict(table)
    np.testing.assert_allclose(found.predict(table), expected, rtol=1e-8)
    for train, test in found.search_.folds_:
        assert not set(groups[train]) & set(groups[test])
        part = clone(pipeline).fit(table.iloc[train], Y[train], model__sample_weight=weights[train])
        np.testing.assert_allclose(
            found.heldout_.predictions[test], part.predict(table.iloc[test]), rtol=1e-8
        )
