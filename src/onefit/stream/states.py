"""States of a pass from outside: how large they are, and how they leave a device.

A state is arrays, numbers and texts, and tuples, lists, dicts and dataclasses of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from onefit import linalg

__all__ = ["nbytes", "to_host"]


def nbytes(state: Any) -> int:
    """Bytes of all arrays in a state."""
    if hasattr(state, "nbytes"):
        return int(state.nbytes)
    return sum(map(nbytes, _inside(state)))


def _inside(state: Any) -> Iterator[Any]:
    if isinstance(state, dict):
        yield from state.values()
    elif isinstance(state, (list, tuple)):
        yield from state
    elif is_dataclass(state):
        yield from (getattr(state, one.name) for one in fields(state))


def to_host(state: Any) -> Any:
    """A state with NumPy's arrays only, which any process can take."""
    if linalg.is_elsewhere(state):
        return linalg.to_host(state)
    if isinstance(state, dict):
        return {name: to_host(one) for name, one in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(map(to_host, state))
    if is_dataclass(state) and not isinstance(state, type):
        return replace(
            state, **{one.name: to_host(getattr(state, one.name)) for one in fields(state)}
        )
    return state
