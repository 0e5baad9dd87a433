"""Tables from files: features, target and other roles of columns, with checks of each.

:class:`WrittenNumbers` reads the columns and is the first part of a model's pipeline, so a column
means the same when the model is made and when it is used. Columns that look like mistakes (row
numbers, another text in every row) are used, with a note.
"""

from __future__ import annotations

from onefit.tables.checks import mistakes, names_the_rows
from onefit.tables.read import Roles, Table, read_features, read_table
from onefit.tables.reader import WrittenColumn, WrittenNumbers
from onefit.tables.target import are_codes, read_target

__all__ = [
    "Roles",
    "Table",
    "WrittenColumn",
    "WrittenNumbers",
    "are_codes",
    "mistakes",
    "names_the_rows",
    "read_features",
    "read_table",
    "read_target",
]
