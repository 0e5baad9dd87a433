"""The estimators :class:`AutoKernelRegressor` and :class:`AutoKernelClassifier`, and `select`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted

from onefit._frames import shown
from onefit._validation import DataError, suggest
from onefit.auto import rules
from onefit.auto.base import AutoKernel
from onefit.auto.planning import make_model
from onefit.auto.run import Selection
from onefit.tables import read_target
from onefit.uncertainty import PredictionInterval, predict_interval

Array = NDArray[Any]

__all__ = ["AutoKernelClassifier", "AutoKernelRegressor", "make_auto", "select"]


def _has_probabilities(auto: Any) -> bool:
    """Whether the model has predict_proba: by calibration, or by its loss."""
    return auto.calibrate is not None or hasattr(make_model(auto), "predict_proba")


class AutoKernelRegressor(RegressorMixin, AutoKernel):
    """Kernel regression: preprocessing, kernel and parameters are chosen by documented rules.

    The rules, in the order they are applied:

    1. **Columns.** Numbers, currencies, percentages and dates are read from the text of data
       frames; numbers are standardised and gaps filled with the median, text is one-hot encoded
       (:class:`onefit.prepare.TablePreparer`). This is learned from all rows, without the targets,
       and is the first step of ``pipeline_``, which takes the table as it is.
    2. **Score.** R^2 of all held-out rows together.
    3. **Splits.** An int ``cv`` is that number of shuffled folds; with ``groups``, no group is on
       both sides of a split. Neither are copies of a row, equal in all columns and the target; a
       note says how many there are. For rows in order of time pass a ``TimeSeriesSplit``.
    4. **Candidates.** Kernels "rbf", "laplacian" (dense X only), "matern32" and "linear" with the
       bandwidths and lams of :func:`onefit.default_grid`; with many rows, a race on a sample keeps
       the kernels and bandwidths near the best (:mod:`onefit.auto.race`), and a grid grows where
       the winner is at its edge. The squared loss, for which one decomposition serves all lams.
    5. **Outliers** (one target; none of ``loss``, ``scoring`` and ``param_grid`` given). If more
       than 1 % of the winner's held-out residuals are further from their median than 5 times their
       scale (the MAD, JMLR 2008 eq. 18; for normal errors one in 1.7 million is), candidates are
       chosen by the mean absolute error instead: the candidate with the smallest one gives the
       kernel and the scale of the residuals, and then, with that kernel and bandwidths up to two
       grid steps from its own, the squared loss and Huber's loss with a threshold of 1, 2 and 3
       times the scale are searched. The score stays R^2; the mean absolute error is
       ``cv_results_["criterion"]``. Without ``minutes``, that search is smaller, or left out, where
       its plan exceeds a minute (some thousand rows).

       In simulations (``benchmarks/outlier_rule.py``, 40 data sets per kind of noise) Huber's loss
       was chosen for none with normal errors, for 1 with Laplace errors, for 4 with Student's t
       errors (3 degrees of freedom), and for 78 of 80 with 3 % or 10 % of gross outliers, where
       the median error fell to between 0.29 and 0.79 of that of the squared loss.
    6. **Time** (with ``minutes``). Everything in :meth:`fit` counts. If the plan of the search and
       the final fit takes longer, or more memory than there is, Nystrom features replace the
       kernel matrix (:mod:`onefit.auto.fallback`), and rule 5 is reduced or left out. A search that
       is slower than planned changes to features, or ends with the kernels tried so far.
       ``reasons_`` says what was left out.
    7. **Learned metrics** (one target; none of ``kernels``, ``loss``, ``scoring``, ``param_grid``
       and ``approximation`` given). Kernels of rows with a metric
       (:mod:`onefit.gradient_metric`) or with scales of the columns
       (:mod:`onefit.evidence_scales`), learned in every training part, are candidates, too. Where
       rule 4 has a race on a sample, those are tried on all rows that have a weight in the average
       of all candidates of the sample. With outliers (rule 5), the smaller mean absolute error
       decides whether the best learned model or the one with Huber's loss is the best candidate.
    8. **Average** (under the conditions of rule 7). The model is a weighted average of the
       candidates, see :mod:`onefit.stacking`. With ``stack=False`` it is the best one; if that is
       learned, the pipeline has a step "rows".

    A column that alone explains nearly all of the target on held-out rows gets a warning, and so
    does a choice that does not clearly beat the baseline. For other rules, or a kernel matrix
    instead of X, use :class:`onefit.KernelSearchCV`.

    Parameters
    ----------
    prepare : transformer or "passthrough", default=None
        First step of the pipeline; None is ``TablePreparer()``. One that needs the target, such as
        ``SelectKBest``, is fitted in every training part, or the score would be that of rows whose
        targets it has seen; grids then stay as they are, and rule 5 and ``minutes`` do not apply.
    scoring : str or callable, default=None
        Any scorer of scikit-learn, or a short name such as "mae" or "rmse".
    cv : int, splitter, or iterable of splits, default=5
    kernels : str or sequence of str, default=None
    loss : str, default=None
    param_grid : dict or list of dicts, default=None
        Candidates, as in :class:`onefit.KernelSearchCV`.
    stack : bool or "nested", default=None
        Whether to average the candidates instead of choosing one, see :mod:`onefit.stacking`. None
        does so for a regression under the conditions of rule 7, if the preparation is not fitted in
        the training parts.
        "nested" also computes the error of the stack by nested cross-validation, a few times as
        long as the search.
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
    searches_ : list of KernelSearchCV
        All searches on all rows: of the rows as they are, of learned metrics and scales, with
        Huber's loss. The first one has the best candidate.
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
    score = AutoKernel.score  # that of the mixin is always R²

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
        data, rows = self._planned.data, self._checked_X(X)
        with self._own_settings():
            rows = rows if self._planned.in_folds else self._fitted[:1].transform(rows)
            return predict_interval(self.search_, data.X, data.y, rows, alpha=alpha, **data.params)

    def _may_be_robust(self, y: Array) -> bool:
        return not (self.loss or self.scoring or self.param_grid) and y.ndim == 1

    def _checked_y(self, y: Any) -> Array:
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0)
        rules.check_values(y)
        if y.dtype.kind in "OUS":
            try:
                y = y.astype(np.float64)
            except ValueError:
                text, y = y, read_target(y)
        if y.dtype.kind in "OUS":
            raise DataError(
                f"the target holds text (for example {shown(np.ravel(text)[0])}), which a "
                "regression cannot use; use task='classification'"
            )
        if y.ndim not in (1, 2) or 0 in y.shape:
            raise ValueError(f"y must have shape (n,) or (n, q), got {y.shape}")
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        return np.asarray(y, dtype=np.float64)


