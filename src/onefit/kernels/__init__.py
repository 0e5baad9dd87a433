"""Kernels: named, as objects, combined, or defined by the user."""

from onefit.kernels.bank import Bank
from onefit.kernels.base import CallableKernel, Kernel
from onefit.kernels.combine import Normalized, WeightedSum
from onefit.kernels.distances import Geometry
from onefit.kernels.dot import Linear, Polynomial
from onefit.kernels.lookup import Lookup
from onefit.kernels.on_columns import OnColumns
from onefit.kernels.per_feature import PerFeature
from onefit.kernels.precomputed import Precomputed, check_precomputed
from onefit.kernels.resolve import (
    KERNELS,
    is_precomputed,
    named_kernel,
    needs_vectors,
    resolve_kernel,
    takes_gamma,
    takes_gammas,
)
from onefit.kernels.rows import as_rows, is_objects, is_table, number_type
from onefit.kernels.stationary import (
    Gaussian,
    Laplace,
    Matern12,
    Matern32,
    Matern52,
    PowerExponential,
    Stationary,
)

__all__ = [
    "KERNELS",
    "Bank",
    "CallableKernel",
    "Gaussian",
    "Geometry",
    "Kernel",
    "Laplace",
    "Linear",
    "Lookup",
    "Matern12",
    "Matern32",
    "Matern52",
    "Normalized",
    "OnColumns",
    "PerFeature",
    "Polynomial",
    "PowerExponential",
    "Precomputed",
    "Stationary",
    "WeightedSum",
    "as_rows",
    "check_precomputed",
    "is_objects",
    "is_precomputed",
    "is_table",
    "named_kernel",
    "needs_vectors",
    "number_type",
    "resolve_kernel",
    "takes_gamma",
    "takes_gammas",
]
