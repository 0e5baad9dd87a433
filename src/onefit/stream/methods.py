"""The held-out methods of feature space, by the names that a search knows."""

from __future__ import annotations

from onefit.heldout.base import HeldOutMethod
from onefit.stream.anyloss import PrimalExact, PrimalLimit
from onefit.stream.squared import GramFolds

__all__ = ["FEATURE_METHODS", "feature_method"]

FEATURE_METHODS: dict[str, type[HeldOutMethod]] = {
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
