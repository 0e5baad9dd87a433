"""Run a recipe: features if time is short, the search, and Huber's loss if there are outliers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import Any

from onefit.choose import outliers
from onefit.choose.data_checks import warn_of_columns
from onefit.choose.recipe import Recipe
from onefit.fallback import fall_back, measure_whole
from onefit.search.announce import announce
from onefit.search_cv import KernelSearchCV

__all__ = ["fit_recipe", "in_time"]

Watch = Callable[[KernelSearchCV], AbstractContextManager[Any]]


def in_time(recipe: Recipe, minutes: float | None) -> Recipe:
    """Features, if there is too little time for the whole kernel; told at once."""
    if minutes is None:
        return recipe
    fallen = fall_back(recipe.search, recipe.Z, recipe.y, minutes, **recipe.params)
    if fallen is not None:
        recipe.reasons.append(fallen.begun())
        print(fallen.begun(), file=sys.stderr, flush=True)
    return replace(recipe, fallback=fallen)


def fit_recipe(recipe: Recipe, watch: Watch = nullcontext) -> Recipe:
    """The recipe with a fitted search.

    Parameters
    ----------
    recipe : Recipe
    watch : callable, default=nullcontext
        Makes, of a search, a context to fit it in; it may show progress.
    """
    begun = perf_counter()
    search, Z, y = recipe.search, recipe.Z, recipe.y
    announce(search, Z, y, recipe.weights, recipe.groups)
    with watch(search):
        search.fit(Z, y, **recipe.params)
    recipe = _answer_outliers(recipe, watch)
    recipe.notes.extend(warn_of_columns(recipe.strong, recipe.search, y, recipe.task))
    return _measured(recipe, perf_counter() - begun)


def _answer_outliers(recipe: Recipe, watch: Watch) -> Recipe:
    """Another search, if the residuals of the first one call for it, and a reason."""
    if not recipe.may_be_robust:
        return recipe
    part = outliers.part_far_away(recipe.search, recipe.y)
    if part == 0.0:
        return recipe
    with watch(recipe.search):
        search = outliers.robust_search(recipe.search, recipe.Z, recipe.y, recipe.weights)
    reasons = [*recipe.reasons, outliers.told(part, search)]
    # criteria beside it are for one loss
    return replace(recipe, search=search, reasons=reasons, robust=True, compare=())


def _measured(recipe: Recipe, seconds: float) -> Recipe:
    """How far the winner is from the whole kernel, if there is time for that."""
    if recipe.fallback is None:
        return recipe
    left = recipe.fallback.allowed - seconds
    whole, reason = measure_whole(recipe.search, recipe.Z, recipe.y, left, recipe.weights)
    return replace(recipe, fallback=replace(recipe.fallback, whole=whole, reason=reason))
