"""Roles of columns and arrays: features, targets, weights, and keys of folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit._validation import DataError, suggest

__all__ = ["ROLES", "ColumnRoles", "RowArrays", "as_array", "named"]

#: roles other than that of a feature, by the names of arguments
ROLES = ("y", "sample_weight", "groups")


@dataclass(frozen=True)
class RowArrays:
    """Targets, weights and keys that were given as arrays, one value per row of the table."""

    y: Any = None
    s: Any = None
    key: Any = None

    @property
    def values(self) -> tuple[Any, Any, Any]:
        """In this order: y, s, key."""
        return self.y, self.s, self.key

    def take(self, rows: Any) -> RowArrays:
        """Those of some rows: a slice, or a mask."""
        return RowArrays(*(None if one is None else one[rows] for one in self.values))

    def check(self, n: int) -> None:
        """Refuse arrays of another length, or of more dimensions than their role has."""
        for role, one in zip(ROLES, self.values, strict=True):
            if one is None:
                continue
            if one.ndim == 0:
                raise ValueError(
                    f"{role} must have a value for every row, or be the name of a column of X, "
                    f"got {one.item()!r}"
                )
            if one.shape[0] != n:
                raise ValueError(f"{role} has {one.shape[0]} rows, but X has {n}")
            if one.ndim > 1 and (role != "y" or one.ndim > 2 or one.shape[1] == 0):
                wanted = "one or more columns" if role == "y" else "one value per row"
                raise ValueError(f"{role} has shape {one.shape}, but it must have {wanted}")


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of each role.

    Attributes
    ----------
    X : tuple of str, or None
        Features; None if the table is an array of features alone.
    y, s, key : tuples of str
        Targets, at most one weight, at most one key.
    single : bool
        Whether the target is one column, not a matrix of columns.
    """

    X: tuple[str, ...] | None
    y: tuple[str, ...] = ()
    s: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    single: bool = True

    @classmethod
    def resolve(
        cls,
        names: Sequence[str] | None,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        features: Iterable[str] | str | None = None,
        drop: Iterable[str] | str = (),
    ) -> tuple[ColumnRoles, RowArrays]:
        """Roles and arrays from the arguments of :func:`onefit.rows.open_rows`.

        ``names`` are those of the columns of the table; None for an array.
        """
        values = dict(zip(ROLES, (y, sample_weight, groups), strict=True))
        if names is None:
            if features is not None or drop:
                raise ValueError(
                    "features and drop name columns, but X has no names; slice it instead"
                )
            return cls(None), RowArrays(*map(_beside, values.values()))
        _check_unique(names, "X")
        roles = {role: named(value) for role, value in values.items()}
        asked = {**roles, "drop": _listed(drop), "features": _listed(features)}
        for role, own in asked.items():
            _check_unique(own, role)
            _check_names(own, names, role)
            if role in ("sample_weight", "groups") and len(own) > 1:
                raise ValueError(f"{role} is one column, got {len(own)}: {', '.join(own)}")
        X = asked["features"]
        if both := set(X) & set(roles["y"]):
            raise ValueError(f"column {min(both)!r} is the target, and cannot be a feature too")
        if features is None:
            taken = {*asked["drop"], *(name for own in roles.values() for name in own)}
            X = tuple(name for name in names if name not in taken)
        found = cls(
            X, roles["y"], roles["sample_weight"], roles["groups"], single=isinstance(y, str)
        )
        beside = (None if roles[role] else _beside(value) for role, value in values.items())
        return found, RowArrays(*beside)

    @property
    def read(self) -> list[str]:
        """The columns to read, each once."""
        return list(dict.fromkeys((*(self.X or ()), *self.y, *self.s, *self.key)))

    def target_shape(self, given: RowArrays) -> tuple[int, ...] | None:
        """The ``target_shape`` of :class:`onefit.rows.source.Source`."""
        if self.y:
            return () if self.single else (len(self.y),)
        return None if given.y is None else given.y.shape[1:]

    def split(self, table: Any, given: RowArrays) -> tuple[Any, Any, Any, Any]:
        """Features, targets, weights and keys of some rows, from their table and arrays."""
        y, s, key = given.values
        if self.X is None:
            return table, y, s, key
        if self.y:
            y = _column(table, self.y[0]) if self.single else _columns(table, self.y)
        s = _column(table, self.s[0]) if self.s else s
        key = _column(table, self.key[0]) if self.key else key
        return _columns(table, self.X), y, s, key


def as_array(value: Any) -> Array:
    """A column or matrix of any library as a NumPy array; masked values are refused."""
    if np.ma.is_masked(value):
        raise DataError("a masked array has missing values; fill them in, or leave the rows out")
    return np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else linalg.to_host(value))


def named(value: Any) -> tuple[str, ...]:
    """The names in a value that is a name or a list of names; else none."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, str) for one in value):
        return tuple(value)
    return ()


def _beside(value: Any) -> Array | None:
    return None if value is None else as_array(value)


def _listed(names: Iterable[str] | str | None) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names or ())


def _columns(table: Any, names: tuple[str, ...]) -> Any:
    """Some columns of a data frame, or of a batch or table of pyarrow."""
    return table[list(names)] if hasattr(table, "iloc") else table.select(list(names))


def _column(table: Any, name: str) -> Array:
    if hasattr(table, "iloc"):
        return np.asarray(table[name].to_numpy())
    column = table.column(name)
    if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)  # categories
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _check_unique(names: Sequence[str], role: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{role} has the column {name!r} twice; rename one, or leave it out")
        seen.add(name)


def _check_names(wanted: Iterable[str], names: Sequence[str], role: str) -> None:
    for name in wanted:
        if name not in names:
            raise ValueError(f"{role}: there is no column {name!r}{suggest(name, names)}")
