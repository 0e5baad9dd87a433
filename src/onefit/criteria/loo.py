"""Leave-one-out: JMLR 2008, equation 17, exact.

    LOO = (1/n) sum_i ell(y_i, u_i^(-i)).

For the squared loss u^(-i) comes from Cawley's formula y_i - u_i^(-i) = a_i / P_ii, with the ridge
of n - 1 rows under mean scaling, from one eigendecomposition for all lambdas
(:meth:`HatSpectrum.left_out`). For other losses n leave-out problems are solved by Newton steps
from the full solution. Almost unbiased, of high variance, without random splits. When to use: small
samples, and where random folds are unwanted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onefit._types import Array
from onefit.criteria.base import ByRow, exact_method
from onefit.criteria.evidence import Evidence
from onefit.criteria.spectrum import HatSpectrum
from onefit.folds import leave_one_out

__all__ = ["LeaveOneOut"]


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(ByRow):
    """Mean loss of the exact leave-one-out predictions, whatever the splits of the search.

    Parameters
    ----------
    loss : str, callable or None, default=None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
        The loss of a row; None is the model's own loss.
    """

    name = "loo"

    def predictions(self, spectrum: HatSpectrum, lam: float) -> Array:
        return np.asarray(spectrum.problem.Y - spectrum.left_out(lam))

    def left_out(self, evidence: Evidence) -> Callable[[int], Array]:
        if evidence.problem.quadratic:
            return super().left_out(evidence)
        kept = evidence.positive
        prepared = exact_method(kept).prepare(kept, leave_one_out(kept.n))
        path = prepared.predict(np.array(evidence.lams))
        return lambda i: path[i].values
