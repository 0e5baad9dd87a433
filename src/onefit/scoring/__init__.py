"""Metrics of held-out values, and rules to choose a candidate by them.

:class:`Metric` defines a metric once, as a statistic of a row and a function of its mean; a search
takes one as ``scoring``. ``ROW_METRICS`` has those of scikit-learn that are of this kind.
:func:`one_standard_error` chooses a simpler candidate than the best one, as ``refit`` of a search.
"""

from onefit.scoring.careful import one_standard_error
from onefit.scoring.metric import Metric, RowSums, Truth
from onefit.scoring.metrics import ROW_METRICS

__all__ = ["ROW_METRICS", "Metric", "RowSums", "Truth", "one_standard_error"]
