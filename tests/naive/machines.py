"""Machines by brute force: the objective from its definition, minimised by a general method.

f is written in an orthonormal basis of the span of the kernel functions, f = F c with F F' = K, so
that ||f||^2 = c'c and neither stationarity nor the representer theorem is used.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

import naive.losses


def weights(s, scaling):
    """w of the objective sum_i w_i V_i + lam ||f||^2."""
    s = np.asarray(s, dtype=float)
    return s / s.sum() if scaling == "mean" else s


def objective(value, y, s, scaling, lam, u, norm2):
    """sum_i w_i V(y_i, u_i) + lam ||f||^2, one term after the other."""
    return lam * norm2 + sum(
        w * value(target, point) for w, target, point in zip(weights(s, scaling), y, u, strict=True)
    )


def objective_of(problem, lam, solution, column=0, loss_value=None):
    """The objective at a solution, by its coefficients and intercept alone."""
    a, b = solution.a[:, column], solution.b[column]
    f = problem.K.matrix @ a
    value = loss_value or (lambda y, u: naive.losses.value(problem.loss, y, u))
    return objective(value, problem.Y[:, column], problem.s, problem.scaling, lam, f + b, a @ f)


def brute_force(K, y, s, value, lam, fit_intercept=True, scaling="mean"):
    """(smallest objective found, predictions there), from values of the objective and no more.

    A quasi-Newton method with differences for the gradient, restarted until it stands still.
    """
    e, Q = np.linalg.eigh(K)
    F = (Q * np.sqrt(np.maximum(e, 0.0)))[:, e > 1e-12 * e[-1]]

    def predictions(point):
        return F @ point[:-1] + (point[-1] if fit_intercept else 0.0)

    def height(point):
        return objective(value, y, s, scaling, lam, predictions(point), point[:-1] @ point[:-1])

    def slope(point, step=1e-6):
        shifts = step * np.eye(point.size)
        return np.array([(height(point + h) - height(point - h)) / (2 * step) for h in shifts])

    best = minimize(height, np.zeros(F.shape[1] + 1), jac=slope, method="BFGS", tol=1e-9)
    for _ in range(5):
        again = minimize(height, best.x, jac=slope, method="BFGS", tol=1e-10)
        if best.fun - again.fun <= 1e-13 * abs(best.fun):
            break
        best = again
    return float(best.fun), predictions(best.x)


def least_squares(K, y, s, lam, fit_intercept=True, scaling="mean"):
    """(a, b) of the squared loss from its bordered system, written out."""
    n = len(y)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K + np.diag(lam / weights(s, scaling))
    system[:n, n] = system[n, :n] = 1.0
    if not fit_intercept:
        system[:n, n] = system[n, :n] = 0.0
        system[n, n] = 1.0
    solution = np.linalg.solve(system, np.concatenate([y, np.zeros((1, *np.shape(y)[1:]))]))
    return solution[:n], solution[n]


def stationarity_gaps(problem, lam, solution):
    """How far 2 Lambda a = -s g, sum a = 0 and u = K a + b are from true, relative to their size.

    What rounding of u = K a + b alone can do is not counted: it grows with the terms of K a, and
    reaches g through the curvature.
    """
    K, s = problem.K.matrix.astype(float), problem.s.astype(float)[:, None]
    a, b, u = (v.astype(float) for v in (solution.a, solution.b, solution.u))
    ridge = lam * (s.sum() if problem.scaling == "mean" else 1.0)
    g = s * problem.loss.gradient(problem.Y, u)
    eps = np.finfo(problem.K.dtype).eps
    terms = np.diag(K).max() * np.abs(a).sum(axis=0) + np.abs(u).max(axis=0) + np.abs(b)
    rounding = 100.0 * eps * terms
    bend = np.max(
        [s * problem.loss.curvature(problem.Y, u + h) for h in (-rounding, 0.0, rounding)],
        axis=(0, 1),
    )

    def relative(gap, size, noise):
        return float((np.maximum(gap - noise, 0.0) / (size + 1e-300)).max())

    size = np.abs(problem.Y).max(axis=0) + np.abs(u).max(axis=0)
    first = relative(np.abs(2 * ridge * a + g).max(axis=0), np.abs(g).max(axis=0), rounding * bend)
    noise = len(a) * rounding * bend / (2 * ridge)
    second = relative(np.abs(a.sum(axis=0)), np.abs(a).sum(axis=0), noise)
    third = relative(np.abs(K @ a + b - u).max(axis=0), size, rounding)
    return first, second if problem.fit_intercept else 0.0, third