class AutoKernelClassifier(ClassifierMixin, AutoKernel):
    """Kernel classification: preprocessing, kernel and parameters are chosen by documented rules.

    The rules are those of :class:`AutoKernelRegressor`, except for the score, outliers and the
    average: the score is the accuracy of all held-out rows together, folds are stratified by label,
    and the loss is squared (a least squares support vector machine) unless ``loss`` is given.
    Candidates are averaged, and metrics and scales learned, with ``stack=True`` only. If a class
    has less than half of an even share of the rows, ``reasons_`` mention balanced accuracy. For
    other thresholds and decisions by cost see ``tune_threshold`` and ``minimise_cost`` of
    ``search_``.

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
    stack : bool or "nested", default=None
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
    score = AutoKernel.score  # that of the mixin is always the accuracy

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
        stack: bool | str | None = None,
        approximation: str | None = None,
        minutes: float | None = None,
        n_jobs: int | None = None,
        journal: Any = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            prepare=prepare,
            scoring=scoring,
            cv=cv,
            kernels=kernels,
            loss=loss,
            param_grid=param_grid,
            stack=stack,
            approximation=approximation,
            minutes=minutes,
            n_jobs=n_jobs,
            journal=journal,
            random_state=random_state,
        )
        self.class_weight = class_weight
        self.calibrate = calibrate

    def _keep(self, planned: Selection) -> None:
        super()._keep(planned)
        self.classes_: Array = planned.search.classes_

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes."""
        return self._of_pipeline("predict_proba", X)

    @available_if(lambda auto: auto.calibrate is None)
    def decision_function(self, X: Any) -> Array:
        """Decision values of the classes; a calibrated model has ``predict_proba`` instead."""
        return self._of_pipeline("decision_function", X)

    def _checked_y(self, y: Any) -> Array:
        y = column_or_1d(y, warn=True)
        rules.check_values(y)
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
    """Fit an automatic regressor or classifier, by the type of the target.

    Text, booleans, two different whole numbers, and codes of classes (0 to k - 1 or 1 to k, at most
    20, each in at least two rows) are labels; other numbers, and several columns of them, are
    quantities.

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
    found = read_target(y)
    auto, y = make_auto(found if found.dtype.kind in "fiu" else y, task, **options)
    return auto.fit(X, y, groups=groups, sample_weight=sample_weight)


#: parameters of the classifier only, and their counterparts in a regression
OF_CLASSES = {"calibrate": "predict_interval", "class_weight": "sample_weight"}


def make_auto(y: Any, task: str = "auto", **options: Any) -> tuple[Any, Array]:
    """The estimator for a target, not fitted, and the target as an array.

    Parameters
    ----------
    y : array of shape (n,) or (n, q)
    task : {"auto", "regression", "classification"}, default="auto"
    **options
        Parameters of the estimator.
    """
    y = np.asarray(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim not in (1, 2) or 0 in y.shape:
        raise ValueError(f"y must have shape (n,) or (n, q), got {y.shape}")
    rules.check_values(y)
    task, reason = rules.choose_task(y, task)
    auto: Any
    kind = AutoKernelRegressor if task == "regression" else AutoKernelClassifier
    known = {*kind().get_params(deep=False), *OF_CLASSES}
    for name in options:
        if name not in known:
            raise TypeError(f"{name!r} is not a parameter of {kind.__name__}{suggest(name, known)}")
    if task == "regression":
        for name, instead in OF_CLASSES.items():
            if options.pop(name, None) is not None:
                raise ValueError(
                    f"{name} is for classes, and this is a regression; leave it out (a regression "
                    f"has {instead})"
                )
        auto = AutoKernelRegressor(**options)
    else:
        whole = y.dtype.kind == "f" and bool((y == np.round(y)).all())
        y, auto = y.astype(np.int64) if whole else y, AutoKernelClassifier(**options)
    auto._why = reason
    return auto, y
