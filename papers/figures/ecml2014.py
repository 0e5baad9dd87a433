"""Figures of ECML PKDD 2014 from the committed run, and the criterion on a bundled set."""

from __future__ import annotations

import sys
from pathlib import Path

import common
import matplotlib.pyplot as plt
import numpy as np
from common import BLUE, COLOURS, GREEN, GREY, RED, Results
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from onefit import KernelClassifier, KernelSearchCV
from onefit.criteria import KernelStability

TAUS = 2.0 ** np.arange(-10, 11)


def criterion(out: Path) -> None:
    """5-fold cross-validation, 5-KS and the test error along the bandwidth."""
    X, labels = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X, X_test, y, y_test = train_test_split(
        X, labels, train_size=150, random_state=0, stratify=labels
    )
    gammas = 0.5 / TAUS
    values = {}
    for name, eta in (("5-CV", 0.0), ("5-KS", 1.0)):
        judged = KernelStability(eta=eta, guard=False)
        grid = {"gamma": gammas, "lam": [1e-3]}
        search = KernelSearchCV(KernelClassifier(), grid, criterion=judged, refit=False)
        values[name] = search.fit(X, y).cv_results_["criterion"]
    tests = [
        100 * (1 - KernelClassifier(gamma=g, lam=1e-3).fit(X, y).score(X_test, y_test))
        for g in gammas
    ]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 2.8))
    for (name, curve), colour in zip(values.items(), (BLUE, RED), strict=True):
        left.semilogx(TAUS, curve, "o-", ms=3, color=colour, base=2, label=name)
        best = int(np.argmin(curve))
        for axis in (left, right):
            axis.axvline(TAUS[best], color=colour, lw=0.8, ls="--")
    penalty = values["5-KS"] - values["5-CV"]
    left.semilogx(TAUS, penalty, ":", color=GREY, base=2, label="stability term")
    left.set(title="criterion, breast cancer, 150 rows", xlabel="τ")
    left.legend()
    right.semilogx(TAUS, tests, "o-", ms=3, color=GREEN, base=2)
    right.set(title="error on the other rows (%)", xlabel="τ", ylim=(0.0, None))
    common.save(figure, out, "criterion")


def figure1(results: Results, out: Path) -> None:
    """Test errors by eta."""
    sets = results.rows("figure 1")
    figure, axes = common.panels(len(sets), 3, 2.0)
    for axis, row in zip(axes, sets, strict=True):
        for k, colour in (("5-KS", BLUE), ("10-KS", RED)):
            names = [c for c in results.columns("figure 1") if c.startswith(f"{k},")]
            powers = [int(name.split("^")[1]) for name in names]
            errors = [results.mean("figure 1", row, name) for name in names]
            axis.plot(powers, errors, "o-", ms=2.5, lw=1, color=colour, label=k)
        axis.axvspan(-2, 5, color=GREY, alpha=0.12, lw=0)
        axis.set(title=row, xlabel="log2 η")
    axes[0].legend()
    axes[0].set_ylabel("test error (%)")
    common.save(figure, out, "figure1")


def table1(results: Results, out: Path) -> None:
    """Test error of k-KS minus that of k-CV, set by set, at each lambda."""
    names = [name for name in results.tables() if name.startswith("1 ")]
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.0), sharey=True)
    for axis, k in zip(axes, (5, 10), strict=True):
        for i, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
            sets = results.rows(name)
            gaps = [
                results.mean(name, r, f"{k}-KS") - results.mean(name, r, f"{k}-CV") for r in sets
            ]
            place = np.arange(len(sets)) + 0.12 * (i - 1.5)
            axis.plot(place, gaps, "o", ms=4, color=colour, label=f"λ = {name.split('=')[1]}")
        axis.axhline(0.0, color=GREY, lw=0.8)
        axis.set_xticks(np.arange(len(sets)), sets, rotation=35, ha="right")
        axis.set(title=f"{k} folds: error of KS minus that of CV (points)")
    axes[0].legend()
    common.save(figure, out, "table1")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    criterion(folder)
    found = common.committed("ecml2014")
    if found is not None:
        figure1(found, folder)
        table1(found, folder)
