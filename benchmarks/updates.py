"""Adding and removing rows: time against retraining.

A model of n rows (8 columns, Gaussian kernel, gamma = 0.1, lam = 1e-3) gets m further rows and then
loses its m first ones. Each is compared with a fit to the same rows by the same estimator; they
take turns, with one BLAS thread, and the least processor time of several rounds counts, so that
ratios hold on a loaded machine. "first" is the first update of a fitted model, which computes the
kernel matrix and, for the squared loss, its factor; "add" and "remove" are updates after the second
one, which makes an inverse of the factor.
Columns:

- fit: seconds of retraining; first, add, remove: seconds of the updates;
- fit / first, fit / add, fit / remove: how many times as long retraining takes;
- difference: the largest difference of a prediction from that of retraining, in units of the
  targets' standard deviation.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import _harness as harness
import numpy as np
from _harness import Row
from threadpoolctl import threadpool_limits

from onefit.losses import Huber, Quantile, SmoothedHinge

SIZES, CHANGES = (500, 1000, 2000), (1, 10)
KERNEL = {"gamma": 0.1, "lam": 1e-3}


def models() -> dict[str, Any]:
    from onefit import KernelClassifier, KernelRegressor

    return {
        "squared": KernelRegressor(**KERNEL),
        "squared, scaling=total": KernelRegressor(gamma=0.1, lam=1.0, scaling="total"),
        "huber": KernelRegressor(Huber(0.5), **KERNEL),
        "quantile": KernelRegressor(Quantile(0.9, delta=0.1), **KERNEL),
        "smoothed_hinge": KernelClassifier(SmoothedHinge(0.1), **KERNEL),
        "log": KernelClassifier("log", **KERNEL),
    }


def draw(n: int, classes: bool):
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 8))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * random.normal(size=n)
    return X, np.where(y > 0.0, 1, 0) if classes else y


def timed(action) -> tuple[float, Any]:
    start = process_time()
    result = action()
    return process_time() - start, result


def case(name: str, model: Any, n: int, m: int, rounds: int) -> Row:
    from sklearn.base import clone, is_classifier

    classes = is_classifier(model)
    X, y = draw(n + m * (rounds + 1), classes)
    decide = "decision_function" if classes else "predict"
    times: dict[str, list[float]] = {"fit": [], "first": [], "add": [], "remove": []}
    updated, worst = clone(model).fit(X[:n], y[:n]).add_rows(X[n : n + m], y[n : n + m]), 0.0
    updated.remove_rows(np.arange(m))
    for k in range(1, rounds + 1):
        new, rows = slice(n + k * m, n + (k + 1) * m), slice((k + 1) * m, n + (k + 1) * m)
        fresh = clone(model).fit(X[:n], y[:n])
        for what, action in (
            ("add", lambda new=new: updated.add_rows(X[new], y[new])),
            ("remove", lambda: updated.remove_rows(np.arange(m))),
            ("fit", lambda rows=rows: clone(model).fit(X[rows], y[rows])),
            ("first", lambda fresh=fresh, new=new: fresh.add_rows(X[new], y[new])),
        ):
            seconds, found = timed(action)
            times[what].append(seconds)
            if what == "fit":
                pair = [getattr(one, decide)(X[:300]) for one in (found, updated)]
                worst = max(worst, float(np.abs(pair[0] - pair[1]).max() / np.std(y)))
    best = {what: min(each) for what, each in times.items()}
    ratios = {f"fit / {what}": best["fit"] / best[what] for what in ("first", "add", "remove")}
    return {"loss": name, "n": n, "m": m, **best, **ratios, "difference": worst}


def main() -> None:
    flags = harness.parser(__doc__, rounds=3).parse_args()
    rows: list[Row] = []
    with threadpool_limits(1):
        for n in (200,) if flags.quick else SIZES:
            for name, model in models().items():
                for m in CHANGES:
                    rows.append(case(name, model, n, m, flags.rounds))
                    print(rows[-1], flush=True)
    name = harness.stem("updates", flags.quick)
    harness.write_csv(flags.out, name, rows)
    about = (__doc__ or "").partition("\n\n")[2]
    parts = [("Results", f"{about}\n{harness.table(rows)}")]
    harness.write_report(flags.out, name, "Time of adding and removing rows", parts)


if __name__ == "__main__":
    main()
