"""Problems, splits, and slow twins of the held-out methods, written from the definitions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st
from registries import LOSSES, sample
from scipy.spatial.distance import cdist
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from onefit.columns.fit import fit
from onefit.folds import Folds
from onefit.losses import Huber, SmoothedHinge
from onefit.losses.base import PiecewiseQuadratic
from onefit.problem import Problem

#: losses of adversarial problems; a hinge nearly sharp among them
HARD = [*LOSSES, (SmoothedHinge(0.01), "classification")]
WEIGHTS = ("none", "random", "zeros")
#: (fit_intercept, scaling, weights): every pair of values is in one of them
FORMS = [
    (True, "mean", "none"),
    (False, "total", "none"),
    (True, "total", "random"),
    (False, "mean", "random"),
    (True, "mean", "zeros"),
    (False, "total", "zeros"),
]


@dataclass(frozen=True)
class FailsNear(Huber):
    """Huber's loss, whose numerics fail where the predictions of a column have a given spread."""

    spread: tuple[float, float] = (np.inf, np.inf)
    reason: ClassVar[str] = "no factor"

    def curvature(self, y, u):
        low, high = self.spread
        found = np.ptp(u, axis=0)
        if ((low < found) & (found < high)).any():
            raise np.linalg.LinAlgError(self.reason)
        return super().curvature(y, u)


def gaussian(X, gamma=0.7):
    return np.exp(-gamma * cdist(X, X, "sqeuclidean"))


