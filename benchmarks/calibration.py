"""Calibrated probabilities: time and log loss against CalibratedClassifierCV.

The smoothed hinge on six data sets. gamma and lam are chosen beforehand, by a small search on the
training part; what is timed is to go from these to a classifier with probabilities (a sigmoid on
the held-out decision values of ten stratified folds), on three random halves of each set:

- onefit: CalibratedKernelClassifier, from one fit;
- same machine: scikit-learn's CalibratedClassifierCV(ensemble=False) of the same KernelClassifier,
  which refits every fold; its probabilities must be ours (column difference, the largest);
- SVC: CalibratedClassifierCV(ensemble=False) of libsvm's SVC with the C that corresponds to lam;
- after a search: search.calibrate(), where the held-out values of the winner are known.

Log losses are those of the other halves, averaged; beside them isotonic regression by onefit, and
the class shares of the training half as the baseline. One thread."""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Contestant, Row

SETS = ("heart", "breast-cancer", "diabetes", "fourclass", "australian", "german.numer")
#: the set of the picture
SHOWN = "german.numer"
HALVES = 3
GRID = {"gamma": np.geomspace(0.01, 3.0, 5), "lam": np.geomspace(1e-4, 1e-1, 4)}


def halves(task: Row) -> list[tuple[np.ndarray, ...]]:
    """(X, y, X_new, y_new) of every random half."""
    from sklearn.model_selection import train_test_split

    X, y = load(Path(task["data"]), task["set"])
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    X, y = X[: task["n"]], (y > 0).astype(int)[: task["n"]]
    found = []
    for seed in range(task["halves"]):
        A, B, a, b = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
        found.append((A, a, B, b))
    return found


def searched(X, y):
    """The small search on a training part."""
    from sklearn.model_selection import StratifiedKFold

    from onefit import KernelClassifier, KernelSearchCV

    grid = {"gamma": GRID["gamma"] / X.shape[1], "lam": GRID["lam"]}
    cv = StratifiedKFold(10, shuffle=True, random_state=0)
    return KernelSearchCV(KernelClassifier(loss="smoothed_hinge"), grid, cv=cv).fit(X, y)


def make(how: str, machine, n: int, cv, method: str = "sigmoid"):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    from onefit.decide import CalibratedKernelClassifier

    if how == "onefit":
        return CalibratedKernelClassifier(machine, method, cv)
    C = 1.0 / (2.0 * n * machine.lam)
    peer = machine if how == "same machine" else SVC(C=C, gamma=machine.gamma)
    return CalibratedClassifierCV(peer, method=method, cv=cv, ensemble=False)


def build(task: Row, how: str):
    from sklearn.base import clone
    from sklearn.metrics import log_loss

    parts = halves(task)
    machines, splits, quick = [], [], []
    for X, y, _, _ in parts:
        search = searched(X, y)
        start = time.perf_counter()
        search.calibrate("sigmoid")
        quick.append(time.perf_counter() - start)
        machines.append(clone(search.best_estimator_))
        splits.append(list(search.heldout_.folds))

    def fitted(method: str = "sigmoid"):
        return [
            make(how, machine, len(y), cv, method).fit(X, y)
            for (X, y, _, _), machine, cv in zip(parts, machines, splits, strict=True)
        ]

    def losses(models) -> float:
        pairs = zip(models, parts, strict=True)
        return float(np.mean([log_loss(b, m.predict_proba(B)) for m, (_, _, B, b) in pairs]))

    found: Row = {}

    def run() -> Row:
        models = fitted()
        if not found:  # a first run is seldom the best, which counts
            pairs = zip(models, parts, strict=True)
            shares = [log_loss(b, np.full(b.size, a.mean())) for _, a, _, b in parts]
            found["log loss"] = losses(models)
            found["proba"] = [m.predict_proba(B) for m, (_, _, B, _) in pairs]
            found["isotonic"] = losses(fitted("isotonic")) if how == "onefit" else np.nan
            found["after search"] = float(np.sum(quick))
            found["shares"] = float(np.mean(shares))
        return found

    return run


