"""One call from rows and targets to a fitted search, by rules that are written down."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from onefit.estimators import KernelClassifier, KernelRegressor, inside
from onefit.fallback import Fallback, fall_back, measure_whole
from onefit.grids import default_grid
from onefit.kernels import is_table
from onefit.relevance import Relevance
from onefit.relevance import relevance as find_relevance
from onefit.robust import mad
from onefit.search.announce import announce
from onefit.search.continuous import Interval
from onefit.search_cv import KernelSearchCV

Array = NDArray[Any]

__all__ = ["select"]

#: whole numbers with more values than this are quantities, not labels
LABELS = 20
#: residuals beyond this many scales are outliers, and this part of them calls for a robust loss
FAR, PART = 5.0, 0.01
#: threshold of the Huber loss in units of the scale (JMLR 2008, section 5.2)
MULTIPLES = (1.0, 2.0, 3.0)
#: the widest column over the narrowest from which scaling is advised
UNEVEN = 100.0


def select(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    cv: Any = 5,
    n_jobs: int | None = None,
    random_state: Any = None,
    relevance: bool = False,
    minutes: float | None = None,
    probabilities: str | None = None,
) -> KernelSearchCV:
    """Choose a kernel machine for the data, and return the fitted search.

    The rules, in the order they are applied:

    1. **Task.** Text, booleans, and whole numbers with at most 20 values are labels: a
       :class:`KernelClassifier`. Other numbers, and several columns of them, are quantities: a
       :class:`KernelRegressor`.
    2. **Splits.** An int ``cv`` is that many shuffled folds, stratified by label; with ``groups``,
       no group is on both sides of a split.
    3. **Candidates.** Kernels "rbf", "laplacian" (dense X only) and "linear", with
       :func:`default_grid`'s bandwidths from the distances between rows, and its lams.
    4. **Loss and score.** The squared loss, all of whose lams ride on one decomposition; R^2, or
       accuracy (balanced accuracy, if a class has less than half of its even share of the rows),
       of all held-out rows together.
    5. **Outliers** (one target). If more than 1 % of the winner's held-out residuals are further
       from their median than 5 times their scale (the MAD, JMLR 2008 eq. 18; for normal errors one
       in 1.7 million is), the score is the mean absolute error instead, in which an outlier is not
       squared: by it the squared loss is searched again, for the kernel and the scale of its
       residuals, and then, with that kernel, the squared loss and Huber's with a threshold of 1, 2
       and 3 times the scale, by ``method="race"``. That last search is returned.

       How often that leads to Huber's loss, in 100 simulated sets a law (50 of Friedman's function
       with n = 100, 50 of a sine with n = 200; ``benchmarks/outlier_rule.py``): normal noise 0,
       Laplace 6, t with 3 degrees of freedom 13, 3 % gross outliers 98, 10 % gross outliers 98.
       The winner was further from the true function than the squared loss's, by more than 5 %, in
       1 of the 500 sets, nearer in 209; with outliers its median error was 0.27 to 0.76 times that
       of the squared loss.

    6. **Time** (with ``minutes``). Where the plan of that search takes longer, or more memory than
       there is, features stand in place of the kernel matrix: ``approximation="nystrom"``, see
       :mod:`onefit.fallback`. That is told on stderr, and so is how far the winner is from the
       whole kernel, by one cross-validation of it on the same folds where that fits into the time
       that is left. The search has both as ``fallback_``, which is None where nothing had to be
       given up. Outliers are then answered by the limit of Huber's loss (``method="limit"``).

    Nothing is scaled: columns of very different widths get a warning.

    What the choice is worth is in ``headline_`` of the search: its score, an interval that allows
    for the choice among many, and the score of a baseline that does not look at X. A choice that
    does not clearly beat the baseline gets a warning. Other thresholds, and decisions by cost:
    ``tune_threshold`` and ``minimise_cost`` of the search. For other rules, or a kernel matrix in
    place of X, use :class:`KernelSearchCV`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    y : array of shape (n,) or (n, q)
    groups : array of shape (n,), default=None
    sample_weight : array of shape (n,), default=None
        For fits and scores; the test for outliers counts rows alike.
    cv : int, splitter, or iterable of splits, default=5
    n_jobs : int, default=None
        As in :class:`KernelSearchCV`.
    random_state : int, RandomState or None, default=None
        For the folds, and the pairs of rows that give the bandwidths.
    relevance : bool, default=False
        Whether to look, too, for the columns that matter: a second search, with the kernel chosen
        (the Gaussian in place of the linear one) and a gamma per column, is followed by gradient
        and repeated without each of five parts of the rows. The search that is returned then has
        an attribute ``relevance_``, see :func:`onefit.relevance`; the choice itself stays.
    minutes : float, default=None
        Time that the selection may take by its plan, which is an estimate; None sets no limit.
    probabilities : {"sigmoid", "isotonic"}, default=None
        Of labels: calibrates the winner on its held-out decision values, so that the search has
        ``predict_proba``. "isotonic" wants a thousand rows; see :class:`KernelSearchCV`.

    Returns
    -------
    KernelSearchCV

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onefit import select
    >>> X, y = load_iris(return_X_y=True)
    >>> search = select(X, y, random_state=0)
    >>> type(search.best_estimator_).__name__, bool(search.best_score_ > 0.95)
    ('KernelClassifier', True)
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    y = np.asarray(y)
    labels = _is_labels(y)
    _check_rows(X, y)
    if probabilities is not None and not labels:
        raise ValueError(
            "probabilities are those of labels, and y holds quantities; predict_interval has "
            "intervals for them"
        )
    if labels:
        _check_classes(y, cv)
    _warn_of_widths(X)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    kernels = ["rbf", "linear"] if issparse(X) else ["rbf", "laplacian", "linear"]
    search = KernelSearchCV(
        KernelClassifier() if labels else KernelRegressor(),
        default_grid(X, y if labels else None, kernels, random_state=seed),
        cv=_splitter(cv, labels, groups is not None, seed),
        scoring=_scoring(y) if labels else "r2",
        aggregate="pooled",
        probabilities=probabilities,
        n_jobs=n_jobs,
    )
    params = {"groups": groups, "sample_weight": sample_weight}
    begun, fallen = perf_counter(), None
    if minutes is not None:
        fallen = fall_back(search, X, y, minutes, **params)
    if fallen is not None:
        _check_relevance(relevance, fallen)
        print(fallen.begun(), file=sys.stderr, flush=True)
    announce(search, X, y, sample_weight, groups)
    search.fit(X, y, **{name: one for name, one in params.items() if one is not None})
    if not labels and y.squeeze().ndim == 1:
        residuals = _residuals(search, y)
        far = np.abs(residuals - np.median(residuals)) > FAR * mad(residuals)
        if far.mean() > PART:
            search = _robust(search, X, y, sample_weight)
    if fallen is not None:
        left = fallen.allowed - (perf_counter() - begun)
        whole, reason = measure_whole(search, X, y, left, sample_weight)
        fallen = replace(fallen, whole=whole, reason=reason)
        print(fallen.told(), file=sys.stderr, flush=True)
    if minutes is not None:
        search.fallback_ = fallen
    verdict = search.headline_.verdict()
    if verdict:
        warnings.warn(f"{verdict}; see headline_", stacklevel=2)
    if relevance:
        search.relevance_ = _relevance(search, X, y, seed, params)
    return search


