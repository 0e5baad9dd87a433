"""What searches, intervals and reports ask of a machine beside scikit-learn's methods.

An estimator shows its users scikit-learn's names only. The steps of its ``fit`` are private, and
these functions are the one way to them from outside this package.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier

from onefit import plan
from onefit._types import Array, Indices
from onefit.estimators._base import KernelMachine
from onefit.estimators.bring import settle
from onefit.kernels import Kernel
from onefit.losses import Loss
from onefit.problem import Problem
from onefit.quantiles import levels_of
from onefit.stream.approximation import seed_of
from onefit.stream.expansion import FeatureGram
from onefit.stream.features import FeatureMap, NystromMap
from onefit.stream.fit import FeatureFit
from onefit.stream.sample import Drawn

__all__ = [
    "adopt",
    "answers",
    "bring_home",
    "bring_to",
    "check_machine",
    "check_no_approximation",
    "check_rows",
    "check_targets",
    "checked_data",
    "class_weights",
    "clone_known",
    "columns_of",
    "decision_by_class",
    "encode_labels",
    "expand",
    "feature_count",
    "feature_key",
    "feature_map",
    "features_of",
    "has_one_target",
    "is_approximate",
    "is_machine",
    "is_precomputed",
    "kernel_of",
    "loss_of",
    "machine_within",
    "make_problem",
    "one_row",
    "own_columns",
    "plain_columns",
    "prepare",
    "problem_of",
    "resolve_kernel",
    "rows_to_draw",
    "solve",
    "weighs_classes",
    "weights_of",
    "with_decision",
    "with_support",
    "without_features",
    "workload_of",
]


def bring_home(machine: KernelMachine) -> None:
    """Make the arrays of a machine that was fitted on a device NumPy's."""
    settle(machine, None)
    features = getattr(machine, "_map", None)
    if isinstance(features, NystromMap):
        features.forget()


def bring_to(machine: KernelMachine, X: Any) -> None:
    """Have the arrays of a machine where X is."""
    machine._settle(X)


def is_machine(estimator: Any) -> bool:
    """Whether an object is one of the package's estimators."""
    return isinstance(estimator, KernelMachine)


def machine_within(estimator: Any) -> Any:
    """The fitted machine of a classifier that was calibrated, or the estimator itself."""
    found = getattr(estimator, "estimator_", None)
    return found if is_machine(found) else estimator


def check_machine(estimator: Any, caller: str) -> None:
    """Refuse anything but one of the package's estimators, and say what to do instead."""
    if is_machine(estimator):
        return
    name = type(estimator).__name__
    if hasattr(estimator, "steps"):
        raise TypeError(
            f"{caller} does not take a {name}: held-out predictions come from one fit to all rows, "
            "so that its steps would see the test rows. Transform X first if that does no harm (a "
            "scaler without targets, say), or use GridSearchCV on the pipeline"
        )
    if hasattr(estimator, "best_estimator_"):
        raise TypeError(f"{caller} needs an estimator, not a search; pass its best_estimator_")
    raise TypeError(f"{caller} needs a KernelRegressor or KernelClassifier, got {name}")


def loss_of(machine: KernelMachine) -> Loss:
    """The loss that its parameters mean."""
    return machine._make_loss()


def is_precomputed(machine: KernelMachine) -> bool:
    """Whether X is the kernel matrix itself."""
    return machine._precomputed


def is_approximate(machine: KernelMachine) -> bool:
    """Whether features stand in place of its kernel matrix."""
    return machine._features is not None


def check_no_approximation(machine: KernelMachine, what: str, advice: str) -> None:
    """Refuse a machine in feature space where the whole kernel matrix is looked at."""
    if is_approximate(machine):
        raise ValueError(
            f"{what} looks at the whole kernel matrix, which approximation="
            f"{machine.approximation!r} does without; {advice}"
        )


def feature_key(machine: KernelMachine) -> Hashable:
    """What its features depend on beside kernel and rows."""
    found = machine._features
    if found is None:
        return None
    seed = machine.random_state
    seed = seed if isinstance(seed, Hashable) else id(seed)
    return found, machine.n_components, seed, bool(machine.keep_landmarks)


