"""A search over pipelines: preprocessing is fitted in every training part.

Candidates that share their preprocessing are one *setting*. A setting and a split are one unit of
work: the steps are fitted once, to the training rows; every kernel of the setting has one matrix
on training and test rows, made from distances that all of its gammas share; and all lams of a
kernel share one decomposition or path (onefit.heldout.train_test). So k decompositions per kernel
replace k fits per kernel and lam, and every score is that of an honest refit: gamma="scale",
class weights and widths of a loss come from the training rows too, as in GridSearchCV.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from onefit._describe import describe
from onefit.search.grid import CandidateModel, candidate_models, settings
from onefit.search.preprocess import kernel_estimator, kernel_path, with_stand_in

__all__ = ["Setting", "settings_of"]


@dataclass(frozen=True)
class Setting:
    """Candidates that share their preprocessing.

    Attributes
    ----------
    estimator : the whole estimator, with a placeholder for the kernel estimator
    models : list of CandidateModel, whose indices are those of the candidates of the search
    indices : list of int
        The candidates, in the order of the search.
    own : list of dict
        Of each of these, the parameters of the kernel estimator that the grid sets.
    words : str
        The preprocessing in words, for journals.
    """

    estimator: Any
    models: list[CandidateModel]
    words: str
    indices: list[int]
    own: list[dict[str, Any]]


def settings_of(search: Any) -> tuple[list[dict[str, Any]], list[Setting]]:
    """The candidates of a grid over a pipeline, and their settings."""
    found = settings(search.param_grid, search.n_iter, search.random_state)
    if not found:
        raise ValueError(
            f"param_grid={search.param_grid!r} holds no candidate at all; use {{}} for one"
        )
    path = kernel_path(search.estimator)
    assert path
    prefix = "__".join(path)
    groups: dict[Hashable, list[int]] = {}
    for index, candidate in enumerate(found):
        key = frozenset(
            (name, _words(value))
            for name, value in candidate.items()
            if not name.startswith(f"{prefix}__")
        )
        groups.setdefault(key, []).append(index)
    return found, [_setting(search, found, some, prefix) for some in groups.values()]


def _words(value: Any) -> Hashable:
    """A key that differs for different values of a parameter."""
    try:
        hash(value)
    except TypeError:
        return describe(value)
    return type(value).__name__, value


def _setting(search: Any, found: list[dict[str, Any]], indices: list[int], prefix: str) -> Setting:
    shared = {
        name: value
        for name, value in found[indices[0]].items()
        if not name.startswith(f"{prefix}__")
    }
    whole = clone(search.estimator).set_params(**clone(shared, safe=False))
    if kernel_path(whole) is None:
        raise TypeError(
            f"param_grid puts {kernel_estimator(whole)!r} at the end of the pipeline; "
            "KernelSearchCV needs a KernelRegressor or KernelClassifier there"
        )
    leaf = kernel_estimator(whole)
    own = [
        {name[len(prefix) + 2 :]: value for name, value in found[i].items() if name not in shared}
        for i in indices
    ]
    known = leaf.get_params(deep=True)
    for name in dict.fromkeys(name for one in own for name in one):
        if name not in known and name.partition("__")[0] not in known:
            raise ValueError(
                f"param_grid names {prefix + '__' + name!r}, but {type(leaf).__name__} has no "
                f"parameter {name!r}"
            )
        if name == "lam" and any(not np.isscalar(one.get("lam", 1.0)) for one in own):
            raise ValueError(
                "param_grid has an Interval for lam, which is refined on one full-sample fit; "
                "with preprocessing in the folds give a list of values"
            )
    group = [
        replace(one, indices=tuple(indices[i] for i in one.indices))
        for one in candidate_models(leaf, own)
    ]
    stand_in = with_stand_in(whole)
    return Setting(stand_in, group, describe(stand_in), indices, own)
