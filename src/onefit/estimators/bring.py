"""Data that are computed with on a device: on the host for all that is decided there.

Validation, splits, grids and scores look at every row once and are NumPy's business; X goes to the
device once, in the order of work (onefit.search.setup), and only results come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scipy.sparse import issparse

from onefit.kernels.on_device import points_of
from onefit.linalg import arrays_of, is_elsewhere
from onefit.linalg.device import Device
from onefit.linalg.which import named_device

__all__ = ["Brought", "home"]


@dataclass(frozen=True)
class Brought:
    """Rows, targets and metadata as NumPy arrays, and where to compute.

    Attributes
    ----------
    device : Device or None
    given : whether X itself is an array on it
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    device: Device | None
    given: bool

    @classmethod
    def of(cls, device: Any, X: Any, y: Any, params: Mapping[str, Any]) -> Brought:
        """Ask the data, and the parameter of the search."""
        wanted = named_device(device)
        if not is_elsewhere(X):
            if wanted is not None and issparse(X):
                raise ValueError(f"a sparse X is not computed on {wanted!r}; leave the device out")
            return cls(X, home(y, None, "y"), dict(params), wanted, given=wanted is None)
        own = arrays_of(points_of(X, "X"))
        assert isinstance(own, Device)
        if device is not None and (wanted is None or not wanted.same(own)):
            raise ValueError(
                f"device={device!r}, but X is on {own!r}: move X there, or leave the device out"
            )
        brought = {name: home(value, own, name) for name, value in params.items()}
        return cls(own.host(X), home(y, own, "y"), brought, own, given=True)

    def there(self, X: Any) -> Any:
        """X on the device, if there is one."""
        return X if self.device is None else self.device.asarray(X)


def home(value: Any, device: Any, name: str) -> Any:
    """A NumPy array of what may be an array on the device of X; anything else as it is."""
    if not is_elsewhere(value):
        return value
    own = arrays_of(value)
    if device is not None and not device.same(own):
        raise ValueError(f"{name} is on {own!r} and X on {device!r}: move both to one place first")
    return own.host(value)
