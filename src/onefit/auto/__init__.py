"""Automatic model selection: estimators that choose kernel, bandwidth, lam and loss themselves.

:mod:`~onefit.auto.estimator` has the estimators, :mod:`~onefit.auto.rules` the rules by which they
choose, :mod:`~onefit.auto.data_checks` the checks for copies and leaks, :mod:`~onefit.auto.run` the
search within a time limit, and :mod:`~onefit.auto.outliers` the reaction to outliers.
"""

from __future__ import annotations

from onefit.auto.estimator import AutoKernelClassifier, AutoKernelRegressor, select

__all__ = ["AutoKernelClassifier", "AutoKernelRegressor", "select"]
