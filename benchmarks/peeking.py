"""What landmarks that lie in held-out folds do to a cross-validated score.

A machine with Nystrom features is cross-validated twice: with all landmarks in every fold
(``keep_landmarks=True``, what a pipeline does whose landmarks were drawn beforehand), and without
those of the fold (the default). Both are compared with the score on fresh rows of machines that
were trained on the training parts alone, with landmarks of theirs.
"""

from __future__ import annotations

from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Row

from onefit.features import Nystrom

FOLDS = 10


def scores(X, y, fresh, gamma: float, lam: float, m: int) -> tuple[float, float, float]:
    """R^2 with all landmarks, without those of the fold, and of fresh rows."""
    from sklearn.base import clone
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, heldout_predict

    def r2(target, u) -> float:
        return float(1.0 - np.square(target - u).mean() / y.var())

    machine = KernelRegressor(approximation=Nystrom(m), gamma=gamma, lam=lam)
    cv = KFold(FOLDS, shuffle=True, random_state=0)
    found = []
    for keep in (True, False):
        held = heldout_predict(
            clone(machine).set_params(approximation__keep_landmarks=keep), X, y, cv=cv
        )
        found.append(r2(y, held.predictions))
    X_new, y_new = fresh
    # as many landmarks as the model of a fold has
    fewer = clone(machine).set_params(approximation=Nystrom(max(1, m - m // FOLDS)))
    parts = [fewer.fit(X[train], y[train]).predict(X_new) for train, _ in cv.split(X)]
    found.append(float(np.mean([r2(y_new, u) for u in parts])))
    return found[0], found[1], found[2]


def main() -> None:
    flags = harness.parser(__doc__)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags = flags.parse_args()
    X, y = load(data_folder(flags.data), "cadata")
    order = np.random.default_rng(0).permutation(len(y))
    n = 500 if flags.quick else 2_000
    X, y = X[order], (y[order] - y.mean()) / y.std()
    train, fresh = (X[:n], y[:n]), (X[n : 4 * n], y[n : 4 * n])
    rows: list[Row] = []
    for gamma in (0.3, 3.0, 30.0):
        for share in (0.05, 0.2, 0.5):
            for lam in (1e-4, 1e-6):
                m = int(share * n)
                kept, honest, true = scores(*train, fresh, gamma, lam, m)
                rows.append(
                    {
                        "gamma": gamma,
                        "landmarks / rows": share,
                        "lam": lam,
                        "R2, kept": kept,
                        "R2, dropped": honest,
                        "R2, fresh rows": true,
                        "kept - dropped": kept - honest,
                        "kept - fresh": kept - true,
                        "dropped - fresh": honest - true,
                    }
                )
                print(harness.table(rows[-1:]), flush=True)
    about = (
        f"cadata, {n} rows and {3 * n} fresh ones, rbf, {FOLDS} folds. kept: keep_landmarks=True; "
        "dropped: the default; fresh rows: the mean R^2 of the models of the training parts."
    )
    off = {name: float(np.abs([row[name] for row in rows]).mean()) for name in list(rows[0])[-2:]}
    shown = ", ".join(f"{name} {value:.4f}" for name, value in off.items())
    text = f"{about}\n\n{harness.table(rows)}\nMean absolute differences: {shown}."
    name = harness.stem("peeking", flags.quick)
    harness.write_csv(flags.out, name, rows)
    harness.write_report(
        flags.out, name, "Landmarks from held-out folds: effect on a score", [("R2", text)]
    )


if __name__ == "__main__":
    main()
