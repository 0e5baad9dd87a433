"""Criteria of streamed rows are those of the same rows in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from rows_everywhere import in_blocks
from watched import unread

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.criteria import CvHat, Gcv, InfluenceLoo, LeaveOneOut
from onefit.features import Fourier, Nystrom
from onefit.losses import Huber
from onefit.rows import HashKFold, open_rows

N = 400
CV = HashKFold(3)
GRID = {"gamma": [0.02, 0.5], "lam": [1e-5, 1e-3, 1e-1]}
NYSTROM = {"approximation": Nystrom(40)}
#: how closely the candidates of GRID must agree: rows moved by one rounding error move the value of
#: the first one, with a wide kernel and a small lam, by 5e-8, and so it has a bound of its own
AGREE = np.array([1e-9, 1e-10, 1e-10, 1e-10, 1e-10, 1e-10])


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)) * [1.0, 2.0, 0.5] + 1.0
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=N)
    found = pd.DataFrame(X, columns=["a", "b", "c"])
    found["y"], found["z"] = y, X[:, 2] ** 2
    found["w"] = np.where(rng.uniform(size=N) < 0.1, 0.0, rng.uniform(0.5, 2.0, size=N))
    found["two"] = np.where(y > np.median(y), "yes", "no")
    found["three"] = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    return found


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    apart = np.abs(found / expected - 1.0)
    assert (apart <= AGREE).all(), apart


def rows_of(frame: pd.DataFrame) -> np.ndarray:
    return frame[["a", "b", "c"]].to_numpy()


CASES: dict[str, tuple[Any, Any, Any, str | None]] = {
    "gcv": (KernelRegressor(**NYSTROM), Gcv(), "y", None),
    "gcv, absolute, total, weighted": (
        KernelRegressor(**NYSTROM, scaling="total", fit_intercept=False),
        Gcv(loss="absolute"),
        "y",
        "w",
    ),
    "cv_hat": (
        KernelRegressor(approximation=Nystrom(40, keep_landmarks=True)),
        CvHat(),
        ["y", "z"],
        "w",
    ),
    "cv_hat, fourier": (
        KernelRegressor(approximation=Fourier(30), fit_intercept=False),
        "cv_hat",
        "y",
        None,
    ),
    "loo": (KernelRegressor(**NYSTROM), "loo", "y", None),
    "loo, kept": (KernelRegressor(approximation=Nystrom(40, keep_landmarks=True)), "loo", "y", "w"),
    "loo, total, weighted": (
        KernelRegressor(**NYSTROM, scaling="total", fit_intercept=False),
        LeaveOneOut(loss="absolute"),
        ["y", "z"],
        "w",
    ),
    "loo, classes": (KernelClassifier(**NYSTROM), LeaveOneOut(loss="zero_one"), "three", None),
    "influence": (KernelRegressor(**NYSTROM), "influence_loo", "y", "w"),
    "influence, weights of classes": (
        KernelClassifier(**NYSTROM, class_weight="balanced"),
        InfluenceLoo(order=2, loss="hinge"),
        "two",
        "w",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_criteria_are_those_in_memory(frame: pd.DataFrame, name: str) -> None:
    machine, criterion, target, weight = CASES[name]
    y, s = frame[target].to_numpy(), None if weight is None else frame[weight].to_numpy()
    grid = GRID if machine.scaling == "mean" else GRID | {"lam": [N * lam for lam in GRID["lam"]]}
    search = KernelSearchCV(machine, grid, cv=CV, criterion=criterion)
    search.fit(rows_of(frame), y, sample_weight=s)
    expected, best = search.cv_results_["criterion"], search.best_params_
    chunks = da.from_array(rows_of(frame), chunks=(150, -1))
    search.fit(open_rows(chunks, y, sample_weight=s))
    assert_same(search.cv_results_["criterion"], expected)
    assert search.best_params_ == best
    np.testing.assert_array_equal(search.cv_results_["rank_criterion"].argmin(), expected.argmin())


@pytest.fixture(scope="module")
def in_memory(frame: pd.DataFrame) -> KernelSearchCV:
    search = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=CV, criterion="loo")
    return search.fit(rows_of(frame), frame["y"].to_numpy())


@pytest.mark.parametrize("where", ["map", "parquet", "filtered", "threads", "cluster"])
def test_every_runner_gives_them(
    frame: pd.DataFrame, in_memory: KernelSearchCV, where: str, cluster: Any, tmp_path: Path
) -> None:
    X, y = rows_of(frame), frame["y"].to_numpy()
    columns = frame[["a", "b", "c", "y"]]
    search = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=CV, criterion="loo")
    if where == "map":
        np.save(tmp_path / "X.npy", X)
        search.fit(tmp_path / "X.npy", y)
    elif where == "parquet":
        columns.to_parquet(tmp_path / "rows.parquet", row_group_size=90)
        search.set_params(n_jobs=2, journal=tmp_path / "kept").fit(tmp_path / "rows.parquet", "y")
        assert len(list((tmp_path / "kept").glob("*.entry"))) == 5  # and that of the criterion
    elif where == "filtered":
        # rows that are not read do not change which ones are landmarks, by their numbers
        both = pd.concat([columns, columns + 1e3], ignore_index=True)
        both.to_parquet(tmp_path / "r.parquet", row_group_size=N)
        search.fit(open_rows(tmp_path / "r.parquet", "y", filter=[("a", "<", 500.0)]))
    elif where == "threads":
        search.fit(da.from_array(X, chunks=(130, 3)), da.from_array(y, chunks=-1))
    else:
        with cluster.as_current():
            search.fit(dd.from_pandas(columns, npartitions=3), "y")
    assert_same(search.cv_results_["criterion"], in_memory.cv_results_["criterion"])
    assert search.best_params_ == in_memory.best_params_


@pytest.mark.parametrize(
    ("criterion", "library"),
    [("gcv", "torch"), ("loo", "array_api_strict"), ("influence_loo", "array_api_strict")],
)
def test_chunks_on_a_device(frame: pd.DataFrame, criterion: str, library: str) -> None:
    lib = pytest.importorskip(library)
    X, y = rows_of(frame), frame["y"].to_numpy()
    search = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=CV, criterion=criterion)
    expected = search.fit(X, y).cv_results_["criterion"]
    found = search.fit(in_blocks(X, lib.asarray), y).cv_results_["criterion"]
    assert_same(found, expected)


def test_no_row_is_counted_twice(frame: pd.DataFrame) -> None:
    """Kernels in one pass, and in searches of their own: the same numbers."""
    rows = open_rows(rows_of(frame), frame["y"].to_numpy())
    search = KernelSearchCV(KernelRegressor(**NYSTROM), GRID, cv=CV, criterion="gcv")
    table = search.fit(rows).cv_results_
    alone = []
    for one in table["params"]:
        search.set_params(param_grid={name: [value] for name, value in one.items()}).fit(rows)
        alone.append(search.cv_results_["criterion"][0])
    assert_same(np.array(alone), table["criterion"])


def test_where_numerics_fail_there_is_a_reason(frame: pd.DataFrame) -> None:
    """As many landmarks as rows, and a lam below what rounding leaves of their sums."""
    rows = open_rows(rows_of(frame)[:40], frame["y"].to_numpy()[:40])
    machine = KernelRegressor(gamma=5.0, **NYSTROM)
    search = KernelSearchCV(machine, {"lam": [1e-300, 1e-2]}, cv=CV, criterion="gcv")
    table = search.fit(rows).cv_results_
    np.testing.assert_array_equal(np.isinf(table["criterion"]), [True, False])
    assert "lam=1e-300 is below the rounding" in table["reason"][0]
    assert table["reason"][1] == ""
    with pytest.raises(FloatingPointError, match=r"no candidate .* lam=1e-300 is below the round"):
        search.set_params(param_grid={"lam": [1e-300]}).fit(rows)


class Mine:
    name = "mine"

    def evaluate(self, evidence: Any) -> Any:
        raise AssertionError("not to be asked")


def test_a_criterion_of_labels_is_refused_for_numbers(frame: pd.DataFrame) -> None:
    criterion = LeaveOneOut(loss="hinge")
    search = KernelSearchCV(KernelRegressor(**NYSTROM), {"lam": [1e-2]}, cv=CV, criterion=criterion)
    with pytest.raises(ValueError, match="is for labels"):
        search.fit(open_rows(rows_of(frame), frame["y"].to_numpy()))


@pytest.mark.parametrize(
    ("machine", "criterion", "words"),
    [
        (KernelRegressor(**NYSTROM), "kernel_stability", "choose by 'loo', 'cv_hat', 'gcv'"),
        (KernelRegressor(**NYSTROM), Mine(), "needs all rows in memory"),
        (
            KernelRegressor(loss=Huber(1.0), **NYSTROM),
            "loo",
            "needs a system for every row",
        ),
        (KernelRegressor(loss=Huber(1.0), **NYSTROM), "gcv", "fits models with loss"),
        (KernelRegressor(**NYSTROM), InfluenceLoo(order=0), "order=0"),
    ],
)
def test_what_streamed_rows_do_not_give_is_refused(
    frame: pd.DataFrame, machine: Any, criterion: Any, words: str
) -> None:
    """Before any work: the rows cannot be read."""
    rows = unread(open_rows(rows_of(frame), frame["y"].to_numpy()))
    search = KernelSearchCV(machine, {"lam": [1e-2]}, cv=CV, criterion=criterion)
    with pytest.raises(ValueError, match=words):
        search.fit(rows)
