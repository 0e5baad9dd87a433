"""Nested parameters: ``loss__threshold``, ``kernel__degree``, ``approximation__n_components``.

A loss, a kernel and an approximation are values: frozen dataclasses, which candidates, clones and
fitted models may share. Their fields are the nested parameters of an estimator. Setting one
replaces the object by a changed copy; no object changes. A name is the object with its defaults,
so ``set_params(loss="huber", loss__threshold=1.0)`` gives ``loss=Huber(threshold=1.0)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from onefit._validation import suggest
from onefit.features.approximation import named_approximation
from onefit.kernels import named_kernel
from onefit.losses import named_loss

__all__ = ["NAMED", "NestedParams", "nested_params", "with_nested"]

#: parameters that are objects, and from their names to the objects
NAMED: dict[str, Callable[[Any], Any]] = {
    "loss": named_loss,
    "kernel": named_kernel,
    "approximation": named_approximation,
}


class NestedParams(BaseEstimator):
    """The parameters of an estimator, with those of its loss, its kernel and its approximation."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include those of the loss, the kernel and the approximation:
            ``loss__threshold``, ``kernel__degree``, ...

        Returns
        -------
        dict
        """
        own: dict[str, Any] = super().get_params(deep=False)
        return own | nested_params(own) if deep else own

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params
            Names as :meth:`get_params` gives them. A nested one replaces the loss, the kernel or
            the approximation by a changed copy; a name is the object with its defaults.

        Returns
        -------
        self
        """
        own, nested = _split(params)
        for name in (name for name in nested if name not in NAMED):
            raise ValueError(
                f"'{name}__{next(iter(nested[name]))}' is not a parameter of "
                f"{type(self).__name__}: parameters with '__' are those of its loss, kernel and "
                "approximation"
            )
        super().set_params(**own)
        for name, changes in nested.items():
            setattr(self, name, with_nested(name, getattr(self, name), changes))
        return self


def nested_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The nested parameters of an estimator's parameters.

    Examples
    --------
    >>> nested_params({"loss": "quantile", "lam": 1.0})
    {'loss__level': 0.5, 'loss__delta': 'mad'}
    """
    found = {}
    for name in (name for name in NAMED if name in params):
        for inner, value in _all_params(NAMED[name](params[name])).items():
            found[f"{name}__{inner}"] = value
    return found


def with_nested(name: str, value: Any, changes: Mapping[str, Any]) -> Any:
    """A loss, kernel or approximation, by name or itself, with other parameters.

    Parameters
    ----------
    name : {"loss", "kernel", "approximation"}
    value : str or object
    changes : mapping

    Examples
    --------
    >>> with_nested("loss", "huber", {"threshold": 0.5})
    Huber(threshold=0.5)
    >>> with_nested("loss", "huber", {"level": 0.5})
    Traceback (most recent call last):
        ...
    ValueError: 'loss__level' is not a parameter of loss='huber', which has only 'loss__threshold'
    """
    return _changed(name, NAMED[name](value), changes, f"{name}={value!r}")


def _split(params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Parameters, and nested ones by the parameter that they are inside of."""
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for key, value in params.items():
        name, inside, inner = key.partition("__")
        if inside:
            nested.setdefault(name, {})[inner] = value
        else:
            own[key] = value
    return own, nested


def _own_params(value: Any) -> dict[str, Any]:
    """The parameters of an object, by name; empty for what has none."""
    if isinstance(value, type):
        return {}
    if hasattr(value, "get_params"):
        return dict(value.get_params(deep=False))
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value) if _is_public(one)}
    return {}


def _is_public(one: Any) -> bool:
    return bool(one.init) and not one.name.startswith("_")


def _all_params(value: Any) -> dict[str, Any]:
    """The parameters of an object, and those of the objects inside of it."""
    found = _own_params(value)
    for name, one in list(found.items()):
        found |= {f"{name}__{inner}": deep for inner, deep in _all_params(one).items()}
    return found


def _changed(path: str, value: Any, changes: Mapping[str, Any], shown: str) -> Any:
    known = _own_params(value)
    own, nested = _split(changes)
    for name in (*own, *nested):
        if name not in known:
            raise ValueError(_unknown(path, name, known, shown))
    for name, inner_changes in nested.items():
        part = own.get(name, known[name])
        own[name] = _changed(f"{path}__{name}", part, inner_changes, f"{path}__{name}={part!r}")
    if is_dataclass(value):
        return replace(value, **own)  # type: ignore[type-var]
    return clone(value, safe=False).set_params(**own)


def _unknown(path: str, name: str, known: Mapping[str, Any], shown: str) -> str:
    problem = f"'{path}__{name}' is not a parameter of {shown}"
    if not known:
        return f"{problem}, which has none"
    names = [f"{path}__{one}" for one in known]
    if len(names) == 1:
        return f"{problem}, which has only {names[0]!r}"
    return f"{problem}{suggest(f'{path}__{name}', names)} It has {', '.join(map(repr, names))}"
