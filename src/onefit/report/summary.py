"""What stands first on the page: the data, the choice, what it is worth, and how to do it again."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np

from onefit import _version
from onefit.report.facts import Facts
from onefit.report.figures import settings
from onefit.report.words import shares

__all__ = ["again", "summary"]

#: packages whose versions change the last digits
PACKAGES = ("numpy", "scipy", "scikit-learn")


def summary(facts: Facts, about: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and values, the data first; ``about`` is what the caller knows of the data."""
    held = getattr(facts.search, "heldout_", None)
    features = getattr(facts.search, "n_features_in_", None)
    known = {} if held is None else {"rows": str(held.folds.n)}
    known |= {} if features is None else {"features": str(features)}
    return list((known | dict(about)).items()) + _worth(facts)


def _worth(facts: Facts) -> list[tuple[str, str]]:
    low, high = facts.interval
    found = facts.headline
    rows = [
        ("chosen", settings(facts.search.best_params_)),
        (facts.scale.label, f"{facts.expected:.4g}"),
        ("95% interval for new rows", f"{low:.4g} to {high:.4g}"),
    ]
    if found is not None and not np.isnan(found.baseline):
        rows.append((found.baseline_name, f"{facts.baseline:.4g}"))
    if found is not None and found.r2 is not None and facts.scale.label != "R²":
        rows.append(("R²", f"{found.r2:.3f}"))
    if found is not None and found.shares:
        rows.append(("shares of the classes", shares(found)))
    return [*rows, ("how sure", _how_sure(facts))]


def _how_sure(facts: Facts) -> str:
    """Rivals, exactness and the edge of the grid, in a sentence each."""
    near, count = int(facts.near.sum()), facts.scores.size
    exact = np.asarray(facts.table["exact"])
    rivals = (
        "No other candidate is"
        if near <= 1
        else f"{near - 1} of the other {count - 1} candidates are"
    )
    words = [f"{rivals} within one standard error of the best."]
    words.append(
        "All held-out predictions are those of refitting, up to rounding."
        if exact.all()
        else f"{int((~exact).sum())} of {count} candidates have held-out predictions that are not "
        "certified to be those of refitting."
    )
    if facts.edges:
        words.append(f"The {' and the '.join(facts.edges)}: better ones may lie beyond the grid.")
    return " ".join(words)


def again(facts: Facts, command: str | None) -> list[tuple[str, str]]:
    """The command or the call, the splits with their seed, and the versions."""
    search = facts.search
    splits = repr(search.cv) if len(repr(search.cv)) < 200 else "given one by one"
    versions = ", ".join(f"{name} {_installed(name)}" for name in PACKAGES)
    grid = repr(search.param_grid)
    rows = [] if command is None else [("command", command)]
    return [
        *rows,
        ("estimator", repr(search.estimator)),
        ("grid", grid if len(grid) < 2000 else f"{facts.scores.size} candidates"),
        ("splits", splits),
        ("scoring", f"{search.scoring}, aggregate {search.aggregate!r}"),
        ("versions", f"onefit {_version.__version__}, {versions}, Python "
                     f"{platform.python_version()}"),
    ]  # fmt: skip


def _installed(name: str) -> Any:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
