"""Features where the whole kernel takes longer than there is time for.

The plan of a search says beforehand how long it will take (:mod:`onefit.plan`). Where that is more
than is allowed, or needs more memory than there is, the search is given features in place of the
kernel matrix: ``approximation="nystrom"``, with as many landmarks as a quarter of the time serves.
The rest is for what follows a search.

Features choose a setting. How far they are from the whole kernel *there* is then measured, not
bounded: one more cross-validation, on the same folds, of the machine with the whole kernel at the
winner's kernel and lam, by the fastest exact method, which for many rows is the iteration of
:mod:`onefit.heldout.iterative`. That is one kernel and one lam in place of the whole grid, and is
done if its plan fits into the time and the memory that are left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from onefit import plan
from onefit._validation import check_positive
from onefit.estimators import inside
from onefit.search.setup import Setup, set_up
from onefit.search_cv import KernelSearchCV

__all__ = ["Fallback", "Whole", "fall_back", "measure_whole"]

#: features to try, the most first, and the part of the time that their search may take
FEATURES, SHARE = (2000, 1000, 500, 200, 100), 0.25


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
    """A search that took features because the whole kernel did not fit.

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

    def begun(self) -> str:
        """What is about to be done, in a sentence."""
        late = ""
        if self.expected > self.allowed:
            late = f"; even so {plan.duration(self.expected)} are expected"
        return (
            f"{self.why}: the search takes {self.n_components} features "
            f"(approximation='nystrom') in place of the whole kernel{late}"
        )

    def told(self, shown: Callable[[float], float] = float, name: str = "score") -> str:
        """How far the winner is from the whole kernel, in a sentence.

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
            f"{shown(one.score):.5g} and the features {shown(one.features):.5g}; held-out values "
            f"differ by {one.apart:.2g} (root mean square; measured by method {one.method!r} in "
            f"{plan.duration(one.seconds)})"
        )


def fall_back(
    search: KernelSearchCV, X: Any, y: Any, minutes: float, **params: Any
) -> Fallback | None:
    """Give a search features if its plan exceeds the time; None, and no change, if it does not.

    Parameters
    ----------
    search : KernelSearchCV
        Not fitted yet. Its estimator gets an approximation, and a method that needs the whole
        kernel matrix becomes "auto".
    X, y : data
    minutes : float
    **params
        ``sample_weight`` and ``groups``, where there are any.
    """
    check_positive("minutes", minutes, "the time that a search may take")
    allowed = 60.0 * minutes
    planned, why = _planned(set_up(search, X, y, *_given(params)))
    if not why and planned <= allowed:
        return None
    why = why or (
        f"the whole kernel would take {plan.duration(planned)}, more than the "
        f"{plan.duration(allowed)} allowed"
    )
    estimator = clone(search.estimator).set_params(approximation="nystrom")
    known = search.method in ("auto", "exact", "limit") if isinstance(search.method, str) else False
    search.set_params(estimator=estimator, method=search.method if known else "auto")
    expected = np.inf
    for size in FEATURES:
        search.set_params(estimator__n_components=size)
        expected, full = _planned(set_up(search, X, y, *_given(params)))
        if not full and expected <= SHARE * allowed:
            break
    return Fallback(why, planned, allowed, size, expected)


def measure_whole(
    search: KernelSearchCV, X: Any, y: Any, seconds: float, sample_weight: Any = None
) -> tuple[Whole | None, str]:
    """The winner of a search with features, with the whole kernel on the same folds.

    None, and the reason, where that does not fit into so many seconds or into the memory.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted, with one metric.
    X, y : data
    seconds : float
        That are left.
    sample_weight : array of shape (n,), default=None
    """
    one = _winner_alone(search)
    best: tuple[float, str] = (np.inf, "")
    reason = ""
    for method in ("auto", "iterative"):
        one.set_params(method=method)
        planned, full = _planned(set_up(one, X, y, sample_weight, {}))
        reason = full or reason
        if not full and planned < best[0]:
            best = planned, method
    planned, method = best
    if not method:
        return None, reason
    if planned > seconds:
        left = f"{plan.duration(seconds)} are left" if seconds > 0.0 else "no time is left"
        return None, f"it would take {plan.duration(planned)}, and {left}"
    start = perf_counter()
    params = {} if sample_weight is None else {"sample_weight": sample_weight}
    one.set_params(method=method).fit(X, y, **params)
    here, there = one.heldout_, search.heldout_
    apart = float(np.sqrt(np.mean(np.square(here.values - there.values))))
    exact = bool(one.cv_results_["exact"][0])
    scores = float(one.best_score_), float(search.best_score_)
    return Whole(*scores, apart, here.method, exact, perf_counter() - start), ""


def _winner_alone(search: KernelSearchCV) -> KernelSearchCV:
    """A search of the winner's setting alone, with the whole kernel, on its folds."""
    params = clone(search.best_params_, safe=False)
    estimator = inside.without_features(clone(search.estimator).set_params(**params))
    return KernelSearchCV(
        estimator,
        {"lam": [estimator.lam]},
        cv=search.heldout_.folds,
        scoring=search.scoring,
        aggregate=search.aggregate,
        refit=False,
    )


def _given(params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Weights, and what the splitter needs."""
    return params.get("sample_weight"), {"groups": params.get("groups")}


def _planned(setup: Setup) -> tuple[float, str]:
    """Seconds that a search is expected to take, and why it does not fit into memory, if so."""
    known = [one.estimate.seconds for one in setup.choices if one.estimate is not None]
    try:
        setup.check_memory()
    except MemoryError as error:
        return sum(known) / len(setup.jobs), str(error).split(";")[0]
    return sum(known) / len(setup.jobs), ""
