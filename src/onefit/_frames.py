"""Data frames of any library, and how messages quote their cells and places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit._validation import DataError

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = [
    "LINE", "MAX_QUOTED", "all_match", "as_frame", "check_names", "columns_of", "filled",
    "is_frame", "listed", "may_hold_text", "place_of", "shortened", "shown",
]  # fmt: skip

#: largest number of characters of a value in a message
MAX_QUOTED = 60
#: name of an index that holds the lines of a file
LINE = "line"


# --------------------------------------------------------------------------- messages


def shown(value: Any) -> str:
    """A value as messages quote it: its beginning only, if it is long."""
    if isinstance(value, str) and len(value) > MAX_QUOTED:
        return f"{value[:MAX_QUOTED]!r}... ({len(value):,} characters)"
    return shortened(repr(value.item() if isinstance(value, np.generic) else value))


def shortened(text: str, most: int = 2 * MAX_QUOTED) -> str:
    """The beginning of a long text: messages of other libraries may quote anything."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def listed(names: Any, most: int = 8) -> str:
    """The first of some names, and how many more there are."""
    first = ", ".join(shown(str(name)) for name in list(names)[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most} more"


def place_of(rows: Any, position: int) -> str:
    """The place of a row of a table, or of its index: the line of the file it was read from.

    The first line of a file is line 1, be it a header or not, and a row that spans several lines
    begins at its line. Rows of other tables are counted from 0.
    """
    index = getattr(rows, "index", rows)
    if not hasattr(index, "name"):
        return f"row {position}"
    return f"{'line' if index.name == LINE else 'row'} {index[position]}"


# --------------------------------------------------------------------------- data frames


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns."""
    # of the class: a lazy table would be computed
    return any(hasattr(type(X), name) for name in ("columns", "column_names"))


def as_frame(X: Any) -> pd.DataFrame:
    """A table of pandas, Polars, PyArrow or another library as a data frame of pandas."""
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X
    try:
        import narwhals.stable.v2 as nw
        from narwhals.stable.v2 import selectors
    except ImportError as error:
        raise ImportError(
            f"a {type(X).__name__} needs narwhals; pip install 'onefit[tables]'"
        ) from error
    try:
        frame = nw.from_native(X)
    except TypeError:
        if not (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")):
            return pd.DataFrame(X)
        import pyarrow as pa

        frame = nw.from_native(pa.table(X))  # a batch of rows, or a table of a further library
    if isinstance(frame, nw.LazyFrame):
        call = "compute" if hasattr(X, "compute") else "collect"
        raise TypeError(f"X is a {type(X).__name__}, which is not computed yet; call {call}()")
    frame = frame.with_columns(
        selectors.by_dtype(nw.Decimal).cast(nw.Float64),
        selectors.by_dtype(nw.Date).cast(nw.Datetime),
    )
    found: pd.DataFrame = frame.to_pandas()
    return found


def check_names(names: Any, what: str) -> None:
    """Refuse columns of the same name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"{what} has several columns named {shown(twice)}; give each its own name")


def filled(column: pd.Series) -> Array:
    """The values of a column that are not missing."""
    values: Array = column.dropna().to_numpy(dtype=object)
    return values


def columns_of(frame: pd.DataFrame, test: Callable[[Any], bool]) -> Array:
    """The columns of one kind of type; of many columns, each type is tested once."""
    known = {kind: test(kind) for kind in set(frame.dtypes)}
    return np.array([known[kind] for kind in frame.dtypes], dtype=bool)


def may_hold_text(kind: Any) -> bool:
    """Whether a column of this type may hold text."""
    return kind.kind in "OU" or str(kind) in ("str", "string")


def all_match(pattern: re.Pattern[str], values: Array) -> bool:
    """Whether there are values, and all of them texts of one pattern."""
    matches = (isinstance(one, str) and pattern.fullmatch(one) for one in values)
    return bool(values.size) and all(matches)
