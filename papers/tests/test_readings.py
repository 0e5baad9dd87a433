"""Variants of the papers' settings do what their names say."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import Made, Tall, unit_of, values_of
from scipy import linalg
from sklearn.svm import SVC

from onefit.kernels.stationary import Gaussian
from onefit.losses import SmoothedHinge
from onefit_papers import (
    ecml2014,
    icml2014,
    ieice2019_algorithms,
    ins2016,
    ins2016_svm,
    jmlr2008,
)
from onefit_papers.data import scale
from onefit_papers.run import settings
from onefit_papers.sweep import Family, Sweep, draw_folds, seed_of


def test_icml_guards_leave_narrow_kernels_out():
    guards = [
        {"name": "wide", "at_least": 0.5, "columns": ""},
        {"name": "none", "at_least": 2.0, "columns": ""},
        {"name": "series", "at_least": 0.0, "columns": "BIF"},
    ]
    unit = unit_of("icml2014", set="heart") | {"tau": [-6, 8], "lam": [-7, -4], "folds": [5]}
    unit |= {"refit": False, "orders": [], "guards": guards}
    rows = icml2014.measure(unit, Made())
    family, _, _ = icml2014._prepare(unit, Made().load("heart"))
    means = {2.0**i: mean for i, mean in enumerate(family.off_diagonals(), unit["tau"][0])}
    wide = [row for row in rows if row["variant"] == "wide"]
    assert {row["column"] for row in wide} == set(values_of(rows, "1"))
    assert all(means[row["tau"]] >= 0.5 for row in wide)
    assert min(means.values()) < 0.5
    assert not [row for row in rows if row["variant"] == "none"]
    assert {row["column"] for row in rows if row["variant"] == "series"} == {"BIF-5CV"}
    assert not [row for row in wide if row["table"] != "1"]


def test_means_beside_the_diagonal():
    X = np.array([[0.0], [1.0], [3.0]])
    family = Family(X, np.array([1.0, -1.0, 1.0]), [Gaussian(0.1)], [1.0], SmoothedHinge(0.01))
    expected = np.exp([-0.1, -0.4, -0.9]).mean()
    assert family.off_diagonals() == pytest.approx([expected])


def test_a_choice_needs_a_kernel():
    sweep = Sweep(np.array([[1.0], [2.0]]), 0.0)
    assert sweep.among(np.array([False, True])).winner == (1, 0)
    with pytest.raises(ValueError, match="no kernel is left"):
        sweep.among(np.array([False, False]))


def test_ins_machine_with_intercept_is_libsvm():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = np.where(X[:, 0] > 0.4, 1.0, -1.0)
    family = Family(X[:30], y[:30], [Gaussian(0.5)], [0.01, 0.1], SmoothedHinge(0.01), False)
    found = ins2016_svm.predict(family, (0, 1), X[30:], "libsvm")
    plain = SVC(kernel="rbf", gamma=0.5, C=0.5 / (30 * 0.1)).fit(X[:30], y[:30])
    np.testing.assert_allclose(found, plain.decision_function(X[30:]), atol=2e-3)
    folds = draw_folds(30, 3, rng)
    values = ins2016_svm.sweep(family, folds, "libsvm").values
    wrong = [
        np.mean(
            SVC(gamma=0.5, C=0.5 / (20 * 0.01)).fit(X[a], y[a]).decision_function(X[b]) * y[b] <= 0
        )
        for a, b in folds
    ]
    assert values[0, 0] == pytest.approx(np.mean(wrong))


def test_ins_readings():
    units = ins2016.units(settings("ins2016")["full"])
    plain = [u for u in units if u["variant"] == "main" and u["kind"] == "polynomial"]
    assert {u["machine"] for u in plain} == {"liblinear"}
    assert {u["replicate"] for u in units if u["timed"] or u["refit"]} == {0}
    assert {u["set"] for u in plain if u["timed"]} == {u["set"] for u in plain}
    assert not [u for u in units if u["refit"] and u["set"] == "a2a"]
    unit = next(u for u in units if u["normalised"])
    assert all(k.diag(np.ones((2, 3))) == pytest.approx(1.0) for k in ins2016._kernels(unit))
    quick = unit_of("ins2016", kind="polynomial", replicate=1) | {"degree": [1, 2], "lam": [0, 1]}
    rows = ins2016.measure(quick, Made())
    assert {"5-CV", "10-CV"} <= {row["column"] for row in rows}
    assert {row["table"] for row in rows} == {"3 polynomial"}
    variant = ins2016.measure(quick | {"variant": "v", "machine": "libsvm", "folds": [5]}, Made())
    assert {row["table"] for row in variant} == {"3 polynomial"}
    assert "5-CV" in {row["column"] for row in variant}


def test_ins_choices_tested_by_the_svm():
    unit = unit_of("ins2016", kind="gaussian", set="heart", replicate=1) | {"sigma": [-8, 2]}
    unit |= {"machine": "libsvm", "lam": [-9, -5], "folds": [5], "timed": False, "refit": False}
    rows = ins2016.measure(unit | {"tested": {"name": "t", "at_least": 0.5}}, Made())
    plain, tested = (
        {row["column"]: row for row in rows if row["variant"] == name} for name in ("main", "t")
    )
    assert plain.keys() == tested.keys()
    assert tested["5-CV"] == plain["5-CV"] | {"variant": "t"}
    chosen = ("kernel", "lam")
    assert [tested["GACV"][key] for key in chosen] == [plain["GACV"][key] for key in chosen]
    data = Made().load("heart")
    X, y = scale(data.X, "minmax"), data.y
    order = np.random.default_rng(seed_of(unit["seed"], "heart", 1)).permutation(len(y))
    train, rest = np.split(order, [len(y) // 2])
    for column, row in tested.items():
        gamma = float(row["kernel"].removeprefix("Gaussian(gamma=").removesuffix(")"))
        C = 0.5 / (len(train) * row["lam"])
        machine = SVC(gamma=gamma, C=C, tol=1e-6).fit(X[train], y[train])
        wrong = 100.0 * np.mean(machine.decision_function(X[rest]) * y[rest] <= 0)
        assert row["value"] == pytest.approx(wrong, abs=1e-9), column
        K = Gaussian(gamma)(X[train])
        if column.endswith("BIF"):
            assert K[np.triu_indices_from(K, 1)].mean() >= 0.5
    assert "Gaussian(gamma=128.0)" in {plain["0.2-BIF"]["kernel"], plain["0.05-BIF"]["kernel"]}


def test_ecml_oracle_is_below_every_choice():
    rows = ecml2014.measure(unit_of("ecml2014", set="heart") | {"tau": [-4, 4]}, Made())
    for name in {row["table"] for row in rows if row["table"].startswith("1 ")}:
        own = [row for row in rows if row["table"] == name]
        (oracle,) = (row["value"] for row in own if row["column"] == "oracle")
        assert all(oracle <= row["value"] for row in own)
    y, u = np.array([1.0, -1.0]), np.array([2.0, 2.0])
    np.testing.assert_array_equal(ecml2014.percent(y, u), [0.0, 100.0])


def test_jmlr_readings_change_the_data():
    units = jmlr2008.units(settings("jmlr2008")["full"])
    shifted = next(u for u in units if u.get("one_sided") and u["set"] == "S+o")
    plain = shifted | {"one_sided": False}
    drawn = [
        jmlr2008._draw(unit | {"outliers": count}, Tall(), np.random.default_rng(3))[1]
        for unit, count in ((shifted, 10), (plain, 10), (plain, 0))
    ]
    moves, gaussian = drawn[0] - drawn[2], drawn[1] - drawn[2]
    assert np.unique(moves[moves != 0.0].round(9)).size == 1
    assert moves.max() == pytest.approx(6.0 * drawn[2].std())
    assert (np.flatnonzero(moves) == np.flatnonzero(gaussian)).all()
    assert gaussian.min() < 0.0 < gaussian.max()
    X = np.random.default_rng(0).standard_normal((30, 2))
    grid = {"pairs": 500, "ranks": [1, 250, 500]}
    up, down = (
        [
            k.gamma**-0.5
            for k in jmlr2008._kernels(grid | {"largest": way}, X, np.random.default_rng(1))
        ]
        for way in (False, True)
    )
    assert up[1:-1] == pytest.approx(down[1:-1][::-1], rel=0.2)
    assert down[0] == pytest.approx(0.5 * max(up[1:-1]))
    small = next(u for u in units if u.get("largest") and u["set"] == "F2" and u["factor"] == 1e5)
    assert small["noise"] == pytest.approx(1.0 / 3000.0)


@pytest.mark.parametrize("how", ["Cholesky", "LU"])
def test_ieice_operations(how):
    rng = np.random.default_rng(0)
    problem = ieice2019_algorithms.noise(30, rng)
    M = ieice2019_algorithms.shifted(problem, 0.1)
    expected = linalg.inv(problem.K.matrix + 0.1 * np.eye(30))
    solution = ieice2019_algorithms.SOLVERS[how](M, problem.Y)
    np.testing.assert_allclose(solution, expected @ problem.Y, atol=1e-9)
    np.testing.assert_allclose(ieice2019_algorithms.INVERSES[how](M), expected, atol=1e-9)


def test_ieice_lu_of_a_singular_matrix_is_refused():
    with pytest.raises(linalg.LinAlgError, match="LU factorisation stopped"):
        ieice2019_algorithms.INVERSES["LU"](np.zeros((3, 3), order="F"))
