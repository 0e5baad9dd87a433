"""The parameters of an estimator as one frozen value, used by searches and plans.

``estimator.spec()`` reads the parameters, and the classes where targets were seen. Searches, plans,
criteria, streams and journals use the value and not the estimator: it can be compared, described
and sent to another process, and nothing changes it. The estimator is asked only for what changes
it: to check rows and targets, and to be fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from onefit._describe import describe
from onefit._types import Array
from onefit.kernels import Kernel, is_precomputed, named_kernel, needs_vectors, resolve_kernel
from onefit.losses import Loss
from onefit.problem import Problem
from onefit.spec.coding import LabelCoding, TargetCoding

__all__ = ["LabelCoding", "Spec", "TargetCoding"]


@dataclass(frozen=True, eq=False)
class Spec:
    """The problem that an estimator solves, but for its rows.

    Attributes
    ----------
    kernel, gamma
        The parameters; :meth:`resolve_kernel` makes a kernel of them.
    loss : Loss
        Of the columns: with pairs of classes, that of rows of these classes alone.
    lam : float
    fit_intercept : bool
    scaling : {"mean", "total"}
    solver : str
    coding : TargetCoding or LabelCoding
        How targets become columns, and decision values predictions.
    approximation : onefit.features.approximation.Approximation or None
        What replaces the kernel matrix.

    Examples
    --------
    >>> from onefit import KernelRegressor
    >>> from onefit.losses import Huber
    >>> spec = KernelRegressor(loss=Huber(1.0)).spec()
    >>> spec.loss, spec.lam, spec.coding.columns_are_targets
    (Huber(threshold=1.0), 0.001, True)
    """

    kernel: Any
    gamma: Any
    loss: Loss
    lam: Any
    fit_intercept: bool
    scaling: str
    solver: str
    coding: TargetCoding | LabelCoding
    approximation: Any = None

    @property
    def precomputed(self) -> bool:
        """Whether X is the kernel matrix itself."""
        return is_precomputed(self.kernel)

    @property
    def needs_vectors(self) -> bool:
        """Whether rows must be vectors of numbers."""
        return needs_vectors(self.kernel)

    @property
    def quadratic(self) -> bool:
        """Whether the loss is (y - u)^2."""
        return bool(getattr(self.loss, "quadratic", False))

    def n_features(self, rows: int) -> int:
        """Largest number of features instead of the kernel matrix; 0 without an approximation."""
        return (
            0 if self.approximation is None else int(self.approximation.features.n_features(rows))
        )

    def resolve_kernel(self, X: Any, s: Array) -> Kernel:
        """The kernel on rows X; gamma="scale" counts every row by its weight."""
        weights = s if (s != s[0]).any() else None
        return resolve_kernel(self.kernel, X, self.gamma, weights)

    def problem(self, K: Any, Y: Array, s: Array, **options: Any) -> Problem:
        """The problem on a kernel matrix.

        Parameters
        ----------
        K : Gram or array
        Y, s : (n, q) and (n,) arrays
            Targets and sample weights that estimators of a search share; several levels, pairs of
            classes and class weights make other columns and weights of them.
        **options
            Of :class:`onefit.problem.Problem`.
        """
        coding = self.coding
        return self.coded_problem(K, coding.columns(Y), coding.weights(Y, s), **options)

    def coded_problem(self, K: Any, Y: Array, s: Array, **options: Any) -> Problem:
        """The same where Y and s are the columns and weights already."""
        return Problem(K, Y, s, self.loss, self.fit_intercept, self.scaling, **options)

    def words(self) -> dict[str, str]:
        """Every setting in words, by name: what journals compare.

        Words are the same in another process; settings of the coding stand among the others.
        """
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "coding"}
        found["kernel"] = named_kernel(self.kernel)
        found |= {one.name: getattr(self.coding, one.name) for one in fields(self.coding)}
        return {name: describe(value) for name, value in found.items()}

    def ridge(self, lam: float, weight: float) -> float:
        """Lambda of training rows with this total weight."""
        return lam if self.scaling == "total" else lam * weight
