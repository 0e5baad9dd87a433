"""The first step of a pipeline: columns of a raw table as floats or text.

How a column is written is learned once, from the table that a model is made from. New rows are read
in the same way, and the error for a cell that cannot be read names its place.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from onefit._frames import all_match, as_frame, columns_of, filled, is_frame, listed, shown
from onefit._validation import DataError
from onefit.written import (
    DATE,
    DATES,
    MAX_LABELS,
    UNREAD_DATES,
    cells_at,
    check_sizes,
    date_order,
    days,
    gaps_read,
    holds_numbers,
    is_gap,
    odd_cells,
    read_as,
    read_numbers,
    units,
)

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]
#: how a column is written: "kind" is "number", "date" or "text"; of numbers "comma" and "unit", of
#: dates "dayfirst"
How = dict[str, Any]

__all__ = ["WrittenColumn", "WrittenNumbers"]

PLAIN_NUMBERS: How = {"kind": "number", "comma": None, "unit": ""}


class WrittenNumbers(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Read the columns of a table as floats or text.

    Numbers and booleans become floats, also those written with units or commas; dates become days
    since 1970; everything else becomes text. Missing values and gap codes become NaN. A column of
    numbers with a few other words in it is refused, and so are dates whose day and month cannot be
    distinguished. Columns of pandas's type "category" are text, whatever they hold.

    Parameters
    ----------
    dayfirst : bool, default=None
        For dates such as 01/02/2021 if the column does not decide it; None refuses them.

    Attributes
    ----------
    columns_ : list
        Names of the columns, in their order.
    how_ : dict
        How each column is written that is not of plain numbers, by its name.
    notes_ : list of str
        What a user should know about the columns, a sentence each.

    Examples
    --------
    >>> import pandas as pd
    >>> from onefit.tables import WrittenNumbers
    >>> table = pd.DataFrame({"day": ["26-May-1994", "1-Jun-1994"], "kind": ["a", "b"]})
    >>> reader = WrittenNumbers()
    >>> reader.fit_transform(table)["day"].tolist()
    [8911.0, 8917.0]
    >>> reader.how_["kind"]
    {'kind': 'text'}
    """

    def __init__(self, dayfirst: bool | None = None) -> None:
        self.dayfirst = dayfirst

    def fit(self, X: Any, y: Any = None) -> WrittenNumbers:
        """Learn how the columns of a table are written."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        """Learn how the columns of a table are written, and read them."""
        frame = as_frame(X)
        self.columns_, self.n_features_in_ = list(frame.columns), frame.shape[1]
        self.how_: dict[Any, How] = {}
        self.notes_: list[str] = []
        numeric, found = columns_of(frame, holds_numbers), {}
        for place in np.flatnonzero(~numeric).tolist():
            name, column = frame.columns[place], frame.iloc[:, place]
            cells = WrittenColumn(column, f"column {shown(name)}", self.notes_)
            self.how_[name], found[name] = cells.learn(self.dayfirst)
        return _joined(frame, numeric, found)

    def transform(self, X: Any, dayfirst: bool | None = None) -> pd.DataFrame:
        """Read new rows; ``dayfirst`` is for dates in another order than those of the table."""
        import pandas as pd

        check_is_fitted(self, "how_")
        frame = as_frame(X) if is_frame(X) else pd.DataFrame(np.asarray(X), columns=self.columns_)
        if list(frame.columns) != self.columns_:
            known = set(frame.columns)
            missing = [name for name in self.columns_ if name not in known]
            if missing:
                raise DataError(
                    f"the table lacks {listed(missing)}, which the model was made with; add "
                    f"{'it' if len(missing) == 1 else 'them'}, empty where unknown"
                )
            frame = frame.loc[:, self.columns_]
        numeric = columns_of(frame, holds_numbers)
        numeric &= np.array([name not in self.how_ for name in self.columns_], dtype=bool)
        found, notes = {}, list[str]()
        for place in np.flatnonzero(~numeric).tolist():
            name, column = frame.columns[place], frame.iloc[:, place]
            cells = WrittenColumn(column, f"column {shown(name)}", notes)
            how = self.how_.get(name, PLAIN_NUMBERS)
            found[name] = cells.read(how, dayfirst)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return _joined(frame, numeric, found)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the columns, as text."""
        return np.asarray([str(name) for name in self.columns_], dtype=object)


