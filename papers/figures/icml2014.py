"""Figures of ICML 2014 from the committed run, and the series on a bundled set."""

from __future__ import annotations

import sys
from pathlib import Path

import common
import matplotlib.pyplot as plt
import numpy as np
from common import COLOURS, GREY, Results
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from onefit import KernelRegressor, heldout_predict
from onefit.heldout import Influence

LAMS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
ORDERS = (1, 2, 3, 4, 5, 6, 8, 10)


def series(out: Path) -> None:
    """Relative error of the series by order, for five lams, and of its limit."""
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:200]), y[:200] - y[:200].mean()
    cv = KFold(5, shuffle=True, random_state=0)
    figure, axis = plt.subplots(figsize=(6.0, 3.0))
    for lam, colour in zip(LAMS, COLOURS, strict=False):
        model = KernelRegressor(gamma=0.03, lam=lam)
        honest = heldout_predict(model, X, y, cv=cv, method="refit").predictions
        errors = []
        for method in (*(Influence(order=order) for order in ORDERS), "limit"):
            u = heldout_predict(model, X, y, cv=cv, method=method).predictions
            errors.append(max(np.linalg.norm(u - honest) / np.linalg.norm(honest), 1e-16))
        axis.semilogy(errors, "o-", ms=3, color=colour, label=f"λ = {lam:g}")
    axis.set_xticks(range(len(ORDERS) + 1), [*map(str, ORDERS), "limit"])
    axis.set(xlabel="order of the series", ylabel="relative error", title="diabetes, 5 folds")
    axis.legend()
    common.save(figure, out, "series")


def figure1(results: Results, out: Path) -> None:
    """Mean square discrepancy by order at kCV's choice, and at the smallest lambda."""
    sets = results.rows("figure 1")
    names = results.columns("figure 1")
    folds = list(dict.fromkeys(name.split(", ")[0] for name in names))
    figure, axes = common.panels(len(sets), 5, 2.3)
    for axis, row in zip(axes, sets, strict=True):
        for k, colour in zip(folds, COLOURS, strict=False):
            orders = [name for name in names if name.startswith(f"{k}, order")]
            at = [int(name.split()[-1]) for name in orders]
            for table, style in (("figure 1", "o-"), ("figure 1 at the smallest lambda", "o:")):
                gaps = [results.mean(table, row, name) for name in orders]
                label = k if style == "o-" else None
                axis.semilogy(at, gaps, style, ms=2.5, lw=1, color=colour, label=label)
        axis.set(title=row, xlabel="order")
    axes[0].legend(fontsize=7)
    axes[0].set_ylabel("mean square discrepancy")
    common.save(figure, out, "figure1")


def tables(results: Results, out: Path) -> None:
    """How far each choice's test error is from that of kCV; how much faster the choice is made."""
    sets = results.rows("1")
    folds = [c.removeprefix("exact-") for c in results.columns("1") if c.startswith("exact-")]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 0.22 * len(sets) + 1.6))
    at = np.arange(len(sets))
    for i, k in enumerate(folds):
        gaps = []
        for row in sets:
            honest, bif = (results.values("1", row, f"{kind}-{k}") for kind in ("exact", "BIF"))
            gaps.append(float((bif - honest).mean() / max(honest.std(ddof=1), 1e-12)))
        left.plot(np.clip(gaps, -3, 10), at + 0.2 * (i - 1), "o", ms=4, label=k)
    left.axvspan(-0.5, 0.5, color=GREY, alpha=0.15, lw=0)
    left.set_yticks(at, sets)
    left.set(
        title="test error of BIF minus that of kCV,\nin standard deviations (cut at -3 and 10)",
        ylim=(len(sets) - 0.5, -0.5),
    )
    left.legend()
    kinds = ("BIF", "limit", "exact")
    timed = [row for row in sets if results.values("2", row, folds[0]).size]
    gains = {
        kind: [float(np.median([_gain(results, row, k, kind) for row in timed])) for k in folds]
        for kind in kinds
    }
    common.bars(right, folds, gains)
    right.axhline(1.0, color=GREY, lw=0.8)
    right.set(title="time of refitting over time taken\n(median over the sets)")
    right.legend()
    common.save(figure, out, "tables")


def _gain(results: Results, row: str, k: str, kind: str) -> float:
    """How many times faster than refitting, in the replicates that were refitted."""
    refits = results.values("2", row, k)
    fast = results.values("2", row, f"{kind}-{k}")[: refits.size]
    return float(np.median(refits) / np.median(fast))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    series(folder)
    found = common.committed("icml2014")
    if found is not None:
        figure1(found, folder)
        tables(found, folder)
