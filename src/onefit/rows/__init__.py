"""Rows in files or on a Dask cluster, read in passes: sources of rows and hashed folds."""

from __future__ import annotations

from onefit.rows.accumulate import Accumulator, Chunk
from onefit.rows.hash_folds import HashKFold
from onefit.rows.one_pass import run
from onefit.rows.open_rows import open_rows
from onefit.rows.source import Source

__all__ = [
    "Accumulator",
    "Chunk",
    "HashKFold",
    "Source",
    "open_rows",
    "run",
]
