"""The first step of a pipeline: columns of a raw table as floats or as text, always read alike.

How a column is written is learnt once, from the table that a model is made from: plain numbers,
numbers with units or commas, dates, or text. New rows are read in the same way, and a cell that
cannot be is refused with its place. So the pipeline takes the table as it is in a file.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from onefit.files import DataError, all_match, columns_of, place_of, shown
from onefit.tables.dates import day_first, days, is_dated
from onefit.tables.frames import as_frame, is_frame
from onefit.tables.values import (
    DATE,
    DATES,
    LABELS,
    cells_at,
    check_sizes,
    holds_numbers,
    odd_cells,
    refuse_nested,
)
from onefit.written import is_gap, read_as, read_numbers

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]
#: how a column is written: "kind" is "number", "date" or "text"; of numbers "comma" and "unit", of
#: dates "dayfirst"
How = dict[str, Any]

__all__ = ["ColumnReader"]

PLAIN: How = {"kind": "number", "comma": None, "unit": ""}
TEXT: How = {"kind": "text"}
REMEDY = ", or drop that column"


class ColumnReader(TransformerMixin, BaseEstimator):
    """Read the columns of a table as numbers or text.

    Numbers and booleans become floats, also those written with units or commas; dates become days
    since 1970; everything else becomes text. Gaps stay gaps, and a gap code (``n.a.``, ``-``,
    ``NULL``) among numbers or dates is one. A column of numbers with a few other words in it is
    refused, and so are dates whose day and month cannot be told apart. Columns of pandas's type
    "category" are text, whatever they hold.

    Parameters
    ----------
    dayfirst : bool, default=None
        Of dates such as 01/02/2021, where the column does not settle it; None refuses these.

    Attributes
    ----------
    columns_ : list
        Names of the columns, in their order.
    how_ : dict
        How each column is written that is not of plain numbers, by its name.
    notes_ : list of str
        What a user should know of the columns, a sentence each; ``select`` warns of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from onefit.tables import ColumnReader
    >>> table = pd.DataFrame({"day": ["26-May-1994", "1-Jun-1994"], "kind": ["a", "b"]})
    >>> reader = ColumnReader()
    >>> reader.fit_transform(table)["day"].tolist()
    [8911.0, 8917.0]
    >>> reader.how_["kind"]
    {'kind': 'text'}
    """

    def __init__(self, dayfirst: bool | None = None) -> None:
        self.dayfirst = dayfirst

    def fit(self, X: Any, y: Any = None) -> ColumnReader:
        """Learn how the columns of a table are written."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        """Learn how the columns of a table are written, and read them."""
        frame = as_frame(X)
        how: dict[Any, How] = {}
        found: dict[Any, Array] = {}
        notes: list[str] = []
        numeric = columns_of(frame, holds_numbers)
        for place in np.flatnonzero(~numeric).tolist():
            name, column = frame.columns[place], frame.iloc[:, place]
            learnt = _Column(column, f"column {shown(name)}", notes)
            how[name], found[name] = learnt.learn(self.dayfirst)
        self.columns_, self.how_, self.notes_ = list(frame.columns), how, notes
        self.n_features_in_ = len(self.columns_)
        return _joined(frame, numeric, found)

    def transform(self, X: Any) -> pd.DataFrame:
        """Read the columns of new rows as those of the table that was learnt from."""
        return self.read(X)

    def read(self, X: Any, dayfirst: bool | None = None) -> pd.DataFrame:
        """As :meth:`transform`; ``dayfirst`` is for dates that are written in another order."""
        check_is_fitted(self, "how_")
        frame = self._as_learnt(X)
        numeric = columns_of(frame, holds_numbers)
        numeric &= np.array([name not in self.how_ for name in self.columns_], dtype=bool)
        found: dict[Any, Array] = {}
        notes: list[str] = []
        for place in np.flatnonzero(~numeric).tolist():
            name, column = frame.columns[place], frame.iloc[:, place]
            known = _Column(column, f"column {shown(name)}", notes)
            found[name] = known.apply(self.how_.get(name, PLAIN), dayfirst)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return _joined(frame, numeric, found)

    def _as_learnt(self, X: Any) -> pd.DataFrame:
        """The columns that were learnt, in their order."""
        import pandas as pd

        if not is_frame(X):
            return pd.DataFrame(np.asarray(X), columns=self.columns_)
        frame = as_frame(X)
        known = set(frame.columns)
        missing = [name for name in self.columns_ if name not in known]
        if missing:
            raise DataError(
                f"X lacks the columns {', '.join(map(shown, missing[:5]))}"
                f"{' and others' if len(missing) > 5 else ''}, which the model was made with; add "
                "them, empty where unknown"
            )
        same = len(known) == len(self.columns_) and list(frame.columns) == self.columns_
        return frame if same else frame.loc[:, self.columns_]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the columns, as text."""
        return np.asarray([str(name) for name in self.columns_], dtype=object)


