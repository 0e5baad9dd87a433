"""Data values: finding mislabelled rows, and time against refits.

Detection. In each data set 5 % of the labels are flipped (moved to another class at random), five
times with other seeds. Gaussian kernel LS-SVM; gamma and lam are chosen by a search on the flipped
labels, with five folds. Every contestant ranks the rows, and the area under its ROC curve of
finding the flipped rows is given, mean and standard error over the seeds (0.5 is chance, 1 is
perfect):

- margin: the held-out decision value of the given label, less that of the best other label;
- removal: ``removal_values``, by squared error, by accuracy and by the log loss of probabilities
  proportional to exp(a u), where a gives the held-out decision values u of the search the least log
  loss;
- shapley: ``shapley_values`` with 100 orders, by squared error and by accuracy; "from 5 %" and "log
  loss" do not count what the first 5 % of the rows of an order add (``min_rows``);
- cleanlab: ``cleanlab.rank.get_label_quality_scores`` (confident learning, self-confidence and
  normalized margin) from out-of-fold probabilities of scikit-learn's ``SVC`` (the same kernel, C=1,
  Platt scaling), and from those of onefit's log loss with the same kernel, lam chosen by log loss.

Time. Seconds of processor time for the values of all rows of a regression, with one BLAS thread,
and those of refits by the same package, extrapolated from a few: n times as long as one
cross-validation of the other rows, and n fits to leading parts (of mean size n / 2) per order.
"""

from __future__ import annotations

import warnings
from time import process_time
from typing import Any

import _harness as harness
import numpy as np
from _harness import Row
from threadpoolctl import threadpool_limits

SHARE, SEEDS, ORDERS = 0.05, 5, 100
CONTESTANTS = (
    "margin", "removal", "removal accuracy", "removal log loss", "shapley", "shapley from 5 %",
    "shapley log loss", "shapley accuracy",
    "cleanlab SVC", "cleanlab SVC margin", "cleanlab log", "seconds removal", "seconds shapley",
)  # fmt: skip


def data_sets() -> dict[str, Any]:
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_moons
    from sklearn.preprocessing import StandardScaler

    found = {"moons": make_moons(400, noise=0.25, random_state=0)}
    for name, load in {"cancer": load_breast_cancer, "wine": load_wine}.items():
        X, y = load(return_X_y=True)
        found[name] = StandardScaler().fit_transform(X), y
    X, y = load_digits(return_X_y=True)
    found["digits"] = X[:500] / 16.0, y[:500]
    return found


def flip(y, seed: int):
    random = np.random.default_rng(seed)
    rows = random.choice(y.size, round(SHARE * y.size), replace=False)
    given, classes = y.copy(), np.unique(y)
    given[rows] = classes[(np.searchsorted(classes, y[rows]) + random.integers(
        1, classes.size, rows.size)) % classes.size]  # fmt: skip
    return given, np.isin(np.arange(y.size), rows)


def margin(found: Any, y: Any, classes: Any) -> Any:
    u = found.decision
    u = np.column_stack([-u, u]) if u.ndim == 1 else u
    own = y[:, None] == classes
    return u[own] - np.where(own, -np.inf, u).max(axis=1)


def both(u: Any) -> Any:
    """A column for each class."""
    return np.concatenate([-u, u], axis=-1) if u.shape[-1] == 1 else u


