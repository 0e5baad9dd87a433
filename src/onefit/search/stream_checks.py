"""Refuse what streamed rows do not support, and find the metrics of their models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from onefit._types import Array
from onefit.criteria.base import ByRow
from onefit.kernels import takes_gamma
from onefit.losses import Quantile
from onefit.problem import Problem
from onefit.quantiles import levels_of, neg_pinball_loss
from onefit.rows.source import Source
from onefit.rows.survey import Surveyed
from onefit.scoring import ROW_METRICS, Metric
from onefit.scoring.metrics import loss_metric
from onefit.search.criterion import CRITERIA, get_criterion
from onefit.search.grid import CandidateModel
from onefit.search.scorers import fast_metric

#: name -> (metric, sign)
Metrics = dict[str, tuple[Metric, int]]

__all__ = ["Metrics", "check_levels", "check_model", "check_search", "check_survey", "metrics_of"]

#: criteria that are sums over rows
BY_ROW = [repr(name) for name, one in CRITERIA.items() if isinstance(one, ByRow)]


def check_search(search: Any) -> None:
    """Refuse parameters of a search that need all rows in memory."""
    if search._descends:
        raise ValueError(
            f"{type(search).__name__} needs all rows in memory, but they are streamed; use "
            "KernelSearchCV, or load the rows"
        )
    if not isinstance(get_criterion(search.criterion), ByRow | None):
        raise ValueError(
            f"criterion={search.criterion!r} needs all rows in memory, but they are streamed; "
            f"choose by {', '.join(BY_ROW)}, or by the score of the folds, criterion='cv', or load "
            "the rows"
        )


def check_model(one: CandidateModel, criterion: Any) -> None:
    """Refuse an estimator, or a criterion for it, that streamed rows do not support."""
    model, spec = one.estimator, one.spec
    if spec.approximation is None:
        raise ValueError(
            "streamed rows need features that replace the kernel matrix; use "
            "approximation='nystrom' or 'fourier' in the estimator, or load the rows into memory"
        )
    if getattr(spec.loss, "relative", False):
        raise ValueError(
            "a width of 'mad' is a median over the targets of each training part, which are "
            "streamed; give threshold or delta in units of the target"
        )
    needs_gamma = takes_gamma(model.kernel) and isinstance(model.gamma, str)
    if spec.coding.class_weight is not None and needs_gamma:
        raise ValueError(
            f"gamma={model.gamma!r} depends on rows weighted by class_weight, which streamed rows "
            "do not have before the first pass; give numbers for gamma, such as those that "
            "onefit.default_grid computes from a sample of rows"
        )
    if criterion is not None:
        nothing = Problem(np.empty((0, 0)), np.empty((0, 1)), np.empty(0), spec.loss)
        criterion.check(nothing)
        criterion.check_features(nothing)


def check_levels(group: list[CandidateModel]) -> None:
    """Refuse candidates whose scores are of different kinds."""
    if len({len(levels_of(one.estimator)) > 1 for one in group}) > 1:
        raise ValueError(
            "some candidates have several levels and others have one, so their scores are of "
            "different kinds; search them separately"
        )


def metrics_of(scorers: dict[str, Any], one: CandidateModel) -> Metrics:
    """The metrics of a model: name -> (metric, sign)."""
    found: Metrics = {}
    for name, scorer in scorers.items():
        if len(levels_of(one.estimator)) > 1:
            found[name] = _of_levels(scorer, one.estimator, name), -1
            continue
        metric, sign = fast_metric(scorer, one.estimator)
        if metric is None:
            task = "classification" if is_classifier(one.estimator) else "regression"
            known = ", ".join(f.__name__ for f, m in ROW_METRICS.items() if m.task == task)
            raise ValueError(
                f"scoring={name!r} is not a function of means over rows, which streamed rows need; "
                f"use a scorer of {known}, or a onefit.scoring.Metric"
            )
        found[name] = metric, sign
    return found


def _of_levels(scorer: Any, model: Any, name: str) -> Metric:
    """The metric of a model of several levels: its own loss."""
    loss = model.spec().loss
    if hasattr(scorer, "_estimator") or (scorer is neg_pinball_loss and isinstance(loss, Quantile)):
        return loss_metric(loss.name, getattr(loss, "unrounded", loss.value))
    raise ValueError(
        f"scoring={name!r} needs one prediction per row, and models of several levels have more; "
        "streamed ones are scored by their own loss, with scoring=None"
    )


def check_survey(source: Source, survey: Surveyed, classes: Array | None) -> None:
    """Refuse folds without rows or weight, huge targets, and training parts of one class."""
    source.reading.cv.check_counts(survey.rows)
    if not np.isfinite(survey.whole.M).all():
        raise ValueError("the targets are so large that their squares overflow; rescale them")
    if (survey.weights <= 0).any():
        empty = int(np.flatnonzero(survey.weights <= 0)[0])
        raise ValueError(f"the rows of fold {empty} all have sample_weight 0; give them weight")
    for k in range(survey.rows.size if classes is not None else 0):
        others = survey.without(k)
        if (others.low == others.high).any():
            raise ValueError(
                f"without fold {k} a class is missing from training; use fewer folds, or other "
                "groups"
            )
