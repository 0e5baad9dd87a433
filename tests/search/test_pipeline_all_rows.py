"""Searches over pipelines whose steps are fitted once, to all rows."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_regression
from sklearn.linear_model import Lasso
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler, TargetEncoder

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV

rng = np.random.default_rng(0)
N = 60
X = rng.normal(size=(N, 5)) * [1, 3, 9, 27, 81]
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=N)
LAMS = np.logspace(-4, 0, 7)
MODEL = make_pipeline(StandardScaler(), KernelRegressor())
GRID = {"kernelregressor__gamma": [0.05, "scale"], "kernelregressor__lam": LAMS}
CV = KFold(4, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def search():
    return KernelSearchCV(MODEL, GRID, cv=CV, method="all_rows").fit(X, Y)


def test_equals_a_search_on_transformed_rows(search):
    inside = {name.removeprefix("kernelregressor__"): values for name, values in GRID.items()}
    rows = StandardScaler().fit_transform(X)
    plain = KernelSearchCV(KernelRegressor(), inside, cv=CV).fit(rows, Y)
    for name in ("mean_test_score", "split2_test_score", "exact", "method", "low_test_score"):
        np.testing.assert_array_equal(search.cv_results_[name], plain.cv_results_[name])
    np.testing.assert_array_equal(search.heldout_.values, plain.heldout_.values)
    assert search.headline_.score == plain.headline_.score
    assert type(search.best_estimator_) is type(MODEL)
    np.testing.assert_allclose(search.predict(X), plain.predict(rows))


def test_optimism_is_that_of_the_winner_in_the_folds(search):
    honest = KernelSearchCV(MODEL, GRID, cv=CV).fit(X, Y)
    found = search.optimism_
    i = search.best_index_
    assert found.metric == "score"
    assert found.all_rows == search.best_score_
    assert found.in_folds == pytest.approx(honest.cv_results_["mean_test_score"][i], abs=1e-8)
    assert found.difference == found.all_rows - found.in_folds != 0.0
    alone = {name: [value] for name, value in search.best_params_.items()}
    again = KernelSearchCV(MODEL, alone, cv=CV).fit(X, Y)
    np.testing.assert_allclose(found.heldout.values, again.heldout_.values, atol=1e-8)


def test_settings_of_the_steps_keep_the_order_of_the_grid():
    params = GRID | {"standardscaler": [StandardScaler(), MinMaxScaler()]}
    search = KernelSearchCV(MODEL, params, cv=CV, method="all_rows").fit(X, Y)
    honest = KernelSearchCV(MODEL, params, cv=CV).fit(X, Y)
    assert [str(one) for one in search.cv_results_["params"]] == [
        str(one) for one in honest.cv_results_["params"]
    ]
    both = (one.cv_results_["mean_test_score"] for one in (search, honest))
    np.testing.assert_allclose(*both, atol=0.1)
    assert str(search.best_params_) == str(honest.best_params_)


def test_weights_groups_pooled_scores_and_classes():
    two = (Y > 0).astype(int)
    weight = rng.uniform(0.5, 2.0, N)
    model = make_pipeline(StandardScaler(), KernelClassifier())
    grid = {"kernelclassifier__lam": LAMS}
    options = {"cv": CV, "aggregate": "pooled", "scoring": "roc_auc"}
    search = KernelSearchCV(model, grid, method="all_rows", **options)
    search.fit(X, two, sample_weight=weight)
    honest = KernelSearchCV(model, grid, **options).fit(X, two, sample_weight=weight)
    i = search.best_index_
    assert search.optimism_.in_folds == pytest.approx(honest.cv_results_["pooled_test_score"][i])
    assert search.calibrate().predict_proba(X).shape == (N, 2)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (SelectKBest(f_regression, k=2), "selectkbest"),
        (SelectFromModel(Lasso()), "selectfrommodel"),
        (make_pipeline(StandardScaler(), SelectKBest(f_regression, k=2)), "pipeline"),
        (make_column_transformer((TargetEncoder(), [0])), "columntransformer"),
    ],
)
def test_a_step_that_uses_the_target_is_refused_by_name(step, name):
    model = make_pipeline(step, KernelRegressor())
    search = KernelSearchCV(model, {"kernelregressor__lam": LAMS}, method="all_rows")
    with pytest.raises(ValueError, match=rf"step '{name}'.*use method='auto'"):
        search.fit(X, Y)


def test_a_step_that_can_use_the_target_does_not_get_it():
    class Peek(StandardScaler):
        def fit(self, X, y=None, sample_weight=None):
            assert y is None or len(y) < N  # the folds
            return super().fit(X)

    model = make_pipeline(Peek(), KernelRegressor())
    search = KernelSearchCV(model, GRID, cv=CV, method="all_rows", refit=False).fit(X, Y)
    assert search.optimism_.in_folds < 1.0


def test_refused_for_other_estimators():
    around = TransformedTargetRegressor(KernelRegressor(), transformer=StandardScaler())
    with pytest.raises(ValueError, match="TransformedTargetRegressor"):
        KernelSearchCV(around, {"regressor__lam": LAMS}, method="all_rows").fit(X, Y)
    with pytest.raises(ValueError, match="for a Pipeline"):
        KernelSearchCV(KernelRegressor(), {"lam": LAMS}, method="all_rows").fit(X, Y)


def test_warns_where_the_score_gains():
    noise, y = rng.normal(size=(40, 300)), rng.normal(size=40)

    def similar(rows):
        """Columns most like the target, looked up in all rows."""
        if len(rows) < 40:
            return rows[:, :5]
        return rows[:, np.argsort(-np.abs(noise.T @ y))[:5]]

    model = make_pipeline(FunctionTransformer(similar), KernelRegressor(kernel="linear"))
    search = KernelSearchCV(model, {"kernelregressor__lam": LAMS}, cv=CV, method="all_rows")
    with pytest.warns(UserWarning, match="fitted in every training part"):
        search.fit(noise, y)
    assert search.optimism_.difference > 0.2


def test_plan_and_journal(tmp_path):
    text = str(KernelSearchCV(MODEL, GRID, cv=CV, method="all_rows").explain(X, Y))
    assert "2 kernels x 7 lambdas x 4 splits" in text
    options = {"cv": CV, "method": "all_rows", "journal": tmp_path / "journal"}
    params = GRID | {"standardscaler": [StandardScaler(), MinMaxScaler()]}
    first = KernelSearchCV(MODEL, params, **options).fit(X, Y)
    before = sorted(tmp_path.rglob("*"))
    again = KernelSearchCV(MODEL, params, **options).fit(X, Y)
    assert sorted(tmp_path.rglob("*")) == before
    name = "mean_test_score"
    np.testing.assert_array_equal(again.cv_results_[name], first.cv_results_[name])
