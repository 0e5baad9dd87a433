"""Passes over the rows for losses other than the squared one: slopes, curvature, gradients.

A model is a column theta = (w, b) (b only with an intercept) that predicts u = psi'theta from
psi = (phi, 1). Several columns go through one pass, each trained on some of the parts of the rows.
All of these are accumulators: a pass knows where the models stand, and adds up what is asked
there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.features.maps import FeatureMap
from onefit.losses.base import Loss, loss_of
from onefit.rows.accumulate import Chunk

__all__ = [
    "Check", "Checked", "Form", "Pieces", "Products", "Run", "Second", "Slopes", "Sum", "trained",
]  # fmt: skip

#: a function that runs a pass over all rows
Run = Callable[..., Any]


@dataclass(frozen=True)
class Form:
    """Quantities shared by the columns of a pass.

    Attributes
    ----------
    features : FeatureMap
    loss : Loss
        Of all columns, or of each its own.
    target : int
        The column of Y.
    intercept : bool
    """

    features: FeatureMap
    loss: Loss
    target: int
    intercept: bool

    @property
    def size(self) -> int:
        """The length of theta."""
        return self.features.size + int(self.intercept)

    def take(self, some: Any) -> Form:
        """The form of some of the columns."""
        return replace(self, loss=loss_of(self.loss, some))

    def predictions(self, phi: Any, theta: Array) -> Array:
        """psi'theta, (rows, columns)."""
        xp = linalg.arrays_of(phi)
        u = xp.host(xp.matmul(phi, xp.asarray(np.asfortranarray(theta[: self.features.size]))))
        return u + theta[-1] if self.intercept else u

    def adjoint(self, phi: Any, v: Array) -> Array:
        """sum psi v, (size, columns)."""
        out = np.empty((self.size, v.shape[1]))
        xp = linalg.arrays_of(phi)
        out[: self.features.size] = xp.host(xp.matmul(phi.T, xp.asarray(v)))
        if self.intercept:
            out[-1] = v.sum(axis=0)
        return out

    def gradient(self, y: Array, u: Array) -> Array:
        """Gradient of the loss."""
        return self.loss.gradient(y, u)

    def targets(self, chunk: Chunk) -> Array:
        """A column."""
        return chunk.Y[:, [self.target]].astype(np.float64, copy=False)


class Sum:
    """The accumulator of one array, or of a tuple of arrays."""

    def merge(self, one: Any, other: Any) -> Any:
        if isinstance(one, tuple):
            return tuple(a + b for a, b in zip(one, other, strict=True))
        return one + other

    def finish(self, state: Any) -> Any:
        return state


def trained(train: Array, chunk: Chunk) -> Array:
    """Weights of the rows for every column, (rows, columns)."""
    return np.asarray(chunk.s[:, None].astype(np.float64) * train[chunk.fold])


@dataclass(frozen=True)
class Pieces:
    """Sums over the rows of one part: H = sum s d psi psi' (lower), g = sum s psi dV/du.

    H is where the rows are.
    """

    H: Any = field(repr=False)
    g: Array = field(repr=False)
    curved: float
    weight: float

    def plus(self, other: Pieces) -> Pieces:
        """The sum of both."""
        return Pieces(
            self.H + other.H,
            self.g + other.g,
            self.curved + other.curved,
            self.weight + other.weight,
        )


@dataclass(frozen=True)
class Second:
    """Gradient and curvature of one model, part by part."""

    form: Form
    theta: Array = field(repr=False)

    def init(self) -> dict[int, Pieces]:
        return {}

    def update(self, state: dict[int, Pieces], chunk: Chunk) -> dict[int, Pieces]:
        form, y = self.form, self.form.targets(chunk)
        phi = form.features.read(chunk.X)
        u = form.predictions(phi, self.theta[:, None])
        s = chunk.s.astype(np.float64)[:, None]
        g, d = s * form.gradient(y, u), s * form.loss.curvature(y, u)
        for name in np.unique(chunk.fold).tolist():
            some = np.flatnonzero((chunk.fold == name) & (chunk.s > 0))
            if some.size:
                own = linalg.arrays_of(phi).rows(phi, some)
                piece = self._piece(own, g[some], d[some], float(s[some].sum()))
                state[name] = state[name].plus(piece) if name in state else piece
        return state

    def _piece(self, phi: Any, g: Array, d: Array, weight: float) -> Pieces:
        xp, bent = linalg.arrays_of(phi), np.flatnonzero(d[:, 0] > 0)
        psi = xp.empty((bent.size, self.form.size), np.float64)
        psi[:, : self.form.features.size] = xp.rows(phi, bent)
        if self.form.intercept:
            psi[:, -1] = 1.0
        psi *= xp.asarray(np.sqrt(d[bent]))
        H = xp.zeros((self.form.size, self.form.size), np.float64).T
        xp.add_gram(H, psi.T)
        return Pieces(H, self.form.adjoint(phi, g)[:, 0], float(d.sum()), weight)

    def merge(self, one: dict[int, Pieces], other: dict[int, Pieces]) -> dict[int, Pieces]:
        for name, piece in other.items():
            one[name] = one[name].plus(piece) if name in one else piece
        return one

    def finish(self, state: dict[int, Pieces]) -> dict[int, Pieces]:
        return state


