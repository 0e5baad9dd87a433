"""Pieces of the peers' work that run in worker processes, which must be able to import them."""

from __future__ import annotations

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
