"""The model of all rows in feature space, for every target, and the held-out methods by name."""

from __future__ import annotations

import numpy as np

from onefit import linalg
from onefit.features.fold_models import FeatureFit, newton, squared
from onefit.features.held_out import FeatureMethod, GramFolds, PrimalExact, PrimalLimit
from onefit.features.in_memory import all_rows, moments
from onefit.features.parts import RowParts
from onefit.problem import Problem

__all__ = ["FEATURE_METHODS", "feature_method", "fit_features"]


@linalg.overflowing
def fit_features(problem: Problem, lam: float) -> tuple[FeatureFit, Problem]:
    """The minimiser, and the problem with the loss that it was found for."""
    lams = np.array([lam])
    if problem.quadratic:
        sums = moments(problem, RowParts.whole(problem.n))
        return squared(all_rows(problem), sums, lams).fit(0), problem
    problem = problem.resolved
    return newton(all_rows(problem), lams, refined=False).fit(0), problem


FEATURE_METHODS: dict[str, type[FeatureMethod]] = {
    method.name: method for method in (GramFolds, PrimalLimit, PrimalExact)
}


def feature_method(name: str, quadratic: bool) -> str:
    """The method that a name means: sums of products serve the squared loss under every name."""
    known = ("auto", "gram", "limit", "exact")
    if name not in known:
        raise ValueError(
            f"method {name!r} works on the whole kernel matrix; with an approximation use "
            "'auto', 'exact' or 'limit'"
        )
    if quadratic:
        return "gram"
    if name == "gram":
        raise ValueError("method 'gram' works for the squared loss only; use 'exact' or 'limit'")
    return "exact" if name == "auto" else name
