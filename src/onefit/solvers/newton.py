"""Any convex loss: Newton's method on the active set, with an exact line search.

At a point with predictions u, gradients g and curvatures d let A = {i : d_i > 0}. The Newton
model replaces g by its linearisation g + d (u' - u). Stationarity of the model, 2 Lambda a' =
-s (g + d (u' - u)), fixes the coefficients off A,

    a'_i = -s_i g_i / (2 Lambda),                                     i not in A,

and leaves a least-squares problem on A with working response z and ridge c,

    (K_AA + diag(c)) a'_A + b' = z - K_{A,rest} a'_rest,
    z_i = u_i - g_i / d_i,      c_i = 2 Lambda / (s_i d_i),

bordered by 1'a' = 0 when there is an intercept. Only points with curvature enter a
factorisation: for the smoothed hinge these are the few points on its corner. With R =
diag(c)^(-1/2) the factored matrix is I + R K_AA R, whose eigenvalues are at least one whatever
Lambda is.

For a piecewise quadratic loss, a full step after which no point has left its piece is the exact
minimiser, and the exact line search makes the method finite. For the smooth losses it converges
quadratically. If A is empty the model says nothing of b, which then moves by a line search of
its own; when the loss is flat in b at the minimum, the middle of the flat stretch is taken.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from onefit import _linalg as linalg
from onefit.losses.base import Loss
from onefit.problem import Problem, Solution
from onefit.solvers.direct import without_rounding
from onefit.solvers.linesearch import line_search

Array = NDArray[Any]

__all__ = ["Machine", "State", "minimise", "solve_active", "solve_newton"]

MAX_STEPS = 60


@dataclass(frozen=True)
class Machine:
    """One target of a problem at one Lambda: what a Newton step needs to know."""

    K: Array
    y: Array
    s: Array
    ridge: float
    loss: Loss
    fit_intercept: bool


@dataclass
class State:
    """Coefficients, intercept and predictions, u = K a + b."""

    a: Array
    b: float
    u: Array

    @classmethod
    def zero(cls, y: Array) -> State:
        """The start that knows nothing."""
        return cls(np.zeros_like(y), 0.0, np.zeros_like(y))


@linalg.overflowing
def solve_newton(
    problem: Problem, lam: float, start: Solution | None = None, max_steps: int = MAX_STEPS
) -> Solution:
    """Minimise any loss, one target after the other, from ``start`` (a near solution) or zero.

    Steps that overflow, as they soon do in single precision, end in a solution that has not
    converged.
    """
    ridge = problem.ridge(lam)
    coef, decision = np.empty_like(problem.Y), np.empty_like(problem.Y)
    intercept = np.zeros(problem.Y.shape[1], dtype=problem.Y.dtype)
    steps, converged = 0, True
    for j, y in enumerate(problem.Y.T):
        y = np.ascontiguousarray(y)
        machine = Machine(problem.K, y, problem.s, ridge, problem.loss, problem.fit_intercept)
        if start is None:
            state = State.zero(y)
        else:
            state = State(start.coef[:, j], float(start.intercept[j]), start.decision[:, j])
        state, taken, ok = minimise(machine, state, max_steps)
        if not ok:
            state, more, ok = _descend(machine, 4 * max_steps)
            taken += more
        coef[:, j], intercept[j], decision[:, j] = state.a, state.b, state.u
        steps, converged = max(steps, taken), converged and ok
    if not converged:
        warnings.warn(
            f"Newton's method stopped after {steps} steps short of a stationary point "
            f"(loss {problem.loss!r}, lam={lam:g}); the problem is too ill-conditioned for "
            f"{problem.Y.dtype}: raise lam, or scale the data",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Solution(coef, intercept, decision, steps, converged)


def _descend(machine: Machine, max_steps: int) -> tuple[State, int, bool]:
    """From zero again, but along falling Lambda: each solution starts the next, 100 times below."""
    top = float(np.einsum("ii->i", machine.K).max()) * float(machine.s.sum())
    stages = np.ceil(np.log10(max(1.0, top / machine.ridge)) / 2.0)
    state, steps, converged = State.zero(machine.y), 0, False
    for power in np.arange(stages, -1.0, -1.0):
        eased = replace(machine, ridge=machine.ridge * 100.0**power)
        state, taken, converged = minimise(eased, state, max_steps)
        steps += taken
    return state, steps, converged


def minimise(machine: Machine, state: State, max_steps: int) -> tuple[State, int, bool]:
    """Newton steps until no point changes its piece, or until they are of rounding size."""
    epsilon = float(np.finfo(machine.y.dtype).eps)
    # a smooth loss converges quadratically; a piecewise one has yet to find its pieces
    tolerance = 4.0 * epsilon if machine.loss.piecewise_quadratic else epsilon**0.5
    converged, slid, steps = False, False, 0
    while steps < max_steps:
        steps += 1
        move, determined = newton_step(machine, state)
        small = tolerance + 4.0 * epsilon * float(np.abs(state.u).max())
        # the last step is taken in full: where K is singular, a may have far to go when u has not
        rounded = float(np.abs(move.u).max()) <= small
        t = _FULL if rounded else _step_length(machine, state, move)
        state.a, state.b, state.u = (
            state.a + t * move.a,
            state.b + t * move.b,
            state.u + t * move.u,
        )
        converged = t == _FULL or float(np.abs(t * move.u).max()) <= small
        slid = not determined and _slide(machine, state)
        if (converged or t == 0.0) and not slid:
            break
    state.u = linalg.matmul(machine.K, state.a) + state.b
    if machine.fit_intercept and _straight_beside(machine, state):
        _centre(machine, state)
    return state, steps, converged and not slid and _stationary(machine, state)


def _stationary(machine: Machine, state: State) -> bool:
    """Whether 2 Lambda a = -s g holds, up to what rounding in u = K a makes of it."""
    s, loss = machine.s, machine.loss
    g = s * loss.gradient(machine.y, state.u)
    gap = np.abs(2.0 * machine.ridge * state.a + g)
    epsilon = float(np.finfo(machine.y.dtype).eps)
    size = float(np.einsum("ii->i", machine.K).max()) * float(np.abs(state.a).sum())
    rounding = 8.0 * epsilon * (size + float(np.abs(state.u).max()))
    # rounding may have put a point on either side of a kink
    curvature = max(
        float((s * loss.curvature(machine.y, state.u + shift)).max())
        for shift in (-rounding, 0.0, rounding)
    )
    allowed = epsilon**0.5 * float(np.abs(g).max()) + rounding * curvature
    return bool(np.isfinite(gap).all() and gap.max() <= allowed)


#: the step length that says: a full step, after which every point is still on its piece
_FULL = float("1.0")


def _straight_beside(machine: Machine, state: State) -> bool:
    """Whether a small shift of b, to one side at least, leaves no weighted point with curvature."""
    epsilon = float(np.finfo(machine.y.dtype).eps)
    shift = epsilon**0.5 * (1.0 + float(np.abs(state.u).max()))
    y, u = machine.y[machine.s > 0], state.u[machine.s > 0]
    return any(not machine.loss.curvature(y, moved).any() for moved in (u - shift, u, u + shift))


def newton_step(machine: Machine, state: State) -> tuple[State, bool]:
    """The direction to the minimiser of the Newton model, and whether the model determines b.

    In the far tails of a smooth loss the model is worthless: it sends a point g / d away, past
    everything. Where the step goes that far, points are held within their own size of where they
    are, |g| / d <= 1 + |y| + |u|, by raising d.
    """
    loss, y = machine.loss, machine.y
    g, d = loss.gradient(y, state.u), loss.curvature(y, state.u)
    move, determined = _model_step(machine, state, g, d)
    if loss.piecewise_quadratic:
        return move, determined
    reach = 1.0 + np.abs(y) + np.abs(state.u)
    if float(np.abs(move.u).max()) <= 16.0 * float(reach.max()):
        return move, determined
    return _model_step(machine, state, g, np.maximum(d, np.abs(g) / reach))


def _model_step(machine: Machine, state: State, g: Array, d: Array) -> tuple[State, bool]:
    K, y, s, ridge = machine.K, machine.y, machine.s, machine.ridge
    # beyond the reach of rounding g / d says nothing
    reach = 1.0 + np.abs(y) + np.abs(state.u)
    active = np.flatnonzero((d * reach > np.finfo(y.dtype).eps * np.abs(g)) & (s > 0.0))
    a = -s * g / (2.0 * ridge)
    a[active] = 0.0
    b = state.b
    if active.size:
        fixed = linalg.matmul(K, a)[active] if active.size < y.size else 0.0
        z = state.u[active] - g[active] / d[active] - fixed
        root = np.sqrt(s[active] * d[active] / (2.0 * ridge))
        K_active = K if active.size == y.size else linalg.submatrix(K, active, active)
        a[active], b = solve_active(K_active, z, root, float(a.sum()), machine.fit_intercept)
    da, db = a - state.a, b - state.b
    du = linalg.matmul(K, da) + db
    return State(da, db, du), bool(active.size) or not machine.fit_intercept


def solve_active(
    K: Array, z: Array, root: Array, fixed_sum: float, fit_intercept: bool
) -> tuple[Array, float]:
    """Solve (K + diag(root^-2)) a + b = z, with 1'a = -fixed_sum if there is an intercept.

    In terms of x = R^-1 a. With an intercept, a is what is left of two larger vectors; the second
    round, on the residual of the first, wins back the digits lost in their difference.
    """
    solve = unit_ridge_solver(K, root)
    if not fit_intercept:
        return root * solve(root * z), 0.0
    ones = solve(root)
    x = solve(root * z)
    b = float((root @ x + fixed_sum) / (root @ ones))
    x = x - b * ones
    x = x + solve(root * (z - b - linalg.matmul(K, root * x)) - x)
    shift = float((root @ x + fixed_sum) / (root @ ones))
    return root * (x - shift * ones), b + shift


def unit_ridge_solver(K: Array, root: Array) -> Any:
    """x -> (I + R K R)^-1 x, by Cholesky, or by eigenvalues where rounding spoils that."""
    try:
        factor = linalg.cholesky(linalg.unit_ridge(K, root), overwrite=True)
    except linalg.LinAlgError:
        M = linalg.fortran(K)
        M *= root[:, None]
        M *= root[None, :]
        values, vectors = linalg.eigh(M, overwrite=True)
        shifted = without_rounding(values) + 1.0
        return lambda x: linalg.matmul(vectors, (linalg.matmul(vectors.T, x).T / shifted).T)
    return lambda x: linalg.solve_cholesky(factor, x)


def _step_length(machine: Machine, state: State, move: State) -> float:
    """1 if the full step keeps every point on its piece, else the exact minimum along the ray."""
    loss, y = machine.loss, machine.y
    if loss.piecewise_quadratic:
        before, after = loss.piece(y, state.u), loss.piece(y, state.u + move.u)
        if np.array_equal(before, after):
            return _FULL
    df = move.u - move.b
    linear = 2.0 * machine.ridge * (state.a @ df)
    quadratic = 2.0 * machine.ridge * (move.a @ df)
    t = line_search(
        loss,
        y[:, None],
        state.u[:, None],
        move.u[:, None],
        machine.s[:, None],
        np.atleast_1d(linear),
        np.atleast_1d(quadratic),
    )
    return float(np.nextafter(t[0], 0.0)) if t[0] == _FULL else float(t[0])


def _slide(machine: Machine, state: State) -> bool:
    """Move b alone to its minimum; False if it is there already."""
    g = machine.s * machine.loss.gradient(machine.y, state.u)
    total = float(g.sum(dtype=np.float64))
    if abs(total) <= 1e-12 * float(np.abs(g).sum()):
        return False
    reach = -np.sign(total) * (1.0 + float(np.abs(machine.y - state.u).max()))
    direction = np.full((machine.y.size, 1), reach)
    none = np.zeros(1)
    t = line_search(
        machine.loss,
        machine.y[:, None],
        state.u[:, None],
        direction,
        machine.s[:, None],
        none,
        none,
    )
    state.b += reach * float(t[0])
    state.u = state.u + reach * float(t[0])
    return True


def _centre(machine: Machine, state: State) -> None:
    """Move b to the middle of its flat stretch, where stationarity gives a outright."""
    shift = middle_intercept(machine, state)
    state.b += shift
    state.u = state.u + shift
    if not machine.loss.curvature(machine.y, state.u)[machine.s > 0].any():
        state.a = -machine.s * machine.loss.gradient(machine.y, state.u) / (2.0 * machine.ridge)
        state.u = linalg.matmul(machine.K, state.a) + state.b


def middle_intercept(machine: Machine, state: State) -> float:
    """Shift of b to the middle of the stretch over which the objective is flat in b.

    Where no training point has curvature the minimising b is an interval; its middle depends on the
    data alone, not on the way there. An interval open to one side gives its finite end.
    """
    y, s = machine.y, machine.s
    level = 1e-12 * float(np.abs(s * machine.loss.gradient(y, state.u)).sum())
    reach = 1.0 + float(np.abs(y - state.u).max())

    def flat(shift: float) -> bool:
        moved = s * machine.loss.gradient(y, state.u + shift)
        return abs(float(moved.sum(dtype=np.float64))) <= level

    def end(sign: float) -> float:
        far = reach
        while flat(sign * far):
            far *= 2.0
            if far > 1e6 * reach:
                return np.inf
        near = 0.0
        for _ in range(60):
            mid = 0.5 * (near + far)
            near, far = (mid, far) if flat(sign * mid) else (near, mid)
        return near

    below, above = end(-1.0), end(1.0)
    if np.isinf(below) and np.isinf(above):
        return 0.0
    if np.isinf(above):
        return -below
    return above if np.isinf(below) else 0.5 * (above - below)
