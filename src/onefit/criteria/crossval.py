"""k-fold cross-validation of any loss, by any held-out method.

    CV = (1/k) sum_k (1/|S_k|) sum_{i in S_k} ell(y_i, u_i^(-k)),

u^(-k) the model without the fold S_k (ICML 2014, section 2; ECML 2014, section 3). Nearly
unbiased for the error at the size of the training parts; the other criteria reduce its variance.
Cost: that of the method, about one fit. When to use: by default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onefit.criteria.base import Criterion
from onefit.criteria.evidence import Evidence
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.heldout import HeldOut
from onefit.problem import Problem
from onefit.scoring import RowSums, Truth

__all__ = ["CrossValidation"]


@dataclass(frozen=True, kw_only=True)
class CrossValidation(Criterion):
    """Mean over the splits of the mean loss of their test rows.

    Parameters
    ----------
    loss : str, callable or None, default=None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
        The loss of a row; None is the model's own loss.
    """

    loss: str | Pointwise | None = None
    name = "cv"
    features = "any"
    uses_folds = True

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        def value_at(i: int) -> float:
            held = evidence.heldouts[i]
            return float("nan") if held is None else self._mean(held, evidence.problem)

        return value_at

    def _mean(self, held: HeldOut, problem: Problem) -> float:
        """The mean loss of held-out values: of every split, then over the splits."""
        rows = held.folds.rows
        truth = Truth(problem.Y[rows], held.folds.offsets[:-1], problem.s[rows])
        losses = pointwise(self.loss, problem)(truth.y, held.values).mean(axis=1)
        sums = RowSums.of(losses[:, None], truth.weights[:, None], truth.sums)
        return float(sums.means[sums.below > 0.0].mean())
