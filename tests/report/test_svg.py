"""Figures as SVG: marks are where the axes say, text is escaped, nothing is lost."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from onefit.report.svg import Axis, draw, legend

NAMESPACE = "{http://www.w3.org/2000/svg}"


def figure(traces, x=None, y=None, **layout):
    axes = {f"{name}axis": {"title": {"text": name}} | (about or {})
            for name, about in (("x", x), ("y", y))}  # fmt: skip
    return {"data": traces, "layout": {"height": 400, **axes, **layout}}


def parse(found):
    (text,) = draw(found)
    return ElementTree.fromstring(text)


def marks(root, tag):
    return root.findall(f".//{NAMESPACE}g[@data-trace]//{NAMESPACE}{tag}")


def scatter(**options):
    return {"type": "scatter", "mode": "markers", "name": "rows", "x": [1.0, 2.0, 3.0],
            "y": [5.0, None, 7.0], "text": ["a", "b", "<c>"]} | options  # fmt: skip


def test_points_keep_their_order_their_tips_and_leave_gaps_out():
    circles = marks(parse(figure([scatter()])), "circle")
    assert [one.get("data-tip") for one in circles] == ["a", "<c>"]
    assert float(circles[0].get("cx")) < float(circles[1].get("cx"))
    assert float(circles[0].get("cy")) > float(circles[1].get("cy"))  # upwards


@pytest.mark.parametrize("kind", ["linear", "log"])
def test_an_axis_is_monotone_and_its_ticks_are_at_their_values(kind):
    axis = Axis.of({"type": kind}, [1e-4, 3.0, 100.0], 0.0, 300.0)
    places = [axis(value) for value in (1e-4, 3.0, 100.0)]
    assert 0.0 < places[0] < places[1] < places[2] < 300.0
    ticks = list(axis.ticks(6))
    assert 2 <= len(ticks) <= 8
    for place, label in ticks:
        assert place == pytest.approx(axis(float(label)), abs=1e-6)


@pytest.mark.parametrize("values", [[2.0], [0.0, 0.0], [-1e-300, 1e-300], [1e300, 2e300]])
def test_an_axis_of_any_values_has_a_width(values):
    axis = Axis.of({}, values, 0.0, 100.0)
    assert all(math.isfinite(axis(value)) for value in values)
    assert axis.low < axis.high
    assert len(list(axis.ticks(5))) < 20


def test_categories_are_in_their_order_and_may_be_reversed():
    down = Axis.of({"type": "category", "autorange": "reversed"}, ["a", "b", "a"], 100.0, 0.0)
    assert down.names == ("a", "b")
    assert down("a") < down("b")


def test_error_bars_are_inside_the_axis():
    trace = scatter(y=[5.0, 6.0, 7.0], error_y={"array": [1.0, None, 3.0]})
    root = parse(figure([trace]))
    lines = marks(root, "line")
    assert len(lines) == 3
    ends = [float(one.get(name)) for one in lines for name in ("y1", "y2")]
    assert min(ends) > 0.0
    assert max(ends) < 400.0


def test_a_heat_map_has_a_cell_for_every_value_and_shows_counts():
    trace = {"type": "heatmap", "x": ["p", "q"], "y": ["r", "s"], "z": [[1, 2], [None, 4]],
             "text": [["1", "2"], ["3", "4"]], "cells": [["1", "2"], ["", "4"]],
             "colorscale": "Blues", "colorbar": True}  # fmt: skip
    category = {"type": "category"}
    root = parse(figure([trace], category, category))
    cells = [one for one in marks(root, "rect") if one.get("data-tip")]
    assert [one.get("data-tip") for one in cells] == ["1", "2", "3", "4"]
    assert cells[2].get("fill") == "none"
    assert cells[0].get("fill") == "#f7fbff"
    assert cells[3].get("fill") == "#08306b"
    text = [one for one in marks(root, "text") if "cell" in one.get("class", "")]
    assert [one.text or "" for one in text] == ["1", "2", "", "4"]


def test_names_are_escaped():
    (text,) = draw(figure([scatter(text=["</svg><script>", '"', "&"], y=[1.0, 2.0, 3.0])],
                          {"title": {"text": "<b>&"}}))  # fmt: skip
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;b&gt;&amp;" in text


def test_the_legend_has_the_colours_of_the_traces():
    traces = [scatter(marker={"color": "#111111"}), scatter(mode="lines", name="other")]
    assert legend(figure(traces)) == []
    (first, second) = legend(figure(traces, showlegend=True))
    assert first == (0, "rows", "#111111")
    assert second[:2] == (1, "other")
    lines = marks(parse(figure(traces)), "polyline")
    assert [one.get("stroke") for one in lines] == [second[2]]
