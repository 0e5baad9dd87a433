"""Run a recipe: features if time is short, the search, and Huber's loss if there are outliers.

With a limit of time every stage asks first. The search and the final fit of its winner are what
must be done; they get smaller plans. The answer to outliers, the check of features against the
whole kernel and the comparison of criteria are done where there is time for them, and otherwise
left out, with a reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import Any

from onefit.candidates import narrow
from onefit.choose import outliers
from onefit.choose.data_checks import warn_of_columns
from onefit.choose.recipe import Recipe
from onefit.fallback import fall_back, measure_whole, planned_seconds
from onefit.plan import Deadline, OutOfTime
from onefit.search.announce import announce
from onefit.search.extend import fit_growing
from onefit.search.setup import set_up
from onefit.search_cv import KernelSearchCV

__all__ = ["fit_recipe", "in_time", "narrowed"]

Watch = Callable[[KernelSearchCV], AbstractContextManager[Any]]


def in_time(recipe: Recipe, deadline: Deadline | None, slow: str = "") -> Recipe:
    """Features, if there is too little time for the whole kernel; told at once."""
    if deadline is None:
        return recipe
    fallen = fall_back(recipe.search, recipe.Z, recipe.y, deadline, slow, **recipe.params)
    if fallen is not None:
        recipe.reasons.append(fallen.begun())
        print(fallen.begun(), file=sys.stderr, flush=True)
    return replace(recipe, fallback=fallen, deadline=deadline)


def narrowed(recipe: Recipe) -> Recipe:
    """The recipe with the kernels and bandwidths that a race on a sample leaves."""
    if "gamma" not in recipe.growing or recipe.search.criterion != "cv":
        return recipe
    found = narrow(recipe.search, recipe.Z, recipe.y, recipe.weights, recipe.groups, recipe.seed)
    if found is not None:
        recipe.search.set_params(param_grid=found.param_grid)
        recipe.reasons.append(found.reason)
    return recipe


def fit_recipe(recipe: Recipe, watch: Watch = nullcontext) -> Recipe:
    """The recipe with a fitted search.

    Parameters
    ----------
    recipe : Recipe
    watch : callable, default=nullcontext
        Makes, of a search, a context to fit it in; it may show progress.
    """
    announce(recipe.search, recipe.Z, recipe.y, recipe.weights, recipe.groups)
    if recipe.deadline is None:
        with watch(recipe.search):
            told = fit_growing(recipe.search, recipe.Z, recipe.y, recipe.params, recipe.growing)
        recipe.reasons.extend(told)
    else:
        recipe = _fit_in_time(recipe, recipe.deadline, watch)
    recipe = _answer_outliers(recipe, watch)
    found = warn_of_columns(recipe.strong, recipe.search, recipe.y, recipe.task)
    recipe.notes.extend(found)
    return _measured(recipe)


def _fit_in_time(recipe: Recipe, deadline: Deadline, watch: Watch) -> Recipe:
    """The search, with features if its first kernel shows that there is no time for the rest."""
    search, Z, y = recipe.search, recipe.Z, recipe.y
    setup = set_up(search, Z, y, recipe.weights, {"groups": recipe.groups})
    planned, _ = planned_seconds(setup)
    whole, begun = recipe.fallback is None, perf_counter()

    def has_time() -> bool:
        """Whether the whole search could be run again, at the pace that it had."""
        deadline.observe(planned, perf_counter() - begun)
        return not (deadline.cut or deadline.refuses(planned))

    try:
        with watch(search), deadline.over(search, whole=whole):
            told = fit_growing(search, Z, y, recipe.params, recipe.growing, has_time)
    except OutOfTime as error:
        spent = perf_counter() - begun
        deadline.observe(planned / len(setup.jobs), spent)
        recipe = in_time(recipe, deadline, slow=str(error))
        return _fit_in_time(recipe, deadline, watch)
    tried = len(search.cv_results_["params"]) / len(setup.candidates)
    deadline.observe(tried * planned, perf_counter() - begun)
    if deadline.cut:
        recipe.reasons.append(deadline.cut)
    recipe.reasons.extend(told)
    return recipe


def _answer_outliers(recipe: Recipe, watch: Watch) -> Recipe:
    """Another search, if the residuals of the first one call for it, and a reason."""
    if not recipe.may_be_robust:
        return recipe
    part = outliers.part_far_away(recipe.search, recipe.y)
    if part == 0.0:
        return recipe
    with watch(recipe.search):
        search, late = outliers.robust_search(
            recipe.search, recipe.Z, recipe.y, recipe.weights, recipe.deadline
        )
    if late:
        recipe.reasons.append(
            f"{part:.1%} of the held-out residuals are outliers, and Huber's loss was not tried: "
            f"{late}"
        )
    if search is recipe.search:
        return recipe
    if recipe.deadline is not None and recipe.deadline.cut:
        recipe.reasons.append(f"with Huber's loss {recipe.deadline.cut}")
    reasons = [*recipe.reasons, *([] if late else [outliers.told(part, search)])]
    # criteria beside it are for one loss
    return replace(recipe, search=search, reasons=reasons, compare=())


def _measured(recipe: Recipe) -> Recipe:
    """How far the winner is from the whole kernel, if there is time for that."""
    if recipe.fallback is None or recipe.deadline is None:
        return recipe
    recipe.deadline.reserve = 0.0  # the final fit is done
    whole, reason = measure_whole(
        recipe.search, recipe.Z, recipe.y, recipe.deadline, recipe.weights
    )
    return replace(recipe, fallback=replace(recipe.fallback, whole=whole, reason=reason))
