"""Where the papers' data sets come from: a folder, or OpenML when there is none.

A folder (the argument, or the setting ONEFIT_DATA_DIR) holds either `<name>.csv.gz` files with a
header x1, ..., xd, y, or files in LIBSVM's format called `<name>`, `<name>.txt` or `<name>.libsvm`.
A set that it lacks is asked of OpenML. Every set is checked for the shape that the papers' copy
has, and carries the name of its source.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._validation import check_choice

Array = NDArray[Any]

__all__ = ["SCALINGS", "SHAPES", "DataSet", "Loader", "scale"]

#: name -> rows and features of the copy used here, and whether the targets are labels
SHAPES: dict[str, tuple[int, int, bool]] = {
    "ionosphere": (351, 34, True),
    "breast-cancer": (683, 10, True),
    "diabetes": (768, 8, True),
    "fourclass": (862, 2, True),
    "australian": (690, 14, True),
    "heart": (270, 13, True),
    "german.numer": (1000, 24, True),
    "liver-disorders": (345, 6, True),
    "sonar": (208, 60, True),
    "a2a": (2265, 123, True),
    "bodyfat": (252, 14, False),
    "housing": (506, 13, False),
    "mpg": (392, 7, False),
    "pyrim": (74, 27, False),
    "triazines": (186, 60, False),
    "eunite2001": (336, 16, False),
    "space_ga": (3107, 6, False),
    "cpusmall": (8192, 12, False),
    "mg": (1385, 6, False),
    "abalone": (4177, 8, False),
    "servo": (167, 4, False),
    "ozone": (203, 12, False),
}

#: names on OpenML of the sets whose first version there has the shape above
OPENML: dict[str, str] = {
    "ionosphere": "ionosphere",
    "diabetes": "diabetes",
    "heart": "heart-statlog",
    "sonar": "sonar",
    "bodyfat": "bodyfat",
    "housing": "boston",
    "pyrim": "pyrim",
    "triazines": "triazines",
    "space_ga": "space_ga",
    "cpusmall": "cpu_small",
}


@dataclass(frozen=True)
class DataSet:
    """Rows, targets (labels are -1 and +1), and where they were read."""

    name: str
    X: Array = field(repr=False)
    y: Array = field(repr=False)
    source: str

    @property
    def labelled(self) -> bool:
        """Whether this is a classification."""
        return SHAPES[self.name][2]


@dataclass
class Loader:
    """Data sets by name.

    Parameters
    ----------
    folder : path, default=None
        None means the setting ONEFIT_DATA_DIR, and OpenML where that is not set.
    """

    folder: Path | str | None = None

    def __post_init__(self) -> None:
        named = self.folder or os.environ.get("ONEFIT_DATA_DIR")
        self.folder = Path(named) if named else None
        if self.folder is not None and not self.folder.is_dir():
            raise FileNotFoundError(
                f"the data directory {str(self.folder)!r} is not a folder; give another --data or "
                "ONEFIT_DATA_DIR"
            )

    def load(self, name: str) -> DataSet:
        """The set of that name, its shape checked."""
        check_choice("data set", name, SHAPES)
        X, y, source = self._read(name)
        rows, features, labelled = SHAPES[name]
        if X.shape != (rows, features):
            raise ValueError(
                f"data set {name!r} from {source} has {X.shape[0]} rows of {X.shape[1]} features, "
                f"the papers' copy {rows} of {features}; put the right file into the data directory"
            )
        y = _signs(name, y) if labelled else y.astype(np.float64)
        if not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise ValueError(f"data set {name!r} from {source} has missing values")
        return DataSet(name, X, y, source)

    def _read(self, name: str) -> tuple[Array, Array, str]:
        if self.folder is not None:
            for ending, read in READERS.items():
                path = Path(self.folder) / f"{name}{ending}"
                if path.is_file():
                    return *read(path, SHAPES[name][1]), f"data directory, {path.name}"
        if name in OPENML:
            return *_openml(OPENML[name]), "OpenML"
        where = f"not in {str(self.folder)!r}" if self.folder else "no data directory is set"
        raise FileNotFoundError(
            f"data set {name!r}: {where}, and OpenML has no copy of this form; put {name}.csv.gz "
            "or "
            f"LIBSVM's file {name} into a folder and give it as --data or ONEFIT_DATA_DIR"
        )


def _table(path: Path, features: int) -> tuple[Array, Array]:
    values = np.loadtxt(path, delimiter=",", skiprows=1)
    return values[:, :-1], values[:, -1]


def _libsvm(path: Path, features: int) -> tuple[Array, Array]:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path), n_features=features)
    return X.toarray(), y


READERS: dict[str, Callable[[Path, int], tuple[Array, Array]]] = {
    ".csv.gz": _table,
    ".csv": _table,
    "": _libsvm,
    ".txt": _libsvm,
    ".libsvm": _libsvm,
}


def _openml(name: str) -> tuple[Array, Array]:
    from sklearn.datasets import fetch_openml

    found = fetch_openml(name, version=1, as_frame=False, parser="liac-arff")
    return np.asarray(found.data, dtype=np.float64), np.asarray(found.target)


def _signs(name: str, y: Array) -> Array:
    """Two labels, whatever they are called, as -1 and +1 in their order."""
    labels, codes = np.unique(y, return_inverse=True)
    if labels.size != 2:
        raise ValueError(f"data set {name!r} has {labels.size} labels, two are wanted")
    return np.asarray(2.0 * codes - 1.0)


def _as_it_is(X: Array) -> Array:
    return X


def _minmax(X: Array) -> Array:
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(2.0 * (X - low) / np.where(high > low, high - low, 1.0) - 1.0)


def _standard(X: Array) -> Array:
    spread = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


#: what may be done to the features; constant columns stay constant
SCALINGS: dict[str, Callable[[Array], Array]] = {
    "raw": _as_it_is,
    "minmax": _minmax,
    "standard": _standard,
}


def scale(X: Array, how: str) -> Array:
    """Features as they are, mapped to [-1, 1] (LIBSVM's `_scale` files), or standardised."""
    check_choice("scaling", how, SCALINGS)
    return SCALINGS[how](X)
