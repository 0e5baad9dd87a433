"""Searches: intervals of lam, refined grids, and the evaluation of candidates."""

from onefit.search.continuous import Interval, coarse_to_fine

__all__ = ["Interval", "coarse_to_fine"]
