"""Nested cross-validation with an interval (Bates, Hastie and Tibshirani, JASA 119, 2024).

The usual standard error of cross-validation treats held-out losses as independent; they share
training rows, and the interval is too short. Nested cross-validation measures the mean squared
error of a cross-validation estimate directly. Split the rows into K folds. For every fold k

- inside: cross-validate on the other K - 1 folds (train without k and j, test on j), e_in their
losses; - outside: train without k, test on k, e_out the losses. This part is independent of the
inside one, so

    E (mean e_in - mean e_out)^2  =  MSE of the inside estimate  +  variance of mean e_out,

and averages over folds and repeated random splits of a = (mean e_in - mean e_out)^2 and
b = var(e_out) / |fold| estimate the MSE as mean(a) - mean(b), for (K-1)/K of the rows. Then

    standard error = sqrt((K-1)/K) sqrt(MSE), kept between the usual one and sqrt(K) times it,
    error          = mean e_in - (1 + (K-2)/K) (mean e_in - mean e_out).

The last line corrects for the smaller training parts: if the error is e + c/m at m training rows,
the inside estimate has m = n (K-2)/K, the outside one m = n (K-1)/K, and 1 + (K-2)/K = 2 (K-1)/K
is the factor that extrapolates their difference to m = n.

What is trained can be anything, a whole search included; then the selection is repeated in each
training part, and the interval is for the error of "search and refit", the winner's. One
repetition trains K + K (K-1) / 2 times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_random_state, indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed

from onefit._validation import check_choice
from onefit.criteria.pointwise import Pointwise

Array = NDArray[Any]

__all__ = ["NestedCV", "nested_cv"]

LOSSES = ("squared", "absolute", "zero_one")


@dataclass(frozen=True)
class NestedCV:
    """An estimate of the error on new rows, and its interval.

    Attributes
    ----------
    error : float
        Corrected for the smaller training parts.
    standard_error : float
    interval : (float, float)
        ``error`` -+ the normal quantile times ``standard_error``.
    naive_standard_error : float
        As if held-out losses were independent; what plain cross-validation reports.
    inside_error, outside_error : float
        Of nested (K-2 folds to train on) and plain (K-1) cross-validation.
    alpha : float
    outside : list of (K,) arrays
        Error of each fold by the plain cross-validation of each repetition.
    """

    error: float
    standard_error: float
    interval: tuple[float, float]
    naive_standard_error: float
    inside_error: float
    outside_error: float
    alpha: float
    outside: list[Array] = field(repr=False)


def nested_cv(
    search: Any,
    X: Any,
    y: Any,
    cv: int = 5,
    repeats: int = 10,
    alpha: float = 0.1,
    loss: str | Pointwise | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> NestedCV:
    """The error of a search's winner on new rows, with an interval of level 1 - alpha.

    Parameters
    ----------
    search : KernelSearchCV, or any estimator with fit and predict
        Cloned for every training part, so that selection is repeated in each.
    X, y : rows and targets
    cv : int, default=5
        K, at least 3; folds are drawn at random, stratified for a classifier.
    repeats : int, default=10
        Random splits; the authors use many (200), the estimate of the width is noisy below.
    alpha : float, default=0.1
    loss : {"squared", "absolute", "zero_one"} or callable, default=None
        Pointwise, of targets and predictions; "zero_one" for classifiers and "squared" for
        regressors by default.
    random_state : int, RandomState or None, default=0
    n_jobs : int, default=None
        Training parts side by side.

    Returns
    -------
    NestedCV
    """
    _check_numbers(cv, repeats, alpha)
    value = _pointwise(loss, search)
    X, y = indexable(X, y)
    seeds = check_random_state(random_state).randint(2**31 - 1, size=repeats)
    rounds = [_one_round(search, X, y, cv, int(seed), value, n_jobs) for seed in seeds]
    a = np.mean([(np.mean(i) - np.mean(o)) ** 2 for r in rounds for i, o in r])
    b = np.mean([np.var(o, ddof=1) / o.size for r in rounds for _, o in r])
    inside = float(np.mean([np.mean(i) for r in rounds for i, _ in r]))
    losses = [np.concatenate([o for _, o in r]) for r in rounds]
    outside = float(np.mean([one.mean() for one in losses]))
    naive = float(np.mean([one.std(ddof=1) / np.sqrt(one.size) for one in losses]))
    width = np.sqrt((cv - 1) / cv * max(a - b, 0.0))
    standard_error = float(np.clip(width, naive, np.sqrt(cv) * naive))
    error = inside - (1.0 + (cv - 2) / cv) * (inside - outside)
    reach = NormalDist().inv_cdf(1.0 - alpha / 2.0) * standard_error
    return NestedCV(
        error=error,
        standard_error=standard_error,
        interval=(error - reach, error + reach),
        naive_standard_error=naive,
        inside_error=inside,
        outside_error=outside,
        alpha=alpha,
        outside=[np.array([o.mean() for _, o in r]) for r in rounds],
    )


def _one_round(
    search: Any, X: Any, y: Any, K: int, seed: int, value: Pointwise, n_jobs: int | None
) -> list[tuple[Array, Array]]:
    """(e_in, e_out) of every fold of one random split."""
    splitter = (StratifiedKFold if is_classifier(search) else KFold)(
        K, shuffle=True, random_state=seed
    )
    folds = [test for _, test in splitter.split(X, y)]
    parts: list[tuple[int, ...]] = [*((k,) for k in range(K)), *combinations(range(K), 2)]
    found = Parallel(n_jobs=n_jobs)(
        delayed(_losses)(search, X, y, [folds[k] for k in part], value) for part in parts
    )
    tested = dict(zip(parts, found, strict=True))
    rounds = []
    for k in range(K):
        # tested[j, l] holds the losses on fold j and on fold l without both
        inner = [tested[min(j, k), max(j, k)][0 if j < k else 1] for j in range(K) if j != k]
        rounds.append((np.concatenate(inner), tested[k,][0]))
    return rounds


def _losses(search: Any, X: Any, y: Any, folds: list[Array], value: Pointwise) -> list[Array]:
    """Losses on each of the folds of a machine trained without all of them."""
    train = np.setdiff1d(np.arange(_rows(X)), np.concatenate(folds), assume_unique=True)
    machine = clone(search)
    machine.fit(*_safe_split(machine, X, y, train))
    losses = []
    for rows in folds:
        X_test, y_test = _safe_split(machine, X, y, rows, train)
        each = np.asarray(value(np.asarray(y_test), machine.predict(X_test)), dtype=float)
        losses.append(each.reshape(rows.size, -1).mean(axis=1))
    return losses


def _rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _squared(y: Array, u: Array) -> Array:
    return np.asarray((y - u) ** 2)


def _absolute(y: Array, u: Array) -> Array:
    return np.asarray(np.abs(y - u))


def _zero_one(y: Array, u: Array) -> Array:
    return np.asarray(y != u)


def _pointwise(loss: str | Pointwise | None, search: Any) -> Pointwise:
    if loss is None:
        loss = "zero_one" if is_classifier(search) else "squared"
    if not isinstance(loss, str):
        return loss
    check_choice("loss", loss, LOSSES)
    return {"squared": _squared, "absolute": _absolute, "zero_one": _zero_one}[loss]


def _check_numbers(cv: Any, repeats: Any, alpha: Any) -> None:
    if not isinstance(cv, (int, np.integer)) or cv < 3:
        raise ValueError(
            f"cv must be a whole number of at least 3 (two folds are left out at a time), "
            f"got {cv!r}"
        )
    if not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise ValueError(f"repeats must be a whole number of at least 1, got {repeats!r}")
    if not isinstance(alpha, (float, int)) or not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}; 0.1 asks for 90 %")
