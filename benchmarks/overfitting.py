"""Many kernel parameters, few rows: does cross-validation over-fit them, and what helps?

Two parts, chosen by ``--part`` (a pattern):

ard   one gamma per column against one for all, on ten data sets (400 rows at most): error over ten
      outer folds of a search by gradient over five inner ones; plain, with k-KS (eta = 1), with the
      prior of Cawley and Talbot, with early stopping, with both (the default); and without a search
      by gradient, with the scales of the evidence, learned in each inner training part ("scales"),
      and whichever of these and one gamma has the better held-out score ("choice")
mkl   a bank of kernels (one per column, six of all columns, one linear), 60 training rows, ten
      draws: the best single kernel against weights by CV (eta = 0), with early stopping, by k-KS
      (eta = 1), by k-KS with p = 2, and by k-KS with eta from nested cross-validation

Regression: mean squared errors over the variance of y; classes: error rates. A difference is judged
by the resampled t-test with the correction of Nadeau and Bengio (2003) for overlapping training
parts. The last column of each table, of the score that the search reported itself, shows how
optimistic it was. One thread; no time is measured.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Row
from scipy import stats

SETS = (
    "sonar", "german.numer", "housing", "diabetes", "ionosphere", "heart", "mpg", "triazines",
    "pyrim", "ozone",
)  # fmt: skip
ROWS = 400
ETAS = (0.25, 1.0, 4.0, 16.0)


def standardised(folder: Path, name: str, rows: int):
    """X and y; y has two values, or mean zero and standard deviation one."""
    X, y = load(folder, name)
    keep = np.random.default_rng(0).permutation(len(y))[:rows]
    X, y = X[keep], y[keep]
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, (y if np.unique(y).size == 2 else (y - y.mean()) / y.std())


def fold_error(model, X, y, train, test) -> tuple[float, float]:
    """Error on test rows, and the one that the search reported."""
    model.fit(X[train], y[train])
    found = model.predict(X[test])
    if np.unique(y).size == 2:
        return float(np.mean(found != y[test])), 1.0 - float(model.best_score_)
    return float(np.mean((found - y[test]) ** 2)), -float(model.best_score_)


def make(grid, y, inner=5, gradient=True, **options):
    from sklearn.model_selection import KFold, StratifiedKFold

    from onefit import KernelClassifier, KernelGradientSearchCV, KernelRegressor, KernelSearchCV

    classes = np.unique(y).size == 2
    kind = StratifiedKFold if classes else KFold
    search = KernelGradientSearchCV if gradient else KernelSearchCV
    return search(
        KernelClassifier(loss="squared") if classes else KernelRegressor(), grid,
        cv=kind(inner, shuffle=True, random_state=1),
        scoring="accuracy" if classes else "neg_mean_squared_error", **options,
    )  # fmt: skip


def bandwidths():
    """How gammas are searched, by name."""
    from onefit.criteria import KernelStability
    from onefit.search import Interval

    lam, plain = Interval(1e-6, 1e1, points=8), {"prior": False, "early_stopping": False}
    one = {"gamma": Interval(1e-4, 1e1), "lam": lam}
    each = {"gamma": Interval(1e-5, 1e1, per_feature=True), "lam": lam}
    return {
        "one gamma": partial(make, one),
        "plain": partial(make, each, **plain),
        "k-KS": partial(make, each, **plain, criterion=KernelStability(1.0)),
        "prior": partial(make, each, **(plain | {"prior": True})),
        "stopping": partial(make, each, **(plain | {"early_stopping": True})),
        "both": partial(make, each),
        "scales": by_evidence,
        "choice": partial(best_of, {"one gamma": partial(make, one), "scales": by_evidence}),
    }


def by_evidence(y):
    """A search over a pipeline that learns a scale for every column."""
    from sklearn.pipeline import Pipeline

    from onefit.evidence_scales import EvidenceScales

    grid = {"gamma": [0.5, 0.7, 1.0, 1.4, 2.0], "lam": np.geomspace(1e-6, 1e1, 15)}
    search = make(grid, y, gradient=False)
    model = search.estimator.set_params(kernel="matern32")
    return search.set_params(
        estimator=Pipeline([("rows", EvidenceScales()), ("model", model)]),
        param_grid={f"model__{name}": list(values) for name, values in grid.items()},
    )


class best_of:  # noqa: N801
    """The search with the best held-out score."""

    def __init__(self, builders, y) -> None:
        self.searches = [build(y) for build in builders.values()]

    def fit(self, X, y):
        found = [search.fit(X, y) for search in self.searches]
        self.best = max(found, key=lambda search: search.best_score_)
        self.best_score_ = self.best.best_score_

    def predict(self, X):
        return self.best.predict(X)


def corrected_p(one, other, ratio: float) -> float:
    """Two-sided p of equal means over resamples whose test part is ``ratio`` of the training."""
    d = np.asarray(one) - np.asarray(other)
    if np.allclose(d, 0.0):
        return 1.0
    scale = np.sqrt((1.0 / d.size + ratio) * d.var(ddof=1))
    return float(2.0 * stats.t.sf(abs(d.mean()) / scale, d.size - 1))


def summarise(name, n, p, errors, reported, ratio) -> Row:
    first = next(iter(errors))
    row: Row = {"set": name, "rows": n, "columns": p}
    for how, values in errors.items():
        row[how] = float(np.mean(values))
        if how != first:
            row[f"p {how}"] = corrected_p(values, errors[first], ratio)
    for how, values in reported.items():
        row[f"reported by {how}"] = float(np.mean(values))
    return row


def ard(flags) -> tuple[str, list[Row]]:
    from sklearn.model_selection import KFold, StratifiedKFold

    rows = []
    for name in SETS[: 2 if flags.quick else None]:
        X, y = standardised(data_folder(flags.data), name, 60 if flags.quick else ROWS)
        outer = 3 if flags.quick else 10
        kind = StratifiedKFold if np.unique(y).size == 2 else KFold
        splits = list(kind(outer, shuffle=True, random_state=0).split(X, y))
        errors, reported = {}, {}
        for how, build in bandwidths().items():
            if not re.search(flags.only, how):
                continue
            found = [fold_error(build(y), X, y, train, test) for train, test in splits]
            errors[how], reported[how] = zip(*found, strict=True)
        rows.append(summarise(name, len(y), X.shape[1], errors, reported, 1.0 / (outer - 1)))
        print(harness.table(rows[-1:]), flush=True)
    about = "Errors over ten outer folds; p against one gamma for all columns."
    return f"{about}\n\n{harness.table(rows)}", rows


def bank(p: int, norm: float = 1.0):
    from onefit.kernels import Bank, Gaussian, Linear, OnColumns

    alone = [OnColumns(Gaussian(0.5), [column]) for column in range(p)]
    together = [Gaussian(g / p) for g in np.geomspace(0.01, 30.0, 6)]
    return Bank([*alone, *together, Linear()], norm)


def mixtures(p: int):
    """How weights of the bank are searched, by name."""
    from onefit.criteria import KernelStability
    from onefit.search import Interval

    stopped, plain = {"early_stopping": True}, {"early_stopping": False}
    lam = {"lam": Interval(1e-5, 1e1, points=8)}
    single = {"kernel": list(bank(p).kernels), "lam": np.geomspace(1e-5, 1e1, 8)}
    return {
        "best single": partial(make, single, gradient=False),
        "eta 0": partial(make, {"kernel": bank(p)} | lam, **plain),
        "stopped": partial(make, {"kernel": bank(p)} | lam, **stopped),
        "eta 1": partial(make, {"kernel": bank(p)} | lam, **plain, criterion=KernelStability(1.0)),
        "eta 1, p = 2": partial(
            make, {"kernel": bank(p, 2.0)} | lam, **plain, criterion=KernelStability()
        ),
        "eta nested": partial(by_nested_cv, {"kernel": bank(p)} | lam),
    }


class by_nested_cv:  # noqa: N801
    """The search with the eta that is best in three folds around it."""

    def __init__(self, grid, y) -> None:
        self.grid = grid

    def fit(self, X, y):
        from sklearn.model_selection import KFold

        from onefit.criteria import KernelStability

        plain = {"early_stopping": False}

        def error(eta: float) -> float:
            model = partial(make, self.grid, **plain, criterion=KernelStability(eta))
            splits = KFold(3, shuffle=True, random_state=2).split(X)
            return float(np.mean([fold_error(model(y), X, y, *split)[0] for split in splits]))

        eta = min(ETAS, key=error)
        self.model = make(self.grid, y, **plain, criterion=KernelStability(eta)).fit(X, y)
        self.best_score_ = self.model.best_score_

    def predict(self, X):
        return self.model.predict(X)


def mkl(flags) -> tuple[str, list[Row]]:
    rows, size = [], 60
    for name in SETS[: 2 if flags.quick else None]:
        X, y = standardised(data_folder(flags.data), name, 2000)
        size, draws = min(60, len(y) // 2), 2 if flags.quick else 10
        errors: dict[str, list[float]] = {}
        reported: dict[str, list[float]] = {}
        for draw in range(draws):
            order = np.random.default_rng(draw).permutation(len(y))
            for how, build in mixtures(X.shape[1]).items():
                if flags.quick and how == "eta nested":
                    continue
                found = fold_error(build(y), X, y, order[:size], order[size:])
                errors.setdefault(how, []).append(found[0])
                reported.setdefault(how, []).append(found[1])
        ratio = (len(y) - size) / size
        rows.append(summarise(name, size, X.shape[1], errors, reported, min(ratio, 1.0)))
        print(harness.table(rows[-1:]), flush=True)
    about = "Errors on all other rows, ten draws of 60 training rows; p against the best single."
    return f"{about}\n\n{harness.table(rows)}", rows


def main() -> None:
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--part", default="", help="parts whose name matches this")
    flags = flags.parse_args()
    for part, run, title in (("ard", ard, "one gamma per column"), ("mkl", mkl, "several kernels")):
        if not re.search(flags.part, part):
            continue
        text, rows = run(flags)
        name = harness.stem(f"overfitting_{part}", flags.quick)
        harness.write_csv(flags.out, name, rows)
        harness.write_report(flags.out, name, f"Over-fitting with {title}", [("Results", text)])


if __name__ == "__main__":
    main()
