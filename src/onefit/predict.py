"""Held-out predictions of one estimator, by any method."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import indexable

from onefit import plan
from onefit._validation import check_choice
from onefit.estimators._base import KernelEstimator
from onefit.estimators.accepted import check_accepted
from onefit.estimators.device import to_host
from onefit.features.held_out import FEATURE_METHODS
from onefit.folds import Folds
from onefit.heldout import METHODS, Iterative
from onefit.heldout.base import HeldOut, HeldOutMethod
from onefit.linalg import HOST, arrays_of
from onefit.linalg.device import Device
from onefit.problem import Problem
from onefit.updates import held_rows

Array = NDArray[Any]

__all__ = ["check_training", "heldout_predict", "make_method", "ridge_weights"]


def heldout_predict(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    cv: Any = 5,
    groups: Any = None,
    sample_weight: Any = None,
    method: str | HeldOutMethod = "auto",
) -> HeldOut:
    """Predict every row by the model trained without it, in about the time of one fit.

    ``gamma="scale"`` is computed from the whole X, not from each training part. No prediction
    depends on the target of its row.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier
        Not changed.
    X : array or sparse matrix of shape (n, d), or (n, n) when precomputed
        None, with no y and sample_weight, uses the training rows of a fitted estimator, and the
        settings that its fit took from the data: held-out values after ``add_rows`` and
        ``remove_rows``, which keep the kernel matrix.
    y : array of shape (n,) or (n, q)
    cv : int, splitter, or iterable of splits, default=5
        An int is the number of folds, in the order of the rows and stratified for a classifier.
        Otherwise pass a splitter of scikit-learn, or a list of pairs of training and test
        rows; test sets may overlap, and need not cover all rows.
    groups : array of shape (n,), default=None
        For the splitter.
    sample_weight : array of shape (n,), default=None
    method : {"auto", "refit", "block", "eigen", "influence", "limit", "exact"} or object
        "auto" is the exact method with the smallest expected cost. Objects of
        :mod:`onefit.heldout` have options: ``Influence(order=3, tail=True)``.

    Returns
    -------
    HeldOut
        ``predictions`` in the order of the rows, and per split whether they are exact.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefit import KernelRegressor, heldout_predict
    >>> X, y = load_diabetes(return_X_y=True)
    >>> held = heldout_predict(KernelRegressor(lam=1e-2), X, y, cv=10, method="block")
    >>> held.predictions.shape, bool(held.exact.all())
    ((442,), True)
    """
    start = perf_counter()
    check_accepted(estimator, "heldout_predict")
    chosen = make_method(method)
    model, problem = clone(estimator), None
    if X is None:
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight need X; without X pass a fitted estimator alone")
        model, (problem, y, sample_weight) = estimator, held_rows(estimator)
        rows, Y, s = estimator.X_fit_, problem.Y, problem.s
        X = rows
    else:
        rows, Y, s = model._check_data(X, y, sample_weight)
        X, y, sample_weight = (to_host(value, None, "") for value in (X, y, sample_weight))
        X, y = indexable(X, y)
    folds = Folds.draw(cv, X, y, groups, classifier=is_classifier(model))
    check_training(folds, s, y, getattr(model, "classes_", None))
    arrays = arrays_of(rows)
    device = arrays if isinstance(arrays, Device) else None
    chosen, tiled = _planned(chosen, model, Y, s, folds, device)
    form = ("tiles" if tiled else "held") if chosen.products_only else "matrix"
    if problem is None:
        problem = model._make_problem(rows, Y, s, form)
    held = chosen.prepare(problem, folds).predict(np.array([float(model.lam)]))[0]
    decoders = model.spec().coding.decoders
    known = {"targets": np.asarray(y), "sample_weight": sample_weight, **decoders}
    return replace(held, seconds=perf_counter() - start, **known)


def make_method(method: str | HeldOutMethod) -> HeldOutMethod | None:
    """The method that is meant, by its name or itself; None for "auto"."""
    if isinstance(method, HeldOutMethod):
        return method
    check_choice("method", method, ("auto", *METHODS))
    return None if method == "auto" else METHODS[method]()


def make_planned(
    work: plan.Workload, estimate: plan.Estimate, device: Device | None = None
) -> HeldOutMethod:
    """The method that a plan has chosen; an iteration may factor where there is room for it."""
    if work.features:
        return FEATURE_METHODS[estimate.method]()
    if estimate.method != "iterative" or device is not None:
        return METHODS[estimate.method]()
    needed = work.busy * plan.peak_bytes(work, "block")
    return Iterative(factor=needed <= plan.available_memory(work.busy))


def check_training(folds: Folds, s: Array, y: Any, classes: Array | None) -> None:
    """Refuse splits on whose training part no model could be fitted."""
    positive = folds.without(np.flatnonzero(s == 0))
    for k, removed in enumerate(positive.removed):
        left = folds.n - removed.size
        if left < 2:
            raise ValueError(
                f"the training part of split {k} has {left} rows of positive weight, a fit needs "
                "at least two; use fewer or smaller folds"
            )
    if classes is not None:
        _check_classes(positive, np.asarray(y).ravel(), classes, bool((s == 0).any()))


def _check_classes(folds: Folds, y: Array, classes: Array, weighted: bool) -> None:
    """Refuse splits whose removed rows are all there is of a class."""
    codes, k = np.searchsorted(classes, y), len(classes)
    total = np.bincount(codes, minlength=k)
    sizes = [rows.size for rows in folds.removed]
    split = np.repeat(np.arange(len(folds)), sizes)
    cells = np.bincount(split * k + codes[np.concatenate(folds.removed)], minlength=len(folds) * k)
    absent = np.argwhere(cells.reshape(-1, k) == total)
    if absent.size:
        where, label = absent[0]
        row = "row of positive sample_weight" if weighted else "row"
        raise ValueError(
            f"the training part of split {where} holds no {row} of class "
            f"{classes[label].item()!r}; use StratifiedKFold, or fewer folds"
        )


def ridge_weights(folds: Folds, s: Array, scaling: str) -> int:
    """Number of different values of Lambda / lam among the training parts."""
    if scaling == "total":
        return 1
    outside = [float(s[rows].sum()) for rows in folds.removed]
    return len(set(outside))


def _planned(
    method: HeldOutMethod | None,
    model: KernelEstimator,
    Y: Array,
    s: Array,
    folds: Folds,
    device: Device | None,
) -> tuple[HeldOutMethod, bool]:
    """The method, or the cheapest one for None, and whether K is not held.

    Refused if it needs more memory than there is, or is not computed on the device.
    """
    work = replace(
        model._workload(Y, s),
        removed=tuple(rows.size for rows in folds.removed),
        ridges=ridge_weights(folds, s, model.scaling),
    )
    chosen = None if work.features else method
    if device is None and chosen is not None and not chosen.products_only:
        plan.check_method(work, chosen.name)
        return chosen, False
    if device is not None and not work.features:
        empty = device.empty((0, 0), Y.dtype)
        (chosen or METHODS["exact"]()).check(Problem(empty, Y, s, model.spec().loss))
    room, where = (None, "") if device is None else (device.room(), repr(device))
    name = "auto" if method is None else method.name
    best = plan.choose(work, name, (device or HOST).rates, room)
    plan.check_memory(work, best, room, where)
    return chosen or make_planned(work, best, device), best.tiled
