"""How often the 95 % interval of a search's headline holds the true score of the winner.

Simulated data sets with a known law. On each, a search over 4 bandwidths of the Gaussian kernel and
the linear kernel, all lams of the default grid, 10 folds; the winner is fitted to all rows, and its
true score measured on 10,000 new ones. Columns:

- covers: share of the data sets whose interval holds the true score, and its standard error; width:
  its median width;
- plain: the same for the textbook interval (Student's, from the scores of the splits; Clopper and
  Pearson's, from the rows, for error rates);
- first order: the same for the interval with the optimism, Nadeau and Bengio's factor and the scale
  of the metric, but without what it leaves out: the bias of a ratio, the scatter of the optimism,
  and the kurtosis of the losses in the degrees of freedom;
- above, below: share of the sets in which the truth is better, or worse, than the whole interval;
- optimism, bias: the estimated optimism of the score, and by how much it really exceeds the
  truth, on average. The difference is that folds train on nine tenths of the rows.

Errors are shown as such: root mean squared error, 1 - R^2, error rate, 1 - balanced accuracy. Cases
are kept in the table from run to run, so that they can be measured one by one (--only REGEX).
"""

from __future__ import annotations

import csv
import re
import warnings

import _harness as harness
import numpy as np
from _harness import Row

#: rows of a data set, and how many sets
SIZES = {50: 400, 80: 400, 120: 400, 200: 200, 500: 80, 1000: 40}
NEW = 10_000
LAWS = {
    "friedman": "Friedman's function of 10 inputs, normal noise",
    "heavy": "Friedman's function of 5 inputs, noise t with 4 degrees of freedom",
    "heavier": "the same, with 3 degrees of freedom",
    "skewed": "lognormal targets, 2 of 5 inputs explain half the variance of the logarithm",
    "weak": "a fifth of the variance explained by 1 of 5 inputs",
    "noise": "regression on 5 inputs that say nothing",
    "bent": "two classes with a bent border in 4 dimensions",
    "crossed": "two classes by a product of inputs, 5 dimensions, much overlap",
    "coin": "two classes, inputs that say nothing",
    "rare": "a rare class, one row in ten; balanced accuracy",
}
SCORING = {
    "rare": ("balanced_accuracy",),
    "bent": ("accuracy",),
    "crossed": ("accuracy",),
    "coin": ("accuracy",),
}
AMOUNTS = ("neg_root_mean_squared_error", "r2")


