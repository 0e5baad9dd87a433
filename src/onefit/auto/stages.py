"""Everything that a selection does, stage by stage, with the seconds that the plan expects."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sklearn.base import clone

from onefit import plan
from onefit._format import aligned, duration
from onefit.auto.fallback import planned_seconds
from onefit.auto.outliers import MULTIPLES, NEIGHBOURS
from onefit.auto.run import Planned
from onefit.search.setup import Setup, set_up

__all__ = ["Stage", "plan_stages", "show_stages"]

#: passes over the table for reading, typing and encoding it: about 1 microsecond for each cell
PASSES_PER_CELL = 3000.0
#: passes over the held-out values of all candidates for scores, intervals and the headline
PASSES_PER_HELDOUT_VALUE = 30.0


@dataclass(frozen=True)
class Stage:
    """A part of a selection, when it is done, and seconds that it is expected to take."""

    name: str
    when: str
    seconds: float


def plan_stages(planned: Planned, setup: Setup, shape: tuple[int, ...]) -> list[Stage]:
    """The stages of a selection in their order."""
    search, _ = planned_seconds(setup)
    (work, *_), rates = setup.works, plan.HOST_RATES
    values = work.n * len(setup.candidates) * work.targets
    scored = rates.passes(values, PASSES_PER_HELDOUT_VALUE).seconds
    cells = float(shape[0]) * shape[1]
    stages = [
        Stage("reading and preparing", "always", rates.passes(cells, PASSES_PER_CELL).seconds),
        Stage("search", "always", search),
        Stage("scores and headline", "always", scored),
        Stage("final fit", "always", plan.fit_estimate(work).seconds),
    ]
    if planned.calibrate is not None:
        stages.append(Stage("calibration", "always", rates.losses(10.0 * work.n).seconds))
    if planned.may_be_robust:
        when = "if there are outliers" + ("" if planned.deadline is None else " and time")
        stages.append(Stage("squared loss again, Huber's loss", when, search + _huber(planned)))
    if planned.fallback is not None:
        alone = replace(work, lams=1, kernels=1, features=0)
        stages.append(Stage("whole kernel, winner", "if there is time", plan.choose(alone).seconds))
    return stages


def _huber(planned: Planned) -> float:
    """Huber's loss beside the squared one, at the largest number of bandwidths tried."""
    search = clone(planned.search)
    (first, *_) = planned.search.param_grid
    near = {name: list(values) for name, values in first.items()}
    if "gamma" in near:
        near["gamma"] = near["gamma"][: 2 * NEIGHBOURS[0][0] + 1]
    huber = {"loss": ["huber"], "loss__threshold": list(MULTIPLES)}
    method = "limit" if planned.fallback is not None else "race"
    search.set_params(param_grid=[near | {"loss": ["squared"]}, near | huber], method=method)
    setup = set_up(
        search,
        planned.Z,
        planned.y,
        planned.params.get("sample_weight"),
        {"groups": planned.groups},
    )
    return planned_seconds(setup)[0]


def show_stages(stages: list[Stage]) -> str:
    """The stages as a table."""
    rows = [[f"  {one.name}", duration(one.seconds), one.when] for one in stages]
    always = sum(one.seconds for one in stages if one.when == "always")
    every = sum(one.seconds for one in stages)
    lines = aligned(["  stage", "time", "when"], rows)
    total = f"All stages: {duration(every)} ({duration(always)} without optional ones)."
    return "\n".join(["Stages, by the fixed rates of the plan:", "", *lines, "", total])
