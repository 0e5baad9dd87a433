"""The first sheet of an Excel file as a table, read by pandas and openpyxl."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onefit._validation import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_sheet", "unpacked_bytes"]

BROKEN = (zipfile.BadZipFile, KeyError, ValueError, OSError)


def unpacked_bytes(path: Path) -> int:
    """The size of an Excel file, which is packed, once it is unpacked."""
    try:
        with zipfile.ZipFile(path) as parts:
            return sum(one.file_size for one in parts.infolist())
    except BROKEN as error:
        raise _unreadable(path, error) from error


def read_sheet(path: Path, gaps: list[str], index: str) -> tuple[pd.DataFrame, str, list[str]]:
    """The table in the first sheet, the name of that sheet, and those of the others.

    The first row that is not empty is the header. Empty rows and columns are left out; the index
    of the table holds the rows of the sheet.

    Parameters
    ----------
    path : Path
    gaps : list of str
        What stands for a missing value beside pandas's own list.
    index : str
        Name of the index.
    """
    import pandas as pd

    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            first, *others = map(str, book.sheet_names)
            cells = pd.read_excel(book, sheet_name=first, header=None, na_values=gaps)
    except ImportError as error:
        raise DataError(
            f"reading {path.name} needs openpyxl; pip install 'onefit[tables]', or save the sheet "
            "as CSV"
        ) from error
    except BROKEN as error:
        raise _unreadable(path, error) from error
    cells.index = pd.Index(range(1, 1 + len(cells)), name=index)
    cells = cells.dropna(how="all").dropna(how="all", axis="columns")
    if cells.empty:
        raise DataError(f"sheet {first!r} of {path.name} is empty; it needs a header and rows")
    names = cells.iloc[0]
    if names.isna().any():
        number = int(cells.columns[int(np.argmax(names.isna()))]) + 1
        raise DataError(
            f"row {cells.index[0]} of sheet {first!r} of {path.name} has no name for column "
            f"{number}; its first row must name every column"
        )
    frame = cells.iloc[1:].infer_objects()
    frame.columns = pd.Index([str(name).strip() for name in names])
    return frame, first, others


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path.name} cannot be read as Excel ({str(error)[:120]}); save it as .xlsx or CSV again"
    )
