"""Tanaka and Imai, IEICE 2019: exact k-fold of kernel ridge regression by one eigendecomposition.

Figure 1 is time against the number of lambdas, n = 2000, 5-fold and leave-one-out, of three
algorithms: the naive one (equation 12), that of An et al. (equation 14, "Fast") and the paper's
(equations 16 to 19, "Prop"). They are written here as the paper writes them, since equation 21
predicts where the second and third cross from the costs of those very steps; beside them run this
package's own "block" and "eigen", which never form the whole inverse and drop eigenvalues that do
not matter. Targets are noise, the kernel is exp(-(x - x')^2), there is no intercept, and the
scaling is "total", as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import linalg
from onefit.folds import Folds, leave_one_out
from onefit.heldout import Block, Eigen, HeldOutMethod
from onefit.heldout.refit import refit_fold
from onefit.kernels.stationary import Gaussian
from onefit.losses import Squared
from onefit.problem import Problem
from onefit.reproduce.claims import Verdict, judge
from onefit.reproduce.data import Loader
from onefit.reproduce.journal import Row, Unit
from onefit.reproduce.render import number, table
from onefit.reproduce.results import MAIN, Published, Results
from onefit.reproduce.sweep import draw_folds

Array = NDArray[Any]

__all__ = ["NAME", "SERIAL", "TITLE", "cuts", "measure", "sections", "units", "verdicts"]

NAME = "ieice2019"
TITLE = "IEICE 2019: cross-validation of kernel ridge regression by eigendecomposition"
SERIAL = True
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


def measure(unit: Unit, loader: Loader) -> list[Row]:
    """Time the matrix operations, or all algorithms at one number of lambdas."""
    rng = np.random.default_rng([unit["seed"], unit["replicate"]])
    problem = _problem(unit["n"], rng)
    if unit["kind"] == "ratios":
        return _ratios(unit, problem)
    n, count = unit["n"], unit["count"]
    folds = draw_folds(n, unit["folds"], rng) if unit["folds"] else leave_one_out(n)
    lams = np.linspace(0.1, 1.0, count) if count > 1 else np.array([0.1])
    row = _name(unit["folds"])
    base = {
        "table": "figure 1",
        "variant": MAIN,
        "row": f"{row}, {count}",
        "replicate": unit["replicate"],
    }
    times, errors = _run_all(problem, folds, lams, unit["naive"])
    rows: list[Row] = [{**base, "column": name, "value": value} for name, value in times.items()]
    worst = {name: float(np.abs(values - errors["Prop"]).max()) for name, values in errors.items()}
    rows += [
        {**base, "table": "agreement", "column": name, "value": value}
        for name, value in worst.items()
        if name != "Prop"
    ]
    return rows


def _name(folds: int) -> str:
    return f"{folds}-fold" if folds else "LOO"


def _problem(n: int, rng: np.random.Generator) -> Problem:
    x = rng.uniform(-10.0, 10.0, (n, 1))
    y = rng.standard_normal((n, 1))
    return Problem(Gaussian(1.0)(x), y, np.ones(n), Squared(), False, "total")


def _ratios(unit: Unit, problem: Problem) -> list[Row]:
    """R_L, R_I, R_E: a linear equation, an inverse, an eigendecomposition over a product."""
    M = linalg.fortran(problem.K)
    M[np.diag_indices_from(M)] += 0.1
    product = _seconds(lambda: linalg.matmul(M, M))
    work: dict[str, Callable[[], Any]] = {
        "R_L": lambda: linalg.solve_spd(M, problem.Y),
        "R_I": lambda: linalg.inverse_spd(M.copy(order="F")),
        "R_E": lambda: linalg.eigh(M),
    }
    base = {"table": "ratios", "variant": MAIN, "row": "ratio", "replicate": unit["replicate"]}
    return [{**base, "column": name, "value": _seconds(f) / product} for name, f in work.items()]


def _seconds(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def _run_all(
    problem: Problem, folds: Folds, lams: Array, naive_folds: int
) -> tuple[dict[str, float], dict[str, Array]]:
    """Seconds and held-out residuals of the last lambda, by algorithm."""
    times: dict[str, float] = {}
    residuals: dict[str, Array] = {}
    algorithms: dict[str, Callable[[], Array]] = {
        "Fast": lambda: _fast(problem, folds, lams),
        "Prop": lambda: _prop(problem, folds, lams),
        "block": lambda: _engine(problem, folds, lams, Block()),
        "eigen": lambda: _engine(problem, folds, lams, Eigen()),
    }
    for name, work in algorithms.items():
        start = perf_counter()
        residuals[name] = work()
        times[name] = perf_counter() - start
    some = range(len(folds)) if len(folds) <= naive_folds else range(naive_folds)
    start = perf_counter()
    for k in some:
        refit_fold(problem, float(lams[0]), folds.train[k], folds.test[k])
    times["naive"] = (perf_counter() - start) * len(lams) * len(folds) / len(some)
    return times, residuals


def _fast(problem: Problem, folds: Folds, lams: Array) -> Array:
    """An et al., equation 14: the whole inverse for every lambda."""
    for lam in lams:
        M = linalg.fortran(problem.K)
        M[np.diag_indices_from(M)] += lam
        inverse = linalg.inverse_spd(M)
        alpha = linalg.matmul(inverse, problem.Y)
        residuals = _residuals(folds, alpha, np.diagonal(inverse), partial(_submatrix, inverse))
    return residuals


def _prop(problem: Problem, folds: Folds, lams: Array) -> Array:
    """The paper's algorithm, equations 16 to 19: one eigendecomposition for all lambdas."""
    values, vectors = linalg.eigh(linalg.fortran(problem.K), overwrite=True)
    q, loo = linalg.matmul(vectors.T, problem.Y), len(folds) == problem.n
    for lam in lams:
        damped = 1.0 / (values + lam)
        alpha = linalg.matmul(vectors, np.asfortranarray(damped[:, None] * q))
        diagonal = np.einsum("ij,j,ij->i", vectors, damped, vectors) if loo else damped
        residuals = _residuals(folds, alpha, diagonal, partial(_update, vectors, damped))
    return residuals


