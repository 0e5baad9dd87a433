"""KernelSearchCV as an estimator: attributes, copies, workers, callbacks, bad input."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_classification, make_friedman1
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from watched import Counted, Refused

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.config import config_context
from onefit.folds import Folds, leave_one_out
from onefit.heldout import Block, Eigen, HeldOutMethod, HeldOutPath, Prepared
from onefit.search import workers
from onefit.search.rows import arrange, compact

X, y = make_friedman1(40, random_state=0)
Z, labels = make_classification(40, random_state=0)
GRID = {"gamma": [0.1, 1.0, 2.0], "lam": [1e-3, 1e-1]}
#: a search that fails when it begins to work
REFUSED = {"kernel": [Refused(0.1), Refused(1.0), Refused(2.0)], "lam": [1e-3, 1e-1]}


def make(estimator=None, param_grid=GRID, **options):
    return KernelSearchCV(estimator or KernelRegressor(), param_grid, **{"cv": 3} | options)


def test_fitted_attributes():
    search = make().fit(X, y)
    assert search.n_splits_ == 3
    assert search.n_features_in_ == 10
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.refit_time_ > 0
    assert not search.multimetric_
    assert search.heldout_.predictions.shape == (40,)
    assert [choice.method for choice in search.plan_] == ["block"] * 3
    assert set(search.cv_results_["method"]) == {"block"}
    assert search.cv_results_["exact"].all()
    assert (search.cv_results_["error"] < 1e-6).all()
    assert set(search.cv_results_["reason"]) == {""}
    assert (search.cv_results_["mean_fit_time"] > 0).all()
    assert isinstance(search.cv_results_["param_gamma"], np.ma.MaskedArray)
    assert search.heldout_.seconds > 0


def test_kernel_matrices_are_built_once():
    grid = GRID | {"fit_intercept": [True, False], "scaling": ["mean", "total"]}
    widths = grid.pop("gamma")
    grid["kernel"] = [Counted(gamma) for gamma in widths]
    Counted.matrices.clear()
    KernelSearchCV(KernelRegressor(), grid, cv=3, refit=False).fit(X, y)
    assert Counted.matrices == widths


def test_held_out_values_of_all_candidates():
    search = make().fit(X, y)
    for i, params in enumerate(search.cv_results_["params"]):
        alone = KernelSearchCV(KernelRegressor(), {k: [v] for k, v in params.items()}, cv=3)
        expected = alone.fit(X, y).heldout_.predictions
        np.testing.assert_allclose(search.heldout(i).predictions, expected, rtol=1e-9)
    best = search.heldout(search.best_index_).predictions
    np.testing.assert_array_equal(best, search.heldout_.predictions)


def test_clone_pickle_and_nested_parameters():
    search = make()
    copy = clone(search).set_params(estimator__lam=5.0, cv=4)
    assert copy.estimator.lam == 5.0
    assert search.estimator.lam == 1e-3
    search.fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    np.testing.assert_array_equal(again.heldout_.predictions, search.heldout_.predictions)
    assert "KernelRegressor" in search._repr_html_()


def test_kinds_of_estimator():
    assert is_regressor(make())
    search = KernelSearchCV(KernelClassifier(loss="log"), {"lam": [1e-2]}, cv=2, method="refit")
    assert is_classifier(search)
    assert search.fit(Z, labels).predict_proba(Z).shape == (40, 2)
    assert search.decision_function(Z).shape == (40,)
    assert not hasattr(KernelSearchCV(KernelClassifier(), {"lam": [1.0]}), "predict_proba")
    assert not hasattr(make(refit=False).fit(X, y), "predict")


def test_a_method_object_is_taken():
    assert set(make(method=Eigen()).fit(X, y).cv_results_["method"]) == {"eigen"}

    class Own(Block):
        name = "own"

    search = make(method=Own()).fit(X, y)
    assert search.plan_[0].estimate is None


def test_results_do_not_depend_on_workers():
    alone = make().fit(X, y)
    for backend in ("loky", "threading", "multiprocessing"):
        with joblib.parallel_config(backend, n_jobs=2):
            search = make().fit(X, y)
        np.testing.assert_allclose(
            search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-12
        )
        for i in range(6):
            found, expected = search.heldout(i).predictions, alone.heldout(i).predictions
            np.testing.assert_allclose(found, expected, rtol=1e-10)
    worker_plan = workers.WorkerPlan.from_n_jobs(2, 3)
    assert worker_plan.workers == 2
    assert 1 <= worker_plan.threads <= max(1, joblib.cpu_count() // 2)
    assert workers.WorkerPlan.from_n_jobs(8, 1).workers == 1


def test_leave_one_out_travels_to_workers_in_few_bytes():
    rows = np.random.default_rng(0).normal(size=(400, 2))
    drawn = compact(Folds.draw(LeaveOneOut(), rows))
    folds = leave_one_out(400)
    for k in (0, 7, 399):
        np.testing.assert_array_equal(folds.train[k], drawn.train[k])
        np.testing.assert_array_equal(folds.test[k], drawn.test[k])
    sample = arrange(rows, rows[:, :1], np.ones(400), folds, precomputed=False)
    data = pickle.dumps(sample)
    assert len(data) < 40_000
    again = pickle.loads(data).folds
    for k in (0, 7, 399):
        np.testing.assert_array_equal(again.train[k], np.delete(np.arange(400), k))
        np.testing.assert_array_equal(again.test[k], [k])
    assert again.disjoint == [True] * 400


class Interrupted(KernelRegressor):
    """Ctrl-C while the winner is fitted, at one lam."""

    def fit(self, *args, **kwargs):
        if self.lam == 10.0:
            raise KeyboardInterrupt
        return super().fit(*args, **kwargs)


def test_an_interrupted_fit_changes_nothing():
    search = make(estimator=Interrupted()).fit(X, y)
    before = search.predict(X)
    with pytest.raises(KeyboardInterrupt):
        search.set_params(param_grid={"lam": [10.0]}).fit(X, y)
    assert len(search.cv_results_["params"]) == 6
    np.testing.assert_array_equal(search.predict(X), before)
    assert len(search.set_params(param_grid={"lam": [1.0]}).fit(X, y).cv_results_["params"]) == 1


def test_a_lambda_at_which_the_numerics_fail_is_reported():
    ones = np.ones((40, 1))
    grid = {"lam": [1e-300, 1.0]}
    machine = KernelRegressor(kernel="linear", scaling="total", fit_intercept=False)
    search = KernelSearchCV(machine, grid, cv=4, method="block")
    with pytest.warns(UserWarning, match=r"1 of 2 candidates have no score.*singular"):
        search.fit(ones, y)
    assert search.best_params_ == {"lam": 1.0}
    assert "singular" in search.cv_results_["reason"][0]
    assert np.isnan(search.cv_results_["mean_test_score"][0])
    assert search.cv_results_["rank_test_score"][1] == 1
    with pytest.raises(FloatingPointError, match="no candidate could be evaluated"):
        search.set_params(param_grid={"lam": [1e-300]}).fit(ones, y)


class Recorder:
    """A callback that records its calls."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.told.append(("end", context.task_name))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_callbacks_are_told_of_every_kernel(n_jobs):
    recorder = Recorder()
    make(n_jobs=n_jobs).set_callbacks(recorder).fit(X, y)
    assert recorder.told[0] == "setup"
    assert recorder.told[-1] == "teardown"
    assert recorder.told.count(("end", "kernel")) == 3
    for name in ("fit", "search", "refit-with-best-params"):
        assert recorder.told.count(("begin", name)) == recorder.told.count(("end", name)) == 1


