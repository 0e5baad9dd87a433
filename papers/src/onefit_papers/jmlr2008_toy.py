"""Figures 1 to 5 of JMLR 2008: fifty points around a sine, with and without an outlier.

x is uniform on [2, 11], y = sin(x) + 0.2 times Gaussian noise. The paper draws one such sample;
here several are drawn, and their median is reported. Figure 1 is the influence of a point added at
(5, 0.5) or (5, 1); figure 2 the approximations of leave-one-out; figures 3 to 5 have an outlier at
(4, 5).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria import CrossValidation, CvHat, InfluenceLoo, LeaveOneOut
from onefit.diagnostics import influence
from onefit.estimators import KernelRegressor
from onefit.folds import leave_one_out
from onefit.heldout import Influence
from onefit.kernels.stationary import Gaussian
from onefit.losses import Huber, Loss, Squared
from onefit_papers.claims import Verdict, judge
from onefit_papers.journal import Row, Unit
from onefit_papers.render import number, table
from onefit_papers.results import MAIN, Published, Results
from onefit_papers.sweep import Family, Sweep, seed_of

Array = NDArray[Any]

__all__ = ["measure", "sections", "units", "verdicts"]

#: panels of figure 2: what is fixed
PANELS = {"a": ("lam", 0.001), "b": ("lam", 0.005), "c": ("sigma", 1.0), "d": ("sigma", 2.0)}
#: Huber's threshold, the paper's b, in figures 3 to 5; infinity is least squares
BOUNDS = (0.1, 0.2, 0.5, float("inf"))
#: samples without which a majority of them says nothing
ENOUGH = 6
#: what the paper leaves open of figure 2
RANGE = "ours: the range of sigma"


def units(config: dict[str, Any]) -> list[Unit]:
    """One unit for each sample."""
    keys = ("seed", "toy_sigmas", "toy_lams", "toy_orders")
    found: list[Unit] = []
    for reading in [{"name": MAIN}, *config.get("toy_variants", [])]:
        shared = {"kind": "toy", "variant": reading["name"]}
        shared |= {key: reading.get(key, config[key]) for key in keys}
        found += [shared | {"replicate": i} for i in range(config["toy_replicates"])]
    return found


def measure(unit: Unit) -> list[Row]:
    """All five figures on one sample."""
    rng = np.random.default_rng(seed_of(unit["seed"], "toy", unit["replicate"]))
    x = rng.uniform(2.0, 11.0, 50)
    y = np.sin(x) + 0.2 * rng.standard_normal(50)
    X = x[:, None]
    spoilt = np.vstack([X, [[4.0]]]), np.append(y, 5.0)
    low, high, count = unit["toy_sigmas"]
    sigmas = np.linspace(low, high, count)
    found = _figure1(X, y) | _figure2(X, y, unit, sigmas) | _figure3(*spoilt)
    found |= (
        _figure4(*spoilt, sigmas)
        | _figure5("clean", X, y, sigmas)
        | _figure5("outlier", *spoilt, sigmas)
    )
    return [
        {"table": figure, "variant": unit["variant"], "row": row, "column": column}
        | {"replicate": unit["replicate"], "value": value}
        for (figure, row, column), value in found.items()
    ]


Found = dict[tuple[str, str, str], float]


def _figure1(X: Array, y: Array) -> Found:
    """The largest influence of an added point; it joins the sample with a tiny weight."""
    at = np.linspace(2.0, 11.0, 181)[:, None]
    found: Found = {}
    for height, sigma in ((0.5, 1.0), (1.0, 1.0), (1.0, 2.0)):
        machine = KernelRegressor(lam=0.001, gamma=1.0 / sigma**2, fit_intercept=False)
        weight = np.append(np.ones(len(y)), 1e-8)
        curves = influence(
            machine, np.vstack([X, [[5.0]]]), np.append(y, height), at=at, sample_weight=weight
        )
        row = f"(5, {height:g}), sigma {sigma:g}"
        found["figure 1", row, "largest"] = float(np.abs(curves[-1]).max())
        found["figure 1", row, "where"] = float(at[np.abs(curves[-1]).argmax(), 0])
        found["figure 1", row, "at x = 8"] = float(np.abs(curves[-1][120]))
    return found


def _family(X: Array, y: Array, sigmas: Any, lams: Any, loss: Loss) -> Family:
    return Family(X, y, [Gaussian(1.0 / s**2) for s in sigmas], list(lams), loss, False)


def _figure2(X: Array, y: Array, unit: Unit, sigmas: Array) -> Found:
    """How far each approximation of leave-one-out is from the exact one, by panel."""
    found: Found = {}
    first, last, count = unit["toy_lams"]
    for panel, (fixed, value) in PANELS.items():
        lams = [value] if fixed == "lam" else np.geomspace(last, first, count)
        family = _family(X, y, sigmas if fixed == "lam" else [value], lams, Squared())
        sweeps = family.sweep(
            {
                "LOO": LeaveOneOut(loss="absolute", guard=False),
                "CV": CvHat(loss="absolute", guard=False),
                "C_IF5": InfluenceLoo(order=5, loss="absolute", guard=False),
            }
        )
        cut = {"": CrossValidation(loss="absolute", guard=False)}
        everyone = leave_one_out(len(y))
        for order in unit["toy_orders"]:
            sweeps[f"order {order}"] = family.sweep(cut, Influence(order=order), everyone)[""]
        honest = sweeps.pop("LOO").values
        for name, sweep in sweeps.items():
            gap = np.abs(sweep.values - honest)
            found[f"figure 2{panel}", name, "mean difference"] = float(gap.mean())
            found[f"figure 2{panel}", name, "max difference"] = float(gap.max())
    return found


def _figure3(X: Array, y: Array) -> Found:
    """Root mean squared distance of the two fits from the sine."""
    at = np.linspace(2.0, 11.0, 181)
    found: Found = {}
    for name, loss in (("least squares", Squared()), ("Huber, b = 0.2", Huber(0.2))):
        curve = _family(X, y, [2.0], [0.001], loss).predict((0, 0), at[:, None])
        found["figure 3", name, "distance"] = float(np.sqrt(np.mean((curve - np.sin(at)) ** 2)))
    return found


def _figure4(X: Array, y: Array, sigmas: Array) -> Found:
    """The sigma that a squared and an absolute judgement choose for the Huber fit, b = 0.2."""
    family = _family(X, y, sigmas, [0.001], Huber(0.2))
    found: Found = {}
    for judged in ("squared", "absolute"):
        sweeps = family.sweep(
            {
                "C_IF5": InfluenceLoo(order=5, loss=judged, guard=False),
                "LOO": LeaveOneOut(loss=judged, guard=False),
            }
        )
        for name, sweep in sweeps.items():
            found["figure 4", name, judged] = float(sigmas[sweep.winner[0]])
    return found


def _figure5(name: str, X: Array, y: Array, sigmas: Array) -> Found:
    """The smallest C_IF^5 along sigma for every b, and the b with the smallest of all."""
    judged = {"": InfluenceLoo(order=5, loss="absolute", guard=False)}
    best: dict[float, Sweep] = {}
    for b in BOUNDS:
        loss = Squared() if np.isinf(b) else Huber(b)
        best[b] = _family(X, y, sigmas, [0.001], loss).sweep(judged)[""]
    found: Found = {
        ("figure 5", name, f"b = {b:g}"): float(s.values.min()) for b, s in best.items()
    }
    chosen = min(BOUNDS, key=lambda b: float(best[b].values.min()))
    found["figure 5", name, "chosen is finite"] = float(np.isfinite(chosen))
    return found


def _medians(results: Results, figure: str) -> str:
    rows, columns = results.rows(figure), results.columns(figure)
    return table(
        ["", *columns],
        [[r, *(number(results.median(figure, r, c)) for c in columns)] for r in rows],
    )


def sections(results: Results, published: Published) -> list[str]:
    """Numbers behind the figures, medians over samples."""
    return [
        "## Figure 2a: absolute difference from exact leave-one-out along sigma, lambda = 0.001",
        "Medians and ranges over samples; the paper has one sample, and does not say along which "
        "sigma. Main: 0.5 to 4.",
        _figure2a(results, published),
        *(
            f"### Figure 2{panel} ({fixed} = {value:g})\n\n" + _medians(results, f"figure 2{panel}")
            for panel, (fixed, value) in PANELS.items()
        ),
        "## Figure 1: influence of an added point, lambda = 0.001",
        _medians(results, "figure 1"),
        "## Figure 3: distance of the fits from the sine, outlier at (4, 5)",
        _medians(results, "figure 3"),
        "## Figure 4: sigma chosen for the Huber fit, b = 0.2, lambda = 0.001, with the outlier",
        "The paper's sample: 3.6 by squared, 2.3 by absolute errors. "
        + " ".join(
            f"{variant}: {_wider(results.only(variant), 'C_IF5')[1]}."
            for variant in results.variants("figure 4")
        ),
        _medians(results, "figure 4"),
        "## Figure 5: smallest C_IF^5 along sigma",
        "The paper's choice with the outlier is b = 0.2.",
        _medians(results, "figure 5"),
    ]


def _figure2a(results: Results, published: Published) -> str:
    lines = []
    for variant in results.variants("figure 2a"):
        for name, column in product(("C_IF5", "CV"), ("mean difference", "max difference")):
            values = results.values("figure 2a", name, column, variant)
            reach = f"{values.min():.1e} to {values.max():.1e}"
            paper = published.cell("figure 2", name, column).mean
            inside = "yes" if values.min() <= paper <= values.max() else "no"
            middle = f"{np.median(values):.1e}"
            lines.append([variant, name, column, middle, reach, f"{paper:.1e}", inside])
    return table(["reading", "", "", "ours", "range", "paper", "paper in range"], lines)


def _wider(results: Results, name: str) -> tuple[float, str]:
    """In which part of the samples squared errors choose the larger sigma, and the counts."""
    gap = results.paired("figure 4", name, "squared", "absolute")
    if not gap.size:
        return float("nan"), "Not measured"
    more, less = int((gap > 0).sum()), int((gap < 0).sum())
    counts = f"{name}: squared errors choose the larger sigma in {more} of {gap.size} samples, the "
    return more / gap.size, f"{counts}smaller in {less}, the same in {gap.size - more - less}"


def verdicts(results: Results) -> list[Verdict]:
    """The sentences of section 6.1."""
    near = {
        n: results.median("figure 2a", n, "mean difference") for n in ("C_IF5", "CV", "order 5")
    }
    sharp = [results.median("figure 1", f"(5, 1), sigma {s}", "largest") for s in (1, 2)]
    low = results.median("figure 1", "(5, 0.5), sigma 1", "largest")
    apart = [results.median("figure 3", n, "distance") for n in results.rows("figure 3")]
    wide = [results.median("figure 4", "C_IF5", judged) for judged in ("squared", "absolute")]
    part, counts = _wider(results, "C_IF5")
    samples = results.values("figure 4", "C_IF5", "squared").size
    spoilt = {b: results.median("figure 5", "outlier", f"b = {b:g}") for b in BOUNDS}
    clean = {b: results.median("figure 5", "clean", f"b = {b:g}") for b in BOUNDS}
    robust = min(value for b, value in spoilt.items() if np.isfinite(b))
    return [
        judge(
            "Figure 1",
            "A higher added point has a larger influence; a larger sigma lowers its peaks",
            low < sharp[0] and sharp[1] < sharp[0],
            f"largest influence {number(low)} at height 0.5, {number(sharp[0])} at 1, "
            f"{number(sharp[1])} with sigma 2",
        ),
        judge(
            "Figure 2",
            "C_IF^5 is closer to exact leave-one-out than CV, and both are close",
            near["C_IF5"] < near["CV"] < 0.01,
            f"median mean difference {near['C_IF5']:.1e} and {near['CV']:.1e}",
            RANGE,
        ),
        judge(
            "Figure 2",
            "Cutting the series without its tail is worse than C_IF^5",
            near["C_IF5"] < near["order 5"],
            f"{near['C_IF5']:.1e} against {near['order 5']:.1e} at order 5",
            RANGE,
        ),
        judge(
            "Figure 3",
            "The outlier spoils least squares, the Huber loss fits the majority",
            apart[1] < 0.5 * apart[0],
            f"distance from the sine {number(apart[0])} and {number(apart[1])}",
        ),
        judge(
            "Figure 4",
            "With squared errors as judge the outlier leads to a larger sigma than with absolute "
            "ones",
            part > 0.5 if samples >= ENOUGH else None,
            f"{counts}; median sigma {number(wide[0])} and {number(wide[1])}, the paper's one "
            "sample 3.6 and 2.3",
        ),
        judge(
            "Figure 5",
            "Without outlier b hardly matters, and a small b is slightly worse",
            clean[0.1] >= clean[np.inf] and clean[0.1] < 1.1 * clean[np.inf],
            f"smallest C_IF^5 {number(clean[0.1])} at b = 0.1, {number(clean[np.inf])} for least "
            "squares",
        ),
        judge(
            "Figure 5",
            "With the outlier C_IF^5 detects that least squares is not appropriate",
            robust < spoilt[np.inf],
            f"smallest C_IF^5 {number(robust)} with the Huber loss, {number(spoilt[np.inf])} for "
            "least squares",
        ),
    ]