def _joined(frame: pd.DataFrame, numeric: Array, others: dict[Any, Array]) -> pd.DataFrame:
    """Columns of numbers as floats, all at once (there may be a hundred thousand), and others."""
    import pandas as pd

    names = frame.columns[numeric]
    parts = [frame.loc[:, numeric].to_numpy(dtype=float, na_value=np.nan)]
    labels = list(names)
    for name, one in others.items():
        if one.dtype.kind == "f":
            parts.append(one[:, None])
            labels.append(name)
    values = np.hstack(parts) if len(parts) > 1 else parts[0]
    check_sizes(values, lambda place: f"column {shown(labels[place])}", frame.index)
    found = pd.DataFrame(values, columns=labels, index=frame.index)
    texts = {name: one for name, one in others.items() if one.dtype.kind != "f"}
    if texts:
        columns = {
            name: pd.Series(one, index=frame.index, dtype=object) for name, one in texts.items()
        }
        found = pd.concat([found, pd.DataFrame(columns, index=frame.index)], axis=1)
    if others:
        found = found[list(frame.columns)]
    return found.set_axis(found.columns.map(str), axis=1)  # scikit-learn takes names of one kind


class WrittenColumn:
    """The cells of a column as text, without the empty ones.

    Parameters
    ----------
    column : Series
    what : str
        The column in messages.
    notes : list of str
        What a user should know is appended.
    is_target : bool, default=False
        A target cannot be dropped, and is not used as text where a few words are among numbers.
    """

    def __init__(
        self, column: pd.Series, what: str, notes: list[str], is_target: bool = False
    ) -> None:
        self.column, self.what, self.notes = column, what, notes
        self.is_target = is_target
        self.remedy = "" if is_target else ", or drop that column"
        self.dates = DATES if is_target else UNREAD_DATES
        self.max_labels = 0 if is_target else MAX_LABELS
        values = column.to_numpy(dtype=object)
        self.rows = np.flatnonzero(column.notna().to_numpy())
        if self.rows.size and isinstance(values[self.rows[0]], (list, tuple, dict, np.ndarray)):
            raise DataError(
                f"{what} is nested; spread it over plain columns, one number or text "
                f"each{self.remedy}"
            )
        texts = [_as_text(one) for one in values[self.rows]]
        self.rows = self.rows[[bool(one) for one in texts]]
        self.texts = np.array([one for one in texts if one], dtype=object)

    def learn(self, dayfirst: bool | None = None) -> tuple[How, Array]:
        """The format of the column, and its values."""
        if holds_numbers(self.column.dtype):
            return PLAIN_NUMBERS, self.column.to_numpy(dtype=float, na_value=np.nan)
        if self.column.dtype.kind == "m":
            raise DataError(f"{self.what} {self.dates}{self.remedy}")
        text = {"kind": "text"}, self.labels
        if str(self.column.dtype) == "category" or not self.texts.size:
            return text
        if not self.is_target and all(isinstance(one, bool) for one in filled(self.column)):
            return PLAIN_NUMBERS, self.column.to_numpy(dtype=float, na_value=np.nan)
        gaps = self._gaps()
        found = self._learn_dates(gaps, dayfirst) or self._learn_numbers(gaps)
        if found is not None:
            if gaps.any():
                first = int(self.rows[np.argmax(gaps)])
                self.notes.append(gaps_read(self.what, self.texts[gaps], self.column.index, first))
            return found
        self._refuse_odd(gaps)
        if all_match(DATE, self.texts[~gaps]):
            raise DataError(f"{self.what} {self.dates}{self.remedy}")
        return text

    def read(self, how: How, dayfirst: bool | None) -> Array:
        """The values, read as another column of that name was."""
        if how["kind"] == "text":
            return self.labels
        gaps = self._gaps()
        rest, order = self._given(gaps), how.get("dayfirst")
        if how["kind"] == "date":
            if rest.dtype.kind != "M" and (dayfirst is not None or order is None):
                order = date_order(rest, dayfirst, self.what)
            values = days(rest, order)
            first = {None: "", True: " with the day first", False: " with the month first"}[order]
            needed = f"dates{first}"
        else:
            comma, unit = how["comma"], how["unit"]
            if unit and units(rest) == [""]:
                self.notes.append(f"{self.what} has no unit, and is read as numbers in {unit!r}")
            if holds_numbers(self.column.dtype):
                return self.column.to_numpy(dtype=float, na_value=np.nan)
            # truth values, with gaps among them
            rest = np.array([{"True": "1", "False": "0"}.get(one, one) for one in rest], object)
            if comma is None:
                found = read_numbers(rest)
                comma = found is not None and bool(found.comma)
                if found is not None and found.comma is not None:
                    self.notes.append(f"{self.what} is read as numbers: {found.how}")
            values = np.array([read_as(one, comma, unit) for one in rest], dtype=float)
            needed = f"numbers in {unit!r}" if unit else "numbers"
        bad = np.flatnonzero(~gaps)[np.isnan(values)]
        if bad.size:
            raise DataError(
                f"{self.what} holds {self._places(bad)}, but the model was made with {needed} "
                "there; correct it, or leave it empty"
            )
        return self._spread(values, ~gaps)

    @property
    def labels(self) -> Array:
        """The texts, NaN where one is missing."""
        return self._spread(self.texts)

    def _learn_dates(self, gaps: Array, dayfirst: bool | None) -> tuple[How, Array] | None:
        rest = self._given(gaps)
        if not rest.size:
            return None
        known = rest.dtype.kind == "M"
        order = None if known else date_order(rest, dayfirst, self.what)
        if np.isnan(days(rest[:1], order)).any():  # which most columns of text end with
            return None
        values = days(rest, order)
        if np.isnan(values).any():
            return None
        word = {None: "", True: ", day first", False: ", month first"}[order]
        self.notes.append(
            f"{self.what} is read as numbers: days since 1970, because it holds dates "
            f"({self.texts[~gaps][0]}, say{word})"
        )
        return {"kind": "date", "dayfirst": order}, self._spread(values, ~gaps)

    def _learn_numbers(self, gaps: Array) -> tuple[How, Array] | None:
        import pandas as pd

        rest = self.texts[~gaps]
        # two texts, 5 mg and 10 mg, are a choice; 0, 1 and a gap code would be numbers without it
        if len(set(rest)) < (2 if gaps.any() else 3):
            return None
        found = read_numbers(rest)
        if found is None:
            values = np.asarray(pd.to_numeric(rest, errors="coerce"), dtype=float)
            return None if np.isnan(values).any() else (PLAIN_NUMBERS, self._spread(values, ~gaps))
        if found.unit or found.comma is not None or not gaps.any():
            self.notes.append(f"{self.what} is read as numbers: {found.how}")
        how = PLAIN_NUMBERS | {"comma": found.comma, "unit": found.unit}
        return how, self._spread(found.numbers, ~gaps)

    def _refuse_odd(self, gaps: Array) -> None:
        """Refuse numbers or dates with a few words among them; with few values they are labels."""
        places = np.flatnonzero(~gaps)
        odd = odd_cells(self.texts[places])
        if not odd.size:
            return
        rest = np.delete(self.texts[places], odd)
        kind = "dates" if DATE.fullmatch(rest[0]) else "numbers"
        text = f"{self.what} holds {kind} but for {self._places(places[odd])}"
        if len(set(rest)) > self.max_labels:
            raise DataError(f"{text}; correct it, or leave it empty{self.remedy}")
        self.notes.append(f"{text}, so it is used as text; correct it, or leave it empty")

    def _gaps(self) -> Array:
        return np.array([is_gap(one) for one in self.texts], dtype=bool)

    def _given(self, gaps: Array) -> Array:
        """The cells that are not gaps; moments of pandas as they are."""
        if self.column.dtype.kind == "M":
            import pandas as pd

            moments = pd.to_datetime(self.column.dropna(), utc=True).dt.tz_convert(None)
            return np.asarray(moments.to_numpy())
        return np.asarray(self.texts[~gaps])

    def _places(self, places: Array) -> str:
        return cells_at(self.labels, self.column.index, self.rows[places])

    def _spread(self, values: Array, there: Any = slice(None)) -> Array:
        """One value for each row of the column, NaN where there is none."""
        found = np.full(len(self.column), np.nan, dtype=values.dtype)
        found[self.rows[there]] = values
        return found


def _as_text(value: Any) -> str:
    """A cell as text without blanks at its ends; a whole number was written as one."""
    if isinstance(value, (float, np.floating)) and np.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value).strip()
