"""How far to trust a prediction, a score, and a winner.

=========================  ==================================================================
:func:`predict_interval`   intervals for new targets, by jackknife+ or CV+, without refits
:func:`standard_errors`    of the cross-validated scores of a search
:func:`nested_cv`          an interval for the error of the winner, selection included
:func:`optimism_note`      why ``best_score_`` is not that error
=========================  ==================================================================
"""

from __future__ import annotations

from onefit.uncertainty.intervals import PredictionInterval, predict_interval
from onefit.uncertainty.nested import NestedCV, nested_cv
from onefit.uncertainty.scores import optimism_note, standard_errors

__all__ = [
    "NestedCV",
    "PredictionInterval",
    "nested_cv",
    "optimism_note",
    "predict_interval",
    "standard_errors",
]