def _submatrix(P: Array, rows: Array) -> Array:
    return np.asarray(P[np.ix_(rows, rows)])


def _update(vectors: Array, damped: Array, rows: Array) -> Array:
    """M_k of equation 18."""
    part = np.asfortranarray(vectors[rows])
    return linalg.matmul(np.asfortranarray(part * damped), part.T)


def _residuals(
    folds: Folds, alpha: Array, diagonal: Array, block: Callable[[Array], Array]
) -> Array:
    """(P_SS)^-1 alpha_S, fold by fold; a division where every fold is one row."""
    if len(folds) == folds.n:
        return np.asarray((alpha / diagonal[:, None])[folds.rows])
    return np.concatenate([linalg.solve_spd(block(rows), alpha[rows]) for rows in folds.test])


def _engine(problem: Problem, folds: Folds, lams: Array, method: HeldOutMethod) -> Array:
    held = method.prepare(problem, folds).predict(lams)
    return np.asarray(problem.Y[folds.rows] - held[-1].values)


def sections(results: Results, published: Published) -> list[str]:
    """The ratios, the crossover, and the two panels of figure 1."""
    ratios = [
        [
            name,
            number(results.mean("ratios", "ratio", name)),
            number(published.cell("text", "ratio", name).mean),
        ]
        for name in ("R_L", "R_I", "R_E")
    ]
    parts = [
        "## Ratios to a matrix product",
        table(["", "ours", "paper"], ratios),
        "R_L is a Cholesky solution of one positive definite system, R_I a Cholesky inverse, R_E "
        "a full "
        "symmetric eigendecomposition; the paper's are MATLAB's.",
        "## Crossover of Fast and Prop (equation 21)",
        _crossovers(results, published),
        "## Figure 1: seconds against the number of lambdas",
        "naive, Fast (An et al.) and Prop are the paper's algorithms; block and eigen are this "
        "package's.",
    ]
    for panel in _panels(results):
        rows = [row for row in results.rows("figure 1") if row.startswith(f"{panel},")]
        lines = [
            [
                row.split(", ")[1],
                *(number(results.mean("figure 1", row, name)) for name in ALGORITHMS),
            ]
            for row in rows
        ]
        parts += [f"### {panel}", table(["lambdas", *ALGORITHMS], lines)]
    return parts


