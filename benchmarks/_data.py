"""The data of the benchmarks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray


def friedman(n: int, seed: int = 0, outliers: float = 0.0) -> tuple[Array, Array]:
    """Friedman's first function of ten uniform features, five of them useless, of unit variance.

    ``outliers`` is the share of rows whose target is shifted far away.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 10))
    signal = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y = signal + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)
    far = rng.uniform(size=n) < outliers
    y[far] += rng.choice([-1.0, 1.0], far.sum()) * rng.uniform(10, 20, far.sum())
    return X, (y - y.mean()) / y.std()


def friedman_classes(n: int, seed: int = 0, flipped: float = 0.05) -> tuple[Array, Array]:
    """The same rows in two classes, above and below the median, some labels wrong."""
    X, y = friedman(n, seed)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    wrong = np.random.default_rng(seed + 1).uniform(size=n) < flipped
    return X, np.where(wrong, -labels, labels)


def forest(n: int, seed: int = 0, flipped: float = 0.05) -> tuple[Array, Array]:
    """Two classes, similar to covtype: ten measurements, an area of 4, a soil of 40.

    The boundary is a wave in the first measurement, whose phase depends on the soil, with products
    and squares of others; some labels are wrong.
    """
    rng = np.random.default_rng(seed)
    measured = 0.7 * rng.normal(size=(n, 10))
    measured[:, 1] = np.sin(measured[:, 1] * np.pi)  # an aspect
    measured[:, 5:] = measured[:, :5] + 0.3 * measured[:, 5:]
    area, soil = rng.integers(4, size=n), np.minimum(rng.geometric(0.08, size=n) - 1, 39)
    phase, level = np.pi / 2 * rng.integers(4, size=40), rng.normal(size=4)
    wave = 1.5 * np.sin(2.0 * measured[:, 0] + phase[soil]) + measured[:, 2] * measured[:, 3]
    score = wave + 0.5 * level[area] + 0.3 * np.square(measured[:, 4]) - 0.3
    y = np.where(score > 0, 1.0, -1.0)
    wrong = rng.uniform(size=n) < flipped
    return np.hstack([measured, np.eye(4)[area], np.eye(40)[soil]]), np.where(wrong, -y, y)


def data_folder(flag: Path | None) -> Path:
    """The folder named by --data or by ONEFIT_DATA_DIR."""
    folder = flag or os.environ.get("ONEFIT_DATA_DIR")
    if folder is None:
        raise SystemExit("no data folder: pass --data DIR or set ONEFIT_DATA_DIR")
    return Path(folder)


def load(folder: Path, name: str) -> tuple[Array, Array]:
    """``<name>.csv.gz`` (header, features, label last), features min-max scaled to [-1, 1]."""
    rows: Any = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
    X, y = rows[:, :-1], rows[:, -1]
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return 2 * (X - low) / np.where(width > 0, width, 1) - 1, y
