"""Hostile problems, each from one number: everything that has ever broken a bound, mixed.

Kernels that are singular, badly scaled, nearly constant, nearly the identity, or indefinite and
asymmetric by a little; targets that are tiny, huge, offset, constant or full of outliers; weights
of huge ratio; splits of every kind; lambda over eighteen powers of ten; either precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.model_selection import TimeSeriesSplit

from onefit.folds import Folds, leave_one_out
from onefit.losses import (
    EpsilonInsensitive,
    EpsilonQuadratic,
    Expectile,
    Huber,
    Log,
    Logistic,
    Quantile,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)
from onefit.problem import Problem

__all__ = ["Case", "hostile", "named_cases"]

REGRESSION = "regression"
CLASSIFICATION = "classification"


@dataclass(frozen=True)
class Case:
    """A problem, its splits and a path of lambdas of which the last one counts."""

    problem: Problem = field(repr=False)
    folds: Folds
    lam: float
    seed: int = -1
    kind: str = ""
    lams: tuple[float, ...] = ()

    @property
    def path(self):
        return np.array(self.lams or (self.lam,))


def hostile(seed):
    """The problem of one seed."""
    random = np.random.default_rng(seed)
    loss, task = _loss(random)
    wide = random.random() < 0.75
    n = int(random.integers(4, 33))
    K, kernel = _kernel(random, n, 5e-9 if wide else 1e-5)
    y, target = _targets(random, n, task, loss)
    s, weight = _weights(random, n)
    if task == CLASSIFICATION and np.unique(y[s > 0]).size < 2:
        s[s == 0] = 1.0
    intercept, scaling = bool(random.random() < 0.6), ("mean", "total")[random.integers(2)]
    dtype = np.float64 if wide else np.float32
    arrays = [x.astype(dtype) for x in (K, y[:, None], s)]
    problem = Problem(*arrays, loss, intercept, scaling)
    folds, split = _splits(random, problem)
    lams = _lambdas(random)
    kind = ", ".join([kernel, target, weight, split])
    return Case(problem, folds, float(lams[-1]), seed, kind, tuple(lams.tolist()))


def _pick(random, options):
    """One of a dict's values, and its name."""
    name = list(options)[random.integers(len(options))]
    return options[name], name


def _loss(random):
    """Any loss, with one of several parameters, and the kind of targets that it is for."""
    size = 10.0 ** random.uniform(-3, 1)
    regression = [
        Squared(), Huber(1.0), Huber(size), EpsilonQuadratic(0.0), EpsilonQuadratic(size),
        Logistic(), Squared(), Logistic(),
    ]  # fmt: skip
    classification = [
        Squared(), SquaredHinge(), SmoothedHinge(0.1), SmoothedHinge(0.5 * size / 10.0), Log(),
        SquaredHinge(), Log(),
    ]  # fmt: skip
    if random.random() < 0.55:
        return regression[random.integers(len(regression))], REGRESSION
    return classification[random.integers(len(classification))], CLASSIFICATION


def _points(random, n):
    """Points in a few dimensions, some of them repeated or on a coarse grid."""
    X = random.normal(size=(n, random.integers(1, 5)))
    kind = random.integers(5)
    if kind == 0:
        X = X[random.integers(0, n, n)]
    if kind == 1:
        X = np.round(2.0 * X)
    if kind == 2:
        X = np.repeat(X, 2, axis=0)[:n]
    return X


def _kernel(random, n, indefinite):
    """A kernel matrix that rounding makes trouble for, and what it is."""
    make, name = _pick(random, _KERNELS)
    K = make(random, n, indefinite)
    if random.random() < 0.15:
        K = K * 10.0 ** random.uniform(-8, 8)
        name += " scaled"
    if random.random() < 0.06:
        K = K * (1.0 + 1e-8 * random.uniform(-0.9, 0.9, K.shape))
        name += " asymmetric"
    return K, name


def _gaussian(X, gamma):
    return np.exp(-gamma * cdist(X, X, "sqeuclidean"))


def _any_gaussian(random, n, indefinite):
    return _gaussian(_points(random, n), 10.0 ** random.uniform(-6, 3))


def _near_identity(random, n, indefinite):
    return _gaussian(_points(random, n), 10.0 ** random.uniform(1, 3))


def _near_constant(random, n, indefinite):
    return _gaussian(_points(random, n), 10.0 ** random.uniform(-9, -3))


def _offset_linear(random, n, indefinite):
    X = _points(random, n) + 10.0 ** random.uniform(-2, 5)
    return X @ X.T


def _polynomial(random, n, indefinite):
    X = _points(random, n) * 10.0 ** random.uniform(0, 4.6)
    return (random.integers(0, 2) + X @ X.T) ** int(random.integers(1, 4))


