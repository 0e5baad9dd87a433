"""Liu and Liao, Information Sciences 2016: granularity selection for cross-validation of the SVM.

Table 1: folds and orders for a wanted accuracy. Tables 3 and 4: test errors and times of
epsilon-BIF (the influence series of the smoothed hinge), of t-fold cross-validation of the SVM
itself and of GACV, on random halves of ten sets, with Gaussian and polynomial kernels; beside them
"exact", t-fold of the smoothed hinge without approximation. Folds of the same number are the same
rows in all columns.

The SVM has no intercept, as in the paper: liblinear's dual solver on features Z with Z Z' = K. For
each criterion the machine tested is its own: the SVM for t-CV, the smoothed hinge for the others.
Folds and order are those of the paper's Table 1 (lambda = 1). Not in the paper, and set here:
features are mapped to [-1, 1]; ties go to the first kernel, then the smallest lambda; a prediction
of exactly zero is an error (the paper's I(c) counts it as right, and then the narrowest kernel,
which predicts nothing, would always win).
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from onefit import linalg
from onefit.criteria import Criterion, CrossValidation, Gacv, granularity
from onefit.folds import Folds
from onefit.heldout import Exact, Influence
from onefit.kernels import Geometry, Kernel, Polynomial
from onefit.kernels.stationary import Gaussian
from onefit.losses import SmoothedHinge
from onefit.reproduce.claims import Verdict, judge
from onefit.reproduce.data import Loader, scale
from onefit.reproduce.journal import Row, Unit
from onefit.reproduce.render import beside, number, table
from onefit.reproduce.results import MAIN, Published, Results
from onefit.reproduce.sweep import Family, Sweep, Unseen, draw_folds, misses, seed_of

Array = NDArray[Any]

__all__ = ["NAME", "SERIAL", "TITLE", "cuts", "measure", "sections", "units", "verdicts"]

NAME = "ins2016"
TITLE = "Information Sciences 2016: granularity selection for cross-validation of the SVM"
SERIAL = False

#: of liblinear over the rows; with polynomials of high degree and small lambda it needs more
PASSES = 1000

#: the t-statistic above which the paper calls ten paired differences significant
SIGNIFICANT = 1.833


def units(config: dict[str, Any]) -> list[Unit]:
    """One unit for each kernel, set and replicate."""
    keys = ("seed", "sigma", "degree", "lam", "delta", "accuracies", "folds", "scaling")
    shared = {key: config[key] for key in keys}
    found: list[Unit] = []
    for kernel in config["kernels"]:
        less = config.get("less", {}).get(kernel, {})
        for name in config["sets"]:
            if name in less.get("without", ()):
                continue
            count = config["replicates_large" if name in config["large"] else "replicates"]
            count = min(count, less.get("replicates", count))
            found += [{"kind": kernel, "set": name, "replicate": i} | shared for i in range(count)]
    return found


def cuts(config: dict[str, Any]) -> list[str]:
    """Where less was run than in the paper."""
    found = []
    if config["replicates"] < 10:
        found.append(f"{config['replicates']} replicates instead of 10")
    if config["large"] and config["replicates_large"] < 10:
        found.append(f"{config['replicates_large']} replicate(s) of {', '.join(config['large'])}")
    for kernel, less in config.get("less", {}).items():
        found.append(
            f"{kernel} kernels: {less['replicates']} replicate(s), without "
            f"{', '.join(less['without'])}"
        )
    if len(config["sets"]) < 10:
        found.append(f"{10 - len(config['sets'])} of the 10 sets left out")
    if config["lam"] != [-3, 11]:
        found.append(f"lambda up to 2^{config['lam'][1]}")
    return found


def measure(unit: Unit, loader: Loader) -> list[Row]:
    """Choose by every criterion on one random half, and test on the other."""
    data = loader.load(unit["set"])
    rng = np.random.default_rng(seed_of(unit["seed"], unit["set"], unit["replicate"]))
    X, order = scale(data.X, unit["scaling"]), rng.permutation(len(data.y))
    train, rest = np.split(order, [len(order) // 2])
    lams = [2.0**i for i in range(unit["lam"][0], unit["lam"][1] + 1)]
    family = Family(
        X[train], data.y[train], _kernels(unit), lams, SmoothedHinge(unit["delta"]), False
    )
    test = Unseen(X[rest], data.y[rest], True)
    errors: dict[str, tuple[Sweep, float]] = {}
    for column, sweep in _smoothed(unit, family).items():
        errors[column] = sweep, test.error(family.predict(sweep.winner, test.X))
    for k in unit["folds"]:
        sweep = _svm_sweep(family, _folds(unit, k, len(train)))
        errors[f"{k}-CV"] = sweep, test.error(_svm_predict(family, sweep.winner, test.X))
    return _rows(unit, errors, family, data.source)


def _rows(
    unit: Unit, errors: dict[str, tuple[Sweep, float]], family: Family, source: str
) -> list[Row]:
    rows: list[Row] = []
    for column, (sweep, error) in errors.items():
        kernel, lam = sweep.winner
        base = {
            "variant": MAIN,
            "row": unit["set"],
            "column": column,
            "replicate": unit["replicate"],
        }
        chosen = {"kernel": str(family.kernels[kernel]), "lam": family.lams[lam], "source": source}
        rows.append({**base, "table": f"3 {unit['kind']}", "value": error, **chosen})
        rows.append({**base, "table": f"4 {unit['kind']}", "value": sweep.seconds})
    return rows


def _kernels(unit: Unit) -> list[Kernel]:
    if unit["kind"] == "gaussian":
        return [Gaussian(0.5 / 2.0**i) for i in range(unit["sigma"][0], unit["sigma"][1] + 1)]
    return [Polynomial(degree=d) for d in range(unit["degree"][0], unit["degree"][1] + 1)]


def _folds(unit: Unit, k: int, n: int) -> Folds:
    """The same folds for every criterion that uses k of them."""
    seed = seed_of(unit["seed"], unit["set"], unit["replicate"], k)
    return draw_folds(n, k, np.random.default_rng(seed))


def _smoothed(unit: Unit, family: Family) -> dict[str, Sweep]:
    """epsilon-BIF, exact, and GACV."""
    n = len(family.y)
    judged: dict[str, Criterion] = {"": CrossValidation(loss=misses, guard=False)}
    found = {"GACV": family.sweep({"": Gacv(guard=False)})[""]}
    counts = set(unit["folds"])
    for accuracy in unit["accuracies"]:
        folds, order = granularity(accuracy, 1.0, unit["delta"])
        counts.add(folds)
        found[f"{accuracy:g}-BIF"] = family.sweep(
            judged, Influence(order=order), _folds(unit, folds, n)
        )[""]
    for k in sorted(counts):
        found[f"exact-{k}"] = family.sweep(judged, Exact(), _folds(unit, k, n))[""]
    return found


def _features(K: Array) -> Array:
    """Z with Z Z' = K, without the directions that K does not see."""
    values, vectors = linalg.eigh(linalg.fortran(K), overwrite=True)
    seen = values > np.finfo(float).eps * len(K) * values[-1]
    return np.ascontiguousarray(vectors[:, seen] * np.sqrt(values[seen]))


