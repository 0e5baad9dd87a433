"""Candidates, and what they share.

A grid of parameters is a list of candidates, in scikit-learn's order. Candidates that differ in lam
alone are one *model*: its lams share one preparation. Models with one kernel are one *job*:
they share one kernel matrix, whatever their losses, thresholds, scalings and intercepts.

Values to try are lists, or anything that draws: an object with a method ``rvs(random_state=...)``,
such as the distributions of :mod:`scipy.stats` (``loguniform(1e-6, 1)``). ``n_iter`` settings are
drawn as :class:`sklearn.model_selection.RandomizedSearchCV` draws them: with replacement where
there is a distribution, else without.

Drawn settings seldom share a kernel, so each costs a kernel matrix and a preparation of its own.
Where many lams are wanted for each kernel, draw the parameters of the kernel alone and let lam be
an :class:`~onefit.search.continuous.Interval`: ``n_iter`` kernels are then drawn, and lam is
searched in each.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from onefit._describe import describe
from onefit._validation import suggest
from onefit.estimators.components import NAMED
from onefit.estimators.unused import unused_gamma, warn_of_unused
from onefit.heldout import HeldOutMethod
from onefit.kernels import Kernel, takes_gamma
from onefit.spec import Spec

Array = NDArray[Any]

#: names of the penalty in other libraries, and their conversion
CONVERSIONS = {
    "C": (
        "; its penalty is lam = 1 / (2 n C) with scaling='mean', n the rows that are trained on, "
        "or lam = 1 / (2 C) with scaling='total'"
    ),
    "alpha": (
        "; its penalty is lam = alpha / n with scaling='mean', n the rows that are trained on, or "
        "lam = alpha with scaling='total'"
    ),
}

__all__ = [
    "CandidateModel",
    "Job",
    "PlannedSearch",
    "candidate_models",
    "candidates",
    "check_names",
    "check_rows",
    "grid_of",
    "jobs",
    "jobs_by",
    "parts",
    "settings",
]


@dataclass(frozen=True)
class CandidateModel:
    """Candidates that differ in lam alone.

    Attributes
    ----------
    estimator : KernelEstimator
        With every parameter but lam set.
    lams : tuple of float
        Descending, so that a solver may start each from the one before.
    indices : tuple of int
        The candidate of each lam.
    method : HeldOutMethod or None
        How its held-out values are computed, once that is planned.
    continuous : bool
        Whether the lams are the coarse grid of an interval, to be refined.
    """

    estimator: Any
    lams: tuple[float, ...]
    indices: tuple[int, ...]
    method: HeldOutMethod | None = None
    continuous: bool = False

    @property
    def spec(self) -> Spec:
        """What its parameters mean."""
        found: Spec = self.estimator.spec()
        return found

    def take(self, indices: Collection[int]) -> CandidateModel:
        """The model with some of its candidates."""
        kept = [i for i, index in enumerate(self.indices) if index in indices]
        lams, own = tuple(self.lams[i] for i in kept), tuple(self.indices[i] for i in kept)
        return replace(self, lams=lams, indices=own)


@dataclass(frozen=True)
class Job:
    """Models that share a kernel matrix, or the features that replace it."""

    kernel: Kernel
    models: tuple[CandidateModel, ...]
    tiled: bool = False

    @property
    def words(self) -> str:
        """The kernel in words, for journals."""
        return describe(self.kernel)

    def without(self, dropped: Container[int]) -> Job:
        """The job without some candidates, and without models that lose all of theirs."""
        models = (
            model.take([i for i in model.indices if i not in dropped]) for model in self.models
        )
        return replace(self, models=tuple(model for model in models if model.indices))


@dataclass(frozen=True)
class PlannedSearch:
    """The candidates of a search.

    Attributes
    ----------
    candidates : list of dict
    model : estimator
        The first of them, with columns, classes and targets; used in scoring for all of them.
    models : list of CandidateModel
        All candidates, in groups.
    choices : list of MethodChoice
        What a cost model chose, one per model.
    """

    candidates: list[dict[str, Any]] = field(repr=False)
    model: Any
    models: list[CandidateModel] = field(repr=False)
    choices: list[Any]

    @property
    def continuous(self) -> bool:
        """Whether any model's lams are to be refined."""
        return any(model.continuous for model in self.models)

    @property
    def plain(self) -> bool:
        """Whether held-out values of every model have the columns of the targets."""
        return all(one.spec.coding.columns_are_targets for one in self.models)

    @cached_property
    def groups(self) -> dict[int, CandidateModel]:
        """The model of every candidate, by its index."""
        return {i: one for one in self.models for i in one.indices}

    def model_of(self, index: int) -> Any:
        """The kernel estimator of a candidate, for the same rows and targets."""
        one = self.groups[index]
        found = clone(one.estimator).set_params(lam=one.lams[one.indices.index(index)])
        found._copy_data_attributes(self.model)
        return found

    def spec_of(self, index: int) -> Spec:
        """The spec of a candidate, but for lam."""
        return self.groups[index].spec


