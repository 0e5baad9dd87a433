"""Features that replace the kernel matrix when time or memory is short.

The plan of a search (:mod:`onefit.plan`) gives its time. If search and final fit take longer than
the time that is left, or need more memory than there is, Nystrom features replace the kernel matrix
(``approximation="nystrom"``). A quarter of the time sets the number of landmarks; the rest is for
what follows the search. If the first kernel shows that this computer is slower than the plan,
the search changes to features then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from onefit import plan
from onefit.auto.prepared import PreparedRows, planned_seconds
from onefit.search.setup import Setup
from onefit.search_cv import KernelSearchCV

__all__ = ["Fallback", "fall_back"]

#: features to try, the most first, and the part of the time that their search may take
FEATURE_COUNTS, MAX_SEARCH_SHARE_OF_TIME = (2000, 1000, 500, 200, 100), 0.25


@dataclass(frozen=True)
class Fallback:
    """The reason why a search uses features, and the plan of that search.

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
    """

    why: str
    planned: float
    allowed: float
    n_components: int
    expected: float

    def describe(self) -> str:
        """The reason for features, in a sentence."""
        late = ""
        if self.expected > self.allowed:
            late = f"; even so {plan.duration(self.expected)} are expected"
        return (
            f"{self.why}: the search takes {self.n_components} features "
            f"(approximation='nystrom') instead of the kernel matrix, and the score is that of the "
            f"features{late}"
        )


def fall_back(
    search: KernelSearchCV, data: PreparedRows, deadline: plan.Deadline, slow: str = ""
) -> Fallback | None:
    """Give a search features if its plan exceeds the time; None, and no change, if it does not.

    Parameters
    ----------
    search : KernelSearchCV
        Not fitted yet. Its estimator gets an approximation, and a method that needs the whole
        kernel matrix becomes "auto".
    data : PreparedRows
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


def _reserved(setup: Setup, deadline: plan.Deadline) -> float:
    """Seconds to leave for the final fit."""
    return deadline.pace * max((plan.fit_estimate(one).seconds for one in setup.works), default=0.0)
