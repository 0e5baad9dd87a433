"""The two exact ways of the squared loss, "block" and "eigen", against honest refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from heldout._twins import (
    FORMS,
    WEIGHTS,
    exact_leave_one_out,
    gaussian,
    make_problem,
    pairs_left_out,
    predict,
    splits,
)
from hypothesis import given
from hypothesis import strategies as st
from registries import SCALINGS
from sklearn.model_selection import KFold

from onefit.folds import Folds, leave_one_out
from onefit.gram import TiledGram
from onefit.heldout import Block, Eigen, Limit, Refit, refit
from onefit.linalg.partial_eigh import MIN_BLOCK_ROWS
from onefit.losses import Squared
from onefit.problem import Problem
from onefit.proof.certificate import EXACT_TOLERANCE

N = 24
SPLITS = splits(N)
FAST = [Block, Eigen]
EPS = np.finfo(np.float64).eps
#: rows of which four folds are too expensive to refit for a certificate; 40 of the single rows
MANY_ROWS = 300
MANY_ROWS_SPLITS = splits(MANY_ROWS)
MANY_ROWS_SPLITS["loo"] = Folds.from_pairs(
    MANY_ROWS, [(np.delete(np.arange(MANY_ROWS), i), [i]) for i in range(0, MANY_ROWS, 8)]
)
#: (ratio, gamma, split, fit_intercept): all pairs of the first two, and of any other two
MANY = [
    (ratio, gamma, ("kfold", "loo", "repeated", "unequal")[(i + j) % 4], bool((i + j // 2) % 2))
    for i, ratio in enumerate([1e4, 1.0, 1e-3, 1e-6, 1e-8])
    for j, gamma in enumerate([1e-2, 0.7, 20.0, 0.1])
]


def tiles(K):
    """A matrix that is not held, with which no split is refitted for the sake of its bound.

    Nine rows, whose exact values are known from rational arithmetic, would always be.
    """
    return TiledGram(
        lambda rows, columns: K[rows][:, rows if columns is None else columns], np.diagonal(K)
    )


def top(problem):
    """The largest eigenvalue of R K R."""
    root = np.sqrt(problem.s.astype(float))
    return float(np.linalg.eigvalsh(root[:, None] * problem.K.matrix * root[None, :])[-1])


def lam_for(problem, ratio):
    """lam with Lambda of the whole sample ``ratio`` times the largest eigenvalue."""
    return ratio * top(problem) / problem.ridge(1.0)


def assert_equal_refits(problem, folds, lam, methods=FAST):
    """To 1e-8, or to a few times what rounding alone makes of the condition number."""
    expected = predict(Refit(), problem, folds, lam)
    eps = float(np.finfo(problem.K.dtype).eps)
    smallest = min(problem.ridge(lam, train) for train in folds.train)
    condition = 1.0 + top(problem) / smallest
    scale = float(max(np.abs(problem.Y).max(), np.abs(expected.values).max()))
    for method in methods:
        held = predict(method(), problem, folds, lam)
        assert held.values.dtype == problem.K.dtype
        assert held.values.shape == expected.values.shape
        gap = float(np.abs(held.values - expected.values).max())
        assert gap <= max(1e-8, 8.0 * eps * (condition + problem.n)) * scale, (
            method.name,
            gap / scale,
        )


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("fit_intercept", "scaling", "weight"), FORMS)
def test_every_split(split, weight, fit_intercept, scaling):
    for q, ratio in ((1, 1e-2), (3, 1e-5)):
        problem = make_problem(
            Squared(), "regression", N, weight=weight, q=q,
            fit_intercept=fit_intercept, scaling=scaling,
        )  # fmt: skip
        assert_equal_refits(problem, SPLITS[split], lam_for(problem, ratio))


@pytest.mark.parametrize(("ratio", "gamma", "split", "fit_intercept"), MANY)
def test_every_lambda(ratio, gamma, split, fit_intercept):
    """With many rows, folds are not refitted for the sake of their certificate."""
    problem = make_problem(
        Squared(), "regression", MANY_ROWS, kernel=lambda X: gaussian(X, gamma), weight="random",
        fit_intercept=fit_intercept,
    )  # fmt: skip
    folds = MANY_ROWS_SPLITS[split]
    assert not refit.cheap_to_refit(MANY_ROWS, len(folds))
    assert_equal_refits(problem, folds, lam_for(problem, ratio))


@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize(
    ("split", "weight", "fit_intercept"),
    [
        ("kfold", "none", True), ("loo", "random", False), ("shuffle", "zeros", True),
        ("time", "none", False), ("loo", "none", True), ("kfold", "zeros", False),
    ],
)  # fmt: skip
def test_single_precision(ratio, split, weight, fit_intercept):
    problem = make_problem(
        Squared(), "regression", MANY_ROWS, weight=weight, q=2, dtype=np.float32,
        fit_intercept=fit_intercept,
    )  # fmt: skip
    assert_equal_refits(problem, MANY_ROWS_SPLITS[split], lam_for(problem, ratio))


@pytest.mark.parametrize(
    ("fit_intercept", "weight"), [(True, "none"), (False, "random"), (True, "zeros")]
)
def test_pairs_left_out(fit_intercept, weight):
    problem = make_problem(Squared(), "regression", 9, weight=weight, fit_intercept=fit_intercept)
    assert_equal_refits(problem, pairs_left_out(9), lam_for(problem, 1e-4))


def test_classification_labels():
    problem = make_problem(Squared(), "classification", N, q=3)
    assert_equal_refits(problem, SPLITS["stratified"], 1e-3)


@pytest.mark.parametrize("method", FAST)
def test_a_path_of_lambdas_is_refits(method):
    problem = make_problem(Squared(), "regression", N, weight="zeros")
    lams = np.array([1e-4, 1.0, 1e-2])
    for split in ("kfold", "loo", "shuffle"):
        path = method().prepare(problem, SPLITS[split]).predict(lams)
        expected = Refit().prepare(problem, SPLITS[split]).predict(lams)
        np.testing.assert_allclose(path.values, expected.values, rtol=1e-8, atol=1e-9)
        assert not path.steps.any()
        assert not path.moved.any()


@pytest.mark.parametrize("method", FAST)
def test_a_matrix_is_overwritten_only_where_it_may_be(method):
    problem = make_problem(Squared(), "regression", N, weight="random")
    kept = problem.K.matrix.copy()
    predict(method(), problem, SPLITS["kfold"], 1e-2)
    np.testing.assert_array_equal(problem.K.matrix, kept)
    rows = np.arange(N)
    folds = Folds.from_pairs(N, [(rows[rows // 6 != k], rows[rows // 6 == k]) for k in range(4)])
    for splits_ in (folds, SPLITS["time"], SPLITS["loo"]):
        expected = predict(Refit(), problem, splits_, 1e-2).values
        loose = Problem(
            problem.K.matrix.copy(), problem.Y, problem.s, problem.loss, may_overwrite=True
        )
        np.testing.assert_allclose(
            predict(method(), loose, splits_, 1e-2).values, expected, rtol=1e-8
        )


@pytest.mark.parametrize("method", FAST)
@pytest.mark.parametrize("scaling", SCALINGS)
def test_large_lambda_predicts_the_weighted_mean_or_nothing(method, scaling):
    for fit_intercept in (True, False):
        problem = make_problem(
            Squared(), "regression", N, weight="zeros",
            fit_intercept=fit_intercept, scaling=scaling,
        )  # fmt: skip
        for name in ("kfold", "loo"):
            held = predict(method(), problem, SPLITS[name], 1e9)
            assert held.exact.all()
            for train, values in zip(SPLITS[name].train, held.by_fold, strict=True):
                mean = np.average(problem.Y[train, 0], weights=problem.s[train])
                limit = mean if fit_intercept else 0.0
                np.testing.assert_allclose(values, limit, atol=1e-6)


@pytest.mark.parametrize("method", FAST)
def test_small_lambda_interpolates_the_training_rows(method):
    # a rough kernel is well conditioned without any ridge: predictions tend to K_St K_tt^-1 y_t
    problem = make_problem(
        Squared(), "regression", N, kernel=lambda X: gaussian(X, 30.0), fit_intercept=False
    )
    for name in ("kfold", "loo"):
        held = predict(method(), problem, SPLITS[name], 1e-14)
        for (train, test), values in zip(SPLITS[name], held.by_fold, strict=True):
            K = problem.K.matrix
            expected = K[np.ix_(test, train)] @ np.linalg.solve(
                K[np.ix_(train, train)], problem.Y[train, 0]
            )
            np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-9)


def tiny(seed, n=9, gamma=0.3):
    """A smooth kernel on few points: the small eigenvalues are far below the large one."""
    random = np.random.default_rng(seed)
    X = np.sort(random.uniform(-1, 1, (n, 1)), axis=0)
    return gaussian(X, gamma), random.normal(size=n)


def textbook(K, y, ridge):
    """(y_i - u_i) / (1 - H_ii), as the books have it."""
    H = np.linalg.solve(K + ridge * np.eye(len(y)), K).T
    return y - (y - H @ y) / (1.0 - np.diagonal(H))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_digits_are_lost_no_faster_than_the_condition_number_takes_them(fit_intercept):
    rows = np.arange(9)
    loo = Folds.from_pairs(9, [(np.delete(rows, i), [i]) for i in rows])
    for seed in range(2):
        K, y = tiny(seed)
        problem = Problem(tiles(K), y[:, None], np.ones(9), Squared(), fit_intercept, "total")
        highest = float(np.linalg.eigvalsh(K)[-1])
        for power in np.arange(-14.0, 1.0):
            ridge = highest * 10.0**power
            truth = exact_leave_one_out(K, y, ridge, fit_intercept)
            scale = 1.0 + np.abs(truth).max() + np.abs(y).max()
            for method in FAST:
                held = predict(method(), problem, loo, ridge)
                gap = np.abs(held.values[:, 0] - truth)
                assert gap.max() <= 8.0 * EPS * (1.0 + highest / ridge) * scale
                # the bound on the error is true, and decides what is called exact
                assert (gap <= held.error + EPS * scale).all(), (method.name, power)
                own = EXACT_TOLERANCE * problem.scale[0]
                np.testing.assert_array_equal(held.exact, held.error <= own)
                assert (gap[held.exact] <= own).all()
                assert held.exact.all() or power <= -8


def test_the_textbook_formula_loses_more():
    ratios = []
    rows = np.arange(9)
    loo = Folds.from_pairs(9, [(np.delete(rows, i), [i]) for i in rows])
    for seed in range(3):
        # a rough kernel as lam -> 0: the problem is well conditioned, 1 - H is not
        K, y = tiny(seed, gamma=300.0)
        problem = Problem(tiles(K), y[:, None], np.ones(9), Squared(), False, "total")
        for ridge in (1e-6, 1e-9, 1e-12):
            truth = exact_leave_one_out(K, y, ridge, False)
            plain = np.abs(textbook(K, y, ridge) - truth).max()
            for method in FAST:
                ours = np.abs(predict(method(), problem, loo, ridge).values[:, 0] - truth).max()
                ratios.append(plain / max(ours, EPS))
                if ridge == 1e-12:
                    assert plain > 1e-7
                    assert ours < 1e-10
    assert np.median(ratios) > 1e3


def smooth_problem(n=60, **options):
    return make_problem(Squared(), "regression", n, kernel=lambda X: gaussian(X, 1e-2), **options)


@pytest.mark.parametrize("name", ["kfold", "loo", "repeated", "shuffle", "unequal", "time"])
@pytest.mark.parametrize(("fit_intercept", "weight"), [(True, "random"), (False, "zeros")])
def test_smooth_kernels(name, fit_intercept, weight):
    problem = smooth_problem(weight=weight, q=2, fit_intercept=fit_intercept)
    folds, lams = splits(60)[name], np.array([1e-5, 1.0, 1e3])
    path = Eigen().prepare(problem, folds).predict(lams)
    expected = Refit().prepare(problem, folds).predict(lams)
    np.testing.assert_allclose(path.values, expected.values, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("fit_intercept", "weight"), [(True, "none"), (False, "random")])
def test_many_rows(fit_intercept, weight):
    """So many that the decomposition is torn, and lambdas so many that their sums are shared."""
    n = 2 * MIN_BLOCK_ROWS + 10
    problem = make_problem(
        Squared(), "regression", n, weight=weight, q=2, fit_intercept=fit_intercept,
        scaling="mean" if fit_intercept else "total", kernel=lambda X: gaussian(X, 0.05),
    )  # fmt: skip
    folds, lams = Folds.draw(KFold(5), problem.K.matrix), np.logspace(-6, 1, 30)
    prepared = Eigen().prepare(problem, folds)
    path = prepared.predict(lams)
    assert prepared.spectrum.partial.tears.shape[1] == 1
    for i in (0, 11, 29):
        expected = predict(Refit(), problem, folds, lams[i])
        gap = folds.largest(path.values[i] - expected.values).max(axis=1)
        assert (gap <= path.error[i] + expected.error).all()
        assert (gap <= 1e-7 * np.abs(expected.values).max()).all()
    alone = leave_one_out(n)
    for lam in (1e-4, 1e-1):
        block, eigen = (predict(method(), problem, alone, lam) for method in FAST)
        np.testing.assert_allclose(eigen.values, block.values, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("method", FAST)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_constant_kernel(method, fit_intercept):
    y = np.arange(12.0)[:, None]
    problem = Problem(np.ones((12, 12)), y, np.ones(12), Squared(), fit_intercept)
    for name in ("kfold", "loo"):
        assert_equal_refits(problem, splits(12)[name], 1e-2, [method])


def test_a_singular_matrix_has_no_factor_and_is_served_by_eigenvectors():
    y = np.arange(12.0)[:, None]
    problem = Problem(np.ones((12, 12)), y, np.ones(12), Squared(), True, "total")
    folds = splits(12)["kfold"]
    prepared = Block().prepare(problem, folds)
    with pytest.raises(
        np.linalg.LinAlgError, match="raise lam, centre and scale X, or use method='eigen'"
    ):
        prepared.models(1e-18)
    path = prepared.predict(np.array([1e-18, 1.0, 1e-19]))
    assert path.done.all()
    for held in (path[0], path[2], predict(Eigen(), problem, folds, 1e-18)):
        for train, values in zip(folds.train, held.by_fold, strict=True):
            np.testing.assert_allclose(values, y[train].mean(), rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="is singular to working precision"):
        predict(Block(), replace(problem, K=np.diag(np.arange(12.0) - 3.0)), folds, 1e-18)


@pytest.mark.parametrize("method", FAST)
def test_rough_values_of_small_samples_are_refitted(method):
    K, y = tiny(0)
    problem = Problem(K, y[:, None], np.ones(9), Squared(), True, "total")
    folds, ridge = leave_one_out(9), 1e-12
    mended = predict(method(), problem, folds, ridge)
    assert mended.exact.all()
    truth = exact_leave_one_out(K, y, ridge, True)
    assert (np.abs(mended.values[:, 0] - truth) <= mended.error).all()


@pytest.mark.parametrize("method", FAST)
def test_rough_values_of_many_rows_keep_their_bounds(method):
    K, y = tiny(0, MANY_ROWS)
    problem = Problem(K, y[:, None], np.ones(MANY_ROWS), Squared(), True, "total")
    folds, ridge = MANY_ROWS_SPLITS["kfold"], 1e-9
    rough, expected = (predict(m, problem, folds, ridge) for m in (method(), Refit()))
    assert not rough.exact.any()
    assert expected.exact.all()
    gap = folds.largest(rough.values - expected.values)[:, 0]
    assert (gap <= rough.error + expected.error).all()


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(4, 20),
    power=st.floats(-7, 4),
    gamma=st.floats(-3, 2),
    fit_intercept=st.booleans(),
    scaling=st.sampled_from(SCALINGS),
    weight=st.sampled_from(WEIGHTS),
    duplicates=st.booleans(),
)
def test_any_problem_and_any_disjoint_split(
    seed, n, power, gamma, fit_intercept, scaling, weight, duplicates
):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    if duplicates:
        X = X[random.integers(0, n, n)]
    problem = make_problem(
        Squared(), "regression", n, seed=seed % 1000, kernel=lambda _: gaussian(X, 10.0**gamma),
        weight=weight, fit_intercept=fit_intercept, scaling=scaling,
    )  # fmt: skip
    positive = np.flatnonzero(problem.s)
    pairs = []
    for _ in range(3):
        test = random.permutation(n)[: random.integers(1, n)]
        train = np.setdiff1d(np.arange(n), test)
        train = random.permutation(train)[: random.integers(1, n)]
        if np.isin(train, positive).sum() >= 2:
            pairs.append((train, test))
    if pairs:
        folds = Folds.from_pairs(n, pairs)
        assert_equal_refits(problem, folds, lam_for(problem, 10.0**power), [*FAST, Limit])


@pytest.mark.parametrize("method", FAST, ids=lambda one: one.name)
@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_the_unit_of_the_weights_changes_nothing(method, unit):
    weight = np.random.default_rng(0).uniform(0.2, 2.0, 60)
    weight[::9] = 0.0
    K, y = tiny(0, n=60)
    folds = Folds.draw(KFold(4), K)
    plain, other = (
        method()
        .prepare(Problem(tiles(K), y[:, None], weight * c, Squared(), True, "mean"), folds)
        .predict(np.array([1e-3, 1e-1]))
        for c in (1.0, unit)
    )
    assert other.exact.all()
    np.testing.assert_allclose(other.values, plain.values, atol=1e-9)
    np.testing.assert_allclose(other.bounds, plain.bounds, rtol=0.1)
