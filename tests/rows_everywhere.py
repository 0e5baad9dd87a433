"""Rows in every place that they can be streamed from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from sums import FoldSums

from onefit.rows import open_rows, run

N, P, K = 6000, 3, 4


class Rows(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    s: np.ndarray
    g: np.ndarray
    frame: pd.DataFrame
    folder: Path
    npy: Path
    expected: dict[str, Any]


def honest(X: Any, y: Any, s: Any, fold: Any) -> dict[str, Any]:
    """The sums of FoldSums, by their definition."""
    masks = [fold == k for k in range(K)]
    row = np.arange(len(X))
    return {
        "rows": np.array([mask.sum() for mask in masks]),
        "weight": np.array([s[mask].sum() for mask in masks]),
        "G": np.array([(X[m] * s[m, None]).T @ X[m] for m in masks]),
        "R": np.array([(X[m] * s[m, None]).T @ y[m, None] for m in masks]),
        "row": np.array([row[mask].sum() for mask in masks]),
    }


def check(source: Any, expected: dict[str, Any], **options: Any) -> None:
    """A pass over a source gives the sums that are expected."""
    assert_same(run(FoldSums(K, P), source, **options), expected)


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-10, atol=1e-10, err_msg=name)


def opened(X: Any, *args: Any, **options: Any) -> Any:
    return open_rows(X, *args, cv=K, **options)


def damage(path: Path, group: int) -> None:
    """Overwrite the middle of a column's pages."""
    column = pq.ParquetFile(path).metadata.row_group(group).column(1)
    data = bytearray(path.read_bytes())
    first = column.dictionary_page_offset or column.data_page_offset
    start = first + column.total_compressed_size // 2
    data[start : start + 64] = bytes(64)
    path.write_bytes(bytes(data))


def forget_pages(path: Path) -> None:
    """Overwrite all values of a Parquet file, as if nothing had happened to it."""
    data, times = path.read_bytes(), path.stat()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    path.write_bytes(data[:4] + bytes(len(data) - footer - 4) + data[-footer:])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def in_blocks(X: Any, there: Any, size: int = 170) -> Any:
    """A Dask collection whose blocks are arrays of another library."""
    parts = []
    for first in range(0, len(X), size):
        part = X[first : first + size]
        block = dask.delayed(there, pure=False)(part)
        parts.append(da.from_delayed(block, part.shape, float))
    return da.concatenate(parts)
