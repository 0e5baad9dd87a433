"""Models in files: encoder and machine in one scikit-learn pipeline, written by skops.

A skops file names the types it holds and runs no code of its own; whatever is not in ``TRUSTED`` or
known to skops as harmless is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

import onefit
from onefit import kernels
from onefit.tables import DataError, Table, is_sparse

Array = NDArray[Any]

__all__ = ["TRUSTED", "Model", "load_model", "save_model"]

KERNELS = ("Gaussian", "Laplace", "Linear", "Matern12", "Matern32", "Matern52", "Polynomial")

#: types that a model of this package holds beside scikit-learn's own
TRUSTED = (
    "numpy.dtype",
    "onefit.estimators.classifier.KernelClassifier",
    "onefit.estimators.regressor.KernelRegressor",
    "scipy.sparse._csr.csr_matrix",
    *(f"{getattr(kernels, name).__module__}.{name}" for name in KERNELS),
)


@dataclass(frozen=True)
class Model:
    """A fitted pipeline, and what must be known to use it.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "columns" and "machine".
    target : str
    columns : list of str, or int
        Names of the features, or how many there are for LIBSVM.
    y : array or None
        Training targets of a regression, which intervals are made from.
    """

    pipeline: Pipeline
    target: str
    columns: list[str] | int
    y: Array | None = None

    @property
    def encoder(self) -> Any:
        """The first step."""
        return self.pipeline.named_steps["columns"]

    @property
    def machine(self) -> Any:
        """The kernel machine."""
        return self.pipeline.named_steps["machine"]


def make_model(encoder: Any, machine: Any, table: Table, y: Array) -> Model:
    """Join a fitted encoder and a fitted machine."""
    columns = table.X.shape[1] if is_sparse(table.X) else list(table.X.columns)
    pipeline = Pipeline([("columns", encoder), ("machine", machine)])
    return Model(pipeline, table.target, columns, None if is_classifier(machine) else y)


def save_model(model: Model, path: Path) -> None:
    """Write a model; target, columns and version travel as an attribute of the pipeline."""
    import skops.io

    model.pipeline.onefit_ = {
        "target": model.target,
        "columns": model.columns,
        "y": model.y,
        "version": onefit.__version__,
    }
    skops.io.dump(model.pipeline, path)


def load_model(path: Path) -> Model:
    """Read a model that :func:`save_model` wrote."""
    import skops.io

    if not path.is_file():
        raise DataError(f"there is no model file {str(path)!r}; onefit select --model writes one")
    try:
        foreign = set(skops.io.get_untrusted_types(file=path)) - set(TRUSTED)
        if foreign:
            raise DataError(
                f"{path.name} holds types that no model of onefit has ({', '.join(sorted(foreign))}"
                "); it was not loaded"
            )
        pipeline = skops.io.load(path, trusted=list(TRUSTED))
        about = pipeline.onefit_
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"{path.name} is not a model that onefit select --model wrote ({error})"
        ) from error
    return Model(pipeline, about["target"], about["columns"], about["y"])
