"""Drawings are at the values, for axes of a notebook and for SVG alike."""

from __future__ import annotations

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from onefit import KernelRegressor, KernelSearchCV
from onefit.report.facts import Facts

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.figure import Figure  # noqa: E402

from onefit.report import figures  # noqa: E402

X, y = make_friedman1(50, random_state=0)
GRID = {"gamma": [1e-5, 0.01, 1.0], "lam": [1e-12, 1e-4, 1e-2, 1e3]}


def axes():
    return Figure().add_subplot()


@pytest.fixture(scope="module")
def facts():
    return Facts(KernelSearchCV(KernelRegressor(), GRID, cv=5).fit(X, y))


def test_colours_of_a_surface_end_at_the_baseline(facts):
    axis = axes()
    figures.draw_surface(axis, facts, facts.families[0])
    low, high = axis.images[0].get_clim()
    assert facts.scores.min() < facts.baseline
    assert low == pytest.approx(facts.baseline)
    assert high == pytest.approx(facts.scores.max())
    scoring = "neg_mean_squared_error"
    search = KernelSearchCV(KernelRegressor(), GRID, cv=5, scoring=scoring)
    other = Facts(search.fit(X, y + 5.0 * np.random.default_rng(0).normal(size=y.size)))
    axis = axes()
    figures.draw_surface(axis, other, other.families[0])
    assert -other.scores.min() > other.baseline > -other.scores.max()
    assert axis.images[0].get_clim()[1] == pytest.approx(other.baseline)
    assert axis.images[0].get_cmap().name == "viridis_r"


def test_an_edge_of_the_grid_is_a_line(facts):
    axis = axes()
    grid = {"gamma": [0.1, 1.0, 10.0], "lam": [1e-9, 1e-2, 1e2]}
    edge = Facts(KernelSearchCV(KernelRegressor(), grid).fit(X, y))
    assert set(edge.edge_sides) == {"gamma"}
    figures.draw_surface(axis, edge, edge.families[0])
    (line,) = [one for one in axis.lines if str(one.get_label()).startswith("edge")]
    assert line.get_label() == "edge: smallest gamma"
    assert set(line.get_ydata()) == {-0.5}
    axis = axes()
    assert not facts.edge_sides
    figures.draw_surface(axis, facts, facts.families[0])
    assert not axis.lines


def test_held_out_points_are_predictions_and_targets():
    axis = axes()
    held = y + 1.0
    figures.draw_heldout(axis, y, held, "a$b$")
    np.testing.assert_allclose(axis.lines[0].get_xydata(), np.column_stack([held, y]))
    axis.figure.canvas.draw()  # no formula
    axis = axes()
    figures.draw_heldout(axis, np.arange(5000.0), np.arange(5000.0), "t")
    assert len(axis.lines[0].get_xdata()) == figures.MAX_POINTS


def test_a_confusion_matrix_has_counts():
    axis = axes()
    figures.draw_confusion(axis, np.array([[1200, 3], [0, 4]]), ["no", "yes"])
    assert [one.get_text() for one in axis.texts] == ["1,200", "3", "0", "4"]
    np.testing.assert_allclose(axis.images[0].get_array()[1], [0.0, 1.0])


def test_relevance_is_drawn_with_its_range():
    values = np.array([0.2, 0.5, 0.3])
    found = SimpleNamespace(names=list("abc"), values=values, low=values - 0.1, high=values + 0.1)
    axis = axes()
    figures.draw_relevance(axis, found, np.array([1, 2]))
    assert [bar.get_width() for bar in axis.patches] == [0.3, 0.5]  # the first is on top
    assert [one.get_text() for one in axis.get_yticklabels()] == ["c", "b"]
    ends = [line[:, 0].tolist() for line in axis.collections[0].get_segments()]
    np.testing.assert_allclose(ends, [[0.2, 0.4], [0.4, 0.6]])


def test_the_svg_is_valid_and_takes_its_colours_from_the_page():
    text = figures.as_svg(figures.draw_heldout, y, y, "<b>&", name="one")
    root = ElementTree.fromstring(text)
    assert root.get("viewBox")
    assert root.get("width") is None
    assert "var(--ink)" in text
    assert not [colour for colour in figures.COLOURS if colour in text]
    assert "<b>" not in text
    other = figures.as_svg(figures.draw_heldout, y, y, "t", name="two")
    ids = [{one.get("id") for one in ElementTree.fromstring(one).iter()} - {None}
           for one in (text, other)]  # fmt: skip
    assert ids[0]
    assert not ids[0] & ids[1]


def test_many_labels_become_few():
    axis = axes()
    figures.draw_confusion(axis, np.eye(40), [str(i) for i in range(40)])
    assert [one.get_text() for one in axis.get_xticklabels()] == [str(i) for i in range(0, 40, 4)]
    assert not axis.texts
