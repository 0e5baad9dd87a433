"""Steps in front of a kernel estimator, fitted to the training part of a split.

A Pipeline that ends in a kernel estimator, or a TransformedTargetRegressor around one, is fitted by
scikit-learn itself, with a placeholder for the kernel estimator that keeps what it is given: rows,
targets and sample weights, after every step, transformation of the target and routing of metadata.
So the kernel estimator gets in a split exactly what it would get in GridSearchCV, whatever the
steps are.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from onefit._indexing import n_rows, select_params, split_rows, transformed
from onefit.estimators._base import KernelEstimator

Array = NDArray[Any]

__all__ = [
    "Preprocessed",
    "StepError",
    "is_wrapped",
    "kernel_estimator",
    "kernel_path",
    "kernel_weight",
    "metadata_of_fit",
    "preprocess",
    "preprocess_all",
    "weight_name",
    "with_stand_in",
]


class StepError(ValueError):
    """A step failed on a split."""


def kernel_path(estimator: Any) -> tuple[str, ...] | None:
    """Names of the parameters that lead to the kernel estimator inside; None if there is none."""
    if isinstance(estimator, KernelEstimator):
        return ()
    inner = _inner(estimator)
    if inner is None:
        return None
    rest = kernel_path(inner[1])
    return None if rest is None else (inner[0], *rest)


def _inner(estimator: Any) -> tuple[str, Any] | None:
    """The estimator that another one wraps, with its name."""
    if isinstance(estimator, Pipeline) and estimator.steps:
        name, last = estimator.steps[-1]
        return str(name), last
    if isinstance(estimator, TransformedTargetRegressor):
        fitted = getattr(estimator, "regressor_", None)
        return "regressor", estimator.regressor if fitted is None else fitted
    return None


def is_wrapped(estimator: Any) -> bool:
    """Whether a kernel estimator has steps in front of it, or its target transformed."""
    return bool(kernel_path(estimator))


def kernel_estimator(estimator: Any) -> Any:
    """The innermost estimator: the kernel estimator, or its placeholder."""
    inner = _inner(estimator)
    return estimator if inner is None else kernel_estimator(inner[1])


def weight_name(estimator: Any) -> str:
    """The name under which a fit passes sample weights on to the kernel estimator."""
    path = kernel_path(estimator) or ()
    # a TransformedTargetRegressor passes on what it is given; a Pipeline needs the name of a step
    return "__".join([name for name in path if name != "regressor"] + ["sample_weight"])


def metadata_of_fit(estimator: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Metadata for the fit of an estimator; plain sample weights go to the kernel estimator."""
    if get_config()["enable_metadata_routing"]:
        return params
    weight = params.get("sample_weight")
    found = {name: value for name, value in params.items() if name != "sample_weight"}
    if weight is not None:
        found[weight_name(estimator)] = weight
    return {name: value for name, value in found.items() if value is not None}


def kernel_weight(estimator: Any, params: dict[str, Any]) -> Any:
    """The weights that the kernel estimator is fitted with, of the metadata of a fit; or None."""
    if not get_config()["enable_metadata_routing"]:
        return params.get(weight_name(estimator))
    name = _requested_weight(kernel_estimator(estimator))
    return params.get("sample_weight" if name is True else name or "")


def _requested_weight(leaf: Any) -> Any:
    """What a kernel estimator requests by metadata routing: a name, True, False or None."""
    return leaf.get_metadata_routing().fit.requests.get("sample_weight")


class StandIn(BaseEstimator):
    """Keeps what the kernel estimator would be fitted to.

    Parameters
    ----------
    kind : {"classifier", "regressor"}, default="regressor"
    """

    def __init__(self, kind: str = "regressor") -> None:
        self.kind = kind

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = self.kind
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StandIn:
        """Keep everything."""
        self.rows_, self.targets_, self.weights_ = X, y, sample_weight
        return self

    def predict(self, X: Any) -> Any:
        """The values that were put in, for the inverse transformation of the target."""
        return self.values_


def with_stand_in(estimator: Any) -> Any:
    """A clone with a placeholder for the kernel estimator."""
    path = kernel_path(estimator)
    assert path
    found = clone(estimator)
    leaf = kernel_estimator(found)
    stand_in = StandIn("classifier" if is_classifier(leaf) else "regressor")
    if get_config()["enable_metadata_routing"]:
        stand_in.set_fit_request(sample_weight=_requested_weight(leaf))
    return found.set_params(**{"__".join(path): stand_in})


