"""Which columns of a table are features, target, weight and key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit._validation import suggest
from onefit.rows.source import RowArrays

__all__ = ["ColumnRoles", "as_array", "named"]


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of each role, and the arrays that stand in for some of them.

    Attributes
    ----------
    X, y, s, key : tuples of str
        Features, targets, at most one weight, at most one key.
    single : bool
        Whether the target was named alone, so that it is a column and no matrix.
    given : RowArrays
    """

    X: tuple[str, ...]
    y: tuple[str, ...] = ()
    s: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    single: bool = True
    given: RowArrays = field(default_factory=RowArrays)

    @classmethod
    def resolve(
        cls,
        names: Sequence[str],
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        features: Iterable[str] | None = None,
        drop: Iterable[str] = (),
    ) -> ColumnRoles:
        """Roles from names of columns or arrays; the other columns are the features."""
        roles, arrays = {}, {}
        for role, value in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
            roles[role] = named(value)
            arrays[role] = None if value is None or roles[role] else as_array(value)
            _check_names(roles[role], names, role)
        drop = tuple(drop)
        _check_names(drop, names, "drop")
        taken = {*drop, *(name for own in roles.values() for name in own)}
        if features is None:
            X = tuple(name for name in names if name not in taken)
        else:
            X = tuple(features)
            _check_names(X, names, "features")
        given = RowArrays(arrays["y"], arrays["sample_weight"], arrays["groups"])
        single = isinstance(y, str)
        return cls(X, roles["y"], roles["sample_weight"], roles["groups"], single, given)

    @property
    def read(self) -> list[str]:
        """Every column that has to be read, once."""
        return list(dict.fromkeys((*self.X, *self.y, *self.s, *self.key)))

    @property
    def target_shape(self) -> tuple[int, ...] | None:
        """Shape of a row's target, see :class:`onefit.rows.source.Source`."""
        if self.y:
            return () if self.single else (len(self.y),)
        return None if self.given.y is None else self.given.y.shape[1:]

    def split(self, frame: Any, given: RowArrays) -> tuple[Any, Any, Any, Any]:
        """Features, targets, weights and keys of some rows: a data frame and what was given."""
        y = given.y
        if self.y:
            y = (frame[self.y[0]] if self.single else frame[list(self.y)]).to_numpy()
        s = frame[self.s[0]].to_numpy() if self.s else given.s
        key = frame[self.key[0]].to_numpy() if self.key else given.key
        return frame[list(self.X)], y, s, key


def as_array(value: Any) -> Array:
    """A column or matrix of any library as a NumPy array."""
    return np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else linalg.to_host(value))


def named(value: Any) -> tuple[str, ...]:
    """Names of columns, if that is what a value is."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, str) for one in value):
        return tuple(value)
    return ()


def _check_names(wanted: Iterable[str], names: Sequence[str], role: str) -> None:
    for name in wanted:
        if name not in names:
            raise ValueError(f"{role}: there is no column {name!r}{suggest(name, names)}")
