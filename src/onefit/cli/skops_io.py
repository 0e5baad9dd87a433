"""skops, imported without what it does not need.

To know which types are scikit-learn's, skops imports all packages of scikit-learn. Among these are
wrappers of PyTorch, CuPy and Dask, which import the libraries themselves, where they are installed,
and hold no type that a model could have. They are passed over as if they could not be imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["skops_io"]

WRAPPERS = tuple(f"sklearn.externals.array_api_compat.{one}" for one in ("torch", "cupy", "dask"))


def skops_io() -> Any:
    """The module ``skops.io``."""
    with _passed_over(WRAPPERS):
        import skops.io
    return skops.io


@contextmanager
def _passed_over(names: tuple[str, ...]) -> Iterator[None]:
    """Modules that are not imported yet fail to be, for a while: None stands for that."""
    here = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(here))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in here:
            del sys.modules[name]
