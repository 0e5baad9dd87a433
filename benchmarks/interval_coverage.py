"""How often prediction intervals hold new targets: independent, grouped and time-ordered rows.

Simulated data sets with a known law. On each, a search over 4 bandwidths of the Gaussian kernel and
all lams of the default grid, with 5 splits that fit the law; its winner's intervals
(`predict_interval(search, ...)`) are tried on 500 new rows, of time-ordered laws on the rows that
follow, as many as a split tests. Columns:

- units: rows, groups, or rows with a forward residual that new rows are compared with;
- covers: share of new targets inside, mean over the data sets; se: its standard error;
- width: median width of the intervals;
- by rows, its width: the same for `predict_interval(search.best_estimator_, ...)`, 10 shuffled
  folds of the rows, which know nothing of groups and time.

Cases are kept in the table from run to run, so that they can be measured one by one (--only REGEX).
"""

from __future__ import annotations

import csv
import re
import warnings

import _harness as harness
import numpy as np
from _harness import Row

NEW, SPLITS = 500, 5
LEVELS = (0.8, 0.9)
LAWS = {
    "friedman": "independent rows: Friedman's function of 5 inputs, normal noise",
    "heavy": "independent rows: the same, noise t with 3 degrees of freedom",
    "level": "groups of 5 rows with a level of their own, at a place of their own in 3 dimensions",
    "sizes": "the same, groups of 1 to 20 rows",
    "slope": "groups of 5 rows with a slope of their own",
    "pure": "groups of 10 rows that differ by their level alone, which X gives away",
    "ar": "in time: autoregression of order 2, predicted from the last two values",
    "season": "in time: a season plus autocorrelated errors (0.7), predicted from the season",
    "growing": "in time: the season, errors twice as large at the end as at the beginning",
    "walk": "in time: a random walk, predicted from the time",
}
GROUPED = {"level": 5, "sizes": 0, "slope": 5, "pure": 10}
TIMED = ("ar", "season", "growing", "walk")
#: laws for which nothing is promised, see the head of onefit.uncertainty.intervals
UNPROMISED = ("growing", "walk")
SIZES = {
    **{law: {60: 100, 200: 60} for law in ("friedman", "heavy")},
    **{law: {12: 100, 30: 100, 60: 40} for law in GROUPED},
    **{law: {120: 100, 360: 40} for law in TIMED},
}


def independent(law: str, n: int, random: np.random.Generator):
    X = random.uniform(size=(n, 5))
    f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    f += 10.0 * X[:, 3] + 5.0 * X[:, 4]
    noise = 2.5 * random.normal(size=n) if law == "friedman" else 1.5 * random.standard_t(3, n)
    return X, f + noise


def grouped(law: str, count: int, random: np.random.Generator):
    sizes = np.full(count, GROUPED[law]) if GROUPED[law] else random.integers(1, 21, count)
    group = np.repeat(np.arange(count), sizes)
    n, near = group.size, 0.02 if law == "pure" else 0.3
    centre = random.normal(size=(count, 3))
    X = centre[group] + near * random.normal(size=(n, 3))
    level, slope = random.normal(size=count)[group], random.normal(size=count)[group]
    own = slope * random.normal(size=n) if law == "slope" else level
    if law == "slope":
        X[:, 2] = own / np.where(slope == 0.0, 1.0, slope)
    f = 0.0 if law == "pure" else np.sin(X[:, 0]) + 0.5 * X[:, 1]
    return X, f + own + 0.2 * random.normal(size=n), group


def timed(law: str, n: int, random: np.random.Generator):
    t, e = np.arange(n), random.normal(size=n + 50)
    if law == "walk":
        return t[:, None] / n, np.cumsum(e[:n])
    y = np.zeros(n + 50)
    for i in range(2, n + 50):
        y[i] = 0.6 * y[i - 1] + 0.3 * y[i - 2] + e[i] if law == "ar" else 0.7 * y[i - 1] + e[i]
    if law == "ar":
        return np.column_stack([y[49:-1], y[48:-2]]), y[50:]
    angle = 2.0 * np.pi * t / 30.0
    size = 1.0 + t / n if law == "growing" else 1.0
    return np.column_stack([np.cos(angle), np.sin(angle)]), 2.0 * np.sin(angle) + size * y[50:]


def draw(law: str, n: int, random: np.random.Generator):
    """Training rows, targets and groups, new rows and targets, and the splits."""
    from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit

    if law in TIMED:
        ahead = n // (SPLITS + 1)
        X, y = timed(law, n + ahead, random)
        return X[:n], y[:n], None, X[n:], y[n:], TimeSeriesSplit(SPLITS)
    if law in GROUPED:
        X, y, groups = grouped(law, n, random)
        X_new, new, group = grouped(law, NEW, random)
        _, first = np.unique(group, return_index=True)  # one row of each new group
        cv = GroupKFold(SPLITS, shuffle=True, random_state=0)
        return X, y, groups, X_new[first], new[first], cv
    X, y = independent(law, n, random)
    X_new, new = independent(law, NEW, random)
    return X, y, None, X_new, new, KFold(SPLITS, shuffle=True, random_state=0)


