"""Compiled Manhattan distances against those of SciPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from onefit.kernels import Geometry
from onefit.kernels.compiled import manhattan

pytest.importorskip("numba")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 2), (70, 1030, 3), (130, 64, 9), (4, 6, 0)])
def test_tiles_equal_scipy(shape, dtype):
    n, m, d = shape
    random = np.random.default_rng(0)
    X, Y = (random.normal(size=(k, d)).astype(dtype) for k in (n, m))
    for left, right in ((X, Y), (X, None), (Y, None), (Y[:, ::-1], X[:, ::-1])):
        other = left if right is None else right
        found = manhattan(left, right, np.full((len(left), len(other)), np.nan))
        if d:
            np.testing.assert_allclose(found, cdist(left, other, "cityblock"), rtol=1e-14)
        else:
            assert (found == 0.0).all()
        if right is None:
            np.testing.assert_array_equal(found, found.T)


def test_without_numba_distances_are_the_same():
    """In a process that cannot import it."""
    code = """
import sys
sys.modules["numba"] = None
import numpy as np
from onefit.kernels import Geometry
X = np.random.default_rng(0).normal(size=(520, 4))
found = [Geometry(X).take("manhattan")[:505], Geometry(X[:505], X).take("manhattan")]
sys.stdout.buffer.write(np.stack(found).tobytes())
assert sys.modules["numba"] is None
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    X = np.random.default_rng(0).normal(size=(520, 4))
    symmetric, one_sided = np.frombuffer(shown).reshape(2, 505, 520)
    np.testing.assert_allclose(Geometry(X).take("manhattan")[:505], symmetric, rtol=1e-14)
    np.testing.assert_allclose(Geometry(X[:505], X).take("manhattan"), one_sided, rtol=1e-14)
