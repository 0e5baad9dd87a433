"""Configuration: the device on which searches compute.

Arrays of PyTorch and CuPy are computed with where they are. ``device`` is for NumPy arrays: a
search moves them there, and its results are NumPy arrays again (docs, "On a GPU").
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["config_context", "get_config", "set_config"]

_UNSET: Any = object()
_process: dict[str, Any] = {"device": None}
_context: ContextVar[Any] = ContextVar("onefit_device", default=_UNSET)


def get_config() -> dict[str, Any]:
    """The configuration that holds here, by name."""
    device = _context.get()
    return dict(_process) if device is _UNSET else {"device": device}


def set_config(*, device: Any = None) -> None:
    """Configure this process.

    Parameters
    ----------
    device : str or list of str, default=None
        "cuda" or "cuda:1": searches over NumPy arrays compute kernel matrices and all that is done
        with them there, by PyTorch or CuPy. Of several devices, as a list or with commas, each has
        a process and a kernel of its own at a time. None is the processor.
    """
    _process["device"] = device


@contextmanager
def config_context(*, device: Any = None) -> Iterator[None]:
    """Configure what runs inside a ``with`` statement, in this thread.

    Parameters
    ----------
    device : str or list of str, default=None
        As in :func:`set_config`.

    Examples
    --------
    >>> from onefit.config import config_context, get_config
    >>> with config_context(device="cuda"):
    ...     get_config()
    {'device': 'cuda'}
    >>> get_config()
    {'device': None}
    """
    token = _context.set(device)
    try:
        yield
    finally:
        _context.reset(token)
