"""What an automatic selection found, in sentences: for its summary and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onefit.files import shortened
from onefit.report.facts import Facts
from onefit.search_pipeline import as_kernel_search

__all__ = ["findings", "number"]

#: classes whose shares are named
NAMED_CLASSES = 6


def number(value: Any) -> str:
    """The value of a parameter."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def findings(auto: Any) -> list[str]:
    """The choice, its expected score beside the baseline, and how exact that is."""
    facts = Facts(as_kernel_search(auto.search_))
    params = ", ".join(f"{name}={number(value)}" for name, value in auto.best_params_.items())
    chosen = f"{type(auto.best_estimator_).__name__}, {params}"
    return [chosen, *_expected(facts, auto), _exactness(facts), *_rivals(facts)]


def _expected(facts: Facts, auto: Any) -> Iterator[str]:
    low, high = facts.interval
    yield (
        f"Expected {facts.scale.label}: {facts.expected:.4g}, 95% interval {low:.4g} to "
        f"{high:.4g}, from {auto.n_splits_} splits (the interval allows for the choice among the "
        "candidates)"
    )
    if auto.fallback_ is not None:
        yield f"Features: {auto.fallback_.describe(facts.scale, facts.scale.label)}"
    headline = facts.headline
    if headline is None:
        return
    more = ""
    if headline.r2 is not None and facts.scale.label != "R²":
        more = f"; R² {headline.r2:.4g}"
    if headline.shares:
        ranked = sorted(headline.shares.items(), key=lambda one: -one[1])[:NAMED_CLASSES]
        more = f"; shares {', '.join(f'{name} ({share:.1%})' for name, share in ranked)}"
    if facts.scale.label == "R²":
        yield from _typical_error(auto)
    yield f"Baseline ({headline.baseline_name}): {facts.baseline:.4g}{shortened(more)}"
    if facts.verdict:
        yield f"Warning: {facts.verdict}"


def _typical_error(auto: Any) -> Iterator[str]:
    """The error in the unit of the target, of one target and rows of equal weight."""
    y, held = auto._planned.y, getattr(auto.search_, "heldout_", None)
    if held is None or y.ndim > 1 or y.shape != held.predictions.shape:
        return
    if auto._planned.weights is None:
        error = np.sqrt(np.nanmean(np.square(y - held.predictions)))
        yield f"Typical error: {error:.4g} in the unit of the target (root mean square)"


def _exactness(facts: Facts) -> str:
    bound = float(facts.table["error"][facts.best])
    if facts.table["exact"][facts.best]:
        return (
            "Exact: held-out predictions equal those of refitting every split, up to rounding "
            f"(error at most {bound:.1g})"
        )
    return (
        f"Approximate: held-out predictions by {facts.table['method'][facts.best]!r} differ from "
        f"those of refitting (error bound {bound:.2g})"
    )


def _rivals(facts: Facts) -> Iterator[str]:
    count = len(facts.table["params"])
    yield f"{int(facts.near.sum())} of {count} candidates are within one standard error of the best"
    if facts.edges:
        yield f"At the edge of the grid: {' and '.join(facts.edges)}; better ones may lie beyond"
