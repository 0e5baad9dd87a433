"""One lam for each target, on the kernel that they share.

The held-out values of a search have a column per target, and none of the columns depends on the
others: so the scores of every target at every lam are known when the search is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from onefit._types import Array
from onefit.config import get_config
from onefit.estimators.accepted import check_accepted
from onefit.estimators.device import HostData, model_to_host
from onefit.heldout import HeldOut
from onefit.losses.base import loss_of
from onefit.scoring import ROW_METRICS, Metric, Truth
from onefit.scoring.aggregate import aggregate
from onefit.search.grid import candidate_models
from onefit.search.inputs import resolve_scorers, route
from onefit.search.scorers import fast_metric
from onefit.spec.needs import require_of_model

__all__ = ["PerTarget", "fit_per_target"]


@dataclass(frozen=True)
class PerTarget:
    """A regression of several targets, each with a lam of its own.

    Attributes
    ----------
    estimator : KernelRegressor
        Fitted to all rows. Its parameter ``lam`` is not used, and its rows cannot be changed by
        ``add_rows`` and ``remove_rows``.
    lams, scores : arrays of shape (q,)
        The lam of each target, and its cross-validated score.
    params : dict
        What the targets share: those of the candidates without ``lam``.
    """

    estimator: Any
    lams: Array
    scores: Array = field(repr=False)
    params: dict[str, Any]


def fit_per_target(search: Any, X: Any, y: Any, sample_weight: Any) -> PerTarget:
    """See :meth:`onefit.KernelSearchCV.fit_per_target`."""
    check_is_fitted(search, "cv_results_")
    check_accepted(search.estimator, "fit_per_target")
    if is_classifier(search.estimator):
        raise ValueError("fit_per_target is for regressors; a classifier has one lam")
    candidates, found = search.cv_results_["params"], []
    metric, sign, weight = _metric(search, search.heldout(0).sample_weight)
    for one in candidate_models(search.estimator, candidates):
        every = [search.heldout(i) for i in one.indices]
        scores = np.array([sign * _values(metric, search.aggregate, u, weight) for u in every])
        scores = np.where(np.isnan(scores), -np.inf, scores)
        best = scores.argmax(axis=0)
        found.append((scores.max(axis=0), np.array(one.lams)[best], candidates[one.indices[0]]))
    scores, lams, params = found[int(np.argmax([scores.mean() for scores, *_ in found]))]
    params = {name: value for name, value in params.items() if name != "lam"}
    model = clone(search.estimator).set_params(**clone(params, safe=False))
    require_of_model(
        model, "fit_per_target", "kernel matrix", advice="search the targets one by one"
    )
    host = HostData.of(get_config()["device"], X, y, {"sample_weight": sample_weight})
    X, y = indexable(host.X, host.y)
    held = search.heldout(0)
    if not np.array_equal(np.asarray(held.targets), np.asarray(y)):
        raise ValueError("y differs from the targets that the search was fitted to; pass those")
    sample_weight = held.known_weight(host.params["sample_weight"])
    _fit(model, lams, host.to_device(X), y, sample_weight)
    if not host.given:
        model_to_host(model)
    return PerTarget(model, lams, scores, params)


def _values(metric: Metric, how: str, held: HeldOut, weight: Any) -> Array:
    """The metric of each target, (q,), as the search joins its splits."""
    folds = held.folds
    targets = np.asarray(held.targets, dtype=np.float64).reshape(folds.n, -1)[folds.rows]
    if held.values.shape != targets.shape:
        raise ValueError("fit_per_target needs one held-out value per target, not several levels")
    w = np.ones(folds.n) if weight is None else np.asarray(weight, dtype=np.float64)
    values = held.values[None].astype(np.float64, copy=False)

    def scored(starts: Array) -> Array:
        truth = Truth(targets, starts, w[folds.rows])
        (found,) = metric.values(truth, values)
        return np.asarray(found)

    if how == "pooled":
        return np.asarray(scored(np.zeros(1, dtype=np.intp))[0])
    return aggregate(how, scored(folds.offsets[:-1]).T, np.diff(folds.offsets))


def _metric(search: Any, sample_weight: Any) -> tuple[Metric, int, Any]:
    """The metric that chooses, its sign, and its weights of the rows if it was given any."""
    scorers = resolve_scorers(search)
    name = search.refit if scorers.named else "score"
    if name not in scorers.table:
        raise ValueError("fit_per_target needs one metric to choose by; name it in refit")
    metric, sign = fast_metric(scorers.table[name], search.estimator)
    if metric is None:
        known = [func.__name__ for func, one in ROW_METRICS.items() if one.task == "regression"]
        raise ValueError(
            f"fit_per_target needs a metric with a score for each target ({', '.join(known)}), "
            f"not scoring={search.scoring!r}"
        )
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    params = route(search, scorers, given).scorer.score
    return metric, sign, scorers.routed(params)[name].get("sample_weight")


def _fit(model: Any, lams: Array, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit every column of y with its own lam; columns of one lam share a factorisation."""
    problem = model._prepare(X, y, sample_weight)
    coef, intercept = np.zeros_like(problem.Y), np.zeros(lams.size, dtype=problem.Y.dtype)
    lam, error = model.lam, 0.0
    for value in np.unique(lams):
        columns = np.flatnonzero(lams == value)
        model.lam = float(value)
        Y, loss = np.asfortranarray(problem.Y[:, columns]), loss_of(problem.loss, columns)
        model._solve(replace(problem, Y=Y, loss=loss))
        coef[:, columns], intercept[columns] = model.dual_coef_, model.intercept_
        error = max(error, model.error_)
    model.lam, model.dual_coef_, model.intercept_ = lam, coef, intercept
    model.error_ = error
    model.support_ = np.flatnonzero(coef.any(axis=1))
    model._finish(problem.resolved.loss)
    # add_rows, remove_rows and heldout_predict would fit every target with one lam
    del model._Y_fit, model._s_fit
    model._to_device_of(X)
