"""Tanaka and Imai, IEICE 2019: exact k-fold of kernel ridge regression by one eigendecomposition.

Figure 1 is time against the number of lambdas, n = 2000, 5-fold and leave-one-out, of three
algorithms: the naive one (equation 12), that of An et al. (equation 14, "Fast") and the paper's
(equations 16 to 19, "Prop"). They are written here as the paper writes them, since equation 21
predicts where the second and third cross from the costs of those very steps; beside them run this
package's own "block" and "eigen", which never form the whole inverse and drop eigenvalues that do
not matter. Targets are noise, the kernel is exp(-(x - x')^2), there is no intercept, and the
scaling is "total", as in the paper.

The main reading takes Cholesky for equations and inverses, the variant "LU" takes LU. Times are
processor time of one thread, medians and minima over trials.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import linalg
from onefit.folds import Folds, leave_one_out
from onefit.heldout import Block, Eigen
from onefit.heldout.refit import refit_fold
from onefit.problem import Problem
from onefit_papers.agreement import Compared
from onefit_papers.data import Loader
from onefit_papers.ieice2019_algorithms import (
    INVERSES,
    SOLVERS,
    engine,
    fast,
    noise,
    prop,
    shifted,
)
from onefit_papers.ieice2019_verdicts import LU, RATIOS, crossing, panels, predicted, verdicts
from onefit_papers.journal import Row, Unit
from onefit_papers.render import number, table
from onefit_papers.results import MAIN, Published, Results
from onefit_papers.sweep import draw_folds

Array = NDArray[Any]

__all__ = ["COMPARED", "NAME", "TITLE", "cuts", "measure", "sections", "timed", "units", "verdicts"]

NAME = "ieice2019"
TITLE = "IEICE 2019: cross-validation of kernel ridge regression by eigendecomposition"
#: the paper prints no spread
COMPARED = Compared(())
#: figure 1's names, and ours
ALGORITHMS = ("naive", "Fast", "Prop", "block", "eigen")


def units(config: dict[str, Any]) -> list[Unit]:
    """The ratios of section 3, then one unit for each curve's point and trial."""
    found: list[Unit] = [
        {"kind": "ratios", "n": config["n"], "replicate": trial, "seed": config["seed"]}
        for trial in range(config["ratio_trials"])
    ]
    for trial in range(config["trials"]):
        for folds in config["folds"]:
            for count in config["counts"]:
                found.append(
                    {"kind": "times", "n": config["n"], "folds": folds, "count": count}
                    | {"replicate": trial, "seed": config["seed"], "naive": config["naive_folds"]}
                )
    return found


def cuts(config: dict[str, Any]) -> list[str]:
    """Where less was run than in the paper."""
    found = [
        f"{config['trials']} trials a point instead of 100",
        f"ratios from {config['ratio_trials']} trials instead of 1000",
        f"naive is timed at one lambda and {config['naive_folds']} folds at most, and scaled up",
    ]
    if config["n"] != 2000:
        found.append(f"n = {config['n']} instead of 2000")
    return found


def timed(unit: Unit) -> bool:
    """All of it is times."""
    return True


def measure(unit: Unit, loader: Loader) -> list[Row]:
    """Time the matrix operations, or all algorithms at one number of lambdas."""
    rng = np.random.default_rng([unit["seed"], unit["replicate"]])
    problem = noise(unit["n"], rng)
    if unit["kind"] == "ratios":
        return _operations(unit, problem)
    n, count = unit["n"], unit["count"]
    folds = draw_folds(n, unit["folds"], rng) if unit["folds"] else leave_one_out(n)
    lams = np.linspace(0.1, 1.0, count) if count > 1 else np.array([0.1])
    base = {"row": f"{_name(unit['folds'])}, {count}", "replicate": unit["replicate"]}
    times, errors = _run_all(problem, folds, lams, unit["naive"])
    rows: list[Row] = [
        {"table": "figure 1", "variant": variant, **base, "column": name, "value": value}
        for (name, variant), value in times.items()
    ]
    exact = errors["Prop", MAIN]
    return rows + [
        {"table": "agreement", "variant": variant, **base, "column": name}
        | {"value": float(np.abs(values - exact).max())}
        for (name, variant), values in errors.items()
        if name != "Prop"
    ]


def _name(folds: int) -> str:
    return f"{folds}-fold" if folds else "LOO"


