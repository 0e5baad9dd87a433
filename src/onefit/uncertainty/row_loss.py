"""Losses of single rows: a metric is the mean of one, or a function of this mean."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer

from onefit._validation import check_choice
from onefit.criteria.pointwise import POINTWISE, Pointwise
from onefit.quantiles import levels_of, neg_pinball_loss, pinball_losses
from onefit.scoring.known import KnownScorer
from onefit.search.preprocess import kernel_estimator

Array = NDArray[Any]

__all__ = ["RowLoss", "pointwise_of"]


class RowLoss(NamedTuple):
    """A loss of targets and predictions, row by row.

    Attributes
    ----------
    name : str
    function : callable
    response : str
        The method of an estimator that gives the predictions.
    """

    name: str
    function: Pointwise
    response: str = "predict"


def _wrong(y: Array, labels: Array) -> Array:
    return np.asarray(y != labels)


def _balanced(y: Array, labels: Array, classes: Array, weights: Array) -> Array:
    return np.asarray(weights[np.searchsorted(classes, y)] * (y != labels))


def _log(y: Array, probabilities: Array, classes: Array) -> Array:
    own = probabilities[np.arange(len(y)), np.searchsorted(classes, y)]
    return np.asarray(-np.log(np.maximum(own, np.finfo(own.dtype).eps)))


def _brier(y: Array, probabilities: Array, classes: Array) -> Array:
    square = np.square(probabilities - (y[:, None] == classes))
    return np.asarray(square.sum(axis=1) / (2.0 if len(classes) == 2 else 1.0))


#: name -> function of targets and predictions; of labels, not of decision values, for classifiers
ROW_LOSSES: dict[str, RowLoss] = {
    "squared": RowLoss("squared", POINTWISE["squared"]),
    "absolute": RowLoss("absolute", POINTWISE["absolute"]),
    "zero_one": RowLoss("zero_one", _wrong),
}


def pointwise_of(loss: str | Pointwise | None, search: Any, y: Any) -> RowLoss:
    """The given loss, or that of the scoring of the search.

    Parameters
    ----------
    loss : str, callable or None
    search : a search with a ``scoring``, or any estimator
    y : targets
    """
    if isinstance(loss, str):
        check_choice("loss", loss, ROW_LOSSES)
        return ROW_LOSSES[loss]
    if loss is not None:
        return RowLoss(getattr(loss, "__name__", type(loss).__name__), loss)
    scoring = _scoring_of(search)
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    found = _of_scorer(scorer, search, np.ravel(np.asarray(y)))
    if found is None:
        raise ValueError(
            f"scoring={scoring!r} of the search is not known to be a mean over rows, which "
            f"nested_cv needs; set the loss of a row by loss="
            f"{' or '.join(map(repr, ROW_LOSSES))} or a function of targets and predictions"
        )
    return found


def _scoring_of(search: Any) -> Any:
    """The scoring by which a search chooses; None for the estimator's own, or without a search."""
    # an automatic estimator has short names of its own, and resolves them
    scoring = getattr(search, "scoring_", getattr(search, "scoring", None))
    if not isinstance(scoring, (list, tuple, set, dict)):
        return scoring
    named = getattr(search, "refit", None)
    return scoring.get(named) if isinstance(scoring, dict) else named


def _of_scorer(scorer: Any, search: Any, y: Array) -> RowLoss | None:
    model, known = kernel_estimator(getattr(search, "estimator", search)), KnownScorer.of(scorer)
    levels, classes = levels_of(model), is_classifier(search)
    several = known.own and len(levels) > 1
    if several and model.spec().loss.name != "quantile":
        loss = model.spec().loss
        return RowLoss(loss.name, lambda y, u: loss.value(y.reshape(-1, 1), u))
    if scorer is neg_pinball_loss or several:
        return RowLoss("pinball", partial(pinball_losses, level=levels))
    if known.own:
        return ROW_LOSSES["zero_one" if classes else "squared"]
    name, options = known.metric.loss, set(known.options) - {"pos_label"}
    if not known.metric.of_mean or options - ({"alpha"} if name == "pinball" else set()):
        return None
    if name == "pinball":
        level = known.options.get("alpha", 0.5)
        return RowLoss("pinball", partial(pinball_losses, level=level))
    return ROW_LOSSES.get(name) or (_of_classes(name, y) if classes else None)


def _of_classes(name: str, y: Array) -> RowLoss:
    classes, counts = np.unique(y, return_counts=True)
    if name == "balanced":
        weights = y.size / (classes.size * counts)
        return RowLoss(name, partial(_balanced, classes=classes, weights=weights))
    function = {"log": _log, "brier": _brier}[name]
    return RowLoss(name, partial(function, classes=classes), "predict_proba")
