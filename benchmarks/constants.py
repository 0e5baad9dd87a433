"""How much the tuning constants of the engine matter: each a quarter to four times its value.

A search runs with every constant as it is and changed, in turn, round after round, in one process
of one thread; medians of processor time count. A change acts in all modules that imported the
constant. The table has the time relative to that of the present value, and the share of certified
splits where it differs. A constant that changes neither within a factor of four is a round number,
and could be another.
"""

from __future__ import annotations

import importlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import _harness as harness
import numpy as np
from _data import friedman, friedman_classes
from _harness import Row

FACTORS = (0.25, 0.5, 2.0, 4.0)

#: search -> the constants that act in it
CONSTANTS = {
    "ridge, eigen": (
        "linalg.shift_interpolation.CALL_COST_IN_EIGENVALUES",
        "linalg.shift_interpolation.MAX_EIGENVALUE_RATIO",
        "linalg.shift_interpolation.SAMPLE_POINTS",
        "linalg.shift_interpolation.SMALL_EIGENVALUE_SHARE",
        "linalg.shift_interpolation.WEIGHT_TOLERANCE",
        "linalg.partial_eigh.MIN_BLOCK_ROWS",
    ),
    "hinge, exact": (
        "columns.certify.MAX_EXTRA_STEPS",
        "columns.certify.WANTED_SHARE_OF_TOLERANCE",
        "columns.newton.MAX_FULL_STEPS",
        "columns.newton.MAX_NEWTON_STEPS",
        "columns.newton.MAX_OBJECTIVE_RATIO",
        "columns.newton.MAX_SLOPE_SHARE",
        "columns.newton.MIN_DECREASE_SHARE",
        "heldout.path.MAX_BATCH_COLUMNS",
        "systems.update.MAX_CHANGED_SHARE",
    ),
    "Huber of narrow kernels, exact": (
        "heldout.path.EXPECTED_NEWTON_STEPS",
        "systems.float32_cg.DROPPED_ENTRY",
        "systems.float32_cg.MIN_FLOAT32_CURVED_ROWS",
        "inverse.krylov.CG_RESIDUAL",
    ),
    "log, exact": (
        "columns.newton.LINEAR_TOLERANCE_IN_SCALES",
        "columns.newton.MAX_FIXED_CURVATURE_STEPS",
        "columns.newton.MAX_RELATIVE_STEP",
    ),
    "narrow corners, fits": (
        "columns.solve.MIN_WIDENING_RATIO",
        "columns.solve.WIDENING_RATIO",
    ),
    "ridge, iterative": (
        "heldout.iterative.ITERATION_SHARE_OF_BOUND",
        "inverse.krylov.RESIDUAL_FLOOR_IN_ROUNDINGS",
        "inverse.low_rank.BLOCK_COLUMNS",
        "inverse.low_rank.CG_STEPS_PER_ROOT_CONDITION",
        "inverse.low_rank.MAX_BLOCKS_WITHOUT_GAIN",
        "inverse.low_rank.MAX_LANDMARKS",
        "inverse.low_rank.SPECTRUM_SAMPLE_ROWS",
    ),
    "hinge, iterative": (
        "inverse.krylov.CG_RESIDUAL",
    ),
    "log of features, exact": (
        "features.hessian.MAX_FLAT_CURVATURE_SHARE",
        "features.lines.MAX_LEFT_SLOPE_SHARE",
        "features.newton.MAX_STEPS_WITHOUT_GAIN",
        "features.side_by_side.MAX_PRIMAL_CG_STEPS",
        "inverse.krylov.CG_RESIDUAL",
    ),
    "leading parts of the rows": (
        "inverse.krylov.CG_RESIDUAL",
        "prefixes.parts.CHANGE_PER_TARGET",
        "prefixes.parts.MAX_COLUMNS",
        "prefixes.parts.MAX_CORRECTION_RATIO",
    ),
}  # fmt: skip


