"""Prepare tables for a kernel model: one transformer from raw columns to float64.

:class:`TablePreparer` is the first step of every pipeline that :class:`onefit.AutoKernelRegressor`
and :class:`onefit.AutoKernelClassifier` make, so a saved pipeline takes the table it was made from.
It is fitted to all rows before the splits are drawn: medians, scales and categories include the
held-out rows, but no target enters.

A kernel compares rows by one distance, so every column enters it with a comparable size: numbers
have variance 1, a text column of any width has variance 1 in total. What encodings gain, and why
they are scikit-learn's parts and not skrub's, is in ``benchmarks/results/mixed_tables.md``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from onefit._frames import as_frame, is_frame
from onefit.tables import WrittenNumbers

Array = NDArray[Any]

__all__ = ["DateEncoder", "TablePreparer", "TextEncoder", "named_alike"]

#: different values up to which a text column is one-hot encoded (benchmarks/mixed_tables.py)
MAX_CATEGORIES = 50
#: category of a missing text
MISSING_TEXT = "(missing)"
#: columns that n-grams of letters are hashed to, and columns of a text after the projection
#: (benchmarks/mixed_tables.py)
HASHED_COLUMNS, TEXT_COLUMNS = 4096, 30
#: period in days, and size of the two columns that hold a day's place in it; the year starts with
#: the first of January, the week with Monday (day 4 of 1970)
PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
MONDAY, PERIOD_SIZE = 4.0, 0.5


class TablePreparer(TransformerMixin, BaseEstimator):
    """Turn a table into a float64 matrix without missing values.

    - Data frames (pandas, Polars, PyArrow): numbers, currencies, percentages, booleans and dates
      are read from text, gap codes become missing values
      (``onefit.tables.WrittenNumbers``).
    - Numbers: missing values are replaced by the median, then columns are standardised.
    - Dates: days since 1970, a number; and the place in the year, the week and the day, if the
      dates cover one and differ in it (:class:`DateEncoder`).
    - Text of at most 50 different values: one-hot encoded; a missing text is a category.
    - Other text: columns of the letters that texts share (:class:`TextEncoder`).
    - A column without any value is left out.
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
    reader_ : WrittenNumbers or None
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
        self.fit_rows(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from the rows of X, and prepare them."""
        return self.fit_rows(X)[1]

    def transform(self, X: Any) -> Any:
        """Prepare new rows."""
        return self.encode(self.read(X))

    def fit_rows(self, X: Any) -> tuple[Any, Any]:
        """Learn from the rows of X; return them as :meth:`read` has them, and encoded."""
        self.reader_ = WrittenNumbers(self.dayfirst) if is_frame(X) else None
        if self.reader_ is not None:
            frame = named_alike(as_frame(X))
            validate_data(self, frame, skip_check_array=True)
            rows = self.reader_.fit_transform(frame)
            self.notes_ = list(self.reader_.notes_)
            self.columns_with_gaps_ = [str(one) for one in rows.columns[rows.isna().any()]]
        else:
            rows, self.notes_ = self._numbers(X, reset=True), []
            self.columns_with_gaps_ = []
        self.encoder_ = self._make_encoder(rows)
        if self.encoder_ is None:
            return rows, rows
        with config_context(transform_output="default"):
            return rows, _plain(self.encoder_.fit_transform(rows))

    def read(self, X: Any, dayfirst: bool | None = None) -> Any:
        """New rows with columns of float64 or text, as the fitted table had them.

        ``dayfirst`` is for dates in another order than those of the fitted table.
        """
        check_is_fitted(self, "notes_")
        if self.reader_ is None:
            return self._numbers(X, reset=False)
        return self.reader_.transform(named_alike(as_frame(X)) if is_frame(X) else X, dayfirst)

    def typed(self, X: Any) -> Any:
        """A data frame with numbers as floats and dates as moments, however they are written."""
        import pandas as pd

        frame, rows = named_alike(as_frame(X)).copy(), self.read(X)
        for name, how in ({} if self.reader_ is None else self.reader_.how_).items():
            if how["kind"] == "number":
                frame[name] = rows[str(name)]
            elif how["kind"] == "date":
                frame[name] = pd.to_datetime(rows[str(name)], unit="D").dt.round("s")
        return frame

    def encode(self, rows: Any) -> Any:
        """Rows as :meth:`read` returns them, as a matrix."""
        if self.encoder_ is None:
            return rows
        with config_context(transform_output="default"):
            return _plain(self.encoder_.transform(rows))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns of the matrix."""
        check_is_fitted(self, "notes_")
        if self.reader_ is None:
            return np.asarray([str(i) for i in range(self.n_features_in_)], dtype=object)
        names = self.encoder_.get_feature_names_out()
        return np.asarray([str(one).split("__", 1)[-1] for one in names], dtype=object)

    @property
    def categories_(self) -> dict[str, set[Any]]:
        """Known values of the one-hot encoded columns, by name."""
        places = {name: some for name, _, some in getattr(self.encoder_, "transformers_", ())}
        if self.reader_ is None or "texts" not in places:
            return {}
        names = [str(self.reader_.columns_[place]) for place in places["texts"]]
        known = self.encoder_.named_transformers_["texts"].named_steps["spread"].categories_
        return {name: set(some) for name, some in zip(names, known, strict=True)}

    def describe(self) -> str:
        """A sentence on what is done to the columns."""
        if self.encoder_ is None:
            return "none"
        if isinstance(self.encoder_, MaxAbsScaler):
            return "columns divided by their largest absolute value"
        then = ", then standardised" if self.scale else ""
        words = {
            "numbers": f"numbers (columns: {{}}): gaps filled with the median{then}",
            "dates": "dates (columns: {}): also their place in year, week and day",
            "texts": "texts (columns: {}): a gap is a category of its own, then one-hot",
            "long": "texts of many values (columns: {}): hashed groups of letters, projected",
        }
        parts: dict[str, int] = {}
        for name, _, places in self.encoder_.transformers:
            kind = name.split(" ")[0]
            parts[kind] = parts.get(kind, 0) + np.size(places)
        done = "; ".join(words[kind].format(count) for kind, count in parts.items())
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

    def _make_encoder(self, rows: Any) -> Any:
        """The transformer of columns of float64 and text, not fitted; None if there is no work."""
        if issparse(rows):
            return MaxAbsScaler() if self.scale else None
        # by place: scikit-learn takes time quadratic in the columns to find them by name
        kinds = rows.dtypes if hasattr(rows, "dtypes") else [rows.dtype] * rows.shape[1]
        floats = np.array([kind.kind == "f" for kind in kinds], dtype=bool)
        filled = ~np.asarray(rows.isna().all() if hasattr(rows, "isna") else np.isnan(rows).all(0))
        floats, texts = np.flatnonzero(floats & filled), np.flatnonzero(~floats & filled)
        long = [place for place in texts.tolist() if rows.iloc[:, place].nunique() > MAX_CATEGORIES]
        how = {} if self.reader_ is None else self.reader_.how_
        names = [] if self.reader_ is None else self.reader_.columns_
        dates = [i for i, name in enumerate(names) if how.get(name, {}).get("kind") == "date"]
        fill = ("fill", SimpleImputer(strategy="median"))
        number = Pipeline([fill, ("scale", StandardScaler())] if self.scale else [fill])
        spread = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        missing = SimpleImputer(strategy="constant", fill_value=MISSING_TEXT)
        text = Pipeline([("fill", missing), ("spread", spread)])
        parts = [
            ("numbers", number, floats),
            ("dates", DateEncoder(), np.array(dates, dtype=np.intp)),
            ("texts", text, np.setdiff1d(texts, long)),
            *((f"long {i}", TextEncoder(), np.array([place])) for i, place in enumerate(long)),
        ]
        return ColumnTransformer([part for part in parts if part[2].size])


def _plain(Z: Any) -> Any:
    """A matrix of float64 by rows; sparse ones as they are."""
    return Z if issparse(Z) else np.ascontiguousarray(Z, dtype=np.float64)


class _Encoder(TransformerMixin, BaseEstimator):
    """A transformer of columns of a data frame, which are counted and named when it is fitted."""

    pairs_: list[tuple[str, str]]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the new columns: that of the old one, and what they hold of it."""
        names = [f"{name} ({what})" for name, what in self.pairs_]
        return np.asarray(names, dtype=object)


class DateEncoder(_Encoder):
    """The place of dates in the year, the week and the day, each as a point on a circle.

    Columns hold days since 1970. Periods that the dates of the fitted table do not cover, or in
    which they are all at one place, are left out. A missing date is the centre of the circle.

    Attributes
    ----------
    pairs_ : list of (str, str)
        Column and part of it that each new column holds.
    used_ : list of (int, str)
        Column and period of each circle.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit.prepare import DateEncoder
    >>> DateEncoder().fit_transform(np.array([[0.0], [0.25], [0.5]])).round(2)
    array([[ 0. ,  0.5],
           [ 0.5,  0. ],
           [ 0. , -0.5]])
    """

    def fit(self, X: Any, y: Any = None) -> DateEncoder:
        """Find the periods that the dates cover."""
        values = np.asarray(X, dtype=float)
        names = list(getattr(X, "columns", range(values.shape[1])))
        self.used_: list[tuple[int, str]] = []
        for column, days in enumerate(values.T):
            days = days[~np.isnan(days)]
            span = float(np.ptp(days)) if days.size else 0.0
            clock = float(np.ptp(days - np.floor(days))) if days.size else 0.0
            covered = {"year": span >= 300.0, "week": span >= 6.0, "day": clock > 1e-6}
            self.used_ += [(column, period) for period in PERIODS if covered[period]]
        self.pairs_ = [
            (str(names[column]), f"{period}, {axis}")
            for column, period in self.used_
            for axis in ("sine", "cosine")
        ]
        self.n_features_in_ = values.shape[1]
        return self

    def transform(self, X: Any) -> Array:
        """Two columns for each period."""
        check_is_fitted(self, "used_")
        values = np.asarray(X, dtype=float)
        found = np.zeros((values.shape[0], 2 * len(self.used_)))
        for i, (column, period) in enumerate(self.used_):
            days = np.floor(values[:, column]) - MONDAY if period == "week" else values[:, column]
            angle = 2.0 * np.pi / PERIODS[period] * days
            found[:, 2 * i] = np.sin(angle)
            found[:, 2 * i + 1] = np.cos(angle)
        return np.asarray(np.nan_to_num(PERIOD_SIZE * found))


class TextEncoder(_Encoder):
    """Text as few columns in which texts that share letters are near each other.

    Groups of three and four letters are hashed to columns, weighted by how rare they are, and
    projected to their 30 principal directions; the columns have variance 1 in total. No target
    enters, no list of words is stored, and an unseen text is encoded like similar ones. A missing
    text is the text "(missing)".

    Attributes
    ----------
    steps_ : Pipeline
    mean_, size_ : array and float
        Mean of the projected columns, and their standard deviation in total.
    pairs_ : list of (str, str)
        Column and part of it that each new column holds.

    Examples
    --------
    >>> import pandas as pd
    >>> from onefit.prepare import TextEncoder
    >>> jobs = pd.DataFrame({"job": ["bus driver", "tram driver", "office clerk", "senior clerk"]})
    >>> Z = TextEncoder().fit(jobs).transform(jobs)
    >>> bool(((Z[0] - Z[1]) ** 2).sum() < ((Z[0] - Z[2]) ** 2).sum())
    True
    """

    def fit(self, X: Any, y: Any = None) -> TextEncoder:
        """Learn weights and directions."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Learn weights and directions, and return the columns of the texts."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

        words = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), n_features=HASHED_COLUMNS)
        counts = Pipeline([("hash", words), ("weight", TfidfTransformer())])
        weighted = counts.fit_transform(_texts(X))
        used = int((weighted.getnnz(axis=0) > 0).sum())
        width = max(1, min(TEXT_COLUMNS, weighted.shape[0] - 1, used - 1))
        project = TruncatedSVD(width, random_state=0).fit(weighted)
        self.steps_ = Pipeline([*counts.steps, ("project", project)])
        Z = project.transform(weighted)
        self.mean_ = Z.mean(axis=0)
        self.size_ = float(np.sqrt(Z.var(axis=0).sum())) or 1.0
        name = str(X.columns[0]) if hasattr(X, "columns") else "0"
        self.pairs_ = [(name, f"text {i + 1}") for i in range(width)]
        self.n_features_in_ = 1
        return np.asarray((Z - self.mean_) / self.size_)

    def transform(self, X: Any) -> Array:
        """Columns of the texts."""
        check_is_fitted(self, "steps_")
        return np.asarray((self.steps_.transform(_texts(X)) - self.mean_) / self.size_)


def _texts(X: Any) -> list[str]:
    column = (X.iloc[:, 0] if hasattr(X, "iloc") else np.asarray(X)[:, 0]).tolist()
    return [one if isinstance(one, str) else MISSING_TEXT for one in column]


def named_alike(frame: Any) -> Any:
    """The data frame with names of one type: text, where some are text and some are not."""
    if len({isinstance(name, str) for name in frame.columns}) < 2:
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)
