"""Widths that a loss takes from the targets ("mad") are those of each training part alone."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, RepeatedKFold
from sklearn.preprocessing import StandardScaler

from onefit import KernelRegressor, KernelSearchCV

LOSSES = {
    "huber": {"loss": "huber"},
    "tube": {"loss": "epsilon_insensitive", "epsilon": 0.3},
    "quantile": {"loss": "quantile", "level": 0.8},
}


def diabetes(rows=120):
    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:rows]
    return StandardScaler().fit_transform(X[rows]), y[rows] / y.std()


def spoiled():
    """Rows whose outliers are all in the last fifth, which an unshuffled fold holds out."""
    X, y = diabetes()
    y[96:] += 8.0 * np.random.default_rng(1).normal(size=24)
    return X, y


def both(machine, X, y, cv, method, sample_weight=None, grid=None):
    """The scores of all splits by our search and by scikit-learn's, and our search."""
    grid = grid or {"lam": [1e-3, 1e-1], "gamma": [0.05]}
    params = {} if sample_weight is None else {"sample_weight": sample_weight}
    scoring = "neg_mean_absolute_error"
    ours = KernelSearchCV(machine, grid, cv=cv, scoring=scoring, method=method, refit=False)
    theirs = GridSearchCV(machine, grid, cv=cv, scoring=scoring, refit=False)
    ours.fit(X, y, **params)
    theirs.fit(X, y, **params)
    splits = range(ours.n_splits_)
    scores = [
        np.array([one.cv_results_[f"split{k}_test_score"] for k in splits]) for one in (ours, theirs)
    ]
    return *scores, ours


def assert_exact_means_equal(machine, X, y, cv, method, sample_weight=None, grid=None):
    ours, theirs, search = both(machine, X, y, cv, method, sample_weight, grid)
    proven = np.array([held.exact for held in search.cv_results_["heldout"]]).T
    np.testing.assert_allclose(ours[proven], theirs[proven], atol=2e-6)
    if method != "limit":
        assert proven.all()
    return ours, theirs


if __name__ == "__main__":
    for data in (diabetes, spoiled):
        for name, loss in LOSSES.items():
            for method in ("limit", "exact", "refit", "iterative"):
                a, b, s = both(KernelRegressor(**loss), *data(), KFold(5), method)
                print(data.__name__, name, method, np.abs(a - b).max(), np.abs(b).max())
