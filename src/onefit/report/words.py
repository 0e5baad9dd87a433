"""A fitted search in sentences and tables: how good the choice is, and how sure that is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._format import MAX_CELL, decimals, duration, number, percent, settings, shorten
from onefit.quantiles import levels_of
from onefit.report.criteria import verdicts
from onefit.report.facts import Facts
from onefit.uncertainty.baseline import weighted_quantile
from onefit.uncertainty.headline import Headline

Array = NDArray[Any]

__all__ = [
    "MAX_RANKED", "KnownTargets", "Listing", "choice", "comparison", "exactness", "expected",
    "headline", "merit", "ranking", "rivals", "spent",
]  # fmt: skip

#: candidates in the tables of all output
MAX_RANKED = 10
#: classes whose shares are listed
MAX_CLASSES = 6
#: from this ratio of errors on, an improvement is a factor; below, a percentage
MIN_FACTOR = 1.5
#: what a column of numbers or dates holds
NUMERIC_CELL = re.compile(r"[-+–]?[\d.,]*(e[-+]\d+)?(\s%| ± .*)?|\d{4}-\d\d-\d\d( [\d:.]+)?")


@dataclass(frozen=True)
class KnownTargets:
    """Held-out predictions of the winner beside the targets, for the rows that a split tests.

    Attributes
    ----------
    n : int
        All rows, tested or not.
    rows : (m,) int array
    y, held : (m,) or (m, q) arrays
        Targets, and predictions or labels. Targets of quantiles are (m,), predictions (m, levels).
    weight : (m,) array or None
    levels : tuple of float
        Of quantiles.
    proba : (m, K) array or None
        Of a classifier that has probabilities: those of the loss, or calibrated on other rows.
    """

    n: int
    rows: Array
    y: Array = field(repr=False)
    held: Array = field(repr=False)
    weight: Array | None = field(repr=False)
    levels: tuple[float, ...] = ()
    proba: Array | None = field(repr=False, default=None)

    @classmethod
    def of(cls, facts: Facts, calibrated: Any = None) -> KnownTargets | None:
        """The known targets; None if the search kept no held-out values or no targets."""
        held = getattr(facts.search, "heldout_", None)
        y = getattr(held, "targets", None)
        if held is None or y is None:
            return None
        rows, y, s = held.tested, np.asarray(y), held.sample_weight
        s = None if s is None or np.ptp(s[rows]) == 0.0 else np.asarray(s)[rows]
        if not facts.is_classification:
            y = y.reshape(len(y), -1).astype(float)
            y = y[:, 0] if y.shape[1] == 1 else y
            is_quantile = facts.model.spec().loss.name == "quantile"
            levels = levels_of(facts.model) if is_quantile else ()
            return cls(len(y), rows, y[rows], held.predictions[rows], s, levels)
        known = held.as_probabilities is not None
        proba = held.proba if known else getattr(calibrated, "heldout_proba_", None)
        proba = None if proba is None else np.asarray(proba)[rows]
        return cls(len(y), rows, np.ravel(y)[rows], np.asarray(held.labels)[rows], s, proba=proba)

    @cached_property
    def missed(self) -> Array:
        """The size of the errors."""
        return np.asarray(np.abs(self.y - self.held))

    @cached_property
    def below(self) -> Array:
        """The share of targets below each quantile."""
        below = self.y[:, None] <= self.held.reshape(self.y.size, -1)
        return np.asarray(np.average(below, axis=0, weights=self.weight))

    @property
    def words(self) -> str:
        """The rows, in sentences about shares of them."""
        return "rows" if self.weight is None else "rows (by weight)"

    def share(self, right: Array, some: Any = slice(None)) -> float:
        """The share of some rows, by weight, for which a condition holds."""
        weight = None if self.weight is None else self.weight[some]
        return float(np.average(right[some], weights=weight))

    def within(self, share: float) -> float:
        """The size of the errors that a share of the rows, by weight, does not exceed."""
        if self.weight is None:
            return float(np.quantile(self.missed, share))
        return weighted_quantile(self.missed, self.weight, share)


@dataclass(frozen=True)
class Merit:
    """The quality of the winner: one or two sentences, and up to three numbers with labels."""

    sentence: str
    numbers: list[tuple[str, str]]


def merit(facts: Facts, truth: KnownTargets | None, target: str = "target") -> Merit:
    """The quality of the winner in plain words."""
    meaning = f"{facts.scale.label}: share of the variance explained"
    own = [(number(facts.expected), meaning if facts.scale.label == "R²" else facts.scale.label)]
    if not np.isnan(facts.baseline):
        own.append((number(facts.baseline), _constant(facts)))
    if truth is None or (not truth.levels and truth.held.ndim > 1):
        return Merit(_better(facts), own)
    if facts.is_classification:
        return _of_labels(facts, truth, own)
    if truth.levels:
        pairs = list(zip(truth.levels, truth.below, strict=True))
        text = "; ".join(f"{percent(b)} are below the predicted {level:g} quantile"
                         for level, b in pairs)  # fmt: skip
        found = [(percent(b), f"below the {level:g} quantile") for level, b in pairs]
        text = f"Of the held-out {truth.words}, {text}. {_better(facts)}".strip()
        return Merit(text, [found[0], *found[1:][-1:], own[0]])
    half, most = (number(truth.within(share)) for share in (0.5, 0.9))
    text = (
        f"Predictions of {shorten(target, MAX_CELL)} are typically off by {half}; 9 of 10 "
        f"{truth.words} are within {most}."
    )
    found = [
        (half, f"typical error: half of the {truth.words} are closer"),
        (most, f"9 of 10 {truth.words} are within"),
    ]
    return Merit(f"{text} {_better(facts)}".strip(), [*found, own[0]])


def _of_labels(facts: Facts, truth: KnownTargets, own: list[tuple[str, str]]) -> Merit:
    right = truth.held == truth.y
    shares = {one: truth.share(truth.y == one) for one in np.unique(truth.y)}
    common = max(shares, key=shares.__getitem__)
    most, well = percent(shares[common]), percent(truth.share(right))
    text = (
        f"{well} of the {truth.words} get the right label while they are held out; always "
        f"predicting the most frequent class ({shorten(common)}) is right for {most}."
    )
    there = [one for one, share in shares.items() if share > 0.0]
    recall = float(np.mean([truth.share(right, truth.y == one) for one in there]))
    third = (percent(recall), "balanced accuracy: mean over classes")
    third = third if facts.scale.label == "error rate" else own[0]
    found = [(well, "right labels"), (most, "most frequent class"), third]
    better = "" if facts.scale.label == "error rate" else _better(facts)
    return Merit(f"{text} {better}".strip(), found)


def _better(facts: Facts) -> str:
    """The error beside that of the baseline, as a factor; empty if it is not clearly smaller."""
    if facts.headline is None or not facts.headline.beats_baseline:
        return ""
    label, ratio = facts.scale.label, np.nan
    if label == "R²" and facts.expected < 1.0:
        label = "root mean squared error"
        ratio = float(np.sqrt((1.0 - facts.baseline) / (1.0 - facts.expected)))
    elif facts.scale.sign < 0 and facts.expected > 0.0:
        ratio = facts.baseline / facts.expected
    if np.isnan(ratio):
        return f"The {label} is {number(facts.expected)}; {_constant(facts)}: " \
               f"{number(facts.baseline)}."  # fmt: skip
    by = f"{number(ratio, 2)} times" if ratio >= MIN_FACTOR else percent(1.0 - 1.0 / ratio)
    return f"By {label}, this is {by} better than {_constant(facts)}."


def _constant(facts: Facts) -> str:
    """The baseline: 'always predicting the mean'."""
    name = "" if facts.headline is None else facts.headline.baseline_name
    return name.replace("always ", "always predicting ", 1) or "the baseline"


def expected(facts: Facts) -> list[tuple[str, str]]:
    """Names and values: the expected error with its interval, the baseline, R² or the shares."""
    (low, high), found = facts.interval, facts.headline
    rows = [(f"{facts.scale.label}, all held-out rows", number(facts.expected, 4))]
    if np.isfinite(low):
        name = f"95\N{NO-BREAK SPACE}% interval of the expected {_noun(facts)}"
        rows.append((name, f"{number(low)} to {number(high)}"))
    if found is not None and not np.isnan(found.baseline):
        rows.append((f"baseline: {found.baseline_name}", number(facts.baseline)))
    elif found is not None and found.reason:
        rows.append(("baseline", f"none: {found.reason}"))
    if found is not None and found.r2 is not None and facts.scale.label != "R²":
        rows.append(("R²", number(found.r2)))
    if found is not None and found.shares:
        rows.append(("shares of the classes", _shares(found)))
    return rows


def _noun(facts: Facts) -> str:
    return "error" if facts.scale.sign < 0 else facts.scale.label


def headline(facts: Facts, target: str = "target") -> list[str]:
    """The lines of all output: how good, the expected error, the choice, and how sure it is."""
    lines = [
        merit(facts, KnownTargets.of(facts), target).sentence,
        "; ".join(f"{name}: {value}" for name, value in expected(facts)),
        f"Chosen: {choice(facts.search)}",
        rivals(facts),
        exactness(facts),
    ]
    if facts.verdict:
        lines.append(f"Warning: {facts.verdict}")
    return [line for line in lines if line]


def choice(search: Any) -> str:
    """The parameters of the winner; of a stack, what it averages."""
    found = getattr(search, "stack_", None)
    if found is None:
        return settings(search.best_params_)
    words = found.describe(len(search.best_estimator_.members_))
    return f"{words}; the best alone: {settings(found.best_params)}"


def rivals(facts: Facts) -> str:
    """The number of equally good candidates, and parameters at the edge of the grid."""
    near, count = int(facts.near.sum()), facts.scores.size
    text = f"{near:,} of {count:,} candidates are within one standard error of the best"
    if not facts.edges:
        return text
    return f"{text}; edge of the grid: {' and '.join(facts.edges)}, better values may lie beyond it"


def exactness(facts: Facts) -> str:
    """Whether the held-out predictions are those of refitting every split."""
    exact, (proven, worst) = np.asarray(facts.table["exact"]), facts.proof
    bound, what = number(worst, 1), "Exact" if proven else "Approximate"
    averaged = "the candidates that are averaged" if hasattr(facts.search, "stack_") else ""
    text = f"{what}: held-out predictions of {averaged or 'the choice'} " + (
        f"equal those of refitting every split, up to rounding (error at most {bound})"
        if proven
        else f"differ from those of refitting every split (error bound {bound})"
    )
    if exact.all():
        return text
    return f"{text}; those of {int((~exact).sum()):,} of {exact.size:,} candidates may differ"


def spent(facts: Facts) -> str:
    """The time that the search took."""
    table, search = facts.table, facts.search
    seconds = (table["mean_fit_time"] + table["mean_score_time"]).sum() * search.n_splits_
    text = f"Held-out predictions and scores took {duration(float(seconds))} of work"
    if getattr(search, "refit_time_", 0.0) > 0.0:  # models of streamed rows are fitted before
        text += f", the final fit {duration(float(search.refit_time_))}"
    return text


def _shares(found: Headline) -> str:
    """The shares of the classes, the largest first."""
    ranked = sorted(found.shares.items(), key=lambda one: -one[1])
    text = ", ".join(f"{shorten(name)} ({percent(share)})" for name, share in ranked[:MAX_CLASSES])
    rest = len(ranked) - MAX_CLASSES
    return text if rest <= 0 else f"{text} and {rest} more"


@dataclass(frozen=True)
class Listing:
    """A table of texts; folded ones open on a click."""

    title: str
    head: list[str]
    rows: list[list[str]] = field(repr=False)
    folded: bool = False

    @cached_property
    def numeric(self) -> list[bool]:
        """The columns of numbers or dates, which are aligned to the right."""
        columns = zip(*self.rows, strict=True)
        return [all(NUMERIC_CELL.fullmatch(one) for one in column) for column in columns]


def ranking(facts: Facts, most: int = MAX_RANKED) -> Listing:
    """The best candidates, at most so many."""
    table, count = facts.table, facts.scores.size
    names = list(dict.fromkeys(name for params in table["params"] for name in params))
    top = facts.order[:most]
    columns = {
        "rank": [str(place + 1) for place in range(top.size)],
        facts.scale.label: decimals(facts.scale(facts.scores[top])),
        "standard error": decimals(facts.errors[top], 2),
    }
    if "criterion" in table:
        columns["criterion"] = decimals(table["criterion"][top])
    columns |= {
        name: [shorten(number(table["params"][i].get(name))) for i in top] for name in names
    }
    columns["method"] = [str(table["method"][i]) for i in top]
    columns["exact"] = ["yes" if table["exact"][i] else "no" for i in top]
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    title = f"All {count:,} candidates" if count <= most else (
        f"The best {most} of {count:,} candidates"
    )  # fmt: skip
    return Listing(title, list(columns), rows)


def comparison(facts: Facts) -> Listing | None:
    """The choice of each criterion; None if the score is the only one."""
    found = verdicts(facts)
    rows = [
        [one.name, settings(facts.table["params"][one.pick]), number(one.values[one.pick], 4),
         f"{number(one.error, 4)} ± {number(one.standard_error, 2)}",
         f"{number(one.regret, 2)} ± {number(one.regret_error, 2)}"]
        for one in found
    ]  # fmt: skip
    head = ["criterion", "chooses", "its value", facts.scale.label, "regret"]
    return Listing("What each criterion would choose", head, rows) if rows else None