def log_loss_of(held: Any, codes: Any) -> Any:
    """Log loss of probabilities proportional to exp(a u), a fitted to held-out values."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    from onefit.scoring import Metric

    def lost(y: Any, u: Any, a: float) -> Any:
        v = a * both(u)
        own = np.take_along_axis(v, np.broadcast_to(y.astype(int), (*v.shape[:-1], 1)), axis=-1)
        return logsumexp(v, axis=-1, keepdims=True) - own

    u = held.values[np.argsort(held.folds.rows)]
    found = minimize_scalar(lambda log: lost(codes[:, None], u, np.exp(log)).mean(), (-1.0, 2.0))
    a = float(np.exp(found.x))
    return Metric("log_loss_of_margins", "classification", lambda y, u: lost(y, u, a))


def detect(X: Any, y: Any, seed: int) -> dict[str, float]:
    from cleanlab.rank import get_label_quality_scores
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.svm import SVC

    from onefit import KernelClassifier, KernelSearchCV, heldout_predict
    from onefit.value import removal_values, shapley_values

    given, flipped = flip(y, seed)
    cv = StratifiedKFold(5, shuffle=True, random_state=seed)
    grid = {"gamma": np.logspace(-2, 1, 7) / X.shape[1], "lam": np.logspace(-4, 0, 9)}
    search = KernelSearchCV(KernelClassifier("squared"), grid, cv=cv).fit(X, given)
    gamma, classes = search.best_params_["gamma"], search.best_estimator_.classes_
    codes = np.searchsorted(classes, given)
    start = process_time()
    values = {
        "margin": margin(heldout_predict(search.best_estimator_, X, given, cv=cv), given, classes),
        "removal": removal_values(search, X, given).values,
    }
    middle = process_time()
    options = {"n_permutations": ORDERS, "random_state": seed}
    values["shapley"] = shapley_values(search, X, given, **options).values
    end = process_time()
    values["shapley from 5 %"] = shapley_values(
        search, X, given, min_rows=y.size // 20, **options
    ).values
    values["removal accuracy"] = removal_values(search, X, given, scoring="accuracy").values
    values["shapley accuracy"] = shapley_values(
        search, X, given, scoring="accuracy", **options
    ).values
    log_loss = log_loss_of(search.heldout_, codes)
    values["removal log loss"] = removal_values(search, X, given, scoring=log_loss).values
    values["shapley log loss"] = shapley_values(
        search, X, given, scoring=log_loss, min_rows=y.size // 20, **options
    ).values
    svc = SVC(gamma=gamma, probability=True, random_state=0)
    probability = cross_val_predict(svc, X, given, cv=cv, method="predict_proba")
    log = KernelSearchCV(
        KernelClassifier("log", gamma=gamma), {"lam": np.logspace(-5, 0, 6)}, cv=cv,
        scoring="neg_log_loss",
    ).fit(X, given)  # fmt: skip
    for name, p, method in (
        ("cleanlab SVC", probability, "self_confidence"),
        ("cleanlab SVC margin", probability, "normalized_margin"),
        ("cleanlab log", log.heldout_.proba, "self_confidence"),
    ):
        values[name] = get_label_quality_scores(codes, p, method=method)
    areas = {name: float(roc_auc_score(flipped, -one)) for name, one in values.items()}
    return areas | {"seconds removal": middle - start, "seconds shapley": end - middle}


def detection(quick: bool) -> list[Row]:
    rows: list[Row] = []
    for name, (X, y) in data_sets().items():
        if quick and name != "wine":
            continue
        found = [detect(X, y, seed) for seed in range(2 if quick else SEEDS)]
        row: Row = {"data": name, "n": len(y), "classes": np.unique(y).size}
        for one in CONTESTANTS:
            each = np.array([areas[one] for areas in found])
            if one.startswith("seconds"):
                row[one] = float(each.min())
            else:
                error = each.std(ddof=1) / np.sqrt(each.size)
                row[one] = f"{each.mean():.3f} ± {error:.3f}"
        rows.append(row)
        print(row, flush=True)
    return rows


def time_of(action: Any) -> float:
    start = process_time()
    action()
    return process_time() - start


def speed(n: int, rounds: int) -> Row:
    from onefit import KernelRegressor, heldout_predict
    from onefit.value import removal_values, shapley_values

    random = np.random.default_rng(n)
    X = random.normal(size=(n, 8))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * random.normal(size=n)
    model, part, some = KernelRegressor(gamma=0.1, lam=1e-3), 2 * n // 5, np.arange(n - 1)
    split = [(np.arange(4 * n // 5), np.arange(4 * n // 5, n))]
    actions = {
        "removal": lambda: removal_values(model, X, y),
        "one cross-validation": lambda: heldout_predict(model, X[some], y[some]),
        "shapley, 10 orders": lambda: shapley_values(
            model, X, y, cv=split, n_permutations=10, random_state=0
        ),
        "one fit": lambda: model.fit(X[:part], y[:part]).predict(X[split[0][1]]),
    }
    best = dict.fromkeys(actions, np.inf)
    for _ in range(rounds):
        for name, action in actions.items():
            best[name] = min(best[name], time_of(action))
    return {
        "n": n,
        **best,
        "refits / removal": n * best["one cross-validation"] / best["removal"],
        "refits / shapley": 10 * 4 * n // 5 * best["one fit"] / best["shapley, 10 orders"],
    }


def main() -> None:
    flags = harness.parser(__doc__, rounds=2).parse_args()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        times = [speed(n, flags.rounds) for n in ((200,) if flags.quick else (500, 1000, 2000))]
        print(*times, sep="\n", flush=True)
        rows = detection(flags.quick)
    name = harness.stem("value", flags.quick)
    harness.write_csv(flags.out, name, rows)
    harness.write_csv(flags.out, f"{name}_times", times)
    about = (__doc__ or "").partition("\n\n")[2]
    parts = [
        ("What is measured", about),
        ("Finding mislabelled rows", harness.table(rows)),
        ("Time", harness.table(times)),
    ]
    harness.write_report(flags.out, name, "Values of rows: finding mislabelled rows", parts)


if __name__ == "__main__":
    main()
