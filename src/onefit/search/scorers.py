"""Scores from held-out decision values, with no refit.

A :class:`onefit.scoring.Metric` is computed for all splits and lambdas at once: one that is given
as scoring, and those of scikit-learn in :data:`onefit.scoring.ROW_METRICS`. Any other scorer is
called as scikit-learn would call it, once a split, with the estimator itself: only its decision
values are looked up instead of computed. A scorer that needs more than decision
values is refused after a trial, before any kernel matrix is built.

**Scores as intervals.** Every held-out value u comes with a bound e on |u - u*|, u* being that of
the honest refit, so that the statistic of every row is known within ``ends`` of the metric:

- squared and absolute errors lie between those of max(|y - u| - e, 0) and |y - u| + e;
- a label is in doubt only if the decision could change, that is if |u| <= e, or with several
  classes if its own value and the largest other are within 2 e. A fold without such rows has an
  exact error rate however rough its values are.

Means, weighted means, medians and pooled scores over splits never fall when a split's score rises,
so their ends are those of the splits' ends. Metrics without ``ends`` have no interval.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import accuracy_score, check_scoring, r2_score
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from onefit._indexing import n_rows, select_params, select_rows, split_rows
from onefit._types import Mask
from onefit._validation import takes_weight
from onefit.estimators import KernelClassifier, KernelRegressor
from onefit.folds import Folds
from onefit.quantiles import levels_of
from onefit.scoring import ROW_METRICS, Metric, Truth

Array = NDArray[Any]

__all__ = [
    "FitInputs", "Part", "Scorers", "Scoring", "check_defined", "fast_metric", "look_up",
]  # fmt: skip


#: the metrics of the estimators' own scores of one prediction per target; models of several levels
#: have the pinball loss
DEFAULTS = {
    RegressorMixin.score: r2_score,
    KernelRegressor.score: r2_score,
    ClassifierMixin.score: accuracy_score,
    KernelClassifier.score: accuracy_score,
}


@dataclass(frozen=True)
class Scorers:
    """The scorers of a search.

    Attributes
    ----------
    table : name -> scorer
        One alone has the name "score", whatever the names of the scores that it returns.
    named : bool
        Whether the caller gave names.
    """

    table: dict[str, Any]
    named: bool = False

    @classmethod
    def of(cls, estimator: Any, scoring: Any) -> Scorers:
        """The scorers that scikit-learn makes of ``scoring``."""
        if callable(scoring):
            return cls({"score": scoring})
        alone = check_scoring(estimator, scoring)  # refuses what it does not know
        if scoring is None or isinstance(scoring, str):
            return cls({"score": alone})
        each = scoring if isinstance(scoring, Mapping) else {name: name for name in scoring}
        table = {name: check_scoring(estimator, one) for name, one in each.items()}
        return cls(table, named=True)

    @property
    def public(self) -> Any:
        """The attribute ``scorer_`` of scikit-learn's searches."""
        return self.table if self.named else self.table["score"]

    def scorer(self, metric: str) -> Any:
        """The scorer that gives a score."""
        return self.table[metric if self.named else "score"]

    def only(self, metric: str) -> Scorers:
        """One of several scorers."""
        return Scorers({metric: self.table[metric]}, named=True) if self.named else self

    def get_metadata_routing(self) -> MetadataRouter:
        """The metadata that the scorers request."""
        mapping = MethodMapping().add(caller="score", callee="score")
        return MetadataRouter(owner=self).add(method_mapping=mapping, **self.table)

    def routed(self, params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Each scorer's own metadata."""
        if not self.named:
            return {"score": dict(params)}
        if get_config()["enable_metadata_routing"]:
            found = process_routing(self, "score", **params)
            return {name: dict(found[name].score) for name in self.table}
        return {name: dict(params) if takes_weight(one) else {} for name, one in self.table.items()}


def look_up(model: Any, values: Array) -> Any:
    """A copy of the model with known decision values, to be scored."""

    def decision(X: Any) -> Array:
        if n_rows(X) != values.shape[0]:
            raise ValueError(
                f"a scorer asked for predictions of {n_rows(X)} rows, but only those of the "
                f"{values.shape[0]} test rows that it was given are known"
            )
        return values

    return model._with_decision(decision)


@dataclass(frozen=True)
class Part:
    """Test rows that are scored together, as the caller gave them.

    Attributes
    ----------
    X, y : rows and targets
    place : slice
        Where they are among the test rows of all splits.
    params : name -> metadata of a scorer
    lacks_class : bool
        Whether some class of a classifier is not among them, so that a metric may be undefined.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    place: slice
    params: Mapping[str, Mapping[str, Any]] = field(repr=False)
    lacks_class: bool = False


@dataclass(frozen=True)
class Scoring:
    """Scorers and what they compare with, ready to be sent to a worker.

    Attributes
    ----------
    fast : name -> (metric, sign, truth)
    slow : name -> scorer
    parts : list of Part
        One per split; only the slow scorers use them.
    names : list of str
        All metrics, in the caller's order.
    """

    fast: dict[str, tuple[Metric, int, Truth]]
    slow: dict[str, Any]
    parts: list[Part] = field(repr=False)
    names: list[str]

    @classmethod
    def nothing(cls) -> Scoring:
        """No scores: of a part of the splits, whose scores are made later."""
        return cls({}, {}, [], [])

    def score(self, model: Any, values: Array, done: Mask | None = None) -> dict[str, Array]:
        """One score a lambda and split, (L, k), for each metric; NaN at lambdas that failed.

        ``done`` says which have values, None that all have.
        """
        done = np.ones(len(values), dtype=bool) if done is None else done
        if not done.any():
            return {}
        values, found = values if done.all() else values[done], {}
        for name, (metric, sign, truth) in self.fast.items():
            each = metric.values(truth, values.astype(np.float64, copy=False))
            found[name] = (sign * each).mean(axis=2)
        if self.slow:
            rows = [self._call(look_up(model, u[p.place]), p) for u in values for p in self.parts]
            shape = values.shape[0], len(self.parts)
            found |= {name: np.array([r[name] for r in rows]).reshape(shape) for name in rows[0]}
        scores = {name: np.full((done.size, found[name].shape[1]), np.nan) for name in self.names}
        for name, one in scores.items():
            one[done] = found[name]
        return scores

    def ends(self, values: Array, error: Array) -> dict[str, Array]:
        """The least and the largest score at every lambda and split, (2, L, k), by metric.

        Parameters
        ----------
        values : (L, N, q) array
        error : (L, N, 1) array
            Bounds on their errors.
        """
        found = {}
        for name, (metric, sign, truth) in self.fast.items():
            if metric.ends is not None:
                low, high = (one.mean(axis=2) for one in metric.interval(truth, values, error))
                found[name] = np.stack((low, high) if sign > 0 else (-high, -low))
        return found

    def trial(self, model: Any, values: Array, part: Part) -> list[str]:
        """Score plausible values of some rows once, and return the slow metrics' names."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return list(self._call(look_up(model, values[part.place]), part))
        except Exception as error:
            if "pos_label" in str(error):
                raise ValueError(name_the_positive(model, self.slow.values())) from error
            raise ValueError(_refusal(list(self.slow.values()), model, error)) from error

    def _call(self, proxy: Any, part: Part) -> dict[str, float]:
        scores: dict[str, float] = {}
        for name, scorer in self.slow.items():
            try:
                found = scorer(proxy, part.X, part.y, **part.params[name])
            except ValueError:
                if not part.lacks_class:
                    raise
                found = np.nan  # as in scikit-learn's searches
            found = found if isinstance(found, dict) else {name: found}
            scores |= {key: _number(value, key) for key, value in found.items()}
        return scores


@dataclass(frozen=True)
class FitInputs:
    """What the caller gave to a search.

    Attributes
    ----------
    scorers : Scorers
    X, y, weight : rows, targets, weights of the fits or None
    params : metadata of the scorers
    groups : (n,) array or None
        The group of each row, where rows of a group are not independent.
    """

    scorers: Scorers
    X: Any = field(repr=False)
    y: Any = field(repr=False)
    weight: Any = field(repr=False)
    params: Mapping[str, Any] = field(repr=False)
    groups: Any = field(repr=False)

    def only(self, metric: str) -> FitInputs:
        """The same with one of several scorers."""
        return replace(self, scorers=self.scorers.only(metric))

    @cached_property
    def routed(self) -> dict[str, dict[str, Any]]:
        """Each scorer's own metadata."""
        return self.scorers.routed(self.params)

    def parts(self, model: Any, folds: Folds, pooled: bool) -> list[Part]:
        """The test rows of each split, or of all splits together."""
        X, routed = self.X, self.routed

        def part(X_test: Any, y_test: Any, place: slice, rows: Array) -> Part:
            params = {name: select_params(X, one, rows) for name, one in routed.items()}
            lacks = is_classifier(model) and np.unique(y_test).size < len(model.classes_)
            return Part(X_test, y_test, place, params, lacks)

        if pooled:
            rows = folds.rows
            return [
                part(select_rows(X, rows), select_rows(self.y, rows), slice(0, rows.size), rows)
            ]
        return [
            part(*split_rows(model, X, self.y, rows, folds.train[k]), folds.place(k), rows)
            for k, rows in enumerate(folds.test)
        ]

    def scoring(
        self,
        model: Any,
        folds: Folds,
        pooled: bool = False,
        undefined: bool = False,
        plain: bool = True,
    ) -> Scoring:
        """Sort the scorers into fast and slow ones, and cut the sample for them.

        Parameters
        ----------
        model : fitted as far as :func:`look_up` needs it
        folds : Folds
            In the caller's order.
        pooled : bool, default=False
            Whether all test rows are one part.
        undefined : bool, default=False
            Whether a metric may be undefined on a split (NaN), since the splits do not decide.
        plain : bool, default=True
            Whether held-out values have the columns of the targets, as fast metrics take for
            granted.
        """
        table, y = self.scorers.table, self.y
        starts = np.zeros(1, dtype=np.intp) if pooled else folds.offsets[:-1]
        fast: dict[str, tuple[Metric, int, Truth]] = {}
        for name, scorer in table.items():
            metric, sign = fast_metric(scorer, model) if plain else (None, 1)
            if metric is not None and set(self.routed[name]) <= {"sample_weight"}:
                weights = self.routed[name].get("sample_weight")
                fast[name] = metric, sign, _truth(model, y, weights, folds, starts, name)
                if not (pooled or undefined):
                    check_defined(metric, np.diff(folds.offsets), name)
        slow = {name: scorer for name, scorer in table.items() if name not in fast}
        if not slow:
            return Scoring(fast, slow, [], list(table))
        parts = self.parts(model, folds, pooled)
        whole = next((one for one in parts if not one.lacks_class), None)
        if whole is None:
            (whole,) = self.parts(model, folds, pooled=True)
        scoring = Scoring(fast, slow, parts, list(table))
        found = scoring.trial(model, _plausible(model, y, folds), whole)
        return scoring if self.scorers.named else replace(scoring, names=found)

    def pooled(self, folds: Folds, estimator: Any) -> dict[str, float]:
        """Scores of an estimator that predicts all test rows, one split after another."""
        (part,) = self.parts(estimator, folds, pooled=True)
        table = self.scorers.table
        return Scoring({}, table, [part], list(table))._call(estimator, part)


def name_the_positive(model: Any, scorers: Iterable[Any]) -> str:
    """Advice for a metric that needs to know which of two classes is the positive one."""
    asking = [one for one in scorers if hasattr(one, "_score_func")]
    scorer: Any = next((one for one in asking if _asks_for_label(one)), None)
    metric = scorer._score_func.__name__ if scorer else "f1_score"
    classes, given = model.classes_.tolist(), scorer._kwargs if scorer else {}
    averaged = given.get("average", "binary") != "binary"  # and scikit-learn asks for it
    options = [metric, f"pos_label={None if averaged else classes[-1]!r}"]
    options += [f"{name}={value!r}" for name, value in given.items()]
    if scorer is not None and scorer._response_method != "predict":
        options.append(f"response_method={scorer._response_method!r}")
    if scorer is not None and scorer._sign < 0:
        options.append("greater_is_better=False")
    remedy = f"use scoring=make_scorer({', '.join(options)}) with sklearn.metrics.make_scorer"
    if not averaged:
        remedy += ", or call the positive class 1 and the other 0 in the data"
    return (
        f"scoring by {metric} asks which class is the positive one, and takes 1 for it, but the "
        f"classes are {classes!r}: {remedy}"
    )


def _asks_for_label(scorer: Any) -> bool:
    """Whether a scorer of scikit-learn's has a metric of one of two classes, not named yet."""
    known = signature(scorer._score_func).parameters
    return "pos_label" in known and "pos_label" not in scorer._kwargs


def _refusal(scorers: list[Any], model: Any, error: Exception) -> str:
    """The reason why a scorer cannot be used, with advice."""
    needs = "predict_proba" in str(error) and is_classifier(model)
    if len(levels_of(model)) > 1:
        advice = "scoring=onefit.quantiles.neg_pinball_loss, for several levels at once"
    else:
        advice = (
            "a scorer that needs predict or decision_function alone, or a loss that gives what it "
            "needs"
        )
    scores = "roc_auc, accuracy" if needs and len(model.classes_) == 2 else "accuracy"
    remedy = (
        "Probabilities of this loss come after the search: choose by a score of decision values or "
        f"labels ({scores}), then search.calibrate('sigmoid') makes a classifier with "
        "probabilities of the winner; or use loss='log'"
        if needs and not hasattr(model, "predict_proba")
        else f"Choose {advice}"
    )
    return (
        f"scoring={scorers!r} cannot be computed from held-out decision values of "
        f"{type(model).__name__}(loss={getattr(model, 'loss', None)!r}): "
        f"{str(error).rstrip('.')}. {remedy}"
    )


def _number(value: Any, name: str) -> float:
    value = value.item() if hasattr(value, "item") and np.size(value) == 1 else value
    if not isinstance(value, numbers.Number):
        raise ValueError(f"scoring must return a number, got {value!r} for {name!r}")
    return float(value)  # type: ignore[arg-type]


def fast_metric(scorer: Any, model: Any) -> tuple[Metric | None, int]:
    """The metric behind a scorer and its sign, or None."""
    task = "classification" if is_classifier(model) else "regression"
    if isinstance(scorer, Metric):
        if scorer.task != task:
            raise ValueError(
                f"scoring={scorer!r} is for {scorer.task}, but {type(model).__name__} is for {task}"
            )
        return scorer, scorer.sign
    func = getattr(scorer, "_score_func", None)
    if func is None and hasattr(scorer, "_estimator"):
        func = DEFAULTS.get(type(model).score)
    elif getattr(scorer, "_kwargs", None) or getattr(scorer, "_response_method", "") != "predict":
        return None, 1
    metric = ROW_METRICS.get(func)
    fits = metric is not None and metric.task == task
    return (metric if fits else None), int(getattr(scorer, "_sign", 1))


def _truth(model: Any, y: Any, weights: Any, folds: Folds, starts: Array, name: str) -> Truth:
    if is_classifier(model):
        codes = np.searchsorted(model.classes_, np.asarray(y).ravel())
        target: Array = codes[:, None]
    else:
        target = np.asarray(y, dtype=np.float64).reshape(folds.n, -1)
    w = np.ones(folds.n) if weights is None else np.asarray(weights, dtype=np.float64)
    truth = Truth(target[folds.rows], starts, w[folds.rows])
    empty = np.flatnonzero(np.add.reduceat(truth.weights, starts) <= 0)
    if empty.size:
        raise ValueError(
            f"the test rows of split {empty[0]} all have sample_weight 0, so {name!r} is undefined "
            "there; use another splitter, or give them weight"
        )
    return truth


def check_defined(metric: Metric, sizes: Array, name: str) -> None:
    """Refuse metrics that divide by the variance of the targets where a split has one row."""
    if metric.needs_variance and int(sizes.min()) < 2:
        raise ValueError(
            f"scoring={name!r} is {metric.name}, which is undefined on a test set of one row, and "
            "a split has one; use aggregate='pooled', or scoring='neg_mean_squared_error'"
        )


def _plausible(model: Any, y: Any, folds: Folds) -> Array:
    """Decision values for a trial: the mean of y, or perfect margins."""
    Y = model.spec().coding.columns(model._code_targets(y, np.float64))
    if is_classifier(model):
        return np.asarray(Y[folds.rows])
    return np.asarray(np.broadcast_to(Y.mean(axis=0), (folds.rows.size, Y.shape[1])))