def test_callbacks_are_torn_down_after_an_error():
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="a kernel matrix was built"):
        make(param_grid=REFUSED).set_callbacks(recorder).fit(X, y)
    assert recorder.told[-1] == "teardown"


def test_progress_bar(capsys, recwarn):
    pytest.importorskip("rich")
    callback = pytest.importorskip("sklearn.callback")
    make().set_callbacks(callback.ProgressBar()).fit(X, y)
    shown = capsys.readouterr().out
    assert "KernelSearchCV" in shown
    assert "100%" in shown
    assert not [w for w in recwarn if "callbacks" in str(w.message)]


def test_verbose(capsys):
    make(verbose=2).fit(X, y)
    shown = capsys.readouterr().out
    assert "6 candidates on 3 kernels, 3 splits" in shown
    assert "[3/3]" in shown


def test_explain_runs_nothing(capsys):
    text = make(param_grid=REFUSED, cv=GroupKFold(4)).explain(X, y, groups=np.arange(40) % 5)
    assert capsys.readouterr().out == ""  # a prompt shows what is returned
    assert repr(text) == str(text)
    assert "<pre>" in text._repr_html_()
    assert text.refusal == ""
    assert "block" in text
    assert "3 kernels x 2 lambdas x 4 splits" in text


@pytest.mark.parametrize(
    ("grid", "shown"),
    [
        (
            [{"gamma": [0.1, 0.2, 0.3], "lam": [1e-3, 1e-2]}, {"kernel": ["linear"], "lam": [0.1]}],
            ["3 kernels x 2 lambdas", "1 kernel x 1 lambda"],
        ),
        (
            {"gamma": [0.1, 0.2], "fit_intercept": [True, False], "lam": [0.1]},
            ["4 models on 2 kernels x 1 lambda"],
        ),
    ],
)
def test_explain_counts_every_model_once(grid, shown):
    text = make(param_grid=grid).explain(X, y)
    assert text.count("Plan: ") == len(shown)
    assert all(f"Plan: {one}" in text for one in shown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"param_grid": {"gama": [1.0]}}, "did you mean 'gamma'"),
        ({"param_grid": {"lam": [0.0]}}, "lam must be a positive"),
        ({"criterion": "cvv"}, "did you mean 'cv'"),
        ({"method": "eigon"}, "did you mean 'eigen'"),
        ({"aggregate": "pool"}, "did you mean 'pooled'"),
        ({"cv": 41}, "more folds than there are rows"),
        ({"cv": [(np.arange(40), [])]}, "test set of split 0 is empty"),
        ({"cv": [([3], np.arange(9))]}, "a fit needs at least two"),
        ({"estimator": KernelRegressor(loss="huber"), "method": "eigen"}, "squared loss only"),
        ({"param_grid": {"kernel": ["rbf", "precomputed"]}}, "search them separately"),
    ],
)
def test_bad_input_is_refused_before_the_work(options, message):
    with pytest.raises(ValueError, match=message):
        make(param_grid=REFUSED).set_params(**options).fit(X, y)


