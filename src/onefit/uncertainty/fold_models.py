"""Predictions of the models of all splits: what an interval needs of an estimator.

- A kernel estimator has them from one fit: for the squared loss as products with the inverse of the
  full sample (onefit.heldout.squared), for other losses as the ends of Newton steps from the full
  solution (onefit.heldout.leave_out), with features from sums over the rows.
- A pipeline fits its steps in every training part, so that every split has a kernel matrix of its
  own. It is fitted once per split, and once to all rows.
- Members of a stack (:mod:`onefit.stacking`) may have metrics that are learned in each training
  part. A stack has cross-fitted held-out residuals, but no model of a split that could predict a
  new row. Its interval is u(x) -/+ a quantile of these residuals, with u the prediction of the
  stack of all rows: cross-validated conformal prediction without the "+". No bound on its coverage
  is proven. The residuals are those of models of fewer rows, which makes the intervals rather too
  wide than too narrow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from onefit import linalg, plan
from onefit._indexing import n_rows, select_params, split_rows
from onefit._types import Array, Indices
from onefit.columns.fit import fit
from onefit.estimators import KernelRegressor
from onefit.features.feature_gram import FeatureGram
from onefit.features.held_out import GramFolds, PrimalExact
from onefit.features.in_memory import fit_features
from onefit.folds import Folds
from onefit.heldout import Block, Eigen, Exact
from onefit.kernels import Geometry
from onefit.problem import Problem, Solution
from onefit.progress import counted
from onefit.search.preprocess import kernel_estimator, metadata_of_fit
from onefit.uncertainty.conformal import LocalWidths, local_widths

__all__ = ["FoldPredictions", "of_kernel", "of_pipeline", "of_stack", "with_new_rows"]

#: matrices of n rows beside K that intervals hold at once; measured allocations of the squared loss
#: stay below (tests/test_conformal.py)
INTERVAL_MATRICES = 3.5
#: columns of n rows that they hold for every split and target, and for every new row
COLUMNS_PER_SPLIT, COLUMNS_PER_NEW_ROW = 3, 6


class FoldPredictions(NamedTuple):
    """Predictions of the model of all rows and of the models of the splits.

    Attributes
    ----------
    Y : (n, q) array
        Targets of the training rows, by column.
    full : (m, q) array
        Of new rows, by the model of all rows.
    held_out : (N, q) array
        Of the test rows of all splits, in the order of ``folds.rows``, each by the model of its
        split.
    new : (m, k, q) array
        Of new rows, by the model of every split; k is 1 where one model stands for all.
    widths : LocalWidths or None
    """

    Y: Array
    full: Array
    held_out: Array
    new: Array
    widths: LocalWidths | None = None

    @property
    def centred(self) -> FoldPredictions:
        """The same around the model of all rows, which stands for the models of the splits."""
        widths = None if self.widths is None else self.widths._replace(new=self.widths.full)
        return self._replace(new=self.full[:, None], widths=widths)


def of_kernel(
    model: Any, X: Any, y: Any, weight: Any, rows: Indices, folds: Folds, X_new: Any, local: bool
) -> FoldPredictions:
    """Predictions of a kernel estimator.

    Parameters
    ----------
    model : KernelRegressor
        Changed: its kernel and rows are set.
    X, y, weight : training rows, targets, sample weights or None
    rows : index array
        Rows of positive weight.
    folds : Folds
        Of these.
    X_new : rows
    local : bool
        Whether local widths are wanted.
    """
    problem = model._prepare(X, y, weight)
    if model.approximation is not None:
        return _of_features(model, problem, rows, folds, X_new)
    problem, K_new, X_new = with_new_rows(model, problem, rows, len(folds), X_new)
    lam, widths = float(model.lam), None
    if local:
        widths = local_widths(problem, folds, lam, K_new, model.kernel_.diag(X_new))
    left = _models(problem, folds, lam, model._workload(problem.Y, problem.s))
    held_out = np.stack([_of_tests(one.u, folds) for one in left], axis=1)
    new = [linalg.matmul(K_new, one.a.astype(K_new.dtype)) + one.b for one in left]
    full = fit(problem, lam)
    at_new = linalg.matmul(K_new, full.a) + full.b
    return FoldPredictions(problem.Y, at_new, held_out, np.stack(new, axis=2), widths)


def with_new_rows(
    model: Any, problem: Problem, rows: Indices, splits: int, X_new: Any
) -> tuple[Problem, Array, Any]:
    """The problem of some rows, the kernel values (m, n) of new ones, and these, checked.

    Refuses what does not fit into memory beside the kernel matrix; ``splits`` models are made.
    """
    X_new = model._validate_X(X_new, reset=False)
    _check_memory(problem, model._workload(problem.Y, problem.s), splits, X_new.shape[0])
    K_new = np.ascontiguousarray(model.kernel_.matrix(Geometry(X_new, model.X_fit_)))
    if rows.size == problem.n:
        return problem, K_new, X_new
    return problem.take(rows), K_new[:, rows], X_new


def _check_memory(problem: Problem, work: plan.Workload, splits: int, new: int) -> None:
    nbytes = INTERVAL_MATRICES * work.itemsize * work.n**2
    if splits and not problem.quadratic:
        parts = replace(work, removed=(-(-work.n // splits),) * splits)
        nbytes = max(nbytes, plan.peak_bytes(parts, "exact"))
    columns = COLUMNS_PER_SPLIT * splits * problem.Y.shape[1] + COLUMNS_PER_NEW_ROW * new
    nbytes += work.itemsize * work.n * columns
    plan.check_bytes(work, nbytes, f"predict_interval for {new:,} new rows")


def _models(problem: Problem, folds: Folds, lam: float, work: plan.Workload) -> list[Solution]:
    """The models of the splits as columns, per target; weights must be positive.

    Uneven weights under mean scaling give every split a penalty of its own, hence an inverse, where
    a single eigendecomposition serves all; the cost model compares the two.
    """
    if not problem.quadratic:
        return Exact().prepare(problem, folds).models(lam)
    ridges = len({problem.ridge(lam, train) for train in folds.train})
    removed = tuple(rows.size for rows in folds.removed)
    work = replace(work, n=problem.n, removed=removed, ridges=ridges)
    block, eigen = (plan.estimate(work, name).seconds for name in ("block", "eigen"))
    return (Block() if block <= eigen else Eigen()).prepare(problem, folds).models(lam)


def _of_tests(values: Array, folds: Folds) -> Array:
    """Of (n, k) values of the splits those of the rows that each tests."""
    return np.concatenate([values[test, k] for k, test in enumerate(folds.test)])


def _of_features(
    model: Any, problem: Problem, rows: Indices, folds: Folds, X_new: Any
) -> FoldPredictions:
    """With features, which replace the kernel matrix."""
    if len(folds) == rows.size:
        raise ValueError(
            "leaving out one row at a time, as method='jackknife+' does, makes a model for "
            f"every row, too many with approximation={model.approximation!r}; use "
            "method='cv+' with a few folds"
        )
    X_new, lam = model._validate_X(X_new, reset=False), float(model.lam)
    problem = problem.take(rows) if rows.size < problem.n else problem
    method = GramFolds() if problem.quadratic else PrimalExact()
    W, b = method.prepare(problem, folds).models(lam)
    gram, every = FeatureGram(X_new, problem.K.features), np.arange(X_new.shape[0])
    tests = [
        np.stack([problem.K.values(test, W[:, [k], j])[:, 0] for j in range(W.shape[2])], axis=1)
        + b[k]
        for k, test in enumerate(folds.test)
    ]
    new = np.stack([gram.values(every, W[:, :, j]) for j in range(W.shape[2])], axis=2) + b
    full, _ = fit_features(problem, lam)
    at_new = gram.values(every, full.W) + full.b
    return FoldPredictions(problem.Y, at_new, np.concatenate(tests), new)


def of_pipeline(
    pipeline: Any,
    X: Any,
    y: Any,
    weight: Any,
    rows: Indices,
    folds: Folds,
    X_new: Any,
    verbose: int,
) -> FoldPredictions:
    """Predictions of a pipeline, by refits; parameters as of :func:`of_kernel`."""
    Y = clone(kernel_estimator(pipeline))._code_targets(y, np.float64)[rows]

    def fitted(some: Indices, where: str) -> Any:
        params = {} if weight is None else {"sample_weight": weight}
        params = select_params(X, metadata_of_fit(pipeline, params), some)
        X_part, y_part = split_rows(pipeline, X, y, some)
        try:
            return clone(pipeline).fit(X_part, y_part, **params)
        except Exception as error:
            raise ValueError(
                f"{type(pipeline).__name__} cannot be fitted to {where}: "
                f"{type(error).__name__}: {error}"
            ) from error

    full, held_out, new = _predicted(fitted(rows, "all rows"), X_new), [], []
    for split in counted(range(len(folds)), verbose, "split {}".format):
        train, test = rows[folds.train[split]], rows[folds.test[split]]
        model = fitted(train, f"the training part of split {split}")
        held_out.append(_predicted(model, split_rows(pipeline, X, y, test, train)[0]))
        new.append(_predicted(model, X_new))
    return FoldPredictions(Y, full, np.concatenate(held_out), np.stack(new, axis=1))


def _predicted(model: Any, X: Any) -> Array:
    return np.asarray(model.predict(X), dtype=np.float64).reshape(n_rows(X), -1)


def of_stack(
    stack: Any, X: Any, y: Any, rows: Indices, folds: Folds, X_new: Any
) -> FoldPredictions:
    """Held-out predictions of a stack, and those of the stack of all rows for every split."""
    plain, known = KernelRegressor(**stack.get_params(deep=False)), stack.heldout_predictions_
    _, Y, _ = plain._check_data(X, y, None)
    full, held_out = stack._decision(X_new), known.reshape(Y.shape)[rows][folds.rows]
    return FoldPredictions(Y[rows], full, held_out, full[:, None])
