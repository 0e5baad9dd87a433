"""Fits with narrow corners: how far predictions are from the minimiser, and from the limit.

For each loss with corners that are rounded over a width delta, C in {1, 10, 100} and two Gaussian
kernels (diabetes, targets standardised; breast cancer, labels -1 and +1), `fit` is set beside the
minimiser of the same problem by an independent method: the dual quadratic program, by a
primal-dual interior-point method, whose last active set is solved for once more. Distances are the
largest over the training rows, in standard deviations of the targets (1 for labels); each row of
the table has the worst of the six problems.

- bound: ``error_``, what the estimator certifies.
- residual: the distance from the quadratic program's minimiser.
- limit: the distance from the machine without rounding, the quadratic program with delta = 0. It
  falls as delta.
- libsvm: the distance from libsvm's SVC and SVR (which has the median with epsilon = 0 and C / 2).
  It stops falling at libsvm's own error: its kernel matrix is in single precision.
- steps: Newton steps, the most of any. "plain" has those of the fits that converged from zero, and
  of how many problems these were; all others began with wide corners.

A second table has the sum of the cubes of the systems' sizes, in units of the cube of the number
of rows, for ways in which the width may fall: by which factor from one fit to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import _harness as harness
import numpy as np
from _harness import Row

from onefit.losses import EpsilonInsensitive, Huber, Quantile, SmoothedHinge

DELTAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
CS, GAMMAS = (1.0, 10.0, 100.0), (0.1, 0.5)
FALLS = (3.0, 10.0, 30.0, 100.0)
EPSILON = 0.05
#: steps of the interior-point method, and its complementarity at the end, in units of C
STEPS, GAP = 200, 1e-13


@dataclass(frozen=True)
class Case:
    """A loss, its data, and its dual program: min a'Q a/2 - z'a + tube |a|_1, low <= a <= high.

    Attributes
    ----------
    make : function of (delta, C)
        The estimator.
    ridge : function of (delta, C)
        What the rounding adds to the diagonal of K.
    shift : float
        Of z, in units of delta y.
    """

    name: str
    labels: bool
    make: Callable[[float, float], Any]
    low: float
    high: float
    ridge: Callable[[float, float], float]
    tube: float = 0.0
    shift: float = 0.0


def cases() -> list[Case]:
    from onefit import KernelClassifier, KernelRegressor

    common = {"scaling": "total"}

    def svr(delta: float, C: float) -> Any:
        loss = {"loss": EpsilonInsensitive(epsilon=EPSILON, delta=delta)}
        return KernelRegressor(lam=0.5 / C, **loss, **common)

    def quantile(level: float) -> Callable[[float, float], Any]:
        def make(delta: float, C: float) -> Any:
            loss = {"loss": Quantile(level, delta=delta)}
            return KernelRegressor(lam=0.5 / C, **loss, **common)

        return make

    def huber(delta: float, C: float) -> Any:
        return KernelRegressor(loss=Huber(delta), lam=delta / C, **common)

    def hinge(delta: float, C: float) -> Any:
        return KernelClassifier(loss=SmoothedHinge(delta), lam=0.5 / C, **common)

    def wide(delta: float, C: float) -> float:
        return delta / C

    return [
        Case("epsilon_insensitive", False, svr, -1.0, 1.0, wide, tube=EPSILON),
        Case("quantile 0.9", False, quantile(0.9), -0.1, 0.9, wide),
        Case("quantile 0.5", False, quantile(0.5), -0.5, 0.5, wide),
        Case("huber", False, huber, -1.0, 1.0, wide),
        Case("smoothed_hinge", True, hinge, 0.0, 1.0, lambda d, C: 2.0 * d / C, shift=1.0),
    ]


def program(Q, z, low, high, tube: float) -> tuple[np.ndarray, float]:
    """a and b of min a'Q a/2 - z'a + tube |a|_1 over low <= a <= high, 1'a = 0."""
    n = z.size
    if tube:  # a = p - q with p, q >= 0
        Q, z = np.block([[Q, -Q], [-Q, Q]]), np.concatenate([z - tube, -z - tube])
        low, high = np.zeros(2 * n), np.concatenate([high, -low])
    sign = np.ones(z.size)
    sign[n:] = -1.0
    x, b, free = interior_point(Q, z, sign, low, high)
    x, b = polished(Q, z, sign, low, high, x, b, free)
    return (x[:n] - x[n:] if tube else x), b


