"""Array types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Indices", "Mask"]

Array = NDArray[Any]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
