"""Small pieces of every paper's experiment, on made-up data where the data directory is absent."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import linalg, stats
from sklearn.svm import SVC

from onefit import KernelRegressor
from onefit.fit import fit
from onefit.folds import leave_one_out
from onefit.heldout.refit import refit_fold
from onefit.kernels.stationary import Gaussian
from onefit.losses import SmoothedHinge
from onefit.problem import Problem
from onefit.reproduce import (
    ecml2014,
    icml2014,
    ieice2019,
    ieice2019_algorithms,
    ins2016,
    ins2016_svm,
    jmlr2008,
    jmlr2008_toy,
    reproduce,
)
from onefit.reproduce.data import DataSet, Loader
from onefit.reproduce.results import Published
from onefit.reproduce.run import PAPERS, settings
from onefit.reproduce.sweep import draw_folds

MODULES = {m.NAME: m for m in (icml2014, ecml2014, ins2016, jmlr2008, ieice2019)}


class Made:
    """A loader of made-up sets of 60 rows."""

    def load(self, name):
        rng = np.random.default_rng(7)
        X = rng.standard_normal((60, 3))
        signal = np.sin(2 * X[:, 0]) + X[:, 1]
        y = signal + 0.3 * rng.standard_normal(60)
        labelled = name not in ("bodyfat", "servo", "pyrim")
        return DataSet(name, X, np.where(y > 0, 1.0, -1.0) if labelled else y, "made up")


def _values(rows, table, variant="main"):
    return {
        r["column"]: r["value"] for r in rows if r["table"] == table and r["variant"] == variant
    }


def _unit(paper, **wanted):
    units = MODULES[paper].units(settings(paper)["quick"])
    return next(u for u in units if all(u.get(k) == v for k, v in wanted.items()))


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("mode", ["quick", "full"])
def test_units_are_different_and_flat(paper, mode):
    units = MODULES[paper].units(settings(paper)[mode])
    assert len({repr(sorted(u.items())) for u in units}) == len(units) > 5


def test_full_mode_has_the_papers_sets_and_replicates():
    def named(paper):
        units = MODULES[paper].units(settings(paper)["full"])
        return {
            (u["set"], u["replicate"])
            for u in units
            if u.get("variant", "main") == "main" and "set" in u
        }

    assert len({name for name, _ in named("icml2014")}) == 20
    assert len(named("ecml2014")) == 9 * 10
    assert {name for name, _ in named("jmlr2008")} == {
        "B",
        "O",
        "S",
        "F1",
        "F2",
        "F3",
        "B+o",
        "O+o",
        "S+o",
    }
    assert len({name for name, _ in named("ins2016")}) == 10


@pytest.mark.parametrize("paper", ["icml2014", "ecml2014", "ins2016"])
def test_the_same_seed_gives_the_same_numbers(paper):
    unit = _unit(paper, set="heart") | {
        "lam": [-3, -1],
        "tau": [-1, 2],
        "sigma": [-1, 2],
        "lams": [1e-3, 1e-2],
    }
    unit |= {"refit": False, "etas": [0], "orders": [], "machine": "libsvm"}
    one, two = (
        [r["value"] for r in MODULES[paper].measure(unit, Made()) if r["table"][0] != _timed(paper)]
        for _ in "ab"
    )
    assert one == two


def _timed(paper):
    return {"icml2014": "2", "ins2016": "4"}.get(paper, "-")


@pytest.mark.parametrize("name", ["heart", "bodyfat"])
def test_icml_exact_and_limit_are_the_refits(name):
    unit = _unit("icml2014", set=name, replicate=0) | {
        "tau": [-2, 3],
        "lam": [-7, -3],
        "orders": [1, 2, 3, 4],
    }
    rows = icml2014.measure(unit, Made())
    errors = _values(rows, "1")
    for k in unit["folds"]:
        assert errors[f"exact-{k}CV"] == errors[f"limit-{k}CV"] == errors[f"{k}CV"]
        gaps = _values(rows, "figure 1")
        series = [gaps[f"{k}CV, order {t}"] for t in unit["orders"]]
        assert all(a > b for a, b in pairwise(series))
        assert gaps[f"{k}CV, limit"] < 1e-15 < series[-1]


def test_icml_variants_change_the_data():
    unit = _unit("icml2014", set="heart") | {"refit": False}
    family, _, _ = icml2014._prepare(unit | {"drop": [0]}, Made().load("heart"))
    assert family.X.shape == (30, 2)
    relabelled, _, _ = icml2014._prepare(unit | {"label_from": 2}, Made().load("heart"))
    assert relabelled.X.shape == (30, 2)
    assert not np.array_equal(relabelled.y, family.y)


def test_ecml_stability_with_no_weight_is_cross_validation():
    unit = _unit("ecml2014", set="heart") | {"tau": [-4, 4], "eta": 0.0, "etas": [-60]}
    rows = ecml2014.measure(unit, Made())
    for lam in unit["lams"]:
        errors = _values(rows, f"1 lam={lam:g}")
        assert errors["5-KS"] == errors["5-CV"]
    heavy = ecml2014.measure(unit | {"eta": 1e9}, Made())
    chosen = {r["tau"] for r in heavy if r["column"] == "5-KS" and r["table"].startswith("1 ")}
    assert chosen == {2.0**-4}


def test_ins_machine_is_the_svm_without_intercept():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 2))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(50) > 0, 1.0, -1.0)
    K = Gaussian(0.5)(X)
    Z = ins2016_svm.features(K)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10)
    lam = 0.02
    u = ins2016_svm.linear_svm(Z, y, lam).decision_function(Z)
    smooth = fit(Problem(K, y[:, None], np.ones(50), SmoothedHinge(1e-4), False), lam)
    np.testing.assert_allclose(u, smooth.u[:, 0], atol=5e-3)
    with_bias = SVC(kernel="precomputed", C=0.5 / (50 * lam)).fit(K, y).decision_function(K)
    assert np.abs(u - with_bias).max() > 0.02


def test_ins_bif_is_near_exact_at_large_lambda():
    unit = _unit("ins2016", kind="gaussian", set="heart") | {
        "sigma": [-1, 2],
        "lam": [1, 3],
        "folds": [5],
    }
    errors = _values(ins2016.measure(unit, Made()), "3 gaussian")
    assert errors["0.1-BIF"] == errors["exact-5"]
    assert {"5-CV", "GACV", "0.2-BIF", "exact-4", "exact-6"} <= set(errors)


def test_jmlr_columns():
    unit = _unit("jmlr2008", set="S+o", replicate=0) | {
        "lams": [1e-2, 1e-3],
        "ranks": [1, 250, 500],
    }
    data = Made()
    rng = np.random.default_rng(0)
    X, _y, test, _ = jmlr2008._draw(unit | {"outliers": 4}, _Tall(data), rng)
    assert X.shape == (140, 3)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    assert len(test.y) == 27
    rows = jmlr2008.measure(unit, _Tall(data))
    errors = _values(rows, "1")
    assert list(errors) == list(jmlr2008.COLUMNS)
    assert errors["b optimised"] in {errors[c] for c in ("C_IF5", "b=3", "b=2", "b=1")}
    assert errors["b=1"] < errors["C_IF5"]


class _Tall:
    """The made-up set as often as needed for 167 rows."""

    def __init__(self, loader):
        self.loader = loader

    def load(self, name):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((167, 3))
        return DataSet(name, X, np.sin(X[:, 0]) + X[:, 1], "made up")


def test_jmlr_grid_of_sigma():
    unit = {"pairs": 500, "ranks": [1, 250, 500], "largest": False}
    X = np.random.default_rng(0).standard_normal((30, 2))
    sigmas = [k.gamma**-0.5 for k in jmlr2008._kernels(unit, X, np.random.default_rng(1))]
    assert sigmas[0] == pytest.approx(0.5 * sigmas[1])
    assert sigmas[-1] == pytest.approx(2.0 * sigmas[-2])
    assert sigmas[1] < sigmas[2] < sigmas[3]
    assert sigmas[1] > 0


def test_jmlr_scale_of_residuals():
    r = np.random.default_rng(0).standard_normal(50) * 3.0
    assert jmlr2008.spread(r) == pytest.approx(stats.median_abs_deviation(r, scale="normal"))


def test_jmlr_toy_influence_is_the_effect_of_a_small_weight():
    rng = np.random.default_rng(0)
    x = rng.uniform(2, 11, 50)
    X, y = x[:, None], np.sin(x)
    found = jmlr2008_toy._figure1(X, y)
    at = np.linspace(2.0, 11.0, 181)[:, None]
    both, targets = np.vstack([X, [[5.0]]]), np.append(y, 1.0)
    eps = 1e-6
    curves = [
        KernelRegressor(lam=0.001, gamma=0.25, fit_intercept=False)
        .fit(both, targets, sample_weight=np.append(np.full(50, (1 - e) / 50), e + 1e-12))
        .predict(at)
        for e in (0.0, eps)
    ]
    slope = np.abs((curves[1] - curves[0]) / eps).max()
    assert found["figure 1", "(5, 1), sigma 2", "largest"] == pytest.approx(slope, rel=1e-3)


def test_jmlr_toy_figures():
    unit = _unit("jmlr2008", kind="toy") | {
        "toy_sigmas": [1.0, 3.0, 3],
        "toy_lams": [1e-3, 1e-2, 2],
    }
    found = {
        (r["table"], r["row"], r["column"]): r["value"] for r in jmlr2008.measure(unit, Made())
    }
    gaps = [found["figure 2a", f"order {t}", "mean difference"] for t in (1, 3, 5)]
    assert gaps[0] > gaps[1] > gaps[2] > found["figure 2a", "C_IF5", "mean difference"] > 0
    assert (
        found["figure 3", "Huber, b = 0.2", "distance"]
        < found["figure 3", "least squares", "distance"]
    )


@pytest.mark.parametrize("k", [4, 0])
def test_ieice_algorithms_are_the_refits(k):
    rng = np.random.default_rng(0)
    problem = ieice2019_algorithms.noise(40, rng)
    folds = draw_folds(40, k, rng) if k else leave_one_out(40)
    lams = np.array([0.5, 0.1])
    times, residuals = ieice2019._run_all(problem, folds, lams, 3)
    assert set(times) == set(ieice2019._curves())
    expected = np.concatenate(
        [
            problem.Y[b] - refit_fold(problem, 0.1, a, b).values
            for a, b in zip(folds.train, folds.test, strict=True)
        ]
    )
    for values in residuals.values():
        np.testing.assert_allclose(values, expected, atol=1e-9)


def test_one_real_replicate(data_dir):
    """The bodyfat of ICML 2014, which agrees with the paper to within two of its deviations."""
    unit = _unit("icml2014", set="bodyfat", replicate=0) | {
        "refit": False,
        "orders": [],
        "folds": [5],
    }
    errors = _values(icml2014.measure(unit, Loader(data_dir)), "1")
    paper = Published("icml2014").cell("1", "bodyfat", "5CV")
    assert abs(errors["exact-5CV"] - paper.mean) < 2 * paper.sd


def test_command_line(tmp_path, monkeypatch, capsys):
    from onefit.reproduce import __main__ as command

    called = []
    monkeypatch.setattr(command, "reproduce", lambda **given: called.append(given))
    command.main(["icml2014", "--full", "--data", "d", "--jobs", "2", "--out", "o"])
    command.main(["all", "--replicates", "3"])
    assert [tuple(given.values()) for given in called] == [
        ("icml2014", "full", "d", 2, "o", None, False),
        ("all", "quick", None, 1, None, 3, False),
    ]


@pytest.mark.slow
def test_quick_mode_of_all_papers(data_dir, tmp_path):
    pages = reproduce("all", "quick", data_dir, 1, tmp_path)
    assert [page.parent.name for page in pages] == list(PAPERS)
    for page in pages:
        text = page.read_text()
        assert "## Claims" in text
        assert "nan" not in text
    again = reproduce("all", "quick", data_dir, 1, tmp_path)
    assert [page.read_text() for page in again] == [page.read_text() for page in pages]


def test_icml_guards_leave_narrow_kernels_out():
    guards = [
        {"name": "wide", "at_least": 0.5, "columns": ""},
        {"name": "none", "at_least": 2.0, "columns": ""},
        {"name": "series", "at_least": 0.0, "columns": "BIF"},
    ]
    unit = _unit("icml2014", set="heart") | {"tau": [-6, 8], "lam": [-7, -4], "folds": [5]}
    unit |= {"refit": False, "orders": [], "guards": guards}
    rows = icml2014.measure(unit, Made())
    family, _, _ = icml2014._prepare(unit, Made().load("heart"))
    means = {2.0**i: icml2014._off_diagonal(k(family.X)) for i, k in _by_power(family, unit)}
    wide = [row for row in rows if row["variant"] == "wide"]
    assert {row["column"] for row in wide} == set(_values(rows, "1"))
    assert all(means[row["tau"]] >= 0.5 for row in wide)
    assert min(means.values()) < 0.5
    assert not [row for row in rows if row["variant"] == "none"]
    assert {row["column"] for row in rows if row["variant"] == "series"} == {"BIF-5CV"}
    assert not [row for row in wide if row["table"] != "1"]


def _by_power(family, unit):
    return enumerate(family.kernels, unit["tau"][0])


def test_icml_off_diagonal_mean():
    K = np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.6], [0.4, 0.6, 1.0]])
    assert icml2014._off_diagonal(K) == pytest.approx(0.4)


def test_ins_machine_with_intercept_is_libsvm():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = np.where(X[:, 0] > 0.4, 1.0, -1.0)
    family = ins2016.Family(
        X[:30], y[:30], [Gaussian(0.5)], [0.01, 0.1], SmoothedHinge(0.01), False
    )
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
    assert {u["machine"] for u in plain if u["replicate"] == 0} == {"liblinear"}
    assert {u["machine"] for u in plain if u["replicate"] > 0} == {""}
    unit = next(u for u in units if u["normalised"])
    assert all(k.diag(np.ones((2, 3))) == pytest.approx(1.0) for k in ins2016._kernels(unit))
    quick = _unit("ins2016", kind="polynomial", replicate=1) | {"degree": [1, 2], "lam": [0, 1]}
    rows = ins2016.measure(quick, Made())
    assert not {"5-CV", "10-CV"} & {row["column"] for row in rows}
    variant = ins2016.measure(quick | {"variant": "v", "machine": "libsvm", "folds": [5]}, Made())
    assert {row["table"] for row in variant} == {"3 polynomial"}
    assert "5-CV" in {row["column"] for row in variant}


def test_ecml_oracle_is_below_every_choice():
    rows = ecml2014.measure(_unit("ecml2014", set="heart") | {"tau": [-4, 4]}, Made())
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
        jmlr2008._draw(unit | {"outliers": count}, _Tall(None), np.random.default_rng(3))[1]
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
    expected = linalg.inv(problem.K + 0.1 * np.eye(30))
    solution = ieice2019_algorithms.SOLVERS[how](M, problem.Y)
    np.testing.assert_allclose(solution, expected @ problem.Y, atol=1e-9)
    np.testing.assert_allclose(ieice2019_algorithms.INVERSES[how](M), expected, atol=1e-9)


def test_ieice_lu_of_a_singular_matrix_is_refused():
    with pytest.raises(linalg.LinAlgError, match="LU factorisation stopped"):
        ieice2019_algorithms.INVERSES["LU"](np.zeros((3, 3), order="F"))