def _check_relevance(asked: bool, fallen: Fallback) -> None:
    if asked:
        raise ValueError(
            f"relevance=True follows the gradient of the whole kernel, but {fallen.why}; raise "
            "minutes, take fewer rows, or leave relevance out"
        )


def _relevance(
    search: KernelSearchCV, X: Any, y: Array, seed: int, params: dict[str, Any]
) -> Relevance:
    """Of the columns, by the kernel that was chosen with a gamma for each of them."""
    best, labels = search.best_params_, is_classifier(search.estimator)
    kernel = "rbf" if best["kernel"] == "linear" else best["kernel"]
    (grid,) = default_grid(X, y if labels else None, kernel, random_state=seed)
    gammas, lams = grid["gamma"], grid["lam"]
    wide = {
        "gamma": Interval(1e-2 * min(gammas), max(gammas), per_feature=True),
        "lam": Interval(min(lams), max(lams), points=8),
        "kernel": [kernel],
    }
    loss = {name: [best[name]] for name in ("loss", "threshold") if name in best}
    splitter = _splitter(5, labels, params.get("groups") is not None, seed)
    again: KernelSearchCV = clone(search)
    again.set_params(param_grid=wide | loss, search="gradient", cv=splitter, method="auto")
    again.set_params(probabilities=None)
    given = {name: one for name, one in params.items() if one is not None}
    return find_relevance(again.fit(X, y, **given), X, y, cv=splitter, **given)


