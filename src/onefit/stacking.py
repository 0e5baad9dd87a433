r"""Stacking: a weighted average of the candidates of a search.

A search computes the exact held-out predictions of all of its candidates and keeps the winner. The
average of several candidates often predicts better than the best of them (Wolpert 1992, "Stacked
generalization"; Breiman 1996, "Stacked regressions"), and its held-out predictions are known too:
F is the (n, C) matrix of the candidates' held-out predictions, row by row; the model w'f, which
averages the candidates with fixed weights w, has the held-out predictions F w, without a refit.

**Weights** are learned from the residuals F - y, see :mod:`onefit.stack_weights`. The targets of a
classifier are -1 and +1, a column for each of more than two classes, and rows weigh as in its fits
(``class_weight``). With the squared loss, (1 + f) / 2 estimates a probability, and the squared
error is four times the Brier score. With the loss "log", decision values are log-odds: one step of
Newton's method from the best candidate f*, as in iteratively reweighted least squares, replaces
targets by z = f* - V'(f*) / V''(f*) and multiplies the weights of the rows by V''(f*).

**One coefficient vector for each kernel.** Candidate c = (g, l), with kernel g and parameters l
(lam, a loss), predicts k_g(x, X) a_c + b_c. So

    f(x) = sum_c w_c (k_g(x, X) a_c + b_c) = sum_g k_g(x, X) (sum_l w_gl a_gl) + sum_c w_c b_c,

and a prediction costs what its kernels cost, however many lams and losses there are. Only the
candidates with positive weight are fitted to all rows.

**Errors.** The error of F w on the rows that w was learned from is optimistic, as the best score of
a search is. Two estimates are not:

- Cross-fitting. For every fold k learn w^(k) from the rows outside the fold, and predict the fold
  by F w^(k). No target of the fold enters its weights through the rows that are compared. It still
  enters through the models: a held-out prediction of a row of fold j comes from a model that was
  trained on fold k. These are the held-out values of the stack: its score, its headline, its
  calibration and its intervals are made from them.
- Nested cross-validation of the whole stack (``nested=True``). For every fold k, the weights come
  from the rows outside k, predicted by models trained without their own fold j and without k, and
  the fold is predicted by F w^(k). No target of the fold enters its prediction. The models trained
  without the folds j and k are those of a search with K (K - 1) / 2 splits that leave out both. No
  stack is refitted. The error is pessimistic by what the weights lose to models of fewer rows.

Kernels and candidates are fixed on all rows, as in the search. A grid does not depend on the
targets; the lams that refine an interval and the ends of a gradient search do, and neither estimate
accounts for that. Steps of a pipeline are fitted in every training part, and these estimates do
account for what they learn.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from onefit._format import count
from onefit._types import Array
from onefit._validation import check_choice, check_weights
from onefit.estimators.stacked import StackedClassifier, StackedRegressor
from onefit.scoring.aggregate import aggregate
from onefit.search.inputs import choosing_metric, resolve_scorers, route
from onefit.search.preprocess import is_wrapped
from onefit.search.scorers import FitInputs
from onefit.stack_candidates import SearchCandidates, without
from onefit.stack_weights import stack_weights
from onefit.uncertainty.headline import judge

__all__ = ["Stack", "stack"]

LOSSES = ("squared", "huber")
#: the smallest weight that the curvature of the loss gives a row, in units of the largest
MIN_CURVATURE = 1e-3


@dataclass(frozen=True)
class Stack:
    """Weights, held-out predictions and errors of a stack.

    Attributes
    ----------
    weights : list of arrays
        For each search the weights of its candidates, in the order of ``cv_results_["params"]``.
    heldout_predictions : array of shape (n,) or (n, q)
        Of the stack with its weights, which were learned from these rows.
    crossfit_predictions, crossfit_error : array of shape (n,) or (n, q); float
        Every row predicted with weights from the other folds, and the root mean squared error; with
        the loss "log", whose decision values are log-odds, the mean log loss.
    best_error, best_params : float; dict
        Error of the held-out predictions of the best candidate of all searches, the smallest and
        thus optimistic; and its parameters.
    nested_predictions, nested_error : array and float, or None
        Of nested cross-validation.
    """

    weights: list[Array] = field(repr=False)
    heldout_predictions: Array = field(repr=False)
    crossfit_predictions: Array = field(repr=False)
    crossfit_error: float
    best_error: float
    best_params: dict[str, Any]
    nested_predictions: Array | None = field(repr=False, default=None)
    nested_error: float | None = None

    def describe(self, kernels: int) -> str:
        """The stack in a few words."""
        members = sum(int(np.count_nonzero(one)) for one in self.weights)
        return f"average of {count(members, 'candidate')} with {count(kernels, 'kernel')}"


def stack(
    search: Any,
    X: Any,
    y: Any,
    *,
    further: Any = (),
    loss: str = "squared",
    nested: bool = False,
    sample_weight: Any = None,
    random_state: int = 0,
) -> Any:
    """Average the candidates of a fitted search.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted to X and y, for one target and with one score; its splits must test every row once,
        as KFold and GroupKFold do. Not changed. Candidates may differ in kernel, lam and loss;
        quantiles, expectiles and approximations are refused, and candidates whose held-out
        predictions are not exact have weight zero.
    X, y
        The data of the search.
    further : sequence of KernelSearchCV, default=()
        More searches whose candidates enter the average, fitted to the same rows with the same
        splits; they may be over pipelines that end in a kernel estimator.
    loss : {"squared", "huber"}, default="squared"
        Loss that the weights minimise. With "huber", rows with large residuals have less weight.
    nested : bool, default=False
        Whether to compute the nested error, which takes a few times as long as the search.
    sample_weight : array of shape (n,), default=None
        None takes that of the search.
    random_state : int, default=0
        For the bootstrap samples from which the weights are learned.

    Returns
    -------
    KernelSearchCV
        A copy with the average as ``best_estimator_``, cross-fitted ``heldout_``, ``best_score_``
        and ``headline_``, and ``stack_``, a :class:`Stack`. ``cv_results_`` and ``best_params_``
        are those of the search.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from onefit import KernelRegressor, KernelSearchCV
    >>> from onefit.stacking import stack
    >>> X, y = make_friedman1(100, n_features=5, noise=3.0, random_state=0)
    >>> grid = {"kernel": ["rbf", "laplacian"], "gamma": [0.1, 0.3, 1.0], "lam": [1e-3, 1e-2]}
    >>> search = KernelSearchCV(KernelRegressor(), grid).fit(X, y)
    >>> X_new, y_new = make_friedman1(1000, n_features=5, random_state=1)
    >>> bool(stack(search, X, y).score(X_new, y_new) > search.score(X_new, y_new))
    True
    """
    check_choice("loss", loss, LOSSES)
    if is_wrapped(getattr(search, "estimator", None)):
        raise TypeError(
            "the winner that a stack replaces is a kernel estimator, and this search is over a "
            "pipeline; pass a search over a kernel estimator, and this one in further"
        )
    members = [SearchCandidates.of(one, X, y, sample_weight) for one in (search, *further)]
    weight = members[0].params.get("sample_weight", np.ones(members[0].folds.n))
    for one in members[1:]:
        one.search.heldout(0).known_weight(weight)
    rows = _Rows.of(members, y, loss, random_state)
    found = rows.learn(members, nested)
    bounds = np.sum(
        [one.errors(w[one.indices]) for one, w in zip(members, found.weights, strict=True)], axis=0
    )
    fitted = [
        model
        for one, w in zip(members, found.weights, strict=True)
        if w.any()
        for model in one.fit(w[one.indices])
    ]
    return _with_stack(search, X, y, members[0].params, found, fitted, bounds)


@dataclass(frozen=True)
class _Rows:
    """Held-out predictions of all candidates beside the targets of the columns."""

    F: Array
    Y: Array
    s: Array
    kernels: Array
    folds: Any
    loss: str
    log: Any
    random_state: int

    @classmethod
    def of(cls, members: list[SearchCandidates], y: Any, loss: str, random_state: int) -> _Rows:
        folds = members[0].folds
        for one in members[1:]:
            if len(one.folds) != len(folds) or any(
                not np.array_equal(a, b) for a, b in zip(folds.test, one.folds.test, strict=True)
            ):
                raise ValueError("the further searches have other splits; pass those of the first")
        best = members[0].search.best_estimator_
        Y = best._with_params()._code_targets(y, np.float64)
        weight = members[0].params.get("sample_weight")
        s = best.spec().coding.weights(Y, check_weights(weight, np.empty((len(Y), 1))))
        offsets = np.cumsum([0, *(one.kernels.max() + 1 for one in members)])
        kernels = [one.kernels + start for one, start in zip(members, offsets, strict=False)]
        own = best.spec().loss
        return cls(
            np.concatenate([one.predictions for one in members], axis=2), Y, s,
            np.concatenate(kernels), folds, loss, own if own.name == "log" else None, random_state,
        )  # fmt: skip

    def weights(self, F: Array, some: Any = slice(None)) -> Array:
        """Weights from some of the rows."""
        F, Y, s = F[some], self.Y[some], self.s[some]
        if self.log is not None:
            errors = np.einsum("i,iqc->c", s, self.log.value(Y[:, :, None], F))
            best = F[:, :, int(np.nanargmin(errors))]
            curvature = self.log.curvature(Y, best)
            curvature = np.maximum(curvature, MIN_CURVATURE * curvature.max())
            Y = best - self.log.gradient(Y, best) / curvature
            s = s[:, None] * curvature
        residuals = F - Y[:, :, None]
        return stack_weights(residuals, s, self.loss, self.random_state, self.kernels)

    def learn(self, members: list[SearchCandidates], nested: bool) -> Stack:
        """Weights, and the predictions of the stack for rows that it was not learned from."""
        weights, crossfit = self.weights(self.F), np.empty_like(self.Y)
        for test in self.folds.test:
            others = without(self.folds.n, test)
            crossfit[test] = self.F[test] @ self.weights(self.F, others)
        errors = [self._error(self.F[:, :, c]) for c in range(self.F.shape[2])]
        params = [one.search.cv_results_["params"][i] for one in members for i in one.indices]
        best = int(np.argmin(errors))
        double = self._nested(members) if nested else None
        sizes = [one.indices.size for one in members]
        split = []
        for one, own in zip(members, np.split(weights, np.cumsum(sizes)[:-1]), strict=True):
            split.append(np.zeros(len(one.search.cv_results_["params"])))
            split[-1][one.indices] = own
        return Stack(
            split,
            _flat(self.F @ weights),
            _flat(crossfit),
            self._error(crossfit),
            errors[best],
            params[best],
            None if double is None else _flat(double),
            None if double is None else self._error(double),
        )

    def _nested(self, members: list[SearchCandidates]) -> Array:
        """Held-out predictions of a stack whose weights never saw the fold, nor did its models."""
        folds, found = self.folds, np.empty_like(self.Y)
        if len(folds) < 3:
            raise ValueError(f"nested needs at least 3 folds, got {len(folds)}; raise cv")
        pairs = np.concatenate([one.without_pairs() for one in members], axis=3)
        for k, test in enumerate(folds.test):
            found[test] = self.F[test] @ self.weights(pairs[k], without(folds.n, test))
        return found

    def _error(self, predicted: Array) -> float:
        """Root mean squared error; of log-odds the mean log loss."""
        if self.log is not None:
            losses = self.log.value(self.Y, predicted).mean(axis=1)
            return float(self.s @ losses / self.s.sum())
        squares = ((predicted - self.Y) ** 2).mean(axis=1)
        return float(np.sqrt(self.s @ squares / self.s.sum()))


def _flat(values: Array) -> Array:
    return values[:, 0] if values.shape[1] == 1 else values


def _with_stack(
    search: Any,
    X: Any,
    y: Any,
    params: dict[str, Any],
    found: Stack,
    fitted: list[Any],
    bounds: Array,
) -> Any:
    """A copy of a search, with the stack as its winner."""
    best, folds = search.best_estimator_, search.heldout_.folds
    kind = StackedClassifier if is_classifier(best) else StackedRegressor
    model = kind.of(best, fitted, found.crossfit_predictions, folds)
    values = found.crossfit_predictions.reshape(folds.n, -1)[folds.rows]
    held = replace(
        search.heldout_, values=values, method="stack", error=bounds,
        exact=np.ones(len(folds), dtype=bool),
    )  # fmt: skip
    scorers = resolve_scorers(search)
    weight, groups = (params.get(name) for name in ("sample_weight", "groups"))
    given = FitInputs(scorers, X, y, weight, route(search, scorers, params).scorer.score, groups)
    scoring, pooled = (
        given.scoring(best, folds, pooled=whole, undefined=True) for whole in (False, True)
    )
    metric = choosing_metric(search, scorers, scoring.names)
    assert metric is not None
    splits = scoring.score(best, values[None])[metric]
    total = pooled.score(best, values[None])[metric][:, 0]
    headline = judge(given, scoring, best, metric, held, splits, 0, None)
    other = copy(search)
    other.best_estimator_, other.heldout_, other.stack_ = model, held, found
    sizes = np.diff(folds.offsets)
    other.best_score_ = float(aggregate(search.aggregate, splits, sizes, total)[0])
    vars(other).pop("headline_", None)
    if headline is not None:
        other.headline_ = headline
    return other