def test_a_fold_that_leaves_one_class_is_refused():
    search = KernelSearchCV(KernelClassifier(), REFUSED, cv=KFold(2))
    with pytest.raises(ValueError, match=r"training part of split 0 holds no row of class 1"):
        search.fit(Z, np.sort(labels)[::-1])
    weights = (labels == 1).astype(float)
    weights[:3] = 1.0
    search = KernelSearchCV(KernelClassifier(), REFUSED, cv=StratifiedKFold(4))
    with pytest.raises(ValueError, match="positive sample_weight"):
        search.fit(Z, labels, sample_weight=weights)


def test_other_estimators_are_refused_with_advice():
    pipe = make_pipeline(StandardScaler(), LinearRegression())
    with pytest.raises(TypeError, match=r"does not take a Pipeline that ends in LinearRegression"):
        KernelSearchCV(pipe, {}).fit(X, y)
    with pytest.raises(TypeError, match="KernelRegressor or KernelClassifier, got StandardScaler"):
        KernelSearchCV(StandardScaler(), {}).fit(X, y)


def test_unknown_fit_arguments_are_refused():
    with pytest.raises(TypeError, match=r"'sample_weights'; did you mean 'sample_weight'\?"):
        make().fit(X, y, sample_weights=np.ones(40))


def test_too_little_memory_is_refused_with_advice():
    with config_context(memory_bytes=10.0):
        with pytest.raises(MemoryError, match="float32"):
            make(param_grid=REFUSED).fit(X, y)
        told = make(param_grid=REFUSED).explain(X, y)
    assert "block" in told
    assert told.startswith("A fit will refuse this plan: ")
    assert "float32" in told.refusal


def test_the_columns_of_a_plan_are_aligned():
    lines = make(param_grid=REFUSED).explain(X, y).splitlines()
    table = lines[2 : lines.index("", 2)]
    assert len({len(line) for line in table}) == 1


@dataclass
class Counting(HeldOutMethod):
    """Says that ``most`` points have moved in the second of two splits."""

    most: int
    name = "counting"

    def prepare(self, problem, folds):
        return _Counting(problem, folds, self.most)


@dataclass
class _Counting(Prepared):
    problem: object
    folds: Folds
    most: int

    def predict(self, lams):
        path = HeldOutPath.empty(self.problem, self.folds, "counting", lams)
        path.values[:], path.moved[:], path.steps[:] = 0.0, [0, self.most], [self.most, 0]
        path.fail(1, "the second fails")
        return path


@pytest.mark.filterwarnings("ignore:1 of 2 candidates have no score")
@pytest.mark.parametrize("most", [0, 255, 256, 70_000])
def test_counts_of_any_size_come_back_whole(most):
    search = make(cv=2, method=Counting(most))
    search.set_params(param_grid={"lam": [1e-1, 1e-3]}).fit(X, y)
    first, second = search.heldout(0), search.heldout(1)
    np.testing.assert_array_equal(first.moved, [0, most])
    np.testing.assert_array_equal(first.steps, [most, 0])
    assert not second.moved.any()
    assert not second.steps.any()
