"""Held-out predictions: the prediction for each row by the model trained without it.

==============  =====================  =====================================================
method          losses                 what it gives
==============  =====================  =====================================================
"refit"         any                    a refit for every split: the definition
"block"         squared                exact, one Cholesky factor per lambda
"eigen"         squared                exact, one eigendecomposition for all lambdas
"influence"     any                    the influence series, cut at an order
"limit"         any                    the series' limit in closed form, with an error bound
"exact"         any                    exact: Newton steps until every fold is certified
"iterative"     any                    exact to a tolerance, by products with K alone
"auto"          any                    an exact method, by cost
==============  =====================  =====================================================
"""

from __future__ import annotations

from onefit.heldout.base import HeldOut, HeldOutMethod, HeldOutPath, Prepared
from onefit.heldout.iterative import Iterative
from onefit.heldout.leave_out import Exact, Limit, Refit
from onefit.heldout.series import Influence
from onefit.heldout.squared import Block, Eigen

__all__ = [
    "METHODS",
    "Block",
    "Eigen",
    "Exact",
    "HeldOut",
    "HeldOutMethod",
    "HeldOutPath",
    "Influence",
    "Iterative",
    "Limit",
    "Prepared",
    "Refit",
]

#: name -> class of every held-out method; how to add one: docs/extending.md
METHODS: dict[str, type[HeldOutMethod]] = {
    method.name: method for method in (Refit, Block, Eigen, Influence, Limit, Exact, Iterative)
}