def row(name: str, flags) -> Row:
    n, count = (120, 1) if flags.quick else (10**6, HALVES)
    task = {"set": name, "data": str(data_folder(flags.data)), "n": n, "halves": count}
    rivals = [
        Contestant(how, "1 process x 1 thread", partial(build, how=how))
        for how in ("onefit", "same machine", "SVC")
    ]
    ours, same, svc = harness.compete(rivals, task, {**task, "n": 80, "halves": 1}, flags.rounds)
    pairs = zip(ours.value["proba"], same.value["proba"], strict=True)
    return {
        "set": name,
        "rows": sum(len(p) for p in ours.value["proba"]) // count,
        "onefit s": ours.best,
        "same machine / onefit": same.best / ours.best,
        "SVC / onefit": svc.best / ours.best,
        "after a search s": ours.value["after search"],
        "difference": float(max(np.abs(a - b).max() for a, b in pairs)),
        "log loss": ours.value["log loss"],
        "isotonic": ours.value["isotonic"],
        "same machine": same.value["log loss"],
        "SVC": svc.value["log loss"],
        "shares": ours.value["shares"],
    }


def draw(flags) -> None:
    """Why held-out values: maps fitted to them, and one fitted to values of the training rows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import log_loss

    from onefit.decide.calibrate import calibration_map

    task = {"set": SHOWN, "data": str(data_folder(flags.data)), "n": 10**6, "halves": 5}
    predicted: dict[str, list[np.ndarray]] = {}
    truth = []
    for X, y, X_new, y_new in halves(task):
        search = searched(X, y)
        machine, truth = search.best_estimator_, [*truth, y_new]
        own = calibration_map("sigmoid", machine.decision_function(X)[:, None], y)
        new = machine.decision_function(X_new)[:, None]
        for name, p in (
            ("sigmoid, held-out values", search.calibrate("sigmoid").predict_proba(X_new)),
            ("isotonic, held-out values", search.calibrate("isotonic").predict_proba(X_new)),
            ("sigmoid, values of the training rows", own.predict_proba(new)),
        ):
            predicted.setdefault(name, []).append(p[:, 1])
    y = np.concatenate(truth)
    figure, axis = pyplot.subplots(figsize=(5.5, 4.2), layout="constrained")
    for name, parts in predicted.items():
        p = np.concatenate(parts)
        happened, mean = calibration_curve(y, p, n_bins=10, strategy="quantile")
        loss = log_loss(y, np.clip(p, 1e-3, 1 - 1e-3))
        axis.plot(mean, happened, "o-", label=f"{name} (log loss {loss:.2f})")
    axis.plot([0, 1], [0, 1], "--", color="grey")
    axis.set(xlabel="predicted probability", ylabel="observed frequency, new rows")
    axis.legend(fontsize="small")
    figure.savefig(flags.out / f"{harness.stem('calibration', flags.quick)}.png", dpi=120)


def main() -> None:
    flags = harness.parser(__doc__, rounds=3)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--plot", action="store_true", help="draw the calibration curves alone")
    flags = flags.parse_args()
    draw(flags)
    if flags.plot:
        return
    rows = []
    for name in SETS[: 2 if flags.quick else None]:
        if not re.search(flags.only, name):
            continue
        rows.append(row(name, flags))
        print(harness.table(rows[-1:]), flush=True)
    stem = harness.stem("calibration", flags.quick)
    harness.write_csv(flags.out, stem, rows)
    about = (__doc__ or "").partition("\n\n")[2]
    parts = [("Results", f"{about}\n\n{harness.table(rows)}")]
    print(harness.write_report(flags.out, stem, "Calibrated probabilities", parts).read_text())


if __name__ == "__main__":
    main()
