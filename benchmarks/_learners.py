"""The contestants of the accuracy benchmark: functions ``(X, y, classes, uneven, seed) -> model``.

What is tuned is tuned by five-fold cross-validation on the training part, by R^2, accuracy or, for
uneven classes, balanced accuracy; xRFM, whose ``fit`` takes a validation part, by a fifth of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray

#: a Gaussian process factors an n x n matrix in every step of its optimiser
MAX_ROWS_GP = 600


def onefit(X: Array, y: Array, classes: bool, uneven: bool, seed: int) -> Any:
    """``onefit.select`` with ``stack=True``: the average of the candidates, and the searches."""
    from onefit import select

    task = "classification" if classes else "regression"
    return select(X, y, task=task, random_state=seed, stack=True)


def of_onefit(model: Any, X: Array) -> dict[str, Array]:
    """Predictions of the average, of the best candidate, and of the best one without what is
    learned in each training part: that of the first search over a kernel model.
    """
    Z, (best, *others) = model.pipeline_[:1].transform(X), model.searches_
    plain = next(one for one in (best, *others) if not hasattr(one.estimator, "steps"))
    found = {"onefit": best.predict(Z), "onefit plain": plain.predict(Z)}
    return {"onefit stack": np.ravel(model.predict(X))} | {
        name: np.ravel(values) for name, values in found.items()
    }


def forest(X: Array, y: Array, classes: bool, uneven: bool, seed: int) -> Any:
    """A random forest of 500 trees."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if classes else RandomForestRegressor
    return kind(500, random_state=seed).fit(X, y)


def catboost(X: Array, y: Array, classes: bool, uneven: bool, seed: int) -> Any:
    """CatBoost with its defaults, which choose the learning rate by the data."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if classes else CatBoostRegressor
    model = kind(random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False)
    return model.fit(X, y)


def lightgbm(X: Array, y: Array, classes: bool, uneven: bool, seed: int) -> Any:
    """LightGBM with 300 trees, the best of 2 learning rates x 2 sizes of trees."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if classes else LGBMRegressor
    model = kind(n_estimators=300, min_child_samples=10, random_state=seed, n_jobs=1, verbosity=-1)
    grid = {"learning_rate": [0.03, 0.1], "num_leaves": [7, 31]}
    return _search(model, grid, classes, uneven, seed).fit(X, y)


def svm(X: Array, y: Array, classes: bool, uneven: bool, seed: int) -> Any:
    """SVC or SVR with a Gaussian kernel, the best of 5 values of C x 5 of gamma."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    grid: dict[str, Any] = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-2, 1, 5) / X.shape[1]}
    if classes:
        return _search(SVC(), grid, classes, uneven, seed).fit(X, y)
    model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    grid = {f"regressor__{key}": values for key, values in grid.items()}
    return _search(model, grid, classes, uneven, seed).fit(X, y)


def gp(X: Array, y: Array, classes: bool, uneven: bool, seed: int) -> Any:
    """A Gaussian process by marginal likelihood; a length scale per column for regression."""
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    length = np.sqrt(X.shape[1])
    if classes:
        kernel = ConstantKernel(1.0) * RBF(length)
        return GaussianProcessClassifier(kernel, random_state=seed).fit(X, y)
    kernel = ConstantKernel(1.0) * RBF(np.full(X.shape[1], length)) + WhiteKernel(0.1)
    return GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed).fit(X, y)


class _Rfm:
    """The best of several recursive feature machines on a validation part."""

    def __init__(self, classes: bool, seed: int) -> None:
        self.classes, self.seed = classes, seed

    def fit(self, X: Array, y: Array) -> _Rfm:
        import torch
        from sklearn.model_selection import train_test_split
        from xrfm import xRFM

        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.labels = np.unique(y) if self.classes else None
        self.mean, self.spread = (0.0, 1.0) if self.classes else (y.mean(), y.std())
        codes = np.searchsorted(self.labels, y) if self.classes else (y - self.mean) / self.spread
        parts = train_test_split(
            X.astype(np.float32),
            codes.astype(np.int64 if self.classes else np.float32),
            test_size=0.2,
            random_state=self.seed,
            stratify=codes if self.classes else None,
        )
        X1, X2, y1, y2 = (torch.tensor(one, device=self.device) for one in parts)
        if not self.classes:
            y1, y2 = y1[:, None], y2[:, None]
        best = np.inf
        for kernel in ("l2", "l1"):
            for bandwidth in (3.0, 10.0, 30.0):
                for reg in (1e-3, 1e-1):
                    params = {
                        "model": {"kernel": kernel, "bandwidth": bandwidth, "exponent": 1.0,
                                  "diag": False, "bandwidth_mode": "constant"},
                        "fit": {"reg": reg, "iters": 4, "verbose": False, "early_stop_rfm": True},
                    }  # fmt: skip
                    model = xRFM(
                        params,
                        device=torch.device(self.device),
                        tuning_metric="accuracy" if self.classes else "mse",
                        random_state=self.seed,
                        verbose=False,
                    )
                    model.fit(X1, y1, X2, y2)
                    off = self._loss(model, X2, parts[3])
                    if off < best:
                        best, self.model = off, model
        return self

    def _loss(self, model: Any, X: Any, codes: Array) -> float:
        predicted = np.asarray(model.predict(X)).ravel()
        return float(np.mean(predicted != codes if self.classes else (predicted - codes) ** 2))

    def predict(self, X: Array) -> Array:
        import torch

        found = np.asarray(
            self.model.predict(torch.tensor(X.astype(np.float32), device=self.device))
        ).ravel()
        if self.labels is not None:
            return np.asarray(self.labels[found.astype(int)])
        return np.asarray(self.mean + self.spread * found)


def xrfm(X: Array, y: Array, classes: bool, uneven: bool, seed: int) -> Any:
    """xRFM, the best of 2 kernels x 3 bandwidths x 2 ridges."""
    return _Rfm(classes, seed).fit(X, y)


def _search(model: Any, grid: Any, classes: bool, uneven: bool, seed: int) -> Any:
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

    scoring = ("balanced_accuracy" if uneven else "accuracy") if classes else "r2"
    kind = StratifiedKFold if classes else KFold
    folds = kind(5, shuffle=True, random_state=seed)
    return GridSearchCV(model, grid, cv=folds, scoring=scoring)


CONTESTANTS: dict[str, Callable[..., Any]] = {
    "onefit stack": onefit,
    "catboost": catboost,
    "lightgbm": lightgbm,
    "xrfm": xrfm,
    "forest": forest,
    "svm": svm,
    "gp": gp,
}