def _operations(unit: Unit, problem: Problem) -> list[Row]:
    """Seconds of a product, a linear equation, an inverse, an eigendecomposition; their ratios."""
    M = shifted(problem, 0.1)
    product, eigen = _seconds(lambda: linalg.matmul(M, M)), _seconds(lambda: linalg.eigh(M))
    rows: list[Row] = []
    for variant, how in ((MAIN, "Cholesky"), (LU, "LU")):
        times = {"product": product, "R_E": eigen}
        times["R_L"] = _seconds(partial(SOLVERS[how], M, problem.Y))
        times["R_I"] = _seconds(partial(INVERSES[how], M.copy(order="F")))
        base = {"variant": variant, "row": "ratio", "replicate": unit["replicate"]}
        rows += [
            {"table": "operations", **base, "column": name, "value": value}
            for name, value in times.items()
        ]
        rows += [
            {"table": "ratios", **base, "column": name, "value": times[name] / product}
            for name in RATIOS
        ]
    return rows


def _seconds(work: Callable[[], Any]) -> float:
    start = process_time()
    work()
    return process_time() - start


Named = tuple[str, str]


def _run_all(
    problem: Problem, folds: Folds, lams: Array, naive_folds: int
) -> tuple[dict[Named, float], dict[Named, Array]]:
    """Seconds and held-out residuals of the last lambda, by algorithm and variant."""
    times: dict[Named, float] = {}
    residuals: dict[Named, Array] = {}
    algorithms: dict[Named, Callable[[], Array]] = {
        ("Fast", MAIN): lambda: fast(problem, folds, lams, INVERSES["Cholesky"]),
        ("Fast", LU): lambda: fast(problem, folds, lams, INVERSES["LU"]),
        ("Prop", MAIN): lambda: prop(problem, folds, lams),
        ("block", MAIN): lambda: engine(problem, folds, lams, Block()),
        ("eigen", MAIN): lambda: engine(problem, folds, lams, Eigen()),
    }
    for name, work in algorithms.items():
        start = process_time()
        residuals[name] = work()
        times[name] = process_time() - start
    some = range(len(folds)) if len(folds) <= naive_folds else range(naive_folds)
    start = process_time()
    for k in some:
        refit_fold(problem, float(lams[0]), folds.train[k], folds.test[k])
    spent = process_time() - start
    times["naive", MAIN] = spent * len(lams) * len(folds) / len(some)
    return times, residuals


def sections(results: Results, published: Published) -> list[str]:
    """The ratios, the crossover, and the two panels of figure 1."""
    parts = [
        "## Ratios to a matrix product",
        _ratios(results, published),
        "R_L is the solution of one positive definite system, R_I an inverse, both by Cholesky and "
        "by LU; R_E is a full symmetric eigendecomposition. The paper's are MATLAB's.",
        "## Crossover of Fast and Prop (equation 21)",
        _crossovers(results, published),
        "## Figure 1: seconds against the number of lambdas",
        "Processor time of one thread: medians over trials, and minima behind them. naive, Fast "
        "(An et al.) and Prop are the paper's algorithms; block and eigen are this package's.",
    ]
    for panel in panels(results):
        rows = [row for row in results.rows("figure 1") if row.startswith(f"{panel},")]
        lines = [
            [row.split(", ")[1], *(_shown(results, row, *name) for name in _curves())]
            for row in rows
        ]
        head = [name if variant == MAIN else f"{name}, {variant}" for name, variant in _curves()]
        parts += [f"### {panel}", table(["lambdas", *head], lines)]
    return parts


def _curves() -> list[Named]:
    return [*((name, MAIN) for name in ALGORITHMS[:2]), ("Fast", LU)] + [
        (name, MAIN) for name in ALGORITHMS[2:]
    ]


def _shown(results: Results, row: str, name: str, variant: str) -> str:
    middle = results.median("figure 1", row, name, variant)
    least = results.least("figure 1", row, name, variant)
    return f"{number(middle)}, {number(least)}" if np.isfinite(middle) else "-"


def _ratios(results: Results, published: Published) -> str:
    lines = []
    for name in RATIOS:
        line = [name]
        for variant in (MAIN, LU):
            line.append(number(results.median("ratios", "ratio", name, variant)))
            least = results.least("operations", "ratio", name, variant)
            line.append(number(least / results.least("operations", "ratio", "product", variant)))
        lines.append([*line, number(published.cell("text", "ratio", name).mean)])
    return table(["", "Cholesky, median", "of minima", "LU, median", "of minima", "paper"], lines)


def _crossovers(results: Results, published: Published) -> str:
    lines = []
    for panel in panels(results):
        line = [panel, number(published.cell("eq. 21", "crossover", panel).mean)]
        for variant in (MAIN, LU):
            own = results.reading(variant)
            line += [
                number(predicted(own, panel, 2000)),
                f"{crossing(own, panel, 'Fast', 'Prop'):g}",
            ]
        lines.append([*line, f"{crossing(results, panel, 'block', 'eigen'):g}"])
    head = ["", "paper's ratios", "Cholesky's", "seen", "LU's", "seen", "eigen beats block from"]
    return table(head, lines) + (
        "\n\nRatios give the right-hand side of equation 21; seen is the smallest measured number "
        "of lambdas from which on Prop stays ahead of Fast (inf: never in the range)."
    )
