"""The ridge inverse (R K R + c I)^-1 in four forms, with the intercept's border projected out.

==========  ===========================================  =====================================
inverse     what it holds                                when it is the cheapest
==========  ===========================================  =====================================
Factor      a Cholesky factor L                          few right-hand sides, few rows asked for
Triangular  W = L^-1, so that M^-1 = W'W                 diagonal blocks of every fold
Dense       M^-1                                         many right-hand sides and blocks
Eigen       eigenvalues and eigenvectors of R K R        many c, or no factor exists
==========  ===========================================  =====================================
"""

from __future__ import annotations

from onefit.inverse.base import RidgeInverse, solve_block
from onefit.inverse.cholesky import DenseInverse, FactorInverse, TriangularInverse
from onefit.inverse.eigen import EigenInverse

__all__ = [
    "DenseInverse",
    "EigenInverse",
    "FactorInverse",
    "RidgeInverse",
    "TriangularInverse",
    "solve_block",
]
