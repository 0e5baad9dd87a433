"""Figures 1 to 5 of JMLR 2008 on one sample, through the public interface alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import common
import matplotlib.pyplot as plt
import numpy as np
from common import BLUE, COLOURS, GREY, RED
from sklearn.model_selection import LeaveOneOut as EachRow

from onefit import KernelRegressor, KernelSearchCV, heldout_predict
from onefit.criteria import CvHat, InfluenceLoo, LeaveOneOut
from onefit.diagnostics import influence
from onefit.heldout import Influence
from onefit.losses import Huber
from onefit.robust import robust_select

LAM = 1e-3
SIGMAS = np.linspace(0.5, 4.0, 36)
LAMS = np.geomspace(1e-4, 1e-1, 31)
ORDERS = (1, 2, 3, 4, 5)
AT = np.linspace(2.0, 11.0, 181)
#: panels of figure 2: title, widths, lams
PANELS = {
    "a": ("λ = 0.001", SIGMAS, [0.001]),
    "b": ("λ = 0.005", SIGMAS, [0.005]),
    "c": ("σ = 1", [1.0], LAMS),
    "d": ("σ = 2", [2.0], LAMS),
}


def sample() -> tuple[Any, Any, Any, Any]:
    """Fifty points around a sine, and the same with an outlier at (4, 5)."""
    rng = np.random.default_rng(0)
    x = rng.uniform(2.0, 11.0, 50)
    y = np.sin(x) + 0.2 * rng.standard_normal(50)
    return x[:, None], y, np.append(x, 4.0)[:, None], np.append(y, 5.0)


def machine(sigma: float = 2.0, lam: float = LAM, **options: Any) -> KernelRegressor:
    """The paper's machine: the kernel exp(-|x - x'|^2 / sigma^2) and no intercept."""
    return KernelRegressor(gamma=1.0 / sigma**2, lam=lam, fit_intercept=False, **options)


def along(X: Any, y: Any, criterion: Any, sigmas: Any, lams: Any, **options: Any) -> Any:
    """A criterion on a grid."""
    grid = {"gamma": 1.0 / np.square(sigmas), "lam": lams}
    search = KernelSearchCV(machine(**options), grid, criterion=criterion, refit=False)
    return search.fit(X, y).cv_results_["criterion"]


def mean_gap(u: Any, y: Any) -> float:
    """Mean absolute error."""
    return float(np.abs(y - u).mean())


def figure1(out: Path, X: Any, y: Any) -> None:
    """The fit, and the influence of a point that joins the sample with next to no weight."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 2.8))
    left.plot(X[:, 0], y, "o", ms=3, color=GREY)
    left.plot(AT, machine().fit(X, y).predict(AT[:, None]), color=BLUE)
    left.set(title="data and fit, σ = 2, λ = 0.001", xlabel="x", ylabel="y")
    joined = np.vstack([X, [[5.0]]])
    weight = np.append(np.ones(len(y)), 1e-8)
    for (height, sigma), colour in zip(((0.5, 1.0), (1.0, 1.0), (1.0, 2.0)), COLOURS, strict=False):
        targets = np.append(y, height)
        pull = influence(machine(sigma), joined, targets, at=AT[:, None], sample_weight=weight)[-1]
        right.plot(AT, pull, color=colour, label=f"(5, {height:g}), σ = {sigma:g}")
    right.set(title="influence of one more point", xlabel="x")
    right.legend()
    common.save(figure, out, "figure1")


