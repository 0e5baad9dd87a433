"""Liu, Jiang and Liao, ICML 2014: k-fold cross-validation from Bouligand influence functions.

Tables 1 and 2: LS-SVM with intercept on random halves of 20 data sets, parameters chosen by ELOO,
kCV and BIF-kCV; test errors and times. Figure 1: mean square discrepancy between held-out
predictions of kCV and BIF-kCV by the order of the series. Beside the paper's columns stand "limit"
(order infinity in closed form) and "exact" (the leave-out formula from one eigendecomposition); for
the squared loss both are kCV itself.

Not in the paper, and set here: features are mapped to [-1, 1], which of three scalings agrees best
with Table 1 (standardised ones are tried beside); kCV and BIF judge labels by the error rate, ELOO
by squared error (Cawley's PRESS); ties go to the smallest tau, then the smallest lambda; footnote
2's guard is :func:`onefit.criteria.near_identity`, for BIF alone.

Each criterion is timed by itself in the first replicates of the main reading, except on the sets
named ``large``. Elsewhere nothing is timed, folds of different number share their factors, "limit"
is left out, and "exact" stands for kCV by refitting.

That guard turned out lax. The settings' ``guards`` are others: kernels whose mean off-diagonal
entry is below a bound are left out, for BIF or for every criterion. They are variants that cost
nothing, the values on the grid being there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria import Criterion, CrossValidation, LeaveOneOut
from onefit.criteria.pointwise import Pointwise
from onefit.folds import Folds
from onefit.heldout import Eigen, Influence, Limit
from onefit.kernels.stationary import Gaussian
from onefit.losses import Squared
from onefit_papers.agreement import Compared
from onefit_papers.data import DataSet, Loader, scale
from onefit_papers.icml2014_plain import refits, series
from onefit_papers.icml2014_verdicts import verdicts
from onefit_papers.journal import Row, Unit
from onefit_papers.render import beside, means, number, other_readings, table, times_beside
from onefit_papers.results import Published, Results
from onefit_papers.sweep import Family, Judged, Sweep, Unseen, draw_folds, misses, seed_of
from onefit_papers.variants import is_main, units_of

Array = NDArray[Any]

__all__ = ["COMPARED", "NAME", "TITLE", "cuts", "measure", "sections", "timed", "units", "verdicts"]

NAME = "icml2014"
TITLE = "ICML 2014: efficient approximation of cross-validation by Bouligand influence functions"
COMPARED = Compared(("1",))

#: settings that a reading may have of its own
SETTINGS = ("seed", "max_rows", "lam", "folds", "order", "tau", "scaling", "drop", "label_from")


def units(config: dict[str, Any]) -> list[Unit]:
    """One unit for each reading, set and replicate; times, guards and figures in the main one."""
    found = units_of(config, SETTINGS)
    for unit in found:
        main, large = is_main(unit), unit["set"] in config["large"]
        early = unit["replicate"] < config["timed_replicates"]
        unit["timed"] = unit["refit"] = main and early and not large
        unit["orders"] = config["orders"] if main and unit["set"] in config["figure_sets"] else []
        unit["guards"] = config["guards"] if main else []
    return found


def timed(unit: Unit) -> bool:
    """Whether the times of a unit are reported."""
    return bool(unit["timed"])


def cuts(config: dict[str, Any]) -> list[str]:
    """Where less was run than in the paper."""
    found = [f"at most {config['max_rows']} rows of a set, drawn again in each replicate"]
    if config["replicates"] < 10:
        found.append(f"{config['replicates']} replicates instead of 10")
    missing = 20 - len(config["sets"])
    if missing:
        found.append(f"{missing} of the 20 sets left out")
    found.append(
        f"times, refits and the limit of the series in {config['timed_replicates']} replicate(s)"
        + (f", none of them of {', '.join(config['large'])}" if config["large"] else "")
    )
    return found


def measure(unit: Unit, loader: Loader) -> list[Row]:
    """Choose by every criterion on one random half, and test on the other."""
    data = loader.load(unit["set"])
    family, test, folds = _prepare(unit, data)
    loss = misses if data.labelled else "squared"
    columns = (_timed_columns if timed(unit) else _columns)(unit, family, folds, loss)
    tested = Judged(test, family.predict)
    base = {"variant": unit["variant"], "row": unit["set"], "replicate": unit["replicate"]}
    rows: list[Row] = []
    for column, sweep in columns.items():
        error = _tested(unit, family, tested, sweep) | {"source": data.source}
        rows.append({**base, "table": "1", "column": column, **error})
        if timed(unit) and (unit["refit"] or not column.endswith("CV") or "-" in column):
            rows.append({**base, "table": "2", "column": column, "value": sweep.seconds})
    rows += _guarded(unit, family, tested, columns, base)
    return rows + _discrepancies(unit, family, folds, columns, base)


def _tested(unit: Unit, family: Family, tested: Judged, sweep: Sweep) -> Row:
    """The test error of a criterion's choice, and the choice."""
    kernel, lam = sweep.winner
    error = tested.error(sweep.winner)
    return {"value": error, "tau": 2.0 ** (unit["tau"][0] + kernel), "lam": family.lams[lam]}


