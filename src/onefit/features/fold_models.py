"""The models of every fold and of all rows, from passes over rows that lie anywhere.

Rows are known by their fold alone: fold k is what split k holds out, so the parts of the rows are
the folds. The squared loss takes its models from the moments of one pass; other losses take
Newton steps, a few passes for each lambda, all folds side by side (onefit.features.newton).
Landmarks know their folds, and a fold's models do without its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from onefit._types import Array, Indices
from onefit.features.bound import certify
from onefit.features.feature_gram import CENTRE_ROWS
from onefit.features.fit import not_converged
from onefit.features.hessian import PrimalColumns
from onefit.features.maps import FeatureMap
from onefit.features.moments import Centre, Moments
from onefit.features.newton import minimise_one
from onefit.features.passes import Form, Run
from onefit.features.ridge import Ridge, RidgeModels
from onefit.features.side_by_side import solve_splits
from onefit.kernels import Kernel
from onefit.linalg import LinAlgError
from onefit.losses.base import loss_of
from onefit.proof.certificate import EXACT_TOLERANCE
from onefit.rows.accumulate import Chunk
from onefit.rows.sample import DrawnRows
from onefit.rows.survey import Surveyed
from onefit.spec import Spec

__all__ = ["FoldModels", "Form", "Lengths", "Rows", "newton", "squared"]


@dataclass(frozen=True)
class Rows:
    """What stands for the kernel matrix of streamed rows.

    Attributes
    ----------
    kernel : Kernel
    features : FeatureMap
    landmarks : (M,) array of int, or None
        Numbers of the rows that the landmarks are.
    fold : (M,) array of int, or None
        Their folds; None where they may be kept.
    some : DrawnRows
        A few rows.
    """

    kernel: Kernel
    features: FeatureMap
    landmarks: Indices | None = field(repr=False)
    fold: Indices | None = field(repr=False)
    some: DrawnRows = field(repr=False)

    def dropped(self, k: int) -> Indices:
        """The landmarks, by their place, that lie in a fold and may not be used without it."""
        none = np.empty(0, dtype=np.intp)
        return none if self.fold is None else np.flatnonzero(self.fold == k)

    def lost(self, k: int) -> Array:
        """The functions that split k may not use, (m, d)."""
        return self.features.lost(self.dropped(k))

    def centre(self, intercept: bool) -> Centre:
        """Constants near the means, for an intercept to take back."""
        q = self.some.Y.shape[1]
        if not intercept:
            return Centre.zero(self.features.size, q)
        few = self.some.take(slice(0, CENTRE_ROWS))
        return Centre.of(self.features, few.X, few.Y)


@dataclass(frozen=True)
class FoldModels:
    """u = phi'w + b of every fold and of all rows, at L lambdas for q targets.

    Attributes
    ----------
    W : (k, m, L, q) array
    b : (k, L, q) array
    whole : (m, L, q) and (L, q) arrays
        Of all rows.
    bound : callable
        From the largest |phi| of each fold to bounds (k, L, q) on held-out values.
    whole_bound : callable
        From the same to bounds (L, q) on values of the model of all rows.
    unfinished : list of str
        Why a lambda has no model of all rows, empty where it has one.
    steps : (k, L) array of int
    reasons : list of str
        Why a lambda has no model, empty where it has one.
    """

    W: Array = field(repr=False)
    b: Array = field(repr=False)
    whole: tuple[Array, Array] = field(repr=False)
    bound: Callable[[Array], Array] = field(repr=False)
    whole_bound: Callable[[Array], Array] = field(repr=False)
    unfinished: list[str]
    steps: Array = field(repr=False)
    reasons: list[str]


def squared(rows: Rows, spec: Spec, moments: Moments, lams: Array, k: int) -> FoldModels:
    """Least squares, from the moments of one pass."""
    found = []
    for split in range(-1, k):
        removed = () if split < 0 else (split,)
        form = spec.fit_intercept, spec.scaling
        found.append(Ridge.without(moments, removed, *form, rows.lost(split)).models(lams))
    whole, *folds = found
    W, b = np.stack([one.W for one in folds]), np.stack([one.b for one in folds])

    def errors(one: RidgeModels, longest: Array) -> Array:
        flat = np.asfortranarray(one.W.reshape(one.W.shape[0], -1))
        return one.errors(longest, rows.features.drift(flat))

    def bound(longest: Array) -> Array:
        pairs = zip(folds, longest, strict=True)
        return np.stack([errors(one, np.atleast_1d(length)) for one, length in pairs])

    by_lam = zip(*(one.reasons for one in found), strict=True)
    reasons = [next(filter(None, texts), "") for texts in by_lam]
    steps = np.ones((k, lams.size), dtype=np.intp)
    models, unfinished = (whole.W, whole.b), [""] * lams.size
    whole_bound = partial(errors, whole)
    return FoldModels(W, b, models, bound, whole_bound, unfinished, steps, reasons)


def newton(
    rows: Rows,
    spec: Spec,
    survey: Surveyed,
    longest: Array,
    lams: Array,
    run: Run,
    refined: bool,
) -> FoldModels:
    """Any loss, by passes at every lambda, the largest first.

    ``refined`` folds take steps until they are exact, others one.
    """
    k, q, L, m = survey.rows.size, survey.scale.size, lams.size, rows.features.size
    W, b = np.zeros((k, m, L, q)), np.zeros((k, L, q))
    whole, bounds = (np.zeros((m, L, q)), np.zeros((L, q))), np.full((k, L, q), np.inf)
    steps, reasons, unfinished = np.ones((k, L), dtype=np.intp), [""] * L, [""] * L
    errors = np.full((L, q), np.inf)
    for j in range(q):
        start = None
        for i in np.argsort(-lams, kind="stable").tolist():
            if reasons[i]:
                continue
            try:
                one = _Column(rows, spec, survey, longest, float(lams[i]), j, run)
                start, theta, bounds[:, i, j], own = one.solve(start, refined)
                errors[i, j], unfinished[i] = one.error, unfinished[i] or one.unfinished
            except (LinAlgError, FloatingPointError) as error:
                reasons[i] = f"lam={lams[i]:g}: {error}; raise lam"
                continue
            steps[:, i] = np.maximum(steps[:, i], own)
            W[:, :, i, j], whole[0][:, i, j] = theta[:m].T, start[:m]
            if spec.fit_intercept:
                b[:, i, j], whole[1][i, j] = theta[-1], start[-1]
    return FoldModels(
        W, b, whole, lambda _: bounds, lambda _: errors, unfinished, steps, reasons
    )  # fmt: skip


class _Column:
    """One target at one lambda."""

    def __init__(
        self,
        rows: Rows,
        spec: Spec,
        survey: Surveyed,
        longest: Array,
        lam: float,
        target: int,
        run: Run,
    ) -> None:
        loss = loss_of(spec.loss, [target])
        self.form = Form(rows.features, loss, target, spec.fit_intercept)
        self.scale, self.lam = float(survey.scale[target]), lam
        self.longest, self.run, self.loss = longest, run, spec.loss
        k, total = survey.rows.size, float(survey.weights.sum())
        ridges = [spec.ridge(lam, total - weight) for weight in survey.weights]
        pad = (0, int(spec.fit_intercept)), (0, 0)
        lost = [np.pad(rows.lost(split), pad) for split in range(k)]
        self.folds = PrimalColumns(~np.eye(k, dtype=bool), np.array(ridges), lost)
        nothing = [np.empty((self.form.size, 0))]
        ridge = np.array([spec.ridge(lam, total)])
        self.all = PrimalColumns(np.ones((k, 1), dtype=bool), ridge, nothing)

    def solve(self, start: Array | None, refined: bool) -> tuple[Array, Array, Array, Array]:
        """theta of all rows, theta of the folds, bounds and steps of the folds."""
        form, scale, run = self.form, self.scale, self.run
        kappa = float(self.longest.max())
        full = minimise_one(form, self.all, run, start, scale, kappa)
        found = certify(form, full.theta[:, None], self.all, [None], run, scale)
        self.error, self.unfinished = float(found.at(self.longest.max())[0]), ""
        if not (full.converged or self.error <= EXACT_TOLERANCE * scale):
            why = not_converged(self.loss, self.lam, full.steps, self.error, scale)
            self.unfinished = str(why)
        both = full.theta, full.pieces
        far = self.longest
        theta, bound, steps = solve_splits(form, both, self.folds, run, scale, far, refined)
        return full.theta, theta, bound.at(far), steps


@dataclass(frozen=True)
class Lengths:
    """The accumulator of the largest |phi| of each fold."""

    features: FeatureMap
    folds: int

    def init(self) -> Array:
        return np.zeros(self.folds)

    def update(self, state: Array, chunk: Chunk) -> Array:
        np.maximum.at(state, chunk.fold, self.features.lengths(chunk.X))
        return state

    def merge(self, one: Array, other: Array) -> Array:
        return np.maximum(one, other)

    def finish(self, state: Array) -> Array:
        return state
