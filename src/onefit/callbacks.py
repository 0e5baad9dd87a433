"""Callbacks of scikit-learn, which has them from version 1.9 on.

Before that, a search takes callbacks of its own kind only, which have ``on_iteration`` or
``on_rows``; methods that scikit-learn would call are not called.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["CallbackSupportMixin", "callbacks_of", "with_callbacks"]


def callbacks_of(search: Any) -> tuple[Any, ...]:
    """Those that were set."""
    return tuple(getattr(search, "_skl_callbacks", ()))


class _Nobody:
    """A context in which nobody is told of anything."""

    def subcontext(self, **about: Any) -> _Nobody:
        return self

    def call_on_fit_task_begin(self, **about: Any) -> _Nobody:
        return self

    def call_on_fit_task_end(self, **about: Any) -> bool:
        return False


class _Own:
    """The part of scikit-learn's mixin that a search needs."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set those that are told of a fit; none takes them away."""
        if not all(hasattr(one, "on_iteration") or hasattr(one, "on_rows") for one in callbacks):
            raise ValueError("callbacks of scikit-learn need scikit-learn 1.9 or newer")
        if callbacks:
            self._skl_callbacks = list(callbacks)
        elif hasattr(self, "_skl_callbacks"):
            del self._skl_callbacks
        return self

    def _init_callback_context(self, **about: Any) -> _Nobody:
        return _Nobody()


def _as_it_is(fit: Callable[..., Any]) -> Callable[..., Any]:
    return fit


CallbackSupportMixin: Any
with_callbacks: Any
try:
    callback = import_module("sklearn.callback")
    CallbackSupportMixin, with_callbacks = callback.CallbackSupportMixin, callback.with_callbacks
except ModuleNotFoundError:  # scikit-learn before 1.9
    CallbackSupportMixin, with_callbacks = _Own, _as_it_is
