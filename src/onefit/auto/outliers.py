"""Outliers: found in the winner's held-out residuals, and handled by Huber's loss.

If more than 1 % of these residuals are further from their median than 5 times their scale (the
MAD, JMLR 2008 eq. 18; for normal errors one in 1.7 million is), candidates are chosen by the mean
absolute error instead, in which an outlier is not squared. The candidate with the smallest one
gives the kernel and the scale of the residuals, at most that of the targets; no search is needed
for that, since the held-out predictions of all candidates are known. With that kernel and
bandwidths up to two steps of the grid from its own, the squared loss and Huber's with a threshold
of 1, 2 and 3 times the scale are then searched. The score that is reported stays what it was:
whether there are outliers depends on the sample, and scores of two samples are to be comparable.

Huber's loss has no closed form, and its search takes far longer than that of the squared loss. With
a time limit, or beyond `MAX_HUBER_SECONDS` by the plan, it has fewer bandwidths and lams, or is
left out, with a reason; ``minutes`` sets another limit.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import median_abs_deviation
from sklearn.base import clone

from onefit._format import number
from onefit.auto.prepared import PreparedRows
from onefit.auto.race import beside
from onefit.criteria import CrossValidation
from onefit.criteria.identity import near_identity
from onefit.criteria.pointwise import Pointwise
from onefit.plan import Deadline, OutOfTime, duration
from onefit.search_cv import KernelSearchCV

Array = NDArray[Any]

__all__ = [
    "absolute_error", "describe", "describe_learned", "outlier_share", "planned_seconds",
    "robust_search",
]  # fmt: skip

#: a residual beyond this many scales is an outlier; a larger share of them calls for a robust loss
#: (benchmarks/outlier_rule.py)
MIN_SCALES_OF_OUTLIER, MAX_SHARE_OF_OUTLIERS = 5.0, 0.01
#: threshold of the Huber loss in units of the scale (JMLR 2008, section 5.2)
THRESHOLDS_IN_SCALES = (1.0, 2.0, 3.0)
#: steps of the grid on either side of the winner's gamma and lam that are searched with Huber's
#: loss; the further pairs are for when time is short
STEPS_OF_GAMMA_AND_LAM = ((2, 4), (0, 4), (0, 2))
OVERDUE = "its search was stopped at the time limit"
#: planned seconds of the search with Huber's loss, without a time limit of the user's
MAX_HUBER_SECONDS = 60.0


@dataclass(frozen=True)
class AbsoluteErrors(CrossValidation):
    """The mean absolute error of held-out rows, to choose by; scores are reported beside it."""

    loss: str | Pointwise | None = "absolute"
    name = "mean absolute error"


def outlier_share(search: KernelSearchCV, data: PreparedRows) -> float:
    """The share of outliers among the winner's held-out residuals; 0 if that is 1 % or less."""
    residuals = _residuals(search, data)
    far = np.abs(residuals - np.median(residuals)) > MIN_SCALES_OF_OUTLIER * _scale(residuals)
    part = float(far.mean())
    return part if part > MAX_SHARE_OF_OUTLIERS else 0.0


def absolute_error(search: KernelSearchCV, data: PreparedRows, place: int | None = None) -> float:
    """The mean absolute error of the held-out rows, of the winner or another candidate.

    NaN for a candidate without predictions of all rows that the winner predicts.
    """
    tested = np.isfinite(_errors(search, data.y, search.best_index_))
    errors = _errors(search, data.y, search.best_index_ if place is None else place)[tested]
    weight = None if data.sample_weight is None else data.sample_weight[tested]
    return float(np.average(np.abs(errors), weights=weight))


def robust_search(
    search: KernelSearchCV, data: PreparedRows, deadline: Deadline | None = None
) -> tuple[KernelSearchCV, str]:
    """A search over Huber's loss and the squared one, on the same splits and by the same score.

    It has fewer bandwidths and lams if time is short. If there is no time for Huber's loss at all,
    the given search is returned, with the reason.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted.
    data : PreparedRows
        What it was fitted to.
    deadline : Deadline or None
        Replaces the limit of `MAX_HUBER_SECONDS`.
    """
    place = _least_absolute(search, data)
    best = search.cv_results_["params"][place]
    scale = _scale(_residuals(search, data, place)) or _scale(_residuals(search, data))
    # gross outliers draw all predictions of the squared loss towards them
    scale = min(scale, _scale(data.y) or scale)
    if scale == 0.0:
        return search, "most of the held-out residuals are equal, which leaves no scale for it"
    for gammas, lams in STEPS_OF_GAMMA_AND_LAM:
        robust = _with_huber(search, _near(search, best, gammas, lams), scale)
        late = _late(robust, data, deadline)
        if not late:
            break
    if late or not _fitted(robust, data, deadline):
        return search, late or OVERDUE
    return robust, ""


