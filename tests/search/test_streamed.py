"""Searches over streamed rows find what searches in memory find."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from rows_everywhere import forget_pages
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold
from watched import unread

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.decide import CalibratedKernelClassifier
from onefit.features import Fourier, Nystrom
from onefit.journal import JournalError
from onefit.losses import Expectile, Huber, Quantile
from onefit.proof.norms import target_scale
from onefit.rows import HashKFold, open_rows, run
from onefit.rows.survey import Survey, spread_over
from onefit.scoring import Metric, one_standard_error
from onefit.search.continuous import Interval

N = 900
CV = HashKFold(4, random_state=1)


class Data(NamedTuple):
    X: np.ndarray
    frame: pd.DataFrame
    folder: Path

    def source(self, target: Any, weight: str | None = None) -> Any:
        """The rows of the folder with one target, and no other column but a, b and c."""
        return open_rows(self.folder, target, sample_weight=weight, features=["a", "b", "c"])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)) * [1.0, 2.0, 0.5] + 1.0
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=N)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["y"], frame["z"] = y, X[:, 2] ** 2
    frame["w"] = np.where(rng.uniform(size=N) < 0.1, 0.0, rng.uniform(0.5, 2.0, size=N))
    frame["two"] = np.where(y > np.median(y), "yes", "no")
    frame["rare"] = y > np.quantile(y, 0.9)
    frame["four"] = np.digitize(y, np.quantile(y, [0.2, 0.5, 0.8]))
    frame["three"] = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    frame["g"] = rng.integers(0, 60, size=N)
    folder = tmp_path_factory.mktemp("data")
    for i in range(3):
        part = frame[i * 300 : (i + 1) * 300]
        part.to_parquet(folder / f"{i}.parquet", row_group_size=110)
    return Data(X, frame, folder)


def assert_alike(here: KernelSearchCV, there: KernelSearchCV, X: Any) -> None:
    """Scores, ranks and judgements, the winner, and what it predicts."""
    assert set(here.cv_results_) == set(there.cv_results_)
    # the error of a pooled score is by rows here, and that of the splits there
    others = ("low_test_", "high_test_", *(["se_test_"] if here.aggregate == "pooled" else []))
    for name, values in here.cv_results_.items():
        if ("_test_" in name and not name.startswith(others)) or name == "exact":
            found = there.cv_results_[name].astype(float)
            np.testing.assert_allclose(found, values.astype(float), rtol=1e-7, atol=1e-9)
    assert_intervals(here.cv_results_, there.cv_results_)
    assert list(here.cv_results_["method"]) == list(there.cv_results_["method"])
    assert here.best_params_ == there.best_params_
    assert here.n_splits_ == there.n_splits_
    best, same = here.best_estimator_, there.best_estimator_
    for name in ("coef_", "intercept_", "landmark_indices_", "classes_", "n_features_in_"):
        if hasattr(best, name):
            np.testing.assert_array_equal(
                np.shape(getattr(same, name)), np.shape(getattr(best, name))
            )
    named = pd.DataFrame(X[:50], columns=there.feature_names_in_)
    method = "decision_function" if hasattr(best, "classes_") else "predict"
    values = getattr(best, method)(X[:50])
    np.testing.assert_allclose(getattr(same, method)(named), values, rtol=1e-7, atol=1e-9)


def assert_intervals(here: dict[str, Any], there: dict[str, Any]) -> None:
    """From sums they are what they are row by row, up to the tolerance of exact values: its unit
    may be weighted.
    """
    for name in [one.removeprefix("low_test_") for one in here if one.startswith("low_test_")]:
        for end in (f"low_test_{name}", f"high_test_{name}"):
            np.testing.assert_allclose(there[end], here[end], rtol=1e-7, atol=1e-6)


def assert_held(here: KernelSearchCV, there: KernelSearchCV) -> None:
    """The same held-out values, and a headline of these."""
    one, other = here.heldout_, there.heldout_
    np.testing.assert_array_equal(other.folds.rows, one.folds.rows)
    np.testing.assert_allclose(other.values, one.values, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(other.predictions, one.predictions, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(other.targets, one.targets)
    if is_classifier(here.estimator):
        np.testing.assert_array_equal(other.labels, one.labels)
    first, second = here.headline_, there.headline_
    for name in ("score", "baseline", "standard_error", "mean_of_splits"):
        expected = pytest.approx(getattr(first, name), rel=1e-6, nan_ok=True)
        assert getattr(second, name) == expected, name
    assert (second.rows, second.baseline_name) == (first.rows, first.baseline_name)
    assert second.shares == pytest.approx(first.shares)
    # what the choice flatters is drawn by splits there, and by rows here
    assert second.interval == pytest.approx(first.interval, abs=0.1)


def cubed(y: Any, u: Any) -> Any:
    return np.abs(y - u) ** 3


CUBED = Metric("cubed_error", "regression", cubed)
GRID = {"gamma": ["scale", 0.5], "lam": [1e-4, 1e-2]}
NYSTROM = {"approximation": Nystrom(30)}
QUANTILES = KernelRegressor(loss=Quantile((0.2, 0.8), delta=0.3), gamma=0.3, **NYSTROM)
CASES: dict[str, tuple[Any, dict[str, Any], Any, dict[str, Any]]] = {
    "ridge": (KernelRegressor(**NYSTROM), GRID, "y", {}),
    "total, without intercept, weighted": (
        KernelRegressor(**NYSTROM, fit_intercept=False, scaling="total"),
        GRID,
        "y",
        {"weight": "w", "scoring": "neg_mean_absolute_error", "aggregate": "pooled"},
    ),
    "two metrics, fourier": (
        KernelRegressor(approximation=Fourier(40)),
        GRID,
        "y",
        {
            "scoring": ["r2", "neg_root_mean_squared_error"],
            "refit": "r2",
            "aggregate": "weighted",
        },
    ),
    "two targets": (
        KernelRegressor(approximation=Nystrom(30, keep_landmarks=True)),
        {"kernel": ["rbf", "linear"], "lam": [1e-3, 1e-1]},
        ["y", "z"],
        {"refit": one_standard_error, "weight": "w"},
    ),
    "two classes": (KernelClassifier(**NYSTROM), GRID, "two", {"aggregate": "median"}),
    "three classes": (KernelClassifier(**NYSTROM), {"lam": [1e-3, 1e-1]}, "three", {}),
    "balanced accuracy": (
        KernelClassifier(loss="squared_hinge", **NYSTROM),
        {"lam": [1e-2, 1e1]},
        "rare",
        {"weight": "w", "scoring": "balanced_accuracy", "method": "limit"},
    ),
    "balanced accuracy of three classes, pooled": (
        KernelClassifier(**NYSTROM),
        {"lam": [1e-3, 1e-1]},
        "three",
        {"scoring": ["balanced_accuracy", "accuracy"], "refit": "accuracy", "aggregate": "pooled"},
    ),
    "a metric of the caller's": (
        KernelRegressor(**NYSTROM),
        GRID,
        ["y", "z"],
        {"scoring": CUBED, "weight": "w", "aggregate": "pooled"},
    ),
    "squared hinge": (
        KernelClassifier(loss="squared_hinge", **NYSTROM),
        {"lam": [1e-2, 1e-1]},
        "two",
        {"weight": "w"},
    ),
    "weights of classes": (
        KernelClassifier(**NYSTROM, gamma=0.3),
        {"class_weight": [None, "balanced", {0: 1.0, 1: 3.0, 2: 0.5}], "lam": [1e-3, 1e-1]},
        "three",
        {"weight": "w"},
    ),
    "weights of classes, squared hinge": (
        KernelClassifier(loss="squared_hinge", class_weight="balanced", gamma=0.3, **NYSTROM),
        {"lam": [1e-2, 1e-1]},
        "rare",
        {},
    ),
    "limit of Huber's loss": (
        KernelRegressor(loss=Huber(0.3), **NYSTROM),
        {"lam": [1e-3, 1e-1]},
        "y",
        {"method": "limit"},
    ),
    "pairs of classes": (
        KernelClassifier(loss="squared_hinge", gamma=0.3, **NYSTROM),
        {"multi_class": ["ovo", "ovr"], "lam": [1e-1]},
        "four",
        {"weight": "w", "method": "limit"},
    ),
    "pairs, weights of classes, least squares": (
        KernelClassifier(multi_class="ovo", class_weight="balanced", gamma=0.3, **NYSTROM),
        {"lam": [1e-1]},
        "three",
        {},
    ),
    "several levels": (QUANTILES, {"lam": [1e-1]}, "y", {}),
    "expectiles, pooled": (
        KernelRegressor(loss=Expectile((0.1, 0.5, 0.9)), gamma=0.3, **NYSTROM),
        {"lam": [1e-3, 1e-1]},
        "y",
        {"aggregate": "pooled", "weight": "w", "method": "limit"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_streamed_rows_give_the_search_in_memory(data: Data, name: str) -> None:
    machine, grid, target, options = CASES[name]
    options = dict(options)
    weight = options.pop("weight", None)
    s = None if weight is None else data.frame[weight].to_numpy()
    y = data.frame[target].to_numpy()
    here = KernelSearchCV(machine, grid, cv=CV, **options).fit(data.X, y, sample_weight=s)
    there = KernelSearchCV(machine, grid, cv=CV, **options).fit(data.source(target, weight))
    assert_alike(here, there, data.X)
    assert_held(here, there)
    if hasattr(here.best_estimator_, "class_weight_"):
        found = there.best_estimator_.class_weight_
        np.testing.assert_allclose(found, here.best_estimator_.class_weight_, rtol=1e-9)


def test_fitted_attributes_are_those_in_memory(data: Data) -> None:
    """But for the splits as row numbers, which a stream does not have."""
    search = KernelSearchCV(KernelRegressor(**NYSTROM), {"lam": [1e-2]}, cv=CV)
    columns = ["a", "b", "c"]
    here = set(vars(search.fit(data.frame[columns], data.frame["y"])))
    assert here - set(vars(search.fit(data.source("y")))) == {"folds_", "groups_"}


@pytest.mark.parametrize("streamed", [False, True])
def test_warnings_name_the_line_of_the_caller(data: Data, streamed: bool) -> None:
    unused = KernelRegressor(kernel="linear", gamma=5.0, **NYSTROM)
    rows = (data.source("y"),) if streamed else (data.X, data.frame["y"])
    with pytest.warns(UserWarning, match="'gamma' does nothing") as caught:
        KernelSearchCV(unused, {"lam": [1e-2]}, cv=CV).fit(*rows)
    assert {one.filename for one in caught} == {__file__}


@pytest.fixture(scope="module")
def in_memory(data: Data) -> KernelSearchCV:
    frame = data.frame
    search = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=CV)
    return search.fit(data.X, frame["y"].to_numpy(), groups=frame["g"].to_numpy())


@pytest.mark.parametrize("where", ["array", "frame", "file", "cluster"])
def test_every_source_gives_it(
    data: Data, in_memory: KernelSearchCV, where: str, cluster: Any, tmp_path: Path
) -> None:
    columns = data.frame[["a", "b", "c", "y", "g"]]
    search = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=CV)
    if where == "array":
        y = da.from_array(columns["y"].to_numpy(), chunks=333)
        search.fit(da.from_array(data.X, chunks=(200, 3)), y, groups=columns["g"].to_numpy())
        search.feature_names_in_ = None
        np.testing.assert_allclose(
            search.cv_results_["mean_test_score"], in_memory.cv_results_["mean_test_score"]
        )
        return
    if where == "frame":
        search.fit(dd.from_pandas(columns, npartitions=4), "y", groups="g")
    elif where == "file":
        columns.to_parquet(tmp_path / "rows.parquet")
        search.set_params(n_jobs=2).fit(tmp_path / "rows.parquet", "y", groups="g")
    else:
        with cluster.as_current():
            search.fit(dd.from_pandas(columns, npartitions=4), "y", groups="g")
    assert_alike(in_memory, search, data.X)


def test_finished_passes_are_kept(data: Data, in_memory: KernelSearchCV, tmp_path: Path) -> None:
    columns = data.frame[["a", "b", "c", "y", "g"]]
    columns.to_parquet(tmp_path / "rows.parquet")
    kept = tmp_path / "kept"
    search = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=CV, journal=kept)
    search.fit(tmp_path / "rows.parquet", "y", groups="g")
    assert len(list(kept.glob("*.entry"))) == 4  # survey, moments, scores, values
    forget_pages(tmp_path / "rows.parquet")  # nothing is read again
    again = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=CV, journal=kept)
    assert_alike(in_memory, again.fit(tmp_path / "rows.parquet", "y", groups="g"), data.X)
    with pytest.raises(ValueError, match=r"rows\.parquet"):
        again.set_params(journal=None).fit(tmp_path / "rows.parquet", "y", groups="g")
    again.set_params(journal=kept)
    other = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=3, journal=kept)
    with pytest.raises(JournalError, match="cv was"):
        other.fit(tmp_path / "rows.parquet", "y", groups="g")
    with pytest.raises(JournalError, match="other data or settings: X was 1 Parquet file"):
        again.fit(data.X, data.frame["y"])  # rows in memory


def test_damaged_passes_are_computed_again(
    data: Data, in_memory: KernelSearchCV, tmp_path: Path
) -> None:
    data.frame[["a", "b", "c", "y", "g"]].to_parquet(tmp_path / "rows.parquet")
    kept = tmp_path / "kept"
    search = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=CV, journal=kept)
    search.fit(tmp_path / "rows.parquet", "y", groups="g")
    for file in sorted(kept.glob("*.entry")):
        entry = bytearray(file.read_bytes())
        entry[2 * len(entry) // 3] ^= 1
        file.write_bytes(entry)
        with pytest.warns(UserWarning, match=f"entry {file.name} is damaged"):
            search.fit(tmp_path / "rows.parquet", "y", groups="g")
        assert_alike(in_memory, search, data.X)
        assert file.read_bytes() != entry


def test_a_lambda_that_fails_has_a_reason(data: Data) -> None:
    """As many landmarks as rows, and a lam below what rounding leaves of their sums."""
    machine = KernelRegressor(gamma=5.0, approximation=Nystrom(40))
    search = KernelSearchCV(machine, {"lam": [1e-300, 1e-2]}, cv=HashKFold(3))
    with pytest.warns(UserWarning, match="1 of 2 candidates have no score"):
        search.fit(open_rows(data.X[:40], data.frame["y"].to_numpy()[:40]))
    assert search.best_params_ == {"lam": 1e-2}
    first, second = search.cv_results_["reason"]
    assert "lam=1e-300 is below the rounding" in first
    assert second == ""
    assert np.isnan(search.cv_results_["mean_test_score"][0])


@pytest.mark.parametrize(
    ("options", "target", "words"),
    [
        ({"cv": KFold(3)}, "y", "HashKFold"),
        ({"estimator": KernelRegressor()}, "y", "approximation='nystrom'"),
        ({"estimator": KernelRegressor(loss="huber", **NYSTROM)}, "y", "a width of 'mad'"),
        (
            {"estimator": KernelClassifier(class_weight="balanced", **NYSTROM)},
            "two",
            "give numbers for gamma",
        ),
        (
            {"estimator": QUANTILES, "scoring": "neg_mean_absolute_error"},
            "y",
            "needs one prediction per row",
        ),
        (
            {"estimator": QUANTILES, "param_grid": {"loss__level": [0.5, (0.2, 0.8)]}},
            "y",
            "of different kinds",
        ),
        ({"scoring": "neg_median_absolute_error"}, "y", "is not a function of means over rows"),
        ({"param_grid": {"lam": Interval(1e-3, 1.0)}}, "y", "Interval"),
        ({"method": "refit"}, "y", "whole kernel matrix"),
        ({"estimator": KernelClassifier(**NYSTROM)}, ["two", "three"], "one target"),
        ({"estimator": KernelClassifier(**NYSTROM)}, "y", "continuous"),
        ({}, None, "need a target"),
        ({}, "two", "not a number"),
    ],
)
def test_what_streamed_rows_cannot_serve_is_refused(
    data: Data, options: dict[str, Any], target: Any, words: str
) -> None:
    given = {"estimator": KernelRegressor(**NYSTROM), "param_grid": {"lam": [1e-2]}} | options
    with pytest.raises(ValueError, match=words):
        KernelSearchCV(**given).fit(data.source(target))


def test_levels_of_two_targets_are_refused_before_any_pass(data: Data) -> None:
    with pytest.raises(ValueError, match="several levels are for one target"):
        KernelSearchCV(QUANTILES, {"lam": [1e-2]}, cv=CV).fit(unread(data.source(["y", "z"])))


@pytest.mark.parametrize("target", ["y", "three"])
def test_columns_have_the_unit_of_their_target(data: Data, target: str) -> None:
    """The scale of an error, as the problem in memory has it."""
    y = data.frame[target].to_numpy(dtype=float)
    Y = y[:, None] if target == "y" else np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    survey = run(Survey(4, Y.shape[1]), open_rows(data.X, Y, cv=CV))
    found = spread_over(survey, 3)
    np.testing.assert_allclose(found.scale, target_scale(Y, np.ones(N))[:1].repeat(3))
    np.testing.assert_array_equal(found.weights, survey.weights)


def test_folds_without_rows_weight_or_classes_are_refused(data: Data) -> None:
    frame = data.frame[["a", "b", "c", "y"]].copy()
    search = KernelSearchCV(KernelRegressor(**NYSTROM), {"lam": [1e-2]}, cv=CV)
    with pytest.raises(ValueError, match="has no row"):
        search.fit(open_rows(frame.assign(g=1), "y", groups="g"))
    fold = CV.fold_of(np.arange(N))
    with pytest.raises(ValueError, match="fold 2 all have sample_weight 0"):
        search.fit(open_rows(frame, "y", sample_weight=(fold != 2).astype(float)))
    labels = np.where(fold == 1, "a", "b")
    machine = KernelClassifier(**NYSTROM)
    with pytest.raises(ValueError, match="without fold 1 a class is missing"):
        KernelSearchCV(machine, {"lam": [1e-2]}, cv=CV).fit(open_rows(data.X, labels))
    with pytest.raises(ValueError, match="one class only"):
        KernelSearchCV(machine, {"lam": [1e-2]}, cv=CV).fit(open_rows(data.X, ["a"] * N))
    with pytest.raises(ValueError, match="explain needs rows in memory"):
        search.explain(open_rows(frame, "y"))
    with pytest.raises(ValueError, match="open already; give y where"):
        search.fit(open_rows(frame, "y"), "y")


def test_one_fold_has_nearly_all_the_weight() -> None:
    """The weight of the others is their sum: less than one rounding error of the total."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=N)
    weight = np.where(CV.fold_of(np.arange(N)) == 0, 1e15 / 3, 1 / 3)
    search = KernelSearchCV(
        KernelRegressor(loss=Huber(0.3), gamma=0.3, **NYSTROM), {"lam": [1e-1]}, cv=CV
    )
    here = clone(search).fit(X, y, sample_weight=weight).heldout_
    there = clone(search).fit(open_rows(X, y, sample_weight=weight, cv=CV)).heldout_
    np.testing.assert_allclose(there.values, here.values, atol=1e-8)
    assert here.exact.all()
    assert there.exact.all()


