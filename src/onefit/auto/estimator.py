"""The estimators :class:`AutoKernelRegressor` and :class:`AutoKernelClassifier`."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from onefit import plan
from onefit._validation import DataError, check_choice
from onefit.auto import rules
from onefit.auto.data_checks import find_copies, strong_columns, together
from onefit.auto.familiar import Familiar, RowNotes, Unfamiliar
from onefit.auto.run import Planned
from onefit.callbacks import callbacks_of
from onefit.decide.calibrate import CALIBRATIONS
from onefit.estimators import KernelClassifier, KernelRegressor
from onefit.files import shown
from onefit.kernels import is_table
from onefit.plan import Deadline
from onefit.prepare import TablePreparer, named_alike
from onefit.search.setup import set_up
from onefit.search_cv import KernelSearchCV
from onefit.tables import as_frame, is_frame
from onefit.uncertainty import PredictionInterval, predict_interval

Array = NDArray[Any]

__all__ = ["AutoKernelClassifier", "AutoKernelRegressor", "select"]

#: rows up to which a report compares the criteria that cost no more than the search
MAX_ROWS_COMPARED = 1000
CHEAP_CRITERIA = {
    "squared": ("loo", "gcv"),
    "smoothed_hinge": ("gacv", "span", "sv_count"),
    "squared_hinge": ("span", "sv_count"),
}


def _has_probabilities(auto: Any) -> bool:
    """Whether the model has predict_proba: by calibration, or by its loss."""
    return auto.calibrate is not None or hasattr(auto._model(), "predict_proba")


class _AutoKernel(BaseEstimator):
    """What both estimators share."""

    _task: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = self.prepare is None
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = own or isinstance(self.prepare, TablePreparer)
        tags.input_tags.string = tags.input_tags.allow_nan
        return tags

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
        planned = self._plan(X, y, groups, sample_weight)
        planned.search.set_callbacks(*callbacks_of(self))
        try:
            planned.run()
        finally:
            planned.search.set_callbacks()
        self._keep(planned)
        if planned.fallback is not None:
            from onefit.report.facts import Facts

            scale = Facts(self.search_).scale
            print(planned.fallback.told(scale, scale.label), file=sys.stderr, flush=True)
        verdict = self.search_.headline_.verdict()
        if verdict:
            warnings.warn(f"{verdict}; see headline_", stacklevel=2)
        return self

    def _keep(self, planned: Planned) -> None:
        """Fitted attributes, from a search that is done."""
        self.search_: KernelSearchCV = planned.search
        self.reasons_, self.notes_ = planned.reasons, planned.notes
        self.fallback_ = planned.fallback
        self._fitted_to = planned.Z, planned.y, planned.params
        how = planned.calibrate
        model = planned.search.best_estimator_ if how is None else planned.search.calibrate(how)
        self.pipeline_ = Pipeline([("prepare", self._preparer), ("model", model)])
        self.__dict__.pop("_familiar_rows", None)

    def explain(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> str:
        """What :meth:`fit` would do and how long it would take, by the plan; nothing is fitted."""
        from onefit.auto.stages import plan_stages, show_stages

        other = clone(self)
        planned = other._plan(X, y, groups, sample_weight)
        planned.narrow()
        planned.fit_in_time()
        setup = set_up(
            planned.search, planned.Z, planned.y, planned.weights, {"groups": planned.groups}
        )
        texts = [plan.explain(load, best) for load, best in setup.works.items()]
        stages = show_stages(plan_stages(planned, setup, np.shape(X)))
        return "\n".join([*planned.reasons, "", "\n\n".join([*texts, stages])])

    def _plan(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Planned:
        """Apply the rules: a search, ready to be fitted, with its data."""
        calibrate = getattr(self, "calibrate", None)
        if calibrate is not None:
            check_choice("calibrate", calibrate, CALIBRATIONS)
        deadline = None if self.minutes is None else Deadline(self.minutes)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        X = self._checked_X(X, reset=True)
        y, n = self._checked_y(y), X.shape[0]
        if len(y) != n:
            raise ValueError(f"X has {n} rows and y has {len(y)}; they must have the same length")
        given = {"groups": groups, "sample_weight": sample_weight}
        given = {name: np.asarray(one) for name, one in given.items() if one is not None}
        seed = _seed(self.random_state)
        rows, Z = self._prepared(X)
        notes = list(getattr(self._preparer, "notes_", ()))
        splits, why_splits, given, copied = self._splits(rows, y, given, seed)
        notes += copied
        for note in notes:
            warnings.warn(note, stacklevel=3)
        self.scoring_, why_scoring = rules.choose_scoring(self.scoring, y, self._task)
        kernels, why_kernels = rules.choose_kernels(self.kernels, Z)
        grid, loss = self.param_grid, self.loss or "squared"
        if grid is None:
            grid = rules.choose_grid(kernels, loss, Z, y, self._task, seed)
        else:
            grid, why_kernels = grid if isinstance(grid, list) else [grid], "grid, as given"
        why_loss = f"{loss} loss, as given" if self.loss else (
            "squared loss: its held-out predictions are exact and cheapest (change with loss)"
        )  # fmt: skip
        why_task = f"{self._task}: {type(self).__name__}"
        reasons = [why_task, why_scoring, why_splits, why_loss, why_kernels]
        ordered = isinstance(splits, TimeSeriesSplit)
        strong = strong_columns(rows, y, self._task, given.get("groups"), ordered)
        search = KernelSearchCV(
            self._model(y),
            grid,
            cv=splits,
            scoring=self.scoring_,
            aggregate="pooled",
            n_jobs=self.n_jobs,
            journal=self.journal,
        )
        return Planned(
            search, Z, y, given, self._task, self._may_be_robust(y), strong,
            [one for one in reasons if one], notes, deadline,
            growing=() if self.param_grid is not None else ("gamma", "lam"), seed=seed,
            calibrate=calibrate,
        )  # fmt: skip

    def _splits(
        self, rows: Any, y: Array, given: dict[str, Any], seed: int
    ) -> tuple[Any, str, dict[str, Any], list[str]]:
        """Splits that keep copies of a row together, the reason, their groups, and notes."""
        groups, notes = given.get("groups"), []
        copies = find_copies(rows, y)
        if copies.count:
            groups, why_apart = together(copies, groups, y, self._task, self.cv)
            notes.append(copies.note(rows, why_apart))
        splits, why = rules.choose_splits(self.cv, len(y), self._task, groups, seed)
        if groups is not None:
            why, given = why if "groups" in given else "", given | {"groups": groups}
        return splits, why, given, notes

    def _prepared(self, X: Any) -> tuple[Any, Any]:
        """Rows as the checks of the data take them, and as the kernel does."""
        self._preparer = TablePreparer() if self.prepare is None else self.prepare
        if self.prepare is not None and not isinstance(self.prepare, str):
            self._preparer = clone(self.prepare)
        if isinstance(self._preparer, TablePreparer):
            rows = self._preparer.fit_read(X)
            return rows, self._preparer.encode(rows)
        Z = X if self._preparer == "passthrough" else self._preparer.fit_transform(X)
        Z = Z if issparse(Z) else np.ascontiguousarray(Z, dtype=np.float64)
        return Z, Z

    def _checked_X(self, X: Any, reset: bool = False) -> Any:
        """Data frames of pandas; arrays of numbers; sparse matrices by rows."""
        if is_frame(X):
            X = named_alike(as_frame(X))
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

    @property
    def best_params_(self) -> dict[str, Any]:
        """Kernel, lam and whatever else was chosen."""
        found: dict[str, Any] = self.search_.best_params_
        return found

    @property
    def best_estimator_(self) -> Any:
        """The chosen model, which takes prepared rows; :attr:`pipeline_` takes rows as given."""
        return self.pipeline_.named_steps["model"]

    @property
    def best_score_(self) -> float:
        """The score of the chosen model on all held-out rows together, by ``scoring_``."""
        return float(self.search_.best_score_)

    @property
    def cv_results_(self) -> dict[str, Any]:
        """All candidates."""
        found: dict[str, Any] = self.search_.cv_results_
        return found

    @property
    def heldout_(self) -> Any:
        """Held-out predictions of the chosen model."""
        return self.search_.heldout_

    @property
    def headline_(self) -> Any:
        """The expected score with its interval, and that of a baseline that ignores X."""
        return self.search_.headline_

    @property
    def n_splits_(self) -> int:
        """Splits of the cross-validation."""
        return int(self.search_.n_splits_)

    def predict(self, X: Any) -> Array:
        """Predictions for rows with the columns of the fitted table."""
        check_is_fitted(self, "pipeline_")
        found: Array = self.pipeline_.predict(self._checked_X(X))
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of predictions for new rows, by ``scoring_``."""
        check_is_fitted(self, "pipeline_")
        scorer = get_scorer(self.scoring_) if isinstance(self.scoring_, str) else self.scoring_
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer(self, X, y, **weight))

    def unfamiliar(self, X: Any) -> RowNotes:
        """Rows unlike the training rows: far from them, of unknown categories, or with new gaps.

        See :mod:`onefit.uncertainty.novelty`.
        """
        check_is_fitted(self, "pipeline_")
        found = Unfamiliar(self.familiar_)
        rows = self._checked_X(X)
        read = getattr(self.pipeline_.named_steps["prepare"], "read", None)
        novelty, notes = found.add(rows if read is None else read(rows))
        return RowNotes(novelty, notes, found.told)

    @property
    def familiar_(self) -> Familiar:
        """What rows like the training rows look like."""
        if not hasattr(self, "_familiar_rows"):
            groups = self._fitted_to[2].get("groups")
            preparer = self.pipeline_.named_steps["prepare"]
            self._familiar_rows = Familiar.of(
                self.best_estimator_, preparer, self.search_.folds_, groups
            )
        return self._familiar_rows

    def relevance(self) -> Any:
        """Find the columns that matter; the choice itself stays. See :mod:`onefit.relevance`.

        A second search with the chosen kernel (the Gaussian if that is linear) and one gamma per
        prepared column follows the gradient, and is repeated without each of five parts of the
        rows. The report shows the result.
        """
        from onefit.auto.columns import find_relevance

        check_is_fitted(self, "pipeline_")
        self.search_.relevance_ = find_relevance(self)
        return self.search_.relevance_

    def report(self, path: Any, **options: Any) -> Any:
        """Write the report as one HTML file; for options see :func:`onefit.report.write_report`.

        With at most 1000 rows and no time limit, the report compares the criteria that cost no
        more than the search.
        """
        from onefit.report import compare_criteria, write_report

        check_is_fitted(self, "pipeline_")
        Z, y, params = self._fitted_to
        losses = {
            one.get("loss", self.search_.estimator.loss) for one in self.cv_results_["params"]
        }
        if len(y) <= MAX_ROWS_COMPARED and self.minutes is None and len(losses) == 1:
            names = CHEAP_CRITERIA.get(losses.pop(), ())
            if self.search_.estimator.approximation is None and y.ndim == 1:
                compare_criteria(self.search_, Z, y, names, params.get("sample_weight"))
        describe = getattr(self.pipeline_.named_steps["prepare"], "describe", None)
        about = {"task": self._task}
        if describe is not None:
            about = {"preprocessing": describe()} | about
        if self.notes_:
            about["notes"] = "; ".join(self.notes_)
        options["about"] = about | dict(options.get("about") or {})
        return write_report(self.search_, path, **({"y": y} | options))

    def summary(self) -> str:
        """The choice, its score beside the baseline, reasons and notes, a line each."""
        from onefit.report.facts import Facts

        check_is_fitted(self, "pipeline_")
        facts = Facts(self.search_)
        params = ", ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.best_params_.items()
        )
        low, high = facts.interval
        r2 = self.headline_.r2
        beside = "" if r2 is None or facts.scale.label == "R²" else f"; R² {r2:.4g}"
        lines = [
            f"{type(self.best_estimator_).__name__}, {params}",
            f"{facts.scale.label} {facts.scale(self.best_score_):.4g}, 95% interval {low:.4g} to "
            f"{high:.4g}; {self.headline_.baseline_name}: {facts.baseline:.4g}{beside}",
        ]
        return "\n".join([*lines, *self.reasons_, *(f"Note: {note}" for note in self.notes_)])

    @property
    def _repr_html_(self) -> Any:
        """For a notebook: the summary and the search after a fit, else the parameters."""
        shown_before = super()._repr_html_  # an AttributeError where scikit-learn shows text
        return partial(self._fitted_html, shown_before) if hasattr(self, "pipeline_") else (
            shown_before
        )  # fmt: skip

    def _fitted_html(self, _: Any) -> str:
        first, *others = (escape(line) for line in self.summary().splitlines())
        items = "".join(f"<li>{line}</li>" for line in others)
        return f"<div><strong>{first}</strong><ul>{items}</ul>{self.search_._repr_html_()}</div>"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return bundle | ({"text/html": self._repr_html_()} if "text/html" in bundle else {})

    def _approximated(self) -> dict[str, Any]:
        if self.approximation is None:
            return {}
        return {"approximation": self.approximation, "random_state": _seed(self.random_state)}

    def _may_be_robust(self, y: Array) -> bool:
        return False


