"""The smoothed hinge tends to the SVM: cross-validation errors as delta falls, beside libsvm's.

For every lam the ten-fold error of KernelClassifier(loss="smoothed_hinge"), by method "exact",
is set beside that of SVC with C = 1 / (2 n_train lam) on the same folds, with the number of
held-out labels on which the two differ and the largest difference of held-out decision values
(not a timing).
"""

from __future__ import annotations

from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Row

from onefit.losses import SmoothedHinge

DELTAS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
SETS = ("heart", "german.numer")


def svc_values(X, y, folds, gamma: float, lam: float) -> np.ndarray:
    """Held-out decision values of libsvm."""
    from sklearn.svm import SVC

    values = np.empty(y.size)
    for train, test in folds:
        model = SVC(C=1.0 / (2.0 * train.size * lam), gamma=gamma, tol=1e-6)
        values[test] = model.fit(X[train], y[train]).decision_function(X[test])
    return values


def rows_of(name: str, X, y, flags) -> list[Row]:
    from sklearn.model_selection import StratifiedKFold

    from onefit import KernelClassifier, heldout_predict
    from onefit.folds import Folds

    folds = Folds.draw(StratifiedKFold(10, shuffle=True, random_state=0), X, y)
    gamma = 0.5 / X.shape[1]
    rows = []
    for lam in flags.lams:
        svc = svc_values(X, y, folds, gamma, lam)
        row: Row = {"set": name, "lam": lam, "SVC error": float(np.mean((svc > 0) != (y > 0)))}
        for delta in DELTAS:
            model = KernelClassifier(SmoothedHinge(delta), gamma=gamma, lam=lam)
            held = heldout_predict(model, X, y, cv=folds, method="exact")
            u = held.predictions
            assert held.exact.all(), (name, lam, delta)
            row[f"delta {delta:g}"] = float(np.mean((u > 0) != (y > 0)))
            row[f"labels {delta:g}"] = int(np.sum((u > 0) != (svc > 0)))
            row[f"gap {delta:g}"] = float(np.abs(u - svc).max())
        print({k: v for k, v in row.items() if not k.startswith("gap")})
        rows.append(row)
    return rows


def plot(path: Path, rows: list[Row]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for row in rows:
        label = f"{row['set']}, lam = {row['lam']:g}"
        errors = [row[f"delta {d:g}"] - row["SVC error"] for d in DELTAS]
        axes[0].semilogx(DELTAS, errors, "o-", label=label)
        axes[1].loglog(DELTAS, [row[f"gap {d:g}"] for d in DELTAS], "o-", label=label)
    axes[0].axhline(0.0, color="grey", linewidth=0.8)
    axes[0].set(xlabel="delta", ylabel="ten-fold error less SVC's", title="Error of the labels")
    axes[1].set(xlabel="delta", ylabel="largest difference", title="Held-out decision values")
    axes[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def arguments():
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, default=None, help="folder with the data sets")
    flags.add_argument("--lams", type=float, nargs="+", default=[1e-4, 1e-3, 1e-2, 1e-1])
    return flags.parse_args()


def main() -> None:
    flags = arguments()
    folder = data_folder(flags.data)
    rows: list[Row] = []
    for name in SETS[:1] if flags.quick else SETS:
        rows += rows_of(name, *load(folder, name), flags)
    name = harness.stem("svm_limit", flags.quick)
    harness.write_csv(flags.out, name, rows)
    plot(flags.out / f"{name}.png", rows)
    shown = [{k: v for k, v in row.items() if not k.startswith(("labels", "gap"))} for row in rows]
    gaps = [
        {k: v for k, v in row.items() if k in ("set", "lam") or k.startswith("gap")} for row in rows
    ]
    parts = [
        ("Ten-fold error as delta falls, beside libsvm's", harness.table(shown)),
        ("Largest difference of held-out decision values", harness.table(gaps)),
    ]
    harness.write_report(
        flags.out, name, "The smoothed hinge tends to the support vector machine", parts
    )


if __name__ == "__main__":
    main()
