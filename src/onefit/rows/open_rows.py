"""The source of rows in memory, in files or in Dask collections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onefit.rows.arrays import read_npy, table_source
from onefit.rows.columns import ColumnRoles
from onefit.rows.hash_folds import check_splitter
from onefit.rows.source import Source

__all__ = ["is_streamed", "open_rows"]


def is_streamed(X: Any) -> bool:
    """Whether rows are streamed: sources, paths and Dask collections are."""
    return isinstance(X, (str, Path, Source)) or _are_paths(X) or is_lazy(X)


def is_lazy(X: Any) -> bool:
    """Whether an object is a Dask collection; Dask is not imported for it."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "__dask_graph__")


def open_rows(
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    cv: Any = 5,
    features: Any = None,
    drop: Any = (),
    filter: Any = None,
    numeric: bool = True,
) -> Source:
    """Open rows to stream: in memory, in files, or in a Dask collection.

    Parameters
    ----------
    X : array, data frame, str or Path, list of paths, dask.array, dask.dataframe or Source
        A path of a Parquet file, of a folder of these, or of an .npy file, which is mapped.
        A source keeps its columns and rows, and gets the folds of ``cv``.
    y, sample_weight, groups : str, list of str, array, or Dask collection, default=None
        Targets, weights, and keys of the folds: names of columns of X, or a value for every row.
        Without groups, the number of a row is its key.
    cv : HashKFold or int, default=5
    features, drop : str or list of str, default=None
        Columns to use as features (by default all without another role), and columns to leave out.
    filter : pyarrow expression, or list of (column, operator, value), default=None
        Rows of Parquet files to take.
    numeric : bool, default=True
        Whether to refuse columns of Parquet files that are not numbers.

    Returns
    -------
    Source
    """
    splitter = check_splitter(cv)
    if isinstance(X, Source):
        roles = {"y": y, "sample_weight": sample_weight, "groups": groups}
        asked = roles | {"features": features, "drop": drop or None, "filter": filter}
        for name, one in asked.items():
            if one is not None:
                raise ValueError(f"the rows are open already; give {name} where they are opened")
        return X.split_by(splitter)
    if isinstance(X, (str, Path)) and str(X).endswith(".npy"):
        X = read_npy(X)
    table = {"features": features, "drop": drop}
    if isinstance(X, (str, Path)) or _are_paths(X):
        from onefit.rows.parquet import parquet_source

        options = {"filter": filter, "numeric": numeric}
        return parquet_source(X, y, sample_weight, groups, splitter, **table, **options)
    if filter is not None:
        raise ValueError("filter is for Parquet files; filter a collection or an array before")
    if is_lazy(X):
        from onefit.rows.dask_blocks import dask_source

        return dask_source(X, y, sample_weight, groups, splitter, **table)
    names = list(X.columns) if hasattr(X, "iloc") else None
    columns, given = ColumnRoles.resolve(names, y, sample_weight, groups, **table)
    return table_source(X, columns, given, splitter)


def _are_paths(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and bool(X) and all(map(_is_path, X))


def _is_path(x: Any) -> bool:
    """Whether a value is a path; other texts may be rows of a user's kernel."""
    if not isinstance(x, str):
        return isinstance(x, Path)
    return x.endswith((".parquet", ".pq", ".npy")) or "://" in x or Path(x).exists()