class AutoKernelRegressor(RegressorMixin, _AutoKernel):
    """Kernel regression with everything chosen by cross-validation, by documented rules.

    The rules, in the order they are applied:

    1. **Columns.** Numbers, currencies, percentages and dates are read from the text of data
       frames; numbers are standardised and gaps filled with the median, text is one-hot encoded
       (:class:`onefit.prepare.TablePreparer`). This is learnt from all rows, without the targets,
       and is the first step of ``pipeline_``, which takes the table as it is.
    2. **Score.** R^2 of all held-out rows together.
    3. **Splits.** An int ``cv`` is that number of shuffled folds; with ``groups``, no group is on
       both sides of a split. Neither are copies of a row, equal in all columns and the target; a
       note says how many there are.
    4. **Candidates.** Kernels "rbf", "laplacian" (dense X only) and "linear", beyond 2,000 rows
       "rbf" alone, with the bandwidths and lams of :func:`onefit.default_grid`; the squared loss,
       for which one decomposition serves all lams.
    5. **Outliers** (one target). If more than 1 % of the winner's held-out residuals are further
       from their median than 5 times their scale (the MAD, JMLR 2008 eq. 18; for normal errors one
       in 1.7 million is), candidates are chosen by the mean absolute error instead: the squared
       loss is searched again by it, for the kernel and the scale of its residuals, and then, with
       that kernel and bandwidths up to two grid steps from its own, the squared loss and Huber's
       loss with a threshold of 1, 2 and 3 times the scale. The score stays R^2; the mean absolute
       error is ``cv_results_["criterion"]``.

       In simulations (``benchmarks/outlier_rule.py``, 40 data sets per kind of noise) Huber's loss
       was chosen for none with normal errors, for 1 with Laplace errors, for 4 with Student's t
       errors (3 degrees of freedom), and for 78 of 80 with 3 % or 10 % of gross outliers, where
       the median error fell to between 0.29 and 0.79 of that of the squared loss.
    6. **Time** (with ``minutes``). Everything in :meth:`fit` counts. If the plan of the search and
       the final fit takes longer, or more memory than there is, Nystrom features replace the
       kernel matrix (:mod:`onefit.fallback`), and optional work is reduced or left out: rule 5, and
       one cross-validation of the winner with the whole kernel. A search that is slower than
       planned changes to features, or ends with the kernels tried so far. ``reasons_`` says what
       was left out.

    A column that alone explains nearly all of the target on held-out rows gets a warning, and so
    does a choice that does not clearly beat the baseline. For other rules, or a kernel matrix
    instead of X, use :class:`onefit.KernelSearchCV`.

    Parameters
    ----------
    prepare : transformer or "passthrough", default=None
        First step of the pipeline; None is ``TablePreparer()``.
    scoring : str or callable, default=None
        Any scorer of scikit-learn, or a short name such as "mae" or "rmse".
    cv : int, splitter, or iterable of splits, default=5
    kernels : str or sequence of str, default=None
    loss : str, default=None
    param_grid : dict or list of dicts, default=None
        Candidates, as in :class:`onefit.KernelSearchCV`.
    outliers : bool, default=None
        Whether to apply rule 5; None applies it if none of ``loss``, ``scoring`` and
        ``param_grid`` is given.
    approximation : str, default=None
        "nystrom" or "fourier": features instead of the kernel matrix.
    minutes : float, default=None
        Time limit, see rule 6.
    n_jobs : int, default=None
        As in :class:`onefit.KernelSearchCV`.
    journal : path, default=None
        Folder that keeps finished work; an interrupted fit resumes from it.
    random_state : int, RandomState or None, default=0
        For the folds, and the pairs of rows that give the bandwidths.

    Attributes
    ----------
    pipeline_ : Pipeline
        The fitted model, plain scikit-learn: steps "prepare" and "model".
    search_ : KernelSearchCV
        The fitted search, on prepared rows.
    best_params_, best_score_, cv_results_, heldout_, headline_
        Those of ``search_``.
    scoring_ : str or callable
    reasons_ : list of str
        What was chosen, and why.
    notes_ : list of str
        What a user should know of the data; also given as warnings.
    fallback_ : Fallback or None
        Features that replaced the kernel matrix for lack of time.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefit import AutoKernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> auto = AutoKernelRegressor(kernels="rbf").fit(X, y)
    >>> bool(auto.best_score_ > 0.45), auto.predict(X[:3]).shape
    (True, (3,))
    """

    _task = "regression"

    def __init__(
        self,
        *,
        prepare: Any = None,
        scoring: Any = None,
        cv: Any = 5,
        kernels: Any = None,
        loss: str | None = None,
        param_grid: Any = None,
        outliers: bool | None = None,
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
        self.outliers = outliers
        self.approximation = approximation
        self.minutes = minutes
        self.n_jobs = n_jobs
        self.journal = journal
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict_interval(self, X: Any, alpha: float = 0.1) -> PredictionInterval:
        """Intervals that contain a new target with probability ``1 - alpha``, by held-out rows.

        They are for rows of new groups if ``groups`` were given, and for later rows if the splits
        go forward in time; see :func:`onefit.predict_interval`.
        """
        check_is_fitted(self, "pipeline_")
        rows = self.pipeline_[:-1].transform(self._checked_X(X))
        Z, y, params = self._fitted_to
        return predict_interval(self.search_, Z, y, rows, alpha, **params)

    def _model(self, y: Any = None) -> Any:
        return KernelRegressor(loss=self.loss or "squared", **self._approximated())

    def _may_be_robust(self, y: Array) -> bool:
        given = self.loss or self.scoring or self.param_grid
        asked = not given if self.outliers is None else self.outliers
        return bool(asked) and y.ndim == 1

    def _checked_y(self, y: Any) -> Array:
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0)
        if y.dtype.kind in "OUS":
            try:
                y = y.astype(np.float64)
            except ValueError:
                raise DataError(
                    f"y holds text (for example {shown(np.ravel(y)[0])}), which a regression "
                    "cannot use; use task='classification'"
                ) from None
        if y.ndim not in (1, 2) or 0 in y.shape:
            raise ValueError(f"y must have shape (n,) or (n, q), got {y.shape}")
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        return np.asarray(y, dtype=np.float64)


