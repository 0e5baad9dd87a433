"""Searches: intervals of lam, refined grids, and the evaluation of candidates."""

from onefit.search.continuous import Interval

__all__ = ["Interval"]
