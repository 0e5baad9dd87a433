"""Whether a transformer needs the target."""

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

from onefit.auto.planning import is_supervised
from onefit.prepare import TablePreparer

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6))
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
