"""The candidates of fitted searches: held-out predictions, and fits of a weighted sum of them.

The searches may differ in everything but the rows, the targets and the splits. A search of a
pipeline, whose steps are fitted in every training part, contributes candidates whose steps learn
from the targets (a metric, say): its held-out predictions are honest, too.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from onefit._describe import describe
from onefit._types import Array
from onefit.config import get_config
from onefit.estimators._base import KernelEstimator
from onefit.estimators.accepted import Given
from onefit.estimators.device import HostData, model_to_host
from onefit.estimators.unused import UnusedParameterWarning
from onefit.folds import Folds
from onefit.kernels import is_objects
from onefit.linalg import is_elsewhere
from onefit.search.preprocess import kernel_estimator
from onefit.search_cv import KernelSearchCV
from onefit.spec.needs import require_of_model

__all__ = ["SearchCandidates", "same_but_lam", "without"]


@dataclass(frozen=True)
class SearchCandidates:
    """The candidates of one fitted search that have exact held-out predictions.

    Attributes
    ----------
    search : KernelSearchCV
    X, y, params : data of the search, and ``sample_weight`` and ``groups`` as far as there are any
    indices : (C,) int array
        Of these candidates in ``cv_results_``.
    predictions : (n, q, C) array
        Held-out decision values.
    kernels : (C,) int array
        Those with the same number differ in lam alone.
    """

    search: Any
    X: Any = field(repr=False)
    y: Any = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    indices: Array = field(repr=False)
    predictions: Array = field(repr=False)
    kernels: Array = field(repr=False)

    @classmethod
    def of(cls, search: Any, X: Any, y: Any, sample_weight: Any) -> SearchCandidates:
        """The candidates of a fitted search; refuses those that cannot be averaged."""
        _check_search(search)
        given = Given.of(search, "stacking", X, y, sample_weight)
        known = {"sample_weight": given.sample_weight, "groups": given.groups}
        params = {name: one for name, one in known.items() if one is not None}
        if is_elsewhere(X):
            raise ValueError("stacking computes on the host; pass X as a NumPy array")
        held = search.heldout(0)
        held.known_weight(params.get("sample_weight", np.ones(held.folds.n)))
        if isinstance(search.estimator, KernelEstimator) and not _same_rows(search, X):
            raise ValueError("X differs from the rows that the search was fitted to; pass those")
        if not held.folds.is_partition:
            raise ValueError(
                "stacking needs splits that test every row once, such as KFold(5, shuffle=True); "
                f"the {len(held.folds)} splits of this search do not"
            )
        found = search.cv_results_["params"]
        for one in found:
            _check_member(kernel_estimator(clone(search.estimator).set_params(**one)))
        n = held.folds.n
        F = np.stack(
            [search.heldout(i).predictions.reshape(n, -1) for i in range(len(found))], axis=2
        )
        usable = search.cv_results_["exact"] & np.isfinite(F).all(axis=(0, 1))
        indices = np.flatnonzero(usable)
        if not indices.size:
            raise ValueError(
                "no candidate of the search has exact held-out predictions; search with "
                f"method='auto' or 'exact', not {search.method!r}"
            )
        F = F[:, :, indices].astype(np.float64)
        return cls(search, X, y, params, indices, F, same_but_lam(search)[indices])

    @property
    def folds(self) -> Folds:
        """The splits."""
        folds: Folds = self.search.heldout(0).folds
        return folds

    def errors(self, weights: Array) -> Array:
        """Bounds on the errors of the weighted sum of held-out predictions, for every split."""
        used = [(weights[c], self.search.heldout(self.indices[c])) for c in np.flatnonzero(weights)]
        return np.asarray(sum((w * held.error for w, held in used), np.zeros(len(self.folds))))

    def fit(self, weights: Array) -> list[Any]:
        """Fit, for each kernel, the weighted sum of its candidates to all rows."""
        used, estimator = np.flatnonzero(weights), self.search.estimator
        alone = isinstance(estimator, KernelEstimator)
        name = "" if alone else f"{estimator.steps[-1][0]}__"
        params = [self.search.cv_results_["params"][i] for i in self.indices[used]]
        # candidates by their steps before the kernel
        settings: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for place, one in enumerate(params):
            before = {k: v for k, v in sorted(one.items()) if not k.startswith(name)}
            settings.setdefault(describe(before), (before, []))[1].append(place)
        members = []
        for before, places in settings.values():
            whole, Z = clone(estimator).set_params(**before), self.X
            if not alone:
                Z = whole[:-1].fit_transform(self.X, self.y)
            own = [_after(name, params[place]) for place in places]
            kernels = np.array([describe(_of_kernel(one)) for one in own])
            for kernel in np.unique(kernels):
                mine = np.flatnonzero(kernels == kernel)
                some = weights[used[np.take(places, mine)]]
                model = self._fit_sum(
                    whole if alone else whole[-1], [own[i] for i in mine], some, Z
                )
                if not alone:
                    model = Pipeline([*whole.steps[:-1], (name[:-2], model)])
                members.append(model)
        return members

    def _fit_sum(self, estimator: Any, params: list[dict[str, Any]], weights: Array, X: Any) -> Any:
        """A model whose coefficients are the weighted sum of those of several lams or losses."""
        device = HostData.of(get_config()["device"], X, self.y, {}).device
        X, fitted = X if device is None else device.asarray(X), []
        for one in params:
            with warnings.catch_warnings():
                # a grid may pair a kernel with parameters of another
                warnings.simplefilter("ignore", UnusedParameterWarning)
                fitted.append(clone(estimator).set_params(**one).fit(X, self.y, self._weight))
            if device is not None:
                model_to_host(fitted[-1])
        found = fitted[0]
        for name in ("dual_coef_", "intercept_", "error_"):
            values = (w * getattr(one, name) for w, one in zip(weights, fitted, strict=True))
            setattr(found, name, sum(values))
        found.support_ = np.flatnonzero(found.dual_coef_.reshape(len(self.y), -1).any(axis=1))
        vars(found).pop("feature_names_in_", None)  # rows come as arrays
        return found

    @property
    def _weight(self) -> Any:
        return self.params.get("sample_weight")

    def without_pairs(self) -> Array:
        """P[k, i, :, c]: row i of fold j predicted without the folds j and k; NaN where j = k."""
        folds, K = self.folds, len(self.folds)
        pairs = list(combinations(range(K), 2))
        left_out = [np.concatenate([folds.test[j], folds.test[k]]) for j, k in pairs]
        again: KernelSearchCV = clone(self.search)
        chosen = [self.search.cv_results_["params"][i] for i in self.indices]
        again.set_params(
            param_grid=[{name: [value] for name, value in one.items()} for one in chosen],
            cv=[(without(folds.n, rows), rows) for rows in left_out],
            refit=False,
            journal=None,
            n_iter=None,
            criterion="cv",
        )
        again.fit(self.X, self.y, **self.params)
        P = np.full((K, *self.predictions.shape), np.nan)
        for c in range(self.indices.size):
            held = again.heldout(c)
            for place, (j, k) in enumerate(pairs):
                values, size = held.values[held.folds.place(place)], folds.test[j].size
                P[k, folds.test[j], :, c] = values[:size]
                P[j, folds.test[k], :, c] = values[size:]
        return P


def same_but_lam(search: Any) -> Array:
    """A number for each candidate of a search, the same for those that differ in lam only."""
    lam = "lam" if isinstance(search.estimator, KernelEstimator) else "__lam"
    words = [
        describe({k: v for k, v in sorted(one.items()) if not k.endswith(lam)})
        for one in search.cv_results_["params"]
    ]
    return np.asarray(np.unique(words, return_inverse=True)[1])


def _after(prefix: str, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters whose names begin with a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in params.items() if k.startswith(prefix)}


def _of_kernel(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that change the kernel matrix."""
    others = ("lam", "loss")
    return {k: v for k, v in sorted(params.items()) if k.partition("__")[0] not in others}