class Preprocessed(NamedTuple):
    """What the kernel estimator sees of one split.

    Attributes
    ----------
    X, y, sample_weight : the training part
    X_test : the test rows
    wrappers : list of TransformedTargetRegressor
        Fitted, the outermost first.
    """

    X: Any
    y: Any
    sample_weight: Any
    X_test: Any
    wrappers: list[Any]

    def back(self, values: Array) -> Array:
        """Predictions (m, q) of the kernel estimator as those of the whole, (m, q)."""
        for wrapper in reversed(self.wrappers):
            known: Any = copy(wrapper)
            known.regressor_ = StandIn()
            flat = np.ndim(self.y) == 1 and values.shape[1] == 1
            known.regressor_.values_ = values[:, 0] if flat else values
            found = np.asarray(known.predict(self.X_test), dtype=np.float64)
            values = found.reshape(values.shape[0], -1)
        return values


def preprocess(
    estimator: Any, X: Any, y: Any, params: dict[str, Any], train: Array, test: Array, split: int
) -> Preprocessed:
    """Fit the steps to the training part of a split, and transform its test rows.

    Parameters
    ----------
    estimator : made by :func:`with_stand_in`
    X, y : all rows
    params : metadata of the fit, cut to the training rows here
    train, test : index arrays
    split : int
        For messages.

    Raises
    ------
    StepError
        Where a step fails, changes the number of rows, or returns values that are not finite; it
        names step and split.
    """
    model = clone(estimator)
    X_train, y_train = split_rows(model, X, y, train)
    X_test, _ = split_rows(model, X, y, test, train)
    try:
        model.fit(X_train, y_train, **select_params(X, params, train))
        node, rows, wrappers = model, X_test, []
        while not isinstance(node, StandIn):
            if isinstance(node, Pipeline):
                rows = transformed(node, rows)
            else:
                wrappers.append(node)
            node = _inner(node)[1]  # type: ignore[index]
    except Exception as error:
        name = _culprit(estimator, X_train, y_train, X_test)
        raise StepError(
            f"{name or 'the preprocessing'} failed on split {split}: "
            f"{type(error).__name__}: {error}"
        ) from error
    found = Preprocessed(node.rows_, node.targets_, node.weights_, rows, wrappers)
    parts = ("training", train.size, found.X), ("test", test.size, found.X_test)
    for part, wanted, rows in parts:
        problem = _problem_of(rows, wanted, f"the {part} part of split {split}")
        if problem:
            name = _culprit(estimator, X_train, y_train, X_test)
            raise StepError(f"{name or 'X, or a step,'} {problem}")
    return found


def preprocess_all(estimator: Any, X: Any, params: dict[str, Any]) -> Any:
    """Fit the steps to all rows, without the targets; returns their rows.

    Parameters
    ----------
    estimator : made by :func:`with_stand_in`, without a TransformedTargetRegressor
    X : all rows
    params : metadata of the fit

    Raises
    ------
    StepError
        Names the step that fails without the targets, or whose result cannot be used.
    """
    model = clone(estimator)
    try:
        model.fit(X, None, **params)
    except Exception as error:
        raise StepError(
            f"{_culprit(estimator, X, None, X) or 'the preprocessing'} cannot be fitted to all "
            f"rows without the target ({type(error).__name__}: {error}). A step that uses the "
            "target must be fitted in every training part: use method='auto'"
        ) from error
    node = kernel_estimator(model)
    problem = _problem_of(node.rows_, n_rows(X), "all rows")
    if problem:
        name = _culprit(estimator, X, None, X)
        raise StepError(f"{name or 'X, or a step,'} {problem}")
    return node.rows_


def _problem_of(rows: Any, wanted: int, where: str) -> str:
    """The reason why transformed rows cannot be used; empty if they can."""
    if n_rows(rows) != wanted:
        return (
            f"changes the number of rows: {where} has {wanted} rows, and {n_rows(rows)} after it; "
            "a step may change columns only"
        )
    if not _finite(rows):
        return (
            f"has NaN or infinite values in {where}; add a SimpleImputer before it, or look for "
            "columns that are constant there"
        )
    return ""


def _finite(rows: Any) -> bool:
    values: Any = rows
    if issparse(rows):
        values = values.data
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    values = np.asarray(values)
    return values.dtype.kind not in "fc" or bool(np.isfinite(values).all())


def _culprit(estimator: Any, X: Any, y: Any, X_test: Any) -> str:
    """The step that fails, found by fitting one after the other; empty if none does alone."""
    node = clone(estimator)
    while not isinstance(node, StandIn):
        if isinstance(node, Pipeline):
            for name, step in node.steps[:-1]:
                if step is None or step == "passthrough":
                    continue
                called = f"step {name!r} ({type(step).__name__})"
                before = n_rows(X), n_rows(X_test)
                finite = _finite(X) and _finite(X_test)
                try:
                    X, X_test = step.fit_transform(X, y), step.transform(X_test)
                except Exception:
                    return called
                if (n_rows(X), n_rows(X_test)) != before:
                    return called
                if finite and not (_finite(X) and _finite(X_test)):
                    return called
        node = _inner(node)[1]  # type: ignore[index]
    return ""