def draw(law: str, n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    d = {"friedman": 10, "bent": 4}.get(law, 5)
    if law in ("friedman", "heavy", "heavier"):
        X = random.uniform(size=(n, d))
        f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
        f += 10.0 * X[:, 3] + 5.0 * X[:, 4]
        if law == "friedman":
            return X, f + 2.5 * random.normal(size=n)
        return X, f + 1.5 * random.standard_t(4 if law == "heavy" else 3, n)
    X = random.normal(size=(n, d))
    if law in ("noise", "weak", "skewed"):
        noise = random.normal(size=n)
        return X, {
            "noise": noise,
            "weak": 0.5 * X[:, 0] + noise,
            "skewed": np.exp(0.5 * (X[:, 0] + X[:, 1]) + noise / np.sqrt(2.0)),
        }[law]
    margin = {
        "bent": 12.0 * (X[:, 0] + X[:, 1] ** 2 - 1.0),
        "crossed": 4.0 * (X[:, 0] * X[:, 1] + 0.5 * X[:, 2]),
        "coin": np.zeros(n),
        "rare": 4.0 * (X[:, 0] + X[:, 1] - 2.0),
    }[law]
    return X, (random.uniform(size=n) < 1.0 / (1.0 + np.exp(-margin))).astype(int)


def one(law: str, scoring: str, n: int, seed: int) -> Row | None:
    """Score, truth and the three intervals on one data set; None if a class is too rare."""
    from sklearn.metrics import get_scorer
    from sklearn.model_selection import KFold, StratifiedKFold

    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, default_grid

    random = np.random.default_rng([seed, n, *map(ord, law)])
    X, y = draw(law, n, random)
    X_new, y_new = draw(law, NEW, random)
    classes = law in SCORING
    if classes and np.bincount(y, minlength=2).min() < 3:
        return None
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
        "first order": first_order(headline, scoring, n),
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


def first_order(headline, scoring: str, n: int) -> tuple[float, float]:
    """Without the terms of higher order: the standard error carried to the scale by its slope."""
    from scipy.stats import t

    quantile, middle = float(t.ppf(0.975, n - 1)), headline.score - headline.optimism
    wide = headline.standard_error * np.sqrt(1.0 + 1.0 / 0.9)
    if scoring in AMOUNTS:
        top = 1.0 if scoring == "r2" else 0.0
        ratio = np.exp(quantile * wide / (top - headline.score))
        return top - (top - middle) * ratio, top - (top - middle) / ratio
    spread, share = headline.score * (1.0 - headline.score), min(max(middle, 0.0), 1.0)
    z = quantile**2 / (spread / wide**2 if spread > 0.0 < wide else n / (1.0 + 1.0 / 0.9))
    half = np.sqrt(z * share * (1.0 - share) + z**2 / 4.0)
    return (share + z / 2.0 - half) / (1.0 + z), (share + z / 2.0 + half) / (1.0 + z)


def row(law: str, scoring: str, n: int, sets: int) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried = (one(law, scoring, n, seed) for seed in range(sets))
        found = [each for each in tried if each is not None]
    truth, score, optimism = (
        np.array([each[name] for each in found]) for name in ("truth", "score", "optimism")
    )
    ends = {
        name: np.array([each[name] for each in found]).T
        for name in ("interval", "plain", "first order")
    }
    with np.errstate(invalid="ignore"):
        covers = {
            name: float(np.mean((low <= truth) & (truth <= high)))
            for name, (low, high) in ends.items()
        }
    widths = {name: float(np.nanmedian(high - low)) for name, (low, high) in ends.items()}
    share = covers["interval"]
    return {
        "law": law,
        "metric": scoring.removeprefix("neg_").replace("root_mean_squared_error", "rmse"),
        "n": n,
        "sets": len(found),
        "error": (0.0 if scoring == AMOUNTS[0] else 1.0) - float(np.mean(score)),
        "covers": share,
        "se": float(np.sqrt(share * (1.0 - share) / len(found))),
        "width": widths["interval"],
        "plain covers": covers["plain"],
        "plain width": widths["plain"],
        "first order covers": covers["first order"],
        "first order width": widths["first order"],
        "above": float(np.mean(truth > ends["interval"][1])),
        "below": float(np.mean(truth < ends["interval"][0])),
        "optimism": float(np.mean(optimism)),
        "bias": float(np.mean(score - truth)),
    }


def known(path) -> dict[tuple[str, str, int], Row]:
    """The cases measured before."""
    if not path.exists():
        return {}
    with path.open() as file:
        rows = list(csv.DictReader(file))
    words, whole = ("law", "metric"), ("n", "sets")
    return {
        (each["law"], each["metric"], int(each["n"])): {
            name: value if name in words else int(value) if name in whole else float(value)
            for name, value in each.items()
        }
        for each in rows
    }


def main() -> None:
    flags = harness.parser(__doc__, rounds=1).parse_args()
    for n, sets in SIZES.items():
        for law in LAWS:
            for scoring in SCORING.get(law, AMOUNTS):
                if re.search(flags.only or "", f"{law}:{scoring}:{n}"):
                    found = row(law, scoring, n, 5 if flags.quick else sets)
                    print(found, flush=True)
                    write(flags, found)


def write(flags, found: Row) -> None:
    """Put a case into the table, beside what other runs may have put there meanwhile."""
    name = harness.stem("coverage", flags.quick)
    rows = known(flags.out / f"{name}.csv")
    rows[found["law"], found["metric"], found["n"]] = found
    places = {law: place for place, law in enumerate(LAWS)}
    order = [rows[key] for key in sorted(rows, key=lambda key: (places[key[0]], *key[1:]))]
    harness.write_csv(flags.out, name, order)
    about = (__doc__ or "").partition("\n\n")[2]
    laws = "\n".join(f"- {law}: {words}" for law, words in LAWS.items())
    text = f"{about}\n{laws}\n\n{harness.table(order)}"
    print(
        harness.write_report(
            flags.out, name, "Coverage of the interval of a score", [("Results", text)]
        ).name
    )


if __name__ == "__main__":
    main()
