"""A full model selection on a bundled data set: ``python -m onefit.demo``."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import RepeatedKFold
from sklearn.preprocessing import StandardScaler

from onefit import KernelRegressor, KernelSearchCV

__all__ = ["main"]

KERNELS = ("rbf", "laplacian", "matern52")


def search_for() -> KernelSearchCV:
    """Three kernels, seven bandwidths, fifteen lams; 10-fold cross-validation, three times."""
    grid = [
        {"kernel": list(KERNELS), "gamma": np.logspace(-4, -0.5, 7), "lam": np.logspace(-5, 1, 15)},
        {"kernel": ["linear"], "lam": np.logspace(-5, 1, 15)},
    ]
    return KernelSearchCV(
        KernelRegressor(),
        grid,
        cv=RepeatedKFold(n_splits=10, n_repeats=3, random_state=0),
        scoring="neg_root_mean_squared_error",
    )


def best_of(search: KernelSearchCV, shown: int = 8) -> str:
    """The best candidates as a table."""
    table = search.cv_results_
    order = np.argsort(table["rank_test_score"], kind="stable")[:shown]
    lines = [f"{'rank':>4}  {'kernel':<10}{'gamma':>10}{'lam':>10}{'error':>9}{'+-':>7}  method"]
    for i in order:
        params = table["params"][i]
        gamma = f"{params['gamma']:.2g}" if "gamma" in params else "-"
        lines.append(
            f"{table['rank_test_score'][i]:>4}  {params['kernel']:<10}{gamma:>10}"
            f"{params['lam']:>10.2g}{-table['mean_test_score'][i]:>9.2f}"
            f"{table['std_test_score'][i]:>7.2f}  {table['method'][i]}"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the selection and print what it found."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X = StandardScaler().fit_transform(X)
    search = search_for()
    print(f"diabetes: {X.shape[0]} patients, {X.shape[1]} measurements\n")
    search.explain(X, y)
    start = perf_counter()
    search.fit(X, y)
    seconds = perf_counter() - start
    fits = len(search.cv_results_["params"]) * search.n_splits_
    print(f"\n{fits} cross-validation fits replaced, {seconds:.1f} s in all")
    print("root mean squared error of the held-out patients, best candidates first:\n")
    print(best_of(search))


if __name__ == "__main__":
    main()
