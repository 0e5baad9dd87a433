"""Models in files: reader, encoder and machine in one scikit-learn pipeline, written by skops.

A skops file names the types it holds and runs no code of its own; whatever is not in ``TRUSTED`` or
known to skops as harmless is refused. Types alone do not make a model: what they hold is compared
with what :func:`make_model` writes, and tried on a row of gaps.
"""

from __future__ import annotations

import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

import onefit
from onefit import KernelClassifier, KernelRegressor, kernels
from onefit.choose.encode import make_pipeline
from onefit.choose.familiar import Familiar
from onefit.cli.skops_io import skops_io
from onefit.decide import CalibratedKernelClassifier
from onefit.files import CsvFormat, DataError, shortened
from onefit.folds import Folds
from onefit.losses import LOSSES
from onefit.plan.memory import GIB, available_memory
from onefit.prepare import TablePreparer
from onefit.stream.approximation import APPROXIMATIONS
from onefit.stream.features import NystromMap
from onefit.stream.fourier import FourierMap
from onefit.tables import ColumnReader, Table, is_sparse

Array = NDArray[Any]

__all__ = ["TRUSTED", "Model", "Training", "load_model", "save_model"]

KERNELS = ("Gaussian", "Laplace", "Linear", "Matern12", "Matern32", "Matern52", "Polynomial")

#: types that a model of this package holds beside scikit-learn's own
TRUSTED = (
    "numpy.dtype",
    "onefit.decide.calibrate.CalibratedKernelClassifier",
    "onefit.decide.values.DecisionValues",
    "onefit.estimators.classifier.KernelClassifier",
    "onefit.estimators.regressor.KernelRegressor",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    *(f"{getattr(kernels, name).__module__}.{name}" for name in KERNELS),
    *(
        f"{one.__module__}.{one.__name__}"
        for one in (
            ColumnReader,
            FourierMap,
            NystromMap,
            TablePreparer,
            *LOSSES.values(),
            *APPROXIMATIONS.values(),
        )
    ),
)


@dataclass(frozen=True)
class Training:
    """What intervals need of the training rows, beside the rows that the machine holds.

    Attributes
    ----------
    y : (n,) array
        Targets.
    fold : (n,) array of int
        The split of the search that tested the row; -1 for none.
    forward : bool
        Whether a split trained on the rows before those it tested, and not on all others.
    groups : (n,) array of int, or None
    weights : (n,) array, or None
    """

    y: Array = field(repr=False)
    fold: Array = field(repr=False)
    forward: bool = False
    groups: Array | None = field(default=None, repr=False)
    weights: Array | None = field(default=None, repr=False)

    @classmethod
    def of(cls, folds: Folds, y: Array, groups: Any = None, weights: Any = None) -> Training:
        """As a search was made, whose splits are k-fold or go forward."""
        fold = np.full(folds.n, -1)
        for k, test in enumerate(folds.test):
            fold[test] = k
        names = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        return cls(np.asarray(y), fold, folds.is_forward, names, weights)

    @property
    def folds(self) -> Folds:
        """The splits of the search."""
        tests = [self.fold == k for k in range(int(self.fold.max()) + 1)]
        if not self.forward:
            return Folds.from_pairs(self.fold.size, [(~test, test) for test in tests])
        starts = [int(np.argmax(test)) for test in tests]
        pairs = [(np.arange(first), test) for first, test in zip(starts, tests, strict=True)]
        return Folds.from_pairs(self.fold.size, pairs)

    def check(self, n: int) -> None:
        """Refuse what does not belong to n rows."""
        y = np.asarray(self.y, dtype=np.float64)
        _require(y.shape == (n,) and bool(np.isfinite(y).all()), "its targets are not its rows'")
        _require(
            np.shape(self.fold) == (n,) and len(self.folds) > 0, "its splits are not its rows'"
        )
        for one in (self.groups, self.weights):
            _require(
                one is None or np.shape(one) == (n,), "its groups or weights are not its rows'"
            )


