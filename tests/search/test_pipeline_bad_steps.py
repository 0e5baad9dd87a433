"""Steps that fail, on some splits or on all, and what error_score does with them."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV

rng = np.random.default_rng(0)
N = 60
X = rng.normal(size=(N, 4)) * [1, 3, 9, 27]
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=N)
CV = KFold(3)
LAMS = {"kernelregressor__lam": [1e-3, 1e-1]}


class FailsOn(StandardScaler):
    """Fails where the training part has this row first, and more than a number of columns."""

    def __init__(self, row=None, columns=0):
        super().__init__()
        self.row, self.columns = row, columns

    def fit(self, X, y=None, sample_weight=None):
        if self.row in (X[0, 0], "any") and X.shape[1] > self.columns:
            raise RuntimeError("no")
        return super().fit(X, y)


def search(model, params=LAMS, **options):
    return KernelSearchCV(model, params, cv=CV, **options)


def equal_tables(ours, theirs):
    for name in ("split0_test_score", "split1_test_score", "mean_test_score", "rank_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=1e-8)
    assert ours.best_index_ == theirs.best_index_
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores")
@pytest.mark.parametrize("aggregate", ["mean", "pooled"])
@pytest.mark.parametrize("row", [X[20, 0], "any"])
def test_nan_as_score_of_a_setting_that_fails(row, aggregate):
    """On split 0 alone, or on every split: the other setting wins, as in GridSearchCV."""
    model = make_pipeline(SelectKBest(f_regression), FailsOn(row, columns=2), KernelRegressor())
    params = LAMS | {"selectkbest__k": [2, 3]}
    with pytest.warns(UserWarning, match=r"failed on [13] of 6 splits.*step 'failson'.*no"):
        ours = search(model, params, error_score=np.nan, aggregate=aggregate).fit(X, Y)
    theirs = GridSearchCV(model, params, cv=CV, error_score=np.nan).fit(X, Y)
    if aggregate == "mean":
        equal_tables(ours, theirs)
    assert ours.best_params_["selectkbest__k"] == 2
    assert ours.headline_.score > 0.0
    failed = np.array([one["selectkbest__k"] == 3 for one in ours.cv_results_["params"]])
    assert (np.isnan(ours.cv_results_["mean_test_score"]) == failed).all()
    assert ["step 'failson'" in reason for reason in ours.cv_results_["reason"]] == list(failed)


def test_a_step_that_fails_on_every_split_of_every_setting():
    with pytest.raises(ValueError, match="failed on every split"):
        search(make_pipeline(FailsOn("any"), KernelRegressor()), error_score=np.nan).fit(X, Y)


def test_a_value_that_the_training_part_does_not_have():
    table = np.column_stack([X, np.arange(N) // 20])
    columns = make_column_transformer((OneHotEncoder(), [4]), remainder="passthrough")
    model = make_pipeline(StandardScaler(), columns, KernelRegressor())
    with pytest.raises(ValueError, match=r"step 'columntransformer'.*split 0.*unknown categories"):
        search(model).fit(table, Y)


def test_a_step_that_drops_test_rows():
    class Drops(StandardScaler):
        def transform(self, X, copy=None):
            rows = super().transform(X)
            return rows if len(X) == 40 else rows[1:]

    model = make_pipeline(Drops(), KernelRegressor())
    with pytest.raises(ValueError, match=r"step 'drops' .*test part of split 0 has 20 .* 19"):
        search(model).fit(X, Y)


def test_a_transformation_of_the_target_that_gives_nan():
    model = TransformedTargetRegressor(
        KernelRegressor(), func=np.sqrt, inverse_func=np.square, check_inverse=False
    )
    y = np.where(np.arange(N) == 30, -1.0, np.abs(Y))
    params = {"regressor__lam": [1e-3, 1e-1]}
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=r"on split 0: .*NaN"):
        search(model, params).fit(X, y)


def test_text_that_the_kernel_cannot_use():
    model = make_pipeline(FunctionTransformer(lambda X: np.full(X.shape, "a")), KernelRegressor())
    with pytest.raises(ValueError, match=r"KernelRegressor .*split 0"):
        search(model).fit(X, Y)


def test_names_of_nested_steps():
    inner = make_pipeline(StandardScaler(), FailsOn("any"))
    with pytest.raises(ValueError, match=r"step 'pipeline' \(Pipeline\) failed on split 0"):
        search(make_pipeline(inner, KernelRegressor())).fit(X, Y)


def test_no_decisions_without_all_held_out_values():
    """A split on which a step fails has a score, but no held-out values to learn from."""
    labels = np.where(Y > 0, "b", "a")
    model = make_pipeline(FailsOn(X[20, 0]), KernelClassifier())
    with pytest.warns(UserWarning, match="failed on 1 of 3 splits|no headline"):
        found = search(model, {"kernelclassifier__lam": [1e-2]}, error_score=0.0).fit(X, labels)
    np.testing.assert_array_equal(np.ma.getmaskarray(found.heldout_.labels), np.arange(N) < 20)
    for decide in (
        found.calibrate,
        found.tune_threshold,
        lambda: found.tune_threshold("neyman_pearson", max_rate=0.2, confidence=None),
        lambda: found.minimise_cost([[0, 1], [1, 0]]),
    ):
        with pytest.raises(ValueError, match="no held-out values on split 0, where a step"):
            decide()
