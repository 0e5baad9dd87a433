"""What each special path of the engine gains: searches with one of them switched off at a time.

Every variant is a process of its own in which one path is replaced by the plain way round it; all
of them run the same searches in turn, and medians of their processor time are compared. A path that
gains less than a tenth on every search does not earn its keep. One worker, one thread: patches
reach no other process.

It also measures the effect of constants in the modules: the variants "... = value" change one.
"""

from __future__ import annotations

import re
import statistics
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, friedman, load
from _harness import Contestant, Outcome, Row

BASE = "as it is"


# The paths, and how each is switched off.


def no_shift_interpolation() -> None:
    from onefit.inverse import spectrum

    spectrum.interpolate_shifts = lambda values, ridges: None


def no_partial_eigendecomposition() -> None:
    from onefit.linalg import partial_eigh

    partial_eigh.MAX_BLOCKS = 1


def no_following() -> None:
    from onefit.heldout.path import FullPath

    FullPath._along = lambda self, *_: None


def no_warm_fits() -> None:
    from onefit.heldout import path

    honest = path.solve
    path.solve = lambda problem, lam, **options: honest(problem, lam)


def no_factor_update() -> None:
    from onefit.systems.update import SharedFactor

    SharedFactor._worth_updating = lambda self, changes: set()


def no_more_digits() -> None:
    from onefit.columns import certify

    certify.refine = lambda *args, **kwargs: None


def no_sharper_bound() -> None:
    from onefit.proof import certificate

    certificate.MAX_SHARP_BOUND_ROWS = 0


def no_cheap_refits() -> None:
    from onefit.heldout import refit

    refit.MAX_REFIT_OPERATIONS = 0.0


def no_float32_cg() -> None:
    from onefit.systems.float32_cg import Float32Kernel

    Float32Kernel.pays = lambda self, *_: False


def constant(module: str, name: str, value: float) -> None:
    import importlib

    found = importlib.import_module(module)
    getattr(found, name)  # a constant that was renamed is an error
    setattr(found, name, value)


PATHS = {
    BASE: lambda: None,
    "no shift interpolation": no_shift_interpolation,
    "no partial eigendecomposition": no_partial_eigendecomposition,
    "no following": no_following,
    "no warm fits": no_warm_fits,
    "no factor update": no_factor_update,
    "no more digits": no_more_digits,
    "no sharper bound": no_sharper_bound,
    "no cheap refits": no_cheap_refits,
    "no float32 CG": no_float32_cg,
    "no steps to the next piece": partial(constant, "onefit.columns.newton", "MAX_FULL_STEPS", 0),
    "MAX_SLOPE_SHARE = 0.1": partial(constant, "onefit.columns.newton", "MAX_SLOPE_SHARE", 0.1),
    "MAX_SLOPE_SHARE = 1e-6": partial(constant, "onefit.columns.newton", "MAX_SLOPE_SHARE", 1e-6),
    "MIN_DECREASE_SHARE = 0.1": partial(
        constant, "onefit.columns.newton", "MIN_DECREASE_SHARE", 0.1
    ),
    "MAX_FIXED_CURVATURE_STEPS = 6": partial(
        constant, "onefit.columns.newton", "MAX_FIXED_CURVATURE_STEPS", 6
    ),
    "EXPECTED_NEWTON_STEPS = 4": partial(
        constant, "onefit.heldout.path", "EXPECTED_NEWTON_STEPS", 4
    ),
    "MAX_CHANGED_SHARE = 0.1": partial(constant, "onefit.systems.update", "MAX_CHANGED_SHARE", 0.1),
    "MAX_CACHED_SUMS = 4": partial(constant, "onefit.inverse.spectrum", "MAX_CACHED_SUMS", 4),
    "MAX_BLOCKS = 4": partial(constant, "onefit.linalg.partial_eigh", "MAX_BLOCKS", 4),
}
RIDGE = {
    BASE, "no shift interpolation", "no partial eigendecomposition", "no cheap refits",
    "MAX_CACHED_SUMS = 4", "MAX_BLOCKS = 4",
}  # fmt: skip
NEWTON = set(PATHS) - RIDGE | {BASE, "no partial eigendecomposition", "no cheap refits"}


# The searches.


def ridge_search(task: Row):
    from onefit import KernelRegressor, KernelSearchCV

    X, y = friedman(task["n"])
    grid = {"gamma": np.logspace(-3, 1, task["gammas"]), "lam": np.logspace(-6, 2, 20)}
    machine = KernelRegressor(scaling="total", fit_intercept=False)
    return KernelSearchCV(machine, grid, cv=10, refit=False), X, y


