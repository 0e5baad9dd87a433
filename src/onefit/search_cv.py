"""Grid search by cross-validation whose held-out predictions come from one fit."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from functools import partial
from typing import Any

from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onefit.callbacks import CallbackSupportMixin, with_callbacks
from onefit.decide.methods import Decisions
from onefit.estimators.device import predicting_on_host, to_host
from onefit.estimators.regressor import no_standard_deviation
from onefit.heldout import HeldOut, HeldOutMethod
from onefit.linalg import is_elsewhere
from onefit.plan import Deadline, Explanation
from onefit.rows.open_rows import is_streamed
from onefit.search.criterion import CriterionLike
from onefit.search.evaluation import NotKept, SearchRows
from onefit.search.fitted_once import RowsOnAllRows
from onefit.search.in_memory import RowsInMemory
from onefit.search.inputs import check_settings, choosing_metric, is_multimetric
from onefit.search.per_target import PerTarget, fit_per_target
from onefit.search.pipeline_rows import PipelineRows, as_kernel_search
from onefit.search.preprocess import is_wrapped
from onefit.search.results import find_winner, split_scores, tabulate, warn_of_failures
from onefit.search.streamed import StreamedRows
from onefit.uncertainty.headline import blocks_of, judge, row_losses, warn_of_drift

Array = NDArray[Any]

__all__ = ["KernelSearchCV"]


def _can_predict(search: Any) -> bool:
    """Whether a winner will be fitted, and predicts; an AttributeError with the reason if not."""
    if not search.refit:
        raise AttributeError(
            f"this {type(search).__name__} has refit=False, so no winner is fitted to all rows; "
            "set refit, or fit an estimator with best_params_"
        )
    return hasattr(getattr(search, "best_estimator_", search.estimator), "predict")


class KernelSearchCV(Decisions, GridSearchCV, CallbackSupportMixin):
    """Choose the parameters of a kernel estimator by cross-validation, from one fit per candidate.

    A drop-in for :class:`sklearn.model_selection.GridSearchCV` over :class:`KernelRegressor` and
    :class:`KernelClassifier`: the same grids, splitters, scorers and results. The predictions of
    all splits come from fits to the whole sample (:func:`heldout_predict`), and each kernel matrix
    is computed once for all of its lams.

    The kernel and class weights are computed from all rows: ``gamma="scale"`` from the whole X, and
    ``class_weight="balanced"`` from the whole y, not from each training part. Only the splitter and
    ``n_iter`` are random.

    Arrays of PyTorch and CuPy are computed on their device, and the winner stays there; for NumPy
    arrays :mod:`onefit.config` sets the device.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier, or a Pipeline that ends in one
        The steps of a Pipeline are fitted in every training part, and its parameters are named as
        in GridSearchCV, ``kernelregressor__lam``; a TransformedTargetRegressor may be around it,
        see :mod:`onefit.search.pipeline`.
    param_grid : dict or list of dict
        Values to try for each parameter of the estimator: lists, or distributions (objects with a
        method ``rvs``, as in SciPy), from which ``n_iter`` settings are drawn. For lam also an
        :class:`onefit.search.Interval`, or "continuous" for that from 1e-8 to 1e2, in which the
        best lam of each kernel is found, see :mod:`onefit.search.continuous`.
    cv : int, splitter, or iterable of splits, default=5
        An int is the number of folds, in the order of the rows and stratified for a classifier, as
        in scikit-learn. For shuffled folds, groups, repeats or time pass a splitter of scikit-learn
        (``KFold(10, shuffle=True, random_state=0)``, ``GroupKFold``, ``RepeatedKFold``,
        ``TimeSeriesSplit``, ...), or a list of pairs of training and test rows. Rows that are
        streamed take :class:`onefit.rows.HashKFold`, and an int is its number of splits.
    scoring : str, callable, list, tuple, dict or None, default=None
        As in scikit-learn; None is R^2 or accuracy, or minus the pinball loss for several levels.
        Any scorer that uses only labels, predictions, decision values or, if the loss gives them,
        probabilities of held-out rows; :class:`onefit.scoring.Metric` defines one.
    criterion : str or object, default="cv"
        The number that ranks the candidates: "cv" is the cross-validated score itself. See
        :mod:`onefit.criteria`.
    method : str or object, default="auto"
        How held-out values are computed; "auto" chooses an exact method by the cost model, for each
        kernel. "race" does so too, but from 1,000 rows on it first leaves out candidates that lose
        on a sample of the rows: see :mod:`onefit.search.race`. "block", "eigen", "iterative",
        "exact", "limit", "influence" and "refit" are the methods of :mod:`onefit.heldout`, whose
        objects have options: ``Influence(order=3)``. For a Pipeline, "all_rows" fits the steps
        once, to all rows and without the target, which is faster; ``optimism_`` measures the
        effect on the score of the winner: see :mod:`onefit.search.fitted_once`.
    n_iter : int, default=None
        Number of settings of ``param_grid`` to draw at random; None tries all. An interval for
        lam is not drawn: it is searched for each setting of the others.
    random_state : int, RandomState or None, default=None
        For ``n_iter``.
    refit : bool, str or callable, default=True
        Whether to fit the winner to all rows; with several metrics the name of the one to choose
        by; or a function of ``cv_results_`` that returns the winner's index, such as
        :func:`onefit.scoring.one_standard_error`.
    n_jobs : int, default=None
        Kernels evaluated in parallel, each in a process with its share of the cores. None means
        one (or the value of joblib's context), with every core.
    aggregate : {"mean", "weighted", "pooled", "median"}, default="mean"
        How split scores become the score of a candidate: their mean, their mean weighted by test
        rows, the metric of all test rows together, or their median.
    journal : str or Path, default=None
        A folder that keeps every finished kernel (of streamed rows, every finished pass), so that
        an interrupted search resumes. Values of the grid may be added or removed; data and
        settings must be the same.
    verbose : int, default=0
        1 prints what will be done, 2 also prints every finished kernel.
    error_score : "raise" or number, default="raise"
        For a pipeline: the score of a split on which a step fails.

    Attributes
    ----------
    cv_results_ : dict
        scikit-learn's table, and the columns ``se_test_<metric>`` (standard error of the mean over
        the splits, as if they were independent), ``low_test_<metric>`` and ``high_test_<metric>``
        (the interval that the bounds of the held-out values prove for the score of honest refits;
        not for every metric), ``method``, ``exact``, ``error`` and ``reason``;
        times are a candidate's share of its kernel's. ``rank_test_<metric>`` follows the aggregate,
        which has a column ``<aggregate>_test_<metric>`` if it is not the mean.
    best_index_, best_params_, best_score_, best_estimator_, refit_time_ : as in scikit-learn
    heldout_ : HeldOut
        Out-of-fold predictions of the winner; of a classifier also ``labels`` and, where the loss
        gives them, ``proba``. For up to about three million streamed rows (with one target), by one
        more pass. :meth:`heldout` has those of the other candidates.
    headline_ : Headline
        The score of the winner on all held-out rows together, with an interval, and that of a
        baseline that ignores X.
    optimism_ : Optimism
        With ``method="all_rows"``: the score of the winner, and that with its steps fitted in every
        training part.
    plan_ : list of Choice
        The method chosen for each model, and its expected cost.
    n_splits_, scorer_, multimetric_ : as in scikit-learn
    folds_, groups_ : Folds; array of shape (n,) or None
        The splits, and the groups that they were drawn with, which :func:`predict_interval` takes
        over. Not of streamed rows.
    classes_, n_features_in_, feature_names_in_ : of the winner

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from onefit import KernelRegressor, KernelSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> grid = {"gamma": [1.0, 3.0, 10.0], "lam": np.logspace(-5, 0, 6)}
    >>> search = KernelSearchCV(KernelRegressor(), grid, cv=10).fit(X, y)
    >>> search.heldout_.predictions.shape, bool(search.cv_results_["exact"].all())
    ((442,), True)
    """

    heldout_: Any = NotKept()
    headline_: Any = NotKept()
    #: held-out values of every candidate, of rows in memory
    _heldouts: list[HeldOut]
    #: whether descents follow the search of the candidates
    _descends = False
    #: a limit of time, set for the length of a fit
    _deadline: Deadline | None = None

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        cv: Any = 5,
        scoring: Any = None,
        criterion: str | CriterionLike = "cv",
        method: str | HeldOutMethod = "auto",
        n_iter: int | None = None,
        random_state: Any = None,
        refit: bool | str | Callable[..., int] = True,
        n_jobs: int | None = None,
        aggregate: str = "mean",
        journal: Any = None,
        verbose: int = 0,
        error_score: Any = "raise",
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.criterion = criterion
        self.method = method
        self.n_iter = n_iter
        self.random_state = random_state
        self.refit = refit
        self.n_jobs = n_jobs
        self.aggregate = aggregate
        self.journal = journal
        self.verbose = verbose
        self.error_score = error_score

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = deepcopy(get_tags(self.estimator).target_tags)
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any = None, **params: Any) -> KernelSearchCV:
        """Evaluate every candidate, and fit the winner to all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or (n, n) when precomputed; or rows to stream
            A path of Parquet files, a Dask collection or a source of ``onefit.rows.open_rows`` is
            streamed, see :mod:`onefit.search.streamed`; the estimator needs an approximation.
        y : array of shape (n,) or (n, q); of streamed rows also the name of a column
        **params
            ``sample_weight`` and ``groups``; with scikit-learn's metadata routing, whatever
            estimator, splitter and scorers request.

        Returns
        -------
        self
        """
        rows = self._rows(X, y, params)
        metric = choosing_metric(self, rows.scorers, rows.names)
        rows.check(metric)
        data = {"X": X, "y": y, "metadata": _metadata(params)}
        context = self._init_callback_context(max_subtasks=rows.subtasks)
        context.call_on_fit_task_begin(estimator=self, **data)
        rows.evaluate(metric, context)
        fitted = self._conclude(rows, metric)
        fitted |= rows.compared(fitted, metric)
        if self.refit:
            fitted |= rows.refit(fitted, context)
        self._replace_fitted(fitted)  # all at once: an interrupted fit changes nothing
        self._heldouts = rows.heldouts()
        if rows.not_kept:
            self._not_kept = rows.not_kept
        context.call_on_fit_task_end(estimator=self, **data)
        return self

    def _rows(self, X: Any, y: Any, params: dict[str, Any]) -> SearchRows:
        """Rows, which know how candidates are evaluated where they are."""
        check_settings(self)
        kind: Callable[..., SearchRows] = StreamedRows if is_streamed(X) else RowsInMemory
        if is_wrapped(self.estimator):
            kind = RowsOnAllRows if self.method == "all_rows" else PipelineRows
        return kind(self, X, y, params)

    def _conclude(self, rows: SearchRows, metric: Any) -> dict[str, Any]:
        """Table and winner, as fitted attributes."""
        setup, outcomes = rows.setup, rows.outcomes
        multimetric, k = is_multimetric(rows.scorers, rows.names), int(rows.sizes.size)
        table = tabulate(setup.candidates, outcomes, rows.names, k, self.aggregate)
        warn_of_failures(table, rows.names, self.aggregate)
        rivals = row_losses(rows.scoring, outcomes, metric)
        if self.aggregate == "pooled" and rivals is not None:
            blocks = blocks_of(rows.attributes["folds_"], rows.attributes["groups_"])
            table[f"se_test_{metric}"] = rivals.errors(blocks)
        fitted: dict[str, Any] = rows.attributes | {
            "cv_results_": table,
            "n_splits_": k,
            "multimetric_": multimetric,
            "scorer_": rows.scorers.public,
            "plan_": setup.choices,
        }
        if not self.refit and multimetric:
            return fitted
        best = find_winner(self, table, metric, k)
        fitted |= {"best_index_": best, "best_params_": setup.candidates[best]}
        if metric is not None:
            fitted["best_score_"] = table[f"{self.aggregate}_test_{metric}"][best]
        if rows.not_kept:
            return fitted
        held = fitted["heldout_"] = rows.held_out(best)
        if metric is not None:
            # not plain: the winner's own columns, levels or pairs of classes
            model = setup.model if setup.plain else setup.model_of(best)
            given, scoring = rows.judged_by(best, held)
            splits = split_scores(table, metric, k)
            headline = judge(given, scoring, model, metric, held, splits, best, rivals)
            if headline is not None:
                fitted["headline_"] = headline
                if self.aggregate == "mean":
                    warn_of_drift(headline, held.folds)
        return fitted

    def _replace_fitted(self, fitted: dict[str, Any]) -> None:
        for name in [name for name in self.__dict__ if name.endswith("_") and name[0] != "_"]:
            delattr(self, name)
        for name in ("_not_kept", "_heldouts"):
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted)

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Score of the winner, by the metric of the search."""
        if not is_elsewhere(X):
            return float(super().score(X, y, **params))
        other = copy(self)
        other.best_estimator_ = predicting_on_host(self.best_estimator_, X)
        params = {name: to_host(value, None, name) for name, value in params.items()}
        return float(super(KernelSearchCV, other).score(X, to_host(y, None, "y"), **params))

    def explain(
        self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> Explanation:
        """Expected time and memory of a fit, and of its alternatives.

        Nothing is computed. The returned text is displayed at a prompt and in a notebook; in a
        script, print it. It begins with a warning if the fit would be refused for lack of memory.
        """
        params = {"groups": groups, "sample_weight": sample_weight}
        given = {name: value for name, value in params.items() if value is not None}
        return self._rows(X, y, given).explain()

    def heldout(self, index: int) -> HeldOut:
        """Held-out values of a candidate, by its position in ``cv_results_["params"]``.

        For rows in memory they are kept for every candidate, for streamed rows for the winner only.
        """
        check_is_fitted(self, "cv_results_")
        if not self._heldouts:
            raise ValueError(
                "held-out values of streamed rows are kept for the winner only, as heldout_; "
                "search the other candidate alone, or load the rows into memory"
            )
        return self._heldouts[index]

    def fit_per_target(self, X: Any, y: Any, sample_weight: Any = None) -> PerTarget:
        """Choose a lam for each target, with one kernel for all; the search does not change.

        The kernel is the one with the best average score, each target at its best lam. Scores come
        from the known held-out values; only the winner is fitted.

        Parameters
        ----------
        X, y, sample_weight
            What the search was fitted to; no ``sample_weight`` takes that of the search.

        Returns
        -------
        PerTarget
            ``estimator``, fitted; ``lams``, ``scores``, and the ``params`` that targets share.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_diabetes
        >>> from onefit import KernelRegressor, KernelSearchCV
        >>> X, y = load_diabetes(return_X_y=True)
        >>> Y = np.column_stack([y, X[:, 0]])
        >>> search = KernelSearchCV(KernelRegressor(), {"lam": [1e-4, 1e-2]}).fit(X, Y)
        >>> search.fit_per_target(X, Y).lams
        array([0.01  , 0.0001])
        """
        return fit_per_target(self, X, y, sample_weight)

    @available_if(_can_predict)
    def predict(self, X: Any, return_std: bool = False) -> Array:
        """Predictions of the winner for the rows of X."""
        if return_std:
            raise no_standard_deviation()
        return super().predict(X)  # type: ignore[no-any-return]

    def plot(self) -> Array:
        """Draw the cross-validation surface and curve of the winner; returns matplotlib's axes."""
        from onefit.report.figures import plot_search

        return plot_search(as_kernel_search(self))

    @property
    def _repr_html_(self) -> Any:
        """HTML for a notebook: choice, score and surface after a fit, else the parameters."""
        shown = super()._repr_html_  # an AttributeError where scikit-learn is to show text
        if not hasattr(self, "best_index_"):
            return shown
        from onefit.report.page import as_html

        return partial(as_html, as_kernel_search(self))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return bundle | ({"text/html": self._repr_html_()} if "text/html" in bundle else {})

    def report(self, path: Any, **options: Any) -> Any:
        """Write the search as one HTML file, see :func:`onefit.report.write_report`."""
        from onefit.report import write_report

        return write_report(as_kernel_search(self), path, **options)


def _metadata(params: dict[str, Any]) -> dict[str, Any] | None:
    weight = params.get("sample_weight")
    return None if weight is None else {"sample_weight": weight}
