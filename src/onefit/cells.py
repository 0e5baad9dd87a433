"""Many rows as independent kernel problems on the cells of a partition.

A kernel matrix of n rows has n^2 entries and takes n^3 operations to factor. With the rows divided
into cells of at most m rows, and a model for every cell, that is n m numbers and n m^2 operations,
and cells can be worked on side by side. What is lost is what rows of other cells would have added
to a prediction: little for a row in the middle of its cell if the kernel is narrow, more at the
boundary. So several partitions are drawn at random, and their predictions are averaged: a row at
the boundary in one of them is in the middle in another.

**Partition.** A part with more than m rows is halved: two of its rows, drawn at random, give a
direction, and the median of the projections on it is the boundary. Rows of weight zero are not
counted. Targets are not used, and the
partition is the same in every fold of a cross-validation, as columns standardised on all rows are.

**Cross-validation.** The folds are drawn once, over all rows. In a cell, the held-out prediction of
a row is that of the cell's model trained without the rows of its fold, so all of them follow from
one fit per cell (:class:`onefit.KernelSearchCV` on the rows of the cell), and the held-out
predictions of the averaged model are the averages over the partitions. They are those of honest
refits, as the ones of every cell are.

**Search.** Candidates are compared on the first partition, all rows together, and the best one is
evaluated and fitted on all partitions. One candidate for all cells is enough: on the protein set
(41,157 training rows), a choice in every cell gives the same error (benchmarks/cells.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from onefit._types import Array, Indices
from onefit._validation import check_weights, takes_weight
from onefit.estimators import KernelClassifier, KernelRegressor
from onefit.search.scorers import look_up
from onefit.search_cv import KernelSearchCV
from onefit.spec.needs import require_of_model

__all__ = ["CellSearchCV", "Partition"]

Split = tuple[Indices, Indices]


@dataclass(frozen=True)
class Partition:
    """A binary tree of hyperplanes whose leaves are the cells.

    Attributes
    ----------
    directions : (t, d) array
    thresholds : (t,) array
        A row is on the left of node i if its projection on the i-th direction is at most this.
    children : (t, 2) array of int
        Nodes on the left and on the right; ``~j`` is the j-th cell.
    """

    directions: Array
    thresholds: Array
    children: Indices

    @classmethod
    def draw(cls, X: Any, max_rows: int, random: np.random.RandomState) -> Partition:
        """Halve the rows of X at random directions until no cell has more than ``max_rows``."""
        directions: list[Array] = []
        thresholds: list[float] = []
        children: list[list[int]] = []
        cells = 0

        def grow(rows: Indices) -> int:
            nonlocal cells
            found = _halves(X, rows, random) if rows.size > max_rows else None
            if found is None:
                cells += 1
                return ~(cells - 1)
            direction, threshold, left = found
            node = len(thresholds)
            directions.append(direction)
            thresholds.append(threshold)
            children.append([0, 0])
            children[node][:] = grow(rows[left]), grow(rows[~left])
            return node

        grow(np.arange(X.shape[0]))
        shape = (len(thresholds), X.shape[1])
        return cls(
            np.reshape(np.array(directions, dtype=np.float64), shape),
            np.array(thresholds, dtype=np.float64),
            np.reshape(np.array(children, dtype=np.intp), (-1, 2)),
        )

    def cells(self, X: Any) -> list[Indices]:
        """The rows of X that belong to each cell."""
        found = [np.empty(0, dtype=np.intp)] * (len(self.thresholds) + 1)
        waiting = [(0 if len(self.thresholds) else -1, np.arange(X.shape[0]))]
        while waiting:
            node, rows = waiting.pop()
            if node < 0:
                found[~node] = rows
                continue
            left = _project(X, rows, self.directions[node]) <= self.thresholds[node]
            waiting += zip(self.children[node], (rows[left], rows[~left]), strict=True)
        return found


def _halves(
    X: Any, rows: Indices, random: np.random.RandomState
) -> tuple[Array, float, Array] | None:
    """A direction, the median of the projections on it, and who is below; None for equal rows."""
    first = rows[random.randint(rows.size)]
    there = _dense(X[[first]])
    other = rows[random.permutation(rows.size)]
    differing = (i for i in other if (_dense(X[[i]]) != there).any())
    second = next(differing, None)
    if second is None:
        return None
    direction = _dense(X[[second]])[0] - there[0]
    projected = _project(X, rows, direction)
    threshold = float(np.median(projected))
    left = projected <= threshold
    if left.all():  # half of the rows share the largest projection
        threshold = float(projected[projected < threshold].max())
        left = projected <= threshold
    return direction, threshold, left


def _project(X: Any, rows: Indices, direction: Array) -> Array:
    return np.asarray(X[rows] @ direction).ravel()


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


class CellSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Choose a kernel model for many rows by cross-validation, in cells of a partition.

    The model is the average over several random partitions of the rows into cells; in every cell it
    is a kernel model of the rows of the cell (:mod:`onefit.cells`).

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier
        A classifier must have the squared loss: it is fitted to -1 and 1, a column per class, which
        is also defined in a cell that holds one class only.
    param_grid : dict or list of dict
        As in :class:`onefit.KernelSearchCV`. Penalties scale with the rows of a cell.
    cell_size : int, default=1000
        Largest number of rows in a cell. Time and memory grow in proportion.
    n_partitions : int, default=4
        Partitions to average over. Each takes the time of one candidate.
    cv : int or splitter, default=5
        Every row may be in one test part at most.
    scoring : str or callable, default=None
        Of predictions or decision values for all held-out rows together, weighted as the rows are;
        None is R^2 or accuracy.
    n_jobs : int, default=None
        Cells that are worked on side by side.
    random_state : int, RandomState or None, default=0
        For the partitions.
    journal : path, default=None
        Folder that keeps finished cells of the search.

    Attributes
    ----------
    cv_results_ : dict
        ``params``, ``mean_test_score``, ``rank_test_score`` and ``exact``, on the first partition.
    best_index_, best_params_
        The candidate with the largest score.
    best_score_ : float
        Score of the held-out predictions of the model, averaged over all partitions.
    heldout_predictions_ : array of shape (n,) or (n, q)
        Held-out predictions or decision values; NaN for rows that no split tests.
    partitions_ : list of Partition
    models_ : list of list of KernelRegressor
        The model of every cell, partition by partition.
    classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> from onefit.cells import CellSearchCV
    >>> X = np.random.default_rng(0).uniform(size=(1200, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]
    >>> grid = {"gamma": [1.0, 10.0], "lam": [1e-8, 1e-6]}
    >>> search = CellSearchCV(KernelRegressor(), grid, cell_size=300).fit(X, y)
    >>> bool(search.best_score_ > 0.999), [len(models) for models in search.models_]
    (True, [4, 4, 4, 4])
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        cell_size: int = 1000,
        n_partitions: int = 4,
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        journal: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cell_size = cell_size
        self.n_partitions = n_partitions
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.journal = journal

    def __sklearn_tags__(self) -> Any:
        tags, own = get_tags(self.estimator), super().__sklearn_tags__()
        own.estimator_type = tags.estimator_type
        own.classifier_tags, own.regressor_tags = tags.classifier_tags, tags.regressor_tags
        own.target_tags, own.input_tags = tags.target_tags, tags.input_tags
        return own

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> CellSearchCV:
        """Compare the candidates on one partition, and fit the best one on all of them."""
        model = self._check()
        X, y = validate_data(
            self, X, y, accept_sparse="csr", multi_output=True, dtype=[np.float64, np.float32],
            y_numeric=not is_classifier(self.estimator),
        )  # fmt: skip
        y, Y = self._coded(y)
        s = None if sample_weight is None else check_weights(sample_weight, X)
        splits = self._splits(X, y, groups)
        random = check_random_state(self.random_state)
        known = X if s is None else X[s > 0.0]
        partitions = [
            Partition.draw(known, self.cell_size, random) for _ in range(self.n_partitions)
        ]
        tested = np.sort(np.concatenate([test for _, test in splits]))
        with Parallel(n_jobs=self.n_jobs) as parallel:

            def searched(partition: Partition, grid: Any, refit: bool, name: str) -> list[Any]:
                work = _cells(partition, X, Y, s, splits)
                where = None if self.journal is None else Path(self.journal) / name
                if where is not None:
                    where.mkdir(parents=True, exist_ok=True)
                return parallel(  # type: ignore[no-any-return]
                    delayed(_search)(model, grid, refit, where and where / str(i), *cell)
                    for i, cell in enumerate(work)
                )

            first = searched(partitions[0], self.param_grid, False, "candidates")
            results = self._compare(first, y, s, tested)
            best = int(np.flatnonzero(results["rank_test_score"] == 1)[0])
            grid = [{key: [value] for key, value in results["params"][best].items()}]
            found = [
                searched(one, grid, True, f"partition-{i}") for i, one in enumerate(partitions)
            ]
        held = np.mean([_joined(cells, y.shape[0])[0] for cells in found], axis=0)
        self.heldout_predictions_ = held[:, 0] if held.shape[1] == 1 else held
        self.cv_results_, self.best_index_ = results, best
        self.best_params_ = results["params"][best]
        self.best_score_ = self._score(held, y, s, tested)
        self.partitions_ = partitions
        self.models_ = [[cell.model for cell in cells] for cells in found]
        return self

    def _check(self) -> KernelRegressor:
        """The regressor of the cells."""
        if not isinstance(self.estimator, (KernelRegressor, KernelClassifier)):
            raise TypeError(
                "estimator must be a KernelRegressor or a KernelClassifier, got "
                f"{type(self.estimator).__name__}"
            )
        for name, least in (("cell_size", 50), ("n_partitions", 1)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        if isinstance(self.estimator, KernelRegressor):
            return clone(self.estimator)  # type: ignore[no-any-return]
        model = self.estimator
        needs = ("squared loss", "column per class", "equal weights")
        require_of_model(model, "CellSearchCV, whose cells may hold one class only,", *needs)
        shared = KernelRegressor().get_params(deep=False).keys() & model.get_params()
        return KernelRegressor(**{name: getattr(model, name) for name in shared})

    def _coded(self, y: Array) -> tuple[Array, Array]:
        """Targets as they are scored, and as columns: those of a classifier are -1 and 1."""
        self._scored = clone(self.estimator)
        if not is_classifier(self.estimator):
            self._scored._y_ndim = y.ndim
            return y, np.reshape(y, (y.shape[0], -1)).astype(np.float64)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_: Array = np.unique(y)
        self._scored.classes_ = self.classes_
        if self.classes_.size < 2:
            raise ValueError(f"y holds one class only, {self.classes_[0]!r}")
        if self.classes_.size == 2:
            return y, np.where(y == self.classes_[1], 1.0, -1.0)[:, None]
        return y, np.where(y[:, None] == self.classes_, 1.0, -1.0)

    def _splits(self, X: Any, y: Array, groups: Any) -> list[Split]:
        folds = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = list(folds.split(X, y, groups))
        counts = np.bincount(np.concatenate([test for _, test in splits]), minlength=y.shape[0])
        if counts.max() > 1:
            raise ValueError(
                f"row {int(counts.argmax())} is in the test part of {counts.max()} splits; "
                "CellSearchCV needs splits that test every row once at most"
            )
        return splits

    def _compare(
        self, cells: list[Any], y: Array, s: Array | None, tested: Indices
    ) -> dict[str, Any]:
        """Score of every candidate for all rows together."""
        values = _joined(cells, y.shape[0])
        scores = np.array([self._score(one, y, s, tested) for one in values])
        if not np.isfinite(scores).any():
            raise ValueError("no candidate has a finite score; raise lam, or scale X and y")
        below = np.nan_to_num(scores, nan=-np.inf)
        return {
            "params": cells[0].params,
            "mean_test_score": scores,
            "rank_test_score": np.array([1 + int((below > one).sum()) for one in below]),
            "exact": np.min([cell.exact for cell in cells], axis=0),
        }

    def _score(self, values: Array, y: Array, s: Array | None, rows: Any) -> float:
        """Score of the values of some rows."""
        values = values[rows]
        if not np.isfinite(values).all():
            return float("nan")
        scorer = check_scoring(self._scored, self.scoring)
        params = {} if s is None or not takes_weight(scorer) else {"sample_weight": s[rows]}
        return float(scorer(look_up(self._scored, values), values, y[rows], **params))

    def _decision(self, X: Any) -> Array:
        """The mean over the partitions of the values of the cells, (m, q)."""
        check_is_fitted(self, "models_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        total: Any = 0.0
        q = self.heldout_predictions_.reshape(len(self.heldout_predictions_), -1).shape[1]
        for partition, models in zip(self.partitions_, self.models_, strict=True):
            values = np.empty((X.shape[0], q))
            for rows, model in zip(partition.cells(X), models, strict=True):
                if rows.size:
                    values[rows] = model.predict(X[rows]).reshape(rows.size, -1)
            total = total + values
        return np.asarray(total / len(self.models_))

    def predict(self, X: Any) -> Array:
        """Predictions, or labels of a classifier."""
        values = self._decision(X)
        return np.asarray(look_up(self._scored, values).predict(values))

    @available_if(lambda search: is_classifier(search.estimator))
    def decision_function(self, X: Any) -> Array:
        """Decision values: one per row for two classes, else a column per class."""
        values = self._decision(X)
        return np.asarray(look_up(self._scored, values).decision_function(values))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score that candidates were compared by."""
        values = self._decision(X)
        s = None if sample_weight is None else check_weights(sample_weight, values)
        return self._score(values, np.asarray(y), s, slice(None))


