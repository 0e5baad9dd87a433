"""Dense linear algebra: LAPACK by name, and two decompositions that serve many shifts at once."""

from __future__ import annotations

from onefit.linalg.blas import *  # noqa: F403
from onefit.linalg.blas import __all__ as __all__
