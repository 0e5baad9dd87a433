"""How near the influence series, its limit and the repair come to refitting, per loss and lam.

The number is ||u - u_refit|| / ||u_refit||, u the held-out decision values, for five folds and for
leave-one-out. The remainder ("tail") exists for leave-one-out only, and orders above 2 only
for the piecewise-quadratic losses; what a method does not offer is left empty.
"""

from __future__ import annotations

import _harness as harness
import numpy as np
from _data import friedman, friedman_classes
from _harness import Row

from onefit.losses import EpsilonQuadratic, Huber, SmoothedHinge

REGRESSION = ("squared", "huber", "epsilon_quadratic", "logistic")
LOSSES = (*REGRESSION, "squared_hinge", "smoothed_hinge", "log")
PARAMETERS = {"huber": Huber(0.3), "epsilon_quadratic": EpsilonQuadratic(0.1)}
ORDERS = (1, 2, 3, 5, 8)
WAYS = (*(f"order {r}" for r in ORDERS), "tail", "limit", "exact")
SMOOTH = ("logistic", "log")
GAMMA = 0.3
ENOUGH = 1e-2


# The calls into onefit.


def estimator(loss: str, lam: float, delta: float):
    from onefit import KernelClassifier, KernelRegressor

    if loss in REGRESSION:
        return KernelRegressor(loss=PARAMETERS.get(loss, loss), gamma=GAMMA, lam=lam)
    own = SmoothedHinge(delta) if loss == "smoothed_hinge" else loss
    return KernelClassifier(loss=own, gamma=GAMMA, lam=lam)


def heldout(model, X, y, cv, way: str) -> np.ndarray:
    """Held-out decision values, in the rows' order."""
    from onefit import heldout_predict
    from onefit.heldout import Influence

    method = way
    if way.startswith("order"):
        method = Influence(order=int(way.split()[1]))
    elif way == "tail":
        method = Influence(order=tail_order(model.spec().loss.name), tail=True)
    return np.ravel(heldout_predict(model, X, y, cv=cv, method=method).predictions)


# The table.


def tail_order(loss: str) -> int:
    """The order the remainder is added to: the highest the smooth losses have, 5 for the others."""
    return 2 if loss in SMOOTH else 5


def splitters(folds: int) -> dict:
    from sklearn.model_selection import KFold, LeaveOneOut

    return {
        f"{folds} folds": KFold(folds, shuffle=True, random_state=0),
        "leave-one-out": LeaveOneOut(),
    }


def errors_of(loss: str, lam: float, name: str, cv, flags) -> Row:
    if loss in REGRESSION:
        X, y = friedman(flags.n, outliers=0.1)
    else:
        X, y = friedman_classes(flags.n)
    model = estimator(loss, lam, flags.delta)
    row: Row = {"loss": loss, "cv": name, "lam": lam}
    honest = heldout(model, X, y, cv, "refit")
    for way in WAYS:
        try:
            u = heldout(model, X, y, cv, way)
        except (ValueError, NotImplementedError, TypeError) as error:
            print(f"  {loss}, {name}, {way}: {type(error).__name__}: {error}")
            row[way] = float("nan")
        else:
            row[way] = float(np.linalg.norm(u - honest) / np.linalg.norm(honest))
    return row


def not_enough(rows: list[Row]) -> list[Row]:
    """Where "order 3 is enough" fails: a relative error above one per cent."""
    keys = ("loss", "cv", "lam", "order 3", "order 8", "limit", "exact")
    return [{k: row[k] for k in keys} for row in rows if row["order 3"] > ENOUGH]


def plot(path, rows: list[Row]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    losses = list(dict.fromkeys(row["loss"] for row in rows))
    cvs = list(dict.fromkeys(row["cv"] for row in rows))
    lams = sorted({row["lam"] for row in rows})
    size = (2.5 * len(losses), 2.6 * len(cvs))
    figure, axes = plt.subplots(len(cvs), len(losses), figsize=size, sharey=True, squeeze=False)
    for row in rows:
        axis = axes[cvs.index(row["cv"]), losses.index(row["loss"])]
        values = [max(row[way], 1e-16) for way in WAYS]  # an exact zero has no logarithm
        colour = plt.cm.viridis(lams.index(row["lam"]) / max(1, len(lams) - 1))
        axis.semilogy(values, "o-", ms=3, lw=1, color=colour, label=f"lam = {row['lam']:g}")
    for i, cv in enumerate(cvs):
        axes[i, 0].set_ylabel(f"{cv}\nrelative error")
        for j, loss in enumerate(losses):
            axes[i, j].set_xticks(range(len(WAYS)), WAYS, rotation=90, fontsize=7)
            axes[i, j].grid(alpha=0.3)
            axes[i, j].set_title(loss, fontsize=9)
    axes[0, 0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def arguments():
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--n", type=int, default=200)
    flags.add_argument("--folds", type=int, default=5)
    flags.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    flags.add_argument("--lams", type=float, nargs="+", default=[1e-1, 1e-2, 1e-3, 1e-4, 1e-5])
    flags.add_argument("--delta", type=float, default=0.1, help="of the smoothed hinge")
    given = flags.parse_args()
    if given.quick:
        given.n, given.lams = 60, [1e-1, 1e-3]
    return given


def main() -> None:
    flags = arguments()
    rows = [
        errors_of(loss, lam, name, cv, flags)
        for loss in flags.losses
        for name, cv in splitters(flags.folds).items()
        for lam in flags.lams
    ]
    name = harness.stem("accuracy", flags.quick)
    harness.write_csv(flags.out, name, rows)
    plot(flags.out / f"{name}.png", rows)
    about = (
        f"n = {flags.n}, Gaussian kernel with gamma = {GAMMA:g}, mean scaling, intercept, delta = "
        f"{flags.delta:g}; the tail is that of order 5 (2 for the smooth losses). "
        f"Relative error of the held-out decision values against refitting.\n\n"
        f"![relative error]({name}.png)\n\n"
    )
    few = f"Relative error above {ENOUGH:g} at order 3.\n\n{harness.table(not_enough(rows))}"
    parts = [
        ("Relative error", about + harness.table(rows)),
        ("Where order 3 is not enough", few),
    ]
    title = "Accuracy of approximate held-out predictions"
    print(harness.write_report(flags.out, name, title, parts).read_text())


if __name__ == "__main__":
    main()
