"""Dense linear algebra: LAPACK by name, and two decompositions that serve many shifts at once."""

from __future__ import annotations

from onefit.linalg.arrays import CHUNK_ELEMENTS, HOST, Arrays, arrays_of, is_elsewhere, to_host
from onefit.linalg.blas import *  # noqa: F403
from onefit.linalg.blas import __all__ as _blas
from onefit.linalg.reflections import Complement, Reflections, tridiagonal

__all__ = [
    *_blas, "CHUNK_ELEMENTS", "HOST", "Arrays", "Complement", "Reflections", "arrays_of",
    "is_elsewhere", "to_host", "tridiagonal",
]  # fmt: skip
