"""Models of all leading parts of an ordered sample, and of many parts of it, at one kernel.

- :mod:`onefit.prefixes.factor`: all leading parts at one ridge, by one Cholesky factor
- :mod:`onefit.prefixes.parts`: some parts with a ridge each, by factors or iterations in single
  precision
- :mod:`onefit.prefixes.problem`: the checked problem of a model and its rows
- :mod:`onefit.prefixes.scores`: scores of many sets of values of the same rows
"""

from __future__ import annotations

from onefit.prefixes.factor import Prefixes
from onefit.prefixes.parts import MAX_COLUMNS, Fit, Order, PartFits
from onefit.prefixes.problem import dense_problem
from onefit.prefixes.scores import Score, scores_by

__all__ = [
    "MAX_COLUMNS",
    "Fit",
    "Order",
    "PartFits",
    "Prefixes",
    "Score",
    "dense_problem",
    "scores_by",
]