def _is_labels(y: Array) -> bool:
    if y.ndim not in (1, 2) or 0 in y.shape:
        raise ValueError(f"y must have shape (n,) or (n, q), got {y.shape}")
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        row = int(np.argwhere(~np.isfinite(y))[0, 0])
        raise ValueError(f"y holds {y[row]} in row {row}; drop the row, or fill it in")
    kind = type_of_target(y)
    if kind.startswith("continuous"):
        return False
    numbers = y.dtype.kind in "iuf"
    if y.ndim == 2 and y.shape[1] > 1:
        if numbers and kind == "multiclass-multioutput":
            return False
        raise ValueError(
            f"y has {y.shape[1]} columns that look like labels ({kind}); call select for each "
            "column, or give numbers for a regression"
        )
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y is {kind}, neither labels nor numbers; give one label or number a row")
    return not numbers or np.unique(y).size <= LABELS


def _check_rows(X: Any, y: Array) -> None:
    if not issparse(X) and not is_table(X):
        raise ValueError(
            "select tries kernels of vectors of numbers, and the rows of X are none; encode them "
            "as numbers, or use KernelSearchCV with a function as kernel"
        )
    if _num_samples(X) != len(y):
        raise ValueError(f"X has {_num_samples(X)} rows and y has {len(y)}; they must be as many")
    if np.unique(y).size == 1:
        raise ValueError(f"y is {y.flat[0]!r} in every row; there is nothing to choose by")


def _check_classes(y: Array, cv: Any) -> None:
    values, counts = np.unique(y, return_counts=True)
    if isinstance(cv, (int, np.integer)) and counts.min() < cv:
        rare = values[np.argmin(counts)].item()
        raise ValueError(
            f"class {rare!r} has {counts.min()} rows, fewer than cv={cv} folds; use fewer folds, "
            "leave the class out, or join it with another"
        )


def _warn_of_widths(X: Any) -> None:
    if issparse(X):
        return
    widths = np.std(np.asarray(X, dtype=float), axis=0)
    widths = widths[widths > 0.0]
    if widths.size and widths.max() > UNEVEN * widths.min():
        warnings.warn(
            f"the widest column of X has {widths.max() / widths.min():.0f} times the standard "
            "deviation of the narrowest, which then hardly counts in a distance; consider "
            "sklearn.preprocessing.StandardScaler",
            stacklevel=3,
        )


def _splitter(cv: Any, labels: bool, grouped: bool, seed: int) -> Any:
    if not isinstance(cv, (int, np.integer)):
        return cv
    if grouped and not labels:
        return GroupKFold(cv, shuffle=True, random_state=seed)
    kind = StratifiedGroupKFold if grouped else StratifiedKFold if labels else KFold
    return kind(cv, shuffle=True, random_state=seed)


def _scoring(y: Array) -> str:
    counts = np.unique(y, return_counts=True)[1]
    rare = counts.min() < 0.5 * counts.sum() / counts.size
    return "balanced_accuracy" if rare else "accuracy"


def _residuals(search: KernelSearchCV, y: Array) -> Array:
    """Held-out residuals of the winner, of the rows that a split tests."""
    residuals = np.ravel(y) - np.ravel(search.heldout_.predictions)
    return np.asarray(residuals[np.isfinite(residuals)])


def _robust(search: KernelSearchCV, X: Any, y: Array, sample_weight: Any) -> KernelSearchCV:
    """A search over Huber's loss and the squared one, on the same splits."""
    params = {} if sample_weight is None else {"sample_weight": sample_weight}
    least: KernelSearchCV = clone(search)
    least.set_params(scoring="neg_mean_absolute_error", cv=search.heldout_.folds)
    least.fit(X, y, **params)
    scale = mad(_residuals(least, y))
    if scale == 0.0:
        return least
    kernel = least.best_params_["kernel"]
    (grid,) = [part for part in least.param_grid if part["kernel"] == [kernel]]
    huber = {"loss": ["huber"], "threshold": [c * scale for c in MULTIPLES]}
    # a race repairs by the whole kernel
    method = "limit" if inside.is_approximate(least.estimator) else "race"
    robust: KernelSearchCV = clone(least)
    robust.set_params(param_grid=[grid | {"loss": ["squared"]}, grid | huber], method=method)
    robust.fit(X, y, **params)
    return robust
