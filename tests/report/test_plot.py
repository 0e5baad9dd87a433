"""Figures for a notebook."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from onefit import KernelRegressor, KernelSearchCV
from onefit.heldout import Influence

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

X, y = make_friedman1(50, random_state=0)
GRID = {"gamma": [1e-5, 0.1], "lam": [1e-4, 1e-2, 1.0]}


@pytest.fixture(autouse=True)
def close():
    yield
    matplotlib.pyplot.close("all")


def test_surface_and_curve():
    search = KernelSearchCV(KernelRegressor(), GRID, cv=5, scoring="neg_mean_squared_error")
    surface, curve = search.fit(X, y).plot()
    errors = -search.cv_results_["mean_test_score"].reshape(2, 3)
    np.testing.assert_allclose(surface.images[0].get_array(), errors)
    best = np.unravel_index(search.best_index_, (2, 3))
    assert best[0] == 1
    star = next(one for one in surface.collections if one.get_label() == "chosen")
    np.testing.assert_array_equal(star.get_offsets(), [best[::-1]])
    np.testing.assert_allclose(curve.lines[0].get_xydata()[:, 1], errors[best[0]])
    assert curve.get_ylabel() == "mean squared error"
    surface.figure.canvas.draw()


def test_curve_alone():
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-2, 1.0]}, cv=3).fit(X, y)
    (curve,) = search.plot()
    np.testing.assert_allclose(curve.lines[0].get_xydata()[:, 0], [1e-2, 1.0])
    curve.figure.canvas.draw()


def test_doubtful_cells_are_marked():
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3, method=Influence(order=1)).fit(X, y)
    marks = {one.get_label(): one for one in search.plot()[0].collections}
    assert len(marks["not exact"].get_offsets()) == (~search.cv_results_["exact"]).sum()


def test_an_unfitted_search_has_no_figure():
    with pytest.raises(ValueError, match="no winner"):
        KernelSearchCV(KernelRegressor(), GRID).plot()


def test_a_notebook_shows_the_choice_and_the_surface():
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).fit(X, y)
    shown = search._repr_html_()
    assert "Chosen: " in shown
    assert shown.count("<svg") == 1
    assert ">gamma</text>" in shown
    line = KernelSearchCV(KernelRegressor(), {"lam": [1e-2, 1.0]}, cv=3).fit(X, y)
    assert ">gamma</text>" not in line._repr_html_()  # one gamma: the curve
    assert search._repr_mimebundle_()["text/html"] == shown
    assert "typically off by" in shown
    assert "Chosen" not in KernelSearchCV(KernelRegressor(), GRID)._repr_html_()


def test_the_html_of_a_large_search_stays_small():
    grid = {"gamma": np.logspace(-3, 3, 100), "lam": np.logspace(-6, 1, 30)}
    search = KernelSearchCV(KernelRegressor(), grid, cv=3).fit(X, y)
    assert len(search._repr_html_()) < 20_000


def test_scikit_learns_progress_bar_counts_kernels(capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).set_callbacks(callback.ProgressBar())
    search.fit(X, y)
    assert "100%" in capsys.readouterr().out