def without(n: int, rows: Array) -> Array:
    """The other rows of n."""
    return np.setdiff1d(np.arange(n), rows)


def _same_rows(search: Any, X: Any) -> bool:
    """Whether the winner was fitted to these rows, as far as numbers tell."""
    known = getattr(search.best_estimator_, "X_fit_", None)
    if known is None:  # features, which are refused
        return True
    rows = search.best_estimator_._validate_X(X, reset=False)
    if known.shape != rows.shape:
        return False
    if issparse(known):
        return not (known != rows).nnz
    return is_objects(known) or np.array_equal(known, rows)


def _check_search(search: Any) -> None:
    estimator = getattr(search, "estimator", None)
    if not hasattr(search, "heldout") or estimator is None:
        raise TypeError(f"stacking needs a fitted KernelSearchCV, got {type(search).__name__}")
    if not isinstance(estimator, KernelEstimator) and not (
        isinstance(estimator, Pipeline) and isinstance(estimator[-1], KernelEstimator)
    ):
        raise TypeError(
            "stacking needs a search over a kernel estimator, or over a Pipeline that ends in one, "
            f"not over a {type(estimator).__name__}"
        )
    if not hasattr(search, "best_estimator_") or search.multimetric_:
        raise ValueError(
            "stacking needs a fitted search with one score and refit=True, whose winner it replaces"
        )
    if np.ndim(search.heldout(0).targets) != 1:
        raise ValueError("stacking is for one target; search each column of y by itself")


def _check_member(estimator: Any) -> None:
    require_of_model(estimator, "stacking", "kernel matrix", "no level", "column per class")
