"""Held-out scores as sums over rows: every row is predicted by the machines that did not see it.

A metric that is a function of sums over the test rows of a split needs no held-out value to be
kept: squared and absolute errors, and the number of right labels. R^2 also needs the variance of a
split's targets, which the survey has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.stream.accumulate import Chunk
from onefit.stream.features import FeatureMap
from onefit.stream.survey import Surveyed

__all__ = ["METRICS", "Errors", "Scores", "own_loss"]


@dataclass(frozen=True)
class Errors:
    """Weighted sums over the test rows of every fold, for L machines each.

    Attributes
    ----------
    squared, absolute : (k, L, q) arrays
    right, doubtful_right, doubtful_wrong : (k, L) arrays
        Rows whose label is right; of these and of the others, those that the bounds of the
        held-out values leave in doubt.
    loss : (k, L) array
        What the machine judges itself by.
    """

    squared: Array
    absolute: Array
    right: Array
    doubtful_right: Array
    doubtful_wrong: Array
    loss: Array

    @property
    def _parts(self) -> tuple[Array, ...]:
        doubtful = self.doubtful_right, self.doubtful_wrong
        return self.squared, self.absolute, self.right, *doubtful, self.loss

    def take(self, some: slice) -> Errors:
        """Of some of the machines."""
        return Errors(*(one[:, some] for one in self._parts))

    @property
    def pooled(self) -> Errors:
        """Of all folds as one."""
        return Errors(*(one.sum(axis=0)[None] for one in self._parts))

    def plus(self, other: Errors) -> Errors:
        """Of both."""
        return Errors(*(a + b for a, b in zip(self._parts, other._parts, strict=True)))

    def ends(self, reach: Array, weights: Array) -> tuple[Errors, Errors]:
        """The smallest and the largest errors that values within their bounds can have.

        For |r| <= |y - u| + e the sums themselves give the upper ends, and from
        max(|r| - e, 0)^2 >= r^2 - 2 e |r| the lower ones.

        Parameters
        ----------
        reach : (k, L) array
            The bounds e.
        weights : (k,) array
            Of the folds.
        """
        e, w = reach[..., None], weights[:, None, None]
        with np.errstate(invalid="ignore", over="ignore"):
            drift = np.where(self.absolute > 0.0, 2.0 * e * self.absolute, 0.0)
            near = Errors(
                np.maximum(self.squared - drift, 0.0), np.maximum(self.absolute - e * w, 0.0),
                self.right + self.doubtful_wrong, self.doubtful_right, self.doubtful_wrong,
                self.loss,
            )  # fmt: skip
            far = Errors(
                self.squared + drift + np.square(e) * w, self.absolute + e * w,
                self.right - self.doubtful_right, self.doubtful_right, self.doubtful_wrong,
                self.loss,
            )  # fmt: skip
        return near, far


@dataclass(frozen=True)
class Scores:
    """The accumulator of the errors.

    Attributes
    ----------
    features : FeatureMap
    W : (k, m, L, q) array
        The machines of every fold, trained without it.
    b : (k, L, q) array
    reach : (k, L) array
        Bounds on the errors of held-out values.
    loss : callable or None
        Of targets and values, elementwise: what a machine of several levels judges itself by.
    by_class : callable or None
        From values (n, q) of pairs of classes to decision values of the classes.
    """

    features: FeatureMap
    W: Array = field(repr=False)
    b: Array = field(repr=False)
    reach: Array = field(repr=False)
    loss: Any = None
    by_class: Any = None

    def init(self) -> Errors:
        k, L, q = self.b.shape
        q = q if self.by_class is None else self.by_class(np.zeros((1, q))).shape[1]
        return Errors(*np.zeros((2, k, L, q)), *np.zeros((4, k, L)))

    def update(self, state: Errors, chunk: Chunk) -> Errors:
        for k in np.unique(chunk.fold).tolist():
            own = np.flatnonzero(chunk.fold == k)
            X = linalg.arrays_of(chunk.X).rows(chunk.X, own)
            self._add(state, k, X, chunk.Y[own], chunk.s[own])
        return state

    def _add(self, state: Errors, k: int, X: Array, Y: Array, s: Array) -> None:
        u = self.features.evaluate(X, self._coefficients[k]).reshape(-1, *self.b.shape[1:])
        u += self.b[k]
        if self.by_class is not None:
            u = np.stack([self.by_class(one) for one in np.moveaxis(u, 1, 0)], axis=1)
        if self.loss is not None:
            state.loss[k] += np.tensordot(s, self.loss(Y[:, None, :], u).mean(axis=2), axes=1)
        r = Y[:, None, :] - u
        state.squared[k] += np.tensordot(s, np.square(r), axes=1)
        state.absolute[k] += np.tensordot(s, np.abs(r), axes=1)
        right, doubtful = _labels(u) == _labels(Y)[:, None], _margins(u, Y) <= self.reach[k]
        state.right[k] += s @ right
        state.doubtful_right[k] += s @ (right & doubtful)
        state.doubtful_wrong[k] += s @ (~right & doubtful)

    @cached_property
    def _coefficients(self) -> list[Array]:
        """What products with features are made of, fold by fold."""
        return [self.features.coefficients(W.reshape(W.shape[0], -1)) for W in self.W]

    def merge(self, one: Errors, other: Errors) -> Errors:
        return one.plus(other)

    def finish(self, state: Errors) -> Errors:
        return state


def _labels(u: Array) -> Array:
    """Numbers of the classes with the largest decision values."""
    return np.asarray(u[..., 0] > 0 if u.shape[-1] == 1 else u.argmax(axis=-1))


def _margins(u: Array, Y: Array) -> Array:
    """How far values are from another label; with several classes both may move, towards each
    other.
    """
    if u.shape[-1] == 1:
        return np.abs(u[..., 0])
    own = (Y > 0)[:, None, :]
    others = np.where(own, -np.inf, u).max(axis=-1)
    return np.asarray(np.abs(np.where(own, u, -np.inf).max(axis=-1) - others) / 2.0)


def _weights(survey: Surveyed, errors: Errors) -> Array:
    """Of the test rows, (k, 1)."""
    weights = survey.weights
    return np.atleast_1d(weights if errors.squared.shape[0] > 1 else weights.sum())[:, None]


def squared_error(survey: Surveyed, errors: Errors) -> Array:
    """Mean of (y - u)^2, (k, L)."""
    return np.asarray((errors.squared / _weights(survey, errors)[..., None]).mean(axis=2))


def root_squared_error(survey: Surveyed, errors: Errors) -> Array:
    """Its root, each target by itself."""
    return np.asarray(np.sqrt(errors.squared / _weights(survey, errors)[..., None]).mean(axis=2))


def absolute_error(survey: Surveyed, errors: Errors) -> Array:
    """Mean of |y - u|."""
    return np.asarray((errors.absolute / _weights(survey, errors)[..., None]).mean(axis=2))


def determination(survey: Surveyed, errors: Errors) -> Array:
    """R^2; of a constant y it is 1 if that is met and else 0."""
    parts = survey.targets if errors.squared.shape[0] > 1 else [survey.whole]
    variance = np.array([part.variance for part in parts])[:, None]
    error = errors.squared / _weights(survey, errors)[..., None]
    ratio = error / np.where(variance > 0.0, variance, 1.0)
    return np.asarray(np.where(variance > 0.0, 1.0 - ratio, error == 0.0).mean(axis=2))


def accuracy(survey: Surveyed, errors: Errors) -> Array:
    """Share of rows whose class has the largest decision value."""
    return np.asarray(errors.right / _weights(survey, errors))


def own_loss(survey: Surveyed, errors: Errors) -> Array:
    """What machines of several levels judge themselves by."""
    return np.asarray(errors.loss / _weights(survey, errors))


#: by the names that onefit.search.metrics has for the same
METRICS = {
    one.__name__: one
    for one in (squared_error, root_squared_error, absolute_error, determination, accuracy)
}
