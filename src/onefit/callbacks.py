"""Callbacks of scikit-learn, which has them from version 1.9 on; before that, their plain form.

In the plain form ``on_fit_task_begin(estimator, context)`` and ``on_fit_task_end(estimator,
context)`` are called when a task begins and ends, without the data.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any

__all__ = ["CallbackSupportMixin", "callbacks_of", "with_callbacks"]


def callbacks_of(search: Any) -> tuple[Any, ...]:
    """The callbacks of a search."""
    return tuple(getattr(search, "_skl_callbacks", ()))


@dataclass(frozen=True)
class _Context:
    """A task of a fit, and the callbacks that are notified of it."""

    callbacks: tuple[Any, ...]
    task_name: str = "fit"
    max_subtasks: int | None = 0

    def subcontext(self, task_name: str, max_subtasks: int | None = 0, **_: Any) -> _Context:
        return _Context(self.callbacks, task_name, max_subtasks)

    def call_on_fit_task_begin(self, estimator: Any, **_: Any) -> _Context:
        for one in self.callbacks:
            one.on_fit_task_begin(estimator, self)
        return self

    def call_on_fit_task_end(self, estimator: Any, **_: Any) -> bool:
        asked = [one.on_fit_task_end(estimator, self) for one in self.callbacks]
        return any(asked)


class _Plain:
    """The part of scikit-learn's mixin that a search needs."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set the callbacks that a fit notifies; no argument removes them all."""
        self.__dict__.pop("_skl_callbacks", None)
        if callbacks:
            self._skl_callbacks = list(callbacks)
        return self

    def _init_callback_context(self, max_subtasks: int | None = 0) -> _Context:
        context = _Context(callbacks_of(self), max_subtasks=max_subtasks)
        for one in context.callbacks:
            one.setup(self, context)
        return context


def _torn_down(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A fit after which callbacks are torn down, however it ends."""

    @wraps(fit)
    def fitted(search: Any, *args: Any, **params: Any) -> Any:
        try:
            return fit(search, *args, **params)
        finally:
            for one in callbacks_of(search):
                one.teardown(search, _Context(()))

    return fitted


CallbackSupportMixin: Any = _Plain
with_callbacks: Any = _torn_down
with suppress(ModuleNotFoundError):
    _callback = import_module("sklearn.callback")
    CallbackSupportMixin, with_callbacks = _callback.CallbackSupportMixin, _callback.with_callbacks
