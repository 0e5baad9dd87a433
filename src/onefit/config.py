"""Configuration: the device on which searches compute, and the memory that they may use.

PyTorch and CuPy arrays stay on their own device. ``device`` is for NumPy arrays: a search moves
them there, and its results are NumPy arrays again (docs, "On a GPU").
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from typing import Any

__all__ = ["config_context", "get_config", "set_config"]

_UNSET: Any = object()
_process: dict[str, Any] = {"device": None, "memory_bytes": None}
_context: ContextVar[dict[str, Any] | None] = ContextVar("onefit_config", default=None)


def get_config() -> dict[str, Any]:
    """The current configuration, by name."""
    return _process | (_context.get() or {})


def set_config(*, device: Any = _UNSET, memory_bytes: Any = _UNSET) -> None:
    """Configure this process; options that are not given keep their values.

    Parameters
    ----------
    device : str or list of str, optional
        "cuda" or "cuda:1": searches over NumPy arrays compute kernel matrices, and everything that
        follows from them, on this device by PyTorch or CuPy. With several devices, as a list or
        separated by commas, each has a process of its own and one kernel at a time. None, the
        default of a new process, is the processor.
    memory_bytes : float, optional
        Bytes of the host's memory that a fit or a search may use beyond the data, all its
        processes together. None, the default of a new process, is what the system has available.
    """
    _process.update(_given(device, memory_bytes))


@contextmanager
def config_context(*, device: Any = _UNSET, memory_bytes: Any = _UNSET) -> Iterator[None]:
    """Configure the body of a ``with`` statement, in this thread.

    Parameters
    ----------
    device, memory_bytes
        As in :func:`set_config`.

    Examples
    --------
    >>> from onefit.config import config_context, get_config
    >>> with config_context(device="cuda"):
    ...     get_config()
    {'device': 'cuda', 'memory_bytes': None}
    >>> get_config()
    {'device': None, 'memory_bytes': None}
    """
    token = _context.set((_context.get() or {}) | _given(device, memory_bytes))
    try:
        yield
    finally:
        _context.reset(token)


def _given(device: Any, memory_bytes: Any) -> dict[str, Any]:
    """The values that were given, by name."""
    given = memory_bytes is not None and memory_bytes is not _UNSET
    if given and not (isinstance(memory_bytes, Real) and float(memory_bytes) > 0):
        raise ValueError(f"memory_bytes must be a positive number or None, got {memory_bytes!r}")
    both = {"device": device, "memory_bytes": memory_bytes}
    return {name: value for name, value in both.items() if value is not _UNSET}
