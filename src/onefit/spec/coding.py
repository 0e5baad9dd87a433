"""How targets become columns of a problem, and decision values become predictions.

Estimators of one search share a matrix of targets Y: the numbers of a regression, or -1 and +1 for
the classes, one column for two classes and one per class for more. An estimator may solve other
columns: one for each level of a quantile, or one for each pair of classes. Both codings are frozen
and hold no rows, so that they can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from onefit._types import Array
from onefit.linalg import arrays_of
from onefit.losses import Loss
from onefit.spec.coupling import couple

__all__ = ["LabelCoding", "TargetCoding", "class_codes", "encode_labels"]


def encode_labels(classes: Array, y: Any) -> Array:
    """Labels as -1 and +1, a column for two classes and one per class for more."""
    labels = np.asarray(y).ravel()
    if len(classes) == 2:
        return np.where(labels == classes[1], 1.0, -1.0)[:, None]
    return np.where(labels[:, None] == classes, 1.0, -1.0)


def class_codes(Y: Array) -> Array:
    """Numbers of the classes, from targets of -1 and +1."""
    return np.asarray(Y.argmax(axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0).astype(np.intp))


@dataclass(frozen=True)
class TargetCoding:
    """Numbers: a column for each target, or for each of several levels of a single target.

    Parameters
    ----------
    single : bool
        Whether y has one dimension.
    levels : tuple of float
        Of quantiles or expectiles; empty for other losses.
    """

    single: bool = True
    levels: tuple[float, ...] = ()
    class_weight = None

    @property
    def columns_are_targets(self) -> bool:
        """Whether decision values have the columns of Y."""
        return len(self.levels) <= 1

    @property
    def one_column(self) -> bool:
        """Whether predictions are one number per row."""
        return self.single and self.columns_are_targets

    def columns(self, Y: Array) -> Array:
        """Targets of the columns."""
        if self.columns_are_targets:
            return Y
        if Y.shape[1] > 1:
            raise ValueError(
                f"level has {len(self.levels)} values and y has {Y.shape[1]} columns; several "
                "levels are for one target, fit each column by itself"
            )
        return np.asfortranarray(np.repeat(Y, len(self.levels), axis=1))

    def weights(self, Y: Array, s: Array) -> Array:
        """Weights of the rows: those that are given."""
        return s

    def targets(self, Y: Array) -> Array:
        """The targets y that Y was made of."""
        return Y[:, 0] if self.single else Y

    @property
    def decoders(self) -> dict[str, Any]:
        """Predictions of :class:`onefit.heldout.HeldOut`: the decision values themselves."""
        return {}


@dataclass(frozen=True, eq=False)
class LabelCoding:
    """Classes: a column for two, one for each of more, or one for each pair of them.

    Parameters
    ----------
    margin_loss : Loss
        Of two classes; gives probabilities if it can.
    classes : array of shape (n_classes,)
        Empty before targets were seen.
    multi_class : {"ovr", "ovo"}
    class_weight : dict, "balanced" or None
    """

    margin_loss: Loss
    classes: Array = field(default_factory=lambda: np.empty(0), repr=False)
    multi_class: str = "ovr"
    class_weight: Any = None

    @property
    def in_pairs(self) -> bool:
        """Whether every column is a pair of classes; two classes are one pair anyway."""
        return self.multi_class == "ovo" and len(self.classes) > 2

    @property
    def may_be_in_pairs(self) -> bool:
        """The same, or that it depends on the classes, which are not known yet."""
        return self.in_pairs or (self.multi_class == "ovo" and not len(self.classes))

    @property
    def columns_are_targets(self) -> bool:
        """Whether decision values have the columns of Y."""
        return not self.in_pairs

    def targets(self, Y: Array) -> Array:
        """The labels that Y was made of."""
        return np.asarray(self.classes[class_codes(Y)])

    def columns(self, Y: Array) -> Array:
        """Targets of the columns; of a pair -1 for the first, +1 for the second, 0 for others."""
        if not self.in_pairs:
            return Y
        first, second = np.triu_indices(Y.shape[1], 1)
        member = Y > 0
        signs = member[:, second].astype(Y.dtype) - member[:, first].astype(Y.dtype)
        return np.asfortranarray(signs)

    def weights(self, Y: Array, s: Array) -> Array:
        """Weights of the rows, multiplied by those of their classes."""
        if self.class_weight is None:
            return s
        codes = class_codes(Y)
        return np.asarray(s * self.class_weights(codes, s)[codes].astype(s.dtype))

    def class_weights(self, codes: Array, s: Array) -> Array:
        """The weight of every class; "balanced" counts a row as often as its weight says."""
        given, classes = self.class_weight, self.classes
        if isinstance(given, Mapping) and not all(
            np.isfinite(value) and value > 0 for value in given.values()
        ):
            raise ValueError(
                f"class_weight must have positive finite values, got {given!r}; leave the rows of "
                "a class out to do without it"
            )
        if given != "balanced":
            return np.asarray(compute_class_weight(given, classes=classes, y=classes[codes]))
        counts = np.bincount(codes, weights=s, minlength=len(classes))
        with np.errstate(divide="ignore"):
            found = counts.sum() / (len(classes) * counts)
        return np.where(np.isfinite(found), found, 1.0)  # no row of the class has any weight

    @property
    def decoders(self) -> dict[str, Any]:
        """Predictions of :class:`onefit.heldout.HeldOut` from decision values."""
        return {
            "as_decision": self.by_class if self.in_pairs else None,
            "as_labels": self.labels,
            "as_probabilities": self.probabilities if self.gives_probabilities else None,
        }

    def by_class(self, decision: Array) -> Array:
        """A column per class (one for two classes): values, or the votes of pairs.

        The confidence of the pairs is added to their votes and counts less than one vote.
        """
        return _votes(decision, len(self.classes)) if self.in_pairs else decision

    def labels(self, decision: Array) -> Array:
        """Labels, as NumPy arrays, of (m, q) decision values."""
        decision = arrays_of(decision).host(decision)
        if len(self.classes) == 2:
            return np.asarray(self.classes[(decision[:, 0] > 0).astype(int)])
        return np.asarray(self.classes[self.by_class(decision).argmax(axis=1)])

    @property
    def gives_probabilities(self) -> bool:
        """Whether the loss has probabilities."""
        return hasattr(self.margin_loss, "probability")

    def probabilities(self, decision: Array) -> Array:
        """Probability of every class."""
        p: Array = self.margin_loss.probability(decision)  # type: ignore[attr-defined]
        if len(self.classes) == 2:
            return np.column_stack([1.0 - p[:, 0], p[:, 0]])
        if self.in_pairs:
            return couple(p, len(self.classes))
        # far from every class all may have underflown; then the nearest has probability 1
        nearest = decision == decision.max(axis=1, keepdims=True)
        p = np.where(p.any(axis=1, keepdims=True), p, nearest.astype(p.dtype))
        return np.asarray(p / p.sum(axis=1, keepdims=True))


def _votes(decision: Array, classes: int) -> Array:
    """Votes of the pairs for each class, and between -1/3 and 1/3 for their confidence."""
    first, second = np.triu_indices(classes, 1)
    votes, sure = np.zeros((2, len(decision), classes))
    for column, i, j in zip(decision.T, first, second, strict=True):
        won = column > 0
        votes[:, i] += ~won
        votes[:, j] += won
        sure[:, i] -= column
        sure[:, j] += column
    return np.asarray(votes + sure / (3.0 * (np.abs(sure) + 1.0)))
