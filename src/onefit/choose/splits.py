"""The splits: shuffled folds; classes in equal shares, groups kept together, time kept in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from onefit.choose.options import Options
from onefit.tables import Table

__all__ = ["choose_splits", "is_count"]


def is_count(folds: Any) -> bool:
    """Whether it is a number of folds, not a splitter."""
    return isinstance(folds, (int, np.integer))


def choose_splits(table: Table, task: str, options: Options) -> tuple[Any, str]:
    """A splitter, and what it does."""
    k, seed = options.folds, options.seed
    if not is_count(k):
        return k, "splits as given"
    if table.ordered:
        if table.groups is not None:
            raise ValueError("rows in the order of time cannot be kept together in groups as well")
        return TimeSeriesSplit(k), f"{k} splits in the order of time: each tests what comes later"
    labels = task == "classification"
    if table.groups is None:
        kind = StratifiedKFold if labels else KFold
        return kind(k, shuffle=True, random_state=seed), ""
    found = np.unique(np.asarray(table.groups)).size
    k = found if k == len(table.y) else k  # each row left out: each group then
    if found < k:
        raise ValueError(
            f"there are {found} groups, fewer than the {k} folds of {options.word('folds')}; use "
            f"at most {found}"
        )
    kind = StratifiedGroupKFold if labels else GroupKFold
    told = f"{k} splits that keep each of the {found} groups on one side"
    return kind(k, shuffle=True, random_state=seed), told
