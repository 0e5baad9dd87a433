"""Commands whose parameters are dataclasses: every field becomes an option.

Typer reads a command's options off its signature. Options that belong together are written once, as
the fields of a dataclass, and a command takes as many of these as it needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["grouped"]


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """The function with the fields of its dataclass parameters in their place."""
    hints = get_type_hints(function, include_extras=True)
    kinds = {name: hints[name] for name in inspect.signature(function).parameters}
    groups: dict[str, Any] = {name: kind for name, kind in kinds.items() if is_dataclass(kind)}

    @wraps(function)
    def command(**given: Any) -> None:
        values = {name: given[name] for name in kinds if name not in groups}
        for name, kind in groups.items():
            values[name] = kind(**{one.name: given[one.name] for one in fields(kind)})
        function(**values)

    flat = [one for name, kind in kinds.items() for one in _parameters(function, name, kind)]
    command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in flat} | {"return": None}
    return command


def _parameters(function: Any, name: str, kind: Any) -> list[inspect.Parameter]:
    word = inspect.Parameter.KEYWORD_ONLY
    if not is_dataclass(kind):
        default = inspect.signature(function).parameters[name].default
        return [inspect.Parameter(name, word, default=default, annotation=kind)]
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            one.name,
            word,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in fields(kind)
    ]
