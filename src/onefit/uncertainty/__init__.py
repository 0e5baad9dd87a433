"""Intervals for predictions and scores, unusual rows, nested cross-validation.

=========================  ==================================================================
:class:`Headline`          the score of a winner with an interval, and a baseline
:func:`predict_interval`   prediction intervals (CV+, jackknife+, full conformal)
:func:`novelty`            how far new rows are from the training rows, as the kernel sees them
:func:`nested_cv`          an interval for the error of the winner, selection included
=========================  ==================================================================
"""

from __future__ import annotations

from onefit.uncertainty.headline import Headline
from onefit.uncertainty.intervals import PredictionInterval, predict_interval
from onefit.uncertainty.nested import NestedCV, nested_cv
from onefit.uncertainty.novelty import Novelty, novelty

__all__ = [
    "Headline",
    "NestedCV",
    "Novelty",
    "PredictionInterval",
    "nested_cv",
    "novelty",
    "predict_interval",
]
