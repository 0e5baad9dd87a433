"""How far to trust a prediction, a score, and a winner.

=========================  ==================================================================
:class:`Headline`          a winner's score with an interval, beside a baseline
:func:`predict_interval`   intervals for new targets, by jackknife+ or CV+, without refits
:func:`nested_cv`          an interval for the error of the winner, selection included
=========================  ==================================================================
"""

from __future__ import annotations

from onefit.uncertainty.headline import Headline
from onefit.uncertainty.intervals import PredictionInterval, predict_interval
from onefit.uncertainty.nested import NestedCV, nested_cv

__all__ = [
    "Headline",
    "NestedCV",
    "PredictionInterval",
    "nested_cv",
    "predict_interval",
]
