"""Rows that are wrong somewhere give right numbers, or an error that names what is wrong."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from rows_everywhere import opened

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.features import Nystrom
from onefit.rows import HashKFold, open_rows

N, CV = 600, HashKFold(3)
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
LATE = np.arange(N) == N - 50

Change = Callable[[pd.DataFrame], pd.DataFrame]


def search(kind: Any = KernelRegressor, **options: Any) -> KernelSearchCV:
    model = kind(approximation=Nystrom(25), gamma=0.5, **options)
    return KernelSearchCV(model, {"lam": [1e-4, 1e-2]}, cv=CV)


def parts(folder: Path, *frames: pd.DataFrame) -> Path:
    """A folder of Parquet files, each of several row groups."""
    for i, one in enumerate(frames):
        one.to_parquet(folder / f"p{i}.parquet", row_group_size=130)
    return folder


def check_same(source: Any, model: KernelSearchCV, *rows: Any, **more: Any) -> None:
    """A search over the source has the scores and the model of one over rows in memory."""
    found, expected = model.fit(source), search_like(model).fit(*rows, **more)
    name = "mean_test_score"
    assert np.isfinite(found.cv_results_[name]).all()
    np.testing.assert_allclose(found.cv_results_[name], expected.cv_results_[name], atol=1e-9)
    predicted = (one.best_estimator_.predict(X[:40]) for one in (found, expected))
    np.testing.assert_allclose(*predicted, atol=1e-6)


def search_like(model: KernelSearchCV) -> KernelSearchCV:
    return KernelSearchCV(model.estimator, model.param_grid, cv=model.cv)


@pytest.mark.parametrize("place", ["files", "partitions"])
@pytest.mark.parametrize("empty", [0, 250, N])
def test_parts_without_rows_change_nothing(tmp_path: Path, place: str, empty: int) -> None:
    frames = FRAME.iloc[:empty], FRAME.iloc[:0], FRAME.iloc[empty:]
    if place == "files":
        table: Any = parts(tmp_path, *frames)
    else:
        table = dd.from_delayed([dask.delayed(one) for one in frames], meta=FRAME.iloc[:0])
    check_same(open_rows(table, "y", cv=CV), search(), X, y)


def test_no_rows_and_no_features_are_refused(tmp_path: Path) -> None:
    nothing: list[tuple[Any, Any]] = [
        (X[:0], y[:0]),
        (FRAME.iloc[:0], "y"),
        (da.zeros((0, 3)), da.zeros(0)),
        (parts(tmp_path, FRAME.iloc[:0]), "y"),
    ]
    for table, target in nothing:
        with pytest.raises(ValueError, match="no rows"):
            open_rows(table, target)
    for table, target in [(X[:, :0], y), (FRAME[["y"]], "y")]:
        with pytest.raises(ValueError, match="no features"):
            open_rows(table, target)


@pytest.mark.parametrize(
    "change",
    [
        lambda late: late.assign(b=np.rint(late.b).astype("int32")),
        lambda late: late.assign(b=late.b.astype("float32")),
        lambda late: late.assign(b=late.b > 0),
        lambda late: late[["c", "y", "b", "a"]],
    ],
)
def test_numbers_of_another_type_in_a_later_file(tmp_path: Path, change: Change) -> None:
    late = change(FRAME.iloc[300:])
    whole = pd.concat([FRAME.iloc[:300], late]).astype(float)
    source = open_rows(parts(tmp_path, FRAME.iloc[:300], late), "y", cv=CV)
    check_same(source, search(), whole[["a", "b", "c"]].to_numpy(), whole["y"].to_numpy())


@pytest.mark.parametrize("column", ["b", "y", "g"])
def test_numbers_that_are_texts_in_a_later_file_are_refused(tmp_path: Path, column: str) -> None:
    """A group 7 that is "7" in another file would be in two folds."""
    frame = FRAME.assign(g=np.arange(N) % 97)
    late = frame.iloc[300:]
    late = late.assign(**{column: late[column].astype(str)})
    words = f"column '{column}' holds values of type .*string in .*p1.parquet, but of type"
    with pytest.raises(ValueError, match=words):
        open_rows(parts(tmp_path, frame.iloc[:300], late), "y", groups="g", cv=CV)


@pytest.mark.parametrize("column", ["a", "y", "w"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_late_value_that_is_no_number_is_named(tmp_path: Path, column: str, value: float) -> None:
    frame = FRAME.assign(w=1.0)
    frame.loc[LATE, column] = value
    what = {"a": "column 'a'", "y": "the target", "w": "sample_weight"}[column]
    words = rf"{what} holds {value} in row {N - 50} \(p1.parquet, row group 1, row 120 of it\)"
    source = open_rows(parts(tmp_path, frame[:300], frame[300:]), "y", sample_weight="w", cv=CV)
    with pytest.raises(ValueError, match=words):
        search().fit(source)


@pytest.mark.parametrize(
    ("values", "target"),
    [
        (X + 1j, y),
        (X, y + 1j),
        ((1e9 * X).astype("datetime64[s]"), y),
        (X, (1e9 * y).astype("datetime64[s]")),
        (X, y.astype(str)),
    ],
)
def test_what_numpy_would_turn_into_numbers_is_refused(values: Any, target: Any) -> None:
    with pytest.raises(ValueError, match=r"values of type .* are not real numbers"):
        search().fit(open_rows(values, target, cv=CV))


def test_masked_values_are_missing() -> None:
    with pytest.raises(ValueError, match="masked array"):
        open_rows(np.ma.masked_array(X, X > 2), y)
    with pytest.raises(ValueError, match="masked array"):
        open_rows(X, np.ma.masked_array(y, y > 1))
    blocks = da.ma.masked_greater(da.from_array(X, chunks=(N // 2, 3)), 2.0)
    with pytest.raises(ValueError, match="masked array"):
        search().fit(open_rows(blocks, y, cv=CV))
    with pytest.raises(ValueError, match="masked array"):
        CV.fold_of(np.ma.masked_array([1, 2, 3], [False, True, False]))


@pytest.mark.parametrize(
    "options", [{"features": ["a"]}, {"drop": "a"}, {"filter": [("a", ">", 0.0)]}, {"y": "y"}]
)
def test_open_rows_are_not_opened_otherwise(options: dict[str, Any]) -> None:
    source = open_rows(FRAME, "y", cv=CV)
    with pytest.raises(ValueError, match=f"give {next(iter(options))} where they are opened"):
        open_rows(source, **options)


def test_groups_that_lie_in_several_files_are_held_out_as_wholes(tmp_path: Path) -> None:
    g = np.array([f"g{i % 61}" for i in range(N)])
    frame = FRAME.assign(g=g)
    source = open_rows(parts(tmp_path, frame[:250], frame[250:]), "y", groups="g", cv=CV)
    check_same(source, search(), X, y, groups=g)


@pytest.mark.parametrize("constant", [[1], [0, 1, 2]])
def test_constant_columns(constant: list[int]) -> None:
    flat = X.copy()
    flat[:, constant] = 3.0
    check_same(open_rows(flat, y, cv=CV), search(), flat, y)


def test_a_class_that_is_in_the_last_file_only(tmp_path: Path) -> None:
    labels = np.where(y > 0, "yes", "no").astype(object)
    labels[N - 40 :] = "maybe"
    frame = FRAME.assign(y=labels)
    model = search(KernelClassifier, loss="squared_hinge")
    source = open_rows(parts(tmp_path, frame[:500], frame[500:]), "y", cv=CV)
    found, expected = model.fit(source), search_like(model).fit(X, labels)
    name = "mean_test_score"
    np.testing.assert_allclose(found.cv_results_[name], expected.cv_results_[name])
    assert list(found.classes_) == ["maybe", "no", "yes"]
    labels[N - 40 :] = ["maybe", *labels[: 40 - 1]]
    frame = FRAME.assign(y=labels)
    parts(tmp_path, frame[:500], frame[500:])
    with pytest.raises(ValueError, match="a class is missing from training"):
        search(KernelClassifier).fit(open_rows(tmp_path, "y", cv=CV))


def test_labels_of_several_types_are_refused() -> None:
    labels = np.array([0] * 300 + ["0"] * 300, dtype=object)
    with pytest.raises(ValueError, match="labels of several types"):
        search(KernelClassifier).fit(open_rows(X, labels, cv=CV))
    missing = pd.array(["u", "v"] * 299 + ["u", pd.NA], dtype="string")
    with pytest.raises(ValueError, match=f"the target holds <NA> in row {N - 1}"):
        search(KernelClassifier).fit(open_rows(FRAME.assign(y=missing), "y", cv=CV))


def test_weights_of_zero() -> None:
    s = np.where(np.arange(N) < 200, 0.0, 1.0)
    check_same(open_rows(X, y, sample_weight=s, cv=CV), search(), X, y, sample_weight=s)
    one_fold = np.where(CV.fold_of(np.arange(N)) == 1, 0.0, 1.0)
    with pytest.raises(ValueError, match="fold 1 all have sample_weight 0"):
        search().fit(open_rows(X, y, sample_weight=one_fold, cv=CV))
    with pytest.raises(ValueError, match="no row of positive weight"):
        search().fit(open_rows(X, y, sample_weight=np.zeros(N), cv=CV))


def test_targets_whose_squares_overflow_are_refused() -> None:
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="squares overflow"):
        search().fit(open_rows(X, 1e200 * y, cv=CV))


def test_a_file_that_is_replaced_is_refused(tmp_path: Path) -> None:
    """Passes over one and another file would be sums of both."""
    source = open_rows(parts(tmp_path, FRAME[:300], FRAME[300:]), "y", cv=CV)
    search().fit(source)
    (0.5 * FRAME[300:]).to_parquet(tmp_path / "p1.parquet", row_group_size=130)
    with pytest.raises(ValueError, match=r"p1.parquet, row group 0 .* changed or removed"):
        search().fit(source)


@pytest.mark.parametrize("how", ["cut", "replaced", "removed"])
def test_an_array_in_a_file_that_changes_is_refused(tmp_path: Path, how: str) -> None:
    file = tmp_path / "X.npy"
    np.save(file, X)
    source = open_rows(file, y, cv=CV)
    if how == "cut":
        file.write_bytes(file.read_bytes()[: 8 * N])
    elif how == "replaced":
        np.save(file, np.c_[X, X])
    else:
        file.unlink()
    with pytest.raises(ValueError, match=r"X\.npy was changed or removed"):
        search().fit(source)
    if how == "cut":
        with pytest.raises(ValueError, match=r"X\.npy' cannot be read as an array"):
            open_rows(file, y)


def test_private_changes_of_a_map_are_read(tmp_path: Path) -> None:
    """They are in no file."""
    np.save(tmp_path / "X.npy", X)
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")
    changed[:, 0] = -1.0
    check_same(open_rows(changed, y, cv=CV), search(), np.array(changed), y)


def test_blocks_with_too_few_columns_are_refused() -> None:
    wide, thin = (dask.delayed(one) for one in (X[:300], X[300:, :2]))
    blocks = da.concatenate([da.from_delayed(one, (300, 3), float) for one in (wide, thin)])
    with pytest.raises(ValueError, match=r"shape \(300, 2\) in block 1 .* from row 300 on"):
        search().fit(open_rows(blocks, y, cv=CV))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": 3.0}, "y must have a value for every row"),
        ({"y": "y.npy"}, "y must have a value for every row"),
        ({"y": np.ones((N, 2, 2))}, r"y has shape \(600, 2, 2\)"),
        ({"y": np.ones((N, 0))}, r"y has shape \(600, 0\)"),
        ({"y": y, "sample_weight": np.ones((N, 2))}, r"sample_weight has shape \(600, 2\)"),
        ({"y": y, "groups": np.ones((N, 2))}, r"groups has shape \(600, 2\)"),
    ],
)
def test_arrays_of_the_wrong_shape_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        opened(X, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": ["a", "y"]}, "column 'y' is the target"),
        ({"features": ["a", "a"]}, "features has the column 'a' twice"),
        ({"features": "ab"}, "features: there is no column 'ab'"),
        ({"sample_weight": ["a", "b"]}, "sample_weight is one column, got 2"),
    ],
)
def test_roles_that_contradict_each_other_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        opened(FRAME, "y", **options)


def test_one_name_may_stand_for_a_list() -> None:
    assert opened(FRAME, "y", drop="a").names == ("b", "c")
    assert opened(FRAME, "y", features="a").names == ("a",)
    twice = pd.concat([FRAME, FRAME[["a"]]], axis=1)
    with pytest.raises(ValueError, match="X has the column 'a' twice"):
        opened(twice, "y")


@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        (ds.field("a") > 0, X[:, 0] > 0),
        (ds.field(0) > 0, X[:, 0] > 0),  # by its place among all columns, not among those read
        (ds.field("d", "u") > 300, np.arange(N) > 300),
        (ds.field("a").is_null() | (ds.field("e") > 1), np.arange(N) % 3 == 2),
    ],
)
def test_filters_of_columns_that_are_not_features(
    tmp_path: Path, filter: Any, kept: np.ndarray
) -> None:
    table = pa.table(
        {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
        | {"d": pa.array([{"u": i} for i in range(N)])}
        | {"e": pa.array([None if i % 3 == 0 else i % 3 for i in range(N)])}
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    source = open_rows(tmp_path, features=["b", "c"], filter=filter)
    chunks = [source.reading.chunk(one) for piece in source.pieces for one in piece.blocks(64)]
    np.testing.assert_array_equal(np.concatenate([one.row for one in chunks]), np.flatnonzero(kept))
    np.testing.assert_array_equal(np.concatenate([one.X for one in chunks]), X[kept][:, 1:])


@pytest.mark.parametrize("filter", [[("z", ">", 1)], [("a", ">", "q")], ds.field("a"), "a > 0", 3])
def test_filters_that_do_not_fit_are_refused(tmp_path: Path, filter: Any) -> None:
    with pytest.raises(ValueError, match=r"filter=.* does not fit the columns"):
        open_rows(parts(tmp_path, FRAME), "y", filter=filter)


def test_pieces_hold_the_targets_of_their_own_rows_alone(tmp_path: Path) -> None:
    source = open_rows(parts(tmp_path, FRAME), y, drop="y")
    assert len(pickle.dumps(source.pieces[0])) < 8 * 130 + 3000
