"""Rows that do not fit, or that lie on many machines: one pass, whoever runs it."""

from __future__ import annotations

from onefit.stream.accumulate import Accumulator, Chunk
from onefit.stream.approximation import Fourier, Nystrom
from onefit.stream.hash_folds import HashKFold
from onefit.stream.one_pass import run
from onefit.stream.open_rows import open_rows
from onefit.stream.source import Source

__all__ = [
    "Accumulator",
    "Chunk",
    "Fourier",
    "HashKFold",
    "Nystrom",
    "Source",
    "open_rows",
    "run",
]