def interior_point(Q, z, sign, low, high) -> tuple[np.ndarray, float, np.ndarray]:
    """Mehrotra's predictor and corrector; b is the multiplier of sign'x = 0."""
    x = 0.5 * (low + high)
    b, v, w, unit = 0.0, np.ones(x.size), np.ones(x.size), float(np.max(high - low))
    x -= sign * (sign @ x) / x.size
    for _ in range(STEPS):
        down, up = x - low, high - x
        dual = Q @ x - z + b * sign - v + w
        primal, mu = float(sign @ x), float(v @ down + w @ up) / (2 * x.size)
        if mu <= GAP * unit and np.abs(dual).max() <= 1e-11:
            break
        H = Q + np.diag(v / down + w / up)
        factor = np.linalg.inv(np.block([[H, sign[:, None]], [sign[None], np.zeros((1, 1))]]))

        def step(lower, upper, factor=factor, dual=dual, primal=primal, down=down, up=up, v=v, w=w):
            right = -dual + lower / down - v - (upper / up - w)
            dx, db = np.split(factor @ np.append(right, -primal), [-1])
            dv, dw = lower / down - v - v / down * dx, upper / up - w + w / up * dx
            parts = [(down, dx), (up, -dx), (v, dv), (w, dw)]
            t = min(1.0, *(float(np.min(-p[d < 0] / d[d < 0], initial=np.inf)) for p, d in parts))
            return dx, float(db[0]), dv, dw, t

        dx, _, dv, dw, t = step(0.0, 0.0)
        after = float((v + t * dv) @ (down + t * dx) + (w + t * dw) @ (up - t * dx)) / (2 * x.size)
        aim = mu * (after / mu) ** 3
        dx, db, dv, dw, t = step(aim - dx * dv, aim + dx * dw)
        t = min(1.0, 0.995 * t)
        x, b, v, w = x + t * dx, b + t * db, v + t * dv, w + t * dw
    return x, b, (v < x - low) & (w < high - x)


def polished(Q, z, sign, low, high, x, b, free) -> tuple[np.ndarray, float]:
    """The solution with these variables free and all others at their nearer bound."""
    end = np.where(x - low < high - x, low, high)
    end[free] = 0.0
    if not free.any():
        return end, b
    inside = Q[np.ix_(free, free)]
    border = np.block([[inside, sign[free][:, None]], [sign[free][None], np.zeros((1, 1))]])
    right = np.append((z - Q @ end)[free], -sign @ end)
    found = np.linalg.solve(border, right)
    end[free] = found[:-1]
    inner = (end >= low).all() and (end <= high).all()
    return (end, float(found[-1])) if inner else (x, b)


def minimiser(case: Case, K, y, delta: float, C: float) -> np.ndarray:
    """Predictions of the machine with corners of this width, 0 for none."""
    low, high = np.full(y.size, case.low * C), np.full(y.size, case.high * C)
    if case.labels:
        low, high = np.minimum(y * low, y * high), np.maximum(y * low, y * high)
    Q = K + case.ridge(delta, C) * np.eye(y.size)
    a, b = program(Q, (1.0 + case.shift * delta) * y, low, high, case.tube)
    return K @ a + b


