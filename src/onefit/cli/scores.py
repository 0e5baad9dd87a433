"""How good predictions are, of the rows whose truth is known; added up as the rows come."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from onefit.written import read_numbers

Array = NDArray[Any]

__all__ = ["Amounts", "Labels"]


class Amounts:
    """Root mean squared error and R^2.

    Squares of the truth are summed up around the mean of the first rows, which keeps their digits.

    Attributes
    ----------
    known : int
        Rows whose truth is known.
    """

    def __init__(self) -> None:
        self.known = 0
        self._readable = True
        self._origin = self._sum = self._squares = self._errors = 0.0

    def add(self, truth: Array, predicted: Array) -> None:
        """Some more rows; gaps in the truth are left out."""
        truth, predicted = _filled(truth, predicted)
        if truth.size == 0 or not self._readable:
            return
        if truth.dtype.kind not in "fiu":
            read = read_numbers(truth)
            if read is None:
                self._readable, self.known = False, 0
                return
            truth = read.numbers
        if self.known == 0:
            self._origin = float(truth.mean())
        self.known += truth.size
        self._sum += float((truth - self._origin).sum())
        self._squares += float(((truth - self._origin) ** 2).sum())
        self._errors += float(((truth - predicted) ** 2).sum())

    @property
    def scores(self) -> dict[str, float]:
        """By name; none if no truth is known, or it cannot be read."""
        if self.known == 0:
            return {}
        found = {"root mean squared error": float(np.sqrt(self._errors / self.known))}
        spread = self._squares - self._sum**2 / self.known
        if spread > 0.0:
            found["R²"] = 1.0 - self._errors / spread
        return found


class Labels:
    """Accuracy and balanced accuracy, from how often each pair of labels occurs.

    Attributes
    ----------
    known : int
        Rows whose truth is known.
    """

    def __init__(self) -> None:
        self.known = 0
        self._pairs: Counter[tuple[str, str]] = Counter()

    def add(self, truth: Array, predicted: Array) -> None:
        """Some more rows; gaps in the truth are left out."""
        truth, predicted = _filled(truth, predicted)
        self.known += truth.size
        self._pairs.update(zip(_as_texts(truth), _as_texts(predicted), strict=True))

    @property
    def scores(self) -> dict[str, float]:
        """By name; none if no truth is known."""
        if self.known == 0:
            return {}
        right, predicted = (list(one) for one in zip(*self._pairs, strict=True))
        times = list(self._pairs.values())
        # labels may be predicted that the truth has not
        with warnings.catch_warnings(action="ignore"):
            balanced = metrics.balanced_accuracy_score(right, predicted, sample_weight=times)
        share = metrics.accuracy_score(right, predicted, sample_weight=times)
        return {"accuracy": float(share), "balanced accuracy": float(balanced)}


def _filled(truth: Array, predicted: Array) -> tuple[Array, Array]:
    import pandas as pd

    there = ~np.asarray(pd.isna(truth))
    return truth[there], predicted[there]


def _as_texts(values: Array) -> list[str]:
    """Labels as texts, so that 1 and 1.0 are the same one."""
    if values.dtype.kind == "f" and bool((values == np.round(values)).all()):
        values = values.astype(np.int64)
    return [str(one) for one in values]
