"""Full-sample solutions along lambda, and decompositions that several of them share."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import gaussian, make_problem, predict, splits
from sklearn.model_selection import KFold

from onefit.fit import fit
from onefit.folds import Folds, leave_one_out
from onefit.heldout import Exact, Limit, path
from onefit.heldout.path import FEWEST, ROOM, FullPath, curvature
from onefit.heldout.splits import Splits
from onefit.losses import EpsilonQuadratic, Huber, Log, SmoothedHinge, Squared, SquaredHinge
from onefit.systems import SharedSpectrum

#: enough rows for a decomposition to be worth its price, and for it to be torn
N = 300
LAMS = np.logspace(-1, -6, 16)
FIVE = Folds.draw(KFold(5), np.zeros((N, 1)))
PIECEWISE = [
    (Huber(0.3), "regression"),
    (EpsilonQuadratic(0.02), "regression"),
    (SquaredHinge(), "classification"),
    (SmoothedHinge(0.5), "classification"),
]
each_piecewise = pytest.mark.parametrize(("loss", "task"), PIECEWISE)


def narrow(loss, task, n=N, **options):
    """A problem whose points nearly all have curvature once lam is small."""
    return make_problem(loss, task, n, kernel=lambda X: gaussian(X, 30.0), **options)


def full_path(problem, folds=FIVE, share=True):
    return FullPath(Splits.sort(problem, folds), share=share)


# solutions


@each_piecewise
@pytest.mark.parametrize(("fit_intercept", "weight"), [(True, "none"), (False, "random")])
def test_solutions_along_a_shared_decomposition_are_fits(loss, task, fit_intercept, weight):
    problem = narrow(loss, task, fit_intercept=fit_intercept, weight=weight, scaling="total")
    shared = full_path(problem)
    found = shared.solutions(LAMS)
    assert shared.spectra[0]
    served = 0
    for lam, one in zip(LAMS, found, strict=True):
        served += shared.spectrum(curvature(problem, 0, one.u[:, 0]), 0) is not None
        assert one.converged
        expected = fit(problem, lam)
        scale = 1.0 + np.abs(expected.u).max()
        np.testing.assert_allclose(one.u, expected.u, rtol=0, atol=1e-7 * scale)
        np.testing.assert_allclose(one.b, expected.b, rtol=0, atol=1e-7 * scale)
    assert served >= 5


@pytest.mark.parametrize("loss", [Squared(), Huber(0.3), Log()])
@pytest.mark.parametrize("share", [True, False])
def test_solutions_come_in_the_order_of_the_lambdas(loss, share):
    task = "classification" if isinstance(loss, Log) else "regression"
    problem = make_problem(loss, task, 30, q=2, weight="zeros")
    lams = np.array([1e-3, 1.0, 1e-2, 1e-3, 10.0])
    found = full_path(problem, splits(30)["kfold"], share).solutions(lams)
    for lam, one in zip(lams, found, strict=True):
        np.testing.assert_allclose(one.u, fit(problem, lam).u, rtol=0, atol=1e-7)


def test_solutions_start_where_the_last_one_ended(monkeypatch):
    starts, honest = [], path.solve

    def watched(problem, lam, **options):
        starts.append((lam, options["start"]))
        return honest(problem, lam, **options)

    monkeypatch.setattr(path, "solve", watched)
    problem = make_problem(Log(), "classification", 30)
    first, last, middle = full_path(problem, splits(30)["kfold"]).solutions(
        np.array([1.0, 1e-2, 1e-1])
    )
    assert [lam for lam, _ in starts] == [1.0, 1e-1, 1e-2]
    assert starts[0][1] is None
    assert starts[1][1] is first
    assert starts[2][1] is middle
    assert last.converged


def test_solutions_follow_one_factor_where_many_points_have_curvature(monkeypatch):
    """Three lambdas are too few for a decomposition; only the first of them is fitted."""
    fitted, honest = [], path.solve

    def watched(problem, lam, **options):
        fitted.append(lam)
        return honest(problem, lam, **options)

    monkeypatch.setattr(path, "solve", watched)
    for loss, task in PIECEWISE:
        fitted.clear()
        problem = narrow(loss, task, scaling="total", q=2)
        full = full_path(problem)
        found = full.solutions(LAMS[3:6])
        assert not any(full.spectra)
        assert fitted == [LAMS[3]]
        for lam, one in zip(LAMS[3:6], found, strict=True):
            np.testing.assert_allclose(one.u, honest(problem, lam).u, rtol=0, atol=1e-7)


def test_a_lambda_without_a_solution_has_a_reason_and_the_next_one_a_solution(monkeypatch):
    honest = path.solve

    def failing(problem, lam, **options):
        if lam == 1e-1:
            raise path.linalg.LinAlgError("no factor")
        return honest(problem, lam, **options)

    monkeypatch.setattr(path, "solve", failing)
    problem = make_problem(Huber(0.3), "regression", 30)
    lams = np.array([1e-2, 1e-1, 1.0])
    found = full_path(problem, splits(30)["kfold"]).solutions(lams)
    assert found[1] == "no factor"
    np.testing.assert_allclose(found[0].u, fit(problem, 1e-2).u, atol=1e-8)


def test_curvature_is_that_of_the_rows_with_weight():
    problem = make_problem(Huber(0.3), "regression", 30, q=2, weight="zeros")
    u = fit(problem, 1e-2).u
    for j in range(2):
        d = problem.loss.curvature(problem.Y[:, j], u[:, j])
        np.testing.assert_array_equal(curvature(problem, j, u[:, j]), d * (problem.s > 0))


def test_a_width_from_the_targets_is_that_of_all_rows():
    problem = make_problem(Huber(), "regression", 30, q=2)
    full, lams = full_path(problem, splits(30)["kfold"]), np.array([1e-3, 1.0])
    for lam, one in zip(lams, full.solutions(lams), strict=True):
        np.testing.assert_allclose(one.u, fit(problem, lam).u, atol=1e-9)
        np.testing.assert_allclose(one.u, fit(full.whole, lam).u, atol=1e-9)
    assert full.whole.loss.threshold.shape == (2,)
    assert problem.loss.relative


# shared decompositions


@pytest.fixture
def decompositions(monkeypatch):
    """The shared decompositions that were made."""
    made = []

    class Watched(SharedSpectrum):
        def __init__(self, problem, d):
            super().__init__(problem, d)
            made.append(self)

    monkeypatch.setattr(path, "SharedSpectrum", Watched)
    return made


@each_piecewise
@pytest.mark.parametrize("method", [Limit, Exact])
def test_held_out_values_with_a_shared_decomposition(decompositions, loss, task, method):
    weight = "none" if method is Limit else "random"
    problem = narrow(loss, task, weight=weight, scaling="total")
    shared = method().prepare(problem, FIVE).predict(LAMS)
    assert decompositions
    made = len(decompositions)
    for i in (0, 9, 15):
        alone = predict(method(), problem, FIVE, LAMS[i])
        scale = 1.0 + np.abs(alone.values).max()
        np.testing.assert_allclose(shared.values[i], alone.values, rtol=0, atol=1e-7 * scale)
        if method is Exact:
            assert shared.exact[i].all()
    assert len(decompositions) == made  # nothing is shared with nobody


def test_leave_one_out_with_a_shared_decomposition(decompositions):
    problem, folds = narrow(*PIECEWISE[1]), leave_one_out(N)
    held = Exact().prepare(problem, folds).predict(LAMS[:9])
    assert decompositions[0].partial.tears.shape[1] > 0
    assert held.exact.all()
    some = Folds(N, [folds.train[k] for k in range(3)], [folds.test[k] for k in range(3)])
    for i in (0, 4, 8):
        expected = predict(Exact(), problem, some, LAMS[i])
        np.testing.assert_allclose(held.values[i][:3], expected.values, rtol=0, atol=1e-7)


def test_points_that_differ_from_the_decomposition_leave_and_enter(decompositions):
    """It serves lambdas at which a few points are on other pieces."""
    problem = narrow(*PIECEWISE[0])
    shared = full_path(problem)
    changes = []
    for one in shared.solutions(LAMS):
        d = curvature(problem, 0, one.u[:, 0])
        spectrum = shared.spectrum(d, 0)
        if spectrum is not None:
            changes.append(spectrum.changes(d))
    assert min(changes) == 0
    assert max(changes) > 0
    assert max(changes) <= path.SERVED * max(one.size for one in decompositions)


@pytest.mark.parametrize(
    "problem",
    [narrow(Log(), "classification"), narrow(*PIECEWISE[1], weight="zeros")],
    ids=["smooth", "weights of zero"],
)
def test_sharing_is_for_pieces_and_positive_weights(decompositions, problem):
    full_path(problem).solutions(LAMS[8:])
    assert not decompositions


def test_nothing_is_shared_unless_asked_for_or_with_few_points(decompositions):
    full_path(narrow(*PIECEWISE[1]), share=False).solutions(LAMS[8:])
    small = narrow(*PIECEWISE[1], n=FEWEST - 1)
    full_path(small, splits(FEWEST - 1)["kfold"]).solutions(LAMS)
    assert not decompositions


def test_every_target_has_decompositions_of_its_own_within_their_room():
    problem = narrow(*PIECEWISE[1], q=4)
    full = full_path(problem)
    full.solutions(LAMS)
    held = sum(one.size**2 for several in full.spectra for one in several)
    assert 0 < held <= ROOM * N**2
    assert sum(bool(several) for several in full.spectra) > 1
    assert not all(full.spectra)  # no room for all four


def test_a_decomposition_must_pay(decompositions):
    """Over lambdas to come, and folds so small that they would not have factors of their own."""
    problem = narrow(*PIECEWISE[1])
    full_path(problem).solutions(LAMS[:3])
    full_path(problem, Folds.draw(2, problem.K.matrix)).solutions(LAMS)
    assert not decompositions
    full_path(problem).solutions(LAMS[:8])
    assert decompositions


# batches


@pytest.mark.parametrize("split", ["kfold", "loo", "unequal"])
@pytest.mark.parametrize("weight", ["none", "random"])
def test_batches_take_every_split_once_and_few_inverses(monkeypatch, split, weight):
    monkeypatch.setattr(path, "WIDTH", 7)
    problem, folds = make_problem(Huber(0.3), "regression", 60, weight=weight), splits(60)[split]
    full = full_path(problem, folds)
    d = curvature(problem, 0, fit(problem, 1e-2).u[:, 0])
    taken = []
    for system, members in full.systems(1e-2, d, 0):
        assert members.size <= 7
        ridges = np.array([base.ridge for base in system.bases])
        weights = full.splits.weight
        np.testing.assert_allclose(ridges[system.which], 1e-2 * weights[members], rtol=1e-12)
        sizes = [np.isclose(weights * 1e-2, ridge).sum() for ridge in ridges]
        assert sum(size > path.FEW for size in sizes) <= 2
        np.testing.assert_array_equal(system.curvature[:, 0], d)
        taken.extend(members.tolist())
    assert sorted(taken) == list(range(full.splits.by_formula.size))


def test_folds_are_iterated_where_rows_have_just_got_curvature():
    """Without an intercept all rows of a narrow kernel get it at once, from one lambda to the next;
    iterating with it pays at that lambda already, though it did not at the last one.
    """
    problem = make_problem(
        SmoothedHinge(0.1), "classification", 500, fit_intercept=False,
        kernel=lambda X: gaussian(X, 3000.0),
    )  # fmt: skip
    folds = Folds.draw(KFold(5), np.zeros((500, 1)))
    some = FullPath(Splits.sort(problem, folds), share=True, rough=True)
    lams = np.logspace(-1, -5, 5)
    found = some.solutions(lams)
    curved = [np.count_nonzero(curvature(problem, 0, one.u[:, 0])) for one in found]
    first = int(np.argmax(np.array(curved) > 450))
    assert curved[first - 1] == 0
    assert some.iterated[first]