@dataclass(frozen=True)
class Model:
    """A fitted pipeline, and what must be known to use it.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "read" (not for LIBSVM), "columns" and "machine"; it takes rows as a file has them.
    target : str
    columns : list of str, or int
        Names of the features, or how many there are for LIBSVM.
    training : Training or None
        Of a regression that holds its training rows, for intervals.
    id : str or None
        The column that names rows, which predictions keep.
    reading : CsvFormat
        How the file was read that the model was made from.
    gaps : list of str
        Columns that have gaps among the training rows.
    reach, units : float or None; int
        How far held-out training rows were from the others at most, and how many there were; see
        :class:`onefit.choose.familiar.Familiar`.
    """

    pipeline: Pipeline
    target: str
    columns: list[str] | int
    training: Training | None = None
    id: str | None = None
    reading: CsvFormat = CsvFormat()  # noqa: RUF009
    gaps: list[str] = field(default_factory=list)
    reach: float | None = None
    units: int = 0

    @property
    def familiar(self) -> Familiar:
        """What rows like the training rows look like."""
        return Familiar(self.encoder, self.gaps, self.kernel_machine, self.reach, self.units)

    @property
    def reader(self) -> ColumnReader | None:
        """The first step, for tables."""
        found: ColumnReader | None = self.pipeline.named_steps.get("read")
        return found

    @property
    def encoder(self) -> Any:
        """The step between reader and machine."""
        return self.pipeline.named_steps["columns"]

    def read(self, X: Any, dayfirst: bool | None = None) -> Any:
        """Rows of a file as the encoder takes them; ``dayfirst`` as in ``onefit predict``."""
        return X if self.reader is None else self.reader.read(X, dayfirst)

    @property
    def machine(self) -> Any:
        """The last step: a kernel machine, or one with calibrated probabilities."""
        return self.pipeline.named_steps["machine"]

    @property
    def kernel_machine(self) -> Any:
        """The kernel machine itself."""
        calibrated = isinstance(self.machine, CalibratedKernelClassifier)
        return self.machine.estimator_ if calibrated else self.machine


def make_model(
    encoder: Any,
    machine: Any,
    table: Table,
    familiar: Familiar,
    training: Training | None,
    id: str | None = None,
    reading: CsvFormat | None = None,
) -> Model:
    """Join a fitted encoder and a fitted machine.

    A classifier keeps only the rows that have a coefficient; a regressor needs all of them for its
    intervals, and has none of them with an approximation.
    """
    if is_classifier(machine):
        machine = _lean(machine)
    rowless = is_classifier(machine) or machine.approximation is not None
    return Model(
        make_pipeline(table.reader, encoder, machine),
        table.target,
        table.X.shape[1] if is_sparse(table.X) else list(table.X.columns),
        None if rowless else training,
        id,
        reading or CsvFormat(),
        familiar.gaps,
        familiar.reach,
        familiar.units,
    )


def _lean(machine: Any) -> Any:
    """A classifier without the rows that its predictions do not need."""
    if not isinstance(machine, CalibratedKernelClassifier):
        return machine._with_support()
    small = CalibratedKernelClassifier(machine.estimator, machine.method)
    small.estimator_, small.map_ = machine.estimator_._with_support(), machine.map_
    small.classes_, small.n_features_in_ = machine.classes_, machine.n_features_in_
    return small


def save_model(model: Model, path: Path) -> None:
    """Write a model; target, columns and version travel as an attribute of the pipeline."""
    model.pipeline.onefit_ = {
        "target": model.target,
        "columns": model.columns,
        "training": None if model.training is None else vars(model.training),
        "id": model.id,
        "reading": vars(model.reading),
        "gaps": model.gaps,
        "reach": model.reach,
        "units": model.units,
        "version": onefit.__version__,
    }
    skops_io().dump(model.pipeline, path)


def load_model(path: Path) -> Model:
    """Read a model that :func:`save_model` wrote."""
    if not path.is_file():
        raise DataError(f"there is no model file {str(path)!r}; onefit select --model writes one")
    try:
        _check_unpacked(path)
        skops = skops_io()
        foreign = set(skops.get_untrusted_types(file=path)) - set(TRUSTED)
        if foreign:
            raise DataError(
                f"{path.name} holds types that no model of onefit has "
                f"({shortened(', '.join(sorted(foreign)))}); it was not loaded"
            )
        return _checked(skops.load(path, trusted=list(TRUSTED)))
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DataError(
            f"{path.name} is not a model that onefit select --model wrote "
            f"({shortened(str(error) or type(error).__name__)})"
        ) from error


def _check_unpacked(path: Path) -> None:
    """Refuse a file that unpacks to more than the memory holds."""
    with zipfile.ZipFile(path) as file:
        unpacked, room = sum(one.file_size for one in file.infolist()), available_memory()
    if unpacked > room:
        raise MemoryError(
            f"{path.name} unpacks to {unpacked / GIB:.3g} GiB, and {room / GIB:.3g} GiB are "
            "available; it was not loaded: use a machine with more memory"
        )


