"""How many functions stand between a fit and its held-out method: few enough to read."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import onefit
from onefit import KernelRegressor, KernelSearchCV
from onefit.heldout import METHODS
from onefit.heldout.base import Prepared

X = np.random.default_rng(0).normal(size=(30, 2))
Y = np.sin(X[:, 0])
PACKAGE = str(Path(onefit.__file__).parent)
MAX_CALLS = 6


def calls_since_fit() -> list[str]:
    """Functions of the package that were called by a search's fit on the way to the caller."""
    found, frame = [], sys._getframe(2)
    while frame.f_code.co_name != "fit":
        if frame.f_code.co_filename.startswith(PACKAGE):
            found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found


class Noting(Prepared):
    def __init__(self, prepared, notes):
        self.prepared, self.notes = prepared, notes

    def predict(self, lams):
        self.notes.append(calls_since_fit())
        return self.prepared.predict(lams)


class NotingEigen(METHODS["eigen"]):
    """The method that notes who called it."""

    def __init__(self):
        self._notes = []

    def prepare(self, problem, folds):
        return Noting(super().prepare(problem, folds), self._notes)


@pytest.mark.parametrize("rows", ["plain", "journal"])
def test_few_functions_stand_between_fit_and_predict(tmp_path, rows):
    method, options = NotingEigen(), {}
    if rows == "journal":
        options["journal"] = tmp_path / "journal"
    KernelSearchCV(KernelRegressor(), {"lam": [1e-3, 1e-1]}, method=method, **options).fit(X, Y)
    assert method._notes
    assert all(0 < len(calls) <= MAX_CALLS for calls in method._notes), method._notes
