r"""Stacking: a weighted average of the candidates of one search.

A search computes the exact held-out predictions of all of its candidates and keeps the winner. The
average of several candidates often predicts better than the best of them (Wolpert 1992, "Stacked
generalization"; Breiman 1996, "Stacked regressions"), and its held-out predictions are known too:
F is the (n, C) matrix of the candidates' held-out predictions, row by row; the model w'f, which
averages the candidates with fixed weights w, has the held-out predictions F w, without a refit.

**Weights** are learned from the residuals F - y, see :mod:`onefit.stack_weights`.

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
  trained on fold k.
- Nested cross-validation of the whole stack (``nested=True``). For every fold k, the weights come
  from the rows outside k, predicted by models trained without their own fold j and without k, and
  the fold is predicted by F w^(k). No target of the fold enters its prediction. The models trained
  without the folds j and k are those of splits that leave out both, and one eigendecomposition of
  the kernel matrix gives the predictions of all K (K - 1) / 2 splits and lams (for losses other
  than the squared one, Newton steps from the fits to all rows). No stack is refitted. The error is
  pessimistic by what the weights lose to models of fewer rows.

Kernels and candidates are fixed on all rows, as in the search. A grid does not depend on the
targets; the lams that refine an interval and the ends of a gradient search do, and neither estimate
accounts for that.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from onefit._types import Array
from onefit._validation import check_choice, check_weights
from onefit.estimators import KernelRegressor
from onefit.estimators.accepted import check_exact_kernel
from onefit.folds import Folds
from onefit.heldout import Eigen, Exact
from onefit.kernels import number_type
from onefit.linalg import is_elsewhere
from onefit.quantiles import levels_of
from onefit.search.grid import Job, candidate_models, jobs
from onefit.stack_weights import stack_weights

__all__ = ["KernelStack", "stack"]

LOSSES = ("squared", "huber")


class KernelStack(RegressorMixin, BaseEstimator):
    """Average the candidates of a search, with weights from their held-out predictions.

    For one target. The candidates may differ in kernel, lam and loss, except that levels of
    quantiles and expectiles, approximations and pipelines are refused; the splits must test every
    row once, as KFold and GroupKFold do. Candidates whose held-out predictions are not exact
    have weight zero.

    Parameters
    ----------
    search : KernelSearchCV
        Of a KernelRegressor; cloned.
    loss : {"squared", "huber"}, default="squared"
        What the weights minimise. "huber" gives rows with large residuals less weight.
    nested : bool, default=False
        Whether to compute the nested error, which takes a few times as long as the search.
    random_state : int, default=0
        For the bootstrap samples from which the weights are learned.

    Attributes
    ----------
    search_ : KernelSearchCV
        Fitted.
    weights_ : array of shape (n_candidates,)
        The weight of every candidate, in the order of ``search_.cv_results_["params"]``.
    estimators_ : list of KernelRegressor
        One for each kernel; their predictions add up to those of the stack. Their parameter
        ``lam`` is not used.
    heldout_predictions_ : array of shape (n,)
        Held-out predictions of the stack with its weights, which were learned from these rows.
    crossfit_predictions_, crossfit_error_ : array of shape (n,); float
        Every row predicted with weights from the other folds, and the root mean squared error.
    nested_predictions_, nested_error_ : array of shape (n,); float
        Of nested cross-validation, with ``nested=True``.
    best_error_ : float
        Root mean squared error of the held-out predictions of the best candidate: the smallest of
        all candidates, thus optimistic.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    See Also
    --------
    stack : the same for a search that is fitted already.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from onefit import KernelRegressor, KernelSearchCV
    >>> from onefit.stacking import KernelStack
    >>> X, y = make_friedman1(100, n_features=5, noise=3.0, random_state=0)
    >>> grid = {"kernel": ["rbf", "laplacian"], "gamma": [0.1, 0.3, 1.0], "lam": [1e-3, 1e-2]}
    >>> model = KernelStack(KernelSearchCV(KernelRegressor(), grid)).fit(X, y)
    >>> X_new, y_new = make_friedman1(1000, n_features=5, random_state=1)
    >>> bool(model.score(X_new, y_new) > model.search_.score(X_new, y_new))
    True
    """

    def __init__(
        self, search: Any, *, loss: str = "squared", nested: bool = False, random_state: int = 0
    ) -> None:
        self.search = search
        self.loss = loss
        self.nested = nested
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.search)
        tags.input_tags = inner.input_tags
        return tags

    def fit(self, X: Any, y: Any, **params: Any) -> KernelStack:
        """Fit the search, learn the weights, and fit the candidates that have weight.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or (n, n) when precomputed
        y : array of shape (n,)
        **params
            ``sample_weight`` and ``groups`` for the search.

        Returns
        -------
        self
        """
        check_choice("loss", self.loss, LOSSES)
        _check_estimator(self.search)
        return self._stack(clone(self.search).fit(X, y, **params), X, y)

    def _stack(self, search: Any, X: Any, y: Any) -> KernelStack:
        rows = _Candidates(search, X, y)
        F, y, s = rows.predictions, rows.y, rows.s
        weights = self._learn(F, rows)
        heldout = F @ weights
        crossfit = np.empty_like(y)
        for test in rows.folds.test:
            others = _without(rows.folds.n, test)
            crossfit[test] = F[test] @ self._learn(F, rows, others)
        for name in ("nested_predictions_", "nested_error_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if self.nested:
            self.nested_predictions_ = self._nested(rows)
            self.nested_error_ = _root_mean_square(self.nested_predictions_ - y, s)
        self.estimators_ = rows.fit(weights)
        self.search_, self.heldout_predictions_, self.crossfit_predictions_ = (
            search, heldout, crossfit,
        )  # fmt: skip
        self.weights_ = np.zeros(len(search.cv_results_["params"]))
        self.weights_[rows.indices] = weights
        self.crossfit_error_ = _root_mean_square(crossfit - y, s)
        self.best_error_ = min(_root_mean_square(one - y, s) for one in F.T)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def _learn(self, F: Array, rows: _Candidates, some: Any = slice(None)) -> Array:
        """Weights from some of the rows."""
        residuals = F[some] - rows.y[some, None]
        return stack_weights(residuals, rows.s[some], self.loss, self.random_state)

    def _nested(self, rows: _Candidates) -> Array:
        """Held-out predictions of a stack whose weights never saw the fold, nor did its models."""
        folds, found = rows.folds, np.empty_like(rows.y)
        if len(folds) < 3:
            raise ValueError(f"nested needs at least 3 folds, got {len(folds)}; raise cv")
        pairs = rows.predictions_without_pairs()
        for k, test in enumerate(folds.test):
            others = _without(folds.n, test)
            found[test] = rows.predictions[test] @ self._learn(pairs[k], rows, others)
        return np.asarray(found)

    def predict(self, X: Any) -> Array:
        """Predictions for the rows of X, the sum of those of ``estimators_``."""
        check_is_fitted(self)
        total: Any = sum(one.predict(X) for one in self.estimators_)
        return np.asarray(total)


def stack(
    search: Any,
    X: Any,
    y: Any,
    *,
    loss: str = "squared",
    nested: bool = False,
    random_state: int = 0,
) -> KernelStack:
    """A stack of the candidates of a fitted search, which is not fitted again.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted to X and y; its sample weights are used. Left as it is.
    X, y
        What the search was fitted to.
    loss, nested, random_state
        See :class:`KernelStack`.

    Returns
    -------
    KernelStack
        Fitted.
    """
    check_choice("loss", loss, LOSSES)
    _check_estimator(search)
    check_is_fitted(search, "cv_results_")
    model = KernelStack(clone(search), loss=loss, nested=nested, random_state=random_state)
    return model._stack(search, X, y)


class _Candidates:
    """Rows, and the candidates of a fitted search with exact held-out predictions.

    Attributes
    ----------
    indices : array of int
        The candidates.
    predictions : (n, C) array
    y, s : (n,) arrays
        Targets and sample weights.
    folds : Folds
    """

    def __init__(self, search: Any, X: Any, y: Any) -> None:
        params, exact = search.cv_results_["params"], search.cv_results_["exact"]
        models = candidate_models(search.estimator, params)
        for one in models:
            _check_member(one.estimator)
        _check_rows(X)
        held = search.heldout(0)
        self.y = column_or_1d(y, dtype=np.float64, warn=True)
        check_consistent_length(X, self.y)
        if not np.array_equal(np.ravel(np.asarray(held.targets, dtype=np.float64)), self.y):
            raise ValueError("y differs from the targets that the search was fitted to; pass those")
        self.folds: Folds = held.folds
        if not self.folds.is_partition:
            raise ValueError(
                "stacking needs splits that test every row once, such as KFold(5, shuffle=True); "
                f"the {len(self.folds)} splits of this search do not"
            )
        F = np.column_stack([search.heldout(i).predictions for i in range(len(params))])
        self.indices = np.flatnonzero(exact & np.isfinite(F).all(axis=0))
        if not self.indices.size:
            raise ValueError(
                "no candidate of the search has exact held-out predictions; search with "
                f"method='auto' or 'exact', not {search.method!r}"
            )
        self.predictions = F[:, self.indices].astype(np.float64)
        self._estimator, self._params = search.estimator, params
        first = models[0].estimator
        self._X = first._validate_X(X, ensure_min_samples=2)
        self._Y = first._code_targets(self.y, number_type(self._X))
        self._s = check_weights(held.sample_weight, self._X)
        self.s = self._s.astype(np.float64)
        self._first = first

    def _jobs(self, places: Array) -> list[Job]:
        """Some candidates, grouped by kernel; the indices of a model are places in `indices`."""
        params = [self._params[self.indices[i]] for i in places]
        group = candidate_models(self._estimator, params)
        for one in group:
            one.estimator._copy_data_attributes(self._first)
        return jobs(group, self._X, self._Y, self._s)

    def fit(self, weights: Array) -> list[KernelRegressor]:
        """For each kernel the weighted sum of its candidates, fitted to all rows."""
        places = np.flatnonzero(weights)
        return [self._fit_kernel(job, weights[places]) for job in self._jobs(places)]

    def _fit_kernel(self, job: Job, weights: Array) -> KernelRegressor:
        coef, intercept, error = np.zeros_like(self._Y), np.zeros(1), 0.0
        for model in job.models:
            found = model.estimator
            problem = found._make_problem(self._X, self._Y, self._s)
            for i, lam in zip(model.indices, model.lams, strict=True):
                found.lam = lam
                loss = found._solve(problem)
                coef += weights[i] * found.dual_coef_
                intercept = intercept + weights[i] * found.intercept_
                error += weights[i] * found.error_
        found.dual_coef_, found.intercept_, found.error_ = coef, intercept, error
        found.support_ = np.flatnonzero(coef.any(axis=1))
        found._finish(loss)
        return found  # type: ignore[no-any-return]

    def predictions_without_pairs(self) -> Array:
        """P[k, i, c]: row i of fold j predicted without the folds j and k; NaN where j = k."""
        folds, K = self.folds, len(self.folds)
        pairs = list(combinations(range(K), 2))
        left_out = [np.concatenate([folds.test[j], folds.test[k]]) for j, k in pairs]
        double = Folds(folds.n, [_without(folds.n, rows) for rows in left_out], left_out)
        P = np.full((K, folds.n, self.indices.size), np.nan)
        for job in self._jobs(np.arange(self.indices.size)):
            for model in job.models:
                problem = model.estimator._make_problem(self._X, self._Y, self._s)
                method = Eigen() if problem.quadratic else Exact()
                path = method.prepare(problem, double).predict(np.array(model.lams))
                for place, (j, k) in enumerate(pairs):
                    values, size = path.values[:, double.place(place), 0].T, folds.test[j].size
                    columns = np.array(model.indices)
                    P[k, folds.test[j][:, None], columns] = values[:size]
                    P[j, folds.test[k][:, None], columns] = values[size:]
        return P


def _without(n: int, rows: Array) -> Array:
    return np.setdiff1d(np.arange(n), rows)


def _root_mean_square(residuals: Array, s: Array) -> float:
    return float(np.sqrt(s @ residuals**2 / s.sum()))


def _check_estimator(search: Any) -> None:
    estimator = getattr(search, "estimator", None)
    if not hasattr(search, "heldout") or estimator is None:
        raise TypeError(f"stacking needs a KernelSearchCV, got {type(search).__name__}")
    if not isinstance(estimator, KernelRegressor):
        raise TypeError(
            f"stacking needs a search over a KernelRegressor, not over a "
            f"{type(estimator).__name__}; of a pipeline, search the last step on transformed rows"
        )


def _check_member(estimator: KernelRegressor) -> None:
    check_exact_kernel(estimator, "stacking", "take approximation=None")
    if levels_of(estimator):
        raise ValueError(
            f"stacking averages estimates of one value, not quantiles or expectiles: take loss="
            f"{estimator.loss!r} out of the search"
        )


def _check_rows(X: Any) -> None:
    if is_elsewhere(X):
        raise ValueError("stacking computes on the host; pass X as a NumPy array")