def _low_rank(random, n, indefinite):
    Z = random.normal(size=(n, int(random.integers(1, max(2, n // 2)))))
    return Z @ Z.T


def _slightly_indefinite(random, n, indefinite):
    Z = random.normal(size=(n, int(random.integers(1, n))))
    K, v = Z @ Z.T, random.normal(size=n)
    v /= np.linalg.norm(v)
    t = 10.0 ** random.uniform(-12, np.log10(indefinite))
    return K - t * np.abs(K).max() * np.outer(v, v)


_KERNELS = {
    "gaussian": _any_gaussian,
    "near identity": _near_identity,
    "near constant": _near_constant,
    "offset linear": _offset_linear,
    "polynomial": _polynomial,
    "low rank": _low_rank,
    "slightly indefinite": _slightly_indefinite,
}


def _targets(random, n, task, loss):
    """Labels in any proportion, or targets of any size."""
    if task == CLASSIFICATION:
        share, name = _pick(random, {"balanced": 0.5, "unbalanced": 0.15, "one left": 0.0})
        y = np.where(random.random(n) < share, 1.0, -1.0)
        where = random.permutation(n)
        y[where[0]], y[where[1]] = 1.0, -1.0
        if share and n > 3:
            y[where[2]], y[where[3]] = 1.0, -1.0
        return y, name
    if loss.name == "logistic" and random.random() < 0.2:
        return np.round(300.0 * random.normal(size=n)), "hundreds"
    make, name = _pick(random, _TARGETS)
    return make(random, random.normal(size=n)), name


_TARGETS = {
    "plain": lambda random, y: y,
    "any size": lambda random, y: y * 10.0 ** random.uniform(-8, 6),
    "constant plus noise": lambda random, y: 3.0 + y * 10.0 ** random.uniform(-9, -2),
    "offset": lambda random, y: 1e6 + y * 10.0 ** random.uniform(-3, 3),
    "outliers": lambda random, y: np.where(random.random(y.size) < 0.2, 1e4 * y, y),
    "constant": lambda random, y: np.full(y.size, 1.5 * 10.0 ** random.integers(-3, 3)),
    "whole numbers": lambda random, y: np.round(2.0 * y),
}


def _weights(random, n):
    """Sample weights and what they are."""
    name = ("no weights", "no weights", "weights", "huge ratio", "zero weights")[random.integers(5)]
    s = np.ones(n) if name == "no weights" else random.uniform(0.1, 3.0, n)
    if name == "huge ratio":
        s = 10.0 ** random.uniform(-6, 6, n)
    if name == "zero weights" and n > 5:
        s[random.permutation(n)[: n // 5]] = 0.0
    return s, name


def _splits(random, problem):
    """Splits of any kind, at most six of them; those with too little to train on are dropped."""
    n = problem.n
    rows = random.permutation(n) if random.random() < 0.5 else np.arange(n)
    make, name = _pick(random, _SPLITS)
    pairs = [pair for pair in make(random, rows) if pair[0].size and pair[1].size]
    pairs = [pair for pair in pairs if _trains(problem, pair[0])]
    pairs = pairs or [(np.arange(n), np.arange(n))]
    chosen = random.permutation(len(pairs))[:6]
    return Folds.from_pairs(n, [pairs[k] for k in np.sort(chosen)]), name


def _trains(problem, train):
    """Whether rows of positive weight, of both classes, are left."""
    kept = train[problem.s[train] > 0]
    labels = problem.loss.task == CLASSIFICATION
    return kept.size >= 2 and not (labels and np.unique(problem.Y[kept]).size < 2)


def _without(rows, tests):
    return [(np.setdiff1d(rows, test), test) for test in tests]


def _k_fold(random, rows):
    return _without(rows, np.array_split(rows, min(rows.size, int(random.integers(2, 6)))))


def _one_out(random, rows):
    return _without(rows, list(rows[:, None]))


def _time(random, rows):
    splitter = TimeSeriesSplit(min(3, rows.size - 1))
    return [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.zeros((rows.size, 1)))]


def _trained_rows(random, rows):
    n = rows.size
    return [(rows[: 2 * n // 3], rows[n // 2 :]), (rows[n // 4 :], rows[: n // 2])]


def _over_half(random, rows):
    n = rows.size
    return [(rows[: max(2, n // 3)], rows[max(2, n // 3) :]), (rows[n // 2 + 1 :], rows[: n // 3])]


def _unequal(random, rows):
    n = rows.size
    return [(rows[k:], rows[:k]) for k in (1, 2, n // 4, n // 2) if 0 < k < n]


def _groups(random, rows):
    groups = random.integers(0, 4, rows.size)
    return _without(rows, [rows[groups == g] for g in range(4)])


_SPLITS = {
    "k-fold": _k_fold,
    "one out": _one_out,
    "time": _time,
    "trained rows": _trained_rows,
    "over half": _over_half,
    "unequal": _unequal,
    "groups": _groups,
}


def _lambdas(random):
    """One lambda, or a falling path to it."""
    power = random.uniform(-12, 6) if random.random() < 0.7 else random.uniform(-12, -6)
    if random.random() < 0.7:
        return np.array([10.0**power])
    return 10.0 ** (power + np.linspace(random.uniform(1, 6), 0.0, int(random.integers(3, 6))))


def named_cases():
    """Problems that once gave a false certificate, by name."""
    cases = {"offset linear": _case_offset(), "flat logistic": _case_flat()}
    cases["slightly indefinite"] = _case_indefinite()
    cases |= {f"asymmetric{side}": _case_asymmetric(side == " transposed") for side in _SIDES}
    cases["float32 squared hinge"] = _case_narrow()
    cases["float32 squared hinge, rank one"] = _case_rank_one()
    losses = (
        Squared(), Huber(1.0), EpsilonQuadratic(0.1), EpsilonQuadratic(0.0), Logistic(),
        EpsilonInsensitive(0.1, 0.01), Quantile(0.8, 0.05), Expectile(0.9),
    )  # fmt: skip
    return cases | {f"tiny targets {loss!r}": _case_tiny(loss) for loss in losses}


_SIDES = ("", " transposed")


def _case_offset():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3)) + 1e5
    y = random.normal(size=40)
    problem = Problem(X @ X.T, y[:, None], np.ones(40), Squared(), True, "total")
    return Case(problem, Folds.draw(TimeSeriesSplit(3), X), 1e-4, kind="offset linear")


def _case_flat():
    y = np.array([-767.0, -292, -268, -198, -192, 105, 183, 428, 538])
    K = _gaussian(np.arange(9.0)[:, None], 1e3)
    problem = Problem(K, y[:, None], np.ones(9), Logistic(), True, "mean")
    return Case(problem, leave_one_out(9), 1e-3, kind="flat logistic")


def _case_indefinite():
    random = np.random.default_rng(1)
    Z, v = random.normal(size=(20, 5)), random.normal(size=20)
    K = Z @ Z.T
    K -= 4e-9 * np.abs(K).max() * np.outer(v, v) / (v @ v)
    problem = Problem(K, random.normal(size=(20, 1)), np.ones(20), Squared(), True, "total")
    return Case(problem, Folds.draw(5, K), 1e-6, kind="slightly indefinite")


def _case_asymmetric(transposed):
    random = np.random.default_rng(2)
    X = random.normal(size=(20, 2))
    K = _gaussian(X, 0.3) * (1.0 + 0.4e-8 * random.uniform(-1.0, 1.0, (20, 20)))
    y = random.normal(size=(20, 1))
    problem = Problem(K.T.copy() if transposed else K, y, np.ones(20), Squared(), True, "mean")
    return Case(problem, Folds.draw(5, K), 1e-6, kind="asymmetric")


def _case_narrow():
    random = np.random.default_rng(3)
    X = 4e4 * random.normal(size=(20, 2))
    y = np.where(X[:, 0] + 3e4 * random.normal(size=20) > 0, 1.0, -1.0)
    arrays = [x.astype(np.float32) for x in (1.0 + X @ X.T, y[:, None], np.ones(20))]
    problem = Problem(*arrays, SquaredHinge(), True, "mean")
    return Case(problem, leave_one_out(20), 1.8e-10, kind="float32 squared hinge")


def _case_rank_one():
    """The same in one dimension, X such that K has no rounding and stays semi-definite."""
    random = np.random.default_rng(5)
    x = 256.0 * np.round(156.0 * random.normal(size=20))
    y = np.where(x + 3e4 * random.normal(size=20) > 0, 1.0, -1.0)
    arrays = [z.astype(np.float32) for z in (np.outer(x, x), y[:, None], np.ones(20))]
    problem = Problem(*arrays, SquaredHinge(), True, "mean")
    return Case(problem, leave_one_out(20), 1.8e-10, kind="float32 squared hinge, rank one")


def _case_tiny(loss):
    random = np.random.default_rng(4)
    X = random.normal(size=(20, 2))
    y = 1e-6 * (np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=20))
    problem = Problem(_gaussian(X, 0.7), y[:, None], np.ones(20), loss, True, "mean")
    return Case(problem, Folds.draw(5, X), 1e-4, kind="tiny targets")