@dataclass(frozen=True)
class Products(Sum):
    """sum s d psi psi'v for a step v of every column, d at theta.

    Attributes
    ----------
    theta, step : (size, c) arrays
    train : (parts, c) bool array
    """

    form: Form
    theta: Array = field(repr=False)
    step: Array = field(repr=False)
    train: Array = field(repr=False)

    def init(self) -> Array:
        return np.zeros_like(self.theta)

    def update(self, state: Array, chunk: Chunk) -> Array:
        form, c = self.form, self.theta.shape[1]
        phi = form.features.read(chunk.X)
        both = form.predictions(phi, np.concatenate([self.theta, self.step], axis=1))
        d = form.loss.curvature(form.targets(chunk), both[:, :c])
        state += form.adjoint(phi, trained(self.train, chunk) * d * both[:, c:])
        return state


@dataclass(frozen=True)
class Slopes(Sum):
    """sum s (psi'v) dV/du at theta + t v, (T, c), for a step v of every column and its t (T, c)."""

    form: Form
    theta: Array = field(repr=False)
    step: Array = field(repr=False)
    train: Array = field(repr=False)
    ts: Array

    def init(self) -> Array:
        return np.zeros(self.ts.shape)

    def update(self, state: Array, chunk: Chunk) -> Array:
        form, c = self.form, self.theta.shape[1]
        phi, y = form.features.read(chunk.X), form.targets(chunk)
        both = form.predictions(phi, np.concatenate([self.theta, self.step], axis=1))
        u, du = both[:, :c], both[:, c:]
        moving = trained(self.train, chunk) * du
        for i, t in enumerate(self.ts):
            state[i] += linalg.dots(moving, form.gradient(y, u + t * du))
        return state


@dataclass(frozen=True)
class Checked:
    """The parts of a certificate; c columns.

    Attributes
    ----------
    g : (size, c) array
        sum s psi dV/du.
    size : (c,) array
        sum s |phi| |dV/du|, what the rounding of the gradient is a part of.
    pull : (c,) array
        sum s |dV/du|.
    squares, weight, curved : (c,) arrays
        sum s |phi|^2, sum s, and sum s d.
    below, above : (B, c) arrays
        sum s dV/du with every prediction shifted down, or up, by beta.
    longest : float
        The largest |phi|.
    rows, terms : int
        All of them, and how many were added up in an order that is not known before their sums.
    """

    g: Array = field(repr=False)
    size: Array
    pull: Array
    squares: Array
    weight: Array
    curved: Array
    below: Array
    above: Array
    longest: float
    rows: int
    terms: int


@dataclass(frozen=True)
class Check:
    """The accumulator of the parts of a certificate."""

    form: Form
    theta: Array = field(repr=False)
    train: Array = field(repr=False)
    betas: Array

    def init(self) -> tuple[Any, ...]:
        p, c = self.theta.shape
        shifts = np.zeros((self.betas.size, c))
        terms = linalg.HOST.terms
        return (np.zeros((p, c)), *np.zeros((5, c)), shifts, shifts.copy(), 0.0, 0, terms)

    def update(self, state: tuple[Any, ...], chunk: Chunk) -> tuple[Any, ...]:
        form, y = self.form, self.form.targets(chunk)
        phi, s = form.features.read(chunk.X), trained(self.train, chunk)
        u, lengths = form.predictions(phi, self.theta), form.features.lengths(chunk.X)
        pull = s * form.gradient(y, u)
        sizes = np.abs(pull)
        below, above = (
            np.array([linalg.dots(s, form.gradient(y, u + sign * beta)) for beta in self.betas])
            for sign in (-1.0, 1.0)
        )
        longest, terms = float(lengths.max(initial=0.0)), linalg.arrays_of(phi).terms
        found = (
            form.adjoint(phi, pull), lengths @ sizes, sizes.sum(axis=0), np.square(lengths) @ s,
            s.sum(axis=0), linalg.dots(s, form.loss.curvature(y, u)),
            below.reshape(state[6].shape), above.reshape(state[7].shape), longest, lengths.size,
            terms or lengths.size,
        )  # fmt: skip
        return self.merge(state, found)

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        sums = tuple(a + b for a, b in zip(one[:8], other[:8], strict=True))
        return (*sums, max(one[8], other[8]), one[9] + other[9], max(one[10], other[10]))

    def finish(self, state: tuple[Any, ...]) -> Checked:
        return Checked(*state)
