"""Decision charts and the picture of speed, drawn as SVG while MkDocs builds.

A chart is a question with answers; an answer leads to another question or to a choice. It is drawn
from left to right: questions and answers as text, a line from each question to its answers,
choices in the fixed-width font of code. ``assets/charts.css`` has the colours, which are the
theme's, so that charts follow it into the dark.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
#: an answer and what it leads to: answers to the next question, or a choice
Tree = list[tuple[str, "Tree | str"]]

CHARTS: dict[str, tuple[str, Tree]] = {
    "loss": (
        "What is y?",
        [
            (
                "numbers",
                [
                    ("errors look alike, no wild values", 'loss="squared"'),
                    (
                        "a few wild values, or heavy tails",
                        [
                            ("you know the usual error", 'loss=Huber(1 to 3 times it)'),
                            ("you do not", 'loss="huber" (from the data), or robust_select'),
                            ("you want no corner", 'loss="logistic", y scaled to errors near 1'),
                        ],
                    ),
                    (
                        "errors below epsilon do not count",
                        [
                            ("support vector regression, robust", 'loss="epsilon_insensitive"'),
                            ("its square, quicker", 'loss="epsilon_quadratic"'),
                        ],
                    ),
                    ("a quantile, or several", 'loss=Quantile([0.1, 0.5, 0.9])'),
                    ("errors above cost more than below", 'loss=Expectile(0.9)'),
                ],
            ),
            (
                "labels",
                [
                    ("many classes, or a first look", 'loss="squared"'),
                    ("you need probabilities", 'loss="log", or any loss and search.calibrate()'),
                    (
                        "you want a support vector machine",
                        [
                            ("the hinge itself", 'loss=SmoothedHinge(0.1 or 0.01)'),
                            ("its square, as in LinearSVC", 'loss="squared_hinge"'),
                        ],
                    ),
                    ("some labels are wrong", 'loss="smoothed_hinge" (bounded pull)'),
                ],
            ),
        ],
    ),
    "kernel": (
        "What is a row?",
        [
            (
                "a vector",
                [
                    ("smooth dependence, few or many columns", 'kernel="rbf"'),
                    ("kinks, or inputs that look like noise", 'kernel="laplacian" or "matern12"'),
                    ("in between", 'kernel="matern32" or "matern52"'),
                    ("interactions of a known degree", 'kernel=Polynomial(degree=2 or 3)'),
                    ("many columns, sparse, little data", 'kernel="linear"'),
                    ("several kinds of columns", "a Bank of kernels on groups of columns"),
                ],
            ),
            ("something else", 'kernel="precomputed", or a function of two arrays of rows'),
        ],
    ),
    "criterion": (
        "Is the score of your splits what you want to minimise?",
        [
            ("yes", 'criterion="cv"'),
            ("a small sample, no splits to draw", '"loo"'),
            ("outliers, with a robust loss", '"influence_loo" (absolute error)'),
            ("many kernels, few rows: CV may over-fit", '"kernel_stability", "bayes_loo"'),
            (
                "to compare with the literature",
                [
                    ("kernel ridge, splines", '"gcv", "cv_hat"'),
                    ("support vector machines", '"gacv", "span", "sv_count", "radius_margin"'),
                ],
            ),
        ],
    ),
    "method": (
        "Which loss?",
        [
            ("squared", '"auto": "block" for few lams, "eigen" for many; both exact'),
            (
                "another",
                [
                    ("every score exact", '"auto", which is "exact"'),
                    ("the winner and those near it", '"race"'),
                    ("a quick look", '"limit", which says how far off it may be'),
                ],
            ),
            ("in doubt about any of them", '"refit", the definition; slow'),
            ("to follow a paper", "Influence(order=...) of onefit.heldout"),
        ],
    ),
}  # fmt: skip

#: pixels: height of a line, width of a letter, room for the lines between columns
ROW, LETTER, GAP = 30, 6.7, 34
CODE = 7.9


def chart(name: str) -> str:
    """One of ``CHARTS`` as a figure."""
    question, answers = CHARTS[name]
    widths = _widths(question, answers)
    lefts = [8.0]
    for width in widths[:-1]:
        lefts.append(lefts[-1] + width + GAP)
    rows = _leaves(answers)
    size = lefts[-1] + widths[-1] + 16, rows * ROW + 10
    root = Element("svg", viewBox=f"0 0 {size[0]:.0f} {size[1]}", role="img")
    root.set("aria-label", f"{question} {_said(answers)}")
    root.set("style", f"max-width:{size[0]:.0f}px;min-width:{min(size[0], 960):.0f}px;width:100%")
    _draw(root, question, answers, 0, 0, lefts)
    return f'<div class="chart">{tostring(root, encoding="unicode")}</div>'


def _leaves(answers: Tree) -> int:
    return sum(1 if isinstance(after, str) else _leaves(after) for _, after in answers)


def _widths(text: str, after: Tree | str, depth: int = 0) -> list[float]:
    """The widest text of every column."""
    own = [LETTER * len(text)]
    if isinstance(after, str):
        return [*own, CODE * len(after) + 12]
    parts = [_widths(answer, nxt, depth + 1) for answer, nxt in after]
    deep = max(map(len, parts))
    return own + [max(part[i] for part in parts if i < len(part)) for i in range(deep)]


def _said(answers: Tree) -> str:
    """The chart in words."""
    return " ".join(
        f"{text}: {after}." if isinstance(after, str) else f"{text}: {_said(after)}"
        for text, after in answers
    )


def _draw(
    root: Element, text: str, after: Tree | str, depth: int, row: int, lefts: list[float]
) -> tuple[float, int]:
    """Draw a text and all that follows it; return its height and the next free row."""
    left = lefts[depth]
    if isinstance(after, str):
        middle = row * ROW + ROW / 2 + 5
        _text(root, left, middle, text)
        _line(root, left + LETTER * len(text) + 4, middle, lefts[depth + 1] - 6, middle)
        box = {"x": lefts[depth + 1] - 5, "y": middle - 11, "width": CODE * len(after) + 10}
        SubElement(root, "rect", {k: f"{v:.0f}" for k, v in box.items()}, height="22", rx="3")
        _text(root, lefts[depth + 1], middle, after, "choice")
        return middle, row + 1
    heights = []
    for answer, following in after:
        middle, row = _draw(root, answer, following, depth + 1, row, lefts)
        heights.append(middle)
    own = (heights[0] + heights[-1]) / 2
    _text(root, left, own, text)
    for height in heights:
        _line(root, left + LETTER * len(text) + 4, own, lefts[depth + 1] - 6, height)
    return own, row


def _line(root: Element, a: float, b: float, c: float, d: float) -> None:
    bend = c - GAP / 2
    SubElement(root, "path", d=f"M{a:.0f} {b:.0f} H{bend - 6:.0f} L{bend + 6:.0f} {d:.0f} H{c:.0f}")


def _text(root: Element, a: float, b: float, text: str, kind: str = "") -> None:
    found = SubElement(root, "text", {"x": f"{a:.0f}", "y": f"{b + 4.5:.0f}"})
    if kind:
        found.set("class", kind)
    found.text = text


def speed(results: Path = RESULTS) -> str:
    """Times of the same search by onefit and its peers as bars, from ``exact_search.csv``."""
    path = results / "exact_search.csv"
    if not path.exists():
        return "The results of `exact_search` are not committed at this version."
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "kfold"]
    largest = max(int(row["n"]) for row in rows)
    bars = [(row["contestant"], float(row["best_s"])) for row in rows if int(row["n"]) == largest]
    return _bars(bars, f"Seconds for the same search on {largest} rows")


def _bars(bars: list[tuple[str, float]], title: str) -> str:
    names = [name.replace(", gammas in parallel", "") for name, _ in bars]
    left, wide = LETTER * max(map(len, names)) + 14, 300
    size = left + wide + 110, ROW * len(bars) + 34
    root: Any = Element("svg", viewBox=f"0 0 {size[0]:.0f} {size[1]}", role="img")
    label = "; ".join(f"{name} {seconds:.3g} s" for name, seconds in bars)
    root.set("aria-label", f"{title}: {label}")
    root.set("style", f"max-width:{size[0]:.0f}px;width:100%")
    _text(root, 8, 16, title)
    slowest = max(seconds for _, seconds in bars)
    for i, (name, (_, seconds)) in enumerate(zip(names, bars, strict=True)):
        middle, long = 34 + ROW * i + ROW / 2, max(2.0, wide * seconds / slowest)
        _text(root, 8, middle, name)
        box = {"x": left, "y": middle - 9, "width": long, "height": 18}
        bar = SubElement(root, "rect", {k: f"{v:.0f}" for k, v in box.items()})
        bar.set("class", "ours" if name.startswith("onefit") else "peer")
        said = f"{seconds:.3g} s" + (f" ({seconds / bars[0][1]:.0f}×)" if i else "")
        _text(root, left + long + 6, middle, said)
    return f'<div class="chart">{tostring(root, encoding="unicode")}</div>'