def _guarded(
    unit: Unit, family: Family, tested: Judged, columns: dict[str, Sweep], base: Row
) -> list[Row]:
    """The same with narrow kernels left out, for the columns that a guard names or for all."""
    rows: list[Row] = []
    if not unit["guards"]:
        return rows
    weights = family.off_diagonals()
    for guard in unit["guards"]:
        kept = weights >= guard["at_least"]
        if not kept.any():
            continue
        for column, sweep in columns.items():
            if column.startswith(guard["columns"]):
                error = _tested(unit, family, tested, sweep.among(kept))
                rows.append(
                    {**base, "variant": guard["name"], "table": "1", "column": column} | error
                )
    return rows


def _prepare(unit: Unit, data: DataSet) -> tuple[Family, Unseen, dict[int, Folds]]:
    X, y = np.delete(data.X, unit["drop"] or [], axis=1), data.y
    if unit["label_from"] is not None:
        y = np.where(X[:, unit["label_from"]] >= 3.0, 1.0, -1.0)
        X = np.delete(X, unit["label_from"], axis=1)
    X = scale(X, unit["scaling"])
    rng = np.random.default_rng(seed_of(unit["seed"], unit["set"], unit["replicate"]))
    order = rng.permutation(len(y))[: unit["max_rows"]]
    train, rest = np.split(order, [len(order) // 2])
    first, last = unit["tau"]
    kernels = [Gaussian(0.5 / 2.0**i) for i in range(first, last + 1)]
    lams = [2.0**i for i in range(unit["lam"][0], unit["lam"][1] + 1)]
    family = Family(X[train], y[train], kernels, lams, Squared())
    folds = {k: draw_folds(len(train), k, rng) for k in unit["folds"]}
    return family, Unseen(X[rest], y[rest], data.labelled), folds


def _columns(
    unit: Unit, family: Family, folds: dict[int, Folds], loss: str | Pointwise
) -> dict[str, Sweep]:
    """Every criterion of the paper, with exact held-out values instead of refits."""
    loo: dict[str, Criterion] = {"loo": LeaveOneOut(guard=False)}
    found, parts = {"ELOO": family.sweep(loo)["loo"]}, [*folds.values()]
    plain, guarded = CrossValidation(loss=loss, guard=False), CrossValidation(loss=loss)
    exact = family.sweep_together(plain, Eigen(), parts)
    cut = family.sweep_together(guarded, Influence(order=unit["order"]), parts)
    for k, one, two in zip(folds, exact, cut, strict=True):
        found |= {f"{k}CV": one, f"BIF-{k}CV": two, f"exact-{k}CV": one}
    return found


def _timed_columns(
    unit: Unit, family: Family, folds: dict[int, Folds], loss: str | Pointwise
) -> dict[str, Sweep]:
    """Every criterion of the paper by itself, and the two that replace it."""
    plain: dict[str, Criterion] = {"cv": CrossValidation(loss=loss, guard=False)}
    loo: dict[str, Criterion] = {"loo": LeaveOneOut(guard=False)}
    found = {"ELOO": family.sweep(loo)["loo"]}
    for k in unit["folds"]:
        exact = family.sweep(plain, Eigen(), folds[k])["cv"]
        found[f"{k}CV"] = refits(family, folds[k], loss) if unit["refit"] else exact
        found[f"BIF-{k}CV"] = series(family, folds[k], loss, unit["order"])
        found[f"limit-{k}CV"] = family.sweep(plain, Limit(), folds[k])["cv"]
        found[f"exact-{k}CV"] = exact
    return found


def _discrepancies(
    unit: Unit, family: Family, folds: dict[int, Folds], columns: dict[str, Sweep], base: Row
) -> list[Row]:
    """Figure 1, at kCV's choice, and at the smallest lambda with the same kernel."""
    if not unit["orders"]:
        return []
    spread = float(np.var(family.y))
    rows: list[Row] = [{**base, "table": "variance", "column": "y", "value": spread}]
    for k in unit["folds"]:
        kernel, lam = columns[f"{k}CV"].winner
        lams = [family.lams[lam], family.lams[0]]
        honest = family.held_out(kernel, Eigen(), folds[k], lams)
        for order in [*unit["orders"], 0]:
            method = Influence(order=order) if order else Limit()
            expanded = family.held_out(kernel, method, folds[k], lams)
            names = "figure 1", "figure 1 at the smallest lambda"
            for table_name, one, two in zip(names, honest, expanded, strict=True):
                assert one is not None
                assert two is not None
                gap = float(np.mean((one.values - two.values) ** 2))
                column = f"{k}CV, order {order}" if order else f"{k}CV, limit"
                rows.append({**base, "table": table_name, "column": column, "value": gap})
    return rows


def sections(results: Results, published: Published) -> list[str]:
    """Tables 1 and 2, variants, figure 1."""
    columns = ["EP", *results.columns("1")]
    return [
        "## Table 1: test errors (% for labels, mean squared error else)",
        "In each cell: **ours** ± standard deviation over replicates, the paper's, and the "
        "difference in the paper's standard deviations. The column EP quotes the paper.",
        beside(results, published, "1", columns),
        "Cells that are doubtful in our copy of the paper: "
        + "; ".join(published.notes("1") + published.notes("2")[:1])
        + ".",
        "## Table 2: seconds for the whole grid of one replicate",
        "In each cell: our **median** and minimum over the replicates that were timed, processor "
        "time of one thread, and the paper's mean, from a 3.4 GHz processor of 2013. Compare "
        "ratios.",
        times_beside(results, published, "2", columns),
        "## Table 1: other readings of what the paper leaves open",
        other_readings(results, published, "1"),
        "## Figure 1: mean square discrepancy of held-out predictions, mean over replicates",
        "At the parameters that kCV chose:",
        means(results, "figure 1"),
        "Of it, at order 3, in percent of the variance of y:",
        _of_variance(results),
        "With the same kernel at the smallest lambda of the grid, where the series converges "
        "slowest:",
        means(results, "figure 1 at the smallest lambda"),
    ]


def _of_variance(results: Results) -> str:
    rows = results.rows("variance")
    columns = [c for c in results.columns("figure 1") if c.endswith("order 3")]
    lines = []
    for column in columns:
        shares = [
            results.mean("figure 1", row, column) / results.mean("variance", row, "y")
            for row in rows
        ]
        lines.append([column, *(number(100.0 * share) for share in shares)])
    return table(["", *rows], lines) if rows else "Not measured."
