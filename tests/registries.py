"""What there is to test, in lists: losses, kernels, scalings, and problems drawn from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from onefit.kernels import (
    Gaussian,
    Laplace,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Polynomial,
    PowerExponential,
    WeightedSum,
)
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
from onefit.systems import Cholesky, Float32CG, Float32Kernel, KrylovSystem, SharedFactor, Update

SCALINGS = ("mean", "total")

REGRESSION_LOSSES = [
    Squared(),
    Huber(1.0),
    Huber(0.05),
    EpsilonQuadratic(0.1),
    EpsilonQuadratic(0.0),
    EpsilonQuadratic(1.0),
    EpsilonInsensitive(0.1, 0.05),
    EpsilonInsensitive(0.0, 0.5),
    Quantile(0.8, 0.3),
    Quantile(0.5, 0.02),
    Expectile(0.9),
    Logistic(),
]
CLASSIFICATION_LOSSES = [
    Squared(),
    SmoothedHinge(0.1),
    SmoothedHinge(1e-3),
    SmoothedHinge(0.5),
    SquaredHinge(),
    Log(),
]
#: (loss, task) of every loss with several of its parameters
LOSSES = [(loss, "regression") for loss in REGRESSION_LOSSES] + [
    (loss, "classification") for loss in CLASSIFICATION_LOSSES
]
LOSS_IDS = [f"{task}-{loss!r}" for loss, task in LOSSES]

KERNELS = [
    Gaussian(0.7),
    Laplace(0.3),
    Matern12(0.5),
    Matern32(0.5),
    Matern52(0.5),
    PowerExponential(0.5, p=1, q=0.7),
    PowerExponential(0.5, p=2, q=1.6),
    Linear(),
    Polynomial(0.2, 1.5, 2),
    WeightedSum([Gaussian(0.5), Linear()], [1.0, 0.3]),
]

#: constructor arguments of the estimators, every loss by its name
REGRESSORS = [
    {"loss": "squared"},
    {"loss": Huber(0.3)},
    {"loss": EpsilonQuadratic(0.2)},
    {"loss": EpsilonInsensitive(epsilon=0.2, delta=0.1)},
    {"loss": Quantile(0.7, delta=0.2)},
    {"loss": Expectile(0.8)},
    {"loss": "logistic"},
]
CLASSIFIERS = [
    {"loss": "squared"},
    {"loss": SmoothedHinge(0.1)},
    {"loss": "squared_hinge"},
    {"loss": "log"},
]


def _update(problem, d, ridge, **options):
    each, which = np.unique(ridge, return_inverse=True)
    return Update([SharedFactor(problem, d, float(one), **options) for one in each], which)


#: name -> what makes a system, of a problem, curvatures (n,) near those of its columns, and their
#: Lambda (k,)
SYSTEMS = {
    "cholesky": lambda problem, d, ridge: Cholesky(problem, ridge),
    "update": _update,
    "update alone": lambda problem, d, ridge: _update(problem, d, ridge, alone=True),
    "float32 CG": lambda problem, d, ridge: Float32CG(Float32Kernel(problem), ridge, rounds=6),
    "iterative": lambda problem, d, ridge: KrylovSystem(problem, ridge, tolerance=0.0),
}


def kinks(loss: object) -> list[float]:
    """Where the loss changes its piece: residuals y - u, or margins y u for the hinges."""
    match loss:
        case Huber(threshold):
            return [-threshold, threshold]
        case EpsilonQuadratic(epsilon):
            return [-epsilon, epsilon] if epsilon else [0.0]
        case EpsilonInsensitive(epsilon, delta):
            tube = [-epsilon, epsilon] if epsilon else []
            return [-epsilon - delta, *tube, epsilon + delta]
        case Quantile(level, delta):
            return [(level - 1.0) * delta, level * delta]
        case Expectile():
            return [0.0]
        case SmoothedHinge(delta):
            return [1.0 - delta, 1.0 + delta]
        case SquaredHinge():
            return [1.0]
    return []


def target_and_point(loss: object, task: str, at: float, y: float) -> tuple[float, float]:
    """(y, u) with residual ``at``, or with margin ``at`` for a loss of the margin."""
    if loss.task == "classification":
        label = 1.0 if y >= 0 else -1.0
        return label, label * at
    y = (1.0 if y >= 0 else -1.0) if task == "classification" else y
    return y, y - at


@dataclass(frozen=True)
class Case:
    """A problem, a lambda, and whether anything about it is meant to be hard."""

    problem: Problem
    lam: float


@st.composite
def cases(draw, losses=None, dtype=np.float64, powers=(-8.0, 6.0), max_rows=25):
    """Problems of every loss: singular K, duplicate rows, constant targets, weights, any lambda."""
    loss, task = draw(st.sampled_from(LOSSES if losses is None else losses))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, max_rows))
    X = random.normal(size=(n, draw(st.integers(1, 3))))
    if draw(st.booleans()):
        X = X[random.integers(0, n, n)]
    if draw(st.booleans()):
        K = X @ X.T
    else:
        K = np.exp(-(10.0 ** draw(st.floats(-3, 1))) * cdist(X, X, "sqeuclidean"))
    y = draw(targets(task, n, random))
    s = random.uniform(0.1, 3.0, n) if draw(st.booleans()) else np.ones(n)
    problem = Problem(
        K.astype(dtype),
        y.astype(dtype)[:, None],
        s.astype(dtype),
        loss,
        fit_intercept=draw(st.booleans()),
        scaling=draw(st.sampled_from(SCALINGS)),
    )
    return Case(problem, 10.0 ** draw(st.floats(*powers)))


@st.composite
def targets(draw, task, n, random):
    """Labels of both classes, or targets of any size, at times all equal."""
    if task == "classification":
        y = np.where(random.random(n) < 0.5, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        return y
    y = random.normal(size=n) * 10.0 ** draw(st.floats(-3, 2))
    return np.full(n, y[0]) if draw(st.integers(0, 9)) == 0 else y


def sample(task, n=30, d=2, seed=0, classes=2):
    """X and y of a noisy problem: y is +-1, or 0..classes-1, or a curve with a few outliers."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    if task == "regression":
        return X, np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=n) + 2.0 * (
            np.arange(n) % 9 == 0
        )
    score = X[:, 0] + 0.7 * random.normal(size=n)
    if classes == 2:
        return X, np.where(score > np.median(score), 1, -1)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