def test_more_rows_than_there_is_room_for() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100_000, 2)), rng.normal(size=(100_000, 82))
    machine = KernelRegressor(approximation=Nystrom(5), gamma=0.3)
    search = KernelSearchCV(machine, {"lam": [1e-2]}, cv=CV)
    search.fit(open_rows(X, Y))
    for name in ("heldout_", "headline_"):
        with pytest.raises(AttributeError, match=rf"'{name}': held-out values of 100,000 .* 99,8"):
            getattr(search, name)
    with pytest.raises(ValueError, match="kept for the winner only"):
        search.heldout(0)
    assert search.fit(open_rows(X[:99_864], Y[:99_864])).heldout_.values.shape == (99_864, 82)


def test_probabilities_of_streamed_rows(data: Data) -> None:
    machine = KernelClassifier(approximation=Nystrom(20), gamma=0.3)
    search = KernelSearchCV(machine, {"lam": [1e-3]}, cv=CV).fit(data.source("two"))
    held = search.heldout_
    expected = CalibratedKernelClassifier.from_heldout(search.best_estimator_, held)
    found = search.calibrate("sigmoid").predict_proba(data.X)
    np.testing.assert_array_equal(found, expected.predict_proba(data.X))


def test_filtered_rows_are_counted_in_their_order(data: Data) -> None:
    rows = open_rows(data.folder, "y", features=["a", "b", "c"], filter=[("g", "<", 30)])
    search = KernelSearchCV(KernelRegressor(**NYSTROM), {"lam": [1e-2]}, cv=CV).fit(rows)
    kept = data.frame["g"] < 30
    np.testing.assert_array_equal(search.heldout_.targets, data.frame["y"][kept])


def test_passes_are_watched(data: Data) -> None:
    class Watch:
        def __init__(self) -> None:
            self.told: list[tuple[int, int, int]] = []

        def setup(self, estimator: Any, context: Any) -> None: ...
        def teardown(self, estimator: Any, context: Any) -> None: ...
        def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None: ...
        def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> None: ...

        def on_rows(self, count: int, done: int, total: int) -> None:
            self.told.append((count, done, total))

    watch = Watch()
    search = KernelSearchCV(KernelRegressor(**NYSTROM), {"lam": [1e-2]}, cv=CV)
    search.set_callbacks(watch).fit(data.source("y"))
    counts = [count for count, _, _ in watch.told]
    assert sorted(set(counts)) == [1, 2, 3, 4]
    assert all((count, total, total) in watch.told for count, _, total in watch.told)


def test_a_report_of_streamed_rows(data: Data, tmp_path: Path) -> None:
    search = KernelSearchCV(KernelClassifier(**NYSTROM), GRID, cv=CV).fit(data.source("two"))
    search.report(tmp_path / "r.html")
    assert (
        "of the rows get the right label while they are held out"
        in (tmp_path / "r.html").read_text()
    )
    assert set(search.calibrate("sigmoid").classes_) == {"no", "yes"}
