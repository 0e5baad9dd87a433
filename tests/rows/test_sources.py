"""Rows from every place give the same sums, however they are cut."""

from __future__ import annotations

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_everywhere import K, N, P, Rows, assert_same, check, honest, opened
from scipy.sparse import csr_array
from sklearn.base import clone
from sums import FoldSums

from onefit import KernelRegressor, KernelSearchCV
from onefit._validation import DataError
from onefit.features import Nystrom
from onefit.rows import HashKFold, open_rows, run
from onefit.rows.arrays import PIECE_ROWS


@pytest.mark.parametrize("chunk_rows", [1, 333, 8192])
def test_arrays(rows: Rows, chunk_rows: int) -> None:
    part = slice(0, 300 if chunk_rows == 1 else N)
    X, y, s = rows.X[part], rows.y[part], rows.s[part]
    expected = honest(X, y, s, HashKFold(K).fold_of(np.arange(len(X))))
    check(opened(X, y, sample_weight=s), expected, chunk_rows=chunk_rows)


@given(st.integers(50, N), st.integers(50, 4000))
@settings(max_examples=10)
def test_any_chunking_gives_the_same_sums(rows: Rows, piece: int, chunk: int) -> None:
    with TemporaryDirectory() as folder:
        rows.frame.to_parquet(f"{folder}/rows.parquet", row_group_size=piece)
        source = opened(folder, "y", sample_weight="s", drop=["g"])
        assert len(source.pieces) == -(-N // piece)
        check(source, rows.expected, chunk_rows=chunk)


def test_frames(rows: Rows) -> None:
    frame = rows.frame
    check(opened(frame, "y", sample_weight="s", drop=["g"]), rows.expected, chunk_rows=777)
    wanted = ["a", "b", "c"]
    check(opened(frame, rows.y, sample_weight=rows.s, features=wanted), rows.expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps_and_parts_of_them(rows: Rows, tmp_path: Path, order: Any) -> None:
    path = tmp_path / "X.npy"
    padded = np.zeros((N + 100, P + 2), order=order)
    padded[100:, 2:] = rows.X
    np.save(path, padded)
    part = np.load(path, mmap_mode="r")[100:, 2:]
    source = opened(part, rows.y, sample_weight=rows.s)
    assert len(pickle.dumps(source.pieces[0])) < 8 * 2 * N + 2000  # y and s, but not X
    check(source, rows.expected, chunk_rows=1000)
    check(opened(rows.npy, rows.y, sample_weight=rows.s), rows.expected)


def test_parquet_folders_files_and_lists(rows: Rows) -> None:
    source = opened(rows.folder, "y", sample_weight="s", drop=["g"])
    assert source.names == ("a", "b", "c")
    assert source.n_rows == N
    assert len(pickle.dumps(source.pieces[0])) < 4000
    check(source, rows.expected, chunk_rows=123)
    files = sorted(rows.folder.iterdir())
    check(opened(files, "y", sample_weight="s", drop=["g"]), rows.expected)
    one = opened(str(files[0]), "y", sample_weight="s", features=["a", "b", "c"])
    assert one.n_rows == 1000
    given = opened(rows.folder, rows.y, sample_weight=rows.s, drop=["g", "y", "s"])
    check(given, rows.expected, chunk_rows=500)


def test_some_columns_of_a_row_group(rows: Rows) -> None:
    source = opened(rows.folder, "y", features=["b"])
    chunk = source.reading.chunk(next(source.pieces[3].blocks(10)))
    np.testing.assert_array_equal(chunk.X[:, 0], rows.X[1700:1710, 1])
    np.testing.assert_array_equal(chunk.row, np.arange(1700, 1710))


def _damage(file: Path, column: int) -> None:
    """Turn over the bytes of a column's pages, whose checksums tell."""
    about = pq.ParquetFile(file).metadata.row_group(0).column(column)
    stop = about.data_page_offset + about.total_compressed_size
    data = bytearray(file.read_bytes())
    data[stop - 40 : stop - 8] = bytes(255 - one for one in data[stop - 40 : stop - 8])
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("unread", "filter"),
    [
        ("other", None),
        ("e", ds.field("level") > 4),  # a name that is part of another
        ("other", (ds.field("level") > 4) & (ds.field("word") == "other")),  # a value
    ],
)
def test_only_the_columns_that_are_needed_are_read(
    tmp_path: Path, unread: str, filter: Any
) -> None:
    """A column that nothing asks for may be damaged."""
    file = tmp_path / "a.parquet"
    columns = {"x": np.arange(100.0), "level": np.arange(100) % 10, "word": ["other"] * 100}
    table = pa.table(columns | {unread: np.arange(100.0)})
    pq.write_table(table, file, write_page_checksum=True, use_dictionary=False, compression="none")
    _damage(file, 3)
    with pytest.raises(DataError, match="cannot be read"):
        list(open_rows(file, features=[unread]).pieces[0].blocks(50))
    found = list(open_rows(file, features=["x"], filter=filter).pieces[0].blocks(50))
    rows = np.concatenate([one.row for one in found])
    expected = np.arange(100) if filter is None else np.flatnonzero(np.arange(100) % 10 > 4)
    np.testing.assert_array_equal(rows, expected)


def test_files_with_other_columns_or_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2], "z": [0.0, 0.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [0.5, 1.5]}), tmp_path / "b.parquet")
    pieces = open_rows(tmp_path, features=["x"]).pieces
    values = [one for piece in pieces for one in next(piece.blocks(9)).X.column("x").to_pylist()]
    assert values == [1, 2, 0.5, 1.5]
    with pytest.raises(DataError, match=r"b\.parquet has no column 'z'"):
        open_rows(tmp_path)


