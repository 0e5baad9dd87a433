"""Gram operators: the kernel matrix of a problem, in one of several forms.

==========  =======================================================  =========================
module      what it holds                                            where it is used
==========  =======================================================  =========================
dense       the matrix, in memory                                    up to some 20,000 rows
tiled       nothing: tiles are computed when a product needs them    more rows than memory
device      tiles on a GPU, or the whole matrix there                rows on a device
==========  =======================================================  =========================

Features, K ~ Phi Phi', are the fourth form (``onefit.features.feature_gram.FeatureGram``).
Callers do not depend on the form: they multiply, read blocks, and check ``held`` if a method needs
all entries.
"""

from __future__ import annotations

from typing import Any

from onefit.gram.base import Gram
from onefit.gram.dense import DenseGram
from onefit.gram.device import DeviceGram
from onefit.gram.tiled import TiledGram
from onefit.linalg.arrays import is_elsewhere

__all__ = ["DenseGram", "DeviceGram", "Gram", "TiledGram", "as_gram"]


def as_gram(K: Any) -> Gram:
    """A Gram operator for a NumPy array or an array on a device; a Gram operator is returned as is.

    Examples
    --------
    >>> import numpy as np
    >>> K = as_gram(np.eye(3))
    >>> K.matmul(np.ones((3, 1))).ravel(), K.held
    (array([1., 1., 1.]), True)
    """
    if isinstance(K, Gram):
        return K
    return DeviceGram.keeping(K) if is_elsewhere(K) else DenseGram(K)