def _svm(Z: Array, y: Array, lam: float) -> LinearSVC:
    """The SVM without intercept; libsvm's C of the mean scaling is 1 / (2 n lam)."""
    machine = LinearSVC(loss="hinge", C=0.5 / (len(y) * lam), fit_intercept=False, max_iter=PASSES)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # as with libsvm's, the last step stands
        return machine.fit(Z, y)


def _svm_sweep(family: Family, folds: Folds) -> Sweep:
    """t-fold error rates of the SVM, by fitting it again on every training part."""
    values = np.empty((len(family.kernels), len(family.lams)))
    seconds = 0.0
    for i in range(len(family.kernels)):
        K = family.problem(i).K
        start = perf_counter()
        Z = _features(K)
        for j, lam in enumerate(family.lams):
            wrong = [
                misses(
                    family.y[test], _svm(Z[train], family.y[train], lam).decision_function(Z[test])
                ).mean()
                for train, test in folds
            ]
            values[i, j] = np.mean(wrong)
        seconds += perf_counter() - start
    return Sweep(values, seconds)


def _svm_predict(family: Family, winner: tuple[int, int], X: Array) -> Array:
    kernel, lam = winner
    both = np.vstack([family.X, X])
    Z = _features(family.kernels[kernel].matrix(Geometry(both)))
    n = len(family.y)
    machine = _svm(Z[:n], family.y, family.lams[lam])
    return np.asarray(machine.decision_function(Z[n:]))


def t_statistic(results: Results, name: str, row: str, one: str, two: str) -> float:
    """Positive where the first column has smaller errors; the paper's paired statistic."""
    gap = results.values(name, row, two) - results.values(name, row, one)
    if gap.size < 2 or not np.any(gap != 0.0):
        return 0.0
    spread = float(gap.std(ddof=1))
    return (
        float(gap.mean() / (spread / np.sqrt(gap.size)))
        if spread > 0
        else float("inf") * gap.mean()
    )


def sections(results: Results, published: Published) -> list[str]:
    """Tables 1, 3 and 4."""
    rows = [
        [
            f"{a:g}",
            *(str(v) for v in granularity(a, 1.0)),
            *(f"{published.cell('1', f'{a:g}', c).mean:g}" for c in ("folds", "order")),
        ]
        for a in (0.2, 0.1, 0.05, 0.01)
    ]
    parts = [
        "## Table 1: folds and order for a wanted accuracy (delta = 0.01, lambda = 1, kappa = 1)",
        table(["accuracy", "folds", "order", "folds, paper", "order, paper"], rows),
        "In each cell below: **ours** ± standard deviation over replicates, the paper's, and the "
        "difference "
        "in the paper's standard deviations.",
    ]
    titles = {"3": "test errors (%)", "4": "seconds for the whole grid of one replicate"}
    for number_, title in titles.items():
        for kind in _kinds(results):
            name = f"{number_} {kind}"
            columns = list(dict.fromkeys([*published.columns(name), *results.columns(name)]))
            parts += [
                f"## Table {number_}: {title}, {kind} kernel",
                beside(results, published, name, columns),
            ]
    return parts


