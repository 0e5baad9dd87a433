"""Tables from files, with one clear sentence for whatever is wrong.

A table becomes features and a target. Numbers stay numbers, also those that are written with units
or commas; dates become days since 1970; everything else becomes text. :class:`ColumnReader` learns
that from a table and is the first step of a model's pipeline, so that a column means the same when
the model is made and when it is used. What looks like a mistake (a number of the row, a text that
is different in every row) is used, and named in a warning; numbers with a few words among them are
refused.
"""

from __future__ import annotations

from onefit.tables.frames import as_frame, is_frame
from onefit.tables.mistakes import names_the_rows
from onefit.tables.read import read_features, read_table
from onefit.tables.reader import ColumnReader
from onefit.tables.table import Roles, Table, is_sparse
from onefit.tables.target import check_target
from onefit.tables.values import LABELS

__all__ = [
    "LABELS",
    "ColumnReader",
    "Roles",
    "Table",
    "as_frame",
    "check_target",
    "is_frame",
    "is_sparse",
    "names_the_rows",
    "read_features",
    "read_table",
]
