"""The parameter ``approximation`` of an estimator: which features, and how landmarks are chosen.

**Uniform** landmarks are the rows with the smallest hashes (onefit.rows.sample), whatever the
kernel. **Pivoted** ones come from a Cholesky factorisation with pivots of the kernel matrix of a
larger uniform sample: each is the row that those before it explain least. The trace of what is
left is known after every pivot and bounds the error of every entry; ``n_components="auto"`` stops
when it is small. Both are rows, and a landmark in a held-out fold can be taken out of that fold's
model.

Centres of k-means are not offered: they depend on all rows at once, held-out ones included, in a
way that cannot be undone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from onefit import linalg
from onefit._types import Array, Indices
from onefit._validation import check_choice, check_positive
from onefit.features.feature_gram import FeatureGram
from onefit.features.fourier import fourier_map
from onefit.features.maps import FeatureMap, nystrom_map
from onefit.kernels import Kernel
from onefit.rows.accumulate import Chunk
from onefit.rows.sample import DrawnRows, RowSampler

__all__ = [
    "APPROXIMATIONS",
    "Approximation",
    "Fourier",
    "Nystrom",
    "get_approximation",
    "named_approximation",
]

#: rows in which landmarks that are not uniform are looked for: at most, at least, and for each
MAX_CANDIDATE_ROWS, MIN_CANDIDATE_ROWS, CANDIDATE_ROWS_PER_LANDMARK = 5_000, 2_000, 3
#: landmarks of "auto", at most
MAX_AUTO_LANDMARKS = 4_000


@dataclass(frozen=True)
class Nystrom:
    """Features of landmarks.

    Parameters
    ----------
    n_components : int or "auto", default=2000
        Number of landmarks; "auto" adds pivoted landmarks until ``tolerance`` is met.
    landmarks : {"uniform", "pivoted"}, default="uniform"
    tolerance : float, default=1e-3
        For ``n_components="auto"``: the part of the kernel's trace that the features may leave out,
        on a sample of the rows.
    keep_landmarks : bool, default=False
        Whether the model of a fold may use landmarks that lie in the fold, in a cross-validation,
        as in a pipeline whose landmarks were drawn beforehand. The scores are then not those of
        models that never saw the fold (benchmarks/peeking.py).
    """

    n_components: int | str = 2000
    landmarks: str = "uniform"
    tolerance: float = 1e-3
    keep_landmarks: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.n_components, str) or self.n_components != "auto":
            object.__setattr__(self, "n_components", _check_size(self.n_components, ", or 'auto'"))
        check_choice("landmarks", self.landmarks, ("uniform", "pivoted"))
        check_positive("tolerance", self.tolerance, "a part of the trace, such as 1e-3")

    @property
    def sample_rows(self) -> int:
        """Rows to draw at first."""
        size = self.n_components
        if isinstance(size, str):
            return MAX_CANDIDATE_ROWS
        if self.landmarks == "uniform":
            return size
        return max(
            size,
            min(MAX_CANDIDATE_ROWS, max(MIN_CANDIDATE_ROWS, CANDIDATE_ROWS_PER_LANDMARK * size)),
        )

    def n_features(self, rows: int) -> int:
        """Largest number of features for a number of rows."""
        size = self.n_components
        return min(rows, MAX_AUTO_LANDMARKS if isinstance(size, str) else size)

    def make_map(self, kernel: Kernel, drawn: DrawnRows, seed: int) -> tuple[FeatureMap, DrawnRows]:
        """The map from a sample of rows, and its landmarks."""
        size, chosen = self.n_components, drawn
        if self.landmarks == "pivoted" or size == "auto":
            chosen = drawn.take(_pivots(kernel, drawn.X, size, self.tolerance))
        return nystrom_map(kernel, chosen.X), chosen


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features of a stationary kernel.

    Parameters
    ----------
    n_components : int, default=2000
        Number of features, even: each frequency gives a cosine and a sine.
    orthogonal : bool, default=True
        Whether frequencies of the Gaussian kernel are orthogonal, in groups.
    """

    n_components: int = 2000
    orthogonal: bool = True
    keep_landmarks: ClassVar[bool] = False
    #: one row has the number of columns
    sample_rows: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if isinstance(self.n_components, str) and self.n_components == "auto":
            raise ValueError(
                "n_components='auto' chooses landmarks, and Fourier features have none: give "
                "n_components a number, or use approximation='nystrom'"
            )
        size = _check_size(self.n_components)
        if size % 2:
            raise ValueError(
                f"n_components of Fourier features must be even, got {size}: each frequency gives "
                "a cosine and a sine"
            )
        object.__setattr__(self, "n_components", size)

    def n_features(self, rows: int) -> int:
        """Number of features, whatever the rows."""
        return self.n_components

    def make_map(self, kernel: Kernel, drawn: DrawnRows, seed: int) -> tuple[FeatureMap, None]:
        """The map, which has no landmarks."""
        d = drawn.X.shape[1]
        return fourier_map(kernel, d, self.n_components, seed, self.orthogonal), None