class AutoKernelClassifier(ClassifierMixin, _AutoKernel):
    """Kernel classification with everything chosen by cross-validation, by documented rules.

    The rules are those of :class:`AutoKernelRegressor`, except for the score and outliers: the
    score is the accuracy of all held-out rows together, folds are stratified by label, and the loss
    is squared (a least squares support vector machine) unless ``loss`` is given. If a class has
    less than half of an even share of the rows, ``reasons_`` mention balanced accuracy. For other
    thresholds and decisions by cost see ``tune_threshold`` and ``minimise_cost`` of ``search_``.

    Parameters
    ----------
    prepare : transformer or "passthrough", default=None
    scoring : str or callable, default=None
    cv : int, splitter, or iterable of splits, default=5
    kernels : str or sequence of str, default=None
    loss : str, default=None
    param_grid : dict or list of dicts, default=None
    class_weight : dict or "balanced", default=None
        Weights by label; labels that are not in the dict have weight 1.
    calibrate : {"sigmoid", "isotonic"}, default=None
        Calibrate the winner on its held-out decision values, which gives it ``predict_proba``.
        "isotonic" needs about a thousand rows.
    approximation : str, default=None
    minutes : float, default=None
    n_jobs : int, default=None
    journal : path, default=None
    random_state : int, RandomState or None, default=0
        Others as in :class:`AutoKernelRegressor`, and so are the attributes.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onefit import AutoKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> auto = AutoKernelClassifier(calibrate="sigmoid").fit(X, y)
    >>> bool(auto.best_score_ > 0.95), auto.predict_proba(X[:2]).shape
    (True, (2, 3))
    """

    _task = "classification"

    def __init__(
        self,
        *,
        prepare: Any = None,
        scoring: Any = None,
        cv: Any = 5,
        kernels: Any = None,
        loss: str | None = None,
        param_grid: Any = None,
        class_weight: Any = None,
        calibrate: str | None = None,
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
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.approximation = approximation
        self.minutes = minutes
        self.n_jobs = n_jobs
        self.journal = journal
        self.random_state = random_state

    def _keep(self, planned: Planned) -> None:
        super()._keep(planned)
        self.classes_: Array = planned.search.classes_

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes."""
        check_is_fitted(self, "pipeline_")
        found: Array = self.pipeline_.predict_proba(self._checked_X(X))
        return found

    @available_if(lambda auto: auto.calibrate is None)
    def decision_function(self, X: Any) -> Array:
        """Decision values of the classes; a calibrated model has ``predict_proba`` instead."""
        check_is_fitted(self, "pipeline_")
        found: Array = self.pipeline_.decision_function(self._checked_X(X))
        return found

    def _model(self, y: Any = None) -> Any:
        return KernelClassifier(
            loss=self.loss or "squared", class_weight=self.class_weight, **self._approximated()
        )

    def _checked_y(self, y: Any) -> Array:
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y))[0])
            raise ValueError(f"y holds {y[row]} in row {row}; drop the row, or fill it in")
        check_classification_targets(y)
        values, counts = np.unique(y, return_counts=True)
        if values.size < 2:
            raise ValueError(f"y has one class only, {shown(values[0])}; a classifier needs two")
        rare = values[counts < 2]
        if rare.size:
            raise DataError(
                f"class {shown(rare[0])} of the target has one row only, so it cannot be held "
                "out; remove it, or join it with another class"
            )
        rules.check_class_weight(self.class_weight, y)
        return np.asarray(y)


def select(
    X: Any,
    y: Any,
    *,
    task: str = "auto",
    groups: Any = None,
    sample_weight: Any = None,
    **options: Any,
) -> Any:
    """Fit an :class:`AutoKernelRegressor` or an :class:`AutoKernelClassifier`, by the target.

    Text, booleans, and whole numbers with at most 20 values, each in at least two rows, are labels;
    other numbers, and several columns of them, are quantities.

    Parameters
    ----------
    X : DataFrame, array or sparse matrix of shape (n, d)
    y : array of shape (n,) or (n, q)
    task : {"auto", "regression", "classification"}, default="auto"
    groups, sample_weight : arrays of shape (n,), default=None
        Passed to ``fit``.
    **options
        Parameters of the estimator.

    Returns
    -------
    AutoKernelRegressor or AutoKernelClassifier
        Fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onefit import select
    >>> found = select(*load_iris(return_X_y=True))
    >>> type(found).__name__, bool(found.best_score_ > 0.95)
    ('AutoKernelClassifier', True)
    """
    y, kind, reason = _for_task(y, task)
    found = kind(**options).fit(X, y, groups=groups, sample_weight=sample_weight)
    found.reasons_[0] = reason
    return found


def _for_task(y: Any, task: str) -> tuple[Array, type[Any], str]:
    """The target as an array, the estimator for it, and the reason."""
    y = np.asarray(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim not in (1, 2) or 0 in y.shape:
        raise ValueError(f"y must have shape (n,) or (n, q), got {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argwhere(~np.isfinite(y))[0, 0])
        raise ValueError(f"y holds {y[row]} in row {row}; drop the row, or fill it in")
    if np.unique(y).size == 1:
        raise ValueError(f"y is {y.flat[0]!r} in every row; there is nothing to predict")
    task, reason = rules.choose_task(y, task)
    if task == "regression":
        return y, AutoKernelRegressor, reason
    whole = y.dtype.kind == "f" and bool((y == np.round(y)).all())
    return y.astype(np.int64) if whole else y, AutoKernelClassifier, reason


def _seed(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
