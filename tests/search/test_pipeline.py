import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.feature_selection import SelectKBest, f_classif, f_regression
from sklearn.impute import SimpleImputer
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, TargetEncoder

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, nested_cv
from onefit.features import Fourier
from onefit.search import Interval, pipeline

rng = np.random.default_rng(0)
N = 60
X = rng.normal(size=(N, 5)) * [1, 3, 9, 27, 81]
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=N)
CLASSES = np.digitize(Y, [-0.7, 0.7])
WEIGHTS = rng.uniform(0.5, 2.0, N)
GROUPS = np.arange(N) % 7
LAMS = np.logspace(-4, 0, 7)


def grid(name="kernelregressor", **more):
    return {f"{name}__gamma": [0.05, "scale"], f"{name}__lam": LAMS, **more}


def compare(estimator, params, y=Y, rows=X, fit=None, tolerance=1e-8, **options):
    fit = fit or {}
    ours = KernelSearchCV(estimator, params, **options).fit(rows, y, **fit)
    theirs = GridSearchCV(estimator, params, **options).fit(rows, y, **fit)
    names = [name for name in theirs.cv_results_ if name.startswith("split")]
    for name in names:
        np.testing.assert_allclose(
            ours.cv_results_[name], theirs.cv_results_[name], rtol=tolerance, atol=tolerance
        )
    assert names
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows), atol=1e-8)
    return ours


def test_scaler_and_selection():
    model = make_pipeline(StandardScaler(), SelectKBest(f_regression), KernelRegressor())
    search = compare(model, grid(selectkbest__k=[1, 3]), cv=4)
    assert search.cv_results_["exact"].all()
    assert type(search.best_estimator_) is type(model)
    assert search.heldout_.predictions.shape == (N,)
    assert search.headline_.score < 1.0
    assert search.n_features_in_ == 5


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3, shuffle=True, random_state=1),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(3, test_size=0.3, random_state=0),
        TimeSeriesSplit(3),
    ],
)
def test_splitters(cv):
    model = make_pipeline(StandardScaler(), KernelRegressor())
    compare(model, grid(), cv=cv, scoring="neg_mean_squared_error")


@pytest.mark.parametrize("inner", [KernelRegressor(), make_pipeline(KernelRegressor())])
def test_a_pipeline_without_transformers(inner):
    name = "kernelregressor" if isinstance(inner, KernelRegressor) else "pipeline__kernelregressor"
    compare(make_pipeline(inner), grid(name), cv=3)


def test_groups():
    model = make_pipeline(StandardScaler(), KernelRegressor())
    compare(model, grid(), cv=GroupKFold(3), fit={"groups": GROUPS})


@pytest.mark.parametrize("loss", ["huber", "epsilon_insensitive", "quantile", "expectile"])
def test_losses(loss):
    model = make_pipeline(StandardScaler(), KernelRegressor(loss=loss))
    params = grid() | {"kernelregressor__lam": [1e-3, 1e-1]}
    compare(model, params, cv=3, scoring="neg_mean_absolute_error", tolerance=1e-6)


@pytest.mark.parametrize("loss", ["squared", "smoothed_hinge", "log"])
def test_classifiers(loss):
    model = make_pipeline(StandardScaler(), SelectKBest(f_classif, k=3), KernelClassifier(loss))
    few = {"lam": [1e-3, 1e-1], "class_weight": ["balanced", None]}
    more = {f"kernelclassifier__{name}": values for name, values in few.items()}
    compare(model, grid("kernelclassifier") | more, y=CLASSES, cv=3)


def test_pairs_of_classes():
    model = make_pipeline(StandardScaler(), KernelClassifier())
    params = {"kernelclassifier__multi_class": ["ovo", "ovr"], "kernelclassifier__lam": LAMS}
    compare(model, params, y=CLASSES, cv=3)


def test_sample_weights_of_the_kernel_estimator():
    model = make_pipeline(StandardScaler(), KernelRegressor())
    compare(model, grid(), cv=3, fit={"kernelregressor__sample_weight": WEIGHTS})
    some = np.where(np.arange(N) % 6, WEIGHTS, 0.0)
    compare(model, grid(), cv=3, fit={"kernelregressor__sample_weight": some})


