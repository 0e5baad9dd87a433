"""Values in words that are the same in another process: what journals know their searches by."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import re
import sysconfig
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import CellType, CodeType, ModuleType
from typing import Any

import joblib
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

__all__ = ["describe", "digest"]

#: folders of the standard library, of installed packages, and of this one
LIBRARIES = (
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    os.path.dirname(__file__),
)


def describe(value: Any, above: tuple[int, ...] = ()) -> str:
    """A value in words that are the same in another process: no addresses, arrays by digest.

    Functions and the methods of classes that are not of a library are described by their code too,
    and other objects by their state, so that different values have different words; ``above`` are
    the ids of the values that hold this one.
    """
    if id(value) in above:
        return "..."
    inside = functools.partial(describe, above=(*above, id(value)))
    if isinstance(value, np.ndarray) or issparse(value):
        return _describe_array(value)
    if hasattr(value, "to_numpy") and hasattr(value, "shape"):  # a data frame or one of its columns
        return inside(value.to_numpy())
    if _keeps_its_fit(value):
        return f"{type(value).__name__}({joblib.hash(value)})"
    if isinstance(value, BaseEstimator):
        requests = vars(value).get("_metadata_request")  # of metadata routing; clones keep them
        words = [value.get_params(deep=False), *([repr(requests)] if requests else [])]
        return (
            f"{type(value).__name__}{_code(type(value), inside)}({', '.join(map(inside, words))})"
        )
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value)}
        return f"{type(value).__name__}{_code(type(value), inside)}({inside(parts)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}={inside(one)}' for key, one in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(inside(one) for one in value)}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(inside(one) for one in value))}}}"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, functools.partial):
        return f"partial({inside([value.func, value.args, value.keywords])})"
    if hasattr(value, "__qualname__"):
        return _describe_function(value, inside)
    return _describe_object(value, inside)


def _keeps_its_fit(value: Any) -> bool:
    """Whether a clone is fitted as the estimator is, like one in a FrozenEstimator."""
    clones = getattr(type(value), "__sklearn_clone__", BaseEstimator.__sklearn_clone__)
    return clones is not BaseEstimator.__sklearn_clone__


def _code(kind: type, inside: Callable[[Any], str]) -> str:
    """A digest of the methods of a class, without those of libraries; empty without any."""
    written = {}
    for one in reversed(kind.__mro__):
        for name, value in vars(one).items():
            value = getattr(value, "__func__", getattr(value, "fget", value))
            function = inspect.unwrap(value)
            if not hasattr(function, "__code__"):
                continue
            file = function.__code__.co_filename
            of_dataclass = file == "<string>" and name.startswith("__")
            if not (of_dataclass or file.startswith(LIBRARIES)):
                written[name] = function
    return f" ({digest(inside(written).encode())})" if written else ""


def _describe_function(value: Any, inside: Callable[[Any], str]) -> str:
    """The name of a function or class, and a digest of a function's code and what it uses."""
    name = f"{getattr(value, '__module__', '')}.{value.__qualname__}"
    if isinstance(value, type) or not hasattr(value, "__code__"):
        return name
    held = [_content(cell) for cell in value.__closure__ or ()]
    held += [value.__defaults__, value.__kwdefaults__, getattr(value, "__self__", None)]
    if not value.__code__.co_filename.startswith(LIBRARIES):  # these change with their version
        held += [_globals(value)]
    return f"{name} ({digest(inside([_instructions(value.__code__), held]).encode())})"


def _globals(function: Any) -> dict[str, Any]:
    """The functions of its module, and the plain values, that a function refers to by name."""
    known = {name: function.__globals__.get(name) for name in sorted(_names(function.__code__))}
    return {
        name: value
        for name, value in known.items()
        if _is_plain(value)
        or (hasattr(value, "__code__") and value.__module__ == function.__module__)
    }


def _names(code: CodeType) -> set[str]:
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, a text, an array of these, or a collection of plain values."""
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    return isinstance(value, (int, float, complex, str, bytes, np.generic))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing in it yet
        return None


def _instructions(code: CodeType) -> list[Any]:
    constants = [_instructions(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return [code.co_code.hex(), code.co_names, constants]


def _describe_object(value: Any, inside: Callable[[Any], str]) -> str:
    """The words of an object for itself, without its address, and its state, if it has one."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    if isinstance(value, os.PathLike):  # whose state is a cache
        return text
    text += _code(type(value), inside)
    try:
        state = value.__getstate__()
    except (TypeError, NotImplementedError):  # no state to describe
        state = None
    return text if state is None else f"{text}{inside(state)}"


def _describe_array(value: Any) -> str:
    if hasattr(value, "tocsr"):
        rows = value.tocsr()
        parts = [rows.data, rows.indices, rows.indptr]
    elif value.dtype.hasobject or value.dtype.kind == "T":
        parts = [np.frombuffer(repr(value.tolist()).encode(), dtype=np.uint8)]
    else:
        parts = [value]
    name = digest(*(np.ascontiguousarray(part) for part in parts))
    return f"{value.dtype} array of shape {value.shape} ({name})"


def digest(*parts: Any) -> str:
    """A short name for bytes: the beginning of their SHA-256."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:16]
