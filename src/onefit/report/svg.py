"""Figures as SVG, drawn here, so that a page of a few hundred kilobytes holds everything.

A figure is the plain data that :mod:`onefit.report.figures` writes: traces (points, lines, bars,
heat maps) and the layout of their axes. Coordinates of the drawing are pixels of a box ``WIDTH``
wide, which the page scales to its column. Every mark carries what it says in ``data-tip``; text and
thin lines take their colours from the page's style sheet, so that they follow it into the dark and
onto paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

__all__ = ["draw", "legend"]

Figure = dict[str, Any]

WIDTH, PANEL = 460, 360
#: room for labels: left, right, top, bottom
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 10, 46
#: width of the colour bar with its labels
BAR = 64
#: colours of traces that name none
COLOURS = ("#3b7dd8", "#d97706", "#16a34a", "#dc2626", "#9333ea", "#0e7490", "#be185d", "#65a30d")
SCALES = {
    "Viridis": "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
    "Blues": "f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b",
}
#: pixels that a character of a label takes, about
LETTER = 6.6


def draw(figure: Figure) -> list[str]:
    """One drawing for every panel of a figure."""
    panels: dict[str, list[tuple[int, Figure]]] = {}
    for place, trace in enumerate(figure["data"]):
        panels.setdefault(trace.get("xaxis", "x").removeprefix("x"), []).append((place, trace))
    return [_panel(traces, figure["layout"], suffix) for suffix, traces in panels.items()]


def legend(figure: Figure) -> list[tuple[int, str, str]]:
    """Number, name and colour of the traces, where there are several to tell apart."""
    if not figure["layout"].get("showlegend"):
        return []
    return [
        (place, trace["name"], _colour(trace, place))
        for place, trace in enumerate(figure["data"])
        if trace["type"] != "heatmap"
    ]


@dataclass(frozen=True)
class Axis:
    """From values to pixels, one of the two directions.

    Attributes
    ----------
    kind : {"linear", "log", "category"}
    low, high : float
        Ends of the range: values, logarithms, or places of categories.
    start, end : float
        Pixels of these ends.
    names : tuple of str
        The categories.
    """

    kind: str
    low: float
    high: float
    start: float
    end: float
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, about: Figure, values: list[Any], start: float, end: float) -> Axis:
        """The axis that holds these values."""
        kind = about.get("type", "linear")
        if about.get("autorange") == "reversed":
            start, end = end, start
        if kind == "category":
            names = tuple(dict.fromkeys(map(str, values)))
            return cls(kind, -0.5, len(names) - 0.5, start, end, names)
        known = [float(v) for v in values if v is not None and (kind != "log" or v > 0)]
        ends = [math.log10(v) if kind == "log" else v for v in (min(known), max(known))]
        margin = 0.04 * (ends[1] - ends[0]) or 0.5 * abs(ends[0]) or 0.5
        return cls(kind, ends[0] - margin, ends[1] + margin, start, end)

    def __call__(self, value: Any) -> float:
        if self.kind == "category":
            value = self.names.index(str(value)) if isinstance(value, str) else value
        elif self.kind == "log":
            value = math.log10(value)
        share = (float(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> Iterator[tuple[float, str]]:
        """Places and labels, at most about so many."""
        if self.kind == "category":
            step = -(-len(self.names) // max(most, 1))
            for place in range(0, len(self.names), step):
                yield self(float(place)), self.names[place]
        elif self.kind == "log":
            low, high = math.ceil(self.low), math.floor(self.high)
            step = max(1, -(-(high - low + 1) // most))
            for power in range(low, high + 1, step):
                yield self(10.0**power), f"{10.0**power:g}"
        else:
            unit = _round_step((self.high - self.low) / most)
            for count in range(math.ceil(self.low / unit), math.floor(self.high / unit) + 1):
                yield self(count * unit), f"{count * unit:.6g}"


def _round_step(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(c * power for c in (1, 2, 5, 10) if c * power >= 0.999 * step)


def _panel(traces: list[tuple[int, Figure]], layout: Figure, suffix: str) -> str:
    about = layout[f"xaxis{suffix}"], layout[f"yaxis{suffix}"]
    width = PANEL if "grid" in layout else WIDTH
    height = 300 if "grid" in layout else layout["height"]
    scaled = any(one["type"] == "heatmap" and one.get("colorbar") for _, one in traces)
    values = [[v for _, one in traces for v in _extent(one, name)] for name in "xy"]
    left = LEFT
    if about[1].get("type") == "category":
        left = 30 + min(170, max(36, int(LETTER * max(len(_cut(str(v))) for v in values[1]))))
    x = Axis.of(about[0], values[0], left, width - RIGHT - (BAR if scaled else 0))
    y = Axis.of(about[1], values[1], height - BOTTOM, TOP)
    root = Element("svg", viewBox=f"0 0 {width} {height}", xmlns="http://www.w3.org/2000/svg")
    _axes(root, x, y, [one["title"]["text"] for one in about], height, left)
    for place, trace in traces:
        group = SubElement(root, "g", {"data-trace": str(place)})
        DRAWN[trace["type"]](group, trace, x, y, _colour(trace, place))
    return tostring(root, encoding="unicode")


def _extent(trace: Figure, name: str) -> list[Any]:
    """The values that an axis must hold."""
    values = [v for v in trace[name] if v is not None]
    bars = trace.get(f"error_{name}")
    if trace["type"] == "bar" and name == "x":
        values.append(0.0)
    if bars:
        for value, low, high in _ends(trace[name], bars):
            if value is not None:
                values += [value - low, value + high]
    return values


def _ends(values: Sequence[Any], bars: Figure) -> Iterator[tuple[Any, float, float]]:
    """Values, and how far an error bar goes below and above."""
    below = bars["arrayminus"] if "arrayminus" in bars else bars["array"]
    for value, low, high in zip(values, below, bars["array"], strict=True):
        yield value, low or 0.0, high or 0.0


def _axes(root: Element, x: Axis, y: Axis, titles: list[str], height: int, left: int) -> None:
    grid = SubElement(root, "g", {"class": "grid"})
    right = max(x.start, x.end)
    longest = max((len(name) for name in x.names), default=5)
    for place, label in x.ticks(max(2, int((right - left) / (LETTER * min(longest, 14) + 14)))):
        if x.kind != "category":
            _line(grid, place, TOP, place, height - BOTTOM)
        _text(root, place, height - BOTTOM + 17, _cut(label, 14), "middle")
    for place, label in y.ticks(24 if y.kind == "category" else 7):
        if y.kind != "category":
            _line(grid, left, place, right, place)
        _text(root, left - 6, place + 4, _cut(label), "end")
    _text(root, (left + right) / 2, height - 8, titles[0], "middle", "title")
    turned = _text(root, 0, 0, titles[1], "middle", "title")
    turned.set("transform", f"translate(14 {(TOP + height - BOTTOM) / 2:.1f}) rotate(-90)")


def _scatter(group: Element, trace: Figure, x: Axis, y: Axis, colour: str) -> None:
    mode, tips = trace.get("mode", "markers"), trace.get("text")
    points = [
        (x(a), y(b), tips[i] if tips else "")
        for i, (a, b) in enumerate(zip(trace["x"], trace["y"], strict=True))
        if a is not None and b is not None and (y.kind != "log" or b > 0)
    ]
    if "lines" in mode and points:
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b, _ in points)
        line = SubElement(group, "polyline", points=path, fill="none", stroke=colour)
        line.set("stroke-width", "2")
        if trace.get("line", {}).get("dash"):
            line.set("stroke-dasharray", "5 4")
    _error_bars(group, trace, x, y, colour)
    marker = trace.get("marker", {})
    for a, b, tip in points if "markers" in mode or tips else []:
        hidden = "markers" not in mode
        size = 8 if hidden else marker.get("size", 7) / 2
        mark = _marker(group, marker.get("symbol", "circle"), a, b, size)
        mark.set("fill", "transparent" if hidden else colour)
        for name, value in (("opacity", marker.get("opacity")), ("data-tip", tip)):
            if value:
                mark.set(name, str(value))
        if "line" in marker:
            mark.set("stroke", marker["line"]["color"])


def _marker(group: Element, symbol: str, a: float, b: float, size: float) -> Element:
    if symbol == "circle":
        return SubElement(group, "circle", cx=f"{a:.1f}", cy=f"{b:.1f}", r=f"{size:.1f}")
    arms: tuple[tuple[float, float], ...]
    if symbol == "x":
        arms = ((-1, -0.6), (-0.6, -1), (0, -0.4), (0.6, -1), (1, -0.6), (0.4, 0), (1, 0.6),
                (0.6, 1), (0, 0.4), (-0.6, 1), (-1, 0.6), (-0.4, 0))  # fmt: skip
    else:  # a star
        turns = [(math.pi * (i / 5 - 0.5), 1.0 if i % 2 == 0 else 0.4) for i in range(10)]
        arms = tuple((r * math.cos(t), r * math.sin(t)) for t, r in turns)
    path = " ".join(f"{a + size * p:.1f},{b + size * q:.1f}" for p, q in arms)
    return SubElement(group, "polygon", points=path)


def _error_bars(group: Element, trace: Figure, x: Axis, y: Axis, colour: str) -> None:
    for name, axis in (("x", x), ("y", y)):
        bars = trace.get(f"error_{name}")
        for i, (value, low, high) in enumerate(_ends(trace[name], bars) if bars else ()):
            other = trace["y" if name == "x" else "x"][i]
            if value is None or other is None:
                continue
            ends = axis(value - low), axis(value + high)
            across = y(other) if name == "x" else x(other)
            places = (ends[0], across, ends[1], across) if name == "x" else (
                across, ends[0], across, ends[1])  # fmt: skip
            line = _line(group, *places)
            line.set("stroke", "currentColor" if trace["type"] == "bar" else colour)


def _bars(group: Element, trace: Figure, x: Axis, y: Axis, colour: str) -> None:
    high = 0.7 * abs(y.end - y.start) / len(y.names)
    for value, name in zip(trace["x"], trace["y"], strict=True):
        _box(
            group,
            x(0.0),
            y(name) - high / 2,
            x(value) - x(0.0),
            high,
            colour,
            f"{name}: {value:.3g}",
        )
    _error_bars(group, trace, x, y, colour)


def _heat(group: Element, trace: Figure, x: Axis, y: Axis, colour: str) -> None:
    known = [v for row in trace["z"] for v in row if v is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    wide, tall = (abs(one.end - one.start) / len(one.names) for one in (x, y))
    for r, row in enumerate(trace["z"]):
        for c, value in enumerate(row):
            share = None if value is None else (value - low) / ((high - low) or 1.0)
            fill = "none" if share is None else _shade(trace, share)
            a, b = x(float(c)), y(float(r))
            _box(group, a - wide / 2, b - tall / 2, wide, tall, fill, trace["text"][r][c])
            if "cells" in trace:
                kind = "cell light" if share is not None and share > 0.5 else "cell"
                _text(group, a, b + 5, trace["cells"][r][c], "middle", kind)
    if trace.get("colorbar"):
        _colour_bar(group, trace, (low, high), max(x.start, x.end) + 12, y)


def _colour_bar(group: Element, trace: Figure, ends: Any, left: float, y: Axis) -> None:
    steps, top, tall = 24, min(y.start, y.end), abs(y.end - y.start)
    for i in range(steps):
        fill = _shade(trace, 1 - (i + 0.5) / steps)
        _box(group, left, top + tall * i / steps, 12, tall / steps + 0.5, fill, "")
    for share in (0.0, 0.5, 1.0):
        label = f"{ends[1] - share * (ends[1] - ends[0]):.3g}"
        _text(group, left + 15, top + 4 + share * (tall - 6), label, "start")


def _shade(trace: Figure, share: float) -> str:
    """The colour at a share of the scale."""
    stops = SCALES[trace["colorscale"]].split()
    place = (1.0 - share if trace.get("reversescale") else share) * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    part = place - first
    ends = [[int(stop[i : i + 2], 16) for i in (0, 2, 4)] for stop in stops[first : first + 2]]
    return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in zip(*ends, strict=True))


def _colour(trace: Figure, place: int) -> str:
    for part in ("marker", "line"):
        if isinstance(trace.get(part, {}).get("color"), str):
            return str(trace[part]["color"])
    return COLOURS[place % len(COLOURS)]


def _box(group: Element, a: float, b: float, wide: float, tall: float, fill: str, tip: str) -> None:
    size = {"x": a, "y": b, "width": wide, "height": tall}
    box = SubElement(group, "rect", {k: f"{v:.1f}" for k, v in size.items()}, fill=fill)
    if tip:
        box.set("data-tip", tip)


def _line(group: Element, a: float, b: float, c: float, d: float) -> Element:
    ends = {"x1": a, "y1": b, "x2": c, "y2": d}
    return SubElement(group, "line", {k: f"{v:.1f}" for k, v in ends.items()})


def _text(group: Element, a: float, b: float, text: str, anchor: str, kind: str = "") -> Element:
    place = {"x": f"{a:.1f}", "y": f"{b:.1f}", "text-anchor": anchor}
    found = SubElement(group, "text", place | ({"class": kind} if kind else {}))
    found.text = text
    return found


def _cut(text: str, most: int = 24) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


DRAWN = {"scatter": _scatter, "bar": _bars, "heatmap": _heat}
