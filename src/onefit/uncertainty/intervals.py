"""Prediction intervals from held-out residuals, without refits.

Let u^(k) be the model of split k, trained without the rows that it tests, and R_ki = |y_i -
u^(k)(x_i)| the residual of a row i that it tests. The models of all splits come from one fit,
without refits (:mod:`onefit.uncertainty.fold_models`): exact for the squared loss and, by Newton
steps, for the others. The coverage that is guaranteed depends on what a new row is exchangeable
with, which follows from the splits.

**Rows** (k-fold, leave-one-out, shuffled or repeated splits). With one split that tests m rows and
a new row that is exchangeable with them, the rank of R = |y - u(x)| among the m residuals and
itself is uniform, so that

    p(y) = (1 + number of R_i with R_i >= |y - u(x)|) / (m + 1)

is at most alpha with probability at most alpha: the y with p(y) > alpha are a prediction set
(split conformal prediction). Several splits have a p(y) each. These depend on each other, but the
mean of p-values, whatever their dependence, is at most alpha with probability at most 2 alpha
(Vovk and Wang 2020, "Combining p-values via averaging"). For k folds the set of the y whose mean
p(y) exceeds alpha is that of cross-conformal prediction, up to terms of order k/n, and the
interval of CV+ (Barber, Candes, Ramdas and Tibshirani 2021, "Predictive inference with the
jackknife+") contains it:

    from the floor(alpha (n + 1))-th smallest of u^(k(i))(x) - R_i,           i = 1..n,
    to the ceil((1 - alpha) (n + 1))-th smallest of u^(k(i))(x) + R_i.

Jackknife+ is CV+ with n folds. The new target is inside with probability at least 1 - 2 alpha
(jackknife+), at least 1 - 2 alpha less a term of order 1/sqrt(n) (CV+), and in practice with a
probability close to 1 - alpha. A row that several splits test shares its weight among them.

**Groups.** Rows of a group resemble each other, and a new row comes from a new group. Then the
groups are exchangeable, not the rows. Splits keep each group on one side, so that a residual is
that of a group which its model has not seen. For one split that tests G groups of sizes n_g, a
new row is a random row of a random one of G + 1 groups, so that R is a draw from the mixture

    1/(G + 1) sum over the G + 1 groups of the residuals of group g, each with weight 1/n_g.

Of the new group one residual is known at best; its part of the mixture is put at infinity, which
can only make quantiles larger (hierarchical conformal prediction: Lee, Barber and Willett 2023,
"Distribution-free inference with hierarchical data"). So each group weighs 1, its rows share that,
and n in the ranks above is the number of groups; p-values are averaged as before. With G groups no
alpha below 1/(G + 1) is possible, whatever the number of rows; it is refused.

**Time** (splits that train only on rows before those they test, as TimeSeriesSplit does). Future
rows are exchangeable with no past ones, and models of the distant past are poor centres. The
interval is centred at the model of all rows,

    u(x) -/+ the ceil((1 - alpha) (N + 1))-th smallest of the N forward residuals R_ki.

If the errors of forecasts are stationary and depend weakly on those long past, the share of past
forward residuals below a bound tends to the probability that the next one is, and the coverage to
1 - alpha. Models of the past were fitted to fewer rows, so their errors tend to be larger than the
next. There is no guarantee for finite samples.

**Quantiles.** An estimator with several levels (loss "quantile" or "expectile") has a lower curve
l, of its lowest level, and an upper one h. The residual is R_i = max(l^(k)(x_i) - y_i, y_i -
h^(k)(x_i)), negative for a target well inside, and the interval goes from the ranked l^(k(i))(x) -
R_i to the ranked h^(k(i))(x) + R_i: conformalised quantile regression (Romano, Patterson and Candes
2019) in the form of CV+. Its width follows the spread of y given x.

**Local widths and full conformal sets**: see :mod:`onefit.uncertainty.conformal`.

**Limits of the coverage.** It is an average over new rows; it need not hold at each x, nor for each
group. Parameters chosen on the same rows make residuals somewhat too small, the more candidates the
smaller. Rows unlike the training rows (found by :func:`novelty`) are not exchangeable with them.
Folds drawn by the sizes of groups (GroupKFold without shuffle) make a group's fold depend on its
size. Forward residuals do not cover forecasts further ahead than the test sets of the splits,
errors that grow with time, and changes after the last training row.

**Stacks** have intervals without a proof, see :mod:`onefit.uncertainty.fold_models`.

**Weights.** A row of weight s_i stands for s_i equal rows that share a fold, in the fits and in the
ranks, and the new row weighs 1: the interval ends at the smallest u^(k(i))(x) + R_i with

    sum of s_j over all j whose u^(k(j))(x) + R_j is no larger  >=  (1 - alpha) (sum(s) + 1),

and begins at the mirror image. With s = 1 that is the rank above. Weights of at most 1 that say how
much a row is like the new one (recent rows 1, old ones less), fixed before y is seen, give the
interval of Barber, Candes, Ramdas and Tibshirani (2023, "Conformal prediction beyond
exchangeability"), which loses no more coverage than weighted distances between distributions. The
size of the weights matters: twice the weights claim twice the rows. Within a group they are shares.
Weights that are precisions (one over the variance of a row's noise) are neither: the coverage is
then right on average at most, not for rows of one precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import indexable

from onefit import linalg
from onefit._indexing import n_rows
from onefit._types import Array, Indices
from onefit._validation import check_choice, check_weights
from onefit.columns.fit import fit
from onefit.estimators.accepted import Given, check_accepted
from onefit.estimators.stacked import StackedRegressor
from onefit.folds import Folds, leave_one_out
from onefit.quantiles import levels_of
from onefit.search.preprocess import is_wrapped, kernel_estimator
from onefit.spec.needs import require_of_model
from onefit.uncertainty.conformal import conformal_sets, hull
from onefit.uncertainty.fold_models import (
    FoldPredictions,
    of_kernel,
    of_pipeline,
    of_stack,
    with_new_rows,
)
from onefit.uncertainty.ranked import Ranked, choose_folds, group_codes, whole_groups

__all__ = ["PredictionInterval", "predict_interval"]


#: values shown by a repr
MAX_REPR_VALUES = 10


@dataclass(frozen=True)
class PredictionInterval:
    """Predictions and the intervals around them; (m,) arrays, or (m, q) for several targets.

    Attributes
    ----------
    prediction, lower, upper : arrays
    alpha : float
    method : {"cv+", "jackknife+", "full", "forward", "cv"}
        "forward" where the splits go forward in time, "cv" of a stack.
    unit : {"rows", "groups"}
        The exchangeable units.
    units : float
        Their number, or sum of weights.
    width : {"constant", "local", "quantiles"}
        The scale of residuals, or "quantiles" for an estimator with several levels.
    sets : list or None
        Of method "full": for every new row the ends of the intervals whose union is its set, a
        (k, 2) array, from ``lower`` to ``upper``; a list of such lists for several targets.
    """

    prediction: Array
    lower: Array
    upper: Array
    alpha: float
    method: str
    unit: str
    units: float
    width: str = "constant"
    sets: list[Any] | None = None

    def __repr__(self) -> str:
        """The first rows as a table."""
        arrays = (self.prediction, self.lower, self.upper)
        columns = [[f"{value:.6g}" for value in np.ravel(one)[:MAX_REPR_VALUES]] for one in arrays]
        about = f"alpha={self.alpha}, method={self.method!r}, from {self.units:g} {self.unit}"
        head = f"PredictionInterval({about}): {self._size()}"
        lines = [("prediction", "lower", "upper"), *zip(*columns, strict=True)]
        more = ["..."] if np.size(self.prediction) > MAX_REPR_VALUES else []
        return "\n".join([head, *("".join(f"{c:>14}" for c in line) for line in lines), *more])

    def _size(self) -> str:
        shape = np.shape(self.prediction)
        targets = f" x {shape[1]} targets, listed row by row" if len(shape) > 1 else ""
        return f"{shape[0]} {'row' if shape[0] == 1 else 'rows'}{targets}"


def predict_interval(
    estimator: Any,
    X: Any,
    y: Any,
    X_new: Any,
    *,
    alpha: float = 0.1,
    method: str = "cv+",
    width: str = "constant",
    cv: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> PredictionInterval:
    """Prediction intervals that contain new targets with probability about 1 - alpha.

    Kernel estimators need no refits. A pipeline is fitted once per split and once to all rows.

    The splits, groups and weights of a fitted search are used: after a grouped search the intervals
    are for rows of new groups, after one with time-ordered splits for later rows.

    Parameters
    ----------
    estimator : KernelRegressor, a pipeline that ends in one, or a fitted search over either
        Its parameters are used; it is not changed. A search must have been fitted to X and y. Its
        ``best_estimator_`` stands for the parameters alone, without splits, groups and weights.
    X, y : training rows and targets
    X_new : array or sparse matrix of shape (m, d)
        Where to predict (kernel values against X when the kernel is precomputed).
    alpha : float, default=0.1
        At least 1 / (n + 1), n the sum of the weights, or the number of groups.
    method : {"cv+", "jackknife+", "full"}, default="cv+"
        "jackknife+" leaves out one row, or one group, at a time. "full" makes full conformal sets,
        for the squared loss and independent rows: they hold new targets with probability at least
        1 - alpha, and may consist of several intervals (``sets``).
    width : {"constant", "local"}, default="constant"
        "local" makes intervals wider where training rows are sparse. An estimator with several
        levels has widths of its own: its intervals begin below the curve of the lowest level and
        end above that of the highest.
    cv : int, splitter or iterable of splits, default=None
        For "cv+" only: None takes the splits of a search, else 10 folds. An int draws shuffled
        folds, of groups if there are any. Splits that go forward in time have intervals of their
        own.
    sample_weight : array of shape (n,), default=None
        Number of rows that each row stands for, in the fits and in the ranks of the held-out
        residuals; see the head of this module. Rows of weight zero are left out. None takes those
        of a search.
    groups : array of shape (n,), default=None
        The group of every row, if new rows come from new groups; None takes those of a search.
    random_state : int, RandomState or None, default=0
        For the shuffle.
    verbose : int, default=0
        1 prints a line after each refit of a pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> from onefit.uncertainty import predict_interval
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(0, 6, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * random.normal(size=200)
    >>> found = predict_interval(KernelRegressor(lam=1e-4), X, y, [[1.0], [4.0]])
    >>> bool(((found.lower < np.sin([1.0, 4.0])) & (np.sin([1.0, 4.0]) < found.upper)).all())
    True
    """
    check_choice("method", method, ("cv+", "jackknife+", "full"))
    check_choice("width", width, ("constant", "local"))
    given = Given.of(estimator, "predict_interval", X, y, sample_weight, groups)
    model = _fresh(given.model)
    _check_options(model, method, width, cv)
    X, y = indexable(X, y)
    n, local = n_rows(X), width == "local"
    s = check_weights(given.sample_weight, np.empty((n, 1)))
    weight = None if given.sample_weight is None else s
    codes = _groups(given, groups, n)
    if cv is None:
        cv = _splits_of(given, method)
    if isinstance(model, StackedRegressor):
        known = model.heldout_folds()
        if known.n != n:
            raise ValueError(
                f"the stack was fitted to {known.n} rows, but X has {n}; pass the rows of the "
                "search"
            )
        cv = known if cv is None else cv
    if method == "full":
        _check_independent(cv, codes)
        folds = leave_one_out(n)
    else:
        folds = choose_folds(method, cv, X, y, codes, random_state)
        if isinstance(model, StackedRegressor):
            _check_stack(model, folds)
    rows = np.flatnonzero(s)
    if rows.size < n:
        folds = folds.among(rows)
        codes = None if codes is None else np.unique(codes[rows], return_inverse=True)[1]
    ranked = Ranked.of(folds, s[rows], codes)
    alpha = ranked.check(alpha)
    sets = None
    if method == "full":
        full, lower, upper, sets = _full(model, X, y, weight, rows, X_new, alpha, local)
    else:
        data = (model, X, y, weight, rows, folds, X_new)
        if is_wrapped(model):
            found = of_pipeline(*data, verbose)
        elif isinstance(model, StackedRegressor):
            method, found = "cv", of_stack(model, X, y, rows, folds, X_new)
        else:
            found = of_kernel(*data, local)
        if folds.is_forward:
            method, found = "forward", found.centred
        full, levels = found.full, len(levels_of(kernel_estimator(model))) > 1
        if levels:
            width, full = "quantiles", np.median(full, axis=1, keepdims=True)
        lower, upper = _ends(ranked, found, levels, alpha)
    if np.ndim(y) == 1 or width == "quantiles":
        full, lower, upper = full[:, 0], lower[:, 0], upper[:, 0]
        sets = None if sets is None else sets[0]
    unit, units = ranked.unit, ranked.units
    return PredictionInterval(full, lower, upper, alpha, method, unit, units, width, sets)


def _ends(
    ranked: Ranked, found: FoldPredictions, levels: bool, alpha: float
) -> tuple[Array, Array]:
    """Ends of the intervals around the predictions for new rows, target by target.

    With ``levels`` they are below the lowest and above the highest curve, wherever these cross. An
    empty interval becomes its middle.
    """
    y, held_out, low, high = found.Y[ranked.row], found.held_out, found.new, found.new
    residuals, width = np.abs(y - held_out), None
    if levels:
        below, above = held_out.min(axis=1) - y[:, 0], y[:, 0] - held_out.max(axis=1)
        residuals = np.maximum(below, above)[:, None]
        low, high = low.min(axis=2, keepdims=True), high.max(axis=2, keepdims=True)
    if found.widths is not None:
        residuals, width = residuals / found.widths.own[:, None], found.widths.new
    ends = [
        ranked.ends(low[:, :, j], high[:, :, j], residual, alpha, width)
        for j, residual in enumerate(residuals.T)
    ]
    lower, upper = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
    middle = 0.5 * (lower + upper)
    return np.minimum(lower, middle), np.maximum(upper, middle)


def _full(
    model: Any, X: Any, y: Any, weight: Any, rows: Indices, X_new: Any, alpha: float, local: bool
) -> tuple[Array, Array, Array, list[Any]]:
    """Predictions of the estimator of all rows, and the full conformal sets with their ends."""
    problem = model._prepare(X, y, weight)
    problem, K_new, X_new = with_new_rows(model, problem, rows, 0, X_new)
    lam, diagonal = float(model.lam), model.kernel_.diag(X_new)
    sets: list[Any] = conformal_sets(problem, lam, K_new, diagonal, alpha, local)
    (lower, upper), found = hull(sets), fit(problem, lam)
    return linalg.matmul(K_new, found.a) + found.b, lower, upper, sets


def _fresh(model: Any) -> Any:
    """A fresh regressor with the parameters of ``model``; a stack itself."""
    if not is_wrapped(model):
        check_accepted(model, "predict_interval", stack=True)
    if is_classifier(model):
        raise ValueError(
            "predict_interval is for regressors: classes have no intervals; use loss='log' and "
            "predict_proba"
        )
    return model if isinstance(model, StackedRegressor) else clone(model)


def _check_options(model: Any, method: str, width: str, cv: Any) -> None:
    """Refuse options without effect, and combinations that have no formula."""
    if method != "cv+" and cv is not None:
        raise ValueError(
            f"cv is for method='cv+', and method={method!r} leaves out rows one by one"
        )
    if method == "cv+" and width == "constant":
        return
    what = "width='local'" if width == "local" else f"method={method!r}"
    if isinstance(model, StackedRegressor):
        raise ValueError(
            "intervals of a stack come from its held-out residuals alone, got "
            f"{what}; use method='cv+' and width='constant'"
        )
    if method == "jackknife+" and width == "constant":
        return
    if is_wrapped(model):
        raise ValueError(
            f"{what} needs one kernel matrix of all rows, and a {type(model).__name__} has "
            "one per split; use method='cv+' with width='constant'"
        )
    needs = ["one curve", "kernel matrix", "rows", *["squared loss"] * (method == "full")]
    require_of_model(model, what, *needs, advice="use method='cv+' with width='constant'")


def _check_stack(model: StackedRegressor, folds: Folds) -> None:
    """Refuse splits that are not those of the held-out residuals of a stack."""
    known = {rows.tobytes() for rows in model.heldout_folds().test}
    if {np.sort(rows).tobytes() for rows in folds.test} != known:
        raise ValueError(
            "intervals of a stack come from its held-out residuals, got cv with other splits; "
            "leave cv out, and fit the search with the splits that the intervals are for"
        )


def _check_independent(cv: Any, groups: Array | None) -> None:
    """Refuse full conformal sets where rows are not the exchangeable units."""
    if groups is not None or (isinstance(cv, Folds) and cv.is_forward):
        what = "groups" if groups is not None else "time-ordered splits"
        raise ValueError(
            f"method='full' assumes exchangeable rows, which {what} contradict; use method='cv+'"
        )


def _groups(given: Given, groups: Any, n: int) -> Array | None:
    """The groups of the rows: as given, else those that the splits of a search keep together."""
    if groups is not None:
        return group_codes(groups, n)
    if given.groups is None or given.folds is None:
        return None
    return whole_groups(given.folds, given.groups)


def _splits_of(given: Given, method: str) -> Folds | None:
    """The splits of a search; None where there are none."""
    if given.folds is not None and method == "jackknife+" and given.folds.is_forward:
        raise ValueError(
            "the splits of the search go forward in time, and method='jackknife+' leaves out past "
            "rows; use method='cv+'"
        )
    return given.folds