def _kinds(results: Results) -> list[str]:
    names = dict.fromkeys(row["table"] for row in results.all)
    return [name.split()[1] for name in names if name.startswith("3 ")]


def _bif(results: Results, name: str) -> list[str]:
    return [column for column in results.columns(name) if column.endswith("-BIF")]


def _cv(results: Results, name: str) -> list[str]:
    return [c for c in results.columns(name) if c.endswith("-CV")]


def verdicts(results: Results, published: Published) -> list[Verdict]:
    """The sentences of section 5."""
    found = [_granularities(published)]
    for kind in _kinds(results):
        name = f"3 {kind}"
        rows = [row for row in results.rows(name) if results.values(name, row, "GACV").size >= 5]
        enough = len(rows) >= 5
        found += [
            _smaller_epsilon(results, name, rows, enough),
            _close_to_cv(results, name, rows, enough),
            _against_gacv(results, name, rows, enough),
            _times(results, f"4 {kind}"),
        ]
    return found


def _granularities(published: Published) -> Verdict:
    accuracies = (0.2, 0.1, 0.05, 0.01)
    printed = [
        tuple(published.cell("1", f"{a:g}", c).mean for c in ("folds", "order")) for a in accuracies
    ]
    same = [granularity(a, 1.0) == pair for a, pair in zip(accuracies, printed, strict=True)]
    evidence = f"{sum(same)} of {len(same)} rows equal the paper's"
    return judge("Table 1", "Folds and order by equation 6", all(same), evidence)


def _smaller_epsilon(results: Results, name: str, rows: list[str], enough: bool) -> Verdict:
    means = {
        c: float(np.mean([results.mean(name, r, c) for r in results.rows(name)]))
        for c in _bif(results, name)
    }
    values = list(means.values())
    return judge(
        f"Table {name} (1)",
        "The smaller epsilon, the better",
        all(a >= b for a, b in pairwise(values)) if enough else None,
        "mean error over the sets: " + ", ".join(f"{c} {number(v)}" for c, v in means.items()),
    )


def _close_to_cv(results: Results, name: str, rows: list[str], enough: bool) -> Verdict:
    worse = [
        f"{row} ({one} against {two}: t = {t_statistic(results, name, row, two, one):.1f})"
        for row in rows
        for one in _bif(results, name)
        for two in _cv(results, name)
        if t_statistic(results, name, row, two, one) > SIGNIFICANT
    ]
    tests = len(rows) * len(_bif(results, name)) * len(_cv(results, name))
    return judge(
        f"Table {name} (2)",
        "Unseen errors of epsilon-BIF and t-CV are very close: no significant difference, but for "
        "sonar "
        "with the Gaussian kernel",
        all(text.startswith("sonar") for text in worse) if enough else None,
        f"BIF significantly worse in {len(worse)} of {tests} comparisons"
        + (f": {'; '.join(worse)}" if worse else ""),
    )


def _against_gacv(results: Results, name: str, rows: list[str], enough: bool) -> Verdict:
    scores = {
        row: [t_statistic(results, name, row, c, "GACV") for c in _bif(results, name)]
        for row in rows
    }
    better = [row for row, t in scores.items() if max(t) > SIGNIFICANT]
    worse = [row for row, t in scores.items() if min(t) < -SIGNIFICANT]
    return judge(
        f"Table {name} (3)",
        "BIF is significantly better than GACV on some sets and significantly worse on none",
        bool(better) and not worse if enough else None,
        f"better on {', '.join(better) or 'none'}; worse on {', '.join(worse) or 'none'}",
    )


def _times(results: Results, name: str) -> Verdict:
    rows = results.rows(name)
    ratio = float(
        np.median([results.mean(name, r, "5-CV") / results.mean(name, r, "0.1-BIF") for r in rows])
    )
    exact = float(
        np.median([results.mean(name, r, "5-CV") / results.mean(name, r, "exact-5") for r in rows])
    )
    gacv = float(
        np.median([results.mean(name, r, "0.1-BIF") / results.mean(name, r, "GACV") for r in rows])
    )
    return judge(
        f"Table {name}",
        "BIF takes much less time than CV, GACV less than BIF",
        ratio > 1.0 and gacv > 1.0,
        f"medians: 5-CV takes {number(ratio)} times as long as 0.1-BIF and {number(exact)} times "
        "as long as exact "
        f"5-fold; 0.1-BIF takes {number(gacv)} times as long as GACV",
    )
