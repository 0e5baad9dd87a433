"""Folds and order of the influence series for the lambdas that a search has.

Equation 6 of Liu and Liao (2016; onefit.criteria.granularity) takes one lam, one half width delta
and a bound kappa on K(x, x). A search has many of each: the candidate with the largest kappa / (lam
(accuracy - delta/2)) asks for most folds, and folds that serve it serve all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onefit.criteria.granularity import Granularity, granularity, granularity_for
from onefit.search.grid import CandidateModel, Job
from onefit.search.rows import Sample
from onefit.search.setup import set_up

__all__ = ["search_granularity"]


def search_granularity(
    search: Any, X: Any, y: Any, accuracy: float = 0.1, sample_weight: Any = None
) -> Granularity:
    """Folds t and order r for the wanted accuracy at every candidate of a search.

    The lams are those of its grid (the lower end of an Interval), kappa is the largest K(x, x) of
    the rows under any of its kernels, delta that of its models. Nothing is fitted. A warning is
    given, and ``capped`` is True, where so many folds are asked for that leave-one-out must do.

    Parameters
    ----------
    search : KernelSearchCV
        Of models with loss "smoothed_hinge"; its own ``method`` does not matter.
    X, y : rows and labels
    accuracy : float, default=0.1
        Greater than delta / 2.
    sample_weight : array of shape (n,), default=None
        Rows of weight zero are not counted. The paper has no weights.

    Returns
    -------
    Granularity

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import KFold
    >>> from onefit import KernelClassifier, KernelSearchCV
    >>> from onefit.heldout import Influence
    >>> from onefit.losses import SmoothedHinge
    >>> X, y = make_classification(60, random_state=0)
    >>> model = KernelClassifier(loss=SmoothedHinge(0.01), fit_intercept=False)
    >>> search = KernelSearchCV(model, {"gamma": [0.01, 0.1], "lam": [0.125, 0.5, 2.0]})
    >>> found = search_granularity(search, X, y, accuracy=0.1)
    >>> found.folds, found.order, found.lam, found.capped
    (11, 9, 0.125, False)
    >>> search = search.set_params(cv=KFold(found.folds), method=Influence(order=found.order))
    >>> search.fit(X, y).n_splits_
    11
    """
    setup = set_up(search, X, y, sample_weight, {})
    settings = list(_settings(setup.jobs, setup.sample))
    # most folds; among equals the widest bound
    lam, delta, kappa = max(settings, key=lambda x: (granularity(accuracy, *x)[0], x[2] / x[0]))
    return granularity_for(accuracy, [lam], int(np.count_nonzero(setup.sample.s)), delta, kappa)


def _settings(jobs: list[Job], sample: Sample) -> Iterator[tuple[float, float, float]]:
    """The smallest lam, delta and kappa of every model."""
    kept = sample.s > 0
    for job in jobs:
        kappa = float(job.kernel.diag(sample.X)[kept].max())
        for model in job.models:
            yield _mean_lam(model, sample), _delta(model), kappa


def _delta(model: CandidateModel) -> float:
    loss = model.spec.loss
    if loss.name != "smoothed_hinge":
        raise ValueError(
            f"search_granularity is for models with loss='smoothed_hinge', and the search has "
            f"one with {loss!r}; equation 6 is about the corner of the hinge. Choose cv yourself"
        )
    return float(loss.delta)  # type: ignore[attr-defined]


def _mean_lam(model: CandidateModel, sample: Sample) -> float:
    """The smallest lam in mean scaling."""
    total = model.estimator.scaling == "total"
    return min(model.lams) / (float(sample.s.sum()) if total else 1.0)
