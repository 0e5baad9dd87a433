"""How wide the default losses are: widths in units of the spread of the targets.

``threshold="mad"`` and ``delta="mad"`` are multiples of the spread of the training targets (their
median absolute deviation, scaled to be the standard deviation of a normal law). This script sets
the two multiples (THRESHOLD_IN_SPREADS and DELTA_IN_SPREADS of onefit.losses). Simulated
regressions with a known function, from much noise to little (R2 of the function itself); lam and
gamma are chosen by five folds.

- Huber: root mean squared distance to the true function on new rows, relative to the best multiple
  of the same set; the median and the largest over sets. "residuals" has a threshold of 1.345 times
  the spread of the held-out residuals of a search over the squared loss.
- quantile: pinball loss of the levels 0.1, 0.5 and 0.9 on new rows, relative to the best multiple;
  the largest distance of the share of new rows below a quantile from its level; Newton steps of the
  last fit.
"""

from __future__ import annotations

import warnings

import _harness as harness
import numpy as np
from _harness import Row
from sklearn.exceptions import ConvergenceWarning

from onefit.losses import Huber, Quantile

FUNCTIONS = ("friedman", "sine")
#: R2 of the true function, and the laws of the noise
SHARES, LAWS = (0.5, 0.9, 0.99), ("normal", "t3", "outliers 10 %")
LEVELS = (0.1, 0.5, 0.9)
THRESHOLDS, WIDTHS = (0.1, 0.25, 0.5, 1.0), (0.01, 0.03, 0.1)
ROWS, TEST = 150, 500
GRID = {"gamma": (0.1, 0.4, 1.6), "lam": 10.0 ** np.arange(-5.0, 0.0)}


def noise(law: str, n: int, random: np.random.Generator) -> np.ndarray:
    """Errors of the law, the bulk of standard deviation about 1."""
    if law == "t3":
        return random.standard_t(3, size=n)
    if law == "exponential":
        return random.exponential(size=n)
    errors = random.normal(size=n)
    if law.startswith("outliers"):
        rows = random.permutation(n)[: n // 10]
        errors[rows] += random.choice([-1.0, 1.0], rows.size) * random.uniform(10, 20, rows.size)
    return errors


def sample(function: str, share: float, law: str, seed: int) -> tuple[np.ndarray, ...]:
    """Rows, targets, new rows, their targets and the function there."""
    random = np.random.default_rng([seed, *map(ord, law + function)])
    n = ROWS + TEST
    if function == "sine":
        X = random.uniform(-3.0, 3.0, size=(n, 1))
        f = np.sin(2.0 * X[:, 0])
    else:
        X = random.uniform(size=(n, 5))
        f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
        f += 10.0 * X[:, 3] + 5.0 * X[:, 4]
        X = 3.0 * X
    f = f / f.std() * np.sqrt(share / (1.0 - share))
    y = f + noise(law, n, random)
    return X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:], f[ROWS:]


def spread(y: np.ndarray) -> float:
    """The median absolute deviation, as a standard deviation."""
    return 1.4826 * float(np.median(np.abs(y - np.median(y))))


def search(X, y, loss):
    from onefit import KernelRegressor, KernelSearchCV

    scoring = None if isinstance(loss, Quantile) else "neg_mean_absolute_error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KernelSearchCV(KernelRegressor(loss), GRID, cv=5, scoring=scoring).fit(X, y)


def huber(function: str, share: float, law: str, seed: int) -> dict[str, float]:
    """Distance to the function, by threshold."""
    X, y, X_test, _, f = sample(function, share, law, seed)
    squared = search(X, y, "squared")
    thresholds = {f"{c:g}": c * spread(y) for c in THRESHOLDS}
    thresholds["residuals"] = 1.345 * spread(y - squared.heldout_.predictions)
    fits = {name: search(X, y, Huber(t)) for name, t in thresholds.items()}
    fits["squared"] = squared
    return {name: float(np.sqrt(np.mean((s.predict(X_test) - f) ** 2))) for name, s in fits.items()}


def quantile(
    function: str, share: float, law: str, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Pinball loss, largest miss of a level and steps, by width."""
    from onefit.quantiles import pinball_loss

    X, y, X_test, y_test, _ = sample(function, share, law, seed)
    found = {}
    for c in WIDTHS:
        one = search(X, y, Quantile(LEVELS, delta=c * spread(y)))
        u = one.predict(X_test)
        below = np.abs((y_test[:, None] <= u).mean(axis=0) - LEVELS).max()
        steps = one.best_estimator_.n_iter_
        found[f"{c:g}"] = pinball_loss(y_test, u, LEVELS), float(below), float(steps)
    return found


def huber_row(function: str, share: float, law: str, sets: int, ratios: Row) -> Row:
    """One law; ratios to the best multiple are added to those of all."""
    found = [huber(function, share, law, seed) for seed in range(sets)]
    best = [min(one[f"{c:g}"] for c in THRESHOLDS) for one in found]
    row: Row = {"function": function, "R2": share, "noise": law, "sets": sets}
    for name in found[0]:
        ratio = [one[name] / least for one, least in zip(found, best, strict=True)]
        ratios.setdefault(name, []).extend(ratio)
        row[name] = f"{np.median(ratio):.3f} ({max(ratio):.2f})"
    return row


def quantile_row(function: str, share: float, law: str, sets: int) -> Row:
    found = [quantile(function, share, law, seed) for seed in range(sets)]
    best = np.array([min(v[0] for v in one.values()) for one in found])
    row: Row = {"function": function, "R2": share, "noise": law, "sets": sets}
    for name in found[0]:
        loss, miss, steps = np.array([one[name] for one in found]).T
        row[name] = f"{np.median(loss / best):.3f}, {np.median(miss):.3f}, {np.median(steps):.0f}"
    return row


def arguments():
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--sets", type=int, default=6, help="simulated data sets a row")
    given = flags.parse_args()
    if given.quick:
        given.sets = 1
    return given


def main() -> None:
    flags = arguments()
    tables: dict[str, list[Row]] = {"Huber": [], "quantile": []}
    ratios: Row = {}
    for function in FUNCTIONS:
        for share in SHARES:
            for law in LAWS:
                tables["Huber"].append(huber_row(function, share, law, flags.sets, ratios))
                print(tables["Huber"][-1], flush=True)
            for law in ("normal", "exponential"):
                tables["quantile"].append(quantile_row(function, share, law, flags.sets))
                print(tables["quantile"][-1], flush=True)
    means = {key: f"{np.exp(np.mean(np.log(all_of))):.3f}" for key, all_of in ratios.items()}
    every = {"function": "all", "R2": "", "noise": "geometric mean", "sets": flags.sets}
    tables["Huber"].append(every | means)
    name = harness.stem("scale_rule", flags.quick)
    about = (__doc__ or "").partition("\n\n")[2]
    titles = {
        "Huber": "Huber: distance to the function by threshold, median (largest) over sets",
        "quantile": "Quantiles: pinball loss, miss of a level, Newton steps, by width",
    }
    parts = [(titles[one], harness.table(rows)) for one, rows in tables.items()]
    parts[0] = (parts[0][0], f"{about}\n{parts[0][1]}")
    title = "Default widths of losses, in spreads of the targets"
    print(harness.write_report(flags.out, name, title, parts).read_text())


if __name__ == "__main__":
    main()
