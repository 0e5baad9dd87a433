"""Models in files: the pipeline of an automatic estimator, written by skops.

A skops file names the types it holds and runs no code of its own; whatever is not in ``TRUSTED`` or
known to skops as harmless is refused. What prediction needs beside the pipeline (the name of the
target, the splits and targets for intervals, the reach for novelty) is its attribute ``onefit_``.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from onefit import KernelClassifier, KernelRegressor, kernels
from onefit._format import GIB
from onefit._frames import shortened
from onefit._validation import DataError
from onefit._version import __version__
from onefit.decide import CalibratedKernelClassifier
from onefit.decide.values import DecisionValues
from onefit.estimators.accepted import unwrap
from onefit.estimators.stacked import StackedClassifier, StackedRegressor
from onefit.evidence_scales import EvidenceScales
from onefit.features.approximation import APPROXIMATIONS
from onefit.features.fourier import FourierMap
from onefit.features.maps import NystromMap
from onefit.folds import Folds
from onefit.gradient_metric import GradientMetric
from onefit.losses import LOSSES
from onefit.plan.memory import available_memory
from onefit.prepare import DateEncoder, TablePreparer, TextEncoder
from onefit.tables import WrittenNumbers
from onefit.uncertainty.novelty import TrainingRows

Array = NDArray[Any]

__all__ = ["TRUSTED", "Model", "load_model", "save_model"]

KERNEL_TYPES = ("Gaussian", "Laplace", "Linear", "Matern12", "Matern32", "Matern52", "Polynomial")
OWN_TYPES = (
    CalibratedKernelClassifier,
    DateEncoder,
    DecisionValues,
    EvidenceScales,
    FourierMap,
    GradientMetric,
    KernelClassifier,
    KernelRegressor,
    NystromMap,
    StackedClassifier,
    StackedRegressor,
    TablePreparer,
    TextEncoder,
    WrittenNumbers,
    *(getattr(kernels, name) for name in KERNEL_TYPES),
    *LOSSES.values(),
    *APPROXIMATIONS.values(),
)
#: types of this package in a model, in addition to those that skops knows
TRUSTED = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    *(f"{one.__module__}.{one.__name__}" for one in OWN_TYPES),
)


@dataclass(frozen=True)
class Model:
    """A fitted pipeline, and what prediction needs beside it.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "prepare", for rows with a learned metric "rows", and "model".
    target : str
    training : dict or None
        For the intervals of a regression: ``y``, ``tests`` (the test rows of each split),
        ``trains`` (its training rows, or None for all other rows), ``groups``, ``sample_weight``
        and, with a learned metric, the prepared rows ``X``.
    reach, units : float or None; int
        See :class:`onefit.uncertainty.novelty.TrainingRows`.
    """

    pipeline: Pipeline
    target: str
    training: dict[str, Any] | None = field(default=None, repr=False)
    reach: float | None = None
    units: int = 0

    @property
    def preparer(self) -> Any:
        """The first step."""
        return self.pipeline.named_steps["prepare"]

    @property
    def estimator(self) -> Any:
        """The last step."""
        return self.pipeline.named_steps["model"]

    @property
    def columns(self) -> list[str] | int:
        """Names of the features, or how many there are for LIBSVM."""
        reader = self.preparer.reader_
        return self.preparer.n_features_in_ if reader is None else list(reader.columns_)

    @property
    def known(self) -> TrainingRows | None:
        """The training rows that new ones are compared with."""
        if self.reach is None:
            return None
        return TrainingRows(unwrap(self.estimator), self.reach, self.units)

    @property
    def folds(self) -> Folds:
        """The splits of the search."""
        assert self.training is not None
        n = len(self.training["y"])
        tests, trains = self.training["tests"], self.training["trains"]
        if trains is None:
            return Folds.from_removed(n, tests, tests, [True] * len(tests))
        return Folds.from_pairs(n, list(zip(trains, tests, strict=True)))

    def interval(self, rows: Any, alpha: float) -> Any:
        """Intervals of a regression for rows that the preparer has read.

        See :func:`onefit.predict_interval`. A metric is learned again in every training part.
        """
        from onefit.uncertainty import predict_interval

        training, model = self.training, self.estimator
        assert training is not None
        learned = "rows" in self.pipeline.named_steps
        return predict_interval(
            self.pipeline[1:] if learned else model, training["X"] if learned else model.X_fit_,
            training["y"], self.preparer.encode(rows), alpha=alpha, cv=self.folds,
            sample_weight=training["sample_weight"], groups=training["groups"],
        )  # fmt: skip


def save_model(auto: Any, path: Path, target: str) -> None:
    """Write the pipeline of a fitted automatic estimator.

    A classifier keeps only the rows that have a coefficient; a regressor needs all of them for its
    intervals, and has none of them with an approximation.
    """
    estimator, known = auto.best_estimator_, auto.training_rows_
    classes = is_classifier(estimator)
    pipeline = Pipeline(
        [
            *auto.pipeline_.steps[:-1],
            ("model", _without_spare_rows(estimator) if classes else estimator),
        ]
    )
    rowless = classes or estimator.approximation is not None
    pipeline.onefit_ = {
        "target": target,
        "training": None if rowless else _training(auto),
        "reach": None if known is None else known.reach,
        "units": 0 if known is None else known.units,
        "version": __version__,
    }
    _skops().dump(pipeline, path)


def _training(auto: Any) -> dict[str, Any]:
    folds, data = auto.search_.folds_, auto._planned.data
    groups = data.groups
    return {
        "y": data.y,
        "tests": [np.asarray(rows) for rows in folds.test],
        "trains": None if _test_all_others(folds) else [np.asarray(rows) for rows in folds.train],
        "groups": None if groups is None else np.unique(groups, return_inverse=True)[1],
        "sample_weight": data.sample_weight,
        "X": data.X if "rows" in auto.pipeline_.named_steps else None,
    }


def _test_all_others(folds: Folds) -> bool:
    """Whether every split tests all rows that it does not train on."""
    pairs = zip(folds.removed, folds.test, strict=True)
    return all(removed.size == test.size for removed, test in pairs)


def _without_spare_rows(estimator: Any) -> Any:
    """A classifier without the rows that its predictions do not need."""
    if not isinstance(estimator, CalibratedKernelClassifier):
        return estimator._with_support()
    small = CalibratedKernelClassifier(estimator.estimator, estimator.method)
    small.estimator_, small.map_ = estimator.estimator_._with_support(), estimator.map_
    small.classes_, small.n_features_in_ = estimator.classes_, estimator.n_features_in_
    return small


def load_model(path: Path) -> Model:
    """Read a model that :func:`save_model` wrote."""
    if not path.is_file():
        raise DataError(f"there is no model file {str(path)!r}; onefit select --model writes one")
    try:
        _check_unpacked(path)
        pipeline = _skops().load(path, trusted=list(TRUSTED))
        about = dict(pipeline.onefit_)
        about.pop("version")
        return Model(pipeline, **about)
    except MemoryError:
        raise
    except Exception as error:
        raise DataError(
            f"{path.name} is not a model that onefit select --model wrote "
            f"({shortened(str(error) or type(error).__name__)}); it was not loaded"
        ) from error


def _check_unpacked(path: Path) -> None:
    """Refuse a file that unpacks to more than the memory holds."""
    with zipfile.ZipFile(path) as file:
        unpacked, room = sum(one.file_size for one in file.infolist()), available_memory()
    if unpacked > room:
        raise MemoryError(
            f"{path.name} unpacks to {unpacked / GIB:.3g} GiB, and {room / GIB:.3g} GiB are "
            "available; it was not loaded"
        )


def _skops() -> Any:
    """The module ``skops.io``, which takes seconds to import."""
    import skops.io

    return skops.io
