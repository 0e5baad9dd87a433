"""How often the 95 % interval of a search's headline holds the true score of the winner.

Simulated data sets with a known law. On each, a search over 4 bandwidths of the Gaussian kernel and
the linear kernel, all lams of the default grid, 10 folds; the winner is fitted to all rows, and its
true score measured on 10,000 new ones. Columns:

- covers: share of the data sets whose interval holds the true score; width: its median width;
- plain: the same for the interval without the remedies (Student's, from the scores of the splits;
  Clopper and Pearson's, from the rows, for error rates), which is what was printed before;
- above, below: share of the sets in which the truth is better, or worse, than the whole interval;
- optimism, bias: what the score is said to be flattered by, and by how much it really exceeds the
  truth, on average. The difference is that folds train on nine tenths of the rows.

Errors are shown as such: root mean squared error, error rate, 1 - balanced accuracy. Cases are kept
in the table from run to run, so that they can be measured one by one (--only REGEX).
"""

from __future__ import annotations

import csv
import re
import warnings

import _harness as harness
import numpy as np
from _harness import Row

#: rows of a data set, and how many sets
SIZES = {100: 300, 200: 200, 500: 80, 1000: 40}
NEW = 10_000
LAWS = {
    "friedman": "Friedman's function of 10 inputs, normal noise",
    "heavy": "Friedman's function of 5 inputs, noise t with 4 degrees of freedom",
    "noise": "regression on 5 inputs that say nothing",
    "bent": "two classes with a bent border in 4 dimensions",
    "crossed": "two classes by a product of inputs, 5 dimensions, much overlap",
    "coin": "two classes, inputs that say nothing",
    "rare": "a rare class, one row in ten; balanced accuracy",
}
SCORING = {
    "rare": "balanced_accuracy",
    "bent": "accuracy",
    "crossed": "accuracy",
    "coin": "accuracy",
}


def draw(law: str, n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    d = {"friedman": 10, "heavy": 5, "bent": 4}.get(law, 5)
    if law in ("friedman", "heavy"):
        X = random.uniform(size=(n, d))
        f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
        f += 10.0 * X[:, 3] + 5.0 * X[:, 4]
        noise = 2.5 * random.normal(size=n) if law == "friedman" else 1.5 * random.standard_t(4, n)
        return X, f + noise
    X = random.normal(size=(n, d))
    if law == "noise":
        return X, random.normal(size=n)
    margin = {
        "bent": 12.0 * (X[:, 0] + X[:, 1] ** 2 - 1.0),
        "crossed": 4.0 * (X[:, 0] * X[:, 1] + 0.5 * X[:, 2]),
        "coin": np.zeros(n),
        "rare": 4.0 * (X[:, 0] + X[:, 1] - 2.0),
    }[law]
    return X, (random.uniform(size=n) < 1.0 / (1.0 + np.exp(-margin))).astype(int)


def one(law: str, n: int, seed: int) -> Row | None:
    """Score, truth, interval and plain interval on one data set; None if a class is too rare."""
    from sklearn.metrics import get_scorer
    from sklearn.model_selection import KFold, StratifiedKFold

    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, default_grid

    random = np.random.default_rng([seed, n, *map(ord, law)])
    X, y = draw(law, n, random)
    X_new, y_new = draw(law, NEW, random)
    classes = law in SCORING
    if classes and np.bincount(y, minlength=2).min() < 3:
        return None
    scoring = SCORING.get(law, "neg_root_mean_squared_error")
    grid = default_grid(X, y if classes else None, ["rbf", "linear"])
    grid[0]["gamma"] = grid[0]["gamma"][1::3]
    kind = StratifiedKFold if classes else KFold
    search = KernelSearchCV(
        KernelClassifier() if classes else KernelRegressor(),
        grid,
        cv=kind(10, shuffle=True, random_state=seed),
        scoring=scoring,
        aggregate="pooled",
    ).fit(X, y)
    truth = get_scorer(scoring)(search, X_new, y_new)
    headline = search.headline_
    return {
        "score": headline.score,
        "truth": truth,
        "optimism": headline.optimism,
        "interval": headline.interval,
        "plain": plain(search, scoring, n),
    }


def plain(search, scoring: str, n: int) -> tuple[float, float]:
    from scipy.stats import beta, t

    if scoring == "accuracy":
        hits = search.headline_.score * n
        return float(beta.ppf(0.025, hits, n - hits + 1)), float(
            beta.ppf(0.975, hits + 1, n - hits)
        )
    table, best = search.cv_results_, search.best_index_
    splits = np.array([table[f"split{k}_test_score"][best] for k in range(search.n_splits_)])
    half = t.ppf(0.975, splits.size - 1) * splits.std(ddof=1) / np.sqrt(splits.size)
    return splits.mean() - half, splits.mean() + half


def row(law: str, n: int, sets: int) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [each for each in (one(law, n, seed) for seed in range(sets)) if each is not None]
    truth, score, optimism = (
        np.array([each[name] for each in found]) for name in ("truth", "score", "optimism")
    )
    low, high = np.array([each["interval"] for each in found]).T
    before = np.array([each["plain"] for each in found]).T
    with np.errstate(invalid="ignore"):
        old = (before[0] <= truth) & (truth <= before[1])
    return {
        "law": law,
        "n": n,
        "sets": len(found),
        "error": (1.0 if law in SCORING else 0.0) - float(np.mean(score)),
        "covers": float(np.mean((low <= truth) & (truth <= high))),
        "width": float(np.median(high - low)),
        "plain covers": float(np.mean(old)),
        "plain width": float(np.nanmedian(before[1] - before[0])),
        "above": float(np.mean(truth > high)),
        "below": float(np.mean(truth < low)),
        "optimism": float(np.mean(optimism)),
        "bias": float(np.mean(score - truth)),
    }


def known(path) -> dict[tuple[str, int], Row]:
    """The cases measured before."""
    if not path.exists():
        return {}
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {
        (each["law"], int(each["n"])): {
            name: value if name == "law" else int(value) if name in ("n", "sets") else float(value)
            for name, value in each.items()
        }
        for each in rows
    }


def main() -> None:
    flags = harness.parser(__doc__, rounds=1).parse_args()
    for law in LAWS:
        for n, sets in SIZES.items():
            if re.search(flags.only or "", f"{law}:{n}"):
                found = row(law, n, 5 if flags.quick else sets)
                print(found, flush=True)
                write(flags, found)


def write(flags, found: Row) -> None:
    """Put a case into the table, beside what other runs may have put there meanwhile."""
    name = harness.stem("coverage", flags.quick)
    rows = known(flags.out / f"{name}.csv") | {(found["law"], found["n"]): found}
    order = [rows[law, n] for law in LAWS for n in SIZES if (law, n) in rows]
    harness.write_csv(flags.out, name, order)
    about = (__doc__ or "").partition("\n\n")[2]
    laws = "\n".join(f"- {law}: {words}" for law, words in LAWS.items())
    text = f"{about}\n{laws}\n\n{harness.table(order)}"
    print(
        harness.write_report(flags.out, name, "Coverage of the intervals", [("Results", text)]).name
    )


if __name__ == "__main__":
    main()
