"""Learning curves: time against scikit-learn's ``learning_curve``.

A regression on n rows of 8 columns: Gaussian kernel, ten training sizes, one test part of a fifth
of the rows, five random orders of the training part. scikit-learn's function is called once for
each order (``shuffle=True``), with onefit's ``KernelRegressor`` and with scikit-learn's
``KernelRidge`` (without an intercept).

How far can it go? "factors" times five Cholesky factors of the training part in single precision
and nothing else. With scaling="total" one factor per order serves all sizes, so that no method of
this kind exceeds refits / factors. With scaling="mean" every size has a ridge, and so a factor, of
its own: m^3 / 3 operations each, 3.025 times those of the largest size for ten equal steps.
The largest size is the same model in all orders: 3.025 - 4/5 = 2.225 factors per order are left,
and factors alone could not exceed the column "bound of factors, mean". So large sizes are solved
by conjugate gradients for all orders side by side (:mod:`onefit.prefixes.parts`). "windows" is
``TimeSeriesSplit(20)``: ``heldout_windows`` against fits of ``KernelRegressor``, and "one step
ahead" the residuals of all rows (``expanding_window``) against n fits, extrapolated from twelve of
equally spaced sizes. Contestants take turns, with one BLAS thread; the least processor time of
several rounds counts, so that ratios hold on a loaded machine. Columns:

- total, mean: seconds with scaling="total" (one factor per order) and with scaling="mean" (one per
  size);
- factors: seconds of five Cholesky factors of the training part in single precision, nothing else;
- refits: seconds of scikit-learn's function with KernelRegressor; KernelRidge: with KernelRidge;
- refits / total, refits / mean, KernelRidge / total: how many times as long refits take;
- refits / factors: the largest ratio possible with one factor per order;
- bound of factors, mean: the largest ratio possible with one factor per size, refits / (2.225
  factors);
- difference: the largest difference of a score, or of a held-out value, from that of the refits.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import _harness as harness
import numpy as np
from _harness import Row
from threadpoolctl import threadpool_limits

ORDERS, GAMMA, PENALTY = 5, 0.1, 0.5
#: operations of a factor per size and order, in those of the largest one, which all orders share
FACTORS_PER_ORDER = sum((k / 10) ** 3 for k in range(1, 10)) + 1 / ORDERS


def draw(n: int):
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 8))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * random.normal(size=n)


def best_of(rounds: int, actions: dict[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    best, found = dict.fromkeys(actions, np.inf), {}
    for _ in range(rounds):
        for name, action in actions.items():
            start = process_time()
            found[name] = action()
            best[name] = min(best[name], process_time() - start)
    return best, found


def models(n: int) -> dict[str, Any]:
    from sklearn.kernel_ridge import KernelRidge

    from onefit import KernelRegressor

    return {
        "total": KernelRegressor(gamma=GAMMA, lam=PENALTY, scaling="total"),
        "mean": KernelRegressor(gamma=GAMMA, lam=PENALTY / n),
        "KernelRidge": KernelRidge(kernel="rbf", gamma=GAMMA, alpha=PENALTY),
    }


def curve(n: int, rounds: int) -> Row:
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.model_selection import learning_curve as refitted

    from onefit import linalg
    from onefit.learning import learning_curve

    (X, y), known, sizes = draw(n), models(n), np.linspace(0.1, 1.0, 10)
    split = [(np.arange(4 * n // 5), np.arange(4 * n // 5, n))]
    options = {"cv": split, "train_sizes": sizes}

    def ours(name: str) -> Any:
        return learning_curve(
            known[name], X, y, n_permutations=ORDERS, random_state=np.random.RandomState(0),
            **options,
        ).test_scores  # fmt: skip

    def refits(name: str) -> Any:
        random = np.random.RandomState(0)
        return np.hstack(
            [
                refitted(known[name], X, y, shuffle=True, random_state=random, **options)[2]
                for _ in range(ORDERS)
            ]
        )

    M = np.asfortranarray(rbf_kernel(X[: 4 * n // 5], gamma=GAMMA), dtype=np.float32)
    M[np.diag_indices(len(M))] += PENALTY

    def factors() -> None:
        for _ in range(ORDERS):
            linalg.cholesky(M.copy(order="F"), overwrite=True)

    actions = {
        "total": lambda: ours("total"),
        "mean": lambda: ours("mean"),
        "factors": factors,
        "refits": lambda: refits("total"),
        "KernelRidge": lambda: refits("KernelRidge"),
    }
    best, found = best_of(rounds, actions)
    return {
        "task": "curve",
        "n": n,
        **best,
        "refits / total": best["refits"] / best["total"],
        "refits / mean": best["refits"] / best["mean"],
        "KernelRidge / total": best["KernelRidge"] / best["total"],
        "refits / factors": best["refits"] / best["factors"],
        "bound of factors, mean": best["refits"] / best["factors"] / FACTORS_PER_ORDER,
        "difference": float(np.abs(found["total"] - found["refits"]).max()),
    }


def windows(n: int, rounds: int) -> Row:
    from sklearn.base import clone
    from sklearn.model_selection import TimeSeriesSplit

    from onefit.learning import heldout_windows

    (X, y), known, cv = draw(n), models(n), TimeSeriesSplit(20)

    def refits() -> Any:
        model = known["total"]
        return np.concatenate([clone(model).fit(X[a], y[a]).predict(X[b]) for a, b in cv.split(X)])

    actions = {
        "total": lambda: heldout_windows(known["total"], X, y, cv=cv).values[:, 0],
        "mean": lambda: heldout_windows(known["mean"], X, y, cv=cv).values[:, 0],
        "refits": refits,
    }
    best, found = best_of(rounds, actions)
    return {
        "task": "windows",
        "n": n,
        **best,
        "refits / total": best["refits"] / best["total"],
        "refits / mean": best["refits"] / best["mean"],
        "difference": float(np.abs(found["total"] - found["refits"]).max()),
    }


def ahead(n: int, rounds: int) -> Row:
    from sklearn.base import clone

    from onefit.learning import expanding_window

    (X, y), model = draw(n), models(n)["total"]
    sizes = np.linspace(2, n - 1, 12).astype(int)

    def refits() -> Any:
        return np.array(
            [y[m] - clone(model).fit(X[:m], y[:m]).predict(X[m : m + 1])[0] for m in sizes]
        )

    actions = {"total": lambda: expanding_window(model, X, y).residuals, "refits": refits}
    best, found = best_of(rounds, actions)
    best["refits"] *= (n - 1) / sizes.size
    return {
        "task": "one step ahead",
        "n": n,
        **best,
        "refits / total": best["refits"] / best["total"],
        "difference": float(np.abs(found["total"][sizes - 1] - found["refits"]).max()),
    }


def main() -> None:
    flags = harness.parser(__doc__, rounds=3).parse_args()
    rows: list[Row] = []
    with threadpool_limits(1):
        for n in (200,) if flags.quick else (500, 1000, 2000):
            for one in (curve, windows, ahead):
                rows.append(one(n, flags.rounds))
                print(rows[-1], flush=True)
    name = harness.stem("learning", flags.quick)
    harness.write_csv(flags.out, name, rows)
    about = (__doc__ or "").partition("\n\n")[2]
    parts = [("Results", f"{about}\n{harness.table(rows)}")]
    harness.write_report(flags.out, name, "Time of learning curves and expanding windows", parts)


if __name__ == "__main__":
    main()
