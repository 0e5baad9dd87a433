"""The base class of :class:`AutoKernelRegressor` and :class:`AutoKernelClassifier`."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from onefit._format import is_missing
from onefit._frames import as_frame, check_names, is_frame, shown
from onefit._validation import DataError
from onefit.auto import rules
from onefit.auto.familiar import RowNotes, Unfamiliar, read_and_encode, training_rows
from onefit.auto.planning import plan_search
from onefit.auto.run import Selection
from onefit.callbacks import callbacks_of
from onefit.grids import default_grid
from onefit.kernels import is_table
from onefit.prepare import TablePreparer, named_alike
from onefit.relevance import Relevance, relevance
from onefit.report.criteria import COLUMN, verdicts
from onefit.report.facts import Facts
from onefit.search.continuous import Interval
from onefit.search.pipeline_rows import as_kernel_search
from onefit.search_gradient import KernelGradientSearchCV
from onefit.uncertainty.novelty import TrainingRows

Array = NDArray[Any]

__all__ = ["AutoKernel"]

#: rows up to which a report compares the criteria that cost no more than the search
MAX_ROWS_COMPARED = 1000
CHEAP_CRITERIA = {
    "squared": ("loo", "gcv"),
    "smoothed_hinge": ("gacv", "span", "sv_count"),
    "squared_hinge": ("span", "sv_count"),
}


def _of_search(name: str, text: str) -> Any:
    """A fitted attribute of the search."""
    return property(lambda auto: getattr(auto.search_, name), doc=text)


class AutoKernel(BaseEstimator):
    """Base of the automatic estimators, which define ``_task`` and ``_checked_y``."""

    _task: str
    _why: str | None = None

    def __init__(
        self,
        *,
        prepare: Any = None,
        scoring: Any = None,
        cv: Any = 5,
        kernels: Any = None,
        loss: str | None = None,
        param_grid: Any = None,
        stack: bool | str | None = None,
        approximation: str | None = None,
        minutes: float | None = None,
        n_jobs: int | None = None,
        journal: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.prepare = prepare
        self.scoring = scoring
        self.cv = cv
        self.kernels = kernels
        self.loss = loss
        self.param_grid = param_grid
        self.stack = stack
        self.approximation = approximation
        self.minutes = minutes
        self.n_jobs = n_jobs
        self.journal = journal
        self.random_state = random_state

    best_params_ = _of_search("best_params_", "Kernel, lam and the other chosen parameters.")
    best_score_ = _of_search("best_score_", "The score of all held-out rows together.")
    cv_results_ = _of_search("cv_results_", "All candidates.")
    heldout_ = _of_search("heldout_", "Held-out predictions of the chosen model.")
    headline_ = _of_search("headline_", "The expected score, its interval, and a baseline's.")
    n_splits_ = _of_search("n_splits_", "Number of splits.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.prepare is None or isinstance(self.prepare, TablePreparer)
        tags.input_tags.string = tags.input_tags.allow_nan
        return tags

    @property
    def best_estimator_(self) -> Any:
        """The chosen model, calibrated if asked; it takes rows that the steps before it in
        ``pipeline_`` return.
        """
        if hasattr(self.pipeline_, "named_steps"):
            return self.pipeline_.named_steps["model"]
        return self.pipeline_  # a calibrated pipeline, which takes rows as they are given

    @property
    def _fitted(self) -> Any:
        """The fitted pipeline, that within a calibrated one too."""
        return self.search_.best_estimator_ if self._planned.in_folds else self.pipeline_

    def _refuse_in_folds(self, what: str) -> None:
        if self._planned.in_folds:
            raise ValueError(
                f"{what} needs prepared rows that are the same in all splits, and the preparation "
                "was fitted in every training part; use one that does not need the target"
            )
        if isinstance(self.search_.estimator, Pipeline) and what != "relevance":
            raise ValueError(
                f"{what} needs prepared rows that are the same in all splits, and the chosen model "
                "transforms them by what it learned in every training part; name kernels, such as "
                "kernels=['rbf', 'laplacian'], to choose among models of the rows as they are"
            )

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set the callbacks that the searches of a fit notify; no argument removes them."""
        self._skl_callbacks = list(callbacks)
        return self

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Any:
        """Choose a model, and fit it to all rows.

        Parameters
        ----------
        X : DataFrame, array or sparse matrix of shape (n, d)
            A data frame of pandas or Polars, or a table of PyArrow.
        y : array of shape (n,); (n, q) for a regression of several targets
        groups : array of shape (n,), default=None
            Rows of one group stay on one side of every split.
        sample_weight : array of shape (n,), default=None
            For fits and scores; the test for outliers counts rows equally.

        Returns
        -------
        self
        """
        self._choose(X, y, groups, sample_weight)
        if self.verdict_:
            warnings.warn(self.verdict_, stacklevel=2)
        return self

    def _choose(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> None:
        """Fit without a warning of the verdict, which the command line prints with the result."""
        with self._own_settings():
            planned = self._plan(X, y, groups, sample_weight)
            planned.search.set_callbacks(*callbacks_of(self))
            try:
                planned.run()
            finally:
                planned.search.set_callbacks()
            self._keep(planned)

    @property
    def verdict_(self) -> str:
        """A sentence if the choice is not known to beat the baseline; else empty."""
        return Facts(as_kernel_search(self.search_)).verdict

    def _keep(self, planned: Selection) -> None:
        """Fitted attributes, from a search that is done."""
        self.search_, self.searches_ = planned.search, planned.searches
        self.scoring_ = planned.search.scoring
        self.reasons_, self.notes_ = planned.reasons, planned.notes
        self.fallback_ = planned.fallback
        self._planned = planned
        how = getattr(self, "calibrate", None)
        model = planned.search.best_estimator_ if how is None else planned.search.calibrate(how)
        self.pipeline_ = (
            model if planned.in_folds
            else Pipeline([("prepare", planned.preparer), *_steps_of(model)])
        )  # fmt: skip
        self.__dict__.pop("_training_rows", None)

    def explain(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> str:
        """Describe what :meth:`fit` would do, with planned times; nothing is fitted."""
        with self._own_settings():
            return copy(self)._plan(X, y, groups, sample_weight).explain()

    def _plan(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Selection:
        """Check the data and apply the rules: a search with its data, ready to be run."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        X = self._checked_X(X, reset=True)
        y, n = self._checked_y(y), X.shape[0]
        if len(y) != n:
            raise ValueError(f"X has {n} rows and y has {len(y)}; they must have the same length")
        given = {"groups": groups, "sample_weight": sample_weight}
        params = {name: np.asarray(one) for name, one in given.items() if one is not None}
        for name, values in params.items():
            if values.ndim == 0 and values.dtype.kind == "U":
                raise ValueError(
                    f"{name} must have a value per row; a name of a column is not looked up: "
                    f"pass {name}=X[{values.item()!r}]"
                )
            if values.shape != (n,):
                raise ValueError(f"{name} has shape {values.shape}, expected ({n},), one per row")
            if name == "groups" and any(is_missing(one) for one in values):
                raise ValueError("groups has rows without a group; give each row one")
        if (y == y[:1]).all():
            raise DataError(f"y has the value {shown(y.flat[0])} only; there is nothing to learn")
        return plan_search(self, X, y, params)

    def _may_be_robust(self, y: Array) -> bool:
        return False

    def _checked_y(self, y: Any) -> Array:
        raise NotImplementedError

    def _checked_X(self, X: Any, reset: bool = False) -> Any:
        """Data frames of pandas; arrays of numbers; sparse matrices by rows."""
        if is_frame(X):
            X = named_alike(as_frame(X))
            check_names(X.columns, "X")
            validate_data(self, X, reset=reset, skip_check_array=True)
            if X.shape[0] == 0 or (reset and X.shape[0] < 2):
                raise ValueError(f"X has {X.shape[0]} rows (samples), too few")
            return X.reset_index(drop=True) if reset and X.index.name is None else X
        if not issparse(X) and np.asarray(X).ndim < 2 and not is_table(X):
            raise ValueError(
                "the rows of X are not vectors of numbers (Reshape your data?); encode them as "
                "numbers, pass a DataFrame with a column for each text, or use KernelSearchCV with "
                "a function as kernel"
            )
        return validate_data(
            self, X, reset=reset, dtype=np.float64, accept_sparse="csr",
            ensure_all_finite=True if issparse(X) else "allow-nan",
            ensure_min_samples=2 if reset else 1,
        )  # fmt: skip

    def predict(self, X: Any) -> Array:
        """Predictions for rows with the columns of the fitted table."""
        return self._of_pipeline("predict", X)

    def _of_pipeline(self, method: str, X: Any) -> Array:
        """What a method of the pipeline returns for new rows."""
        check_is_fitted(self, "pipeline_")
        with self._own_settings():
            found: Array = getattr(self.pipeline_, method)(self._checked_X(X))
        return found

    def _own_settings(self) -> Any:
        """Settings of scikit-learn for what is inside, whatever the user has outside.

        Weights and groups reach every fit without requests, and our own preparation returns arrays,
        which the model is fitted to.
        """
        own = self.prepare is None or isinstance(self.prepare, TablePreparer)
        output = {"transform_output": "default"} if own else {}
        return config_context(enable_metadata_routing=False, **output)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of predictions for new rows, by ``scoring_``."""
        check_is_fitted(self, "pipeline_")
        scorer = get_scorer(self.scoring_) if isinstance(self.scoring_, str) else self.scoring_
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        y = self._checked_y(y) if self._task == "regression" else y  # amounts may be text
        with self._own_settings():
            return float(scorer(self, X, y, **weight))

    def unfamiliar(self, X: Any) -> RowNotes:
        """Rows unlike the training rows: far from them, of unknown categories, or with new gaps.

        See :mod:`onefit.uncertainty.novelty`.
        """
        check_is_fitted(self, "pipeline_")
        found = Unfamiliar(self._fitted.named_steps["prepare"], self.training_rows_)
        with self._own_settings():
            novelty, notes = found.add(*read_and_encode(self._fitted, self._checked_X(X)))
        return RowNotes(novelty, notes, found.sentences)

    @property
    def training_rows_(self) -> TrainingRows | None:
        """The training rows that new ones are compared with; None if the model holds none."""
        if not hasattr(self, "_training_rows"):
            folds, groups = getattr(self.search_, "folds_", None), self._planned.data.groups
            self._training_rows = training_rows(self._fitted[-1], folds, groups)
        return self._training_rows

    def relevance(self) -> Any:
        """Find the columns that matter, see :func:`onefit.relevance`; the choice itself stays.

        A second search with the chosen kernel (the Gaussian if that is linear, or of rows with a
        learned metric) and one gamma per prepared column follows the gradient, and is repeated
        without each of five parts of the rows. The report shows the result.
        """
        check_is_fitted(self, "pipeline_")
        self._refuse_in_folds("relevance")
        with self._own_settings():
            self.search_.relevance_ = _find_relevance(self)
        return self.search_.relevance_

    def compare_criteria(self, *names: Any) -> Any:
        """Evaluate further criteria on all candidates, see :mod:`onefit.criteria`.

        Parameters
        ----------
        *names : str or criterion
            Without any: those that cost no more than the search, if there are at most 1000 rows,
            no time limit and no approximation.

        Returns
        -------
        list of Verdict
            For each criterion the candidate that it would choose and what that costs in held-out
            score; :meth:`report` shows them.
        """
        from onefit.report import compare_criteria

        check_is_fitted(self, "pipeline_")
        if names:
            self._refuse_in_folds("compare_criteria")
        names = names or self._cheap_criteria()
        if names:
            data = self._planned.data
            compare_criteria(self.search_, data.X, data.y, names, data.sample_weight)
        return verdicts(Facts(as_kernel_search(self.search_)))

    def _cheap_criteria(self) -> tuple[str, ...]:
        search, done = self.search_, self._planned
        if isinstance(search.estimator, Pipeline):
            return ()
        losses = {one.get("loss", search.estimator.loss) for one in self.cv_results_["params"]}
        streamed = not hasattr(search, "folds_")
        if streamed or search.estimator.approximation is not None or self.minutes is not None:
            return ()
        if done.data.n > MAX_ROWS_COMPARED or done.data.y.ndim > 1 or len(losses) > 1:
            return ()
        cheap = CHEAP_CRITERIA.get(losses.pop(), ())
        return tuple(name for name in cheap if COLUMN + name not in self.cv_results_)

    def report(self, path: Any, **options: Any) -> Any:
        """Write the report as one HTML file; for options see :func:`onefit.report.write_report`.

        It compares the criteria of :meth:`compare_criteria`.
        """
        from onefit.report import write_report

        self.compare_criteria()
        done = self._planned
        about: dict[str, str] = {}
        width = self.n_features_in_ if done.in_folds else done.data.X.shape[1]
        if width != self.n_features_in_:
            about["columns"] = f"{self.n_features_in_:,}, {width:,} after encoding"
        describe = getattr(done.preparer, "describe", None)
        if describe is not None:
            about["preprocessing"] = describe()
        about["task"] = self._task
        options["about"] = about | dict(options.get("about") or {})
        found: dict[str, Any] = {"notes": self.notes_, "reasons": self.reasons_}
        found["calibrated"] = self.best_estimator_
        if options.get("rows") is not None and isinstance(done.preparer, TablePreparer):
            options["rows"] = done.preparer.typed(options["rows"])
        return write_report(as_kernel_search(self.search_), path, **(found | options))

    def summary(self) -> str:
        """The quality of the choice, the choice, reasons and notes, one per line."""
        from onefit.report.words import headline

        check_is_fitted(self, "pipeline_")
        return "\n".join([*headline(Facts(as_kernel_search(self.search_))), *self._why_and_notes])

    @property
    def _why_and_notes(self) -> list[str]:
        return [*self.reasons_, *(f"Note: {note}" for note in self.notes_)]

    @property
    def _repr_html_(self) -> Any:
        """HTML for a notebook: the summary and the search after a fit, else the parameters."""
        shown_before = super()._repr_html_  # an AttributeError where scikit-learn shows text
        return partial(self._fitted_html, shown_before) if hasattr(self, "pipeline_") else (
            shown_before
        )  # fmt: skip

    def _fitted_html(self, _: Any) -> str:
        from onefit.report.page import as_html

        return as_html(as_kernel_search(self.search_), self._why_and_notes)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return bundle | ({"text/html": self._repr_html_()} if "text/html" in bundle else {})


def _find_relevance(auto: Any) -> Relevance:
    """Relevance of the prepared columns, for the chosen kernel with one gamma per column."""
    search, data = as_kernel_search(auto.search_), auto._planned.data
    if search.best_estimator_.approximation is not None:
        raise ValueError(
            "relevance follows the gradient of the whole kernel, and the model has an "
            "approximation; raise minutes, or use fewer rows"
        )
    Z, y, params = data.X, data.y, data.params
    best, labels = search.best_params_, is_classifier(search.estimator)
    transformed = isinstance(auto.search_.estimator, Pipeline)  # by a metric of all columns
    kernel = "rbf" if transformed or best["kernel"] == "linear" else best["kernel"]
    seed = auto.random_state if isinstance(auto.random_state, int) else 0
    (grid,) = default_grid(Z, y if labels else None, kernel, random_state=seed)
    gammas, lams = grid["gamma"], grid["lam"]
    wide = {
        "gamma": Interval(1e-2 * min(gammas), max(gammas), per_feature=True),
        "lam": Interval(min(lams), max(lams), points=8),
        "kernel": [kernel],
    }
    loss = {name: [best[name]] for name in ("loss", "loss__threshold") if name in best}
    ordered = isinstance(auto.cv, TimeSeriesSplit)
    splits = TimeSeriesSplit(5) if ordered else 5
    cv, _ = rules.choose_splits(splits, len(y), auto._task, params.get("groups"), seed)
    # outliers made it choose by absolute errors
    scoring = search.scoring if search.criterion == "cv" else "neg_mean_absolute_error"
    again = KernelGradientSearchCV(
        clone(search.estimator), wide | loss, cv=cv, scoring=scoring, aggregate=search.aggregate,
        n_jobs=search.n_jobs,
    )  # fmt: skip
    found = relevance(again.fit(Z, y, **params), Z, y, cv=cv, **params)
    if np.ptp(again.best_params_["gamma"]) == 0.0 and Z.shape[1] > 1:
        warnings.warn(
            "every column has the same gamma, the smallest or the largest that was tried, so their "
            "equal relevance says nothing; columns with linear effects need hardly any gamma",
            stacklevel=3,
        )
    return replace(found, names=_names(auto.pipeline_.named_steps["prepare"], Z.shape[1]))


def _steps_of(model: Any) -> list[tuple[str, Any]]:
    """A model as steps: those of a pipeline, whose rows have a learned metric."""
    return list(model.steps) if isinstance(model, Pipeline) else [("model", model)]


def _names(preparer: Any, columns: int) -> list[str]:
    names = getattr(preparer, "get_feature_names_out", None)
    return [str(i) for i in range(columns)] if names is None else [str(one) for one in names()]
