"""Small pieces of every paper's experiment, on made-up data where the data directory is absent."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from made_up import MODULES, Made, Tall, unit_of, values_of
from scipy import stats
from sklearn.svm import SVC

from onefit import KernelRegressor
from onefit.columns.fit import fit
from onefit.criteria import CrossValidation
from onefit.folds import leave_one_out
from onefit.heldout import Influence, Refit
from onefit.heldout.refit import refit_fold
from onefit.kernels.stationary import Gaussian
from onefit.losses import SmoothedHinge, Squared
from onefit.problem import Problem
from onefit_papers import __main__ as command
from onefit_papers import (
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
from onefit_papers.data import Loader
from onefit_papers.icml2014_plain import refits, series
from onefit_papers.results import Published
from onefit_papers.run import PAPERS, settings
from onefit_papers.sweep import Family, draw_folds


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
    unit = unit_of(paper, set="heart") | {
        "lam": [-3, -1],
        "tau": [-1, 2],
        "sigma": [-1, 2],
        "lams": [1e-3, 1e-2],
    }
    unit |= {"refit": False, "etas": [0], "orders": [], "machine": "libsvm", "accuracies": [0.2]}
    one, two = (
        [r["value"] for r in MODULES[paper].measure(unit, Made()) if r["table"][0] != _timed(paper)]
        for _ in "ab"
    )
    assert one == two


def _timed(paper):
    return {"icml2014": "2", "ins2016": "4"}.get(paper, "-")


@pytest.mark.parametrize("name", ["heart", "bodyfat"])
def test_icml_exact_and_limit_are_the_refits(name):
    unit = unit_of("icml2014", set=name, replicate=0) | {
        "tau": [-2, 3],
        "lam": [-7, -3],
        "orders": [1, 2, 3, 4],
    }
    rows = icml2014.measure(unit, Made())
    errors = values_of(rows, "1")
    for k in unit["folds"]:
        assert errors[f"exact-{k}CV"] == errors[f"limit-{k}CV"] == errors[f"{k}CV"]
        gaps = values_of(rows, "figure 1")
        series = [gaps[f"{k}CV, order {t}"] for t in unit["orders"]]
        assert all(a > b for a, b in pairwise(series))
        assert gaps[f"{k}CV, limit"] < 1e-15 < series[-1]


def test_icml_plain_algorithms_are_the_engines():
    data = Made().load("bodyfat")
    family = Family(data.X, data.y, [Gaussian(0.1), Gaussian(1.0)], [1e-3, 1e-1], Squared())
    folds = draw_folds(60, 4, np.random.default_rng(0))
    criteria = {"": CrossValidation(loss="squared", guard=False)}
    for found, method in (
        (refits(family, folds, "squared"), Refit()),
        (series(family, folds, "squared", 3), Influence(order=3)),
    ):
        expected = family.sweep(criteria, method, folds)[""].values
        np.testing.assert_allclose(found.values, expected, rtol=1e-9)
        assert found.seconds > 0
    narrow = Family(data.X, data.y, [Gaussian(1e4)], [1e-1], Squared())
    assert series(narrow, folds, "squared", 3).values == np.inf


@pytest.mark.parametrize("name", ["heart", "bodyfat"])
def test_icml_chooses_the_same_whether_timed_or_not(name):
    unit = unit_of("icml2014", set=name, replicate=0) | {"tau": [-2, 3], "lam": [-7, -3]}
    timed, plain = (
        icml2014.measure(unit | {"timed": own, "refit": own, "orders": []}, Made())
        for own in (True, False)
    )
    shown = {c: v for c, v in values_of(timed, "1").items() if not c.startswith("limit")}
    assert values_of(plain, "1") == shown
    assert values_of(timed, "2")
    assert not values_of(plain, "2")


def test_icml_variants_change_the_data():
    unit = unit_of("icml2014", set="heart") | {"refit": False}
    family, _, _ = icml2014._prepare(unit | {"drop": [0]}, Made().load("heart"))
    assert family.X.shape == (30, 2)
    relabelled, _, _ = icml2014._prepare(unit | {"label_from": 2}, Made().load("heart"))
    assert relabelled.X.shape == (30, 2)
    assert not np.array_equal(relabelled.y, family.y)


def test_ecml_stability_with_no_weight_is_cross_validation():
    unit = unit_of("ecml2014", set="heart") | {"tau": [-4, 4], "eta": 0.0, "etas": [-60]}
    rows = ecml2014.measure(unit, Made())
    for lam in unit["lams"]:
        errors = values_of(rows, f"1 lam={lam:g}")
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


@pytest.mark.parametrize("machine", ["liblinear", "libsvm"])
def test_ins_rounded_hinge_stands_for_the_svm(machine):
    unit = unit_of("ins2016", kind="gaussian", set="heart", replicate=0) | {
        "sigma": [-1, 2],
        "lam": [-6, -3],
        "folds": [5],
        "machine": machine,
    }
    refitted = ins2016.measure(unit | {"refit": True}, Made())
    rounded = ins2016.measure(unit | {"refit": False}, Made())
    assert values_of(refitted, "apart gaussian") == {"5-CV": 0.0}
    assert values_of(refitted, "3 gaussian") == values_of(rounded, "3 gaussian")
    assert "5-CV" in values_of(refitted, "4 gaussian")
    assert "5-CV" not in values_of(rounded, "4 gaussian")


def test_ins_bif_is_near_exact_at_large_lambda():
    unit = unit_of("ins2016", kind="gaussian", set="heart") | {
        "sigma": [-1, 2],
        "lam": [1, 3],
        "folds": [5],
    }
    errors = values_of(ins2016.measure(unit, Made()), "3 gaussian")
    assert errors["0.1-BIF"] == errors["exact-5"]
    assert {"5-CV", "GACV", "0.2-BIF", "exact-4", "exact-6"} <= set(errors)


def test_jmlr_columns():
    unit = unit_of("jmlr2008", set="S+o", replicate=0) | {
        "lams": [1e-2, 1e-3],
        "ranks": [1, 250, 500],
    }
    rng = np.random.default_rng(0)
    X, _y, test, _ = jmlr2008._draw(unit | {"outliers": 4}, Tall(), rng)
    assert X.shape == (140, 3)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    assert len(test.y) == 27
    rows = jmlr2008.measure(unit, Tall())
    errors = values_of(rows, "1")
    assert list(errors) == list(jmlr2008.COLUMNS)
    assert errors["b optimised"] in {errors[c] for c in ("C_IF5", "b=3", "b=2", "b=1")}
    assert errors["b=1"] < errors["C_IF5"]


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
    unit = unit_of("jmlr2008", kind="toy") | {
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
    unit = unit_of("icml2014", set="bodyfat", replicate=0) | {
        "refit": False,
        "orders": [],
        "folds": [5],
    }
    errors = values_of(icml2014.measure(unit, Loader(data_dir)), "1")
    paper = Published("icml2014").cell("1", "bodyfat", "5CV")
    assert abs(errors["exact-5CV"] - paper.mean) < 2 * paper.sd


def test_command_line(tmp_path):
    command.main(["ieice2019", "--jobs", "2", "--replicates", "1", "--out", str(tmp_path)])
    asked = "- command: `onefit-papers ieice2019 --quick --jobs 2 --replicates 1`\n"
    assert asked in (tmp_path / "results.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        (["--replicates", "0"], ValueError, "replicates must be at least 1"),
        (["--data", "no such folder"], FileNotFoundError, "no such folder"),
    ],
)
def test_errors_are_a_sentence_and_an_exit_code(arguments, error, sentence, tmp_path, capsys):
    arguments = ["ieice2019", "--out", str(tmp_path), *arguments]
    with pytest.raises(SystemExit) as end:
        command.main(arguments)
    assert end.value.code == command.USAGE
    told = capsys.readouterr().err
    assert told.startswith("onefit-papers: ")
    assert sentence in told
    with pytest.raises(error):
        command.main([*arguments, "--traceback"])


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