def planned_seconds(search: KernelSearchCV, data: PreparedRows) -> float:
    """Seconds that :func:`robust_search` is expected to take, at its largest number of kernels."""
    (first, *_) = search.param_grid
    near = {name: list(values) for name, values in first.items()}
    if "gamma" in near:
        near["gamma"] = near["gamma"][: 2 * STEPS_OF_GAMMA_AND_LAM[0][0] + 1]
    return data.planned_seconds(_with_huber(search, near, 1.0))[0]


def _least_absolute(search: KernelSearchCV, data: PreparedRows) -> int:
    """The candidate whose held-out predictions have the smallest mean absolute error.

    Kernel matrices near the identity are left out, as by the criterion of the search that follows.
    """
    candidates = search.cv_results_["params"]
    errors = [absolute_error(search, data, i) for i in range(len(candidates))]
    identities: dict[str, bool] = {}
    for place in np.argsort(errors)[: np.isfinite(errors).sum()]:
        model = clone(search.estimator).set_params(**candidates[place])
        kernel = repr((model.kernel, model.gamma))
        if kernel not in identities:
            K = model._prepare(data.X, data.y, None).K
            identities[kernel] = K.features is None and bool(near_identity(K))
        if not identities[kernel]:
            return int(place)
    return int(search.best_index_)


def _with_huber(search: KernelSearchCV, grid: dict[str, Any], scale: float) -> KernelSearchCV:
    """The search over part of its grid, with the squared loss and Huber's."""
    huber = {"loss": ["huber"], "loss__threshold": [c * scale for c in THRESHOLDS_IN_SCALES]}
    method = "limit" if search.estimator.approximation is not None else "auto"
    folds = search.heldout_.folds if hasattr(search, "cv_results_") else search.cv
    found: KernelSearchCV = clone(search)
    found.set_params(
        param_grid=[grid | {"loss": ["squared"]}, grid | huber], method=method,
        criterion=AbsoluteErrors(), cv=folds, journal=None,
    )  # fmt: skip
    return found


def _late(search: KernelSearchCV, data: PreparedRows, deadline: Deadline | None) -> str:
    """The reason why there is no time for a search; empty if there is time."""
    planned = data.planned_seconds(search)[0]
    if deadline is not None:
        return deadline.refuses(planned)
    if planned <= MAX_HUBER_SECONDS:
        return ""
    return f"it would take about {duration(planned)} (minutes sets another limit)"


def _fitted(search: KernelSearchCV, data: PreparedRows, deadline: Deadline | None) -> bool:
    """Whether a search was done before the time was up."""
    try:
        with nullcontext() if deadline is None else deadline.over(search, optional=True):
            data.fit(search)
    except OutOfTime:
        return False
    except ValueError:  # the few kernels that there was time for may all be near the identity
        if deadline is None or not deadline.cut:
            raise
        return False
    return True


def _near(search: KernelSearchCV, best: dict[str, Any], gammas: int, lams: int) -> dict[str, Any]:
    """The grid of the best candidate's kernel, with the bandwidths and lams next to its own."""
    (grid,) = [
        part
        for part in search.param_grid
        if all(
            part[name] == [best.get(name)] for name in ("kernel", "kernel__degree") if name in part
        )
    ]
    near = {"lam": beside(grid["lam"], best["lam"], lams)}
    if "gamma" in best:
        near["gamma"] = beside(grid["gamma"], best["gamma"], gammas)
    return dict(grid, **near)


def describe(part: float, search: KernelSearchCV) -> str:
    """A sentence on the effects of the outliers."""
    error = float(search.cv_results_["criterion"][search.best_index_])
    return (
        f"{part:.1%} of the held-out residuals are outliers (further than "
        f"{MIN_SCALES_OF_OUTLIER:g} scales from their median): Huber's loss joined the squared "
        "one, and the choice among candidates was made by the mean absolute error, "
        f"{number(error, 4)} at the winner; the score is the same as without outliers"
    )


def describe_learned(part: float, learned: float, robust: float) -> str:
    """Why a learned winner stays although its residuals have outliers."""
    return (
        f"{part:.1%} of the held-out residuals are outliers (further than "
        f"{MIN_SCALES_OF_OUTLIER:g} scales from their median); what was learned stays, because its "
        f"mean absolute error, {number(learned, 4)}, is not larger than that of the rows as they "
        f"are, chosen by this error, {number(robust, 4)}"
    )


def _scale(residuals: Array) -> float:
    """Median absolute deviation, of normal residuals their standard deviation (JMLR eq. 18)."""
    return float(median_abs_deviation(residuals, scale="normal"))


def _residuals(search: KernelSearchCV, data: PreparedRows, place: int | None = None) -> Array:
    """Held-out residuals of the winner or another candidate.

    Of rows that a split tests and that have weight; each of these counts once.
    """
    errors = _errors(search, data.y, search.best_index_ if place is None else place)
    used = np.isfinite(errors)
    if data.sample_weight is not None:
        used &= data.sample_weight > 0.0
    return np.asarray(errors[used])


def _errors(search: KernelSearchCV, y: Array, place: int) -> Array:
    """Targets minus held-out predictions; NaN in rows that no split tests."""
    return np.asarray(np.ravel(y) - np.ravel(search.heldout(place).predictions))