def feature_map(machine: KernelMachine) -> FeatureMap:
    """The map of a fitted machine with an approximation."""
    return machine._map


def feature_count(machine: KernelMachine, rows: int) -> int:
    """How many features there will be at most; 0 without an approximation."""
    return machine._feature_count(rows)


def expand(machine: KernelMachine, kernel: Kernel, X: Any, s: Array) -> FeatureGram:
    """Features of rows, in the place of their kernel matrix."""
    return machine._expand(kernel, X, s)


def rows_to_draw(machine: KernelMachine) -> tuple[int, int]:
    """How large a sample its features are made from, and the seed of it."""
    return machine._features.wanted(machine.n_components), seed_of(machine.random_state)


def features_of(
    machine: KernelMachine, kernel: Kernel, drawn: Drawn
) -> tuple[FeatureMap, Indices | None, Drawn]:
    """Features from a sample of rows, the numbers of the landmarks, and the landmarks."""
    seed = seed_of(machine.random_state)
    found: tuple[FeatureMap, Indices | None, Drawn]
    found = machine._features.features(kernel, drawn, machine.n_components, seed)
    return found


def adopt(
    machine: KernelMachine,
    kernel: Kernel,
    features: FeatureMap,
    landmarks: Indices | None,
    found: FeatureFit,
) -> None:
    """Make a machine one that was fitted elsewhere."""
    machine._kernel = kernel
    machine._adopt(features, landmarks, found)
    machine._finish(loss_of(machine))


def encode_labels(classes: Array, y: Any) -> Array:
    """Labels as -1 and +1, a column for two classes and one per class for more."""
    labels = np.asarray(y).ravel()
    if len(classes) == 2:
        return np.where(labels == classes[1], 1.0, -1.0)[:, None]
    return np.where(labels[:, None] == classes, 1.0, -1.0)


def without_features(machine: KernelMachine) -> KernelMachine:
    """The same with the whole kernel, and nothing said of features."""
    plain = type(machine)()
    names = ("approximation", "n_components", "keep_landmarks")
    found: KernelMachine = clone(machine)
    found.set_params(**{name: getattr(plain, name) for name in names})
    return found


def check_rows(machine: KernelMachine, X: Any, **options: Any) -> Any:
    """X as scikit-learn validates it for this machine."""
    return machine._validate_X(X, **options)


def one_row(machine: KernelMachine, x: Any) -> Any:
    """Rows that are the row x alone."""
    if issparse(x):
        return x
    return np.asarray(x, dtype=np.float64).reshape(1, -1) if machine._needs_vectors else [x]


def check_targets(machine: KernelMachine, y: Any, dtype: Any) -> Array:
    """The (n, q) matrix of targets; the machine remembers what its predictions need."""
    return machine._targets(y, dtype)


def columns_of(machine: KernelMachine, Y: Array) -> Array:
    """The targets of its columns, of those that machines of its kind share."""
    return machine._columns(Y)


def weights_of(machine: KernelMachine, Y: Array, s: Array) -> Array:
    """The weights of rows with some targets, those of their classes multiplied in."""
    return machine._weights(Y, s)


def weighs_classes(machine: KernelMachine) -> bool:
    """Whether its rows weigh as their classes say."""
    return getattr(machine, "class_weight", None) is not None


def class_weights(machine: KernelMachine, totals: Array) -> Array:
    """The weight of every class, from the weights of the rows of each; the machine keeps it."""
    found: Array = machine._weigh(np.arange(totals.size), totals)
    machine.class_weight_ = found
    return found


def problem_of(machine: KernelMachine, K: Any, Y: Array, s: Array, **options: Any) -> Problem:
    """The problem of a machine on a kernel matrix, with targets and weights that others share.

    Several levels, pairs of classes and weights of classes make its own columns and weights.
    """
    return Problem(
        K, columns_of(machine, Y), weights_of(machine, Y, s), loss_of(machine),
        machine.fit_intercept, machine.scaling, **options,
    )  # fmt: skip