def figure2(out: Path, X: Any, y: Any) -> None:
    """Leave-one-out and what approximates it; a table of the differences."""
    figure, axes = common.panels(4, 2, 2.6)
    lines = ["| panel | | C_IF^5 | CV | series of order 5 |", "|---|---|---|---|---|"]
    for axis, (panel, (title, sigmas, lams)) in zip(axes, PANELS.items(), strict=True):
        grid = [(sigma, lam) for sigma in sigmas for lam in lams]
        judged = {"loss": "absolute", "guard": False}
        honest = along(X, y, LeaveOneOut(**judged), sigmas, lams)
        tail = along(X, y, InfluenceLoo(order=5, **judged), sigmas, lams)
        hat = along(X, y, CvHat(**judged), sigmas, lams)
        places = sigmas if len(lams) == 1 else lams
        train = [mean_gap(machine(*pair).fit(X, y).predict(X), y) for pair in grid]
        axis.plot(places, train, ":", color=GREY, label="training error")
        cut = []
        for order in ORDERS:
            cut = [mean_gap(_left_out(X, y, order, *pair), y) for pair in grid]
            axis.plot(
                places, cut, "--", lw=0.8, color=RED, label="orders 1 to 5" if order == 1 else None
            )
        axis.plot(places, honest, lw=4, alpha=0.3, color=BLUE, label="leave-one-out")
        axis.plot(places, tail, lw=1, color=BLUE, label="C_IF^5")
        axis.set(title=f"({panel}) {title}", xlabel="σ" if len(lams) == 1 else "λ")
        axis.set_xscale("linear" if len(lams) == 1 else "log")
        gaps = [np.abs(np.asarray(values) - honest) for values in (tail, hat, cut)]
        for name, reduce in (("mean", np.mean), ("largest", np.max)):
            shown = " | ".join(f"{reduce(gap):.1e}" for gap in gaps)
            lines.append(f"| {panel} | {name} | {shown} |")
    axes[0].legend()
    common.save(figure, out, "figure2")
    (out / "differences.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _left_out(X: Any, y: Any, order: int, sigma: float, lam: float) -> Any:
    held = heldout_predict(machine(sigma, lam), X, y, cv=EachRow(), method=Influence(order=order))
    return held.predictions


def figure3(out: Path, X: Any, y: Any) -> None:
    """Least squares and Huber beside the outlier, which is above the picture."""
    figure, axis = plt.subplots(figsize=(5.0, 2.8))
    axis.plot(X[:-1, 0], y[:-1], "o", ms=3, color=GREY)
    for options, style, name in (
        ({}, "--", "squared loss"),
        ({"loss": Huber(0.2)}, "-", "Huber, threshold 0.2"),
    ):
        axis.plot(AT, machine(**options).fit(X, y).predict(AT[:, None]), style, label=name)
    axis.set(title="an outlier at (4, 5)", xlabel="x", ylabel="y", ylim=(-2.0, 2.0))
    axis.legend()
    common.save(figure, out, "figure3")


def figure4(out: Path, X: Any, y: Any) -> None:
    """The width that each judge chooses for one and the same robust fit."""
    huber = {"loss": Huber(0.2)}
    figure, axes = plt.subplots(1, 3, figsize=(9.0, 2.8))
    chosen = {}
    for axis, judged in zip(axes, ("squared", "absolute"), strict=False):
        for kind, name, style in (
            (LeaveOneOut, "leave-one-out", "-"),
            (InfluenceLoo, "C_IF^5", "--"),
        ):
            values = along(X, y, kind(loss=judged, guard=False), SIGMAS, [LAM], **huber)
            axis.plot(SIGMAS, values, style, label=name)
            chosen[judged] = float(SIGMAS[np.argmin(values)])
        axis.axvline(chosen[judged], color=GREY, lw=0.8)
        axis.set(title=f"judged by {judged} errors", xlabel="σ")
    axes[0].legend()
    axes[2].plot(X[:-1, 0], y[:-1], "o", ms=3, color=GREY)
    for (judged, sigma), style in zip(chosen.items(), ("--", "-"), strict=True):
        fit = machine(sigma, **huber).fit(X, y)
        axes[2].plot(AT, fit.predict(AT[:, None]), style, label=f"{judged}: σ = {sigma:g}")
    axes[2].set(title="the two fits", xlabel="x", ylim=(-2.0, 2.0))
    axes[2].legend()
    common.save(figure, out, "figure4")
    said = (
        f"On this sample squared errors choose σ = {chosen['squared']:g}, absolute errors "
        f"σ = {chosen['absolute']:g}; the paper's sample gave 3.6 and 2.3."
    )
    (out / "widths.md").write_text(said + "\n", encoding="utf-8")


def figure5(out: Path, clean: Any, spoilt: Any) -> None:
    """C_IF^5 along the width for several thresholds."""
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 2.8))
    for axis, (X, y), title in zip(
        axes, (clean, spoilt), ("clean", "with the outlier"), strict=True
    ):
        for threshold, colour in zip((0.1, 0.2, 0.5, np.inf), COLOURS, strict=False):
            robust = np.isfinite(threshold)
            options = {"loss": Huber(threshold)} if robust else {}
            judged = InfluenceLoo(order=5, loss="absolute", guard=False)
            values = along(X, y, judged, SIGMAS, [LAM], **options)
            name = f"threshold {threshold:g}" if robust else "squared loss"
            axis.plot(SIGMAS, values, color=colour, label=name)
        axis.set(title=title, xlabel="σ", ylabel="C_IF^5")
    axes[1].legend()
    common.save(figure, out, "figure5")


def one_call(out: Path, clean: Any, spoilt: Any) -> None:
    """What robust_select makes of both samples."""
    grid = {"gamma": 1.0 / SIGMAS[::5] ** 2, "lam": LAMS[::5]}
    lines = [
        "| sample | loss | threshold | scale of the errors | distance from the sine |",
        "|---|---|---|---|---|",
    ]
    for name, (X, y) in (("clean", clean), ("with the outlier", spoilt)):
        found = robust_select(X, y, KernelRegressor(fit_intercept=False), grid)
        gap = np.sqrt(np.mean((found.estimator.predict(AT[:, None]) - np.sin(AT)) ** 2))
        threshold = found.params.get("loss__threshold")
        shown = "-" if threshold is None else f"{threshold:.2f}"
        lines.append(
            f"| {name} | {found.params['loss']} | {shown} | {found.sigma_err:.2f} | {gap:.2f} |"
        )
    (out / "one_call.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(out: Path) -> None:
    """All figures."""
    X, y, X_spoilt, y_spoilt = sample()
    out.mkdir(parents=True, exist_ok=True)
    figure1(out, X, y)
    figure2(out, X, y)
    figure3(out, X_spoilt, y_spoilt)
    figure4(out, X_spoilt, y_spoilt)
    figure5(out, (X, y), (X_spoilt, y_spoilt))
    one_call(out, (X, y), (X_spoilt, y_spoilt))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
