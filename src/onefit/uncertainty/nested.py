"""Nested cross-validation with an interval (Bates, Hastie and Tibshirani, JASA 119, 2024).

The usual standard error of cross-validation treats held-out losses as independent; they share
training rows, and the interval is too short. Nested cross-validation measures the mean squared
error of a cross-validation estimate directly. Split the rows into K folds. For every fold k

- inside: cross-validate on the other K - 1 folds (train without k and j, test on j), e_in their
  losses;
- outside: train without k, test on k, e_out the losses. This part is independent of the inside
  one, so

    E (mean e_in - mean e_out)^2  =  MSE of the inside estimate  +  variance of mean e_out,

and averages over folds and repeated random splits of a = (mean e_in - mean e_out)^2 and
b = var(e_out) / |fold| estimate the MSE as mean(a) - mean(b), for (K-1)/K of the rows. Then

    standard error = sqrt((K-1)/K) sqrt(MSE), kept between the usual one and sqrt(K) times it,
    error          = mean e_in - (1 + (K-2)/K) (mean e_in - mean e_out).

The last line corrects for the smaller training parts: if the error is e + c/m at m training rows,
the inside estimate has m = n (K-2)/K, the outside one m = n (K-1)/K, and 1 + (K-2)/K = 2 (K-1)/K
is the factor that extrapolates their difference to m = n.

**What is trained, and what that costs.** One repetition has K + K (K-1) / 2 training parts.

- A search: the selection is repeated in each part, and the interval is for the error of "search
  and refit", the winner's. :class:`KernelSearchCV` scores its candidates there without refits, so
  that a part costs its full-sample work and one fit of its winner. Parts do not share kernels:
  each resolves gamma="scale" and similar settings on its own rows.
- A KernelRegressor or KernelClassifier with its parameters given: nothing is selected, all parts
  of all repetitions are splits of one sample, and their predictions come from one fit to all rows
  (:func:`heldout_predict`; exact, the kernel being fixed on all rows).
- Any other estimator is fitted once in each part.

**Of which error.** The formulas are for means over rows, so the error is the mean of a loss of
rows: that of the ``scoring`` of the search. R^2 and the root mean squared error are functions of
the mean squared error, which is then the error. Balanced accuracy is a mean over rows too: an error
in a row of class c of K classes weighs n / (K n_c), with the n_c of all rows. Ranking metrics are
not means over rows; pass a ``loss``.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from statistics import NormalDist
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from onefit._format import duration
from onefit._indexing import n_rows, select_rows, split_rows
from onefit._types import Array
from onefit._validation import suggest
from onefit.criteria.pointwise import Pointwise
from onefit.estimators._base import KernelEstimator
from onefit.plan.text import MIN_ANNOUNCED_SECONDS
from onefit.predict import heldout_predict
from onefit.search.preprocess import is_wrapped, metadata_of_fit
from onefit.uncertainty.row_loss import RowLoss, pointwise_of

__all__ = ["NestedCV", "nested_cv"]


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
        As if held-out losses were independent, as in plain cross-validation.
    inside_error, outside_error : float
        Of nested (K-2 folds to train on) and plain (K-1) cross-validation.
    alpha : float
    loss : str
        Loss of a row: "squared", "absolute", "zero_one", ...; ``error`` is its mean.
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
    loss: str
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
    verbose: int = 0,
    **fit_params: Any,
) -> NestedCV:
    """Nested cross-validation: the error of a search's winner, with an interval of level 1 - alpha.

    Parameters
    ----------
    search : KernelSearchCV, an automatic estimator, or any estimator with fit and predict
        Cloned and fitted in every training part, so the selection is repeated: of an automatic
        estimator the whole choice, with preparation, learned metrics and average.
    X, y : rows and targets
    cv : int, default=5
        K, at least 3; folds are drawn at random, stratified for a classifier.
    repeats : int, default=10
        Random splits; the authors use many (200), the estimate of the width is noisy below.
    alpha : float, default=0.1
    loss : {"squared", "absolute", "zero_one"} or callable, default=None
        Pointwise, of targets and predictions. By default that of the search's ``scoring``; an error
        if this is not a mean over rows, such as "roc_auc". Of an estimator without ``scoring``,
        "zero_one" for classifiers, "squared" for regressors, and the pinball loss for several
        levels.
    random_state : int, RandomState or None, default=0
    n_jobs : int, default=None
        Training parts side by side, those of all repetitions.
    verbose : int, default=0
        1 prints a line when a training part is done. A run that is expected to take long is
        announced on stderr after the first part in any case.
    **fit_params
        ``sample_weight`` for the fits (losses count rows alike), and ``groups``, which stay on one
        side of every split; a search gets those of its part too, for a ``cv`` with groups.

    Returns
    -------
    NestedCV

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from onefit import KernelRegressor, KernelSearchCV, nested_cv
    >>> X, y = make_friedman1(60, random_state=0)
    >>> search = KernelSearchCV(KernelRegressor(), {"gamma": [0.1, 1.0], "lam": [1e-5, 1e-3]})
    >>> found = nested_cv(search, X, y, repeats=2)
    >>> bool(found.interval[0] < found.error < found.interval[1])
    True
    """
    _check_numbers(cv, repeats, alpha)
    X, y = indexable(X, y)
    value = pointwise_of(loss, search, y)
    data = _Data(X, y, **_check_params(X, fit_params))
    _check_inner_splits(search)
    seeds = check_random_state(random_state).randint(2**31 - 1, size=repeats)
    folds = [data.folds(cv, int(seed), search) for seed in seeds]
    if min(test.size for one in folds for test in one) < 2:
        raise ValueError(
            f"cv={cv} gives a fold of a single row, whose losses have no variance; use fewer folds"
        )
    rounds = _losses(search, data, folds, value, n_jobs, verbose)
    return _summary(rounds, cv, alpha, value.name)


def _summary(rounds: list[list[tuple[Array, Array]]], cv: int, alpha: float, loss: str) -> NestedCV:
    """The formulas, from (e_in, e_out) of every fold of every repetition."""
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
        loss=loss,
        outside=[np.array([o.mean() for _, o in r]) for r in rounds],
    )


@dataclass(frozen=True)
class _Data:
    """The sample, cut into parts."""

    X: Any
    y: Any
    sample_weight: Any = None
    groups: Any = None

    def folds(self, K: int, seed: int, search: Any) -> list[Array]:
        """The test rows of one random split."""
        if self.groups is None:
            kind = StratifiedKFold if is_classifier(search) else KFold
        else:
            kind = StratifiedGroupKFold if is_classifier(search) else GroupKFold
        splitter = kind(K, shuffle=True, random_state=seed)
        return [test for _, test in splitter.split(self.X, self.y, self.groups)]

    def without(self, rows: Array) -> Array:
        """The training rows that are left."""
        return np.setdiff1d(np.arange(n_rows(self.X)), rows, assume_unique=True)

    def fit_params(self, search: Any, train: Array) -> dict[str, Any]:
        """The parameters of a fit to a part of the rows."""
        params = {"sample_weight": self.sample_weight}
        if hasattr(search, "error_score") or has_fit_parameter(search, "groups"):
            params["groups"] = self.groups
        found = {name: select_rows(p, train) for name, p in params.items() if p is not None}
        return metadata_of_fit(search, found) if is_wrapped(search) else found


def _losses(
    search: Any,
    data: _Data,
    rounds: list[list[Array]],
    value: RowLoss,
    n_jobs: int | None,
    verbose: int,
) -> list[list[tuple[Array, Array]]]:
    """(e_in, e_out) of every fold of every repetition."""
    K = len(rounds[0])
    names: list[tuple[int, ...]] = [*((k,) for k in range(K)), *combinations(range(K), 2)]
    parts = [[folds[k] for k in name] for folds in rounds for name in names]
    if isinstance(search, KernelEstimator):
        predicted = _from_one_fit(search, data, parts)
    else:
        tasks = (delayed(_predicted)(search, data, part, value.response) for part in parts)
        found_parts = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        predicted = _watched(found_parts, len(parts), len(rounds), verbose)
    found = []
    for folds in rounds:
        losses = {}  # of fold j by the model without j and k, which are one fold or two
        for name in names:
            for j, k, u in zip(name, name[::-1], next(predicted), strict=True):
                each = value.function(np.asarray(select_rows(data.y, folds[j])), u)
                each = np.asarray(each, dtype=float).reshape(folds[j].size, -1)
                losses[j, k] = each.mean(axis=1)
        inside = [[losses[j, k] for j in range(K) if j != k] for k in range(K)]
        found.append([(np.concatenate(one), losses[k, k]) for k, one in enumerate(inside)])
    return found


def _watched(
    predicted: Iterable[list[Array]], count: int, repeats: int, verbose: int
) -> Iterator[list[Array]]:
    """The predictions of each part as they come; says how long all will take, if that is long."""
    begun = perf_counter()
    for done, one in enumerate(predicted, start=1):
        expected = count * (perf_counter() - begun)
        if done == 1 and expected > MIN_ANNOUNCED_SECONDS:
            print(
                f"nested_cv fits {count} training parts: expected to take {duration(expected)}, or "
                f"less with n_jobs; faster: fewer than repeats={repeats}",
                file=sys.stderr, flush=True,
            )  # fmt: skip
        if verbose > 0:
            print(f"[{done}/{count}] training part", flush=True)
        yield one


def _predicted(search: Any, data: _Data, part: list[Array], response: str) -> list[Array]:
    """Predictions for each of the folds by a model trained without all of them."""
    train = data.without(np.concatenate(part))
    model = clone(search)
    X, y = split_rows(model, data.X, data.y, train)
    model.fit(X, y, **data.fit_params(search, train))
    tests = (split_rows(model, data.X, data.y, rows, train)[0] for rows in part)
    return [getattr(model, response)(test) for test in tests]


def _from_one_fit(
    model: KernelEstimator, data: _Data, parts: list[list[Array]]
) -> Iterator[list[Array]]:
    """The same for a model whose parameters are given: every part is a split of the sample."""
    tests = [np.concatenate(part) for part in parts]
    splits = [(data.without(rows), rows) for rows in tests]
    held = heldout_predict(model, data.X, data.y, cv=splits, sample_weight=data.sample_weight)
    named = clone(model)
    named._code_targets(data.y, np.float64)  # its classes
    for part, values in zip(parts, np.split(held.values, held.folds.offsets[1:-1]), strict=True):
        found = named.spec().coding.labels(values) if is_classifier(model) else values
        if named.spec().coding.columns_are_targets:
            found = found.reshape(len(values), *np.shape(data.y)[1:])
        yield np.split(found, np.cumsum([rows.size for rows in part])[:-1])


def _check_params(X: Any, params: dict[str, Any]) -> dict[str, Any]:
    for name, values in params.items():
        if name not in ("sample_weight", "groups"):
            raise TypeError(
                f"nested_cv got an unexpected argument {name!r}"
                f"{suggest(name, ('sample_weight', 'groups'))} It takes sample_weight and groups"
            )
        if values is not None:
            check_consistent_length(X, values)
    return params


def _check_inner_splits(search: Any) -> None:
    """Refuse splits listed as rows, which are of the whole sample, not of its training parts."""
    cv = getattr(search, "cv", None)
    if cv is not None and not isinstance(cv, (str, numbers.Integral)) and not hasattr(cv, "split"):
        raise ValueError(
            "search.cv lists rows of the whole sample, but the search is repeated on parts of it; "
            "give it an int or a splitter"
        )


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
