"""Kernels and rows of the tests' own: they count what is asked of them, or refuse it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from onefit.kernels import Gaussian

__all__ = ["Counted", "Refused", "unread"]


@dataclass(frozen=True)
class Counted(Gaussian):
    """The widths whose kernel matrix was built, in turn; clear ``matrices`` before use."""

    matrices: ClassVar[list[float]] = []

    def matrix(self, *args: Any, **options: Any) -> Any:
        Counted.matrices.append(self.gamma)
        return super().matrix(*args, **options)


@dataclass(frozen=True)
class Refused(Gaussian):
    """Fails where a kernel matrix is built: before that, arguments have been checked."""

    def matrix(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("a kernel matrix was built")


class Unread:
    """Rows that nobody may read."""

    def __init__(self, piece: Any) -> None:
        self.start, self.rows, self.where = piece.start, piece.rows, piece.where

    def blocks(self, rows: int) -> Any:
        raise RuntimeError("rows were read")


def unread(source: Any) -> Any:
    """A source that fails where its rows are read: before that, arguments have been checked."""
    return replace(source, pieces=[Unread(piece) for piece in source.pieces])
