"""Ten folds of the piecewise-quadratic losses over a path of lams: what they add to the path.

For every loss: (a) the full sample fitted at every lam, warm-started along the path; (b) the
held-out predictions by method="limit"; (c) by method="exact"; (d) by refitting every fold with the
same solver, warm-started from the full solution, method="refit". (b), (c) and (d) include (a).
"""

from __future__ import annotations

from functools import partial

import _harness as harness
import numpy as np
from _data import friedman, friedman_classes
from _harness import Contestant, Outcome, Row

from onefit.losses import EpsilonQuadratic, Huber, SmoothedHinge

REGRESSION = ("huber", "epsilon_quadratic")
LOSSES = (*REGRESSION, "squared_hinge", "smoothed_hinge")
PARAMETERS = {"huber": Huber(0.3), "epsilon_quadratic": EpsilonQuadratic(0.1)}
GAMMA = 0.3
PATH = "(a) full-sample path"
LIMIT, EXACT, REFIT = "(b) limit", "(c) exact", "(d) refit"
TARGETS = {"c/a": "at most 3", "d/c": "at least 3", "b/a": "at most 1.5"}


# The calls into onefit.


def estimator(loss: str, delta: float):
    from onefit import KernelClassifier, KernelRegressor

    if loss in REGRESSION:
        return KernelRegressor(loss=PARAMETERS[loss], gamma=GAMMA)
    own = SmoothedHinge(delta) if loss == "smoothed_hinge" else loss
    return KernelClassifier(loss=own, gamma=GAMMA)


def full_path(model, X, y, lams) -> list[np.ndarray]:
    """In-sample decision values along the path, every solution the start of the next."""
    from onefit.columns.fit import fit
    from onefit.kernels import Geometry, resolve_kernel
    from onefit.problem import Problem

    K = resolve_kernel("rbf", X, GAMMA).matrix(Geometry(X, keep=False))
    Y = np.asfortranarray(y[:, None])
    problem = Problem(K, Y, np.ones(len(y)), model.spec().loss, True, "mean")
    solution, decisions = None, []
    for lam in sorted(lams, reverse=True):
        solution = fit(problem, lam, start=solution)
        decisions.append(solution.u)
    return decisions


def cross_validate(model, X, y, lams, folds, method: str) -> np.ndarray:
    """Mean score of every lam."""
    from onefit import KernelSearchCV
    from onefit.heldout import Refit

    way = Refit(warm=True) if method == "refit" else method
    search = KernelSearchCV(model, {"lam": lams}, cv=folds, method=way, refit=False, n_jobs=1)
    return np.asarray(search.fit(X, y).cv_results_["mean_test_score"])


# The benchmark.


def problem_of(task: Row):
    make = friedman if task["loss"] in REGRESSION else friedman_classes
    options = {"outliers": 0.1} if task["loss"] in REGRESSION else {}
    X, y = make(task["n"], **options)
    return X, y, np.logspace(*task["lam_range"], task["lams"])


def build_path(task: Row):
    X, y, lams = problem_of(task)
    model = estimator(task["loss"], task["delta"])
    return lambda: full_path(model, X, y, lams)[-1][:1]


def build_method(task: Row, method: str):
    from sklearn.model_selection import KFold

    X, y, lams = problem_of(task)
    model = estimator(task["loss"], task["delta"])
    folds = KFold(task["folds"], shuffle=True, random_state=0)
    return lambda: cross_validate(model, X, y, lams, folds, method)


def contestants(threads: int) -> list[Contestant]:
    policy = f"1 process x {threads} thread{'s' if threads > 1 else ''}"
    methods = {LIMIT: "limit", EXACT: "exact", REFIT: "refit"}
    return [
        Contestant(PATH, policy, build_path, threads),
        *(
            Contestant(name, policy, partial(build_method, method=method), threads)
            for name, method in methods.items()
        ),
    ]


def summary(outcomes: list[Outcome], loss: str, n: int) -> Row:
    """Ratios of best times, and how far the mean scores of (b) and (c) are from (d)'s."""
    by = {o.name[1]: o for o in outcomes}
    nan = float("nan")
    row: Row = {"loss": loss, "n": n}
    for ratio in TARGETS:
        top, bottom = ratio.split("/")
        row[ratio] = by[top].best / by[bottom].best if {top, bottom} <= by.keys() else nan
    for letter, name in (("b", "limit"), ("c", "exact")):
        both = [by[k].value if k in by else None for k in (letter, "d")]
        known = all(value is not None for value in both)
        row[f"{name}_score_difference"] = float(np.abs(both[0] - both[1]).max()) if known else nan
    return row


def arguments():
    flags = harness.parser(__doc__)
    flags.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000])
    flags.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    flags.add_argument("--lams", type=int, default=20)
    flags.add_argument("--lam-range", type=float, nargs=2, default=[-5.0, -1.0], help="log10")
    flags.add_argument("--folds", type=int, default=10)
    flags.add_argument("--delta", type=float, default=0.1, help="of the smoothed hinge")
    flags.add_argument("--threads", type=int, default=1, help="BLAS threads of every contestant")
    given = flags.parse_args()
    if given.quick:
        given.sizes, given.lams, given.rounds = [200], 5, 1
    return given


def main() -> None:
    flags = arguments()
    times, ratios = [], []
    for n in flags.sizes:
        for loss in flags.losses:
            print(f"n = {n}, {loss}")
            task = {"n": n, "loss": loss, "lams": flags.lams, "folds": flags.folds}
            task |= {"lam_range": flags.lam_range, "delta": flags.delta}
            rivals = harness.chosen(contestants(flags.threads), flags.only)
            outcomes = harness.compete(rivals, task, {**task, "n": 60, "lams": 2}, flags.rounds)
            times += harness.timing_rows(outcomes, PATH, n, loss=loss)
            ratios.append(summary(outcomes, loss, n))
    name = harness.stem("influence_path", flags.quick)
    harness.write_csv(flags.out, name, times)
    low, high = flags.lam_range
    about = (
        f"{flags.lams} lams from 1e{low:g} to 1e{high:g} (mean scaling), {flags.folds} folds, "
        f"Gaussian kernel with gamma = {GAMMA:g}, Friedman's first function with 10 % outliers "
        f"(regression) or cut at its median with 5 % wrong labels (classification), "
        f"delta = {flags.delta:g}. "
    )
    wanted = "; ".join(f"{ratio} {target}" for ratio, target in TARGETS.items())
    differ = "The score differences are the largest over the path, against refitting."
    parts = [
        (
            "Ratios of the best times",
            f"{about}Wanted: {wanted}. {differ}\n\n{harness.table(ratios)}",
        ),
        ("Times", f"Reference: {PATH}.\n\n{harness.table(times)}"),
    ]
    title = "Held-out predictions along lam, by method"
    print(harness.write_report(flags.out, name, title, parts).read_text())


if __name__ == "__main__":
    main()
