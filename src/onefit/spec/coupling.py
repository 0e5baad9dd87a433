"""From probabilities of pairs of classes to those of all of them.

A model for each pair of classes gives r_ij, the probability of class i where it is i or j. No
probabilities p of the K classes need give all of them, p_i / (p_i + p_j) = r_ij. Those that come
nearest minimise

    sum over i and j of (r_ji p_i - r_ij p_j)^2      with   sum over i of p_i = 1

(Wu, Lin and Weng, Journal of Machine Learning Research 5, 2004, their second way; libsvm's SVC does
the same). With Q_ii = sum over s of r_si^2 and Q_ij = -r_ji r_ij the minimiser solves

    [Q, 1; 1', 0] [p; b] = [0; 1],

one small system per row, and is not negative (their Theorem 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["couple"]

#: probabilities of pairs are kept so far from 0 and 1, as libsvm does: the system is then regular
MIN_PAIR_PROBABILITY = 1e-7


def couple(pairs: Array, K: int) -> Array:
    """Probabilities of K classes, (m, K).

    Parameters
    ----------
    pairs : (m, K (K - 1) / 2) array
        Probability of the second class of each pair: 0 against 1, 0 against 2, ...
    K : int

    Examples
    --------
    Pairs that agree with some probabilities give these:

    >>> p = np.array([0.5, 0.3, 0.2])
    >>> couple(np.array([[0.3 / 0.8, 0.2 / 0.7, 0.2 / 0.5]]), 3).round(6)
    array([[0.5, 0.3, 0.2]])
    """
    first, second = np.triu_indices(K, 1)
    sure = np.clip(pairs.astype(np.float64), MIN_PAIR_PROBABILITY, 1.0 - MIN_PAIR_PROBABILITY)
    r = np.zeros((len(sure), K, K))
    r[:, second, first], r[:, first, second] = sure, 1.0 - sure
    system = np.zeros((len(sure), K + 1, K + 1))
    system[:, :K, :K] = -r * r.transpose(0, 2, 1)
    diagonal = np.arange(K)
    system[:, diagonal, diagonal] = np.square(r).sum(axis=1)
    system[:, :K, K] = system[:, K, :K] = 1.0
    wanted = np.zeros((len(sure), K + 1, 1))
    wanted[:, K] = 1.0
    p = np.clip(np.linalg.solve(system, wanted)[:, :K, 0], 0.0, None)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
