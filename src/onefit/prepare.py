"""Prepare tables for a kernel model: one transformer from raw columns to float64.

:class:`TablePreparer` is the first step of every pipeline that :class:`onefit.AutoKernelRegressor`
and :class:`onefit.AutoKernelClassifier` make, so a saved pipeline takes the table it was made from.
It is fitted to all rows before the splits are drawn: medians, scales and categories include the
held-out rows, but no target enters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from onefit.tables import ColumnReader, as_frame, is_frame

Array = NDArray[Any]

__all__ = ["MISSING", "TablePreparer", "named_alike"]

#: indicator columns per text column; the rarest values share the last one
MAX_CATEGORIES = 50
#: category of a missing text
MISSING = "(missing)"


class TablePreparer(TransformerMixin, BaseEstimator):
    """Turn a table into a float64 matrix without missing values.

    - Data frames (pandas, Polars, PyArrow): numbers, currencies, percentages, booleans and dates
      are read from text, gap codes become missing values
      (:class:`onefit.tables.ColumnReader`). Dates are days since 1970.
    - Numbers: missing values are replaced by the median, then columns are standardised.
    - Text: one-hot encoded, at most 50 columns per text column; a missing text is a category.
    - Sparse matrices: columns are divided by their largest absolute value and stay sparse.

    Parameters
    ----------
    scale : bool, default=True
        Whether columns of numbers are standardised.
    dayfirst : bool, default=None
        Whether the day comes first in dates such as "01/02/2021". Needed only if no value of the
        column decides it; None refuses such a column.

    Attributes
    ----------
    notes_ : list of str
        How columns were read, where that is not obvious.
    columns_with_gaps_ : list of str
        Columns with missing values in the fitted table.
    reader_ : ColumnReader or None
        Reads data frames; None for arrays and sparse matrices.
    encoder_ : transformer or None
        Fills, scales and encodes; None where sparse columns are left as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> from onefit.prepare import TablePreparer
    >>> table = pd.DataFrame({"price": ["$1", "$2", "$3"], "kind": ["a", "b", "a"]})
    >>> TablePreparer(scale=False).fit_transform(table)
    array([[1., 1., 0.],
           [2., 0., 1.],
           [3., 1., 0.]])
    """

    def __init__(self, scale: bool = True, dayfirst: bool | None = None) -> None:
        self.scale = scale
        self.dayfirst = dayfirst

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any = None) -> TablePreparer:
        """Learn types, medians, scales and categories."""
        self.fit_read(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from the rows of X, and prepare them."""
        return self.encode(self.fit_read(X))

    def transform(self, X: Any) -> Any:
        """Prepare new rows."""
        return self.encode(self.read(X))

    def fit_read(self, X: Any) -> Any:
        """Learn from the rows of X; return them read (see :meth:`read`), not encoded yet."""
        self.reader_ = ColumnReader(self.dayfirst) if is_frame(X) else None
        if self.reader_ is not None:
            frame = named_alike(as_frame(X))
            validate_data(self, frame, skip_check_array=True)
            rows = self.reader_.fit_transform(frame)
            self.notes_ = list(self.reader_.notes_)
        else:
            rows, self.notes_ = self._numbers(X, reset=True), []
        self.encoder_ = _make_encoder(rows, self.scale)
        if self.encoder_ is not None:
            self.encoder_.fit(rows)
        self.columns_with_gaps_ = _with_gaps(rows)
        return rows

    def read(self, X: Any, dayfirst: bool | None = None) -> Any:
        """New rows with columns of float64 or text, as the fitted table had them.

        ``dayfirst`` is for dates in another order than those of the fitted table.
        """
        check_is_fitted(self, "notes_")
        if self.reader_ is None:
            return self._numbers(X, reset=False)
        return self.reader_.read(named_alike(as_frame(X)) if is_frame(X) else X, dayfirst)

    def encode(self, rows: Any) -> Any:
        """Rows as :meth:`read` returns them, as a matrix."""
        if self.encoder_ is None:
            return rows
        Z = self.encoder_.transform(rows)
        return Z if issparse(rows) else np.ascontiguousarray(Z, dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns of the matrix."""
        check_is_fitted(self, "notes_")
        if self.reader_ is None:
            return np.asarray([str(i) for i in range(self.n_features_in_)], dtype=object)
        names = self.encoder_.get_feature_names_out()
        return np.asarray([str(one).split("__", 1)[-1] for one in names], dtype=object)

    @property
    def number_columns_(self) -> list[Any]:
        """Names of the columns that were read as numbers."""
        return self._of_kind("numbers")

    @property
    def categories_(self) -> dict[Any, set[Any]]:
        """Known values of the text columns, by name."""
        names = self._of_kind("texts")
        if not names:
            return {}
        known = self.encoder_.named_transformers_["texts"].named_steps["spread"].categories_
        return {name: set(some) for name, some in zip(names, known, strict=True)}

    def _of_kind(self, kind: str) -> list[Any]:
        if self.reader_ is None:
            return []
        names = np.asarray([str(one) for one in self.reader_.columns_], dtype=object)
        for name, _, places in self.encoder_.transformers_:
            if name == kind:
                return list(names[places])
        return []

    def describe(self) -> str:
        """What is done to the columns, in a sentence."""
        if self.encoder_ is None:
            return "none"
        if isinstance(self.encoder_, MaxAbsScaler):
            return "columns divided by their largest absolute value"
        then = ", then standardised" if self.scale else ""
        words = {
            "numbers": f"numbers (columns: {{}}): gaps filled with the median{then}",
            "texts": "texts (columns: {}): a gap is a category of its own, then one-hot",
        }
        parts = [(kind, len(places)) for kind, _, places in self.encoder_.transformers]
        done = "; ".join(words[kind].format(count) for kind, count in parts)
        return f"{done}; learned from all rows, without the target"

    def _numbers(self, X: Any, reset: bool) -> Any:
        if is_frame(X):
            X = as_frame(X).to_numpy()
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=np.float64,
            accept_sparse="csr",
            ensure_all_finite=True if issparse(X) else "allow-nan",
        )


def named_alike(frame: Any) -> Any:
    """The data frame with names of one type: text, where some are text and some are not."""
    kinds = {isinstance(name, str) for name in frame.columns}
    return (
        frame.set_axis([str(name) for name in frame.columns], axis=1) if len(kinds) > 1 else (frame)
    )


def _make_encoder(rows: Any, scale: bool) -> Any:
    """The transformer of columns of float64 and text, not fitted yet; None if there is no work."""
    if issparse(rows):
        return MaxAbsScaler() if scale else None
    # by place: scikit-learn takes time quadratic in the columns to find them by name
    kinds = rows.dtypes if hasattr(rows, "dtypes") else [rows.dtype] * rows.shape[1]
    floats = np.array([kind.kind == "f" for kind in kinds], dtype=bool)
    fill = ("fill", SimpleImputer(strategy="median"))
    number = Pipeline([fill, ("scale", StandardScaler())] if scale else [fill])
    spread = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False
    )
    missing = SimpleImputer(strategy="constant", fill_value=MISSING)
    text = Pipeline([("fill", missing), ("spread", spread)])
    parts = [
        ("numbers", number, np.flatnonzero(floats)),
        ("texts", text, np.flatnonzero(~floats)),
    ]
    return ColumnTransformer([part for part in parts if part[2].size])


def _with_gaps(rows: Any) -> list[str]:
    if not hasattr(rows, "columns"):
        return []
    return [str(name) for name in rows.columns[rows.isna().any().to_numpy()]]