def plain_columns(machine: KernelMachine) -> bool:
    """Whether its decision values have the columns of the targets: no levels, no pairs."""
    return not getattr(machine, "_in_pairs", False) and len(levels_of(machine)) <= 1


def own_columns(machine: KernelMachine) -> Callable[[Array], Array] | None:
    """From the targets that machines share to those of its columns; None where they are the same.

    It can be sent to another process.
    """
    if plain_columns(machine):
        return None
    return partial(type(machine)._columns, clone_known(machine))


def clone_known(machine: KernelMachine) -> KernelMachine:
    """The parameters of a machine, and its classes."""
    light: KernelMachine = clone(machine)
    if hasattr(machine, "classes_"):
        light.classes_ = machine.classes_
    return light


def has_one_target(machine: KernelMachine) -> bool:
    """Whether predictions are one number a row: y was one-dimensional, and there is one level."""
    return bool(machine._one_column)


def checked_data(machine: KernelMachine, X: Any, y: Any, weights: Any) -> tuple[Any, Array, Array]:
    """Rows, targets and weights; nothing of the size of K is made yet."""
    return machine._check_data(X, y, weights)


def workload_of(machine: KernelMachine, Y: Array, s: Array) -> plan.Workload:
    """What the memory of a fit depends on."""
    return machine._workload(Y, s)


def make_problem(
    machine: KernelMachine, X: Any, Y: Array, s: Array, form: str = "matrix"
) -> Problem:
    """The problem of checked data, which has K as a matrix, or as what its products need."""
    return machine._make_problem(X, Y, s, form)


def prepare(machine: KernelMachine, X: Any, y: Any, sample_weight: Any) -> Problem:
    """Everything of a fit but the solution."""
    return machine._prepare(X, y, sample_weight)


def solve(machine: KernelMachine, problem: Problem) -> None:
    """The rest of a fit: solve, and set the fitted attributes."""
    machine._solve(problem)


def answers(machine: KernelMachine, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """What decision values mean to a classifier, for :class:`onefit.heldout.HeldOut`.

    Parameters
    ----------
    machine : KernelMachine
        That knows its classes.
    params : dict, default=None
        Parameters in place of its own.
    """
    if not is_classifier(machine):
        return {}
    light: Any = clone_known(machine).set_params(**(params or {}))  # without its rows
    gives = hasattr(light._margin_loss(), "probability")
    return {
        "as_decision": light._by_class if light._in_pairs else None,
        "as_labels": light._labels,
        "as_probabilities": light._probabilities if gives else None,
    }


def decision_by_class(machine: KernelMachine, X: Any) -> Array:
    """Decision values of a classifier for rows: one column for two classes, else one per class."""
    values: Array = machine._by_class(machine._decision(X))
    return values


def with_decision(machine: KernelMachine, decision: Callable[[Any], Array]) -> KernelMachine:
    """A copy whose decision values come from a function."""
    proxy: Any = copy.copy(machine)
    proxy._decision = decision
    return proxy  # type: ignore[no-any-return]


def with_support(machine: KernelMachine) -> KernelMachine:
    """A copy that predicts the same from the training rows with a coefficient alone."""
    small: Any = copy.copy(machine)
    if is_precomputed(machine) or is_approximate(machine):
        return small  # type: ignore[no-any-return]
    coef = small.dual_coef_
    rows = np.flatnonzero(coef.reshape(coef.shape[0], -1).any(axis=1))
    rows = rows if rows.size else np.arange(1)
    small.X_fit_, small.dual_coef_ = small.X_fit_[rows], coef[rows]
    small.support_ = np.arange(rows.size)
    return small  # type: ignore[no-any-return]


def resolve_kernel(machine: KernelMachine, X: Any, s: Array) -> Kernel:
    """The kernel that its parameters mean on rows X."""
    return machine._resolve_kernel(X, s)


def kernel_of(machine: KernelMachine) -> Kernel:
    """The kernel that it was prepared with."""
    return machine._kernel