def test_a_class_without_weight_in_a_training_part_is_refused():
    model = make_pipeline(StandardScaler(), KernelClassifier())
    rare = np.flatnonzero(CLASSES == 0)[:3]
    weights = np.where(CLASSES == 0, 0.0, 1.0)
    weights[rare] = 1.0
    cv = [(np.setdiff1d(np.arange(N), rare), rare)]
    search = KernelSearchCV(model, {"kernelclassifier__lam": LAMS}, cv=cv)
    with pytest.raises(ValueError, match="sample_weight is zero on every row of some class"):
        search.fit(X, CLASSES, kernelclassifier__sample_weight=weights)


def test_sample_weights_of_features():
    model = make_pipeline(StandardScaler(), KernelRegressor(approximation=Fourier(30)))
    compare(model, grid(), cv=3, fit={"kernelregressor__sample_weight": WEIGHTS})


def test_metadata_routing():
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=True),
            KernelRegressor().set_fit_request(sample_weight=True),
        )
        scorer = make_scorer(mean_squared_error, greater_is_better=False)
        scoring = scorer.set_score_request(sample_weight=True)
        compare(model, grid(), cv=3, fit={"sample_weight": WEIGHTS}, scoring=scoring)


@pytest.mark.parametrize(
    "around", [{"transformer": StandardScaler()}, {"func": np.log, "inverse_func": np.exp}]
)
def test_transformed_target(around):
    inner = make_pipeline(StandardScaler(), KernelRegressor())
    model = TransformedTargetRegressor(inner, **around)
    params = {f"regressor__{name}": values for name, values in grid().items()}
    compare(model, params, y=np.exp(Y / 4), cv=3)
    inside = make_pipeline(
        StandardScaler(), TransformedTargetRegressor(KernelRegressor(), **around)
    )
    params = {f"transformedtargetregressor__regressor__{x}": LAMS for x in ("lam",)}
    compare(inside, params, y=np.exp(Y / 4), cv=3)


def test_several_targets():
    model = make_pipeline(StandardScaler(), KernelRegressor())
    compare(model, grid(), y=np.column_stack([Y, -Y, X[:, 0]]), cv=3)


@pytest.mark.filterwarnings("ignore:.*TargetEncoder:FutureWarning")
def test_target_encoding_of_a_table():
    table = pd.DataFrame(X, columns=list("abcde")).assign(f=np.array(list("uvwxyz"))[GROUPS % 6])
    table.loc[3, "b"] = np.nan
    columns = make_column_transformer(
        (TargetEncoder(random_state=0), ["f"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), list("abcde")),
    )
    search = compare(make_pipeline(columns, KernelRegressor()), grid(), rows=table, cv=3)
    assert search.feature_names_in_.tolist() == list("abcdef")


def test_steps_may_be_replaced():
    model = make_pipeline(StandardScaler(), KernelRegressor())
    other = KernelRegressor(kernel="laplacian")
    params = {
        "standardscaler": [StandardScaler(), "passthrough"],
        "kernelregressor": [KernelRegressor(), other],
        "kernelregressor__lam": LAMS,
    }
    compare(model, params, cv=3)


def test_several_metrics_and_approximation():
    kernel = KernelRegressor(approximation=Fourier(20))
    model = make_pipeline(StandardScaler(), kernel)
    scoring = ["r2", "neg_mean_absolute_error"]
    compare(model, {"kernelregressor__lam": LAMS[:2]}, cv=3, scoring=scoring, refit="r2")


def test_selection_on_noise_is_honest():
    noise, y = rng.normal(size=(60, 400)), rng.normal(size=60)
    model = make_pipeline(SelectKBest(f_regression, k=10), KernelRegressor(kernel="linear"))
    lams = {"kernelregressor__lam": [1e-2, 1.0]}
    search = KernelSearchCV(model, lams, cv=5, aggregate="pooled").fit(noise, y)
    assert search.headline_.score < 0.1


