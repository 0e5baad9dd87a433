"""A transformer in front of a search over a kernel estimator."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler, TargetEncoder

from onefit import KernelRegressor, KernelSearchCV
from onefit.auto.preparation import is_supervised, with_preparation
from onefit.prepare import TablePreparer

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6))
Y = X[:, 0] + rng.normal(size=60)
SELECT = SelectKBest(f_regression, k=2)


@pytest.mark.parametrize(
    "transformer",
    [
        SELECT,
        TargetEncoder(),
        SelectFromModel(Lasso()),
        RFE(Lasso()),
        PLSRegression(),
        make_pipeline(StandardScaler(), SELECT),
        make_union(PCA(2), SELECT),
        make_column_transformer((TargetEncoder(), [0]), remainder="passthrough"),
    ],
)
def test_supervised(transformer):
    assert is_supervised(transformer, X)


@pytest.mark.parametrize(
    "transformer",
    [
        None,
        "passthrough",
        StandardScaler(),
        PCA(2),
        TablePreparer(),
        make_column_transformer((SimpleImputer(), [0, 1]), remainder=StandardScaler()),
    ],
)
def test_not_supervised(transformer):
    assert not is_supervised(transformer, X)


@pytest.mark.parametrize(
    ("transformer", "in_folds", "honest"),
    [(StandardScaler(), False, False), (StandardScaler(), True, True), (SELECT, False, True)],
)
def test_search_with_preparation(transformer, in_folds, honest):
    grid = {"lam": [1e-3, 1e-1], "gamma": [0.1, 1.0]}
    search = KernelSearchCV(KernelRegressor(), grid, cv=4)
    found = with_preparation(search, transformer, X, in_folds).fit(X, Y)
    assert hasattr(found, "optimism_") != honest
    model = make_pipeline(transformer, KernelRegressor())
    inside = {f"kernelregressor__{name}": values for name, values in grid.items()}
    expected = KernelSearchCV(model, inside, cv=4).fit(X, Y)
    honest_score = found.best_score_ if honest else found.optimism_.in_folds
    i = found.best_index_
    assert honest_score == pytest.approx(expected.cv_results_["mean_test_score"][i])
    assert list(found.best_estimator_.named_steps) == ["prepare", "model"]
