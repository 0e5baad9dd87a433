r"""Weights of an average of models, from their held-out residuals: bagged forward selection.

**What is minimised.** R is the (n, C) matrix of residuals of C models, and s holds the weights of
the rows. (Several columns of one row, one for each class, are rows of R that are drawn together.)
Weights w of the models that add up to 1 give an average whose residuals are R w, and its squared
error is

    E(w) = sum_i s_i (R w)_i^2 = w' G w,     G = R' diag(s) R.

Everything below needs G alone. Minimising E over all w >= 0 overfits: the best weights on n rows
are not the best on new rows, the more so as neighbours in a grid have nearly equal residuals.

**Forward selection with replacement** (Caruana, Niculescu-Mizil, Crew and Ksikes 2004, "Ensemble
selection from libraries of models"). Let c count how often each model was taken in r - 1 steps.
Taking model j next gives the average with weights (c + e_j) / r and the error

    E_j = (c'Gc + 2 (Gc)_j + G_jj) / r^2.

Each step takes the j with the smallest error. With own = c'Gc and cross = Gc kept up to date, a
step costs O(C). The weights are those of the step with the smallest error; the first step is the
best single model, so the average is never worse than it on these rows. At most `MAX_STEPS` steps
keep the weights coarse (multiples of 1 / r), which is a regularisation.

**Bagging.** The selection depends on the rows. It is repeated on `BAGS` bootstrap samples of the
rows (multinomial counts times s), and the weights are averaged. Weights below `MIN_WEIGHT` are set
to zero, since every model of the average has to be fitted and evaluated.

**Which models enter.** Of every kernel (and loss) the `MAX_PER_KERNEL` models with the smallest
error, and of these the `MAX_CANDIDATES` best. The best of all models are mostly neighbours in the
grid of one kernel, whose errors are nearly equal; an average gains from models that differ.

**Outliers.** With the Huber option, the rows have Huber's weights min(1, t / |r_i|), where r are
the residuals of the model with the smallest mean absolute error and t is twice their scale,
median |r| / 0.6745. That is one step of iteratively reweighted least squares from the best model.
Models are then ranked by the mean absolute error.
"""

from __future__ import annotations

import numpy as np

from onefit._types import Array
from onefit.losses.regression import NORMAL_MAD

__all__ = ["stack_weights"]

#: bounds the time, which grows as the square of their number
MAX_CANDIDATES = 400
# the next constants: benchmarks/stack_constants.py changes each of them alone
MAX_PER_KERNEL = 2
BAGS = 15
MAX_STEPS = 25
MIN_WEIGHT = 0.02
#: of Huber's weights, in scales of the residuals (benchmarks/stack_constants.py)
HUBER_SCALES = 2.0


def stack_weights(
    residuals: Array,
    sample_weight: Array,
    loss: str = "squared",
    random_state: int = 0,
    kernels: Array | None = None,
) -> Array:
    """The weight of every model, (C,); they add up to 1.

    Parameters
    ----------
    residuals : (n, C) or (n, q, C) array
        A model with a value that is not finite has weight zero.
    sample_weight : (n,) or (n, q) array
    loss : {"squared", "huber"}, default="squared"
    random_state : int, default=0
        For the bootstrap samples.
    kernels : (C,) int array, default=None
        The kernel and loss of every model, as a number; None if all differ.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(size=(500, 2))
    >>> bool(np.abs(stack_weights(noise, np.ones(500)) - 0.5).max() < 0.1)
    True
    """
    n, C = len(residuals), residuals.shape[-1]
    R = residuals.reshape(-1, C)
    s = np.repeat(sample_weight, len(R) // n) if sample_weight.ndim == 1 else sample_weight.ravel()
    weights, finite = np.zeros(C), np.flatnonzero(np.isfinite(R).all(axis=0))
    if not finite.size:
        raise FloatingPointError("no candidate has finite held-out predictions in every row")
    sizes = np.abs(R[:, finite])
    order = np.argsort(s @ (sizes if loss == "huber" else sizes**2), kind="stable")
    if loss == "huber":
        s = s * _huber_weights(sizes[:, order[0]], s)
    best = _entrants(finite[order], np.arange(C) if kernels is None else kernels)
    R, random = R[:, best], np.random.default_rng(random_state)
    for _ in range(BAGS):
        counts = np.repeat(random.multinomial(n, np.full(n, 1.0 / n)), len(R) // n)
        weights[best] += _forward_selection((R * (s * counts)[:, None]).T @ R)
    weights /= weights.sum()
    kept = np.where(weights < min(MIN_WEIGHT, weights.max()), 0.0, weights)
    return np.asarray(kept / kept.sum())


def _entrants(ordered: Array, kernels: Array) -> Array:
    """The first models of every kernel, in the given order."""
    counts = dict.fromkeys(kernels.tolist(), 0)
    found = []
    for model in ordered:
        counts[int(kernels[model])] += 1
        if counts[int(kernels[model])] <= MAX_PER_KERNEL:
            found.append(model)
    return np.array(found[:MAX_CANDIDATES])


def _forward_selection(G: Array) -> Array:
    """Weights of the best of the first `MAX_STEPS` averages."""
    counts, cross, own = np.zeros(len(G)), np.zeros(len(G)), 0.0
    smallest, found = np.inf, counts
    for step in range(1, MAX_STEPS + 1):
        sums = own + 2.0 * cross + np.diagonal(G)
        j = int(np.argmin(sums))
        own, cross = float(sums[j]), cross + G[:, j]
        counts[j] += 1.0
        if own / step**2 < smallest:
            smallest, found = own / step**2, counts / step
    return found


def _huber_weights(sizes: Array, sample_weight: Array) -> Array:
    """Huber's weights of rows with these absolute residuals; ones where most of them are zero."""
    median = float(np.median(sizes[sample_weight > 0.0]))
    if median == 0.0:
        return np.ones_like(sizes)
    threshold = HUBER_SCALES * median / NORMAL_MAD
    return np.asarray(threshold / np.maximum(sizes, threshold))
