"""One call from rows and targets to a fitted model, by rules that are written down."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from onefit._indexing import n_rows
from onefit.choose.familiar import columns_with_gaps
from onefit.choose.fit import fit_recipe, in_time
from onefit.choose.options import Options
from onefit.choose.recipe import Recipe, make_recipe
from onefit.choose.result import Selection
from onefit.choose.splits import choose_splits
from onefit.grids import default_grid
from onefit.kernels import is_table
from onefit.plan import Deadline
from onefit.relevance import Relevance
from onefit.relevance import relevance as find_relevance
from onefit.report.facts import Facts
from onefit.search.continuous import Interval
from onefit.search_cv import KernelSearchCV
from onefit.tables import ColumnReader, Table, as_frame, is_frame

Array = NDArray[Any]

__all__ = ["Selection", "select"]


def select(
    X: Any,
    y: Any,
    *,
    task: str = "auto",
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    cv: Any = 5,
    kernels: str | Sequence[str] | None = None,
    loss: str | None = None,
    class_weight: Any = None,
    param_grid: Any = None,
    scale: str = "auto",
    n_jobs: int | None = None,
    random_state: Any = 0,
    relevance: bool = False,
    minutes: float | None = None,
    probabilities: str | None = None,
    dayfirst: bool | None = None,
) -> Selection:
    """Choose a kernel machine for the data, and return it fitted, with the reasons.

    ``onefit select`` on the command line follows the same rules: the same data give the same
    choice, and the same scikit-learn pipeline. The rules, in the order they are applied:

    1. **Task.** Text, booleans, and whole numbers with at most 20 values, each in two rows at
       least, are labels: a :class:`KernelClassifier`. Other numbers, and several columns of them,
       are quantities: a :class:`KernelRegressor`.
    2. **Columns.** Of a table, numbers, currencies, percentages and dates are read from text, and
       gap codes among them as gaps (:class:`onefit.tables.ColumnReader`). Numbers are
       standardised, and gaps filled with the median; dates are days since 1970; text is spread
       over indicator columns, at most 50 a column; sparse columns are divided by their largest
       absolute value. That is learnt from all rows, without the targets, and these are the first
       steps of the pipeline, which takes the table as it is.
    3. **Score.** R^2, or accuracy, of all held-out rows together. (The command line shows the root
       mean squared error, which ranks candidates as R^2 does.) The task alone decides, not the
       sample; if a class has less than half of its even share of the rows, ``reasons`` mention
       balanced accuracy.
    4. **Splits.** An int ``cv`` is that many shuffled folds, stratified by label; with ``groups``,
       no group is on both sides of a split, and neither are copies of a row, equal in all columns
       and the target, of which a warning tells the number.
    5. **Candidates.** Kernels "rbf", "laplacian" (dense X only) and "linear", beyond 2,000 rows
       "rbf" alone, with :func:`default_grid`'s bandwidths from the distances between rows, and its
       lams; the squared loss, of which one decomposition serves all lams.
    6. **Outliers** (one target, and neither ``loss`` nor ``scoring`` given). If more than 1 % of
       the winner's held-out residuals are further from their median than 5 times their scale (the
       MAD, JMLR 2008 eq. 18; for normal errors one in 1.7 million is), candidates are chosen by
       the mean absolute error instead, in which an outlier is not squared: by it the squared loss
       is searched again, for the kernel and the scale of its residuals, and then, with that
       kernel and bandwidths up to two steps of the grid from its own, the squared loss and Huber's
       with a threshold of 1, 2 and 3 times the scale. ``reasons`` say so. The score stays R^2; the
       mean absolute error is ``cv_results_["criterion"]``.

       In simulations (``benchmarks/outlier_rule.py``, 40 data sets for each kind of noise) Huber's
       loss was chosen for none with normal errors, for 1 with Laplace errors, for 4 with those of
       Student's t (3 degrees of freedom), and for 78 of 80 with 3 % or 10 % of gross outliers,
       where the median error fell to between 0.29 and 0.79 of that of the squared loss.

    7. **Time** (with ``minutes``). All that runs counts, from the call on. Where the plan of the
       search and the final fit takes longer than is left, or more memory than there is, features
       replace the kernel matrix: ``approximation="nystrom"``, see :mod:`onefit.fallback`. A note on
       stderr says so. Optional work is left out first: the answer to outliers (rule 6; with
       features by the limit of Huber's loss, ``method="limit"``) is made smaller or left out, and
       the winner is compared with the whole kernel, by one cross-validation on the same folds, only
       if that fits into the time that is left. The clock is asked between kernels, too: a search
       that comes out slower than planned takes features, or ends with the kernels tried so far.
       ``reasons`` says what was left out; ``fallback_`` is None where the whole kernel was used.

    A column that alone explains nearly all of the target on held-out rows gets a warning: the
    target in another form, say. Warnings about the data are in ``notes``.

    What the choice is worth is in ``headline_``: its score, an interval that allows for the choice
    among many, and the score of a baseline that does not look at X. A choice that does not clearly
    beat the baseline gets a warning. Other thresholds, and decisions by cost: ``tune_threshold``
    and ``minimise_cost`` of ``search``. For other rules, or a kernel matrix in place of X, use
    :class:`KernelSearchCV`.

    Parameters
    ----------
    X : DataFrame, array or sparse matrix of shape (n, d)
        A DataFrame of pandas or Polars, or a table of PyArrow.
    y : array of shape (n,) or (n, q)
    task : {"auto", "regression", "classification"}, default="auto"
    scoring : str or callable, default=None
        Any scorer of scikit-learn, or a short name such as "mae" or "rmse".
    groups : array of shape (n,), default=None
    sample_weight : array of shape (n,), default=None
        For fits and scores; the test for outliers counts rows alike.
    cv : int, splitter, or iterable of splits, default=5
    kernels : str or sequence of str, default=None
    loss : str, default=None
    class_weight : dict or "balanced", default=None
        Weights by label; labels that are not in the dict count once.
    param_grid : dict or list of dicts, default=None
        Candidates, as in :class:`KernelSearchCV`.
    scale : {"auto", "none"}, default="auto"
        "none" leaves numbers as they are.
    n_jobs : int, default=None
        As in :class:`KernelSearchCV`.
    random_state : int, RandomState or None, default=0
        For the folds, and the pairs of rows that give the bandwidths.
    relevance : bool, default=False
        Whether to look, too, for the columns that matter: a second search, with the kernel chosen
        (the Gaussian in place of the linear one) and a gamma per encoded column, is followed by
        gradient and repeated without each of five parts of the rows. The result then has an
        attribute ``relevance_``, see :func:`onefit.relevance`; the choice itself stays.
    minutes : float, default=None
        Time that the selection may take, see rule 7; None sets no limit.
    probabilities : {"sigmoid", "isotonic"}, default=None
        Of labels: calibrates the winner on its held-out decision values, so that the result has
        ``predict_proba``. "isotonic" wants a thousand rows; see :class:`KernelSearchCV`.
    dayfirst : bool, default=None
        Whether texts such as "01/02/2021" in a DataFrame are dates with the day first. Needed only
        where no value of the column settles it; None refuses such a column.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onefit import select
    >>> X, y = load_iris(return_X_y=True)
    >>> found = select(X, y)
    >>> type(found.best_estimator_).__name__, bool(found.best_score_ > 0.95)
    ('KernelClassifier', True)
    >>> found.pipeline.predict(X[:3])
    array([0, 0, 0])
    """
    deadline = None if minutes is None else Deadline(minutes)
    table = _table(X, y, groups, sample_weight, dayfirst)
    options = Options(
        task=task, metric=scoring, folds=cv, loss=loss, class_weight=class_weight,
        kernels=_names(kernels), grid=param_grid, scale=scale, jobs=n_jobs,
        seed=_seed(random_state), minutes=minutes, calibrate=probabilities, amounts_by="r2",
        python=True,
    )  # fmt: skip
    recipe = in_time(make_recipe(table, options), deadline)
    _check_relevance(relevance, recipe)
    recipe = fit_recipe(recipe)
    if recipe.fallback is not None:
        shown = Facts(recipe.search).scale
        print(recipe.fallback.told(shown, shown.label), file=sys.stderr, flush=True)
    verdict = recipe.search.headline_.verdict()
    if verdict:
        warnings.warn(f"{verdict}; see headline_", stacklevel=2)
    if relevance:
        recipe.search.relevance_ = _relevance(recipe, table, options)
    return Selection(recipe, columns_with_gaps(table.X))


def _names(kernels: str | Sequence[str] | None) -> tuple[str, ...]:
    if kernels is None:
        return ()
    return (kernels,) if isinstance(kernels, str) else tuple(kernels)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _table(X: Any, y: Any, groups: Any, weights: Any, dayfirst: bool | None) -> Table:
    """The data as the rules take them, if they are rows and targets."""
    framed = is_frame(X)
    X = as_frame(X) if framed else X if hasattr(X, "shape") else np.asarray(X)
    y = np.asarray(y)
    _check_targets(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if not framed and not issparse(X) and not is_table(X):
        raise ValueError(
            "select tries kernels of vectors of numbers, and the rows of X are none; encode them "
            "as numbers, give a DataFrame with a column for each text, or use KernelSearchCV with "
            "a function as kernel"
        )
    if n_rows(X) != len(y):
        raise ValueError(
            f"X has {n_rows(X)} rows and y has {len(y)}; they must have the same length"
        )
    reader = ColumnReader(dayfirst) if framed else None
    if reader is not None:
        X = reader.fit_transform(X.reset_index(drop=True))
    elif not issparse(X):
        X = np.asarray(X, dtype=np.float64)
    groups = None if groups is None else np.asarray(groups)
    weights = None if weights is None else np.asarray(weights)
    notes = () if reader is None else tuple(reader.notes_)
    for note in notes:
        warnings.warn(note, stacklevel=3)
    return Table(X, y, "y", groups, weights, reader=reader, notes=notes)


def _check_targets(y: Array) -> None:
    if y.ndim not in (1, 2) or 0 in y.shape:
        raise ValueError(f"y must have shape (n,) or (n, q), got {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argwhere(~np.isfinite(y))[0, 0])
        raise ValueError(f"y holds {y[row]} in row {row}; drop the row, or fill it in")
    if np.unique(y).size == 1:
        raise ValueError(f"y is {y.flat[0]!r} in every row; there is nothing to choose by")


def _check_relevance(asked: bool, recipe: Recipe) -> None:
    if asked and recipe.fallback is not None:
        raise ValueError(
            f"relevance=True follows the gradient of the whole kernel, but {recipe.fallback.why}; "
            "raise minutes, take fewer rows, or leave relevance out"
        )


def _relevance(recipe: Recipe, table: Table, options: Options) -> Relevance:
    """Of the encoded columns, by the kernel that was chosen with a gamma for each of them."""
    search, Z, y = recipe.search, recipe.Z, recipe.y
    best, labels = search.best_params_, is_classifier(search.estimator)
    kernel = "rbf" if best["kernel"] == "linear" else best["kernel"]
    (grid,) = default_grid(Z, y if labels else None, kernel, random_state=options.seed)
    gammas, lams = grid["gamma"], grid["lam"]
    wide = {
        "gamma": Interval(1e-2 * min(gammas), max(gammas), per_feature=True),
        "lam": Interval(min(lams), max(lams), points=8),
        "kernel": [kernel],
    }
    loss = {name: [best[name]] for name in ("loss", "threshold") if name in best}
    again_on = replace(table, groups=recipe.groups)
    splitter, _ = choose_splits(again_on, recipe.task, replace(options, folds=5))
    again: KernelSearchCV = clone(search)
    again.set_params(param_grid=wide | loss, search="gradient", cv=splitter, method="auto")
    again.set_params(probabilities=None, criterion=options.criterion)
    if search.criterion != options.criterion:  # outliers made it choose by absolute errors
        again.set_params(scoring="neg_mean_absolute_error")
    found = find_relevance(again.fit(Z, y, **recipe.params), Z, y, cv=splitter, **recipe.params)
    return replace(found, names=_column_names(recipe.encoder, table.X))


def _column_names(encoder: Any, X: Any) -> list[str]:
    """Of the encoded columns."""
    if not hasattr(X, "columns"):
        return [str(i) for i in range(X.shape[1])]
    return [str(name).split("__", 1)[-1] for name in encoder.get_feature_names_out()]
