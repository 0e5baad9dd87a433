"""Steps of a pipeline fitted once, to all rows: ``method="all_rows"``, and its effect on the score.

A scaler or an imputer that is fitted to all rows has seen the held-out ones, so that the score is
a little too high. In return a kernel has one matrix for all splits, and their held-out predictions
come from one fit to all rows. The increase of the score is measured for the winner: it is evaluated
once more with its steps fitted in every training part, and :class:`Optimism` holds both scores. The
increase of other candidates may differ, and the second score is still that of the best of many.

Steps that use the target are refused: the steps are fitted without it. With it, the increase would
be large (selecting columns of noise, encoding a column of many values by the mean target).
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor

from onefit import plan
from onefit._describe import digest
from onefit._types import Array
from onefit.estimators.unused import UnusedParameterWarning
from onefit.heldout import HeldOut
from onefit.search.grid import grid_of
from onefit.search.in_memory import HeldRows, RowsInMemory
from onefit.search.inputs import check_settings
from onefit.search.outcome import values_of
from onefit.search.pipeline import Setting, Work, run_unit, units_of
from onefit.search.pipeline_rows import PipelineRows, outcomes_of
from onefit.search.preprocess import preprocess_all
from onefit.search.setup import set_up

__all__ = ["Optimism", "RowsOnAllRows"]


@dataclass(frozen=True)
class Optimism:
    """The increase of the winner's score by steps that are fitted to all rows.

    Attributes
    ----------
    metric : str
    all_rows : float
        Score with the steps fitted once, to all rows: ``best_score_``.
    in_folds : float
        Score of the same candidate with the steps fitted in every training part.
    heldout : HeldOut
        Held-out values of the winner with the steps fitted in every training part.
    """

    metric: str
    all_rows: float
    in_folds: float
    heldout: HeldOut = field(repr=False)

    @property
    def difference(self) -> float:
        """The score with steps fitted to all rows minus that with steps fitted in the folds."""
        return self.all_rows - self.in_folds


class RowsOnAllRows(PipelineRows):
    """Rows in memory of a search over pipelines: steps are fitted once, to all rows, without y.

    Every setting of the steps is a search over the kernel estimator alone, on transformed rows.

    Parameters
    ----------
    search, X, y, params
        See ``RowsInMemory``.
    """

    def __init__(self, search: Any, X: Any, y: Any, params: dict[str, Any]) -> None:
        super().__init__(search, X, y, params)
        _check_target_is_given(search.estimator)
        with warnings.catch_warnings():
            # a grid may pair a kernel with parameters of another
            warnings.simplefilter("ignore", UnusedParameterWarning)
            self.parts = [_TransformedRows(self, setting) for setting in self.setup.jobs]
        choices = [choice for part in self.parts for choice in part.setup.choices]
        self.setup = replace(self.setup, choices=choices)
        self.subtasks += len(self.parts) - 1

    def check(self, metric: Any) -> None:
        """Refuse what does not go with the metric, or would not fit into memory."""
        for part in self.parts:
            part.check(metric)

    def explain(self) -> plan.Explanation:
        """The plan of every setting of the steps, which were fitted to know the columns."""
        k, plans = len(self.setup.folds), [part.explain() for part in self.parts]
        texts = [
            f"Setting {i} of the preprocessing, fitted once:\n{one}" for i, one in enumerate(plans)
        ]
        texts.append(f"The winner is then evaluated with its steps fitted on each of {k} splits.")
        refusal = next((one.refusal for one in plans if one.refusal), "")
        return plan.Explanation("\n\n".join(texts), refusal)

    def evaluate(self, metric: Any, context: Any) -> None:
        """Evaluate every setting on its transformed rows."""
        self.outcomes = []
        if self.search.journal is not None:
            with suppress(OSError):  # which the journal of a setting reports
                Path(self.search.journal).mkdir(exist_ok=True)
        for setting, part in zip(self.setup.jobs, self.parts, strict=True):
            part.evaluate(metric, context)
            for one in part.outcomes:
                indices = tuple(setting.indices[i] for i in one.indices)
                self.outcomes.append(replace(one, indices=indices))
        self.outcomes.sort(key=lambda one: min(one.indices))

    def compared(self, fitted: dict[str, Any], metric: Any) -> dict[str, Any]:
        """The winner's score, and that with the steps fitted in every training part."""
        if metric is None or "best_score_" not in fitted:
            return {}
        try:
            score, held = self._in_folds(metric, fitted["best_index_"])
        except ValueError as error:
            warnings.warn(f"there is no optimism_: {error}", stacklevel=4)
            return {}
        found = Optimism(metric, float(fitted["best_score_"]), score, held)
        errors: Array = fitted["cv_results_"][f"se_test_{metric}"]
        if found.difference > errors[fitted["best_index_"]]:
            warnings.warn(
                f"best_score_ is {found.all_rows:.4g} with the preprocessing fitted to all rows, "
                f"and {found.in_folds:.4g} with it fitted in every training part; search again "
                "with method='auto'",
                stacklevel=4,
            )
        return {"optimism_": found}

    def _in_folds(self, metric: str, index: int) -> tuple[float, Any]:
        """Score and held-out values of one candidate with its steps fitted in the folds."""
        setup, given = self.setup, self.given
        setting = next(one for one in setup.jobs if index in one.indices)
        candidate = setup.groups[index]
        lam = candidate.lams[candidate.indices.index(index)]
        alone = replace(setting, models=[replace(candidate, lams=(lam,), indices=(0,))])
        work = Work(given.X, given.y, self.fit_params, setup.folds)
        units = units_of([alone], len(setup.folds))
        found = {(0, one.split): run_unit(work, one) for one in units}
        other = copy(self)
        other.setup = replace(
            setup, candidates=[setup.candidates[index]], models=alone.models, jobs=[alone]
        )
        other.outcomes = outcomes_of(self.task, [alone], found, np.nan)
        (score,) = values_of(metric, other.outcomes, 1)
        return float(score), other.held_out(0)


class _TransformedRows(RowsInMemory):
    """The rows of one setting after its steps, searched by the kernel estimator alone."""

    def __init__(self, whole: RowsOnAllRows, setting: Setting) -> None:
        search, given = copy(whole.search), whole.given
        search.estimator, search.method = clone(setting.models[0].estimator), "auto"
        search.param_grid, search.n_iter = grid_of(search.estimator, setting.own), None
        search.cv = whole.setup.folds
        if search.journal is not None:
            search.journal = Path(search.journal) / digest(setting.words.encode())
        check_settings(search)
        self.X, weight = preprocess_all(setting.estimator, given.X, whole.fit_params), given.weight
        self.y, self.params = given.y, {} if weight is None else {"sample_weight": weight}
        setup = set_up(search, self.X, self.y, weight, {})
        HeldRows.__init__(self, search, setup, given)


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