def _panels(results: Results) -> list[str]:
    return list(dict.fromkeys(row.split(", ")[0] for row in results.rows("figure 1")))


def _predicted(results: Results, panel: str, n: int) -> float:
    """Equation 21 with the ratios measured here."""
    ell = n if panel == "LOO" else int(panel.split("-")[0])
    inverse, eigen = results.mean("ratios", "ratio", "R_I"), results.mean("ratios", "ratio", "R_E")
    return ell * eigen / (ell * inverse - 1.0)


def _crossing(results: Results, panel: str, slow: str, fast: str) -> float:
    """The measured number of lambdas from which on ``fast`` wins; infinity for never."""
    rows = [row for row in results.rows("figure 1") if row.startswith(f"{panel},")]
    wins = [results.mean("figure 1", r, fast) < results.mean("figure 1", r, slow) for r in rows]
    counts = [int(row.split(", ")[1]) for row in rows]
    for i, count in enumerate(counts):
        if all(wins[i:]):
            return float(count)
    return float("inf")


def _crossovers(results: Results, published: Published) -> str:
    lines = []
    for panel in _panels(results):
        lines.append(
            [
                panel,
                number(published.cell("eq. 21", "crossover", panel).mean),
                number(_predicted(results, panel, 2000)),
                f"{_crossing(results, panel, 'Fast', 'Prop'):g}",
                f"{_crossing(results, panel, 'block', 'eigen'):g}",
            ]
        )
    head = [
        "",
        "paper's ratios",
        "our ratios",
        "seen: Prop beats Fast from",
        "seen: eigen beats block from",
    ]
    return table(head, lines) + (
        "\n\nThe first two are the right-hand side of equation 21; the last two are the smallest "
        "measured "
        "number of lambdas from which on the second algorithm stays ahead (inf: never in the "
        "range)."
    )


def verdicts(results: Results, published: Published) -> list[Verdict]:
    """The sentences of sections 3 and 6."""
    ratios = [results.mean("ratios", "ratio", name) for name in ("R_L", "R_I", "R_E")]
    shown = ", ".join(number(r) for r in ratios)
    found = [
        judge(
            "section 3",
            "R_L < 1 < R_I < R_E",
            ratios[0] < 1 < ratios[1] < ratios[2],
            f"measured {shown}",
        )
    ]
    for panel in _panels(results):
        predicted, seen = (
            _predicted(results, panel, 2000),
            _crossing(results, panel, "Fast", "Prop"),
        )
        counts = sorted(
            int(r.split(", ")[1]) for r in results.rows("figure 1") if r.startswith(f"{panel},")
        )
        after = [c for c in counts if c > predicted]
        expected = float(after[0]) if after else float("inf")
        near = bool(counts) and _steps_apart(counts, seen, expected) <= 1
        found.append(
            judge(
                "section 6",
                f"{panel}: the eigendecomposition is faster than An et al. except for few lambdas, "
                "approximately as equation 21 says",
                near if after else None,
                f"predicted beyond {number(predicted)}, seen from {seen:g} on (measured at "
                f"{', '.join(map(str, counts))}); block and eigen of this package cross at "
                f"{_crossing(results, panel, 'block', 'eigen'):g}",
            )
        )
    worst = max(
        (
            results.mean("agreement", row, c)
            for row in results.rows("agreement")
            for c in results.columns("agreement")
        ),
        default=float("nan"),
    )
    found.append(
        judge(
            "equations 14 and 16",
            "Both give the residuals of the refits exactly",
            worst < 1e-8,
            f"largest difference between the algorithms {worst:.1e}",
        )
    )
    return found


def _steps_apart(counts: list[int], one: float, two: float) -> int:
    """How many measured points lie between two crossovers."""
    places = [counts.index(int(c)) if np.isfinite(c) else len(counts) for c in (one, two)]
    return abs(places[0] - places[1])