def settings(param_grid: Any, n_iter: int | None, random_state: Any) -> list[dict[str, Any]]:
    """All settings of a grid, or ``n_iter`` of them at random; at least one.

    Parameters
    ----------
    param_grid : dict or list of dict
        Lists of values; distributions too, if ``n_iter`` is given.
    n_iter : int or None
        None takes all.
    random_state : int, RandomState or None

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> found = settings({"gamma": uniform(1, 2), "lam": [0.1, 1.0]}, 3, random_state=0)
    >>> [sorted(one) for one in found]
    [['gamma', 'lam'], ['gamma', 'lam'], ['gamma', 'lam']]
    """
    drawn = [name for part in parts(param_grid) for name in part if hasattr(part[name], "rvs")]
    if n_iter is None:
        if drawn:
            raise ValueError(
                f"param_grid has a distribution for {drawn[0]!r}, which a grid cannot exhaust; "
                "set n_iter, the number of candidates to draw, or give a list of values"
            )
        found = list(ParameterGrid(param_grid))
        if not found:
            raise ValueError(f"param_grid={param_grid!r} holds no candidate; use {{}} for one")
        return found
    if not isinstance(n_iter, numbers.Integral) or isinstance(n_iter, bool) or n_iter < 1:
        raise ValueError(
            f"n_iter must be a whole number of at least 1, got {n_iter!r}; None tries a whole grid"
        )
    lists = [{k: v for k, v in part.items() if not hasattr(v, "rvs")} for part in parts(param_grid)]
    grid = ParameterGrid(lists)  # refuses anything but lists of values
    size = int(n_iter) if drawn else min(int(n_iter), len(grid))
    return list(ParameterSampler(param_grid, size, random_state=random_state))


def parts(param_grid: Any) -> list[Mapping[str, Any]]:
    """The dictionaries of a grid; anything else is left to scikit-learn to refuse."""
    if isinstance(param_grid, Mapping):
        return [param_grid]
    found = param_grid if isinstance(param_grid, Iterable) else []
    return [part for part in found if isinstance(part, Mapping)]


def candidates(
    estimator: Any, param_grid: Any, n_iter: int | None = None, random_state: Any = None
) -> list[dict[str, Any]]:
    """All parameter settings of a grid, or some at random, names checked.

    Examples
    --------
    >>> from onefit import KernelRegressor
    >>> candidates(KernelRegressor(), {"gama": [1.0]})
    Traceback (most recent call last):
        ...
    ValueError: param_grid names 'gama', which KernelRegressor does not have; did you mean 'gamma'?
    """
    found = settings(param_grid, n_iter, random_state)
    check_names(estimator, found)
    for part in parts(param_grid):
        _check_useful(estimator, part)
    return found