def classes_search(task: Row):
    from onefit import KernelClassifier, KernelSearchCV

    X, y = load(Path(task["data"]), task["set"])
    if task["n"]:
        rows = np.random.default_rng(0).permutation(len(y))[: task["n"]]
        X, y = X[rows], y[rows]
    costs = 2.0 ** np.linspace(-3.0, 11.0, 15)
    gammas = 2.0 ** np.linspace(-8.0, 3.0, task["gammas"])
    grid = {"gamma": gammas, "lam": 1.0 / (1.8 * len(y) * costs)}
    machine = KernelClassifier(loss=task["loss"])
    return KernelSearchCV(machine, grid, cv=10, method=task["method"], refit=False), X, y


def huber_search(task: Row):
    from onefit import KernelRegressor, KernelSearchCV
    from onefit.losses import Huber

    X, y = load(Path(task["data"]), "cadata")
    rows = np.random.default_rng(0).permutation(len(y))[: task["n"]]
    X, y = X[rows], (y[rows] - y[rows].mean()) / y[rows].std()
    grid = {"gamma": 2.0 ** np.linspace(-4.0, 6.0, task["gammas"]), "lam": np.logspace(-7, 0, 15)}
    machine = KernelRegressor(loss=Huber(0.5))
    return KernelSearchCV(machine, grid, cv=10, method=task["method"], refit=False), X, y


def build(task: Row, name: str):
    PATHS[name]()
    searches = {"friedman": ridge_search, "cadata": huber_search}
    search, X, y = searches.get(task["set"], classes_search)(task)

    def run() -> Row:
        search.fit(X, y)
        results = search.cv_results_
        return {"exact": float(np.mean(results["exact"])), "scores": results["mean_test_score"]}

    return run


def searches(flags) -> dict[str, Row]:
    def classes(name: str, method: str, loss: str) -> Row:
        return {
            "set": name, "data": str(data_folder(flags.data)), "method": method, "loss": loss,
            "n": flags.rows, "gammas": flags.gammas,
        }  # fmt: skip

    tasks = {
        f"ridge, n = {n}": {"set": "friedman", "n": flags.rows or n, "gammas": 15}
        for n in (200, 500, 1000, 2000)
    }
    for method in ("limit", "exact"):
        key, n = f"cadata, Huber, {method}", flags.rows or 1000
        tasks[key] = {**classes("cadata", method, "huber"), "n": n}
    for name in ("german.numer", "a2a"):
        for method in ("limit", "exact", "race"):
            key = f"{name}, smoothed hinge, {method}"
            tasks[key] = classes(name, method, "smoothed_hinge")
    tasks["german.numer, log, exact"] = classes("german.numer", "exact", "log")
    return {key: task for key, task in tasks.items() if re.search(flags.search, key)}


def gains(outcomes: list[Outcome], search: str) -> list[Row]:
    """Median seconds of each variant, and what its path gains."""
    base = next(one for one in outcomes if one.name == BASE)
    reference = statistics.median(base.seconds)
    rows = []
    for one in outcomes:
        if one.problem is not None:
            continue
        seconds = statistics.median(one.seconds)
        gap = np.abs(np.asarray(one.value["scores"]) - np.asarray(base.value["scores"]))
        rows.append(
            {
                "search": search,
                "variant": one.name,
                "median CPU s": seconds,
                "gain": f"{100.0 * (seconds / reference - 1.0):+.0f} %",
                "certified": f"{100.0 * one.value['exact']:.1f} %",
                "score differs by": float(np.nanmax(gap)),
            }
        )
    return rows


def parser(about: str):
    """The flags that choose the searches; those of `versions.py` too."""
    flags = harness.parser(about, rounds=3)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--search", default="", help="searches whose name matches this")
    flags.add_argument("--rows", type=int, default=0, help="number of rows to use (0: all)")
    flags.add_argument("--gammas", type=int, default=4, help="kernels of the classifiers' searches")
    return flags


def arguments(flags):
    given = flags.parse_args()
    if given.quick:
        given.rows, given.rounds, given.gammas = 150, 1, 2
    return given


def main() -> None:
    flags, rows = arguments(parser(__doc__)), []
    for search, task in searches(flags).items():
        print(search, flush=True)
        names = [name for name in PATHS if name in (RIDGE if task["set"] == "friedman" else NEWTON)]
        rivals = [
            Contestant(name, "1 worker x 1 thread", partial(build, name=name)) for name in names
        ]
        kept = [one for one in harness.chosen(rivals, flags.only) if one.name != BASE]
        outcomes = harness.compete(
            [rivals[0], *kept], task, {**task, "n": 60}, flags.rounds, clock="process_time"
        )
        rows += gains(outcomes, search)
        print(harness.table(rows[-len(outcomes) :]), flush=True)
    name = harness.stem("ablation", flags.quick)
    harness.write_csv(flags.out, name, rows)
    about = (
        "`gain`: how much longer the search takes without the path, by medians of processor time."
    )
    harness.write_report(
        flags.out,
        name,
        "What the special paths gain",
        [("Paths", f"{about}\n\n{harness.table(rows)}")],
    )


if __name__ == "__main__":
    main()