def test_calibration_and_nested_cross_validation():
    two = (Y > 0).astype(int)
    model = make_pipeline(StandardScaler(), KernelClassifier())
    search = KernelSearchCV(model, grid("kernelclassifier"), cv=3).fit(X, two)
    calibrated = search.calibrate()
    assert calibrated.predict_proba(X).shape == (N, 2)
    assert search.tune_threshold().predict(X).shape == (N,)
    found = nested_cv(search, X, two, cv=3, n_repeats=1)
    assert 0.0 <= found.outside_error <= 1.0


def test_journal(tmp_path):
    model = make_pipeline(StandardScaler(), KernelRegressor())
    path = tmp_path / "journal"
    first = KernelSearchCV(model, grid(), cv=3, journal=path).fit(X, Y)
    fewer = {"kernelregressor__lam": LAMS[2:4], "kernelregressor__gamma": [0.05]}
    again = KernelSearchCV(model, fewer, cv=3, journal=path).fit(X, Y)
    np.testing.assert_array_equal(
        again.cv_results_["mean_test_score"], first.cv_results_["mean_test_score"][2:4]
    )
    np.testing.assert_array_equal(  # nothing was computed again
        again.cv_results_["mean_fit_time"], first.cv_results_["mean_fit_time"][2:4]
    )


def test_a_grid_that_grows_computes_the_new_lams_alone(tmp_path, monkeypatch):
    model = make_pipeline(StandardScaler(), KernelRegressor())
    path, computed = tmp_path / "journal", []
    predict_all = pipeline.run_job

    def noted(task, job, geometry):
        computed.extend(lam for model in job.models for lam in model.lams)
        return predict_all(task, job, geometry)

    monkeypatch.setattr(pipeline, "run_job", noted)
    few = {"kernelregressor__lam": LAMS[1:3]}
    KernelSearchCV(model, few, cv=3, journal=path).fit(X, Y)
    computed.clear()
    grown = KernelSearchCV(model, {"kernelregressor__lam": LAMS}, cv=3, journal=path).fit(X, Y)
    assert sorted(set(computed)) == sorted(set(LAMS) - set(LAMS[1:3]))
    whole = KernelSearchCV(model, {"kernelregressor__lam": LAMS}, cv=3).fit(X, Y)
    np.testing.assert_allclose(
        grown.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], rtol=1e-9
    )


def test_weights_under_another_name_are_those_of_the_headline():
    searches = []
    with config_context(enable_metadata_routing=True):
        for name, request in (("sample_weight", True), ("importance", "importance")):
            leaf = KernelRegressor().set_fit_request(sample_weight=request)
            leaf.set_score_request(sample_weight=False)
            model = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), leaf)
            search = KernelSearchCV(model, grid(), cv=3)
            searches.append(search.fit(X, Y, **{name: WEIGHTS}))
    plain, renamed = searches
    np.testing.assert_array_equal(renamed.heldout_.sample_weight, WEIGHTS)
    assert renamed.headline_ == plain.headline_


def test_rows_of_texts_and_their_certificates():
    words = np.array([" ".join("abc"[i] for i in row) for row in rng.integers(3, size=(N, 4))])
    y = np.array([word.count("a") + 0.1 * word.count("b") for word in words])
    search = KernelSearchCV(
        make_pipeline(FunctionTransformer(), KernelRegressor(kernel=common_letters)),
        {"kernelregressor__lam": LAMS}, cv=3,
    ).fit(words, y)  # fmt: skip
    assert search.cv_results_["exact"].all()
    alone = KernelSearchCV(KernelRegressor(kernel=common_letters), {"lam": LAMS}, cv=3)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"],
        alone.fit(words, y).cv_results_["mean_test_score"],
        rtol=1e-6,
    )


def common_letters(one, other):
    counts = [
        np.array([[w.count(c) for c in "abc"] for w in some.ravel()]) for some in (one, other)
    ]
    return (1.0 + counts[0] @ counts[1].T) ** 2


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"kernelregressor__lam": Interval()}, "for a pipeline give a list of values"),
        ({"kernelregressor__C": [1.0]}, r"'kernelregressor__C', which .* lam = 1 / \(2 n C\)"),
        ({"kernelregressor__gama": [1.0]}, "did you mean 'gamma'"),
        ({"kernelregressor__lam": []}, "lam"),
    ],
)
def test_grids_that_are_refused(values, match):
    model = make_pipeline(StandardScaler(), KernelRegressor())
    with pytest.raises(ValueError, match=match):
        KernelSearchCV(model, values).fit(X, Y)


