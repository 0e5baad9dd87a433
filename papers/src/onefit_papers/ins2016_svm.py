"""The support vector machine itself, for the t-CV of Information Sciences 2016.

Two machines. "liblinear" has no intercept, as in the paper's formulas: liblinear's dual solver on
features Z with Z Z' = K. "libsvm" has one, and works on K: what the authors most likely ran, and
the only one of the two that is quick with polynomials. libsvm's C of the mean scaling is
1 / (2 n lam).

Fitting either again for every fold, kernel and lambda takes nearly all the time of the experiment.
So it is done in the first replicate of some sets, where times are reported, and elsewhere the error
rates of t-CV are those of the hinge with its corner rounded over `NARROW`, by the exact engine.
libsvm itself stops within 1e-3 of its optimum. Where both were run, the page says how far
apart the errors of their choices are. The machine that is tested is the SVM itself in either case.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from onefit import linalg
from onefit.criteria import CrossValidation
from onefit.folds import Folds
from onefit.heldout import Exact
from onefit.kernels import Geometry
from onefit.losses import SmoothedHinge
from onefit_papers.sweep import Family, Sweep, misses

Array = NDArray[Any]

__all__ = ["MACHINES", "NARROW", "features", "linear_svm", "predict", "rounded", "sweep"]

#: of liblinear over the rows; with polynomials of high degree and small lambda it needs more
PASSES = 1000
#: half width of the corner of the hinge that stands for the SVM
NARROW = 1e-3


def features(K: Array) -> Array:
    """Z with Z Z' = K, without the directions that K does not see."""
    values, vectors = linalg.eigh(linalg.fortran(K), overwrite=True)
    seen = values > np.finfo(float).eps * len(K) * values[-1]
    return np.ascontiguousarray(vectors[:, seen] * np.sqrt(values[seen]))


def linear_svm(Z: Array, y: Array, lam: float) -> LinearSVC:
    """The SVM without intercept."""
    machine = LinearSVC(loss="hinge", C=0.5 / (len(y) * lam), fit_intercept=False, max_iter=PASSES)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # as with libsvm's, the last step stands
        return machine.fit(Z, y)


class WithoutIntercept:
    """liblinear on features of the kernel matrix."""

    def __init__(self, K: Array) -> None:
        self.Z = features(K)

    def decide(self, y: Array, train: Array, test: Array, lams: Sequence[float]) -> list[Array]:
        """Decision values of the test rows for every lambda."""
        machines = (linear_svm(self.Z[train], y[train], lam) for lam in lams)
        return [machine.decision_function(self.Z[test]) for machine in machines]


class WithIntercept:
    """libsvm on the kernel matrix."""

    def __init__(self, K: Array) -> None:
        self.K = K

    def decide(self, y: Array, train: Array, test: Array, lams: Sequence[float]) -> list[Array]:
        """Decision values of the test rows for every lambda."""
        inner, outer = self.K[np.ix_(train, train)], self.K[np.ix_(test, train)]
        costs = (0.5 / (len(train) * lam) for lam in lams)
        machines = (SVC(kernel="precomputed", C=cost, cache_size=500) for cost in costs)
        return [machine.fit(inner, y[train]).decision_function(outer) for machine in machines]


MACHINES: dict[str, type[WithoutIntercept | WithIntercept]] = {
    "liblinear": WithoutIntercept,
    "libsvm": WithIntercept,
}


def rounded(family: Family, folds: Sequence[Folds], machine: str) -> list[Sweep]:
    """t-fold error rates of the SVM but for the corner of the hinge, without refits."""
    intercept = MACHINES[machine] is WithIntercept
    near = Family(family.X, family.y, family.kernels, family.lams, SmoothedHinge(NARROW), intercept)
    return near.sweep_together(CrossValidation(loss=misses, guard=False), Exact(), folds)


def sweep(family: Family, folds: Folds, machine: str) -> Sweep:
    """t-fold error rates of the SVM, by fitting it again on every training part."""
    values = np.empty((len(family.kernels), len(family.lams)))
    seconds = 0.0
    for i in range(len(family.kernels)):
        K = family.problem(i).K.matrix
        start = process_time()
        prepared = MACHINES[machine](K)
        wrong = [
            [misses(family.y[b], u).mean() for u in prepared.decide(family.y, a, b, family.lams)]
            for a, b in folds
        ]
        values[i] = np.mean(wrong, axis=0)
        seconds += process_time() - start
    return Sweep(values, seconds)


def predict(family: Family, winner: tuple[int, int], X: Array, machine: str) -> Array:
    """Decision values of other rows by the SVM with the winner's parameters."""
    kernel, lam = winner
    both = MACHINES[machine](family.kernels[kernel].matrix(Geometry(np.vstack([family.X, X]))))
    rows, n = np.arange(len(family.y) + len(X)), len(family.y)
    return both.decide(family.y, rows[:n], rows[n:], [family.lams[lam]])[0]