def libsvm(case: Case, X, y, C: float, gamma: float) -> np.ndarray:
    """libsvm's machine, NaN where it has none."""
    from sklearn.svm import SVC, SVR

    if case.labels:
        return SVC(C=C, gamma=gamma, tol=1e-9).fit(X, y).decision_function(X)
    if case.low != -case.high:
        return np.full(y.size, np.nan)
    model = SVR(C=case.high * C, gamma=gamma, epsilon=case.tube, tol=1e-9)
    return model.fit(X, y).predict(X)


def data(case: Case) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_breast_cancer, load_diabetes
    from sklearn.preprocessing import scale

    X, y = (load_breast_cancer if case.labels else load_diabetes)(return_X_y=True)
    return scale(X), 2.0 * y - 1.0 if case.labels else scale(y)


def row_of(case: Case, delta: float, limits: dict[tuple[float, float], Any]) -> Row:
    from sklearn.metrics.pairwise import rbf_kernel

    from onefit.columns.newton import MAX_NEWTON_STEPS

    X, y = data(case)
    worst = {"bound": 0.0, "residual": 0.0, "limit": 0.0, "libsvm": 0.0}
    steps, plain = [], []
    for C, gamma in product(CS, GAMMAS):
        K = rbf_kernel(X, gamma=gamma)
        if (C, gamma) not in limits:
            limits[C, gamma] = minimiser(case, K, y, 0.0, C), libsvm(case, X, y, C, gamma)
        model = case.make(delta, C).set_params(gamma=gamma).fit(X, y)
        u = model.decision_function(X) if case.labels else model.predict(X)
        found = {
            "bound": model.error_,
            "residual": float(np.abs(u - minimiser(case, K, y, delta, C)).max()),
            "limit": float(np.abs(u - limits[C, gamma][0]).max()),
            "libsvm": float(np.abs(u - limits[C, gamma][1]).max()),
        }
        worst = {name: max(found[name], worst[name]) for name in worst}
        steps.append(model.n_iter_)
        plain += [model.n_iter_] if model.n_iter_ <= MAX_NEWTON_STEPS else []
    plain_steps = f"{max(plain)} ({len(plain)})" if plain else "-"
    return {"loss": case.name, "delta": delta, **worst, "steps": max(steps), "plain": plain_steps}


def work_of(case: Case, fall: float) -> float:
    """Operations of a fit with corners of 1e-4, C = 10, where the width falls by this factor."""
    from onefit.columns import solve
    from onefit.systems import cholesky

    X, y = data(case)
    cubes, honest, before = [], cholesky.CurvedFactor.__init__, solve.WIDENING_RATIO

    def counted(self: Any, K: Any, rows: Any, root: Any) -> None:
        cubes.append((rows.size / y.size) ** 3)
        honest(self, K, rows, root)

    cholesky.CurvedFactor.__init__ = counted  # type: ignore[method-assign]
    solve.WIDENING_RATIO = fall
    try:
        case.make(1e-4, 10.0).set_params(gamma=0.1).fit(X, y)
    finally:
        cholesky.CurvedFactor.__init__, solve.WIDENING_RATIO = honest, before  # type: ignore[method-assign]
    return sum(cubes)


def main() -> None:
    flags = harness.parser(__doc__, rounds=1).parse_args()
    rows: list[Row] = []
    for case in cases():
        limits: dict[tuple[float, float], Any] = {}
        for delta in DELTAS[2:3] if flags.quick else DELTAS:
            rows.append(row_of(case, delta, limits))
            print(rows[-1], flush=True)
    work = [
        {"loss": case.name, **{f"by {fall:g}": work_of(case, fall) for fall in FALLS}}
        for case in cases()
    ]
    name = harness.stem("final_fits", flags.quick)
    harness.write_csv(flags.out, name, rows)
    about = (__doc__ or "").partition("\n\n")[2]
    parts = [
        ("Residuals", f"{about}\n\n{harness.table(rows)}"),
        ("How fast the width falls", harness.table(work)),
    ]
    harness.write_report(flags.out, name, "Fits of losses with narrow corners", parts)


if __name__ == "__main__":
    main()
