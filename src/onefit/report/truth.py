"""Sections that set held-out values beside the truth: residuals, classes, probabilities, pull."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import log_loss, precision_recall_fscore_support

from onefit.decide.calibrate import heldout_probabilities
from onefit.diagnostics import influence
from onefit.estimators.accepted import unwrap
from onefit.heldout import HeldOut
from onefit.report import figures
from onefit.report.facts import Facts
from onefit.report.section import Section

Array = NDArray[Any]

__all__ = ["compared", "influential"]

#: influential rows listed
SHOWN = 12
#: influence functions of more rows than this take too long for a report
MOST_ROWS = 1500
#: columns beside an influential row
BESIDE = 8


def compared(
    facts: Facts, y: Array, found: HeldOut, target: str, names: Sequence[Any]
) -> list[Section]:
    """Held-out predictions, or decisions, against the truth."""
    said = "Every prediction comes from a machine that had not seen the row."
    known = found.tested
    y, held = y[known], found.decision[known]
    if not is_classifier(facts.search.estimator):
        if held.ndim > 1:
            return []
        y = y.astype(float)
        r2 = 1.0 - float(np.square(y - held).sum() / np.square(y - y.mean()).sum())
        alt = f"Scatter of held-out predictions against the truth for {y.size} rows; R² {r2:.3f}."
        text = f"{said} All rows together: R² {r2:.3f}."
        names = [names[i] for i in np.arange(len(names))[known]]
        figure = figures.scatter(y, held, target, names)
        drawn = Section("heldout", "Held-out predictions", text, figure, alt)
        return [drawn, _residuals(y, held, names)]
    classes = np.unique(y)
    figure, counts = figures.confusion(y, np.asarray(found.labels)[known], classes)
    right = int(np.trace(counts))
    alt = f"Confusion matrix: {right} of {y.size} held-out labels are right."
    roc_alt = "ROC curves of the held-out decision values, each class against the rest."
    names = [str(one) for one in classes]
    rows = [[name, *map(str, row)] for name, row in zip(names, counts.tolist(), strict=True)]
    return [
        Section("roc", "ROC of held-out decisions", said, figures.roc(y, held, classes), roc_alt),
        Section(
            "confusion", "Confusion matrix", alt, figure, alt, ["truth \\ label", *names], rows
        ),
        _by_class(y, np.asarray(found.labels)[known], classes),
        *_calibration(y, found, classes),
    ]


def _residuals(y: Array, held: Array, names: Sequence[Any]) -> Section:
    """What is missed, and by how much."""
    missed = y - held
    size = np.abs(missed)
    rows = [
        ["root mean squared error", f"{np.sqrt(np.square(missed).mean()):.4g}"],
        ["mean absolute error", f"{size.mean():.4g}"],
        *([f"{share:.0%} of the rows are off by at most", f"{np.quantile(size, share):.4g}"]
          for share in (0.5, 0.9, 0.99)),
        ["mean of truth - prediction", f"{missed.mean():.3g}"],
    ]  # fmt: skip
    text = (
        "A band of even width about the dashed line is what noise looks like. A bend is a "
        "dependence that the kernel misses, a fan noise that grows with the target."
    )
    alt = f"Scatter of the held-out residuals of {y.size} rows against their predictions."
    figure = figures.residuals(y, held, names)
    return Section("residuals", "Residuals", text, figure, alt, ["number", "value"], rows)


def _by_class(y: Array, labels: Array, classes: Array) -> Section:
    """Precision, recall and their harmonic mean, for each class."""
    found = precision_recall_fscore_support(y, labels, labels=classes, zero_division=0.0)
    rows = [
        [str(one), *(f"{v:.3f}" for v in values[:3]), str(int(values[3]))]
        for one, *values in zip(classes, *found, strict=True)
    ]
    text = (
        "Of held-out labels. Precision: the share of rows labelled so that are so. Recall: the "
        "share of rows that are so and are labelled so. F1 is their harmonic mean."
    )
    head = ["class", "precision", "recall", "F1", "rows"]
    return Section("by-class", "Class by class", text, head=head, rows=rows)


def _calibration(y: Array, found: HeldOut, classes: Array) -> list[Section]:
    """Probabilities of held-out rows against what happened; nothing where a class has one row."""
    if np.unique(y, return_counts=True)[1].min() < 2:
        return []
    if found.as_probabilities is None:
        proba, how = heldout_probabilities(found), "a sigmoid fitted to those of other rows"
    else:
        proba, how = found.proba, "the loss itself"
    proba = proba[found.tested]
    prior = np.broadcast_to([(y == one).mean() for one in classes], proba.shape)
    losses = [log_loss(y, p, labels=classes) for p in (proba, prior)]
    text = (
        f"Probabilities of held-out rows, from their decision values by {how}: log loss "
        f"{losses[0]:.4g}, against {losses[1]:.4g} of the shares of the classes. On the dashed "
        "line, what was said to happen with some probability did so as often. Points are tenths "
        "of the rows; the machine was chosen on these rows, which flatters it."
    )
    alt = (
        "Calibration curves: the share of rows of a class among those given about the same "
        f"probability of it, for {', '.join(map(str, figures.positive(proba, classes)[0]))}."
    )
    figure = figures.calibration(y, proba, classes)
    return [Section("calibration", "Calibration of probabilities", text, figure, alt)]


def influential(
    facts: Facts, y: Array, held: Array, names: Sequence[Any], features: Any
) -> list[Section]:
    """Rows whose doubling moves the machine's predictions most, by the influence function."""
    best = unwrap(getattr(facts.search, "best_estimator_", None))
    if best is None or y.shape[0] > MOST_ROWS or not hasattr(best, "X_fit_"):
        return []
    pull = influence(best, best.X_fit_, y).reshape(y.shape[0], y.shape[0], -1)
    size = np.sqrt(np.square(pull).mean(axis=(1, 2))) / y.shape[0]
    top = np.argsort(-size, kind="stable")[:SHOWN]
    values = held.reshape(y.shape[0], -1)
    columns = [] if features is None else list(features.columns[:BESIDE])
    beside = range(len(columns))
    rows = [
        [str(names[i]), _value(y[i]), ", ".join(f"{v:.4g}" for v in values[i]), f"{size[i]:.3g}"]
        + [_value(features.iloc[i, place]) for place in beside]
        for i in top
    ]
    text = (
        "Root mean square change of all predictions if the row were there once more (first-order "
        "influence function)."
    )
    if features is None:
        text += " Rows are counted from 0."
    head = [
        getattr(names, "name", None) or "row",
        "truth",
        "held-out value",
        "influence",
        *map(str, columns),
    ]
    return [Section("influence", "Most influential rows", text, head=head, rows=rows)]


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
