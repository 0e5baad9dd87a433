"""Pieces of the peers' work that run in worker processes, which must be able to import them."""

from __future__ import annotations

import importlib.metadata
import sys
import sysconfig
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


def himalaya_one_gamma(X: Any, y: Any, gamma: float, lams: Any, folds: int) -> tuple[float, float]:
    """Best alpha and its mean score: himalaya's KernelRidgeCV on a precomputed kernel matrix."""
    from himalaya.kernel_ridge import KernelRidgeCV
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.model_selection import KFold

    model = KernelRidgeCV(alphas=lams, kernel="precomputed", cv=KFold(folds), warn=False)
    model.fit(rbf_kernel(X, gamma=gamma), y[:, None])
    return float(model.best_alphas_[0]), float(model.cv_scores_[0])


def thundersvm_one_gamma(
    X: Any, y: Any, gamma: float, Cs: Any, folds: list[tuple[Any, Any]], threads: int
) -> np.ndarray:
    """Accuracy of ThunderSVM's SVC for every C and fold, (Cs, folds)."""
    from thundersvm import SVC

    accuracy = np.empty((len(Cs), len(folds)))
    for i, C in enumerate(Cs):
        for k, (train, test) in enumerate(folds):
            model = SVC(kernel="rbf", gamma=gamma, C=C, n_jobs=threads).fit(X[train], y[train])
            accuracy[i, k] = np.mean(np.ravel(model.predict(X[test])) == y[test])
    return accuracy


def liquidsvm_import() -> Any:
    """liquidSVM, which asks for things that Python and setuptools no longer have."""
    variable = sysconfig.get_config_var
    sysconfig.get_config_var = lambda name: variable("EXT_SUFFIX" if name == "SO" else name)
    if "pkg_resources" not in sys.modules:
        old: Any = ModuleType("pkg_resources")
        version = importlib.metadata.version
        old.get_distribution = lambda name: SimpleNamespace(version=version(name))
        old.resource_filename = lambda name, path: str(Path(path))
        sys.modules["pkg_resources"] = old
    import liquidSVM

    return liquidSVM


def liquidsvm_search(
    X: Any, y: Any, gammas: Any, lams: Any, folds: int, threads: int
) -> np.ndarray:
    """Accuracy of liquidSVM's hinge for every gamma and lam, (gammas, lams), on folds of its own.

    Its gamma is a width, exp(-||x - y||^2 / gamma^2), and its numbers must not have exponents.
    """
    liquid = liquidsvm_import()
    labels = np.where(y == np.unique(y)[1], 1.0, -1.0)
    widths = 1.0 / np.sqrt(np.asarray(gammas))
    model = liquid.SVM(
        X, labels, SCENARIO="MC AvA_hinge", folds=folds, threads=threads, display=0,
        gammas=[f"{g:.12f}" for g in widths], lambdas=[f"{lam:.18f}" for lam in lams],
    )  # fmt: skip
    # columns: task, cell, fold, gamma, weight, lambda, training error, validation error, ...
    table = model.train()
    found = np.zeros((len(widths), len(lams)))
    rows = np.abs(np.log(table[:, 3, None] / widths)).argmin(axis=1)
    places = np.abs(np.log(table[:, 5, None] / lams)).argmin(axis=1)
    np.add.at(found, (rows, places), table[:, 7] / folds)
    model.clean()
    return 1.0 - found
