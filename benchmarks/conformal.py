"""Conformal prediction: coverage, width and time beside MAPIE.

Simulated data sets. Every contestant has the same kernel ridge regression: Gaussian kernel with
gamma = 1 / (number of columns), penalty 1, no intercept (`KernelRegressor` with scaling="total",
scikit-learn's `KernelRidge` inside MAPIE's `CrossConformalRegressor`), and predicts intervals of
nominal level 0.9 for 500 new rows. MAPIE's folds are those of onefit. "quantiles" has the kernel
and levels 0.05 and 0.95. Contestants take turns on each data set, with one BLAS thread. Columns:

- covers: share of new targets inside, mean over the data sets; se: its standard error;
- worst fifth: the same among the fifth of the new rows with the largest noise (largest first column
  where the noise is equal);
- width: mean width of the intervals, mean over the data sets;
- seconds: the least time of a data set; ratio: MAPIE's for the same method, in units of onefit's;
- difference: the largest difference of an end from MAPIE's for the same method.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import _harness as harness
import numpy as np
from _harness import Row
from threadpoolctl import threadpool_limits

from onefit.losses import Quantile

NEW, ALPHA, PENALTY = 500, 0.1, 1.0
LAWS = {
    "friedman": "Friedman's function of 5 inputs, normal noise",
    "growing": "the same, noise with a standard deviation of 5 times the first input",
}
SIZES = {100: 40, 300: 8}
PEERS = {"cv+": "MAPIE cv+", "jackknife+": "MAPIE jackknife+"}


def draw(law: str, n: int, random: np.random.Generator):
    X = random.uniform(size=(n, 5))
    f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    f += 10.0 * X[:, 3] + 5.0 * X[:, 4] - 14.0
    size = 2.5 if law == "friedman" else 5.0 * X[:, 0]
    return X, f + size * random.normal(size=n)


def ours(method: str, width: str = "constant", **params: Any) -> Callable[..., Any]:
    def run(X, y, X_new, folds):
        from onefit import KernelRegressor, predict_interval

        settings = {"gamma": 0.2, "lam": PENALTY, "scaling": "total", "fit_intercept": False}
        model = KernelRegressor(**{**settings, **params})
        cv = folds if method == "cv+" else None
        found = predict_interval(model, X, y, X_new, alpha=ALPHA, method=method, cv=cv, width=width)
        return found.lower, found.upper

    return run


def mapie(method: str) -> Callable[..., Any]:
    def run(X, y, X_new, folds):
        from mapie.regression import CrossConformalRegressor
        from sklearn.kernel_ridge import KernelRidge
        from sklearn.model_selection import LeaveOneOut

        model = KernelRidge(alpha=PENALTY, kernel="rbf", gamma=0.2)
        cv = folds if method == "cv+" else LeaveOneOut()
        peer = CrossConformalRegressor(model, confidence_level=1 - ALPHA, method="plus", cv=cv)
        ends = peer.fit_conformalize(X, y).predict_interval(X_new)[1]
        return ends[:, 0, 0], ends[:, 1, 0]

    return run


CONTESTANTS = {
    "cv+": ours("cv+"),
    "MAPIE cv+": mapie("cv+"),
    "jackknife+": ours("jackknife+"),
    "MAPIE jackknife+": mapie("jackknife+"),
    "full": ours("full"),
    "cv+ local": ours("cv+", "local"),
    "jackknife+ local": ours("jackknife+", "local"),
    "full local": ours("full", "local"),
    "quantiles": ours("cv+", loss=Quantile([0.05, 0.95]), fit_intercept=True, lam=0.3),
}


def rows_of(law: str, n: int, sets: int) -> list[Row]:
    from sklearn.model_selection import KFold

    folds, found = KFold(10, shuffle=True, random_state=0), {name: [] for name in CONTESTANTS}
    ends: dict[str, list[Any]] = {name: [] for name in CONTESTANTS}
    for seed in range(sets):
        random = np.random.default_rng([seed, n, *map(ord, law)])
        (X, y), (X_new, new) = draw(law, n, random), draw(law, NEW, random)
        noisy = X_new[:, 0] >= np.quantile(X_new[:, 0], 0.8)
        for name, run in CONTESTANTS.items():
            start = perf_counter()
            low, high = run(X, y, X_new, folds)
            seconds = perf_counter() - start
            inside = (low <= new) & (new <= high)
            found[name].append((inside.mean(), inside[noisy].mean(), (high - low).mean(), seconds))
            ends[name].append((low, high))
    rows = []
    for name, numbers in found.items():
        values, peer = np.array(numbers), PEERS.get(name)
        rows.append(
            {
                "law": law,
                "n": n,
                "sets": sets,
                "contestant": name,
                "covers": float(values[:, 0].mean()),
                "se": float(values[:, 0].std(ddof=1) / np.sqrt(sets)),
                "worst fifth": float(values[:, 1].mean()),
                "width": float(values[:, 2].mean()),
                "seconds": float(values[:, 3].min()),
                "ratio": float(np.array(found[peer])[:, 3].min() / values[:, 3].min())
                if peer
                else "",
                "difference": float(np.abs(np.array(ends[name]) - np.array(ends[peer])).max())
                if peer
                else "",
            }
        )
    return rows


def main() -> None:
    flags = harness.parser(__doc__, rounds=1).parse_args()
    rows: list[Row] = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for law in LAWS:
            for n, sets in SIZES.items():
                rows += rows_of(law, n, 3 if flags.quick else sets)
                print(*rows[-len(CONTESTANTS) :], sep="\n", flush=True)
    name = harness.stem("conformal", flags.quick)
    harness.write_csv(flags.out, name, rows)
    about = (__doc__ or "").partition("\n\n")[2]
    laws = "\n".join(f"- {law}: {words}" for law, words in LAWS.items())
    text = f"{about}\n{laws}\n\n{harness.table(rows)}"
    harness.write_report(
        flags.out, name, "Prediction intervals compared with MAPIE", [("Results", text)]
    )


if __name__ == "__main__":
    main()