def _checked(pipeline: Any) -> Model:
    """The model that a loaded pipeline is, if it is one in every part."""
    _require(isinstance(pipeline, Pipeline), f"it holds a {type(pipeline).__name__}")
    steps = [name for name, _ in pipeline.steps]
    _require(steps[-2:] == ["columns", "machine"], f"its steps are {steps}")
    about = pipeline.onefit_
    training = about["training"]
    model = Model(
        pipeline,
        about["target"],
        about["columns"],
        None if training is None else Training(**training),
        about["id"],
        CsvFormat(**about["reading"]),
        about["gaps"],
        about["reach"],
        about["units"],
    )
    _check_reading(model)
    _require(isinstance(model.target, str), "its target has no name")
    _check_columns(model)
    _check_machine(model)
    _try_out(model)
    return model


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _check_reading(model: Model) -> None:
    one = model.reading
    _require(model.id is None or isinstance(model.id, str), "its id is no column")
    _require(one.delimiter is None or isinstance(one.delimiter, str), "its delimiter is invalid")
    _require(isinstance(one.encoding, str), "its encoding is invalid")
    _require(isinstance(one.header, bool), "it does not know about headers")
    _require(isinstance(model.gaps, list), "its columns with gaps are no list")
    _require(model.reach is None or float(model.reach) >= 0.0, "its reach is no distance")
    _require(isinstance(model.units, int) and model.units >= 0, "its rows have no number")


def _check_columns(model: Model) -> None:
    """A number of columns and their scales, or names that the encoder knows too."""
    encoder, columns, steps = model.encoder, model.columns, list(model.pipeline.named_steps)
    if isinstance(columns, int):
        _require(len(steps) == 2, f"its steps are {steps}")
        _require(isinstance(encoder, MaxAbsScaler), "its encoder is not for LIBSVM")
        _require(encoder.n_features_in_ == columns, "its encoder has other columns")
        return
    _require(len(steps) == 3 and type(model.reader) is ColumnReader, f"its steps are {steps}")
    _require(model.reader.columns_ == columns, "its reader has other columns")  # type: ignore[union-attr]
    _require(isinstance(encoder, ColumnTransformer), "its encoder is not for tables")
    _require(list(encoder.feature_names_in_) == columns, "its encoder has other columns")


def _check_machine(model: Model) -> None:
    """A fitted machine of this package, with a coefficient and a target for every training row."""
    machine = model.kernel_machine
    if machine is not model.machine:
        known = type(model.machine.map_) is CalibratedClassifierCV
        _require(known and is_classifier(machine), "its probabilities are none")
    _require(type(machine) in (KernelRegressor, KernelClassifier), "it has no kernel machine")
    if machine.approximation is not None:
        _check_features(machine)
        return
    n = machine.X_fit_.shape[0]
    clone(machine)._check_parameters()
    machine.spec().resolve_kernel(machine.X_fit_, np.ones(n))
    _require(isinstance(machine.kernel_, kernels.Kernel), "its kernel is invalid")
    _require(machine.dual_coef_.shape[0] == n, "its coefficients are not those of its rows")
    _require(bool(np.isfinite(machine.dual_coef_).all()), "its coefficients are not finite")
    if not is_classifier(machine):
        _require(model.training is not None, "it has no targets")
        assert model.training is not None
        model.training.check(n)


def _check_features(machine: Any) -> None:
    """A fitted machine with features in place of its kernel matrix."""
    features = machine.feature_map_
    clone(machine)._check_parameters()
    machine.spec()
    _require(type(features) in (FourierMap, NystromMap), "it has no features")
    _require(machine.coef_.shape[0] == features.size, "its weights are not those of its features")
    _require(bool(np.isfinite(machine.coef_).all()), "its weights are not finite")


def _try_out(model: Model) -> None:
    """Predict a row of gaps, so that nothing fails later for what is in the file."""
    with warnings.catch_warnings(action="ignore"):
        found = model.pipeline.predict(_row_of_gaps(model))
    _require(np.shape(found) == (1,), "it predicts no single value")


def _row_of_gaps(model: Model) -> Any:
    import pandas as pd
    from scipy.sparse import csr_matrix

    if isinstance(model.columns, int):
        return csr_matrix((1, model.columns))
    return pd.DataFrame(np.full((1, len(model.columns)), np.nan), columns=model.columns)