def search_of(name: str, quick: bool) -> Callable[[], tuple[float, Any]]:
    """A function that runs a search and returns the certified share and the scores."""
    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, learning_curve
    from onefit.losses import Huber, SmoothedHinge

    kind, _, method = name.rpartition(", ")
    n = {"ridge": 1000, "hinge": 600, "log": 400, "narrow corners": 300}.get(kind, 600)
    if name == "ridge, iterative":
        n = 2500
    n = 90 if quick else n
    X, y = friedman(n)
    labels = friedman_classes(n)[1]
    wide = {"gamma": np.logspace(-2, 0, 3), "lam": np.logspace(-6, 0, 20)}
    few = {"gamma": np.logspace(-1.5, 0.5, 3), "lam": np.logspace(-6, -1, 8)}
    options: dict[str, Any] = {"cv": 10, "refit": False, "method": method}
    if kind == "ridge" or kind.startswith("Huber"):
        options["scoring"] = "neg_mean_squared_error"
    if name == "leading parts of the rows":
        model = KernelRegressor(gamma=0.1, lam=1e-3)

        def curve() -> tuple[float, Any]:
            return 1.0, learning_curve(model, X, y, cv=5, train_sizes=10).test_scores

        return curve
    if name == "narrow corners, fits":

        def fits() -> tuple[float, Any]:
            done = [
                KernelClassifier(loss=SmoothedHinge(1e-5), gamma=gamma, lam=1e-5).fit(X, labels)
                for gamma in (0.1, 1.0)
            ]
            return 1.0, [one.decision_function(X) for one in done]

        return fits
    if kind == "ridge":
        small = {"gamma": [0.03, 0.3], "lam": np.logspace(-6, -1, 6)}
        search = KernelSearchCV(
            KernelRegressor(), small if method == "iterative" else wide, **options
        )
    elif kind.startswith("Huber"):
        grid = {"gamma": [2.0, 8.0], "lam": np.logspace(-4, 0, 8)}
        search = KernelSearchCV(KernelRegressor(loss=Huber(0.5)), grid, **options)
    elif kind == "log of features":
        model = KernelClassifier(loss="log", approximation="nystrom")
        grid = {"gamma": [0.1, 1.0], "lam": [1e-4, 1e-3, 1e-2]}
        search = KernelSearchCV(model, grid, **options)
    else:
        loss = "log" if kind == "log" else "smoothed_hinge"
        search = KernelSearchCV(KernelClassifier(loss=loss), few, **options)
    target = y if kind == "ridge" or kind.startswith("Huber") else labels

    def run() -> tuple[float, Any]:
        results = search.fit(X, target).cv_results_
        return float(np.mean(results["exact"])), results["mean_test_score"]

    return run


@contextmanager
def changed(path: str, factor: float) -> Iterator[float]:
    """A constant times a factor, in every module that has it; the value."""
    home, name = path.rsplit(".", 1)
    old = getattr(importlib.import_module(f"onefit.{home}"), name)
    new = max(1, round(old * factor)) if isinstance(old, int) else old * factor
    modules = [
        module
        for key, module in list(sys.modules.items())
        if key.startswith("onefit") and getattr(module, name, None) is old
    ]
    for module in modules:
        setattr(module, name, new)
    try:
        yield new
    finally:
        for module in modules:
            setattr(module, name, old)


def measured(run: Callable[[], tuple[float, Any]]) -> tuple[float, float, Any]:
    start = time.process_time()
    share, scores = run()
    return time.process_time() - start, share, scores


def middle(runs: list[tuple[float, float, Any]]) -> float:
    return float(np.median([seconds for seconds, *_ in runs]))


def compare(name: str, paths: tuple[str, ...], rounds: int, quick: bool) -> list[Row]:
    """A row per constant, a column per factor."""
    run = search_of(name, quick)
    run()
    found: dict[tuple[str, float], list[tuple[float, float, Any]]] = {}
    for _ in range(rounds):
        for path in paths:
            for factor in (1.0, *FACTORS):
                with changed(path, factor):
                    try:
                        one = measured(run)
                    except Exception as error:
                        one = np.nan, 0.0, type(error).__name__
                found.setdefault((path, factor), []).append(one)
    rows = []
    for path in paths:
        base, share = middle(found[path, 1.0]), found[path, 1.0][0][1]
        home, constant = path.rsplit(".", 1)
        value = getattr(importlib.import_module(f"onefit.{home}"), constant)
        row: Row = {"search": name, "constant": f"{home}.{constant}", "value": f"{value:g}"}
        for factor in FACTORS:
            seconds, (_, other, scores) = middle(found[path, factor]), found[path, factor][0]
            text = scores if np.isnan(seconds) else f"{seconds / base:.2f}"
            note = "" if abs(other - share) < 5e-4 else f", {other:.1%} not {share:.1%}"
            row[f"x {factor:g}"] = text + note
        rows.append(row)
    return rows


def main() -> None:
    flags = harness.parser(__doc__)
    given = flags.parse_args()
    rounds, rows = 1 if given.quick else given.rounds, []
    for name, paths in CONSTANTS.items():
        some = tuple(path for path in paths if re.search(given.only, f"{name} {path}"))
        if some:
            rows += compare(name, some, rounds, given.quick)
            print(harness.table(rows[-len(some) :]), flush=True)
    name = harness.stem("constants", given.quick)
    about = (
        "Processor time of a search with a constant at a quarter to four times its value, relative "
        "to its present one, with the share of certified splits where that changes."
    )
    text = f"{about}\n\n{harness.table(rows)}"
    harness.write_csv(given.out, name, rows)
    harness.write_report(given.out, name, "What tuning constants matter", [("Constants", text)])


if __name__ == "__main__":
    main()