def _joined(frame: pd.DataFrame, numeric: Array, others: dict[Any, Array]) -> pd.DataFrame:
    """Columns of numbers as floats, all at once: there may be a hundred thousand; and others."""
    import pandas as pd

    names = frame.columns[numeric]
    values = frame.loc[:, numeric].to_numpy(dtype=float, na_value=np.nan)
    remedy = "correct it, or leave it empty"
    check_sizes(values, lambda place: f"column {shown(names[place])}", remedy, frame.index)
    found = pd.DataFrame(values, columns=names, index=frame.index)
    if numeric.all():
        return found.set_axis(found.columns.map(str), axis=1)
    for name, one in others.items():
        if one.dtype.kind == "f":
            said = f"column {shown(name)}"
            check_sizes(one[:, None], partial(_same, said), remedy, frame.index)
    read = {
        name: pd.Series(one, index=frame.index, dtype=one.dtype) for name, one in others.items()
    }
    others_read = pd.DataFrame(read, index=frame.index)
    whole = pd.concat([found, others_read], axis=1)[list(frame.columns)]
    return whole.set_axis(frame.columns.map(str), axis=1)  # scikit-learn takes names of one kind


def _same(text: str, _: int) -> str:
    return text


class _Column:
    """One column that is not of plain numbers.

    Attributes
    ----------
    texts : array
        The cells that are not empty, as text.
    rows : array
        Their places.
    """

    def __init__(self, column: pd.Series, what: str, notes: list[str]) -> None:
        self.column, self.what, self.notes = column, what, notes
        self.rows = np.flatnonzero(column.notna().to_numpy())
        values = column.to_numpy(dtype=object)[self.rows]
        refuse_nested(values, what, REMEDY)
        self.texts = np.array([_text(one) for one in values], dtype=object)

    def learn(self, asked: bool | None) -> tuple[How, Array]:
        """How it is written, and what it holds."""
        if self.column.dtype.kind == "m":
            raise DataError(f"{self.what} {DATES}{REMEDY}")
        if str(self.column.dtype) == "category":
            return TEXT, self._as_text()
        gaps = np.array([is_gap(one) for one in self.texts], dtype=bool)
        for read in (self._learn_dates, self._learn_numbers):
            found = read(gaps, asked)
            if found is not None:
                self._tell_of_gaps(gaps)
                return found
        self._refuse_odd(gaps)
        if all_match(DATE, self.texts[~gaps]):
            raise DataError(f"{self.what} {DATES}{REMEDY}")
        return TEXT, self._as_text()

    def apply(self, how: How, dayfirst: bool | None) -> Array:
        """What it holds, read as another column of that name was."""
        if how["kind"] == "text":
            return self._as_text()
        gaps = np.array([is_gap(one) for one in self.texts], dtype=bool)
        if how["kind"] == "date":
            return self._dates(gaps, how, dayfirst)
        comma, unit = how["comma"], how["unit"]
        if comma is None:
            read = read_numbers(self.texts[~gaps])
            comma = read is not None and bool(read.comma)
            if read is not None and read.comma is not None:
                self.notes.append(f"{self.what} is read as numbers: {read.how}")
        numbers = [0.0 if gap else read_as(one, comma, unit)
                   for one, gap in zip(self.texts, gaps, strict=True)]  # fmt: skip
        bad = np.flatnonzero([one is None for one in numbers])
        if bad.size:
            self._refuse(bad, f"numbers{f' in {unit!r}' if unit else ''}")
        return self._spread(np.array(numbers, dtype=float), gaps)

    def _learn_dates(self, gaps: Array, asked: bool | None) -> tuple[How, Array] | None:
        rest = self._without(gaps)
        order = day_first(rest, asked, self.what)
        found = days(rest, order)
        if found is None:
            return None
        first = self.texts[~gaps][0] if (~gaps).any() else ""
        said = {None: "", True: ", day first", False: ", month first"}[order]
        self.notes.append(
            f"{self.what} is read as numbers: days since 1970, because it holds dates ({first}, "
            f"say{said})"
        )
        return {"kind": "date", "dayfirst": order}, found

    def _learn_numbers(self, gaps: Array, _: bool | None) -> tuple[How, Array] | None:
        import pandas as pd

        rest = self.texts[~gaps]
        # two texts, 5 mg and 10 mg, are a choice; 0, 1 and a gap code would be numbers without it
        if len(set(rest)) < (2 if gaps.any() else 3):
            return None
        read = read_numbers(rest)
        if read is not None:
            numbers, how = read.numbers, {**PLAIN, "comma": read.comma, "unit": read.unit}
            if read.unit or read.comma is not None or not gaps.any():
                self.notes.append(f"{self.what} is read as numbers: {read.how}")
        else:
            numbers, how = pd.to_numeric(rest, errors="coerce"), PLAIN
            if np.isnan(numbers).any():
                return None
        values = np.zeros(self.texts.size)
        values[~gaps] = numbers
        return how, self._spread(values, gaps)

    def _dates(self, gaps: Array, how: How, dayfirst: bool | None) -> Array:
        rest, order = self._without(gaps), how["dayfirst"]
        if dayfirst is not None or order is None:
            order = day_first(rest, dayfirst, self.what)
        dated = is_dated(rest, order)[self.rows]
        bad = np.flatnonzero(~dated & ~gaps)
        if bad.size:
            first = {None: "", True: " with the day first", False: " with the month first"}[order]
            self._refuse(bad, f"dates{first}")
        found = days(rest, order)
        return np.full(len(self.column), np.nan) if found is None else found

    def _refuse(self, bad: Array, needed: str) -> None:
        raise DataError(
            f"{self.what} holds {self._cells(bad)}, but the model was made with {needed} there; "
            "correct it, or leave it empty"
        )

    def _refuse_odd(self, gaps: Array) -> None:
        """Refuse numbers or dates with a few words among them; of few values they are labels."""
        places = np.flatnonzero(~gaps)
        odd = odd_cells(self.texts[places])
        if not odd.size:
            return
        kind = "dates" if DATE.fullmatch(np.delete(self.texts[places], odd)[0]) else "numbers"
        said = f"{self.what} holds {kind} but for {self._cells(places[odd])}"
        if len(set(np.delete(self.texts[places], odd))) > LABELS:
            raise DataError(f"{said}; correct it, or leave it empty{REMEDY}")
        self.notes.append(f"{said}, so it is used as text; correct it, or leave it empty")

    def _cells(self, places: Array) -> str:
        spread = np.full(len(self.column), "", dtype=object)
        spread[self.rows] = self.texts
        return cells_at(spread, self.column.index, self.rows[places])

    def _tell_of_gaps(self, gaps: Array) -> None:
        if gaps.any():
            codes = ", ".join(shown(one) for one in sorted(set(self.texts[gaps])))
            cells = "1 cell is" if gaps.sum() == 1 else f"{gaps.sum()} cells are"
            first = place_of(self.column.index, int(self.rows[np.argmax(gaps)]))
            self.notes.append(
                f"{self.what}: {cells} read as missing ({codes}; the first in {first})"
            )

    def _without(self, gaps: Array) -> pd.Series:
        """The column with gap codes as gaps; dates of pandas's own as they are."""
        import pandas as pd

        if self.column.dtype.kind == "M":
            return self.column
        found = np.full(len(self.column), None, dtype=object)
        found[self.rows[~gaps]] = self.texts[~gaps]
        return pd.Series(found, dtype=object)

    def _spread(self, numbers: Array, gaps: Array) -> Array:
        found = np.full(len(self.column), np.nan)
        found[self.rows] = np.where(gaps, np.nan, numbers)
        return found

    def _as_text(self) -> Array:
        found = np.full(len(self.column), np.nan, dtype=object)
        found[self.rows] = self.texts
        return found


def _text(value: Any) -> str:
    """A cell as text; a category that looks like a whole number was written as one."""
    if isinstance(value, (float, np.floating)) and np.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value)