def weights(kind, n, seed=0):
    random = np.random.default_rng(seed)
    s = {"none": np.ones(n), "random": random.uniform(0.1, 3.0, n)}.get(kind)
    if s is None:
        s = random.uniform(0.1, 3.0, n)
        s[random.permutation(n)[: n // 6]] = 0.0
    return s


def make_problem(
    loss, task, n=30, seed=0, kernel=gaussian, weight="none", q=1, dtype=np.float64, **options
):
    """A noisy problem of the registry, with its kernel matrix."""
    X, y = sample(task, n=n, seed=seed)
    Y = np.column_stack([np.roll(y, 3 * j) for j in range(q)])
    s = weights(weight, n, seed)
    return Problem(kernel(X).astype(dtype), Y.astype(dtype), s.astype(dtype), loss, **options)


def splits(n):
    """Every kind of split there is, by name."""
    rows = np.arange(n)
    pieces = np.where(rows % 5 == 4, -1, rows % 5)
    return {
        "kfold": Folds.draw(KFold(4, shuffle=True, random_state=0), rows[:, None]),
        "loo": Folds.draw(LeaveOneOut(), rows[:, None]),
        "stratified": Folds.draw(StratifiedKFold(4), rows[:, None], rows % 3 > 0),
        "groups": Folds.draw(GroupKFold(3), rows[:, None], None, rows // 4),
        "repeated": Folds.draw(
            RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), rows[:, None]
        ),
        "shuffle": Folds.draw(
            ShuffleSplit(3, test_size=0.2, train_size=0.6, random_state=0), rows[:, None]
        ),
        "time": Folds.draw(TimeSeriesSplit(4), rows[:, None]),
        "predefined": Folds.draw(PredefinedSplit(pieces), rows[:, None]),
        "trained rows": Folds.from_pairs(
            n, [(rows[: 2 * n // 3], rows[n // 2 :]), (rows[n // 4 :], rows[: n // 2])]
        ),
        "unequal": Folds.from_pairs(
            n, [(rows[k:], rows[:k]) for k in (1, 2, 5, n // 2, 2 * n // 3)]
        ),
    }


def pairs_left_out(n):
    return Folds.draw(LeavePOut(2), np.zeros((n, 1)))


def predict(method, problem, folds, lam):
    """Held-out values at one lambda."""
    return method.prepare(problem, folds).predict(np.array([lam]))[0]


def at_weights(problem, w, lam, j=0):
    """Predictions of the machine whose losses weigh w and whose penalty is lam ||f||^2."""
    plain = Problem(
        problem.K.matrix, problem.Y[:, [j]], w, problem.loss, problem.fit_intercept, "total"
    )
    solution = fit(plain, lam)
    assert solution.converged
    return solution.u[:, 0]


def loss_weights(problem, train=None):
    """w of the objective sum_i w_i V_i + lam ||f||^2, for all rows or some of them."""
    w = np.zeros(problem.n)
    train = np.arange(problem.n) if train is None else train
    w[train] = problem.s[train]
    return w / w.sum() if problem.scaling == "mean" else w


def taylor_terms(problem, lam, change, orders):
    """The first terms of the series of u(eps) at weights w + eps change, and u(0), by a fit.

    Chebyshev's interpolation over the widest of some intervals on which no point changes its piece.
    """
    w, y = loss_weights(problem), problem.Y[:, 0]
    for radius, degree in ((0.1, 9), (0.03, 7), (0.01, 5), (0.003, 4), (0.001, 4)):
        nodes = radius * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
        found = np.array([at_weights(problem, w + eps * change, lam) for eps in nodes])
        pieces = problem.loss.piece(np.broadcast_to(y, found.shape), found)
        if (pieces == pieces[0]).all():
            break
    else:
        raise AssertionError("a point sits too close to a kink; take another problem")
    powers = np.vander(nodes / radius, increasing=True)
    coefficients = np.linalg.solve(powers, found)
    return [coefficients[j] / radius**j for j in range(orders + 1)]


def full_predictions(problem, lam):
    """Predictions on all rows by the model of the rows with weight, (n, q)."""
    kept = np.flatnonzero(problem.s)
    full = fit(problem.take(kept), lam)
    return problem.K.matrix[:, kept] @ full.a + full.b


def newton_step(problem, lam, train, u, j=0):
    """One Newton step of the problem on some rows from predictions u, by one dense system.

    Unknowns a (all training rows) and b; 2 Lambda a = -s (g + d (K a + b - u)).
    """
    train = train[problem.s[train] > 0]
    y, s, K = problem.Y[train, j], problem.s[train], problem.K.matrix[np.ix_(train, train)]
    g, d = problem.loss.gradient(y, u[train]), problem.loss.curvature(y, u[train])
    m, two = train.size, 2.0 * problem.ridge(lam, train)
    system = np.zeros((m + 1, m + 1))
    system[:m, :m] = two * np.eye(m) + (s * d)[:, None] * K
    system[:m, m] = s * d
    system[m, :m] = 1.0
    right = np.append(-s * (g - d * u[train]), 0.0)
    if not problem.fit_intercept:
        system[:m, m] = system[m, :m] = 0.0
        system[m, m] = 1.0
    solution = np.linalg.solve(system, right)
    return problem.K.matrix[:, train] @ solution[:m] + solution[m]


@dataclass(frozen=True)
class Expectile(PiecewiseQuadratic):
    """A user's loss: residuals above zero weigh tau, those below 1 - tau. Curvature changes."""

    tau: float = 0.9
    name = "expectile"
    task = "regression"
    max_curvature = 2.0

    def _weight(self, y, u):
        return np.where(y - u > 0, self.tau, 1.0 - self.tau)

    def value(self, y, u):
        return self._weight(y, u) * (y - u) ** 2

    def gradient(self, y, u):
        return -2.0 * self._weight(y, u) * (y - u)

    def curvature(self, y, u):
        return 2.0 * self._weight(y, u)

    def piece(self, y, u):
        return (y - u > 0).astype(np.int8)


def exact_leave_one_out(K, y, ridge, fit_intercept):
    """Leave-one-out predictions of the squared loss in rational arithmetic: no rounding at all."""
    n = len(y)
    held = []
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        system = [[Fraction(K[p, q]) for q in rest] for p in rest]
        for p in range(n - 1):
            system[p][p] += Fraction(ridge)
        right = [Fraction(y[p]) for p in rest]
        if fit_intercept:
            system = [[*row, Fraction(1)] for row in system]
            system.append([Fraction(1)] * (n - 1) + [Fraction(0)])
            right.append(Fraction(0))
        x = _eliminate(system, right)
        b = x[n - 1] if fit_intercept else Fraction(0)
        held.append(float(sum(Fraction(K[i, j]) * a for j, a in zip(rest, x, strict=False)) + b))
    return np.array(held)


def _eliminate(system, right):
    rows = [[*row, value] for row, value in zip(system, right, strict=True)]
    m = len(rows)
    for p in range(m):
        pivot = next(i for i in range(p, m) if rows[i][p] != 0)
        rows[p], rows[pivot] = rows[pivot], rows[p]
        for i in range(p + 1, m):
            factor = rows[i][p] / rows[p][p]
            if factor:
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[p], strict=True)]
    x = [Fraction(0)] * m
    for p in reversed(range(m)):
        known = sum(rows[p][q] * x[q] for q in range(p + 1, m))
        x[p] = (rows[p][m] - known) / rows[p][p]
    return x


def adversary(seed, powers=(-12.0, 6.0), losses=None):
    """A small problem meant to be hard, its splits, and a lambda, all from one number."""
    random = np.random.default_rng(seed)
    loss, task = (losses or HARD)[random.integers(len(losses or HARD))]
    n = int(random.integers(6, 31))
    K = _hard_kernel(random, n)
    y = _hard_targets(random, n, task)
    kind = random.integers(3)
    s = np.ones(n) if kind == 0 else random.uniform(0.1, 3.0, n)
    if kind == 2:
        s[random.permutation(n)[: n // 5]] = 0.0
    scaling, fit_intercept = ("mean", "total")[random.integers(2)], bool(random.integers(2))
    problem = Problem(K, y[:, None], s, loss, fit_intercept, scaling)
    return problem, _hard_splits(random, problem, task), 10.0 ** random.uniform(*powers)


def _hard_kernel(random, n):
    """Gaussian, linear or cubic; rows repeated, in pairs, or on a coarse grid."""
    X = random.normal(size=(n, random.integers(1, 4)))
    kind = random.integers(4)
    if kind == 1:
        X = X[random.integers(0, n, n)]
    if kind == 2:
        X = np.round(2.0 * X)
    if kind == 3:
        X = np.repeat(X, 2, axis=0)[:n]
    return [
        lambda: gaussian(X, 10.0 ** random.uniform(-3, 1)),
        lambda: X @ X.T,
        lambda: (1.0 + X @ X.T) ** 3,
    ][random.integers(3)]()


def _hard_targets(random, n, task):
    """Whole numbers, constants, any size; classes in any proportion, at times in blocks."""
    kind = random.integers(4)
    if task == "classification":
        share = (0.5, 0.1, 0.9, 0.3)[kind]
        blocks = random.random() < 0.3
        y = np.where((np.arange(n) / n if blocks else random.random(n)) < share, 1.0, -1.0)
        y[0], y[-1] = 1.0, -1.0
        return y
    y = random.normal(size=n)
    return [y, 10.0 ** random.uniform(-3, 2) * y, np.round(2.0 * y), np.full(n, 1.5)][kind]


def _hard_splits(random, problem, task):
    """Folds, single rows, or any sets; those that leave too little to be trained on are dropped."""
    n = problem.n
    rows = random.permutation(n) if random.random() < 0.5 else np.arange(n)
    kind = random.integers(4)
    tests = np.array_split(rows, (n, 5, 3, 4)[kind])
    pairs = [(np.setdiff1d(rows, test), test) for test in tests]
    if kind == 3:
        pairs = [(random.permutation(a)[: max(3, int(0.8 * a.size))], b) for a, b in pairs]
    one_class = problem.loss.task == "classification" and problem.fit_intercept
    good = []
    for train, test in pairs:
        kept = train[problem.s[train] > 0]
        if kept.size >= 2 and not (one_class and np.unique(problem.Y[kept]).size < 2):
            good.append((train, test))
    rest = np.arange(1, n)
    return Folds.from_pairs(n, good or [(rest, [0])])


def adversaries(powers=(-12.0, 6.0), losses=None):
    """Adversaries for hypothesis, which can do nothing but try other seeds."""
    return st.builds(adversary, st.integers(0, 2**32 - 1), st.just(powers), st.just(losses))