@pytest.mark.parametrize("expression", [True, False])
def test_filters_leave_out_row_groups_and_keep_numbers(tmp_path: Path, expression: bool) -> None:
    table = pa.table({"x": np.arange(1000.0), "t": np.repeat(np.arange(10), 100)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    wanted: Any = ds.field("t") >= 7 if expression else [("t", ">=", 7)]
    source = open_rows(tmp_path, features=["x"], filter=(wanted & (ds.field("x") < 950)) if
                       expression else [*wanted, ("x", "<", 950.0)])  # fmt: skip
    assert [piece.start for piece in source.pieces] == [700, 800, 900]
    found = [source.reading.chunk(b) for piece in source.pieces for b in piece.blocks(64)]
    np.testing.assert_array_equal(np.concatenate([c.X[:, 0] for c in found]), np.arange(700, 950))
    np.testing.assert_array_equal(np.concatenate([c.row for c in found]), np.arange(700, 950))


def test_folders_that_tell_a_column(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(6.0), "year": [1, 1, 1, 2, 2, 2]})
    pq.write_to_dataset(table, tmp_path, partition_cols=["year"])
    source = open_rows(tmp_path, "x", cv=2)
    found = [source.reading.chunk(b) for piece in source.pieces for b in piece.blocks(2)]
    np.testing.assert_array_equal(np.concatenate([c.X[:, 0] for c in found]), [1, 1, 1, 2, 2, 2])
    assert all(piece.where.startswith("year=") for piece in source.pieces)


def test_other_file_systems_by_fsspec(rows: Rows) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for file in rows.folder.iterdir():
        memory.pipe(f"/parts/{file.name}", file.read_bytes())
    source = opened("memory://parts", "y", sample_weight="s", drop=["g"])
    check(source, rows.expected)
    check(opened(f"file://{rows.folder}", "y", sample_weight="s", drop=["g"]), rows.expected)


def test_folders_and_lists_and_searches_by_fsspec(rows: Rows) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for i, file in enumerate(sorted(rows.folder.iterdir())):
        memory.pipe(f"/years/year={2000 + i}/rows.parquet", file.read_bytes())
    options: Any = {"sample_weight": "s", "drop": ["g", "year"]}
    check(opened("memory://years", "y", **options), rows.expected)
    several = [f"memory://years/year={2000 + i}/rows.parquet" for i in range(3)]
    check(opened(several, "y", **options), rows.expected)
    found = opened("memory://years", "y", features=["a"], filter=[("year", "==", 2001)])
    assert sum(piece.rows for piece in found.pieces) == 3500
    assert found.pieces[0].start == 1000
    machine = KernelRegressor(approximation=Nystrom(20), gamma=0.3)
    search = KernelSearchCV(machine, {"lam": [1e-3, 1e-1]}, cv=HashKFold(3))
    source = open_rows("memory://years", "y", features=["a", "b", "c"])
    streamed = clone(search).fit(source).cv_results_["mean_test_score"]
    in_memory = search.fit(rows.X, rows.y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(streamed, in_memory, atol=1e-10)


def test_unknown_addresses_are_refused(without_module: Any) -> None:
    with pytest.raises(ValueError, match="on no file system that pyarrow or fsspec knows"):
        open_rows("nowhere://rows")
    with pytest.raises(ValueError, match="there is no file or folder 'memory://nothing'"):
        open_rows("memory://nothing")
    without_module("fsspec")
    words = "such as 'memory://rows' need fsspec, which is not installed: pip install fsspec"
    with pytest.raises(ImportError, match=words):
        open_rows("memory://rows")


def test_groups_are_keys_from_every_source(rows: Rows) -> None:
    import dask.dataframe as dd

    expected = honest(rows.X, rows.y, rows.s, HashKFold(K).fold_of(rows.g))
    roles = {"sample_weight": "s", "groups": "g"}
    for table in (rows.frame, rows.folder, dd.from_pandas(rows.frame, npartitions=5)):
        check(opened(table, "y", **roles), expected)
    check(opened(rows.X, rows.y, sample_weight=rows.s, groups=rows.g), expected)


def test_several_targets(rows: Rows) -> None:
    found = run(FoldSums(K, 1, 2), opened(rows.folder, ["b", "y"], features=["a"]))
    same = run(FoldSums(K, 1, 2), opened(rows.X[:, :1], np.c_[rows.X[:, 1], rows.y]))
    assert_same(found, same)


def test_categories_and_encoded_targets(tmp_path: Path) -> None:
    words = ["no", "yes", "no", "yes"]
    table = pa.table({"x": [1, 2, 3, 4], "y": pa.array(words).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    source = open_rows(tmp_path, "y")
    assert source.raw.reading.chunk(next(source.pieces[0].blocks(9))).Y[:, 0].tolist() == words
    source = source.encoded(lambda y: np.where(y == "yes", 1.0, -1.0))
    chunk = source.reading.chunk(next(source.pieces[0].blocks(9)))
    np.testing.assert_array_equal(chunk.Y, [[-1], [1], [-1], [1]])
    np.testing.assert_array_equal(chunk.X, [[1], [2], [3], [4]])


def test_rows_of_a_transform(rows: Rows) -> None:
    source = opened(rows.folder, "y", sample_weight="s", numeric=False)
    doubled = source.transformed(lambda X: 2.0 * X.to_pandas()[["a", "b", "c"]].to_numpy(), P)
    found = run(FoldSums(K, P), doubled)
    np.testing.assert_allclose(found["G"], 4.0 * rows.expected["G"], rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": "z"}, "y: there is no column 'z'"),
        ({"y": "y", "sample_weight": "weight"}, "sample_weight: there is no column"),
        ({"y": "y", "drop": ["aa"]}, "drop: there is no column 'aa'; did you mean 'a'"),
        ({"y": "y"}, "column 'g' holds values of type"),
        ({"y": np.zeros(3), "drop": ["g"]}, "y has 3 rows, but X has 6000"),
        ({"y": "y", "drop": ["g"], "filter": [("a", ">", 1e9)]}, "no rows that pass the filter"),
    ],
)
def test_wrong_roles_are_refused(rows: Rows, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        opened(rows.folder, options.pop("y"), **options)


def test_what_cannot_be_streamed_is_refused(rows: Rows, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sparse"):
        open_rows(csr_array(np.eye(3)))
    with pytest.raises(ValueError, match="two dimensions"):
        open_rows(np.zeros(3))
    with pytest.raises(ValueError, match="slice it"):
        open_rows(rows.X, drop=["a"])
    with pytest.raises(ValueError, match="filter is for Parquet"):
        open_rows(rows.X, filter=[("a", ">", 0)])
    with pytest.raises(ValueError, match="no file or folder"):
        open_rows(tmp_path / "absent.parquet")
    with pytest.raises(ValueError, match="holds no Parquet file"):
        open_rows(tmp_path)
    (tmp_path / "a.parquet").write_text("no Parquet at all")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        open_rows(tmp_path)
    with pytest.raises(ValueError, match="rows in memory are not sent"):
        run(FoldSums(K, P), opened(rows.X, rows.y), client=object())


def test_a_missing_package_is_named(without_module: Any, rows: Rows) -> None:
    without_module("pyarrow")
    with pytest.raises(ImportError, match=r"pip install 'onefit\[tables\]'"):
        open_rows(rows.folder)


def test_pieces_are_of_some_size() -> None:
    source = open_rows(np.zeros((PIECE_ROWS + 1, 1)))
    assert [(one.start, one.rows) for one in source.pieces] == [(0, PIECE_ROWS), (PIECE_ROWS, 1)]
