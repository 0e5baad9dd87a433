"""The expected duration of a search, announced before it begins if it is long."""

from __future__ import annotations

import sys
from typing import Any

from onefit import plan
from onefit.search.setup import set_up

__all__ = ["announce"]


def announce(search: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> None:
    """Print on stderr how long a search will take, and what would be faster, if it is long."""
    works = set_up(search, X, y, sample_weight, {"groups": groups}).works
    text = plan.announce(works)
    if text:
        print(text, file=sys.stderr, flush=True)
