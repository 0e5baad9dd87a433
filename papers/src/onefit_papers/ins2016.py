"""Liu and Liao, Information Sciences 2016: granularity selection for cross-validation of the SVM.

Table 1: folds and orders for a wanted accuracy. Tables 3 and 4: test errors and times of
epsilon-BIF (the influence series of the smoothed hinge), of t-fold cross-validation of the SVM
itself and of GACV, on random halves of ten sets, with Gaussian and polynomial kernels; beside them
"exact", t-fold of the smoothed hinge without approximation. Folds of the same number are the same
rows in all columns. Times, and "exact", are those of the first replicate.

In the main reading the SVM has no intercept, as in the paper's formulas. For each criterion the
machine tested is its own: the SVM for t-CV, the smoothed hinge for the others. Folds and order are
those of the paper's Table 1 (lambda = 1). Not in the paper, and set here: features are mapped to
[-1, 1]; ties go to the first kernel, then the smallest lambda; a prediction of exactly zero is an
error (the paper's I(c) counts it as right, and then the narrowest kernel, which predicts nothing,
would always win).

The variants have what likely explains the differences. With lambda = 2^-3 or more the SVM has
C <= 0.04 on every set and often answers the majority; from 2^-9 on it does not. The paper assumes
K(x, x) <= 1, which polynomials meet if they are normalised. And libsvm has an intercept. The paper
says that the chosen parameters are tested, not by which machine: a variant may be read once more
(``tested``), its choices tested by the SVM whoever made them, and BIF kept from kernels near the
identity as in the authors' paper of 2014.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria import Criterion, CrossValidation, Gacv
from onefit.folds import Folds
from onefit.heldout import Exact, Influence
from onefit.kernels import Kernel, Normalized, Polynomial
from onefit.kernels.stationary import Gaussian
from onefit.losses import SmoothedHinge
from onefit_papers import ins2016_svm as svm
from onefit_papers.agreement import Compared
from onefit_papers.data import Loader, scale
from onefit_papers.ins2016_bounds import granularity
from onefit_papers.ins2016_verdicts import kinds, verdicts
from onefit_papers.journal import Row, Unit
from onefit_papers.render import beside, other_readings, table, times_beside
from onefit_papers.results import Published, Results
from onefit_papers.sweep import Family, Judged, Sweep, Unseen, draw_folds, misses, seed_of
from onefit_papers.variants import is_main, units_of

Array = NDArray[Any]

__all__ = ["COMPARED", "NAME", "TITLE", "cuts", "measure", "sections", "timed", "units", "verdicts"]

NAME = "ins2016"
TITLE = "Information Sciences 2016: granularity selection for cross-validation of the SVM"
COMPARED = Compared(("3 gaussian", "3 polynomial"))

#: settings that a reading may have of its own
SETTINGS = (
    *("seed", "kind", "sigma", "degree", "normalised", "lam", "delta", "accuracies", "folds"),
    *("scaling", "machine", "refit_sets", "tested"),
)


def units(config: dict[str, Any]) -> list[Unit]:
    """One unit for each reading, set and replicate; refits and times in the first only."""
    found = units_of(config, SETTINGS)
    for unit in found:
        first = unit["replicate"] == 0
        unit["timed"] = first and is_main(unit)
        unit["refit"] = first and unit["set"] in unit.pop("refit_sets")
    return found


def timed(unit: Unit) -> bool:
    """Whether the times of a unit are reported."""
    return bool(unit["timed"])


def cuts(config: dict[str, Any]) -> list[str]:
    """Where less was run than in the paper."""
    found = []
    if config["replicates"] < 10:
        found.append(f"{config['replicates']} replicates instead of 10")
    for reading in config.get("variants", []):
        missing = [name for name in config["sets"] if name not in reading.get("sets", ())]
        if reading["name"] == "main" and missing:
            found.append(
                f"main reading of the {reading['kind']} kernel without {', '.join(missing)}"
            )
    found.append(
        "times, and t-CV by fitting the SVM again, in the first replicate, the latter on "
        f"{', '.join(config['refit_sets'])}; elsewhere t-CV is that of the hinge rounded over "
        f"{svm.NARROW:g}, by the exact engine"
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
    test, machine = Unseen(X[rest], data.y[rest], True), unit["machine"]
    smooth = Judged(test, family.predict)
    itself = Judged(test, lambda winner, X: svm.predict(family, winner, X, machine))
    smoothed = _smoothed(unit, family)
    errors = {column: (sweep, smooth.error(sweep.winner)) for column, sweep in smoothed.items()}
    folds = [_folds(unit, k, len(train)) for k in unit["folds"]]
    apart: list[Row] = []
    for part, sweep in zip(folds, svm.rounded(family, folds, machine), strict=True):
        column = f"{len(part)}-CV"
        if unit["refit"]:
            honest = svm.sweep(family, part, machine)
            gap = itself.error(sweep.winner) - itself.error(honest.winner)
            apart.append({"table": f"apart {unit['kind']}", "column": column, "value": gap})
            sweep = honest
        errors[column] = sweep, itself.error(sweep.winner)
    rows = _rows(unit, errors, family, data.source) + [_base(unit) | row for row in apart]
    if unit["tested"]:
        for column, sweep in _guarded(smoothed, family, unit["tested"]["at_least"]).items():
            errors[column] = sweep, itself.error(sweep.winner)
        other = unit | {"variant": unit["tested"]["name"], "timed": False}
        rows += _rows(other, errors, family, data.source)
    return rows


def _guarded(sweeps: dict[str, Sweep], family: Family, at_least: float) -> dict[str, Sweep]:
    """The same without kernels near the identity for BIF, whose series makes them look good."""
    kept = family.off_diagonals() >= at_least
    return {
        column: sweep.among(kept) if column.endswith("BIF") else sweep
        for column, sweep in sweeps.items()
    }


def _rows(
    unit: Unit, errors: dict[str, tuple[Sweep, float]], family: Family, source: str
) -> list[Row]:
    rows: list[Row] = []
    for column, (sweep, error) in errors.items():
        kernel, lam = sweep.winner
        base = _base(unit) | {"column": column}
        chosen = {"kernel": str(family.kernels[kernel]), "lam": family.lams[lam], "source": source}
        rows.append({**base, "table": f"3 {unit['kind']}", "value": error, **chosen})
        if timed(unit) and np.isfinite(sweep.seconds):
            rows.append({**base, "table": f"4 {unit['kind']}", "value": sweep.seconds})
    return rows


def _base(unit: Unit) -> Row:
    return {"variant": unit["variant"], "row": unit["set"], "replicate": unit["replicate"]}


def _kernels(unit: Unit) -> list[Kernel]:
    if unit["kind"] == "gaussian":
        return [Gaussian(0.5 / 2.0**i) for i in range(unit["sigma"][0], unit["sigma"][1] + 1)]
    plain = [Polynomial(1.0, degree=d) for d in range(unit["degree"][0], unit["degree"][1] + 1)]
    return [Normalized(kernel) for kernel in plain] if unit["normalised"] else [*plain]


def _folds(unit: Unit, k: int, n: int) -> Folds:
    """The same folds for every criterion that uses k of them."""
    seed = seed_of(unit["seed"], unit["set"], unit["replicate"], k)
    return draw_folds(n, k, np.random.default_rng(seed))


def _smoothed(unit: Unit, family: Family) -> dict[str, Sweep]:
    """epsilon-BIF and GACV, and exact where times are reported."""
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
    for k in sorted(counts) if timed(unit) else []:
        found[f"exact-{k}"] = family.sweep(judged, Exact(), _folds(unit, k, n))[""]
    return found


def sections(results: Results, published: Published) -> list[str]:
    """Tables 1, 3 and 4, and the variants of Table 3."""
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
        "In each cell of Table 3: **ours** ± standard deviation over replicates, the paper's, and "
        "the difference in the paper's standard deviations. The columns exact are of the first "
        "replicate.",
    ]
    for kind in kinds(results):
        parts += [
            f"## Table 3: test errors (%), {kind} kernel",
            beside(results, published, f"3 {kind}", _columns(results, published, f"3 {kind}")),
            f"## Table 3, {kind} kernel: other readings of what the paper leaves open",
            other_readings(results, published, f"3 {kind}"),
        ]
    parts += [
        "## t-CV by the rounded hinge beside t-CV by fitting the SVM again",
        _beside_refits(results),
        "In each cell of Table 4: processor time of one thread, in the first replicate, and the "
        "paper's mean. Compare ratios.",
    ]
    for kind in kinds(results):
        parts += [
            f"## Table 4: seconds for the whole grid of one replicate, {kind} kernel",
            times_beside(
                results, published, f"4 {kind}", _columns(results, published, f"4 {kind}")
            ),
        ]
    return parts


def _beside_refits(results: Results) -> str:
    """How far apart the test errors are where both chose."""
    gaps = [
        float(results.values(name, row, column, variant)[0])
        for name in dict.fromkeys(row["table"] for row in results.all)
        if name.startswith("apart")
        for variant in results.variants(name)
        for row in results.rows(name, variant)
        for column in results.columns(name)
    ]
    if not gaps:
        return "Not measured."
    same = sum(gap == 0.0 for gap in gaps)
    return (
        f"Of {len(gaps)} cells of set, reading and number of folds in the first replicate, the "
        f"test errors of the two choices are equal in {same}; the mean difference is "
        f"{float(np.mean(gaps)):+.2f} points, the largest {max(gaps, key=abs):+.2f}."
    )


def _columns(results: Results, published: Published, name: str) -> list[str]:
    return list(dict.fromkeys([*published.columns(name), *results.columns(name)]))