def check_names(estimator: Any, found: Sequence[dict[str, Any]], prefix: str = "") -> None:
    """Refuse candidates with parameters that a kernel estimator does not have.

    ``prefix`` is what a pipeline puts before their names.
    """
    known = estimator.get_params(deep=True)
    nested = tuple(f"{name}__" for name in NAMED if name in known)  # checked with its object
    for name in dict.fromkeys(name for candidate in found for name in candidate):
        if name not in known and not name.startswith(nested):
            hint = CONVERSIONS.get(name) or suggest(name, known)
            kind = type(estimator).__name__
            raise ValueError(
                f"param_grid names {prefix + name!r}, which {kind} does not have{hint}"
            )


def _check_useful(estimator: Any, part: Mapping[str, Any]) -> None:
    """Refuse or warn of a gamma that does nothing with any kernel of a part of the grid."""
    given = part.get("kernel", [estimator.kernel])
    nested = any(name.startswith("kernel__") for name in part)
    if nested or not isinstance(given, (list, tuple, np.ndarray)):
        return  # not known yet
    kernels = list(given)
    if "gamma" not in part:
        warn_of_unused(estimator, kernels, level=9)
        return
    why = unused_gamma(kernels)
    if why:
        raise ValueError(f"param_grid names 'gamma', but {why}; take it out of the grid")


def grid_of(estimator: Any, found: Iterable[dict[str, Any]]) -> list[dict[str, list[Any]]]:
    """A grid of these candidates alone, in this order, without gammas that do nothing."""

    def useful(candidate: dict[str, Any], name: str) -> bool:
        return name != "gamma" or takes_gamma(candidate.get("kernel", estimator.kernel))

    return [{name: [one[name]] for name in one if useful(one, name)} for one in found]


def candidate_models(estimator: Any, found: Sequence[dict[str, Any]]) -> list[CandidateModel]:
    """Group candidates by everything but lam, every value checked."""
    groups: dict[Hashable, list[int]] = {}
    for index, candidate in enumerate(found):
        key = frozenset((k, _hashable(v)) for k, v in candidate.items() if k != "lam")
        groups.setdefault(key, []).append(index)
    fresh = clone(estimator)
    return [_model(fresh, found, indices) for indices in groups.values()]


def _model(fresh: Any, found: Sequence[dict[str, Any]], indices: list[int]) -> CandidateModel:
    lams = np.empty(len(indices))
    model = copy(fresh).set_params(**clone(found[indices[0]], safe=False))
    for place, index in enumerate(indices):
        model.lam = found[index].get("lam", fresh.lam)
        model._check_parameters()
        lams[place] = model.lam
    model.spec()  # refuses what a loss does not know
    order = np.argsort(-lams, kind="stable")
    return CandidateModel(model, tuple(lams[order].tolist()), tuple(indices[i] for i in order))


def check_rows(
    group: Sequence[CandidateModel], X: Any, y: Any, sample_weight: Any
) -> tuple[Any, Array, Array]:
    """Rows, targets and weights, checked; all models know their columns and classes after it."""
    first = group[0].estimator
    rows, Y, s = first._check_rows(X, y, sample_weight)
    for one in group[1:]:
        one.estimator._copy_data_attributes(first)
    return rows, Y, s


def jobs(found: Iterable[CandidateModel], X: Any, Y: Array, s: Array) -> list[Job]:
    """Group models by features and kernel, resolved on rows X, targets Y and weights s."""

    def resolve(spec: Spec) -> Kernel:
        return spec.resolve_kernel(X, spec.coding.weights(Y, s))

    return jobs_by(found, resolve)


def jobs_by(found: Iterable[CandidateModel], resolve: Callable[[Spec], Kernel]) -> list[Job]:
    """Group models by features and kernel, which ``resolve`` makes from a spec."""
    groups: dict[Hashable, tuple[Kernel, list[CandidateModel]]] = {}
    for model in found:
        spec = model.spec
        kernel = resolve(spec)
        key = _hashable(kernel), spec.approximation and spec.approximation.key
        groups.setdefault(key, (kernel, []))[1].append(model)
    return [Job(kernel, tuple(group)) for kernel, group in groups.values()]


def _hashable(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return ("id", id(value))
    return (type(value).__name__ if isinstance(value, (bool, str)) else "", value)
