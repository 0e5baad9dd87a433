"""Held-out predictions: what every training row would have been predicted, had it been left out.

==============  =====================  =====================================================
method          losses                 what it gives
==============  =====================  =====================================================
"refit"         any                    the honest refit, the oracle
"block"         squared                exact, one Cholesky factor a lambda
"eigen"         squared                exact, one eigendecomposition for all lambdas
"influence"     any                    the influence series, cut at an order
"limit"         any                    the series' limit in closed form, with an error bound
"exact"         any                    the limit, repaired by Newton steps where it must be
"auto"          any                    "block" or "eigen" by cost; "exact" for other losses
==============  =====================  =====================================================
"""

from __future__ import annotations

from onefit.heldout.base import HeldOut, HeldOutMethod, Prepared
from onefit.heldout.block import Block
from onefit.heldout.eigen import Eigen
from onefit.heldout.influence import Influence
from onefit.heldout.limit import Exact, Limit
from onefit.heldout.refit import Refit

__all__ = [
    "METHODS",
    "Block",
    "Eigen",
    "Exact",
    "HeldOut",
    "HeldOutMethod",
    "Influence",
    "Limit",
    "Prepared",
    "Refit",
]

#: name -> class of every held-out method; how to add one: docs/extending.md
METHODS: dict[str, type[HeldOutMethod]] = {
    method.name: method for method in (Refit, Block, Eigen, Influence, Limit, Exact)
}
