"""A selection: one search with its data, and the stages that carry it out.

==================================  ============================================================
stage                               when, and what it may change
==================================  ============================================================
:meth:`Selection.narrow`            a grid by the rules whose plan is long: the candidates
                                    (:mod:`onefit.auto.race`)
:meth:`Selection.fit_in_time`       a time limit that the plan exceeds: features replace the
                                    kernel matrix (:mod:`onefit.auto.fallback`)
:meth:`Selection.fit_search`        always; a grid by the rules grows where the winner is at
                                    its edge (:mod:`onefit.auto.extend`)
:meth:`Selection.learn`             a model left to the rules: kernels of rows with a learned metric
                                    or learned scales compete (:mod:`onefit.auto.learned`)
:meth:`Selection.resist_outliers`   outliers among the held-out residuals: the criterion and
                                    the loss (:mod:`onefit.auto.outliers`)
:meth:`Selection.average`           ``stack``: the average of all candidates replaces the winner
                                    (:mod:`onefit.auto.stacked`)
:meth:`Selection.note_columns`      columns that alone explain the target: a warning
                                    (:mod:`onefit.auto.data_checks`)
==================================  ============================================================

Each stage that changes something gives its reason. The search and the final fit must be done; they
get smaller plans when time is short. Reactions to outliers and the average are optional: they are
left out, with a reason, where there is no time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from onefit import plan
from onefit._format import aligned, duration
from onefit.auto import outliers
from onefit.auto.data_checks import warn_of_columns
from onefit.auto.extend import fit_growing
from onefit.auto.fallback import Fallback, fall_back
from onefit.auto.learned import (
    LEARNED_SHARE,
    describe,
    learned_grid,
    learned_search,
    nothing_learned,
)
from onefit.auto.prepared import PreparedRows, planned_seconds, seconds_of
from onefit.auto.race import SAMPLE_ROWS, narrow, seconds_without_race
from onefit.auto.stacked import STACK_SHARE, stack_searches
from onefit.plan import Deadline, OutOfTime
from onefit.search.setup import Setup
from onefit.search_cv import KernelSearchCV

Array = NDArray[Any]

__all__ = ["Selection"]


@dataclass
class Selection:
    """A search with its data; :meth:`run` fits it.

    Attributes
    ----------
    search : KernelSearchCV
        Over the rows as they are. After :meth:`run` the one that chose the winner, or the average.
    data : PreparedRows
        Copies of a row are in one group.
    task : {"regression", "classification"}
    may_be_robust : bool
        Whether outliers may change the loss.
    shares : list of (name, share)
        The share of the target that each column alone explains on held-out rows.
    reasons, notes : lists of str
        For ``reasons_`` and ``notes_``.
    deadline : Deadline or None
    fallback : Fallback or None
        Features that replace the kernel matrix for lack of time.
    may_grow : bool
        Whether the grid is by the rules, so that it may be narrowed and may grow.
    seed : int
        For the sample of rows that narrows the candidates.
    preparer : transformer or "passthrough"
        Fitted; makes prepared rows from rows as given.
    in_folds : bool
        Whether the search is over a pipeline, whose preparation is fitted in every training part;
        the data then hold the rows as given.
    stack : bool or "nested"
        Whether the candidates are averaged at the end.
    learning : bool
        Whether learned candidates join those of the rows as they are.
    searches : list of KernelSearchCV
        After :meth:`run` all that were fitted to all rows, the one of the best candidate first.
    """

    search: KernelSearchCV
    data: PreparedRows = field(repr=False)
    task: str
    may_be_robust: bool
    shares: list[tuple[Any, float]]
    reasons: list[str]
    notes: list[str]
    deadline: Deadline | None = None
    fallback: Fallback | None = None
    may_grow: bool = False
    seed: int = 0
    preparer: Any = None
    in_folds: bool = False
    stack: bool | str = False
    learning: bool = False
    searches: list[KernelSearchCV] = field(default_factory=list, repr=False)
    _learned_grid: list[dict[str, Any]] = field(default_factory=learned_grid, repr=False)

    def run(self) -> None:
        """All stages."""
        self.narrow()
        self.fit_in_time()
        self.fit_search()
        plain = self.search
        self.learn()
        self.resist_outliers(plain)
        self.average()
        self.note_columns()

    def narrow(self) -> None:
        """Keep the kernels and bandwidths that a race on a sample of the rows leaves."""
        if not self.may_grow:
            return
        learning = self.learning and not nothing_learned(self.data.X)
        found = narrow(self.search, self.data, self.seed, learning)
        if found is not None:
            self.search.set_params(param_grid=found.grid)
            self._learned_grid = found.learned
            self.reasons.append(found.reason)

    def fit_in_time(self, slow: str = "") -> None:
        """Replace the kernel matrix by features if there is too little time for it."""
        if self.deadline is None:
            return
        self.fallback = fall_back(self.search, self.data, self.deadline, slow)
        if self.fallback is not None:
            self.reasons.append(self.fallback.describe())
            print(self.reasons[-1], file=sys.stderr, flush=True)

    def fit_search(self) -> None:
        """Fit the search; with features if its first kernel shows that time is too short."""
        data, deadline = self.data, self.deadline
        if not self.in_folds:
            data.announce(self.search)
        if deadline is None:
            self.reasons += self._fitted()
            return
        setup = data.set_up(self.search)
        planned, _ = planned_seconds(setup)
        begun = perf_counter()

        def has_time() -> bool:
            """Whether the whole search could be run again, at the pace that it had."""
            deadline.observe(planned, perf_counter() - begun)
            return not (deadline.cut or deadline.refuses(planned))

        try:
            with deadline.over(self.search, whole=self.fallback is None):
                grown = self._fitted(has_time)
        except OutOfTime as error:
            deadline.observe(planned / len(setup.jobs), perf_counter() - begun)
            self.fit_in_time(slow=str(error))
            self.fit_search()
            return
        tried = len(self.search.cv_results_["params"]) / len(setup.candidates)
        deadline.observe(tried * planned, perf_counter() - begun)
        self.reasons += [deadline.cut, *grown] if deadline.cut else grown

    def _fitted(self, has_time: Callable[[], bool] = lambda: True) -> list[str]:
        """Fit the search, and return what grew; ``has_time`` is asked before each round."""
        data = self.data
        if self.may_grow:
            return fit_growing(self.search, data.X, data.y, data.params, has_time)
        data.fit(self.search)
        return []

    def learn(self) -> None:
        """Fit the search of learned candidates; the search is then that of the better winner."""
        self.searches = [self.search]
        if not self.learning:
            return
        why = self._not_learned()
        if not why:
            try:
                found = learned_search(self.search, self.data, self._learned_grid, self.deadline)
            except OutOfTime:
                why = "their search did not end in time"
        if why:
            what = "a metric of the rows, or scales of the columns,"
            self.reasons.append(f"{what} are not learned: {why}")
            return
        better = found.best_score_ > self.search.best_score_
        if better or not self.stack:
            self.reasons.append(describe(found, self.search))
        self._choose(found, better)

    def _not_learned(self) -> str:
        """Why no metric and no scales are learned; empty if they are."""
        if self.search.estimator.approximation is not None:
            return "features replace the kernel matrix"
        why = nothing_learned(self.data.X)
        if why or not self._learned_grid:
            return why or "they do not help on the sample"
        spent = LEARNED_SHARE * seconds_of(self.search)
        return "" if self.deadline is None else self.deadline.lacks(spent)

    def _choose(self, search: KernelSearchCV, best: bool) -> None:
        """Keep one more search, whose winner is the best candidate or not."""
        self.searches.insert(0 if best else len(self.searches), search)
        self.search = self.searches[0]

    def resist_outliers(self, plain: KernelSearchCV) -> None:
        """Search again by absolute errors if the residuals of the winner call for it.

        A learned winner stays if its mean absolute error is smaller than that of the search with
        Huber's loss, which is over the rows as they are.
        """
        part = outliers.outlier_share(self.search, self.data) if self.may_be_robust else 0.0
        if part == 0.0:
            return
        robust, late = outliers.robust_search(plain, self.data, self.deadline)
        learned = self.search is not plain
        errors = [outliers.absolute_error(one, self.data) for one in (self.search, robust)]
        stays = learned and errors[0] <= errors[1]
        if robust is not plain:
            self._choose(robust, not stays)
        elif not stays:
            self.searches.sort(key=lambda one: one is not plain)
            self.search = plain
        if stays:
            self.reasons.append(outliers.describe_learned(part, *errors))
            return
        if late:
            self.reasons.append(
                f"{part:.1%} of the held-out residuals are outliers, and Huber's loss was not "
                f"tried: {late}"
            )
            return
        if self.deadline is not None and self.deadline.cut:
            self.reasons.append(f"with Huber's loss {self.deadline.cut}")
        self.reasons.append(outliers.describe(part, robust))

    def average(self) -> None:
        """Replace the winner by the average of the candidates; with outliers of robust ones too."""
        if not self.stack:
            return
        robust = any(one.criterion != "cv" for one in self.searches)
        # over rows as they are, robust ones first
        order = sorted(
            self.searches,
            key=lambda one: (isinstance(one.estimator, Pipeline), one.criterion == "cv"),
        )
        found, reason = stack_searches(
            order, self.data, "huber" if robust else "squared", self.stack == "nested",
            self.deadline,
        )  # fmt: skip
        self.search = found or self.search
        self.reasons.append(reason)

    def note_columns(self) -> None:
        """Warn of columns that alone explain the target."""
        self.notes += warn_of_columns(self.shares, self.search, self.data.y, self.task)

    def explain(self) -> str:
        """Describe what :meth:`run` would do, with planned times; nothing is fitted."""
        if self.in_folds:
            text = self.search.explain(self.data.X, self.data.y, groups=self.data.groups)
            return "\n".join([*self.reasons, "", str(text)])
        if not self._foresee_race():
            self.fit_in_time()
        setup = self.data.set_up(self.search)
        texts = [plan.explain(load, best) for load, best in setup.works.items()]
        return "\n\n".join(["\n".join(self.reasons), *texts, self._stages(setup)])

    def _foresee_race(self) -> bool:
        """Whether :meth:`narrow` will race; a reason says what that means for the plan."""
        if not self.may_grow or seconds_without_race(self.search, self.data) is None:
            return False
        n, limit = self.data.n, ""
        if self.deadline is not None:
            limit = "; if that is too slow, features replace the kernel"
        self.reasons.append(
            f"kernels will be raced on {min(SAMPLE_ROWS[1], n // 2):,} of the {n:,} rows, and all "
            f"rows decide among those that are left; the plan is for all candidates{limit}"
        )
        return True

    def _stages(self, setup: Setup) -> str:
        """A table of the stages that take time."""
        (work, *_), time = setup.works, "" if self.deadline is None else " and time"
        stages = [
            ("search", planned_seconds(setup)[0], "always"),
            ("final fit", plan.fit_estimate(work).seconds, "always"),
        ]
        if self.may_be_robust:
            seconds = outliers.planned_seconds(self.search, self.data)
            stages.append(("search with Huber's loss", seconds, f"if there are outliers{time}"))
        if self.learning and not nothing_learned(self.data.X):
            seconds = LEARNED_SHARE * stages[0][1]
            stages.append(("learned metrics and scales", seconds, "always"))
        if self.stack:
            seconds = STACK_SHARE * stages[0][1]
            stages.append(("average of the candidates", seconds, f"always{time}"))
        rows = [[f"  {name}", duration(seconds), when] for name, seconds, when in stages]
        always = sum(seconds for _, seconds, when in stages if when.startswith("always"))
        every = sum(seconds for _, seconds, _ in stages)
        head = "Stages, by the fixed rates of the plan:\n"
        total = f"All stages: {duration(every)} ({duration(always)} without optional ones)."
        return "\n".join([head, *aligned(["  stage", "time", "when"], rows), "", total])
