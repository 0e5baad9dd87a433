"""Features that replace the kernel matrix when time or memory is short.

The plan of a search (:mod:`onefit.plan`) gives its time. If search and final fit take longer than
the time that is left, or need more memory than there is, Nystrom features replace the kernel matrix
(``approximation="nystrom"``). A quarter of the time sets the number of landmarks; the rest is for
what follows the search. If the first kernel shows that this computer is slower than the plan,
the search changes to features then.

How far the features are from the whole kernel is then measured at the winner: one more
cross-validation, on the same folds, with the whole kernel at the winner's kernel and lam, by the
fastest exact method (for many rows the iteration of :mod:`onefit.heldout.iterative`). It is run if
its plan fits into the time and memory that are left, and stopped between two steps when the time is
over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from sklearn.base import clone

from onefit import plan
from onefit._format import number
from onefit.auto.prepared import Prepared, planned_seconds
from onefit.search.setup import Setup
from onefit.search_cv import KernelSearchCV

__all__ = ["Fallback", "Whole", "fall_back", "measure_whole"]

#: features to try, the most first, and the part of the time that their search may take
FEATURE_COUNTS, MAX_SEARCH_SHARE_OF_TIME = (2000, 1000, 500, 200, 100), 0.25


@dataclass(frozen=True)
class Whole:
    """The winner with the whole kernel, on the same folds.

    Attributes
    ----------
    score : float
        By the search's own scorer and aggregate.
    features : float
        The score of the features.
    apart : float
        The root mean square of the difference between the held-out values of both.
    method : str
        How the whole kernel's were computed.
    exact : bool
        Whether these are proven to be those of refitting every split.
    seconds : float
    """

    score: float
    features: float
    apart: float
    method: str
    exact: bool
    seconds: float


@dataclass(frozen=True)
class Fallback:
    """The reason why a search uses features, and their difference from the whole kernel.

    Attributes
    ----------
    why : str
        What did not fit.
    planned, allowed : float
        Seconds that the whole kernel was expected to take, and those there were.
    n_components : int
        Landmarks.
    expected : float
        Seconds that the search with features was expected to take.
    whole : Whole or None
        How far the winner is from the whole kernel; None where that was not measured.
    reason : str
        Why it was not.
    """

    why: str
    planned: float
    allowed: float
    n_components: int
    expected: float
    whole: Whole | None = None
    reason: str = ""

    def measured(self, whole: Whole | None, reason: str) -> Fallback:
        """A copy with the result of :func:`measure_whole`."""
        return replace(self, whole=whole, reason=reason)

    def begun(self) -> str:
        """The reason for features, in a sentence."""
        late = ""
        if self.expected > self.allowed:
            late = f"; even so {plan.duration(self.expected)} are expected"
        return (
            f"{self.why}: the search takes {self.n_components} features "
            f"(approximation='nystrom') instead of the whole kernel{late}"
        )

    def describe(self, shown: Callable[[float], float] = float, name: str = "score") -> str:
        """The difference of the winner from the whole kernel, in a sentence.

        Parameters
        ----------
        shown : callable, default=float
            From scores to the numbers that are to be shown.
        name : str, default="score"
            What they are.
        """
        if self.whole is None:
            return f"how far the features are from the whole kernel was not measured: {self.reason}"
        one = self.whole
        return (
            f"at the setting chosen, on the same folds, the whole kernel has {name} "
            f"{number(shown(one.score), 5)} and the features {number(shown(one.features), 5)}; "
            f"held-out values differ by {one.apart:.2g} (root mean square; measured by method "
            f"{one.method!r} in {plan.duration(one.seconds)})"
        )


def fall_back(
    search: KernelSearchCV, data: Prepared, deadline: plan.Deadline, slow: str = ""
) -> Fallback | None:
    """Give a search features if its plan exceeds the time; None, and no change, if it does not.

    Parameters
    ----------
    search : KernelSearchCV
        Not fitted yet. Its estimator gets an approximation, and a method that needs the whole
        kernel matrix becomes "auto".
    data : Prepared
    deadline : Deadline
        Its ``reserve`` becomes what the final fit is expected to take.
    slow : str, default=""
        Why the whole kernel is known to take too long, if it is.
    """
    setup = data.set_up(search)
    planned, why = planned_seconds(setup)
    deadline.reserve = _reserved(setup, deadline)
    late = deadline.refuses(planned)
    if not (slow or why or late):
        return None
    expected = plan.duration(deadline.pace * planned)
    why = why or (
        f"the whole kernel would take {expected}{f' ({slow})' if slow else ''}, more than the "
        f"{plan.duration(deadline.left)} that are left of {plan.duration(deadline.allowed)}"
    )
    estimator = clone(search.estimator).set_params(approximation="nystrom")
    known = search.method in ("auto", "exact", "limit") if isinstance(search.method, str) else False
    search.set_params(estimator=estimator, method=search.method if known else "auto")
    with_features = np.inf
    for size in FEATURE_COUNTS:
        search.set_params(estimator__approximation__n_components=size)
        setup = data.set_up(search)
        with_features, full = planned_seconds(setup)
        deadline.reserve = _reserved(setup, deadline)
        if not full and deadline.pace * with_features <= MAX_SEARCH_SHARE_OF_TIME * deadline.left:
            break
    return Fallback(why, planned, deadline.allowed, size, deadline.pace * with_features)


def measure_whole(
    search: KernelSearchCV, data: Prepared, deadline: plan.Deadline
) -> tuple[Whole | None, str]:
    """The winner of a search with features, with the whole kernel on the same folds.

    None, and the reason, where that does not fit into the time that is left or into the memory.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted, with one metric.
    data : Prepared
    deadline : Deadline
    """
    one = _winner_alone(search)
    data = replace(data, params={k: v for k, v in data.params.items() if k != "groups"})
    best: tuple[float, str] = (np.inf, "")
    reason = ""
    for method in ("auto", "iterative"):
        one.set_params(method=method)
        planned, full = data.planned_seconds(one)
        reason = full or reason
        if not full and planned < best[0]:
            best = planned, method
    planned, method = best
    if not method:
        return None, reason
    late = deadline.refuses(planned)
    if late:
        return None, late
    start = perf_counter()
    try:
        with deadline.over(one, optional=True):
            data.fit(one.set_params(method=method))
    except plan.OutOfTime:
        return None, f"it was stopped after {plan.duration(perf_counter() - start)}: no time left"
    here, there = one.heldout_, search.heldout_
    apart = float(np.sqrt(np.mean(np.square(here.values - there.values))))
    exact = bool(one.cv_results_["exact"][0])
    scores = float(one.best_score_), float(search.best_score_)
    return Whole(*scores, apart, here.method, exact, perf_counter() - start), ""


def _winner_alone(search: KernelSearchCV) -> KernelSearchCV:
    """A search of the winner's setting alone, with the whole kernel, on its folds."""
    params = clone(search.best_params_, safe=False)
    estimator = clone(search.estimator).set_params(**params).set_params(approximation=None)
    return KernelSearchCV(
        estimator,
        {"lam": [estimator.lam]},
        cv=search.heldout_.folds,
        scoring=search.scoring,
        aggregate=search.aggregate,
        refit=False,
    )


def _reserved(setup: Setup, deadline: plan.Deadline) -> float:
    """Seconds to leave for the final fit."""
    return deadline.pace * max((plan.fit_estimate(one).seconds for one in setup.works), default=0.0)
