"""Several sums in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onefit.stream.accumulate import Accumulator, Chunk

__all__ = ["Joint"]


@dataclass(frozen=True)
class Joint:
    """Accumulators that are given the same chunks; the result has one of each."""

    parts: tuple[Accumulator[Any, Any], ...]

    def init(self) -> tuple[Any, ...]:
        return tuple(part.init() for part in self.parts)

    def update(self, state: tuple[Any, ...], chunk: Chunk) -> tuple[Any, ...]:
        return tuple(p.update(one, chunk) for p, one in zip(self.parts, state, strict=True))

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        both = zip(self.parts, one, other, strict=True)
        return tuple(part.merge(a, b) for part, a, b in both)

    def finish(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(p.finish(one) for p, one in zip(self.parts, state, strict=True))
