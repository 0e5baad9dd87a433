"""What a held-out method is, and what it returns.

A method predicts every test row of every split by the model trained without the rows that the
split removes. It declares what it needs of the loss, and works in two phases:
``prepare(problem, folds)`` does what the lambdas share, ``predict(lams)`` the rest, for as many
lambdas as there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices, Mask
from onefit.folds import Folds
from onefit.heldout.cost import active_share
from onefit.heldout.ties import rounded_decisions
from onefit.heldout.workload import Workload
from onefit.linalg.rates import Cost, Rates
from onefit.losses.base import require
from onefit.problem import Problem
from onefit.proof.certificate import EXACT_TOLERANCE

__all__ = ["HeldOut", "HeldOutError", "HeldOutMethod", "HeldOutPath", "Prepared"]


#: matrices of a Newton step on a device, without K
DEVICE_NEWTON_MATRICES = 4.0


class HeldOutError(linalg.LinAlgError, FloatingPointError):
    """Held-out values could not be computed: a matrix is singular, or numbers overflow."""


@dataclass(frozen=True)
class HeldOut:
    """Held-out predictions or decision values of every split, with bounds on their errors.

    Attributes
    ----------
    values : (N, q) array
        Decision values of the test rows, one split after the other (``folds.rows`` names the rows).
    folds : Folds
    method : str
        The method that made them ("auto" has been resolved).
    exact : (n_splits,) bool array
        Whether the fold's values are proven to be those of the model trained without it, up to
        1e-6 of the targets' scale: their weighted standard deviation, 1 for labels.
    error : (n_splits,) array
        Bound on the largest absolute error of the fold's values; NaN where none is known.
    moved : (n_splits,) int array
        Training points that changed their piece of the loss when the fold was left out.
    steps : (n_splits,) int array
        Newton steps of the leave-out problem.
    order : int or None
        Order of the influence series, where one was cut.
    seconds : float
        Wall time; in a search, the candidate's share of its kernel's time.
    targets, sample_weight : arrays, or None
        Targets and weights of the rows, as passed by the caller.
    as_decision, as_labels, as_probabilities : functions of (m, q) values, or None
        Convert values of a classifier to a column per class, labels, probabilities.
    """

    values: Array = field(repr=False)
    folds: Folds
    method: str
    exact: Mask
    error: Array = field(repr=False)
    moved: Indices = field(repr=False)
    steps: Indices = field(repr=False)
    order: int | None = None
    seconds: float = 0.0
    targets: Any = field(default=None, repr=False)
    sample_weight: Any = field(default=None, repr=False)
    as_decision: Callable[[Array], Array] | None = field(default=None, repr=False)
    as_labels: Callable[[Array], Array] | None = field(default=None, repr=False)
    as_probabilities: Callable[[Array], Array] | None = field(default=None, repr=False)

    @property
    def by_fold(self) -> list[Array]:
        """The values of each split, in the order of its test rows, (m,) or (m, q)."""
        values = self.values[:, 0] if self.values.shape[1] == 1 else self.values
        return np.split(values, self.folds.offsets[1:-1])

    @property
    def predictions(self) -> Array:
        """Decision values in the order of the rows, (n,) or (n, q).

        A row tested by several splits gets their mean; a row tested by none is NaN.
        """
        total = self._by_row
        return total[:, 0] if total.shape[1] == 1 else total

    def known_weight(self, sample_weight: Any) -> Any:
        """The sample weights of these values: None takes them over, other ones are refused."""
        if sample_weight is None:
            return self.sample_weight
        own = np.ones(self.folds.n) if self.sample_weight is None else self.sample_weight
        if not np.array_equal(np.asarray(own), np.asarray(sample_weight)):
            raise ValueError(
                "sample_weight differs from that of the search, whose held-out values are used; "
                "leave it out, or fit the search with it"
            )
        return sample_weight

    @property
    def _by_row(self) -> Array:
        n, q = self.folds.n, self.values.shape[1]
        rows = self.folds.rows
        total = np.zeros((n, q), dtype=self.values.dtype)
        np.add.at(total, rows, self.values)
        count = np.bincount(rows, minlength=n)
        total /= np.maximum(count, 1)[:, None]
        total[count == 0] = np.nan
        return total

    @property
    def tested(self) -> Indices:
        """The rows that at least one split tests, ascending."""
        return np.flatnonzero(np.bincount(self.folds.rows, minlength=self.folds.n))

    @property
    def decision(self) -> Array:
        """Held-out values of a classifier as its ``decision_function`` has them, row by row.

        The same as :attr:`predictions` but for models of pairs of classes, whose values vote: one
        number per row for two classes, else a column per class. A row tested by no split is NaN.
        """
        if self.as_decision is None:
            return self.predictions
        found = self.as_decision(self._by_row[self.tested])
        full = self._unknown(found)
        return full[:, 0] if full.shape[1] == 1 else full

    @property
    def labels(self) -> Array:
        """Predicted class of each held-out row, (n,), in the order of the rows.

        Those of :attr:`predictions`. Where some rows are tested by no split, or their values are
        not known (a step of a pipeline failed), a masked array that hides them.
        """
        if self.as_labels is None:
            raise ValueError("labels are for classifiers; a regression has predictions")
        known = np.isfinite(self._by_row).all(axis=1)
        found = self.as_labels(self._by_row[known])
        if known.all():
            return found
        full = np.empty(self.folds.n, dtype=found.dtype)
        full[known] = found
        return np.ma.MaskedArray(full, mask=~known)

    @property
    def proba(self) -> Array:
        """Predicted probability of each class for each held-out row, (n, n_classes).

        For losses that give probabilities; a row tested by no split is NaN.
        """
        if self.as_probabilities is None:
            raise ValueError(
                "the loss gives no probabilities; calibrate makes them from these decision values: "
                "search.calibrate('sigmoid').heldout_proba_"
                if self.as_labels is not None
                else "probabilities are for classifiers; a regression has predictions"
            )
        return self._unknown(self.as_probabilities(self._by_row[self.tested]))

    def _unknown(self, found: Array) -> Array:
        """Numbers of the rows that were tested, the others NaN."""
        full = np.full((self.folds.n, found.shape[1]), np.nan, dtype=found.dtype)
        full[self.tested] = found
        return full


@dataclass
class HeldOutPath:
    """Held-out values at several lambdas: the arrays of :class:`HeldOut` with an axis in front.

    A lambda at which the numerics fail has NaN for values, and a reason.

    Attributes
    ----------
    lams : (L,) array
    folds : Folds
    method : str
    values : (L, N, q) array
    bounds : (L, n_splits, q) array
        Bounds on the errors of every target.
    exact, error, moved, steps : (L, n_splits) arrays
    reasons : list of str
        Why there are no values, empty where there are.
    order : int or None
    """

    lams: Array
    folds: Folds
    method: str
    values: Array = field(repr=False)
    bounds: Array = field(repr=False)
    exact: Mask = field(repr=False)
    moved: Indices = field(repr=False)
    steps: Indices = field(repr=False)
    reasons: list[str]
    order: int | None = None

    @classmethod
    def empty(
        cls, problem: Problem, folds: Folds, method: str, lams: Array, order: int | None = None
    ) -> HeldOutPath:
        """No values yet."""
        L, k, (n, q) = len(lams), len(folds), (folds.rows.size, problem.Y.shape[1])
        counts = np.zeros((2, L, k), dtype=np.intp)
        return cls(
            np.asarray(lams, dtype=np.float64), folds, method,
            np.full((L, n, q), np.nan, dtype=problem.Y.dtype), np.full((L, k, q), np.nan),
            np.zeros((L, k), dtype=bool), counts[0], counts[1], [""] * L, order,
        )  # fmt: skip

    @classmethod
    def failed(
        cls, problem: Problem, folds: Folds, method: str, reason: str, lams: Array
    ) -> HeldOutPath:
        """No values at any lambda, for one reason."""
        found = cls.empty(problem, folds, method, lams)
        return replace(found, reasons=[reason] * len(found))

    @property
    def error(self) -> Array:
        """Bounds on the errors of all targets."""
        return np.asarray(self.bounds.max(axis=2))

    @property
    def done(self) -> Mask:
        """The lambdas that have values."""
        return np.array([not reason for reason in self.reasons], dtype=bool)

    def fill(self, i: int, k: int, j: Any, values: Array, error: Any) -> None:
        """Values of split ``k`` at the i-th lambda, rounded to the precision of the data."""
        mine = self.values[i][self.folds.place(k)]
        mine[:, j] = values
        self.bounds[i, k, j] = error + np.abs(mine[:, j] - values).max(axis=0)

    def put(self, some: Indices, other: HeldOutPath, which: Any = slice(None)) -> None:
        """Replace what is known at some lambdas by ``which`` of another path."""
        for name in ("values", "bounds", "exact", "moved", "steps"):
            getattr(self, name)[some] = getattr(other, name)[which]
        for i, reason in zip(some, np.array(other.reasons)[which], strict=True):
            self.reasons[i] = str(reason)

    def fail(self, i: int, reason: str) -> None:
        """No values at the i-th lambda."""
        self.values[i], self.bounds[i], self.reasons[i] = np.nan, np.nan, reason
        self.moved[i] = self.steps[i] = 0

    @contextmanager
    def attempt(self, some: list[int]) -> Iterator[None]:
        """Where the numerics fail inside, some lambdas have no values, and the reason."""
        try:
            yield
        except linalg.LinAlgError as error:
            for i in some:
                self.fail(i, str(error))

    def judged(self, problem: Problem) -> HeldOutPath:
        """The same with ``exact`` set and decision values rounded, which enters the bounds.

        Lambdas with values that are not finite have failed.
        """
        labels = (np.abs(linalg.to_host(problem.Y)) == 1.0).all(axis=0)
        for i in np.flatnonzero(self.done):
            finite = np.isfinite(self.folds.largest(self.values[i])).all(axis=1)
            if not finite.all():
                self.fail(
                    int(i),
                    f"method {self.method!r} gave values of split {np.argmin(finite)} that are not "
                    f"finite: numbers overflow in {self.values.dtype}; raise lam, scale the data"
                    + (", or use float64" if self.values.dtype == np.float32 else ""),
                )
                continue
            if labels.any():
                rounded = rounded_decisions(self.values[i][:, labels])
                change = self.folds.largest(rounded - self.values[i][:, labels])
                self.values[i][:, labels] = rounded
                self.bounds[i][:, labels] += change
        self.exact = np.asarray((self.bounds <= EXACT_TOLERANCE * problem.scale).all(axis=2))
        return self

    def __len__(self) -> int:
        return len(self.lams)

    def each(self) -> list[HeldOut | None]:
        """The values at every lambda, None where they failed."""
        return [self[i] if done else None for i, done in enumerate(self.done)]

    def __getitem__(self, i: int) -> HeldOut:
        """The values at the i-th lambda; an error with the reason if they failed."""
        if self.reasons[i]:
            raise HeldOutError(self.reasons[i])
        return HeldOut(
            self.values[i], self.folds, self.method, self.exact[i], self.error[i], self.moved[i],
            self.steps[i], self.order,
        )  # fmt: skip


class HeldOutMethod(ABC):
    """A way to held-out predictions.

    Attributes
    ----------
    name : str
    requires : tuple of str
        Members the loss must have.
    quadratic_only : bool
        Whether the loss must be quadratic.
    products_only : bool
        Whether it uses only products with K, so that K need not be held.
    on_device : bool
        Whether it computes where K is, on a device too.
    """

    name: ClassVar[str]
    requires: ClassVar[tuple[str, ...]] = ("gradient", "curvature", "max_curvature")
    quadratic_only: ClassVar[bool] = False
    products_only: ClassVar[bool] = False
    on_device: ClassVar[bool] = False

    def check(self, problem: Problem) -> None:
        """Refuse a loss or a device that the method does not support."""
        if not self.on_device:
            self._require_host(problem)
        if self.quadratic_only and not problem.quadratic:
            raise ValueError(
                f"method {self.name!r} works for the squared loss only, not for "
                f"{problem.loss!r}; use 'limit', 'exact' or 'refit'"
            )
        require(problem.loss, self.name, *self.requires)

    def _require_host(self, problem: Problem) -> None:
        arrays = problem.K.arrays
        if not arrays.on_host:
            raise ValueError(
                f"method {self.name!r} does not compute on {arrays!r}: use 'iterative', 'exact', "
                "'limit' or 'refit' there, 'block' or 'eigen' for the squared loss, or leave the "
                "device out"
            )

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if name[0] != "_"}
        options = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}({options})"

    @abstractmethod
    def prepare(self, problem: Problem, folds: Folds) -> Prepared:
        """Do everything that the lambdas share."""

    # what plans need of a method that is part of the package

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """Expected cost of one kernel."""
        raise NotImplementedError(f"method {cls.name!r} does not count its operations")

    @classmethod
    def matrices(cls, work: Workload) -> float:
        """Matrices of n rows and columns that it holds at its peak, K among them."""
        return 1.0

    @classmethod
    def device_bytes(cls, work: Workload) -> float:
        """Bytes that it holds on a device at its peak: K, and a Newton step unless it has none."""
        step = DEVICE_NEWTON_MATRICES * active_share(work) ** 2
        return (1.0 + step) * work.itemsize * float(work.n) ** 2


class Prepared(ABC):
    """A method after its first phase."""

    @abstractmethod
    def predict(self, lams: Array) -> HeldOutPath:
        """Held-out predictions at every lambda."""
