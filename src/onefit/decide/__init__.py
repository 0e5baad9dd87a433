"""From held-out decision values to probabilities, thresholds and decisions, without refits.

===================================  =========================================================
:class:`CalibratedKernelClassifier`  probabilities for a model of any loss
:class:`MinimumCostClassifier`       the decision of the least expected cost
:func:`tune_threshold`               a threshold by any metric
:func:`neyman_pearson`               a threshold that bounds the rate of false alarms
===================================  =========================================================

A fitted search has all of them as methods.
"""

from onefit.decide.calibrate import CalibratedKernelClassifier
from onefit.decide.cost import MinimumCostClassifier
from onefit.decide.threshold import neyman_pearson, tune_threshold

__all__ = [
    "CalibratedKernelClassifier",
    "MinimumCostClassifier",
    "neyman_pearson",
    "tune_threshold",
]
