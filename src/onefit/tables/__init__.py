"""Tables from files, with one clear sentence for whatever is wrong.

A table becomes features and a target. Numbers stay numbers, also those that are written with units
or commas; dates become days since 1970; everything else becomes text, so that a column means the
same when a model is made and when it is used. What looks like a mistake (a column of numbers with
one word in it, a text that is different in every row) is used, and said in a warning.
"""

from __future__ import annotations

from onefit.tables.dates import PYTHON, Dates
from onefit.tables.features import as_features
from onefit.tables.read import read_features, read_table
from onefit.tables.table import Roles, Table, is_sparse
from onefit.tables.target import check_target

__all__ = [
    "PYTHON",
    "Dates",
    "Roles",
    "Table",
    "as_features",
    "check_target",
    "is_sparse",
    "read_features",
    "read_table",
]
