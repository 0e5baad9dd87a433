"""Run the search of an automatic selection, within a time limit where there is one.

The search and the final fit of its winner must be done; they get smaller plans when time is short.
The reaction to outliers and the comparison of features with the whole kernel are optional: they
are left out, with a reason, where there is no time.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from onefit.auto import outliers
from onefit.auto.data_checks import warn_of_columns
from onefit.auto.fallback import Fallback, fall_back, measure_whole, planned_seconds
from onefit.auto.race import SAMPLE_ROWS, narrow, seconds_without_race
from onefit.plan import Deadline, OutOfTime
from onefit.report.facts import Facts
from onefit.search.announce import announce
from onefit.search.extend import fit_growing
from onefit.search.setup import set_up
from onefit.search_cv import KernelSearchCV

Array = NDArray[Any]

__all__ = ["Planned"]


@dataclass
class Planned:
    """A search with its data; :meth:`run` fits it.

    Attributes
    ----------
    search : KernelSearchCV
        After :meth:`run` the one that chose the winner.
    Z, y : arrays
        Prepared rows and targets.
    params : dict
        ``groups`` and ``sample_weight``, where there are any; copies of a row are in one group.
    task : {"regression", "classification"}
    may_be_robust : bool
        Whether outliers may change the loss.
    strong : list of (name, share)
        Columns that alone explain nearly all of the target.
    reasons, notes : lists of str
        For ``reasons_`` and ``notes_``.
    deadline : Deadline or None
    fallback : Fallback or None
        Features that replace the kernel matrix for lack of time.
    growing : tuple of str
        Parameters whose grids may grow: those that the caller did not give.
    seed : int
        For the sample of rows that narrows the candidates.
    calibrate : str or None
        How the winner is calibrated after the search.
    preparer : transformer or "passthrough"
        Fitted; makes Z from rows as given.
    missing : int
        Number of missing values in the rows as given.
    in_folds : bool
        Whether the search is over a pipeline, whose preparation is fitted in every training part;
        Z are then the rows as given.
    """

    search: KernelSearchCV
    Z: Any = field(repr=False)
    y: Array = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    task: str
    may_be_robust: bool
    strong: list[tuple[Any, float]]
    reasons: list[str]
    notes: list[str]
    deadline: Deadline | None = None
    fallback: Fallback | None = None
    growing: tuple[str, ...] = ()
    seed: int = 0
    calibrate: str | None = None
    preparer: Any = None
    missing: int = 0
    in_folds: bool = False

    @property
    def weights(self) -> Any:
        """Of the rows, or None."""
        return self.params.get("sample_weight")

    @property
    def groups(self) -> Any:
        """Of the splits, or None."""
        return self.params.get("groups")

    def narrow(self) -> None:
        """Keep the kernels and bandwidths that a race on a sample of the rows leaves."""
        if "gamma" not in self.growing:
            return
        found = narrow(self.search, self.Z, self.y, self.weights, self.groups, self.seed)
        if found is not None:
            self.search.set_params(param_grid=found.param_grid)
            self.reasons.append(found.reason)

    def foresee_race(self) -> bool:
        """Whether :meth:`narrow` will race; a reason says what that means for the plan."""
        if "gamma" not in self.growing:
            return False
        whole = seconds_without_race(self.search, self.Z, self.y, self.weights, self.groups)
        if whole is None:
            return False
        limit = (
            "" if self.deadline is None else "; if that is too slow, features replace the kernel"
        )
        self.reasons.append(
            f"kernels will be raced on {SAMPLE_ROWS:,} of the {self.Z.shape[0]:,} rows, and all "
            f"rows decide among those that are left; the plan is for all candidates{limit}"
        )
        return True

    def fit_in_time(self, slow: str = "") -> None:
        """Replace the kernel matrix by features if there is too little time for it."""
        if self.deadline is None:
            return
        found = fall_back(self.search, self.Z, self.y, self.deadline, slow, **self.params)
        if found is not None:
            self.reasons.append(found.begun())
            print(found.begun(), file=sys.stderr, flush=True)
        self.fallback = found

    def run(self) -> None:
        """Fit the search; then react to outliers, and measure features, where there is time."""
        self.narrow()
        self.fit_in_time()
        if not self.in_folds:
            announce(self.search, self.Z, self.y, self.weights, self.groups)
        if self.deadline is None:
            self.reasons.extend(fit_growing(self.search, self.Z, self.y, self.params, self.growing))
        else:
            self._search_in_time(self.deadline)
        self._answer_outliers()
        self.notes.extend(warn_of_columns(self.strong, self.search, self.y, self.task))
        self._measure_features()

    def _search_in_time(self, deadline: Deadline) -> None:
        """The search; with features if its first kernel shows that time is too short."""
        setup = set_up(self.search, self.Z, self.y, self.weights, {"groups": self.groups})
        planned, _ = planned_seconds(setup)
        begun = perf_counter()

        def has_time() -> bool:
            """Whether the whole search could be run again, at the pace that it had."""
            deadline.observe(planned, perf_counter() - begun)
            return not (deadline.cut or deadline.refuses(planned))

        try:
            with deadline.over(self.search, whole=self.fallback is None):
                grown = fit_growing(
                    self.search, self.Z, self.y, self.params, self.growing, has_time
                )
        except OutOfTime as error:
            deadline.observe(planned / len(setup.jobs), perf_counter() - begun)
            self.fit_in_time(slow=str(error))
            self._search_in_time(deadline)
            return
        tried = len(self.search.cv_results_["params"]) / len(setup.candidates)
        deadline.observe(tried * planned, perf_counter() - begun)
        if deadline.cut:
            self.reasons.append(deadline.cut)
        self.reasons.extend(grown)

    def _answer_outliers(self) -> None:
        """Another search, if the residuals of the first one call for it, and a reason."""
        if not self.may_be_robust:
            return
        part = outliers.part_far_away(self.search, self.y)
        if part == 0.0:
            return
        search, late = outliers.robust_search(
            self.search, self.Z, self.y, self.weights, self.deadline
        )
        if late:
            self.reasons.append(
                f"{part:.1%} of the held-out residuals are outliers, and Huber's loss was not "
                f"tried: {late}"
            )
        if search is self.search:
            return
        if self.deadline is not None and self.deadline.cut:
            self.reasons.append(f"with Huber's loss {self.deadline.cut}")
        if not late:
            self.reasons.append(outliers.describe(part, search))
        self.search = search

    def _measure_features(self) -> None:
        """How far the winner is from the whole kernel, if there is time for that."""
        if self.fallback is None or self.deadline is None:
            return
        self.deadline.reserve = 0.0  # the final fit is done
        self.fallback = self.fallback.measured(
            *measure_whole(self.search, self.Z, self.y, self.deadline, self.weights)
        )
        scale = Facts(self.search).scale
        self.reasons.append(self.fallback.describe(scale, scale.label))
