"""A search over pipelines whose steps are fitted to all rows: see :mod:`onefit.search.all_rows`."""

from __future__ import annotations

import warnings
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.utils import indexable

from onefit import plan
from onefit._describe import digest
from onefit._types import Array
from onefit.estimators.device import HostData
from onefit.estimators.unused import UnusedParameterWarning
from onefit.search.all_rows import Optimism, all_rows_of
from onefit.search.check import check_settings
from onefit.search.evaluation import SearchRows
from onefit.search.grid import GivenSettings
from onefit.search.in_memory import EvaluatedInMemory, RowsInMemory, fit_winner, make_task
from onefit.search.inputs import FitInputs, resolve_scorers, route
from onefit.search.pipeline import Setting
from onefit.search.pipeline_scores import outcomes_of
from onefit.search.pipeline_units import Work, run_unit
from onefit.search.preprocess import metadata_of_fit, preprocess_all
from onefit.search.results import heldout_of, tabulate
from onefit.search.setup import set_up
from onefit.search.workers import Outcome
from onefit.search_pipeline import check_options, set_up_pipeline

__all__ = ["RowsOnAllRows", "explain_on_all_rows"]


class RowsOnAllRows(SearchRows):
    """Rows in memory of a search over pipelines: steps are fitted once, to all rows, without y.

    Every setting of the steps is a search over the kernel estimator alone, on transformed rows.

    Parameters
    ----------
    search, X, y, params, scorers, metric
        See :class:`onefit.search.in_memory.RowsInMemory`.
    """

    def __init__(
        self, search: Any, X: Any, y: Any, params: dict[str, Any], scorers: Any, metric: Any
    ) -> None:
        check_options(search)
        _check_target_is_given(search.estimator)
        self.search, self.scorers = search, scorers
        self.X, self.y = indexable(X, y)
        self.routed = routed = route(search, scorers, params)
        self.fit_params = metadata_of_fit(search.estimator, dict(routed.estimator.fit))
        self.setup = set_up_pipeline(search, self.X, self.y, routed.splitter.split)
        self.groups = routed.splitter.split.get("groups")
        score = routed.scorer.score
        self.task = make_task(search, self.setup, scorers, self.X, self.y, score, metric)
        self.names = self.task.scoring.names
        build = partial(_TransformedRows, self, metric)
        with warnings.catch_warnings():
            # a grid may pair a kernel with parameters of another
            warnings.simplefilter("ignore", UnusedParameterWarning)
            self.parts = [build(setting) for setting in self.setup.settings]
        choices = [choice for part in self.parts for choice in part.setup.choices]
        self.setup = replace(self.setup, choices=choices)
        self.subtasks = len(self.parts) + (search.refit is not False)

    def check(self, metric: Any) -> None:
        """Refuse what does not go with the metric, or would not fit into memory."""
        for part in self.parts:
            part.check(metric)

    def explain(self) -> plan.Explanation:
        """The plan of every setting of the steps."""
        k, texts = len(self.setup.folds), []
        for i, part in enumerate(self.parts):
            texts.append(f"Setting {i} of the preprocessing, fitted once:\n{part.setup.explain()}")
        texts.append(f"The winner is then evaluated with its steps fitted on each of {k} splits.")
        refusals = (part.setup.explain().refusal for part in self.parts)
        return plan.Explanation("\n\n".join(texts), next(filter(None, refusals), ""))

    def evaluate(self, metric: Any, context: Any) -> EvaluatedOnAllRows:
        """Evaluate every setting on its transformed rows."""
        outcomes: list[Outcome] = []
        if self.search.journal is not None:
            with suppress(OSError):  # which the journal of a setting reports
                Path(self.search.journal).mkdir(exist_ok=True)
        for setting, part in zip(self.setup.settings, self.parts, strict=True):
            for one in part.evaluate(metric, context).outcomes:
                indices = tuple(setting.indices[i] for i in one.indices)
                outcomes.append(replace(one, indices=indices))
        setup, weight = self.setup, self.parts[0].weight
        grouped = self.groups is not None
        score = self.routed.scorer.score
        return EvaluatedOnAllRows(
            setup,
            sorted(outcomes, key=lambda one: min(one.indices)),
            np.diff(setup.folds.offsets),
            grouped,
            {"folds_": setup.folds, "groups_": self.groups},
            self.task,
            FitInputs(self.scorers, self.X, self.y, weight, score, grouped),
            partial(fit_winner, self.search, self.X, self.y, self.fit_params),
            partial(self._in_folds, metric),
        )

    def _in_folds(self, metric: Any, index: int) -> tuple[float, Any]:
        """Score and held-out values of one candidate with its steps fitted in the folds."""
        setup = self.setup
        setting = next(one for one in setup.settings if index in one.indices)
        candidate = setup.group_of(index)
        lam = candidate.lams[candidate.indices.index(index)]
        alone = replace(setting, models=[replace(candidate, lams=(lam,), indices=(0,))])
        work = Work(self.X, self.y, self.fit_params, setup.folds)
        found = {(0, k): run_unit(work, alone, k) for k in range(len(setup.folds))}
        outcomes = outcomes_of(self.task, [alone], found, np.nan)
        sizes = np.diff(setup.folds.offsets)
        candidates = [setup.candidates[index]]
        results = tabulate(candidates, outcomes, self.names, sizes, self.search.aggregate)
        held = heldout_of(0, outcomes, setup.folds)
        known = setup.spec_of(index).coding.decoders
        held = replace(held, targets=self.y, sample_weight=self.parts[0].weight, **known)
        return float(results.totals[metric][0]), held