#: name -> class; a name is the object with its defaults
APPROXIMATIONS: dict[str, Any] = {"nystrom": Nystrom, "fourier": Fourier}


@dataclass(frozen=True)
class Approximation:
    """Features that replace a kernel matrix, and the source of their randomness.

    Attributes
    ----------
    features : Nystrom or Fourier
    random_state : int, RandomState or None
    """

    features: Nystrom | Fourier
    random_state: Any = 0

    @property
    def randomness(self) -> Hashable:
        """The source of randomness; estimators with the same one take one seed from it."""
        state = self.random_state
        return state if isinstance(state, Hashable) else id(state)

    @property
    def key(self) -> Hashable:
        """Estimators of one kernel with equal keys have equal features."""
        return self.features, self.randomness

    def draw_seed(self) -> int:
        """A seed for hashes and frequencies: an int is itself, other states give a new one."""
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def expand(self, kernel: Kernel, X: Any, s: Array) -> FeatureGram:
        """Features of rows in memory."""
        rows, none, seed = np.arange(s.size), np.empty((s.size, 0)), self.draw_seed()
        sampler = RowSampler(self.features.sample_rows, seed)
        drawn = sampler.finish(sampler.update(None, Chunk(X, none, s, rows, rows)))
        features, landmarks = self.features.make_map(kernel, drawn, seed)
        places = None if landmarks is None else landmarks.row
        return FeatureGram(X, features, places, self.features.keep_landmarks)


def named_approximation(approximation: Any) -> Any:
    """The object that a known name is; anything else itself."""
    known = isinstance(approximation, str) and approximation in APPROXIMATIONS
    return APPROXIMATIONS[approximation]() if known else approximation


def get_approximation(approximation: Any, random_state: Any = 0) -> Approximation | None:
    """Check the parameters of an estimator; None for the whole kernel matrix."""
    if approximation is None:
        return None
    if isinstance(approximation, str):
        check_choice("approximation", approximation, APPROXIMATIONS)
    found = named_approximation(approximation)
    if not isinstance(found, (Nystrom, Fourier)):
        raise ValueError(
            f"approximation must be None, 'nystrom', 'fourier', or an object Nystrom(...) or "
            f"Fourier(...) of onefit.features, got {approximation!r}"
        )
    return Approximation(found, random_state)


def _check_size(size: Any, other: str = "") -> int:
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
        raise ValueError(f"n_components must be a whole number from 1 on{other}, got {size!r}")
    return int(size)


def _pivots(kernel: Kernel, X: Any, size: int | str, tolerance: float) -> Indices:
    """Rows in the order of pivots: so many, or until what is left is a small part of the trace."""
    K = linalg.fortran(np.asarray(kernel(X.astype(np.float64, copy=False))))
    diagonal = K.diagonal().copy()
    factor, order = linalg.pivoted_cholesky(K)
    if size == "auto":
        left = diagonal.sum() - np.cumsum(np.square(factor).sum(axis=0))
        small = np.flatnonzero(left <= tolerance * diagonal.sum())
        size = min(MAX_AUTO_LANDMARKS, 1 + int(small[0]) if small.size else factor.shape[1])
    return order[: min(int(size), factor.shape[1])]
