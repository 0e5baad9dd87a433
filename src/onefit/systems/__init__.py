"""Solvers of the linear system of a Newton step, for many columns.

==========  ============================================  ================================
module      what it holds                                 when it is the cheapest
==========  ============================================  ================================
cholesky    a factor per column, for one step             one column, or columns far apart
update      one inverse, and rows that leave and enter    many columns close to one base
float32_cg  a copy of K in float32                        nearly diagonal K, many columns
iterative   a low-rank factor; otherwise products with K  ten thousand rows and more
==========  ============================================  ================================
"""

from __future__ import annotations

from onefit.systems.base import NewtonModel, System
from onefit.systems.cholesky import Cholesky
from onefit.systems.float32_cg import Float32CG, Float32Kernel
from onefit.systems.iterative import KrylovSystem
from onefit.systems.update import ColumnUpdate, SharedFactor, Update

__all__ = [
    "Cholesky",
    "ColumnUpdate",
    "Float32CG",
    "Float32Kernel",
    "KrylovSystem",
    "NewtonModel",
    "SharedFactor",
    "System",
    "Update",
]
