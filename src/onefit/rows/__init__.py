"""Rows that do not fit, or that lie on many machines: one pass, whoever runs it."""

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
