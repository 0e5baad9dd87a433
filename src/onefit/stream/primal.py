r"""Newton's method in feature space, and the bound that says how near its end is.

A machine minimises F = sum s V(y, psi'theta) + Lambda |w|^2 over theta = (w, b). Its Hessian H =
sum s d psi psi' + 2 Lambda (not for b) and gradient are sums over rows, part by part
(onefit.stream.passes), so that from one pass at the solution of all rows every split has its own:

**limit.** Newton's step of the problem without fold k is one solve with H - H_k. If the split drops
landmarks, the minimum of the same quadratic model over the functions that remain, theta = Q v:

    Q'(H - H_k) Q v = Q'((H - H_k) theta - gradient_k).

**exact.** Further steps of all splits at once. A Hessian for each of them at each step would be k n
m^2 operations; instead the system of a step is solved by conjugate gradients, one product a pass,
preconditioned by the split's H - H_k at the solution of all rows, which differs from the right one
in the few rows that changed their curvature. Slopes at a few points of every step give its length.

**Certificate** (onefit.certificate with v = u + rho, rho the rounding of predictions). Let g_w be
the gradient in the functions that the machine may use, g_b = sum s dV/du, D the largest curvature:

    ||w - w*||^2 <= A + B ||w - w*|| + T |b - b*|,

    A = D sum s rho^2 / (8 Lambda),   B = ||g_w|| / (2 Lambda),   T = |g_b| / (2 Lambda).

Where sum s dV/du is negative with all predictions lowered by beta and positive with all raised by
it, |b - b*| <= beta + max rho + kappa ||w - w*||. A few beta are tried in the pass. Where none is
enough, as for a loss that is flat in b, there is no bound, and the values are not called exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from onefit import linalg
from onefit._precise import EPSILON, summation
from onefit._types import Array, Indices
from onefit.linalg.tiles import BLOCK
from onefit.stream.passes import (
    Check,
    Checked,
    Form,
    Pieces,
    Products,
    Second,
    Shifts,
    Slopes,
)

__all__ = ["Certificate", "Columns", "Run", "certify", "limits", "minimise_one", "refine"]

#: a pass over all rows
Run = Callable[..., object]
#: points of a step where slopes are taken
LENGTHS = np.array([0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.25, 0.5, 1.0])
#: the part of a slope that a full step may leave
ENOUGH = 0.5
#: trial shifts of the intercept, in units of the targets' scale
SHIFTS = 10.0 ** np.arange(-13.0, 1.0)
#: steps of Newton's method, of conjugate gradients, and what these leave
STEPS, INNER, LEFT = 100, 40, 1e-4
#: steps without a better bound after which none is hoped for
PATIENCE = 4
#: the part of the largest curvature below which the intercept has none to speak of
FLAT = 1e-6
#: shifts of the intercept, in units of the targets' scale, where its slope is looked at; and points
#: between two of them
AROUND = np.concatenate([-(10.0 ** np.arange(4.0, -7.0, -1.0)), 10.0 ** np.arange(-6.0, 5.0)])
BETWEEN = np.linspace(0.0, 1.0, 17)


@dataclass(frozen=True)
class Columns:
    """Machines side by side, each with its parts, its Lambda and its functions.

    Attributes
    ----------
    train : (parts, c) bool array
    ridge : (c,) array
    lost : list of (size, d) arrays
        What each may not use.
    """

    train: Array = field(repr=False)
    ridge: Array
    lost: list[Array] = field(repr=False)

    def take(self, some: Indices) -> Columns:
        """Some of them."""
        return Columns(self.train[:, some], self.ridge[some], [self.lost[i] for i in some])


def penalty(form: Form, ridge: Array) -> Array:
    """2 Lambda for w and zero for b, (size, c)."""
    out = np.repeat(2.0 * np.atleast_1d(ridge)[None], form.size, axis=0)
    if form.intercept:
        out[-1] = 0.0
    return out


class Factor:
    """The Hessian of a split in the functions that it may use, factored."""

    def __init__(self, form: Form, piece: Pieces, ridge: float, lost: Array) -> None:
        H = linalg.mirrored(np.tril(piece.H).copy(order="F"))
        steep = piece.weight * float(form.loss.max_curvature)
        self.flat = form.intercept and piece.curved < FLAT * steep
        if self.flat:
            # nowhere does the slope rise faster
            H[-1, -1] = steep
        self.floor = FLAT * steep
        H[np.diag_indices_from(H)] += penalty(form, np.array([ridge]))[:, 0]
        self.H = H
        self.complement = linalg.Complement.of(lost) if lost.shape[1] else None
        inner = H if self.complement is None else self.complement.congruent(H)
        self.lower = linalg.cholesky(inner)

    def solve(self, r: Array) -> Array:
        """Q (Q'H Q)^-1 Q'r for some columns."""
        r = np.asfortranarray(r)
        if self.complement is None:
            return linalg.solve_cholesky(self.lower, r)
        inner = linalg.solve_cholesky(self.lower, self.complement.coordinates(r))
        return self.complement.vectors(inner)

    def project(self, r: Array) -> Array:
        """Q'r."""
        return r if self.complement is None else self.complement.coordinates(np.asfortranarray(r))


@dataclass(frozen=True)
class Minimum:
    """Where Newton's method ended.

    Attributes
    ----------
    theta : (size,) array
    pieces : dict
        Sums there, part by part.
    factor : Factor
    steps : int
    converged : bool
    """

    theta: Array
    pieces: dict[int, Pieces] = field(repr=False)
    factor: Factor = field(repr=False)
    steps: int
    converged: bool


def minimise_one(
    form: Form, columns: Columns, run: Run, start: Array | None, scale: float, kappa: float
) -> Minimum:
    """The machine of one column by Newton's method with its Hessian at every step."""
    theta = np.zeros(form.size) if start is None else start.copy()
    ridge, kept = float(columns.ridge[0]), columns.train[:, 0]
    best, waited = np.inf, 0
    for step in range(1, STEPS + 1):
        pieces: dict[int, Pieces] = run(Second(form, theta))  # type: ignore[assignment]
        total = _sum(pieces, kept)
        factor = Factor(form, total, ridge, columns.lost[0])
        pull = total.g + penalty(form, columns.ridge)[:, 0] * theta
        move = -factor.solve(pull[:, None])
        # what Newton's step still changes, in predictions
        change = kappa * float(np.linalg.norm(move[: form.features.size]))
        change += abs(float(move[-1, 0])) if form.intercept else 0.0
        waited = 0 if change < 0.5 * best else waited + 1
        best = min(best, change)
        settled = change <= 1e-10 * scale or (change <= 1e-6 * scale and waited >= PATIENCE)
        if not settled:
            theta += (move * _lengths(form, columns, run, theta[:, None], move))[:, 0]
        if factor.flat:
            shift = float(_slide(form, theta[:, None], columns.train, run, scale)[0])
            theta[-1] += shift
            settled &= abs(shift) <= 1e-10 * scale or step > STEPS // 2
        if settled:
            return Minimum(theta, pieces, factor, step, True)
    return Minimum(theta, run(Second(form, theta)), factor, STEPS, False)  # type: ignore[arg-type]


def _slide(form: Form, theta: Array, train: Array, run: Run, scale: float) -> Array:
    """Shifts of the intercepts to where sum s dV/du vanishes, nearly."""
    every = np.arange(theta.shape[1])
    shifts = np.repeat(scale * AROUND[:, None], every.size, axis=1)
    for _ in range(3):
        slopes: Array = run(Shifts(form, theta, train, shifts))  # type: ignore[assignment]
        above = (slopes > 0.0).argmax(axis=0)
        # an end where nothing rises, or nothing falls: the nearest point that was looked at
        above = np.where((slopes > 0.0).any(axis=0), above, shifts.shape[0] - 1)
        high, low = shifts[above, every], shifts[np.maximum(above - 1, 0), every]
        before, after = slopes[np.maximum(above - 1, 0), every], slopes[above, every]
        shifts = low + BETWEEN[:, None] * (high - low)
    rise = np.where(after > before, after - before, 1.0)
    share = np.where(after > before, np.clip(-before / rise, 0.0, 1.0), 0.5)
    return np.asarray(low + share * (high - low))


def _sum(pieces: dict[int, Pieces], kept: Array | None = None) -> Pieces:
    """Of the parts that are kept."""
    total: Pieces | None = None
    for name in sorted(pieces):
        if kept is None or kept[name]:
            total = pieces[name] if total is None else total.plus(pieces[name])
    assert total is not None
    return total


def _lengths(form: Form, columns: Columns, run: Run, theta: Array, move: Array) -> Array:
    """How far to go along every step: all the way, or to where its slope vanishes."""
    t, on = np.ones(theta.shape[1]), np.arange(theta.shape[1])
    ts = np.repeat(LENGTHS[:, None], on.size, axis=1)
    for turn in range(3):
        slopes = _slopes(form, columns.take(on), run, theta[:, on], move[:, on], ts)
        if turn == 0:
            # the slope rises along the step: where it ends small, the step was a good one
            short = slopes[-1] > ENOUGH * np.abs(slopes[0])
            on, ts, slopes = on[short], ts[:, short], slopes[:, short]
        if on.size == 0:
            break
        above, every = np.maximum((slopes > 0.0).argmax(axis=0), 1), np.arange(on.size)
        low, high = ts[above - 1, every], ts[above, every]
        before, after = slopes[above - 1, every], slopes[above, every]
        rise = np.where(after > before, after - before, 1.0)
        t[on] = low + np.clip(-before / rise, 0.0, 1.0) * (high - low)
        ts = low + BETWEEN[:, None] * (high - low)
    return t


def _slopes(form: Form, columns: Columns, run: Run, theta: Array, move: Array, ts: Array) -> Array:
    """Of F along every step, (T, c)."""
    losses: Array = run(Slopes(form, theta, move, columns.train, ts))  # type: ignore[assignment]
    ridges = penalty(form, columns.ridge)
    start, bend = linalg.dots(ridges * theta, move), linalg.dots(ridges * move, move)
    return np.asarray(losses + start + ts * bend)


def limits(
    form: Form, theta: Array, pieces: dict[int, Pieces], columns: Columns, run: Run, scale: float
) -> tuple[Array, list[Factor]]:
    """One Newton step of every column from the machine of all rows; and its factors."""
    found, factors = np.empty((form.size, columns.ridge.size)), []
    for c, ridge in enumerate(columns.ridge):
        piece = _sum(pieces, columns.train[:, c])
        factor = Factor(form, piece, float(ridge), columns.lost[c])
        pull = piece.g + penalty(form, columns.ridge[[c]])[:, 0] * theta
        right = linalg.matmul(factor.H, theta[:, None]) - pull[:, None]
        found[:, [c]] = factor.solve(right)
        factors.append(factor)
    flat = np.flatnonzero([factor.flat for factor in factors])
    if flat.size:
        found[-1, flat] += _slide(form, found[:, flat], columns.train[:, flat], run, scale)
    return found, factors


@dataclass(frozen=True)
class Certificate:
    """How far columns are from their minimisers.

    Attributes
    ----------
    function : (c,) array
        On ||w - w*||.
    intercept : (c,) array
        On |b - b*|.
    drift : (c,) array
        On the rounding of a prediction, in units of |phi|.
    gradient : (size, c) array
        Of F.
    """

    function: Array
    intercept: Array
    drift: Array
    gradient: Array = field(repr=False)

    def at(self, longest: Array) -> Array:
        """On predictions where |phi| is at most this, a number per column."""
        return np.asarray(longest * (self.function + self.drift) + self.intercept)


def certify(
    form: Form,
    theta: Array,
    columns: Columns,
    factors: list[Factor],
    run: Run,
    scale: float,
) -> Certificate:
    """The bound of every column, by one pass."""
    betas = scale * SHIFTS if form.intercept else np.empty(0)
    found: Checked = run(Check(form, theta, columns.train, betas))  # type: ignore[assignment]
    gradient = found.g + penalty(form, columns.ridge) * theta
    w, two, D = theta[: form.features.size], 2.0 * columns.ridge, float(form.loss.max_curvature)
    drift, rounding = form.features.drift(w), summation(max(1, found.rows), BLOCK)
    pulls = (_functions(form, one, g) for one, g in zip(factors, gradient.T, strict=True))
    inside = np.array([np.linalg.norm(one) for one in pulls])
    # b itself is rounded when it is added
    added = 4.0 * EPSILON * np.abs(theta[-1]) if form.intercept else 0.0
    rho = drift * found.longest + added
    squares = 2.0 * (np.square(drift) * found.squares + np.square(added) * found.weight)
    A = D * squares / (4.0 * two)
    B = (inside + rounding * (found.size + two * np.linalg.norm(w, axis=0))) / two
    if not form.intercept:
        return Certificate(_root(A, B), np.zeros_like(B), drift, gradient)
    noise = rounding * found.pull
    T = (np.abs(gradient[-1]) + noise) / two
    within = (found.below + noise < 0.0) & (found.above - noise > 0.0)
    beta = np.where(within.any(axis=0), betas[within.argmax(axis=0)], np.inf) + rho
    kappa = found.longest
    with np.errstate(invalid="ignore"):
        function = _root(A + T * beta, B + kappa * T)
    function = np.where(np.isfinite(function), function, np.inf)
    return Certificate(function, beta + kappa * function, drift, gradient)


def _functions(form: Form, factor: Factor, gradient: Array) -> Array:
    """The gradient in w alone, in the functions that the column may use."""
    g = gradient[:, None].copy()
    if form.intercept:
        g[-1] = 0.0
    return factor.project(g)


def _root(A: Array, B: Array) -> Array:
    """The largest x with x^2 <= A + B x."""
    return np.asarray(0.5 * (B + np.sqrt(B * B + 4.0 * A)))


def refine(
    form: Form,
    theta: Array,
    columns: Columns,
    factors: list[Factor],
    run: Run,
    scale: float,
    longest: Array,
    wanted: float,
) -> tuple[Array, Certificate, Array]:
    """Newton steps of all columns until their bounds are as wanted, or no longer fall.

    Columns that the factors of the machine of all rows do not bring there go on by themselves, with
    factors of their own. Returns the columns, their certificate and the steps that each took.
    """
    state = _Refined(theta, certify(form, theta, columns, factors, run, scale), longest)
    for _ in range(STEPS):
        on = np.flatnonzero((state.best > wanted) & (state.waited < PATIENCE))
        if on.size == 0:
            break
        part, own, at = columns.take(on), [factors[i] for i in on], state.theta[:, on]
        move = _newton(form, at, part, own, run, state.found.gradient[:, on])
        at = at + move * _lengths(form, part, run, at, move)
        flat = np.flatnonzero([one.flat for one in own])
        if flat.size:
            at[-1, flat] += _slide(form, at[:, flat], part.train[:, flat], run, scale)
        state.put(on, at, certify(form, at, part, own, run, scale), 1)
    for c in np.flatnonzero(state.best > wanted):
        one = columns.take(np.array([c]))
        end = minimise_one(form, one, run, state.kept[:, c], scale, float(longest[c]))
        new = certify(form, end.theta[:, None], one, [end.factor], run, scale)
        state.put(np.array([c]), end.theta[:, None], new, end.steps)
    return state.kept, state.found, state.steps


class _Refined:
    """Columns on their way: where each is, and the best place it has been."""

    def __init__(self, theta: Array, found: Certificate, longest: Array) -> None:
        self.theta, self.kept, self.found, self.longest = theta, theta.copy(), found, longest
        self.best, self.sizes = found.at(longest), _sizes(found)
        self.steps = np.ones(longest.size, dtype=np.intp)
        self.waited = np.zeros(longest.size, dtype=np.intp)

    def put(self, some: Indices, theta: Array, new: Certificate, steps: int) -> None:
        """Where some columns are now, after so many steps."""
        bounds, sizes = new.at(self.longest[some]), _sizes(new)
        gained = (bounds < 0.5 * self.best[some]) | (sizes < 0.5 * self.sizes[some])
        self.waited[some] = np.where(gained, 0, self.waited[some] + 1)
        self.theta[:, some], self.found.gradient[:, some] = theta, new.gradient
        better = (bounds < self.best[some]) | ~np.isfinite(self.best[some])
        where = some[better]
        self.kept[:, where] = theta[:, better]
        for name in ("function", "intercept", "drift"):
            getattr(self.found, name)[where] = getattr(new, name)[better]
        self.best[where] = bounds[better]
        self.sizes[some] = np.minimum(sizes, self.sizes[some])
        self.steps[some] += steps


def _sizes(found: Certificate) -> Array:
    return np.asarray(np.linalg.norm(found.gradient, axis=0))


def _newton(
    form: Form, theta: Array, columns: Columns, factors: list[Factor], run: Run, gradient: Array
) -> Array:
    """Newton's steps, by conjugate gradients with a product a pass for all columns."""

    def precondition(r: Array) -> Array:
        return np.concatenate([one.solve(r[:, [c]]) for c, one in enumerate(factors)], axis=1)

    ridges = penalty(form, columns.ridge)
    # a loss that is flat in b would make the system singular
    ridges = np.where(ridges == 0.0, [one.floor for one in factors], ridges)
    x, r = np.zeros_like(gradient), -gradient
    z = precondition(r)
    p, energy = z.copy(), linalg.dots(r, z)
    first = energy.copy()
    for _ in range(INNER):
        bent: Array = run(Products(form, theta, p, columns.train))  # type: ignore[assignment]
        Hp = bent + ridges * p
        bend = linalg.dots(p, Hp)
        alpha = np.where(bend > 0.0, energy / np.where(bend > 0.0, bend, 1.0), 0.0)
        x += alpha * p
        r = r - alpha * Hp
        z = precondition(r)
        new = np.maximum(linalg.dots(r, z), 0.0)
        if (new <= LEFT**2 * first).all():
            break
        p = z + np.where(energy > 0.0, new / np.where(energy > 0.0, energy, 1.0), 0.0) * p
        energy = new
    return x


def warn_unfinished(loss: object, lam: float) -> None:
    """Say that a fit is no minimum."""
    warnings.warn(
        f"Newton's method stopped after {STEPS} steps short of a stationary point (loss {loss!r}, "
        f"lam={lam:g}); raise lam, or scale the data",
        ConvergenceWarning,
        stacklevel=4,
    )
