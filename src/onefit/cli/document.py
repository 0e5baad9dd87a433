"""Values as JSON has them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_json"]


def as_json(value: Any) -> Any:
    """Plain Python values; numbers that JSON has no word for become null."""
    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [as_json(one) for one in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value if value is None else str(value)