class _TransformedRows(RowsInMemory):
    """The rows of one setting after its steps, searched by the kernel estimator alone."""

    def __init__(self, whole: RowsOnAllRows, metric: Any, setting: Setting) -> None:
        search, y = copy(whole.search), whole.y
        how = all_rows_of(search.method)
        assert how is not None
        search.estimator, search.method = clone(setting.models[0].estimator), how.method
        search.param_grid = GivenSettings(setting.own)
        search.cv = whole.setup.folds
        if search.journal is not None:
            search.journal = Path(search.journal) / digest(setting.words.encode())
        check_settings(search)
        rows, self.weight = preprocess_all(setting.estimator, whole.X, whole.fit_params)
        self.search, self.X, self.y = search, rows, y
        self.host = HostData.of(None, rows, y, {})
        self.groups = whole.groups
        self.setup = set_up(search, rows, y, self.weight, {})
        score = whole.routed.scorer.score
        self.task = make_task(search, self.setup, whole.scorers, whole.X, y, score, metric)
        grouped = self.groups is not None
        self.given = FitInputs(whole.scorers, whole.X, y, self.weight, score, grouped)


@dataclass
class EvaluatedOnAllRows(EvaluatedInMemory):
    """Outcomes with held-out values, whose steps saw all rows.

    Attributes
    ----------
    in_folds : callable
        Score and held-out values of a candidate with its steps fitted in the folds.
    """

    in_folds: Any = field(repr=False)

    def compared(self, fitted: dict[str, Any], metric: Any) -> dict[str, Any]:
        """The winner's score beside that with the steps fitted in every training part."""
        if metric is None or "best_score_" not in fitted:
            return {}
        try:
            score, held = self.in_folds(fitted["best_index_"])
        except ValueError as error:
            warnings.warn(f"there is no optimism_: {error}", stacklevel=3)
            return {}
        found = Optimism(metric, float(fitted["best_score_"]), score, held)
        errors: Array = fitted["cv_results_"][f"se_test_{metric}"]
        if found.difference > errors[fitted["best_index_"]]:
            warnings.warn(
                f"best_score_ is {found.all_rows:.4g} with the preprocessing fitted to all rows, "
                f"and {found.in_folds:.4g} with it fitted in every training part; search again "
                "with method='auto'",
                stacklevel=3,
            )
        return {"optimism_": found}


def explain_on_all_rows(
    search: Any, X: Any, y: Any, groups: Any, sample_weight: Any
) -> plan.Explanation:
    """What a fit would do; the steps are fitted to know the columns."""
    params = {"groups": groups, "sample_weight": sample_weight}
    params = {name: value for name, value in params.items() if value is not None}
    scorers, metric = resolve_scorers(search)
    return RowsOnAllRows(search, X, y, params, scorers, metric).explain()


def _check_target_is_given(estimator: Any) -> None:
    """Refuse a transformation of the target, wherever it is."""
    node = estimator
    while hasattr(node, "steps") or isinstance(node, TransformedTargetRegressor):
        if isinstance(node, TransformedTargetRegressor):
            raise ValueError(
                "method='all_rows' fits the steps to all rows without the target, which a "
                "TransformedTargetRegressor transforms; use method='auto', or transform y first"
            )
        node = node.steps[-1][1]
