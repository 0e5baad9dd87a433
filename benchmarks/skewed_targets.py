"""Skewed positive targets: does a transformation of the target make the models better?

Five splits (of :mod:`_sets`) of seven sets with skewed positive targets,
at most 600 rows. Every search has the same candidates: Gaussian, Laplace and Matern kernels,
5 bandwidths and 15 lams each, five folds. Transformations are scikit-learn's PowerTransformer in a
TransformedTargetRegressor, learned in every training part; scores are R^2 on the original scale.

- plain: the targets as they are;
- log, box-cox, yeo-johnson: transformed; the inverse of a prediction is limited to the range of the
  training targets, enlarged by half of its width on either side, as extrapolated powers overflow;
- choice: the one of the four with the largest held-out R^2 on the original scale;
- sure: the choice if its held-out squared errors are smaller than those of plain by two standard
  errors of the mean paired difference, else plain.

Numbers are root mean squared errors of the test rows over the standard deviation of the training
targets, mean over the splits; p is the paired t-test against plain, corrected for overlapping
training parts (Nadeau and Bengio 2003).
"""

from __future__ import annotations

import warnings
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder
from _sets import table_sets
from overfitting import corrected_p
from scipy.stats import skew
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import KFold
from sklearn.preprocessing import PowerTransformer

SETS = (("servo", "libsvm"), ("yacht", "literature"), ("boston", "literature"),
        ("mpg", "libsvm"), ("abalone", "libsvm"), ("concrete", "literature"),
        ("cadata", "libsvm"))  # fmt: skip
ROWS = 600
WAYS = ("plain", "log", "box-cox", "yeo-johnson")


class Power(TransformerMixin, BaseEstimator):
    """A power transformation whose inverse stays near the range of the targets."""

    def __init__(self, way="log"):
        self.way = way

    def fit(self, y, _=None):
        low, high = float(y.min()), float(y.max())
        self.range_ = (max(low - 0.5 * (high - low), 0.0), high + 0.5 * (high - low))
        if self.way != "log":
            self.power_ = PowerTransformer(self.way).fit(y)
        else:
            self.mean_, self.spread_ = np.log(y).mean(), np.log(y).std()
        return self

    def transform(self, y):
        if self.way != "log":
            return self.power_.transform(y)
        return (np.log(y) - self.mean_) / self.spread_

    def inverse_transform(self, z):
        if self.way != "log":
            found = self.power_.inverse_transform(z)
        else:
            found = np.exp(self.mean_ + self.spread_ * np.minimum(z, 50.0))
        return np.clip(np.nan_to_num(found, nan=self.range_[1]), *self.range_)


def search(way: str, X, seed: int):
    from sklearn.compose import TransformedTargetRegressor

    from onefit import KernelRegressor, KernelSearchCV, default_grid

    grid = []
    for part in default_grid(X, kernel=("rbf", "laplacian", "matern32")):
        gammas = sorted(part["gamma"])
        lams = sorted({*part["lam"], 1e-7, 1e-6})
        grid.append(part | {"gamma": gammas[1:-1:2], "lam": lams})
    model = KernelRegressor()
    if way != "plain":
        model = TransformedTargetRegressor(model, transformer=Power(way))
        grid = [{f"regressor__{key}": list(value) for key, value in one.items()} for one in grid]
    cv = KFold(5, shuffle=True, random_state=seed)
    return KernelSearchCV(model, grid, cv=cv, scoring="r2", aggregate="pooled")


def split_errors(X, X_test, y, y_test, seed: int) -> dict[str, float]:
    found = {way: search(way, X, seed).fit(X, y) for way in WAYS}
    errors = {way: float(np.sqrt(np.mean((one.predict(X_test) - y_test) ** 2)) / y.std())
              for way, one in found.items()}  # fmt: skip
    best = max(found, key=lambda way: found[way].best_score_)
    squares = {way: (np.ravel(found[way].heldout_.predictions) - y) ** 2 for way in ("plain", best)}
    gain = squares["plain"] - squares[best]
    sure = gain.mean() > 2.0 * gain.std() / np.sqrt(gain.size)
    return errors | {"choice": errors[best], "sure": errors[best if sure else "plain"],
                     "chosen": best != "plain", "surely": bool(sure)}  # fmt: skip


def main() -> None:
    flags = harness.parser(__doc__, rounds=5)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags = flags.parse_args()
    folder, table = data_folder(flags.data), []
    name = harness.stem("skewed_targets", flags.quick)
    sets = {(one.name, one.group): one for one in table_sets()}
    for which in SETS[: 1 if flags.quick else None]:
        found = []
        for split in range(flags.rounds):
            X, X_test, y, y_test = sets[which].split(folder, split)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(split_errors(X[:ROWS], X_test, y[:ROWS], y_test, split))
        errors = {way: np.array([one[way] for one in found]) for way in found[0]}
        row: harness.Row = {"set": which[0], "rows": min(ROWS, len(y)), "skewness": float(skew(y))}
        row |= {way: float(values.mean()) for way, values in errors.items()}
        for way in ("choice", "sure"):
            row[f"p {way}"] = corrected_p(errors[way], errors["plain"], sets[which].ratio)
        table.append(row)
        print(row, flush=True)
        harness.write_csv(flags.out, name, table)
    text = (__doc__ or "").partition("\n\n")[2]
    sections = [("Results", f"{text}\n\n{harness.table(table)}")]
    harness.write_report(flags.out, name, "Transformations of skewed targets", sections)


if __name__ == "__main__":
    main()
