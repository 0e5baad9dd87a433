r"""Float32 CG: conjugate gradients in single precision, for kernel matrices near a diagonal.

With a narrow kernel K is close to the identity, nearly every row has curvature, and a factor costs
n^3 for a matrix that hardly needs one. Conjugate gradients need few steps there, each with one
product with K for all columns. For many columns a product runs at the full speed of the processor,
which a factor does not, and in single precision it takes half the time. The gain is measured by
benchmarks/ablation.py.

The error of single precision is corrected in double: with the solution so far, the residual

    e - (K_AA + diag(c)) da - db,               -total - 1'da,

is computed from the matrix itself, and the system is solved again for it (iterative refinement). In
the copy of K, entries that are negligible beside its diagonal are zero: repeated products of them
underflow, which takes processors a hundred times as long.

**When it pays.** The steps depend on how K's eigenvalues are spread beside the ridge; a trial with
one column, which costs little, counts them (``Float32Kernel.pays``). They are compared with the
number of steps of a single column that take as long as a factor (onefit.linalg.rates).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.gram import DenseGram
from onefit.inverse.krylov import CG_RESIDUAL, Ridged, bordered, conjugate_gradients
from onefit.problem import Problem
from onefit.systems.base import NewtonModel, System

__all__ = ["Float32CG", "Float32Kernel"]

#: number of rows with curvature below which a factor is always used: fewer save no time
#: (benchmarks/constants.py), and steps with fewer digits cost certificates of "limit"
MIN_FLOAT32_CURVED_ROWS = 300
#: entries of K that the copy sets to zero, relative to its diagonal (benchmarks/constants.py)
DROPPED_ENTRY = 1e-12


class Float32Kernel:
    """A kernel matrix in single precision, and the cost of iterating with it.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    last : (ridge, fewest, most)
        Result of the last trial: bounds on the steps of a column at that ridge.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.last: tuple[float, int, float] = (np.inf, 0, np.inf)

    @cached_property
    def K(self) -> DenseGram:
        """The copy."""
        copy = np.asarray(self.problem.K.matrix, dtype=np.float32)
        small = np.float32(DROPPED_ENTRY * self.problem.norms.diagonal)
        return DenseGram(np.where(np.abs(copy) < small, np.float32(0.0), copy))

    def pays(self, d: Array, ridge: float, newton: int) -> bool:
        """Whether iteration is cheaper than a factor, for ``newton`` steps around curvature d (n,).

        Lambdas come from the largest down: a smaller one takes no fewer steps, and at most more by
        the root of the growth of the condition number. A trial that was cut short has no such upper
        bound.
        """
        n, p = d.size, int(np.count_nonzero(d))
        factor, step = linalg.HOST.rates.cholesky(p), linalg.HOST.rates.at(1, 4).product(n, n, 1)
        affordable = int(factor.seconds / step.seconds / newton)
        before, fewest, most = self.last
        if p < MIN_FLOAT32_CURVED_ROWS or (fewest > affordable and ridge <= before):
            return False
        if most * np.sqrt(before / ridge) > affordable:
            root = np.sqrt(self.problem.s * d / (2.0 * ridge))[:, None]
            fewest = self.steps(root, affordable)
            most = fewest if fewest <= affordable else np.inf
            self.last = ridge, fewest, most
        return most <= affordable

    def steps(self, root: Array, most: int) -> int:
        """Number of steps for one column, counted up to ``most`` + 1."""
        random = np.random.default_rng(0)
        right = ((root > 0.0) * random.normal(size=root.shape)).astype(np.float32)
        systems = self.systems(root)
        size = np.sqrt(linalg.dots(right, right))
        return int(conjugate_gradients(systems, right, CG_RESIDUAL * size, most + 1).steps[0])

    def systems(self, root: Array) -> Ridged:
        """I + R K R for the columns of ``root``, the diagonals of R."""
        n, k = root.shape
        ones = np.ones(k, dtype=np.float32)
        F, centred = np.empty((n, 0), dtype=np.float32), self.problem.fit_intercept
        return Ridged.prepare(self.K, F, root.astype(np.float32), np.arange(k), ones, centred)


class Float32CG(System):
    """The systems of a Newton step in rounds of iteration and refinement.

    Parameters
    ----------
    kernel : Float32Kernel
    ridge : (k,) array
        Lambda of each column.
    rounds : int, default=2
        Each leaves CG_RESIDUAL of what the last did.
    """

    def __init__(self, kernel: Float32Kernel, ridge: Array, rounds: int = 2) -> None:
        self.kernel, self.ridge, self.rounds = kernel, ridge, rounds
        self.tolerance = CG_RESIDUAL**rounds

    def take(self, columns: Any) -> Float32CG:
        return Float32CG(self.kernel, self.ridge[columns], self.rounds)

    def _solve(self, model: NewtonModel) -> tuple[Array, Array]:
        problem, curved = self.kernel.problem, model.d > 0.0
        two, sd = (2.0 * self.ridge).astype(model.d.dtype), problem.s[:, None] * model.d
        root, c = np.sqrt(sd / two), two / np.where(curved, sd, np.inf)
        systems = self.kernel.systems(root)
        a, b = bordered(systems, root, model.missing, model.total, CG_RESIDUAL)
        for _ in range(self.rounds - 1):
            e = (model.missing - problem.K.matmul(a) - c * a - b) * curved
            da, db = bordered(systems, root, e, model.total + a.sum(axis=0), CG_RESIDUAL)
            a, b = a + da, b + db
        return a, b