@dataclass(frozen=True)
class _Cell:
    """Results of a search in a cell: held-out values of L candidates, and a model on request."""

    rows: Indices
    params: list[dict[str, Any]]
    held: list[Array]
    exact: Array
    model: Any


def _cells(
    partition: Partition, X: Any, Y: Array, s: Array | None, splits: list[Split]
) -> Iterator[tuple[Indices, Any, Array, Array | None, list[Split]]]:
    """Rows, targets, weights and splits of every cell."""
    for number, rows in enumerate(partition.cells(X)):
        place = np.full(Y.shape[0], -1, dtype=np.intp)
        place[rows] = np.arange(rows.size)
        both = ((place[train], place[test]) for train, test in splits)
        own = [(a[a >= 0], b[b >= 0]) for a, b in both if (b >= 0).any()]
        cell = f"cell {number} of {rows.size} rows; use a larger cell_size, or other splits"
        if not own:
            raise ValueError(f"no split tests a row of {cell}")
        if any(a.size < 2 for a, _ in own):
            raise ValueError(f"a split leaves fewer than two training rows in {cell}")
        yield rows, X[rows], Y[rows], None if s is None else s[rows], own


def _search(
    model: KernelRegressor, grid: Any, refit: bool, journal: Path | None,
    rows: Indices, X: Any, Y: Array, s: Array | None, splits: list[Split],
) -> _Cell:  # fmt: skip
    """Held-out values of every candidate in one cell, with one BLAS thread."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the scorer .* does not support sample_weight")
        search = KernelSearchCV(
            model, grid, cv=splits, scoring=_unscored, aggregate="pooled", refit=refit,
            journal=journal,
        )  # fmt: skip
        search.fit(X, Y[:, 0] if Y.shape[1] == 1 else Y, sample_weight=s)
    count = range(len(search.cv_results_["params"]))
    held = [search.heldout(i).predictions.reshape(rows.size, -1) for i in count]
    best = search.best_estimator_ if refit else None
    return _Cell(rows, search.cv_results_["params"], held, search.cv_results_["exact"], best)


def _unscored(model: Any, X: Any, y: Any) -> float:
    """A score of a cell, which nobody reads: candidates are scored on all cells together."""
    return 0.0


def _joined(cells: list[_Cell], n: int) -> Array:
    """Held-out values of all n rows, (L, n, q)."""
    values = np.full((len(cells[0].held), n, cells[0].held[0].shape[1]), np.nan)
    for cell in cells:
        values[:, cell.rows] = cell.held
    return values
