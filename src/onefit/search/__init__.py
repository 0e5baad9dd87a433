"""Which candidates, evaluated how, and which one wins."""

from onefit.search.continuous import Interval, coarse_to_fine

__all__ = ["Interval", "coarse_to_fine"]
