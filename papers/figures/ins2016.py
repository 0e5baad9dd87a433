"""Figure 1 and Tables 3 and 4 of Information Sciences 2016, and epsilon-BIF on a bundled set."""

from __future__ import annotations

import sys
from pathlib import Path

import common
import matplotlib.pyplot as plt
import numpy as np
from common import COLOURS, GREY, Results
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MinMaxScaler

from onefit import KernelClassifier, KernelSearchCV
from onefit.heldout import Exact, Influence
from onefit.losses import SmoothedHinge

LAMS = 2.0 ** np.arange(-10, 4)
#: accuracy, folds and order of Table 1
TABLE_1 = ((0.2, 4, 2), (0.1, 5, 3), (0.05, 6, 4))
COLUMNS = ("0.2-BIF", "0.1-BIF", "0.05-BIF", "5-CV", "10-CV", "GACV")


def approximation(out: Path) -> None:
    """Cross-validated error along lambda: epsilon-BIF, and exact with the same folds."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = MinMaxScaler((-1.0, 1.0)).fit_transform(X[:200]), y[:200]
    model = KernelClassifier(loss=SmoothedHinge(0.01), gamma=0.5, fit_intercept=False)
    figure, axes = plt.subplots(1, 3, figsize=(9.0, 2.6), sharey=True)
    for axis, row, colour in zip(axes, TABLE_1, COLOURS, strict=False):
        accuracy, folds, order = row
        cv = StratifiedKFold(folds)
        for method, style in (
            (Exact(), {"color": GREY, "lw": 3, "alpha": 0.5}),
            (Influence(order=order), {"color": colour}),
        ):
            search = KernelSearchCV(model, {"lam": LAMS}, cv=cv, method=method, refit=False)
            errors = 100 * (1 - search.fit(X, y).cv_results_["mean_test_score"])
            axis.semilogx(LAMS, errors, base=2, label=method.name, **style)
        axis.set(title=f"ε = {accuracy:g}: {folds} folds, order {order}", xlabel="λ")
        axis.legend()
    axes[0].set_ylabel("cross-validated error (%)")
    common.save(figure, out, "approximation")


def figure1(out: Path) -> None:
    """The hinge, and the hinge with its corner rounded."""
    t = np.linspace(-2.0, 4.0, 601)
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 2.8))
    for axis, reach in zip(axes, ((-2.0, 4.0), (0.8, 1.2)), strict=True):
        axis.plot(t, np.maximum(1.0 - t, 0.0), color=GREY, lw=3, alpha=0.5, label="hinge")
        for delta, colour in zip((2.0, 1.0, 0.1, 0.01), COLOURS, strict=False):
            rounded = SmoothedHinge(delta).value(np.ones_like(t), t)
            axis.plot(t, rounded, lw=1, color=colour, label=f"δ = {delta:g}")
        axis.set(xlabel="y f(x)", xlim=reach)
    axes[0].set_ylabel("loss")
    axes[1].set(title="around the corner", ylim=(-0.02, 0.3))
    axes[0].legend()
    common.save(figure, out, "figure1")


def table(results: Results, number: str, name: str, out: Path) -> None:
    """Bars of a table, one panel for each kernel."""
    tables = results.tables()
    panels = [each for each in tables if each.startswith(f"{number} ")]
    figure, axes = plt.subplots(len(panels), 1, figsize=(9.0, 2.8 * len(panels)), squeeze=False)
    for axis, panel in zip(axes.flat, panels, strict=True):
        sets = results.rows(panel)
        centre = results.mean if number == "3" else results.median
        columns = COLUMNS if number == "3" else (*COLUMNS, "exact-5")
        shown = {c: [centre(panel, row, c) for row in sets] for c in columns}
        common.bars(axis, sets, shown)
        axis.set_title(f"{panel.split()[1]} kernel")
        axis.set_ylabel("test error (%)" if number == "3" else "seconds for the grid")
        axis.set_yscale("linear" if number == "3" else "log")
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=len(columns))
    common.save(figure, out, name)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    approximation(folder)
    figure1(folder)
    found = common.committed("ins2016")
    if found is not None:
        table(found, "3", "table3", folder)
        table(found, "4", "table4", folder)
