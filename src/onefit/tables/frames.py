"""Tables of other libraries as data frames of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_frame", "is_frame"]


def is_frame(X: Any) -> bool:
    """Whether it is a table with named columns."""
    # asked of the class: a lazy table would be computed
    return any(hasattr(type(X), name) for name in ("columns", "column_names"))


def as_frame(X: Any) -> pd.DataFrame:
    """A table of pandas, Polars, PyArrow or another library as a data frame of pandas."""
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "collect") and not hasattr(X, "to_pandas"):
        raise TypeError(f"X is a {type(X).__name__}, which is not computed yet; call collect()")
    options = {"date_as_object": False} if hasattr(X, "column_names") else {}
    if hasattr(X, "to_pandas"):
        found: pd.DataFrame = X.to_pandas(**options)
        return found
    if hasattr(X, "__dataframe__") or hasattr(X, "__arrow_c_stream__"):
        import pyarrow as pa

        return as_frame(pa.table(X))
    return pd.DataFrame(X)