def test_workers():
    model = make_pipeline(StandardScaler(), KernelRegressor())
    one, two = (KernelSearchCV(model, grid(), cv=3, n_jobs=n).fit(X, Y) for n in (1, 2))
    for name in ("mean_test_score", "error"):
        np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])


def broken(rows):
    if rows[0, 0] == X[20, 0] and len(rows) == 40:  # the training part of split 0
        raise RuntimeError("no")
    return rows


@pytest.mark.parametrize(
    ("step", "match"),
    [
        (broken, r"step 'functiontransformer' \(FunctionTransformer\) failed on split 0: Runtime"),
        (lambda rows: rows[::2], r"changes the number of rows.*split 0"),
        (
            lambda rows: np.where(rows == X[3, 2], np.nan, rows),
            r"functiontransformer.*NaN",
        ),
    ],
)
def test_bad_steps_are_named_with_their_split(step, match):
    model = make_pipeline(FunctionTransformer(step), KernelRegressor())
    with pytest.raises(ValueError, match=match):
        KernelSearchCV(model, grid(), cv=3).fit(X, Y)


def test_error_score():
    model = make_pipeline(FunctionTransformer(broken), KernelRegressor())
    with pytest.warns(UserWarning, match="failed on 1 of 3 splits"):
        search = KernelSearchCV(model, grid(), cv=3, error_score=-5.0).fit(X, Y)
    assert not hasattr(search, "headline_")
    assert (search.cv_results_["split0_test_score"] == -5.0).all()
    assert (search.cv_results_["split1_test_score"] > -5.0).all()


@pytest.mark.parametrize("options", [{"method": "limit"}, {"criterion": "gcv"}])
def test_refused_with_both_names(options):
    model = make_pipeline(StandardScaler(), KernelRegressor())
    with pytest.raises(ValueError, match=r"does not work with a Pipeline"):
        KernelSearchCV(model, grid(), **options).fit(X, Y)


def test_explain():
    model = make_pipeline(StandardScaler(), SelectKBest(f_regression), KernelRegressor())
    text = str(KernelSearchCV(model, grid(selectkbest__k=[1, 3]), cv=4).explain(X, Y))
    assert "16 kernel matrices" in text
    assert "112 fits" in text


def test_report(tmp_path):
    model = make_pipeline(StandardScaler(), SelectKBest(f_regression), KernelRegressor())
    search = KernelSearchCV(model, grid(selectkbest__k=[1, 3]), cv=3).fit(X, Y)
    search.report(tmp_path / "report.html")
    assert "selectkbest__k" in (tmp_path / "report.html").read_text()


class Doubled(TransformerMixin, BaseEstimator):
    """Without fitted attributes, so that scikit-learn does not take it for fitted."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return 2.0 * X


@pytest.mark.parametrize("method", ["auto", "all_rows"])
@pytest.mark.parametrize(
    ("steps", "name"),
    [
        ((Doubled(), KernelClassifier()), "kernelclassifier__lam"),
        (
            (StandardScaler(), make_pipeline(Doubled(), KernelClassifier())),
            "pipeline__kernelclassifier__lam",
        ),
    ],
)
def test_steps_without_fitted_attributes_and_nested_pipelines(steps, name, method):
    grid, labels = {name: [1e-3, 1e-1]}, (CLASSES > 0).astype(int)
    search = KernelSearchCV(make_pipeline(*steps), grid, method=method).fit(X, labels)
    theirs = GridSearchCV(make_pipeline(*steps), grid).fit(X, labels)
    table = search.cv_results_["mean_test_score"]
    if method == "auto":
        np.testing.assert_allclose(table, theirs.cv_results_["mean_test_score"])
    decision = theirs.decision_function(X)
    given = search.calibrate().map_.predict_proba(decision[:, None])
    np.testing.assert_allclose(search.calibrate().predict_proba(X), given, atol=1e-6)
