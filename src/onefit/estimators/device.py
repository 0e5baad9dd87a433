"""Between host and device: data to the host, rows and fitted models to a device.

Validation, splits, grids and scores use NumPy arrays on the host. X is copied to the device once,
in the order of work (onefit.search.setup), and only results are copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from onefit import linalg
from onefit.features.maps import NystromMap
from onefit.kernels.on_device import points_of, refuse_grad
from onefit.linalg import arrays_of, is_elsewhere
from onefit.linalg.device import Device
from onefit.linalg.which import named_device

__all__ = [
    "HostData",
    "check_place",
    "model_to_device",
    "model_to_host",
    "predicting_on_host",
    "to_host",
]

#: fitted attributes that stay NumPy arrays: labels may be strings
ON_HOST = ("classes_", "feature_names_in_")


@dataclass(frozen=True)
class HostData:
    """Rows, targets and metadata as NumPy arrays, and where to compute.

    Attributes
    ----------
    device : Device or None
        The first, of several.
    given : whether X itself is an array on it
    names : tuple of str
        Several devices, whose kernels are computed side by side; empty for one.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    device: Device | None
    given: bool
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, device: Any, X: Any, y: Any, params: Mapping[str, Any]) -> HostData:
        """The data on the host, and the device of X or of :mod:`onefit.config`."""
        names = _names(device)
        wanted = [named_device(name) for name in names][:1]
        first = wanted[0] if wanted else None
        if not is_elsewhere(X):
            if first is not None and issparse(X):
                raise ValueError(f"a sparse X is not supported on {first!r}; leave the device out")
            several = names if len(names) > 1 else ()
            found = {name: to_host(value, None, name) for name, value in params.items()}
            return cls(X, to_host(y, None, "y"), found, first, first is None, several)
        if len(names) > 1:
            raise ValueError(
                f"device={device!r} names several devices, but X is on one already: pass X as a "
                "NumPy array, which is copied to each of them, or leave the device out"
            )
        own = arrays_of(points_of(X, "X"))
        assert isinstance(own, Device)
        if names and (first is None or not first.same(own)):
            raise ValueError(
                f"device={device!r}, but X is on {own!r}: move X there, or leave the device out"
            )
        moved = {name: to_host(value, own, name) for name, value in params.items()}
        return cls(own.host(X), to_host(y, own, "y"), moved, own, given=True)

    def to_device(self, X: Any) -> Any:
        """X on the device, if there is one."""
        return X if self.device is None else self.device.asarray(X)


def _names(device: Any) -> tuple[str, ...]:
    """The devices that a parameter names: None, one, several with commas or as a list."""
    if device is None:
        return ()
    names = device.split(",") if isinstance(device, str) else device
    names = names if isinstance(names, (list, tuple)) else [names]
    found = tuple(str(name).strip() for name in names)
    if not found or (len(found) > 1 and "cpu" in found):
        raise ValueError(
            f"device={device!r}: name one device, or several such as 'cuda:0,cuda:1'; 'cpu', which "
            "is NumPy, cannot be combined with others"
        )
    return found


def to_host(value: Any, device: Any, name: str) -> Any:
    """An array on the device of X as a NumPy array; any other value unchanged."""
    if not is_elsewhere(value):
        return value
    refuse_grad(value, name)
    own = arrays_of(value)
    if device is not None and not device.same(own):
        raise ValueError(f"{name} is on {own!r} and X on {device!r}: move both to one place first")
    return own.host(value)


def model_to_device(model: Any, device: Device) -> None:
    """Move the arrays of a fitted model to a device.

    scikit-learn's convention: fitted arrays are in the namespace of X.
    """
    for name, value in vars(model).items():
        if type(value) is np.ndarray and name not in ON_HOST:
            setattr(model, name, device.asarray(value))


def model_to_host(model: Any) -> None:
    """Make the arrays of a model that was fitted on a device NumPy arrays."""
    for name, value in vars(model).items():
        setattr(model, name, linalg.to_host(value))
    features = getattr(model, "feature_map_", None)
    if isinstance(features, NystromMap):
        features.forget()


def check_place(X: Any, fitted: Any) -> None:
    """Refuse rows that are not on the device of the fitted arrays."""
    if is_elsewhere(X) and not is_elsewhere(fitted):
        raise ValueError(
            f"X is on {arrays_of(X)!r}, but the model was fitted with NumPy arrays: "
            "pass X as one, or fit it there"
        )
    if is_elsewhere(fitted) and not is_elsewhere(X):
        raise ValueError(
            f"the model was fitted on {arrays_of(fitted)!r}, but X is not on that "
            "device: move X there"
        )


def predicting_on_host(model: Any, X: Any) -> Any:
    """A copy of a fitted model whose predictions are NumPy arrays, if those for X are not."""
    if not is_elsewhere(X):
        return model
    other = copy(model)
    for name in ("predict", "decision_function", "predict_proba"):
        method = getattr(model, name, None)
        if method is not None:
            vars(other)[name] = partial(_on_host, method)
    return other


def _on_host(method: Callable[[Any], Any], X: Any) -> Any:
    return to_host(method(X), None, "X")