def one(law: str, n: int, seed: int) -> dict[float, tuple[float, ...]]:
    """Units, coverage and width at every level, on the splits of the search and by rows."""
    from onefit import KernelRegressor, KernelSearchCV, default_grid, predict_interval

    random = np.random.default_rng([seed, n, *map(ord, law)])
    X, y, groups, X_new, new, cv = draw(law, n, random)
    grid = default_grid(X, None, ["rbf"])
    grid[0]["gamma"] = grid[0]["gamma"][1::3]
    search = KernelSearchCV(KernelRegressor(), grid, cv=cv, aggregate="pooled")
    search.fit(X, y, **({} if groups is None else {"groups": groups}))
    found = {}
    for level in LEVELS:
        alpha = round(1.0 - level, 6)
        if groups is not None and alpha * (n + 1) < 1.0:
            continue
        mine = predict_interval(search, X, y, X_new, alpha=alpha)
        plain = predict_interval(search.best_estimator_, X, y, X_new, alpha=alpha)
        numbers = [mine.units]
        for each in (mine, plain):
            numbers.append(float(np.mean((each.lower <= new) & (new <= each.upper))))
            numbers.append(float(np.median(each.upper - each.lower)))
        found[level] = tuple(numbers)
    return found


def rows_of(law: str, n: int, sets: int) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [one(law, n, seed) for seed in range(sets)]
    rows = []
    for level in LEVELS:
        numbers = np.array([each[level] for each in found if level in each])
        if numbers.size == 0:
            continue
        units, covers, width, by_rows, width_by_rows = numbers.mean(axis=0)
        rows.append(
            {
                "law": law,
                "n": n,
                "level": level,
                "sets": len(numbers),
                "units": float(units),
                "covers": float(covers),
                "se": float(numbers[:, 1].std(ddof=1) / np.sqrt(len(numbers))),
                "width": float(width),
                "by rows": float(by_rows),
                "its width": float(width_by_rows),
            }
        )
    return rows


def known(path) -> dict[tuple[str, int, float], Row]:
    """The cases measured before."""
    if not path.exists():
        return {}
    with path.open() as file:
        rows = list(csv.DictReader(file))
    whole = ("n", "sets")
    kept = [
        {k: v if k == "law" else int(v) if k in whole else float(v) for k, v in each.items()}
        for each in rows
    ]
    return {(each["law"], each["n"], each["level"]): each for each in kept}


def main() -> None:
    flags = harness.parser(__doc__, rounds=1).parse_args()
    for law in LAWS:
        for n, sets in SIZES[law].items():
            if re.search(flags.only or "", f"{law}:{n}"):
                found = rows_of(law, n, 5 if flags.quick else sets)
                print(*found, sep="\n", flush=True)
                write(flags, found)


def write(flags, found: list[Row]) -> None:
    """Put cases into the table, beside what other runs may have put there meanwhile."""
    name = harness.stem("interval_coverage", flags.quick)
    rows = known(flags.out / f"{name}.csv")
    rows |= {(each["law"], each["n"], each["level"]): each for each in found}
    keys = [(law, n, level) for law in LAWS for n in SIZES[law] for level in LEVELS]
    order = [rows[key] for key in keys if key in rows]
    harness.write_csv(flags.out, name, order)
    about = (__doc__ or "").partition("\n\n")[2]
    laws = "\n".join(f"- {law}: {words}" for law, words in LAWS.items())
    text = f"{about}\n{laws}\n\n{harness.table(order)}\n{summary(order)}"
    title = "Coverage of prediction intervals"
    harness.write_report(flags.out, name, title, [("Results", text)])


def summary(rows: list[Row]) -> str:
    """The worst shortfall, where coverage is promised and where it is not."""
    lines = []
    for promised in (True, False):
        some = [each for each in rows if (each["law"] not in UNPROMISED) == promised]
        if some:
            worst = min(some, key=lambda each: each["covers"] - each["level"])
            what = "that meet the assumptions" if promised else "that do not"
            lines.append(
                f"Laws {what} ({', '.join(dict.fromkeys(each['law'] for each in some))}): the "
                f"lowest coverage is {worst['covers']:.3f} at nominal {worst['level']:g} "
                f"({worst['law']}, n = {worst['n']}; standard error {worst['se']:.3f}), by rows "
                f"{min(some, key=lambda e: e['by rows'] - e['level'])['by rows']:.3f}."
            )
    return "\n\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
