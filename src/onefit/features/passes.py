"""Passes over the rows for losses other than the squared one: slopes, curvature, gradients.

A model is a column theta = (w, b) (b only with an intercept) that predicts u = psi'theta from
psi = (phi, 1). Several columns go through one pass, each trained on some of the parts of the rows.
Each pass is an accumulator of sums at given columns.
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
from onefit.rows.accumulate import Accumulator, Chunk

__all__ = ["Check", "Checked", "Form", "Products", "Run", "Second", "SecondSums", "Slopes"]

#: a function that runs a pass over all rows
Run = Callable[..., Any]


@dataclass(frozen=True)
class Form:
    """Columns of a pass: what they have in common, and the rows that each is trained on.

    Attributes
    ----------
    features : FeatureMap
    loss : Loss
        Of all columns, or of each its own.
    target : int
        The column of Y.
    intercept : bool
    train : (parts, c) bool array
        The parts of the rows that each column is trained on.
    """

    features: FeatureMap
    loss: Loss
    target: int
    intercept: bool
    train: Array = field(repr=False)

    @property
    def size(self) -> int:
        """The length of theta."""
        return self.features.size + int(self.intercept)

    def take(self, some: Any) -> Form:
        """Some of the columns."""
        return replace(self, loss=loss_of(self.loss, some), train=self.train[:, some])

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

    def targets(self, chunk: Chunk) -> Array:
        """A column."""
        return chunk.Y[:, [self.target]].astype(np.float64, copy=False)

    def weights(self, chunk: Chunk) -> Array:
        """Weights of the rows for every column, (rows, columns)."""
        return np.asarray(chunk.s[:, None].astype(np.float64) * self.train[chunk.fold])


@dataclass(frozen=True)
class SecondSums:
    """Sums over the rows of one part: H = sum s d psi psi' (lower), g = sum s psi dV/du.

    H is where the rows are.
    """

    H: Any = field(repr=False)
    g: Array = field(repr=False)
    curved: float
    weight: float

    def __add__(self, other: SecondSums) -> SecondSums:
        return SecondSums(
            self.H + other.H,
            self.g + other.g,
            self.curved + other.curved,
            self.weight + other.weight,
        )


@dataclass(frozen=True)
class Second(Accumulator[dict[int, SecondSums], dict[int, SecondSums]]):
    """Gradient and curvature of one model, part by part; whatever it is trained on."""

    form: Form
    theta: Array = field(repr=False)

    def init(self) -> dict[int, SecondSums]:
        return {}

    def update(self, state: dict[int, SecondSums], chunk: Chunk) -> dict[int, SecondSums]:
        form, y = self.form, self.form.targets(chunk)
        phi = form.features.read(chunk.X)
        u = form.predictions(phi, self.theta[:, None])
        s = chunk.s.astype(np.float64)[:, None]
        g, d = s * form.loss.gradient(y, u), s * form.loss.curvature(y, u)
        for name, some in chunk.by_fold():
            own = linalg.arrays_of(phi).rows(phi, some)
            sums = self._sums(own, g[some], d[some], float(s[some].sum()))
            state[name] = state[name] + sums if name in state else sums
        return state

    def _sums(self, phi: Any, g: Array, d: Array, weight: float) -> SecondSums:
        xp, bent = linalg.arrays_of(phi), np.flatnonzero(d[:, 0] > 0)
        psi = xp.empty((bent.size, self.form.size), np.float64)
        psi[:, : self.form.features.size] = xp.rows(phi, bent)
        if self.form.intercept:
            psi[:, -1] = 1.0
        psi *= xp.asarray(np.sqrt(d[bent]))
        H = xp.zeros((self.form.size, self.form.size), np.float64).T
        xp.add_gram(H, psi.T)
        return SecondSums(H, self.form.adjoint(phi, g)[:, 0], float(d.sum()), weight)


@dataclass(frozen=True)
class Products(Accumulator[Array, Array]):
    """sum s d psi psi'v for a step v of every column, d at theta; both (size, c)."""

    form: Form
    theta: Array = field(repr=False)
    step: Array = field(repr=False)

    def init(self) -> Array:
        return np.zeros_like(self.theta)

    def update(self, state: Array, chunk: Chunk) -> Array:
        form, c = self.form, self.theta.shape[1]
        phi = form.features.read(chunk.X)
        both = form.predictions(phi, np.concatenate([self.theta, self.step], axis=1))
        d = form.loss.curvature(form.targets(chunk), both[:, :c])
        state += form.adjoint(phi, form.weights(chunk) * d * both[:, c:])
        return state


@dataclass(frozen=True)
class Slopes(Accumulator[Array, Array]):
    """sum s (psi'v) dV/du at theta + t v, (T, c), for a step v of every column and its t (T, c)."""

    form: Form
    theta: Array = field(repr=False)
    step: Array = field(repr=False)
    ts: Array

    def init(self) -> Array:
        return np.zeros(self.ts.shape)

    def update(self, state: Array, chunk: Chunk) -> Array:
        form, c = self.form, self.theta.shape[1]
        phi, y = form.features.read(chunk.X), form.targets(chunk)
        both = form.predictions(phi, np.concatenate([self.theta, self.step], axis=1))
        u, du = both[:, :c], both[:, c:]
        moving = form.weights(chunk) * du
        for i, t in enumerate(self.ts):
            state[i] += linalg.dots(moving, form.loss.gradient(y, u + t * du))
        return state


@dataclass(frozen=True)
class Checked:
    """The parts of a certificate; c columns.

    Attributes
    ----------
    g : (size, c) array
        sum s psi dV/du.
    size : (c,) array
        sum s |phi| |dV/du|, of which the rounding of the gradient is a share.
    pull : (c,) array
        sum s |dV/du|.
    squares, weight, curved : (c,) arrays
        sum s |phi|^2, sum s, and sum s d.
    below, above : (B, c) arrays
        sum s dV/du with every prediction shifted down, or up, by beta.
    longest : float
        The largest |phi|.
    rows, terms : int
        Number of rows, and of those whose order of addition is not known.
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
class Check(Accumulator[tuple[Any, ...], Checked]):
    """The accumulator of the parts of a certificate."""

    form: Form
    theta: Array = field(repr=False)
    betas: Array

    def init(self) -> tuple[Any, ...]:
        p, c = self.theta.shape
        shifts = np.zeros((self.betas.size, c))
        terms = linalg.HOST.terms
        return (np.zeros((p, c)), *np.zeros((5, c)), shifts, shifts.copy(), 0.0, 0, terms)

    def update(self, state: tuple[Any, ...], chunk: Chunk) -> tuple[Any, ...]:
        form, y = self.form, self.form.targets(chunk)
        phi, s = form.features.read(chunk.X), form.weights(chunk)
        u, lengths = form.predictions(phi, self.theta), form.features.lengths(chunk.X)
        pull = s * form.loss.gradient(y, u)
        sizes = np.abs(pull)
        below, above = (
            np.array(
                [linalg.dots(s, form.loss.gradient(y, u + sign * beta)) for beta in self.betas]
            )
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
        sums = super().merge(one[:8], other[:8])
        return (*sums, max(one[8], other[8]), one[9] + other[9], max(one[10], other[10]))

    def finish(self, state: tuple[Any, ...]) -> Checked:
        return Checked(*state)
